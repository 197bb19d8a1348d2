"""Random columns, values and predicates, and the truth of a predicate for a row in plain Python.

This uses no code of Alcid: NaN is equal to itself and above all numbers, 0.0 is -0.0, and a
comparison with null is null, as in Spark.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.golden.container_cases import leaf

__all__ = ["KINDS", "WIDER", "Question", "draw_question", "draw_value", "order_key"]

Row = Mapping[str, Any]

_LONG = "a text that is longer than what statistics keep of it"
_TEXTS = ["", "a", "ab", "b", "ß", "\U0001f427", f"{_LONG} 1", f"{_LONG} 2", "it's", "100%"]
_FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.25, 0.1, 16_777_217.0]


def _single(value: float) -> float:
    single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return single


KINDS: dict[str, Callable[[random.Random], Any]] = {
    "SMALLINT": lambda source: source.choice([-7, 0, 3, 32_767, source.randrange(20)]),
    "INT": lambda source: source.choice([-7, 0, 3, 2**31 - 1, source.randrange(100)]),
    # Java cannot build a bsi of the smallest one.
    "BIGINT": lambda source: source.choice([1 - 2**63, 2**40, 3, source.randrange(100)]),
    "FLOAT": lambda source: _single(source.choice([*_FLOATS, source.randrange(20) / 4])),
    "DOUBLE": lambda source: source.choice([*_FLOATS, source.randrange(20) / 4]),
    "STRING": lambda source: source.choice([*_TEXTS, f"n{source.randrange(12)}"]),
    "BOOLEAN": lambda source: source.random() < 0.5,
    "DATE": lambda source: date(1969, 12, 20) + timedelta(days=source.randrange(30)),
    "DECIMAL(9, 2)": lambda source: Decimal(source.randrange(-500, 500)).scaleb(-2),
    "TIMESTAMP(6)": lambda source: (
        datetime(1969, 12, 31) + timedelta(microseconds=source.randrange(9) * 10_000_000_001)
    ),
}
"""Types of columns, each with a function that draws a value."""

WIDER = {
    "SMALLINT": "INT",
    "INT": "BIGINT",
    "FLOAT": "DOUBLE",
    "DECIMAL(9, 2)": "DECIMAL(18, 2)",
}
"""The types that a type may become."""

KINDS["DECIMAL(18, 2)"] = KINDS["DECIMAL(9, 2)"]


def draw_value(source: random.Random, kind: str, nulls: float = 0.15) -> Any:
    """A value of a type, or null."""
    return None if source.random() < nulls else KINDS[kind](source)


@dataclass(frozen=True)
class Question:
    """A predicate: as SQL, and as a function of a row that returns True, False or None."""

    sql: str
    matches: Callable[[Row], bool | None]
    java: Any = None
    """The same in Java's form, if it has one."""

    def among(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if self.matches(row)]


def order_key(value: Any, *, descending: bool = False) -> Any:
    """Sorts values as Spark does: null first, NaN last; reversed if descending."""
    if value is None:
        return (1,) if descending else (0,)
    if isinstance(value, float):
        rank = (1, 0.0) if math.isnan(value) else (0, value)
        return (0, -rank[0], -rank[1]) if descending else (1, *rank)
    if not descending:
        return (1, value)
    return (0, _Backwards(value))


@dataclass(frozen=True)
class _Backwards:
    value: Any

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)


def draw_question(source: random.Random, columns: Mapping[str, str], depth: int = 2) -> Question:
    """A predicate over some of the columns, which are given with their types."""
    if not depth or source.random() < 0.4:
        return _draw_leaf(source, columns)
    parts = [draw_question(source, columns, depth - 1) for _ in range(source.randint(2, 3))]
    word, stops = source.choice([("AND", False), ("OR", True)])
    joined = Question(
        f" {word} ".join(f"({part.sql})" for part in parts),
        lambda row: _joined([part.matches(row) for part in parts], stops),
    )
    if source.random() < 0.8:
        return joined
    return Question(f"NOT ({joined.sql})", lambda row: _negated(joined.matches(row)))


def _joined(truths: Sequence[bool | None], stops: bool) -> bool | None:
    if stops in truths:
        return stops
    return None if None in truths else not stops


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


_OPERATORS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "=": ("EQUAL", lambda value, other: value == other),
    "<>": ("NOT_EQUAL", lambda value, other: value != other),
    "<": ("LESS_THAN", lambda value, other: value < other),
    "<=": ("LESS_OR_EQUAL", lambda value, other: value <= other),
    ">": ("GREATER_THAN", lambda value, other: value > other),
    ">=": ("GREATER_OR_EQUAL", lambda value, other: value >= other),
}


def _draw_leaf(source: random.Random, columns: Mapping[str, str]) -> Question:
    name = source.choice(list(columns))
    kind = columns[name]
    shape = source.randrange(8)
    if shape == 0:
        is_null = source.random() < 0.5
        return Question(
            f"{name} IS {'' if is_null else 'NOT '}NULL",
            lambda row: (row[name] is None) is is_null,
            leaf(name, "IS_NULL" if is_null else "IS_NOT_NULL"),
        )
    if shape in (1, 2):
        listed = [KINDS[kind](source) for _ in range(source.choice([1, 3, 12]))]
        keys = {order_key(value) for value in listed}
        return Question(
            f"{name} IN ({', '.join(map(_literal, listed))})",
            lambda row: _of(row[name], lambda key: key in keys),
            leaf(name, "IN", *listed) if _crosses(kind) else None,
        )
    if shape == 3:
        low, high = sorted((KINDS[kind](source) for _ in range(2)), key=order_key)
        lowest, highest = order_key(low), order_key(high)
        return Question(
            f"{name} BETWEEN {_literal(low)} AND {_literal(high)}",
            lambda row: _of(row[name], lambda key: lowest <= key <= highest),
            leaf(name, "BETWEEN", low, high) if _crosses(kind) else None,
        )
    if shape == 4 and kind == "STRING":
        begin = source.choice(["a", "n1", "", _LONG])
        return Question(
            f"{name} LIKE '{begin}%'",
            lambda row: None if row[name] is None else row[name].startswith(begin),
            leaf(name, "STARTS_WITH", begin),
        )
    operator = source.choice(list(_OPERATORS))
    function, compare = _OPERATORS[operator]
    value = KINDS[kind](source)
    against = order_key(value)
    return Question(
        f"{name} {operator} {_literal(value)}",
        lambda row: _of(row[name], lambda key: compare(key, against)),
        leaf(name, function, value) if _crosses(kind) else None,
    )


def _of(value: Any, test: Callable[[Any], bool]) -> bool | None:
    return None if value is None else test(order_key(value))


def _crosses(kind: str) -> bool:
    """Whether values of a type are the same in JSON."""
    return kind in ("SMALLINT", "INT", "BIGINT", "STRING", "BOOLEAN")


def _literal(value: Any) -> str:
    """A value in SQL."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case float():
            name = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
            return f"{value!r}D" if math.isfinite(value) else f"CAST('{name}' AS DOUBLE)"
        case datetime():
            return f"TIMESTAMP_NTZ '{value}'"
        case date():
            return f"DATE '{value}'"
    return str(value)
