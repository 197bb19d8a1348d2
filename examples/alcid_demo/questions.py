"""The questions of the demo, and how one is asked: with indexes, without, and of plain Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from alcid._text import count_text, size_text
from alcid.scan import Explanation, Scan
from alcid.tables.base import Table
from alcid_demo.data import DAY, some_id

__all__ = ["Asked", "PlainSpark", "Question", "ask", "questions"]

_TIMES = 3
_LONG = 2.0  # seconds after which a question is not asked again

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a table."""

    where: str
    order_by: str | None = None
    limit: int | None = None
    is_count: bool = False

    @property
    def sql(self) -> str:
        """The same for Spark; the table is called `{events}`."""
        order = f" ORDER BY {self.order_by} LIMIT {self.limit}" if self.order_by else ""
        what = "count(*) AS n" if self.is_count else "*"
        return f"SELECT {what} FROM {{events}} WHERE {self.where}{order}"

    @property
    def text(self) -> str:
        """As a reader meets it in a table.

        >>> Question("dt = '20250801'", "score DESC", 10).text
        "dt = '20250801' ORDER BY score DESC LIMIT 10"
        >>> Question("class_id = 7", is_count=True).text
        'count of class_id = 7'
        """
        if self.is_count:
            return f"count of {self.where}"
        order = f" ORDER BY {self.order_by} LIMIT {self.limit}" if self.order_by else ""
        return f"{self.where}{order}"

    def code(self, variable: str) -> str:
        """As one writes it in Python."""
        if self.is_count:
            return f'{variable}.count("{self.where}")'
        order = f', order_by="{self.order_by}", limit={self.limit}' if self.order_by else ""
        return f'{variable}.scan("{self.where}"{order}).to_arrow()'


def questions(rows: int) -> tuple[Question, ...]:
    """Those to a table of so many events; for the last ones indexes do little or nothing."""
    day = f"dt = '{DAY}'"
    return (
        Question(f"id = {some_id(rows)}"),
        Question(f"user_id = {rows // 40}"),
        Question("class_id = 7", is_count=True),
        Question(f"{day} AND score = 100"),
        Question(f"{day} AND class_id = 1 AND score < 60"),
        Question(day, "score ASC", 10),
        Question(day, "score DESC", 10),
        Question(day, "score ASC, user_id DESC", 10),
        Question("score > 99.9"),
        Question(f"{day} AND score IN (60, 80)"),
        Question(f"{day} AND score > 60"),
        Question(f"{day} AND class_id = 1 AND score < 60 OR score > 80"),
        Question("score > 60"),
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a question to a table."""

    table: str
    question: Question
    rows: int
    files_read: int
    files: int
    bytes_read: int
    """Those of data, footers and indexes."""
    bytes: int
    """Those of all data files."""
    seconds: float
    seconds_without: float
    seconds_spark: float
    is_same: bool
    """Whether all three answers are the same rows."""
    explanation: Explanation

    def to_dict(self) -> dict[str, Any]:
        """All but the explanation as plain values, for JSON."""
        return {
            "table": self.table,
            "query": self.question.text,
            "rows": self.rows,
            "files_read": self.files_read,
            "files": self.files,
            "bytes_read": self.bytes_read,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "seconds_without": self.seconds_without,
            "seconds_spark": self.seconds_spark,
            "same": self.is_same,
        }

    def __str__(self) -> str:
        found = f"{count_text(self.rows, 'row')}; {self.files_read} of {self.files} files"
        size = f"{size_text(self.bytes_read)} of {size_text(self.bytes)}"
        times = f"{self.seconds * 1000:,.0f} ms, without indexes {self.seconds_without * 1000:,.0f}"
        times += f", plain Spark {self.seconds_spark * 1000:,.0f}"
        same = "the same rows" if self.is_same else "NOT the same rows"
        return f"{found}, {size}; {times}; {same}"


class PlainSpark:
    """Spark without indexes, on the same rows; it is asked the same thing only once."""

    def __init__(self, rows: Any) -> None:
        """Take a DataFrame for the table."""
        self.rows = rows
        self._known: dict[Question, tuple[pa.Table, float]] = {}

    def answer(self, question: Question) -> tuple[pa.Table, float]:
        """The rows, and how many seconds they took."""
        if question not in self._known:
            spark = self.rows.sparkSession
            self._known[question] = _best(
                lambda: spark.sql(question.sql, events=self.rows).toArrow()
            )
        return self._known[question]


def ask(question: Question, name: str, table: Table[Any], plain: PlainSpark) -> Asked:
    """Ask a table with its indexes and without, and Spark."""

    def read(use_indexes: bool) -> tuple[pa.Table, Scan]:
        scan = table.scan(
            question.where,
            order_by=question.order_by,
            limit=question.limit,
            use_indexes=use_indexes,
        )
        found = pa.table({"n": [scan.count()]}) if question.is_count else scan.to_arrow()
        return found, scan

    (found, scan), seconds = _best(lambda: read(True))
    (without, _), seconds_without = _best(lambda: read(False))
    of_spark, seconds_spark = plain.answer(question)
    explanation = scan.explain()
    stages = explanation.stages
    return Asked(
        name,
        question,
        found["n"][0].as_py() if question.is_count else found.num_rows,
        stages[-1].after.files,
        stages[0].before.files,
        sum(stage.bytes_read for stage in stages),
        stages[0].before.bytes or 0,
        seconds,
        seconds_without,
        seconds_spark,
        _is_same(question, found, without) and _is_same(question, found, of_spark, ties=True),
        explanation,
    )


def _is_same(question: Question, one: pa.Table, other: pa.Table, *, ties: bool = False) -> bool:
    """Whether two answers have the same rows, in the same order where there is one.

    With `ties`, of rows that the order leaves open any may be among the first: then only the
    columns of the order are compared.
    """
    if question.order_by and ties:
        keys = [key.split()[0] for key in question.order_by.split(", ")]
        one, other = one.select(keys), other.select(keys)
    elif not question.order_by and not question.is_count:
        one, other = one.sort_by("id"), other.sort_by("id")
    return bool(one.equals(other.select(one.column_names).cast(one.schema)))


def _best(call: Callable[[], _Result]) -> tuple[_Result, float]:
    """What a call gives at first, when nothing is kept yet, and the shortest time that it took."""
    result, best = _timed(call)
    total = best
    for _ in range(_TIMES - 1):
        if total > _LONG:
            break
        _, took = _timed(call)
        best, total = min(best, took), total + took
    return result, best


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    began = time.perf_counter()
    return call(), time.perf_counter() - began
