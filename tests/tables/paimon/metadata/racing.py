"""A program: one of several that commit to a table concurrently, as threads share too much.

    python -m tests.tables.paimon.metadata.racing <worker> <rounds> <location> <storage options>

It appends files, deletes rows of its own, and swaps the index of any file; and at the end
prints as JSON the commits that it believes to have made.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from alcid import PaimonTable
from alcid.storage import Storage
from alcid.tables.paimon.delete import delete
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.table_state import TableState
from tests.tables.paimon.small_tables import rows_of, write_file

ROOT = Path(__file__).parents[4]
ROWS = 5  # of a file


@dataclass
class Done:
    """What was done."""

    appended: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)


def race(location: str, options: Mapping[str, Any], *, rounds: int, workers: int = 4) -> list[Done]:
    """Let workers commit at the same time, and return what each has done."""
    commands = [
        [sys.executable, "-m", __name__, str(worker), str(rounds), location, json.dumps(options)]
        for worker in range(workers)
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment)
        for command in commands
    ]
    outputs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0] * workers
    return [Done(**json.loads(output)) for output in outputs]


class Racer:
    """One worker."""

    def __init__(self, worker: int, table: PaimonTable) -> None:
        self._table, self._next = table, worker * 1_000_000
        self._random = random.Random(worker)
        self._live: list[int] = []
        self.done = Done()

    def run(self, rounds: int) -> None:
        for number in range(rounds):
            (self._append, self._delete, self._append, self._swap)[number % 4]()

    def _append(self) -> None:
        ids = list(range(self._next, self._next + ROWS))
        self._next += ROWS
        entry = write_file(self._table, rows_of(ids))
        self._commit(Change(kind="APPEND", added=[entry]))
        self.done.appended += ids
        self._live += ids

    def _delete(self) -> None:
        gone = self._random.sample(self._live, 3)
        report = delete(self._table, f"id IN ({', '.join(map(str, gone))})")
        assert report.rows == 3
        assert report.snapshot_id is not None
        self.done.snapshots.append(report.snapshot_id)
        self.done.deleted += gone
        self._live = [row for row in self._live if row not in gone]

    def _swap(self) -> None:
        """Replace the index of a live file by another, whose name says which worker did it."""

        def plan(state: TableState) -> Change:
            entry = self._random.choice(state.entries)
            file = replace(entry.file, extra_files=(f"{entry.file.name}-{uuid.uuid4()}.index",))
            return Change(kind="COMPACT", deleted=[entry], added=[entry.with_file(file)])

        self._commit(plan)

    def _commit(self, change: Any) -> None:
        plan = change if callable(change) else lambda _: change
        made = self._table.committer().commit(plan)
        assert made is not None
        self.done.snapshots.append(made.id)


def main() -> None:
    worker, rounds, location, options = sys.argv[1:]
    racer = Racer(int(worker), PaimonTable(Storage.open(location, json.loads(options))))
    racer.run(int(rounds))
    print(json.dumps(asdict(racer.done)))


if __name__ == "__main__":
    main()
