"""The rows of tables that several systems read and write: critical values, and questions.

A row has a number: `id` is three times that, so that there are ids within the bounds of files
that no row has. Its other values follow from the number and the season in which it was last
written. So `id` and `season` alone determine all rows of a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray, Int64Array
from tests.golden.container_cases import leaf
from tests.golden.values import Json, f64, timestamp

ROWS = 20_000
PARTS = 3  # commits in which the rows of a season arrive
SEASONS = 2
LONG = "a razorbill that is rung in the " + "north " * 40
KINDS = ["auk", "murre", None, "", LONG, "puffin", "Ärger", "auk "]
DAYS = ["2026-01-01", None, "a/b=c d"]

COLUMNS = {
    "id": "INT NOT NULL",
    "season": "TINYINT",
    "kind": "STRING",
    "weight": "BIGINT",
    "score": "DOUBLE",
    "price": "DECIMAL(12, 2)",
    "wide": "DECIMAL(30, 10)",
    "day": "DATE",
    "at": "TIMESTAMP(3)",
    "seen": "TIMESTAMP(6)",
    "raw": "BYTES",
    "ringed": "BOOLEAN",
    "dt": "STRING",
}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("season", pa.int8()),
        ("kind", pa.string()),
        ("weight", pa.int64()),
        ("score", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("wide", pa.decimal128(30, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("ms")),
        ("seen", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("ringed", pa.bool_()),
        ("dt", pa.string()),
    ]
)
INDEXES = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bloom-filter.id.items": "20000",
    "file-index.bloom-filter.id.fpp": "0.00001",
    "file-index.bitmap.columns": "kind,day,ringed",
    "file-index.bsi.columns": "weight",
    "file-index.range-bitmap.columns": "score,price,at",
}
_SCORES = [math.nan, -0.0, 0.0, math.inf, -math.inf, None]
_FIRST = datetime(1969, 12, 31, 23, 59, 59, 999_000)


@cache
def _row(number: int, season: int) -> dict[str, Any]:
    part = number % PARTS
    some = number * 7919 % 1009 + season
    kind = f"only {part}" if some % 50 == 7 else KINDS[(some + season) % len(KINDS)]
    at = _FIRST + timedelta(milliseconds=some * 3_600_007 - 400_000_000)
    return {
        "id": number * 3,
        "season": season,
        "kind": kind,
        "weight": None if some % 9 == 4 else some % 61 - 30,
        "score": _SCORES[some % 60] if some % 60 < len(_SCORES) else some / 4 - 100,
        "price": None if some % 11 == 0 else Decimal(some * 37 - 9000).scaleb(-2),
        "wide": None if some % 13 == 0 else Decimal((some - 500) * 10**22 // 7).scaleb(-10),
        "day": None if some % 17 == 0 else date(1969, 12, 1) + timedelta(days=some % 90),
        "at": None if some % 19 == 0 else at,
        "seen": at + timedelta(microseconds=some),
        "raw": None if some % 23 == 0 else bytes([some % 256]) * (some % 7),
        "ringed": (True, False, None)[some % 3],
        "dt": DAYS[number // PARTS % len(DAYS)],
    }


def rows_of(numbers: Sequence[int] | Int64Array, season: int = 0) -> pa.Table:
    """The rows with these numbers, as they are in a season."""
    return pa.Table.from_pylist([_row(int(number), season) for number in numbers], SCHEMA)


def part(number: int) -> Int64Array:
    """The rows of one commit: every third, so that all commits have the same bounds."""
    return np.arange(number, ROWS, PARTS)


@dataclass(frozen=True, eq=False)
class Question:
    """A predicate in SQL, in Java's form, and as a function of a row in Python."""

    sql: str
    java: Json
    holds: Callable[[dict[str, Any]], bool]
    index_gives: Literal["rows", "files", "nothing"] = "rows"
    """What the indexes give: the matching rows, the files that may have one, or nothing."""

    @property
    def matches(self) -> BoolArray:
        """For each season and row, whether the predicate holds."""
        return _matches(self)


@cache
def _matches(question: Question) -> BoolArray:
    matches = [[question.holds(_row(n, season)) for n in range(ROWS)] for season in range(SEASONS)]
    return np.array(matches, bool)


def _known(column: str, test: Callable[[Any], bool]) -> Callable[[dict[str, Any]], bool]:
    """A condition on a column, which nulls do not meet."""
    return lambda row: row[column] is not None and test(row[column])


