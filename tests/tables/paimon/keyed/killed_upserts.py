"""A program: upserts that are killed at a step, which takes a process for each.

For each step it forks, and the fork upserts to a table, in a folder of that name, until it kills
itself. The table has the keys 0 to 9, all named "old"; keys 5 to 14 become "new", and 0 goes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from alcid import PaimonTable
from alcid.storage import Storage
from alcid.tables.paimon.metadata.commit import Committer
from tests.tables.paimon.metadata.killed_commits import die
from tests.tables.paimon.small_tables import create

OPTIONS = {"deletion-vectors.enabled": "true", "dynamic-bucket.target-row-num": "6"}


def rows_of(keys: range, name: str, kind: str = "+I") -> pa.Table:
    return pa.table(
        {"id": pa.array(keys, pa.int64()), "name": [name] * len(keys), "kind": [kind] * len(keys)}
    )


def at(commit: int, die_in: Callable[[], None]) -> None:
    """Change nothing until a commit begins."""
    real, seen = Committer._try, [0]

    def counting(self: Committer, *arguments: Any) -> Any:
        seen[0] += 1
        if seen[0] == commit:
            die_in()
        return real(self, *arguments)

    Committer._try = counting  # type: ignore[assignment, method-assign]


def _die_before_the_manifests() -> None:
    Committer._write = die  # type: ignore[method-assign]


def _die_before_the_snapshot() -> None:
    Storage.create = die  # type: ignore[method-assign]


STEPS: dict[str, tuple[int, Callable[[], None]]] = {
    "append-manifests": (1, _die_before_the_manifests),
    "append-snapshot": (1, _die_before_the_snapshot),
    "compact-manifests": (2, _die_before_the_manifests),
    "compact-snapshot": (2, _die_before_the_snapshot),
}
"""The commit in which it is killed, and how."""


def change(table: PaimonTable) -> None:
    rows = pa.concat_tables([rows_of(range(5, 15), "new"), rows_of(range(1), "old", "-D")])
    table.upsert(rows, row_kind="kind")


def main() -> None:
    for name, (commit, step) in STEPS.items():
        process = os.fork()
        if process == 0:
            table = create(Path(sys.argv[1], name), primary_keys=["id"], options=OPTIONS)
            table.upsert(rows_of(range(10), "old").drop(["kind"]))
            at(commit, step)
            change(table)
            os._exit(0)
        print(name, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


if __name__ == "__main__":
    main()
