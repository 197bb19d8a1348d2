"""The ways to ask an Iceberg table: Iceberg's own scan, or through alcid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import alcid
from benchmarks.iceberg.lake import BLOOM, PLAIN, Lake
from benchmarks.queries.engine import Answer
from benchmarks.queries.question import LIMIT, Question
from benchmarks.spark.ways import Plain, Read, Sql

__all__ = ["OURS", "OWN", "WAYS", "Way"]


class _Own(Plain):
    """Iceberg's own scan."""

    def rows(self) -> Any:
        """The table."""
        return self.spark.table(str(self.data))


class _Read(Read):
    """`table.read` and `table.count`."""

    def open(self) -> None:
        """Read the metadata."""
        self.table = alcid.iceberg(str(self.data), self.spark)


class _Sql(_Read, Sql):
    """`alcid.sql`."""


class _Scan(_Read):
    """`table.scan` to Arrow, without a DataFrame."""

    def ask(self, question: Question) -> Answer:
        """Bring the answer to Python."""
        match question.ask:
            case "count":
                return self.count(question)
            case "top":
                return self.table.scan(order_by="score DESC", limit=LIMIT).to_arrow()
            case "sum":
                scores: pa.Table = self.table.scan(columns=["score"]).to_arrow()
                return float(scores["score"].to_numpy().sum())
            case _:
                return self.table.scan(question.condition or None).to_arrow()


@dataclass(frozen=True, slots=True)
class Way:
    """A contender."""

    meaning: str
    kind: Callable[[Path, Path], Plain | Read]
    table: str = PLAIN
    fresh: bool = False
    """Whether the table is opened for every question."""

    def start(self) -> Plain | Read:
        """Get ready for questions."""
        return self.kind(Path(Lake.name(self.table)), Path())


OWN = {
    "iceberg": Way("spark.table, Iceberg's own scan", _Own),
    "iceberg-bloom": Way("the same on files that have Parquet's bloom filters", _Own, BLOOM),
}
OURS = {
    "read": Way("table.read, for Q8 table.count; the table is kept", _Read),
    "read-fresh": Way("the same; the table is opened anew", _Read, fresh=True),
    "sql": Way("alcid.sql; the table is kept", _Sql),
    "scan": Way("table.scan to Arrow; the table is kept", _Scan),
}
WAYS = OWN | OURS
