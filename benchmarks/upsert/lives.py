"""The lives of tables: each contender loads its own, then changes copies of it, step after step.

What a table holds after a step is read by pypaimon-rust, which did not write it (where it did, the
rows have been merged on reading), and compared with what NumPy says.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon_rust.datafusion import SQLContext

import alcid
from benchmarks.measure import Cost
from benchmarks.paimon.tables import copy_table
from benchmarks.peer import PeerProcess
from benchmarks.questions import WrongAnswerError
from benchmarks.upsert.contenders import OPTIONS
from benchmarks.upsert.data import BATCHES, Held, Source, Truth

__all__ = ["STEPS", "Life", "Taken", "held_by"]

STEPS = {
    "load": "upsert all rows to a table without rows",
    **BATCHES,
    "look-up": "open the table, then read the row of one key after the other",
    "compact": "compact all buckets: one sorted run each, no row marked as deleted",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """One step, and what it took."""

    kind: str
    size: int
    """The rows that the table was loaded with."""
    step: str
    contender: str
    cost: Cost
    peak: int
    """Bytes of memory, of all processes."""
    rows: int
    """Rows upserted, keys looked up, or rows of the table that is compacted."""
    written: int
    """Bytes of the files that are new in the table."""
    buckets: int
    """The number of buckets with new files."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A step, and what is right afterwards."""

    name: str
    request: Mapping[str, Any]
    rows: int
    held: Held
    answer: Mapping[str, int]


class Life:
    """The steps of tables of one kind and one size."""

    def __init__(
        self, source: Source, kind: str, size: int, steps: Sequence[str], keys: int = 100
    ) -> None:
        """Work out what every step is to do.

        Args:
            source: The rows.
            kind: A kind of table, of `OPTIONS`.
            size: The rows to load.
            steps: Some of `STEPS`, after the load.
            keys: How many are looked up.
        """
        self.kind, self.size, self._keys = kind, size, keys
        self._truth = Truth(source.rows)
        self._warehouse = source.base / "upsert-work"
        self._schema = _schema(source.load(size).sources[0])
        self._steps = [self._plan(source, step) for step in ("load", *steps)]

    def _plan(self, source: Source, step: str) -> _Planned:
        truth = self._truth
        if step == "load" or step in BATCHES:
            size = self.size
            batch = source.load(size) if step == "load" else source.batch(size, step)
            truth.upsert(batch)
            request = {"do": "upsert", "sources": [str(path) for path in batch.sources]}
            return _Planned(step, request, len(batch.ids), truth.held(), {})
        held = truth.held()
        if step == "compact":
            return _Planned(step, {"do": "compact"}, held.rows, held, {})
        keys = np.random.default_rng(self.size).choice(truth.ids(), self._keys, replace=False)
        answer = {"rows": len(keys), "sum": int(keys.sum())}
        return _Planned(step, {"do": "look-up", "keys": keys.tolist()}, len(keys), held, answer)

    def load(self, name: str, process: PeerProcess) -> Taken:
        """Let a contender make its table.

        Raises:
            WrongAnswerError: It is not as it should be.
            PeerError: The process ended.
        """
        table = self._table(name)
        shutil.rmtree(table, ignore_errors=True)
        alcid.create_table(table, self._schema, primary_key=["id"], options=OPTIONS[self.kind])
        return self._take(self._steps[0], name, process, table)

    def change(self, name: str, process: PeerProcess) -> Iterator[Taken]:
        """Let it do all other steps, to a copy of the table that it has loaded.

        Raises:
            WrongAnswerError: The table or an answer is not as it should be.
            PeerError: The process ended.
        """
        copy = self._table(f"{name}-copy")
        copy_table(self._table(name), copy)
        for step in self._steps[1:]:
            yield self._take(step, name, process, copy)
        shutil.rmtree(copy)

    def end(self) -> None:
        """Remove all tables."""
        shutil.rmtree(self._warehouse, ignore_errors=True)

    def _table(self, name: str) -> Path:
        made = f"{name}-{self.kind}-{self.size}".replace("-", "_")
        return self._warehouse / "bench.db" / made

    def _take(self, step: _Planned, name: str, process: PeerProcess, table: Path) -> Taken:
        who = f"{self.kind}, {self.size:,} rows, {step.name}: {name}"
        print(who, file=sys.stderr, flush=True)
        before = set(_files(table))
        found = process.ask({**step.request, "table": str(table)})
        new = set(_files(table)) - before
        answer = {key: found[key] for key in step.answer}
        if answer != step.answer:
            raise WrongAnswerError(f"{who}: found {answer}, expected {step.answer}")
        held = held_by(table)
        if held != step.held:
            raise WrongAnswerError(f"{who}: found {held}, expected {step.held}")
        return Taken(
            self.kind,
            self.size,
            step.name,
            name,
            Cost(found["cpu"], found["wall"]),
            found["peak"],
            step.rows,
            sum(path.stat().st_size for path in new),
            len({path.parent for path in new if path.parent.name.startswith("bucket-")}),
        )


def held_by(table: Path) -> Held:
    """What a table holds, as pypaimon-rust reads it."""
    context = SQLContext()
    context.register_catalog("own", {"warehouse": str(table.parent.parent)})
    (batch,) = context.sql(Held.select(f"own.{table.parent.stem}.{table.name}"))
    return Held(*(column[0].as_py() or 0 for column in batch.columns))


def _schema(path: Path) -> pa.Schema:
    """That of the rows; their key is never null."""
    found = pq.read_schema(path)
    return found.set(0, found.field(0).with_nullable(False))


def _files(table: Path) -> Iterator[Path]:
    return (path for path in table.rglob("*") if path.is_file())
