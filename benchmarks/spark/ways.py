"""The ways to ask Spark: on files alone, or through alcid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alcid
from benchmarks.queries.engine import Answer, Engine
from benchmarks.queries.question import LIMIT, Question

__all__ = ["FULL_SCAN", "WAYS", "Folders", "SparkWay", "Way"]

FULL_SCAN = "all"
"""The question without a predicate that gives every column to Spark's sink `noop`."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where rows, their copies and indexes are."""

    base: Path

    @property
    def rows(self) -> Path:
        """The rows, as the other benchmarks of queries have them."""
        return self.base / "parquet"

    @property
    def own(self) -> Path:
        """What is made here, and by no other benchmark."""
        return self.base / "spark"

    @property
    def bloom(self) -> Path:
        """The same rows, written by Spark with Parquet's bloom filters."""
        return self.own / "bloom"

    @property
    def sorted(self) -> Path:
        """The same rows, written by Spark in the order of their ids."""
        return self.own / "sorted"

    @property
    def indexes(self) -> Path:
        """The indexes that most questions are asked with."""
        return self.own / "indexes"

    @property
    def more_indexes(self) -> Path:
        """Those of the benchmark of whole queries, with bitmaps of id and user_id."""
        return self.own / "more-indexes"


class SparkWay(Engine):
    """A way to ask; the session is shared by all, and every question makes a new DataFrame."""

    package = "pyspark"
    frame: Any
    """What the last question of rows was answered from."""

    def __init__(self, data: Path, own: Path) -> None:
        """Take the folder of the files and that of the indexes."""
        super().__init__(data, own)
        self.spark: Any = alcid.session()

    def open(self) -> None:
        """Keep nothing."""

    def ask(self, question: Question) -> Answer:
        """Bring the answer to Python; a full scan ends in Spark's sink `noop`, and gives None."""
        if question.ask == "count":
            return self.count(question)
        self.frame = self.answer(question)
        if question.name == FULL_SCAN:
            self.frame.write.format("noop").mode("overwrite").save()
            return None
        return self.frame.collect()[0][0] if question.ask == "sum" else self.frame.toArrow()

    def count(self, question: Question) -> int:
        """How many rows there are."""
        return int(self.answer(question).collect()[0][0])

    def answer(self, question: Question) -> Any:
        """The DataFrame that a question asks for."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """What the last DataFrame holds, as other answers of rows are compared."""
        rows, total = self.frame.selectExpr("count(1)", "sum(id)").collect()[0]
        return {"rows": rows, "columns": len(self.frame.columns), "sum": [total]}


class Plain(SparkWay):
    """Spark's own reader."""

    def rows(self) -> Any:
        """The folder, as its files are."""
        return self.spark.read.parquet(str(self.data))

    def answer(self, question: Question) -> Any:
        """Ask Spark."""
        rows = self.rows()
        if question.where:
            rows = rows.where(question.condition)
        match question.ask:
            case "top":
                return rows.orderBy(rows["score"].desc()).limit(LIMIT)
            case "count":
                return rows.selectExpr("count(1)")
            case "sum":
                return rows.selectExpr("sum(score)")
            case _:
                return rows


class Read(SparkWay):
    """`table.read`, and `table.count` for a number of rows."""

    table: Any

    def open(self) -> None:
        """Open the folder."""
        self.table = alcid.parquet(self.data, self.spark, index_path=self.own)

    def count(self, question: Question) -> int:
        """Count without a DataFrame."""
        return int(self.table.count(question.condition))

    def answer(self, question: Question) -> Any:
        """Read what is asked for."""
        match question.ask:
            case "top":
                return self.table.read(order_by="score DESC", limit=LIMIT)
            case "sum":
                return self.table.read(columns=["score"]).selectExpr("sum(score)")
            case _:
                return self.table.read(question.condition or None)


class Sql(Read):
    """`alcid.sql`."""

    def count(self, question: Question) -> int:
        """Count in SQL."""
        return SparkWay.count(self, question)

    def answer(self, question: Question) -> Any:
        """Ask in SQL."""
        return alcid.sql(question.select("t"), t=self.table)


@dataclass(frozen=True, slots=True)
class Way:
    """A contender."""

    meaning: str
    kind: type[SparkWay]
    files: str = "rows"
    """Which of the folders it reads."""
    indexes: str = ""
    """Which of the folders its indexes are in; empty: it uses none."""
    fresh: bool = False
    """Whether the table is opened for every question; a DataFrame of files always is."""

    def start(self, folders: Folders) -> SparkWay:
        """Get ready for questions."""
        indexes = getattr(folders, self.indexes) if self.indexes else folders.own
        return self.kind(getattr(folders, self.files), indexes)


WAYS = {
    "plain": Way("spark.read.parquet", Plain),
    "bloom": Way("the same on files that have Parquet's bloom filters", Plain, "bloom"),
    "sorted": Way("the same on files that are sorted by id", Plain, "sorted"),
    "read": Way("table.read, for Q8 table.count; the table is kept", Read, indexes="indexes"),
    "read-fresh": Way("the same; the table is opened anew", Read, indexes="indexes", fresh=True),
    "read-more": Way("as read, with bitmaps of id and user_id", Read, indexes="more_indexes"),
    "sql": Way("alcid.sql; the table is kept", Sql, indexes="indexes"),
    "sql-fresh": Way("the same; the table is opened anew", Sql, indexes="indexes", fresh=True),
    "sql-more": Way("as sql, with bitmaps of id and user_id", Sql, indexes="more_indexes"),
}
