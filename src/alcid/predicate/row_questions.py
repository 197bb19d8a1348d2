"""A leaf as a question whose rows are the very rows that match.

`lower` says what an index can be asked. Where that is exact, rows are asked the same; where it is
not, the literals are placed again, among the values and not among the keys that an index has.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from alcid.errors import LiteralError
from alcid.predicate.column import plain
from alcid.predicate.expression import Comparison, In, IsNull, Leaf, Like, Operator
from alcid.predicate.intervals import Interval, merge
from alcid.predicate.literal import INTEGERS, bounds_of, common_digits, place
from alcid.predicate.lower import lower
from alcid.predicate.numbers import Digits, among_fractions, as_double
from alcid.predicate.question import Anything, NotNulls, Nulls, Outside, Question, Within
from alcid.predicate.row_cuts import (
    Cut,
    cut_at,
    cut_day,
    cut_moments,
    cut_padded,
    equal_as_instants,
    equal_days,
)
from alcid.predicate.text import SessionTimestamp, to_double, to_timestamp
from alcid.types import MAX_LENGTH, DataType

__all__ = ["RowType", "row_question"]

_MOMENTS = ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_TICKS = DataType("BIGINT")
_STRING = DataType("VARCHAR", length=MAX_LENGTH)
_WHOLE_DAYS = ("Y", "M", "W", "D")


@dataclass(frozen=True, slots=True)
class RowType:
    """What a column of rows holds."""

    data_type: DataType
    nanos: int
    """The nanoseconds of a tick of TIME and TIMESTAMP."""
    longest: Callable[[], int]
    """The bytes of the longest text; asked only where it matters."""


def row_question(leaf: Leaf, row_type: RowType) -> Question | None:
    """The question that gives the rows for which a leaf is true.

    Args:
        leaf: A leaf of a normalized predicate, but `Between`, which is two comparisons.
        row_type: Of its column. Comparisons with CHAR ask values without the spaces at their end,
            LIKE asks them as they are.

    Returns:
        The question; None for LIKE of a column that is no text.

    Raises:
        LiteralError: A literal has no meaning for the type.
    """
    data_type = row_type.data_type
    question = lower(leaf, leaf.column, data_type)
    match leaf:
        case IsNull():
            return question
        case Like():
            return _like(leaf, question, data_type)
        case Comparison(_, operator, literal):
            if isinstance(question, Anything) or _is_exact(question, data_type):
                return question
            return _compared(operator, _cut_for(operator, literal, row_type), data_type)
        case In(_, literals, negated):
            if _is_exact(question, data_type):
                return question
            equal = _equal([plain(literal) for literal in literals], row_type)
            return (Outside if negated else Within)(_merge(equal, data_type))
    raise TypeError(f"{leaf!r} is no leaf of a normalized predicate")


def _is_exact(question: Question, data_type: DataType) -> bool:
    """Whether keys can be asked for in place of values; a tick is of the column, a key is not."""
    if isinstance(question, Nulls | Anything) or data_type.root in _MOMENTS:
        return False
    return question.exact


def _like(leaf: Like, question: Question, data_type: DataType) -> Question | None:
    if data_type.root != "CHAR":
        return question if data_type.root == "VARCHAR" else None
    # The value is padded to its length, so the pattern may ask for spaces that are not there.
    bare, length = leaf.text.rstrip(" "), len(leaf.text)
    if not leaf.prefix and length < data_type.length:
        return NotNulls() if leaf.negated else Within(())
    stored = lower(replace(leaf, negated=False), leaf.column, _STRING)
    if length > data_type.length or length == len(bare) or not isinstance(stored, Within):
        return lower(leaf, leaf.column, _STRING)
    shorter = ((bare + " " * spaces).encode() for spaces in range(length - len(bare)))
    intervals = [*stored.intervals, *((key, key + b"\0") for key in shorter)]
    return (Outside if leaf.negated else Within)(merge(intervals, data_type))


def _compared(operator: Operator, cut: Cut, data_type: DataType) -> Question:
    match operator:
        case "=" | "<=>":
            return Within(_merge(cut.equal, data_type))
        case "<>":
            return Outside(_merge(cut.equal, data_type))
        case "<":
            return Within(_merge(cut.below, data_type))
        case ">=":
            return Outside(_merge(cut.below, data_type))
        case "<=":
            return Within(_merge(cut.below + cut.equal, data_type))
        case ">":
            return Outside(_merge(cut.below + cut.equal, data_type))


def _merge(intervals: Iterable[Interval], data_type: DataType) -> tuple[Interval, ...]:
    return merge(intervals, _TICKS if data_type.root in _MOMENTS else data_type)


def _equal(literals: list[object], row_type: RowType) -> list[Interval]:
    """The values that equal a literal of a list."""
    data_type = row_type.data_type
    if data_type.root == "DATE" and any(map(_is_zoned, literals)):
        return equal_days(literals)
    digits = common_digits(literals, data_type)
    equal = [_cut(literal, row_type, digits).equal for literal in _alike(literals, data_type)]
    if data_type.root == "TIMESTAMP" and any(map(_is_zoned, literals)) and len(set(equal)) > 1:
        equal = [equal_as_instants(literal, data_type, row_type.nanos) for literal in literals]
    return [interval for intervals in equal for interval in intervals]


def _cut_for(operator: Operator, literal: object, row_type: RowType) -> Cut:
    """The cut for one operator: beside a DECIMAL, integers are rounded only to find equal ones."""
    data_type = row_type.data_type
    if data_type.root not in INTEGERS or not isinstance(literal, Decimal):
        return _cut(literal, row_type)
    if operator in ("=", "<=>", "<>"):
        return _cut(literal, row_type, common_digits([literal], data_type))
    return cut_at(among_fractions(literal, 0, bounds_of(data_type)))


def _cut(literal: object, row_type: RowType, digits: Digits | None = None) -> Cut:
    data_type, literal = row_type.data_type, plain(literal)
    if data_type.root == "CHAR":
        return cut_padded(str(literal), row_type.longest())
    if data_type.root in _MOMENTS:
        return cut_moments(literal, data_type, row_type.nanos)
    if data_type.root == "DATE" and _is_zoned(literal):
        return cut_day(literal)
    # A double that equals many numbers leaves nothing open: Spark takes every one as equal.
    return cut_at(place(literal, "", data_type, digits=digits))


def _alike(literals: list[object], data_type: DataType) -> list[object]:
    """The literals of a list brought to one type, as Spark does first."""
    if data_type.root == "DATE":
        return _alike_dates(literals)
    if data_type.root != "DECIMAL" and data_type.root not in INTEGERS:
        return literals
    if not _are_doubles(literals, data_type):
        return literals
    # A number beyond all doubles stays what it is.
    return [literal if (near := _double(literal)) is None else near for literal in literals]


def _are_doubles(literals: list[object], data_type: DataType) -> bool:
    """Whether the common type of a list, and of its column, is DOUBLE.

    Spark finds it from left to right: text beside a BIGINT is one, but beside a DECIMAL a DOUBLE.
    """
    decimal = data_type.root == "DECIMAL"
    for literal in literals:
        if isinstance(literal, float) or (decimal and isinstance(literal, str)):
            return True
        if isinstance(literal, int):  # as SQL text it would be a DECIMAL
            decimal |= not -(1 << 63) <= literal < 1 << 63
        decimal |= isinstance(literal, Decimal)
    return False


def _double(literal: object) -> float | None:
    if isinstance(literal, str):
        return to_double(literal)
    return as_double(literal)  # type: ignore[arg-type]


def _alike_dates(literals: list[object]) -> list[object]:
    """Beside a wall clock, text is one: its time counts."""
    if not any(map(_is_wall_clock, literals)):
        return literals
    return [_wall_clock(literal) if isinstance(literal, str) else literal for literal in literals]


def _is_zoned(literal: object) -> bool:
    if isinstance(literal, datetime.datetime):
        return literal.tzinfo is not None
    return isinstance(literal, SessionTimestamp)


def _is_wall_clock(literal: object) -> bool:
    if isinstance(literal, np.datetime64):
        return np.datetime_data(literal.dtype)[0] not in _WHOLE_DAYS
    return isinstance(literal, datetime.datetime)


def _wall_clock(text: str) -> np.datetime64:
    clock = to_timestamp(text)
    if clock is None:
        raise LiteralError(f"a list with timestamps does not take the text {text!r}")
    return np.datetime64(clock.nanos // 1000, "us")