def _above(value: Any, bound: float) -> bool:
    """NaN is above all numbers."""
    return bool(math.isnan(value) or value > bound)


_MOMENT = datetime(1970, 1, 2, 3, 4, 5, 6000)
_MOMENT_JSON = timestamp(int(_MOMENT.replace(tzinfo=UTC).timestamp() * 1000))

QUESTIONS = [
    Question("id = 51", leaf("id", "EQUAL", 51), lambda row: row["id"] == 51, index_gives="files"),
    Question("id = 50", leaf("id", "EQUAL", 50), lambda row: row["id"] == 50, index_gives="files"),
    Question(
        "id IN (3, 31, 300, 59997)",
        leaf("id", "IN", 3, 31, 300, 59997),
        lambda row: row["id"] in (3, 31, 300, 59997),
        index_gives="files",
    ),
    Question(
        "kind = 'only 0'", leaf("kind", "EQUAL", "only 0"), lambda row: row["kind"] == "only 0"
    ),
    Question("kind = ''", leaf("kind", "EQUAL", ""), lambda row: row["kind"] == ""),
    Question(f"kind = '{LONG}'", leaf("kind", "EQUAL", LONG), lambda row: row["kind"] == LONG),
    Question("kind IS NULL", leaf("kind", "IS_NULL"), lambda row: row["kind"] is None),
    Question(
        "kind <> 'auk'", leaf("kind", "NOT_EQUAL", "auk"), _known("kind", lambda row: row != "auk")
    ),
    Question(
        "kind LIKE 'only%'",
        leaf("kind", "STARTS_WITH", "only"),
        _known("kind", lambda value: value.startswith("only")),
        index_gives="nothing",
    ),
    Question(
        "weight < -25",
        leaf("weight", "LESS_THAN", -25),
        _known("weight", lambda value: value < -25),
    ),
    Question(
        "weight BETWEEN 3 AND 5",
        leaf("weight", "BETWEEN", 3, 5),
        _known("weight", lambda value: 3 <= value <= 5),
    ),
    Question(
        "score > 140.5",
        leaf("score", "GREATER_THAN", f64(140.5)),
        _known("score", lambda value: _above(value, 140.5)),
    ),
    Question(
        "score <= -95.25",
        leaf("score", "LESS_OR_EQUAL", f64(-95.25)),
        _known("score", lambda value: value <= -95.25),
    ),
    Question(
        "price = 95",
        leaf("price", "EQUAL", "95.00"),
        _known("price", lambda value: value == Decimal("95.00")),
    ),
    Question(
        "price >= 280",
        leaf("price", "GREATER_OR_EQUAL", "280.00"),
        _known("price", lambda value: value >= 280),
    ),
    Question(
        "wide < -70000000000000",
        leaf("wide", "LESS_THAN", "-70000000000000.0000000000"),
        _known("wide", lambda value: value < -70000000000000),
        index_gives="nothing",
    ),
    Question(
        "day = DATE '1969-12-31'",
        leaf("day", "EQUAL", -1),
        _known("day", lambda value: value == date(1969, 12, 31)),
    ),
    Question(
        "at < TIMESTAMP '1970-01-02 03:04:05.006'",
        leaf("at", "LESS_THAN", _MOMENT_JSON),
        _known("at", lambda value: value < _MOMENT),
    ),
    Question(
        "seen >= TIMESTAMP '1970-01-02 03:04:05.006'",
        leaf("seen", "GREATER_OR_EQUAL", _MOMENT_JSON),
        lambda row: row["seen"] >= _MOMENT,
        index_gives="nothing",
    ),
    Question(
        "ringed = true AND kind = 'auk'",
        {"and": [leaf("ringed", "EQUAL", True), leaf("kind", "EQUAL", "auk")]},
        lambda row: row["ringed"] is True and row["kind"] == "auk",
    ),
    Question(
        "kind = 'only 1' OR weight = 7",
        {"or": [leaf("kind", "EQUAL", "only 1"), leaf("weight", "EQUAL", 7)]},
        lambda row: row["kind"] == "only 1" or row["weight"] == 7,
    ),
    Question(
        "dt = 'a/b=c d'",
        leaf("dt", "EQUAL", "a/b=c d"),
        lambda row: row["dt"] == "a/b=c d",
        index_gives="nothing",
    ),
]
SOME_QUESTIONS = QUESTIONS[::2]
"""For tests that must be short."""
