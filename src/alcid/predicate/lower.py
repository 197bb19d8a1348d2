"""A leaf brought to keys: the question that an index can answer.

| question           | rows                                                    |
|--------------------|---------------------------------------------------------|
| `Nulls()`          | the null rows                                           |
| `NotNulls()`       | the others                                              |
| `Within(intervals)`| rows whose key lies in one of them; no interval: no row |
| `Outside(intervals)`| non-null rows whose key lies in none of them           |
| `Anything()`       | any row: the index is not asked                         |

An interval is half-open, `begin <= key < end`, and None is no bound. Intervals are sorted, apart
from each other, not empty, and within the range of the column's keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from alcid.errors import LiteralError
from alcid.predicate.column import plain
from alcid.predicate.expression import (
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Operator,
    Predicate,
)
from alcid.predicate.intervals import EVERY_KEY, Interval, merge
from alcid.predicate.literal import place
from alcid.predicate.numbers import Place
from alcid.types import DataType

__all__ = [
    "Anything",
    "NotNulls",
    "Nulls",
    "Outside",
    "Question",
    "Within",
    "lower",
]


@dataclass(frozen=True, slots=True)
class Nulls:
    """The null rows."""


@dataclass(frozen=True, slots=True)
class NotNulls:
    """The rows that are not null."""


@dataclass(frozen=True, slots=True)
class Within:
    """The rows whose key lies in one of the intervals."""

    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """The rows that are not null and whose key lies in none of the intervals."""

    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Anything:
    """Any row."""


Question: TypeAlias = Nulls | NotNulls | Within | Outside | Anything
_NO_ROW = Within(())


def lower(leaf: Predicate, column: str, data_type: DataType) -> Question:
    """The question that a leaf of a normalized predicate asks the index of its column.

    Args:
        leaf: A node without children.
        column: The name of the column, for the message of an error.
        data_type: The type of the column.

    Returns:
        The rows that may match; never fewer than those that do.

    Raises:
        LiteralError: A literal has no meaning for the type.

    >>> from alcid.predicate import col
    >>> from alcid.types import DataType
    >>> lower(col("a") > 5.5, "a", DataType("INT"))
    Within(intervals=((6, None),))
    >>> lower(col("a").isin([3, 4, 9]), "a", DataType("INT"))
    Within(intervals=((3, 5), (9, 10)))
    >>> lower(col("a") < 1000, "a", DataType("TINYINT"))
    NotNulls()
    """
    match leaf:
        case IsNull(_, negated):
            return NotNulls() if negated else Nulls()
        case Constant(value):
            return Anything() if value else _NO_ROW
        case Comparison(_, "<=>", None):
            return Nulls()
        case Comparison(_, operator, literal):
            return _lower_comparison(operator, literal, column, data_type)
        case Between(_, low, high):
            return _lower_between(low, high, column, data_type)
        case In():
            return _lower_in(leaf, column, data_type)
        case Like():
            return _lower_like(leaf, data_type)
    return Anything()


def _lower_comparison(
    operator: Operator, literal: object, column: str, data_type: DataType
) -> Question:
    if literal is None:
        return _NO_ROW
    at = place(literal, column, data_type)
    match operator:
        case "=" | "<=>":
            return _within([(at.begin, at.end)], data_type)
        case "<>":
            return _outside([(at.begin, at.end)] if at.certain else [], data_type)
        case "<":
            return _within([(None, at.begin if at.certain else at.end)], data_type)
        case "<=":
            return _within([(None, at.end)], data_type)
        case ">":
            return _within([(at.end if at.certain else at.begin, None)], data_type)
        case ">=":
            return _within([(at.begin, None)], data_type)


def _lower_between(low: object, high: object, column: str, data_type: DataType) -> Question:
    if low is None or high is None:
        return _NO_ROW
    begin, end = place(low, column, data_type).begin, place(high, column, data_type).end
    return _within([(begin, end)], data_type)


def _lower_in(leaf: In, column: str, data_type: DataType) -> Question:
    literals = [plain(literal) for literal in leaf.literals if literal is not None]
    if not leaf.literals:
        return Anything() if leaf.negated else _NO_ROW
    if leaf.negated and len(literals) < len(leaf.literals):
        return _NO_ROW
    places = _places(literals, column, data_type)
    if leaf.negated:
        return _outside([(at.begin, at.end) for at in places if at.certain], data_type)
    return _within([(at.begin, at.end) for at in places], data_type)


def _places(literals: list[object], column: str, data_type: DataType) -> list[Place]:
    # Spark brings a list to one type first: a double in it makes doubles of all its numbers.
    doubles = any(isinstance(literal, float) for literal in literals)
    return [place(literal, column, data_type, doubles=doubles) for literal in literals]


def _lower_like(leaf: Like, data_type: DataType) -> Question:
    if data_type.root not in ("CHAR", "VARCHAR"):
        return Anything()
    try:
        text = leaf.text.encode()
    except UnicodeEncodeError:
        raise LiteralError("LIKE with a lone surrogate") from None
    interval = (text, _successor(text) if leaf.prefix else text + b"\0")
    return (_outside if leaf.negated else _within)([interval], data_type)


def _successor(prefix: bytes) -> bytes | None:
    """The least bytes above all that start with `prefix`; UTF-8 has no byte 0xFF to carry over."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def _within(intervals: Iterable[Interval], data_type: DataType) -> Question:
    merged = merge(intervals, data_type)
    return NotNulls() if merged == EVERY_KEY else Within(merged)


def _outside(intervals: Iterable[Interval], data_type: DataType) -> Question:
    merged = merge(intervals, data_type)
    if not merged:
        return NotNulls()
    return _NO_ROW if merged == EVERY_KEY else Outside(merged)
