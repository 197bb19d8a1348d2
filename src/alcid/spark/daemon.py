"""PySpark's daemon, from which the Python workers are forked, with less work for each task.

Before every task a worker of Spark 4.1 has the import system forget what it knows, and for an
archive on the path (PySpark itself is one) that means to read its directory anew: 150 ms a task in
place of 60. Archives do not change under a worker, so theirs is kept. `alcid` is loaded already
when a worker is forked.

Only for a local Spark: `spark.python.daemon.module` names a module that every executor must have.
"""

from __future__ import annotations

from zipimport import zipimporter


def main() -> None:
    """Run the daemon; Spark calls it as `python -m alcid.spark.daemon pyspark.worker`."""
    from pyspark.daemon import manager

    zipimporter.invalidate_caches = _keep  # type: ignore[assignment, method-assign]
    manager()


def _keep(_: zipimporter) -> None:
    pass


if __name__ == "__main__":
    main()
