"""A program: sinks that are killed at a step, which takes a process for each.

For each step it forks, and the fork gives batch 5 and then batch 6 to a sink of a table, in a
folder of that name, until it kills itself within the second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alcid
from alcid.tables.paimon.metadata.commit import SnapshotWriter
from tests.tables.paimon.keyed.sink_tables import keyed_table, rows_of
from tests.tables.paimon.metadata.killed_commits import die

BATCHES = {5: {0: "five", 10: "five"}, 6: {0: "six", 1: "six", 11: "six"}}


def _on(snapshot: int, *, after: bool) -> Callable[[], None]:
    """Die before or after a snapshot's file is made; snapshots are counted from here."""

    def arm() -> None:
        make, calls = SnapshotWriter.write, list[None]()

        def counted(maker: SnapshotWriter, *arguments: Any) -> bool:
            calls.append(None)
            if len(calls) == snapshot and not after:
                die()
            is_made = make(maker, *arguments)
            if len(calls) == snapshot:
                die()
            return is_made

        SnapshotWriter.write = counted  # type: ignore[assignment, method-assign]

    return arm


STEPS = {
    "before the APPEND": _on(1, after=False),
    "after the APPEND": _on(1, after=True),
    "before the COMPACT": _on(2, after=False),
    "after the COMPACT": _on(2, after=True),
}


def main() -> None:
    for name, arm in STEPS.items():
        process = os.fork()
        if process == 0:
            sink = alcid.upsert_sink(keyed_table(Path(sys.argv[1], name)), "s")
            sink(rows_of(BATCHES[5]), 5)
            arm()
            sink(rows_of(BATCHES[6]), 6)
            os._exit(0)
        print(name, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), sep=": ")


if __name__ == "__main__":
    main()
