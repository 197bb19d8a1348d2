"""A program: streams that stop at a step of their second batch, so that it can be killed.

It runs one query for each step, in a folder of that name, and touches the file `reached` in it.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import alcid
from alcid.tables.paimon.metadata.commit import SnapshotWriter
from tests.spark.streams import start

# The snapshot, counted from the first of the stream, before or after which it stops.
STEPS = {
    "before the APPEND": (3, False),
    "after the APPEND": (3, True),
    "after the COMPACT": (4, True),
}


def stop_at_steps() -> None:
    """Let commits to the table in the folder of a step go exactly that far."""
    make, calls = SnapshotWriter.write, Counter[str]()

    def counted(maker: SnapshotWriter, *arguments: Any) -> bool:
        folder = Path(maker._storage.location).parent
        calls[folder.name] += 1
        stop, after = STEPS[folder.name]
        if calls[folder.name] == stop and not after:
            wait(folder)
        is_made = make(maker, *arguments)
        if calls[folder.name] == stop:
            wait(folder)
        return is_made

    SnapshotWriter.write = counted  # type: ignore[assignment, method-assign]


def wait(folder: Path) -> None:
    (folder / "reached").touch()
    threading.Event().wait()


def main() -> None:
    stop_at_steps()
    spark = alcid.session(master="local[2]")
    for query in [start(spark, Path(sys.argv[1], step)) for step in STEPS]:
        query.awaitTermination()


if __name__ == "__main__":
    main()
