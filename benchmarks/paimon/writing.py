"""Changes to copies of tables, by all contenders in turns; what each has left is checked."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import alcid
from benchmarks.measure import Cost
from benchmarks.paimon.contenders import WRITES, TableContender
from benchmarks.paimon.questions import to_delete
from benchmarks.paimon.tables import INDEXES, Tables, copy_table
from benchmarks.peer import PeerProcess
from benchmarks.queries.data import Rows
from benchmarks.questions import WrongAnswerError

__all__ = ["Change", "Changes", "Expected", "check", "write_all"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change."""

    what: str
    contender: str
    cost: Cost
    rows: int
    """Rows deleted, indexed or appended."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a table holds after a change."""

    rows: int
    id_sum: int
    has_indexes: bool


class Changes:
    """What is done, and what is right afterwards."""

    def __init__(self, tables: Tables, rows: Rows) -> None:
        """Work out which rows are left, and which are appended."""
        self.tables = tables
        self.question, gone = to_delete(rows)
        appended = pq.read_table(tables.sources, columns=["id"])["id"]
        added = (len(appended), pc.sum(appended).as_py())
        left = rows.ids[~gone]
        every = (len(rows.ids), int(rows.ids.sum()))
        self.source = {
            "delete": tables.indexed,
            "build": tables.unindexed,
            "append": tables.empty,
            "append-bare": tables.bare,
        }
        self.touched = {
            "delete": int(np.count_nonzero(gone)),
            "build": every[0],
            "append": added[0],
            "append-bare": added[0],
        }
        self.expected = {
            "delete": Expected(len(left), int(left.sum()), has_indexes=True),
            "build": Expected(*every, has_indexes=True),
            "append": Expected(*added, has_indexes=True),
            "append-bare": Expected(*added, has_indexes=False),
        }

    def make(self, process: PeerProcess, contender: str, what: str) -> Change:
        """Let it change a copy, and look at what it has left.

        Raises:
            WrongAnswerError: Something is not as it should be.
            PeerError: The process ended.
        """
        target = self.tables.work / "bench.db" / contender.replace("-", "_")
        copy_table(self.source[what], target)
        asked = {
            "what": what,
            "table": str(target),
            "sources": list(map(str, self.tables.sources)),
            "question": asdict(self.question),
        }
        cost = Cost(**process.ask({"do": "write"} | asked))
        check(f"{what}: {contender}", target, self.expected[what])
        shutil.rmtree(target)
        return Change(what, contender, cost, self.touched[what])


def check(who: str, table: Path, expected: Expected) -> None:
    """Compare a table, or a folder of Parquet in its place, with what is right.

    Raises:
        WrongAnswerError: Rows or indexes are missing, or too many.
    """
    opened = alcid.paimon(table)
    ids = opened.scan(columns=["id"]).to_arrow()["id"]
    if not len(ids):  # no snapshot: plain Spark writes files only
        ids = pq.read_table(sorted(table.glob("bucket-0/*.parquet")), columns=["id"])["id"]
    found = (len(ids), pc.sum(ids.cast(pa.int64())).as_py())
    if found != (expected.rows, expected.id_sum):
        raise WrongAnswerError(
            f"{who}: found rows and sum {found}, expected {(expected.rows, expected.id_sum)}"
        )
    indexes = {
        (each.column, each.index_type) for each in opened.indexes() if each.fresh == opened.files
    }
    if indexes != (INDEXES if expected.has_indexes else set()):
        raise WrongAnswerError(f"{who}: found the indexes {sorted(indexes)}")


def write_all(
    contenders: Sequence[TableContender], changes: Changes, repeats: int
) -> tuple[list[Change], dict[str, dict[str, Any]]]:
    """Let everyone do what it can, in turns; the changes, and package and version of each.

    Raises:
        WrongAnswerError: A table is not as it should be.
        PeerError: A process ended.
    """
    base = changes.tables.base
    able = [contender for contender in contenders if contender.writes]
    done: list[Change] = []
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start(base)) for each in able}
        for repetition in range(-1, repeats):  # the first is not counted
            print(f"changes {repetition + 1} of {repeats}", file=sys.stderr, flush=True)
            first = repetition % len(able) if able else 0
            for what in WRITES:
                for each in (*able[first:], *able[:first]):
                    if what in each.writes:
                        made = changes.make(running[each.name], each.name, what)
                        done += [made] if repetition >= 0 else []
        facts = {name: process.ready for name, process in running.items()}
    shutil.rmtree(changes.tables.work, ignore_errors=True)
    return done, facts
