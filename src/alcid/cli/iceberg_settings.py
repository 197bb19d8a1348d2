"""Whether a Spark that is not started yet could have Iceberg; to start it takes long."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from alcid.errors import UnsupportedError

__all__ = ["could_have_iceberg", "no_iceberg"]

# What brings jars along, or names a place that may.
_VARIABLES = (
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CLASSPATH",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_HOME",
    "SPARK_REMOTE",
)


def could_have_iceberg(settings: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Whether anything can bring Iceberg into the session.

    Args:
        settings: The keys of `--conf`.
        environment: The variables of the process.

    >>> could_have_iceberg(["spark.jars.packages"], {}), could_have_iceberg([], {"SPARK_HOME": "/"})
    (True, True)
    """
    if any(key.startswith("spark.jars") or "classpath" in key.lower() for key in settings):
        return True
    if any(environment.get(name) for name in _VARIABLES) or _is_running():
        return True
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return True  # then what starts Spark says that there is none
    folder = Path(found.origin).parent
    has_defaults = (folder / "conf" / "spark-defaults.conf").is_file()
    return has_defaults or any((folder / "jars").glob("*iceberg*.jar"))


def _is_running() -> bool:
    if "pyspark.sql" not in sys.modules:
        return False
    from alcid.spark.session import running_session

    return running_session() is not None


def no_iceberg(name: str) -> UnsupportedError:
    """The error for `catalog.db.table` that says how to come to an Iceberg table."""
    from alcid.spark.iceberg import RUNTIME_PACKAGE

    catalog = f"spark.sql.catalog.{name.split('.', maxsplit=1)[0].strip('`')}"
    return UnsupportedError(
        f"{name}: no such folder, and as the name of an Iceberg table it needs"
        f" --conf spark.jars.packages={RUNTIME_PACKAGE}"
        f" --conf {catalog}=org.apache.iceberg.spark.SparkCatalog and the settings {catalog}.* of"
        " that catalog"
    )
