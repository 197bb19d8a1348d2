"""A leaf brought to keys: from a comparison to the question that an index can answer."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from decimal import Decimal

import numpy as np

from alcid.errors import LiteralError
from alcid.expressions.casts_from_text import SessionTimestamp
from alcid.expressions.expression import (
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Operator,
    Predicate,
    plain,
)
from alcid.expressions.literal_keys import Place
from alcid.expressions.literals import INTEGERS, common_digits, padded_keys, padded_place, place
from alcid.expressions.normalize import normalize
from alcid.expressions.probes import (
    EVERY_KEY,
    Anything,
    Interval,
    NotNulls,
    Nulls,
    Outside,
    Question,
    Within,
    merge,
)
from alcid.types import DataType

__all__ = ["lower"]


_NO_ROW = Within(())
_LEAST_LONG, _GREATEST_LONG = -(1 << 63), (1 << 63) - 1


def lower(leaf: Predicate, column: str, data_type: DataType) -> Question:
    """The question that a leaf asks the index of its column.

    Args:
        leaf: A node without children.
        column: The name of the column, for the message of an error.
        data_type: The type of the column.

    Returns:
        The rows that may match; never fewer than those that do.

    Raises:
        LiteralError: A literal has no meaning for the type.

    >>> from alcid.expressions import col
    >>> from alcid.types import DataType
    >>> lower(col("a") > 5.5, "a", DataType("INT"))
    Within(intervals=((6, None),))
    >>> lower(col("a").isin([3, 4, 9]), "a", DataType("INT"))
    Within(intervals=((3, 5), (9, 10)))
    >>> lower(col("a") < 1000, "a", DataType("TINYINT"))
    NotNulls()
    """
    leaf = normalize(leaf)  # which knows what NULL and an empty list mean
    match leaf:
        case IsNull(_, negated):
            return NotNulls() if negated else Nulls()
        case Constant(value):
            return Anything() if value else _NO_ROW
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
    at = place(literal, column, data_type)
    if _ignores_nulls(operator, literal, data_type):
        return Anything()
    match operator:
        case "=" | "<=>":
            return _within(_equal([literal], [at], data_type), data_type, at.certain)
        case "<>":
            return _outside([(at.begin, at.end)] if at.certain else [], data_type, at.certain)
        case "<":
            return _within([(None, at.begin if at.certain else at.end)], data_type, at.certain)
        case "<=":
            return _within([(None, at.end)], data_type, at.certain)
        case ">":
            return _within([(at.end if at.certain else at.begin, None)], data_type, at.certain)
        case ">=":
            return _within([(at.begin, None)], data_type, at.certain)


def _ignores_nulls(operator: Operator, literal: object, data_type: DataType) -> bool:
    """True for `bigint < 9223372036854775808` and its like, which Spark takes for TRUE.

    It finds out without a look at the row, so that null rows match too.
    """
    if data_type.root not in INTEGERS or not isinstance(literal, int | Decimal):
        return False
    if operator in ("<", "<="):
        return literal > _GREATEST_LONG
    return operator in (">", ">=") and literal < _LEAST_LONG


def _lower_between(low: object, high: object, column: str, data_type: DataType) -> Question:
    least, most = place(low, column, data_type), place(high, column, data_type)
    if _ignores_nulls(">=", low, data_type) and _ignores_nulls("<=", high, data_type):
        return Anything()
    return _within([(least.begin, most.end)], data_type, least.certain and most.certain)


def _lower_in(leaf: In, column: str, data_type: DataType) -> Question:
    literals = [plain(literal) for literal in leaf.literals]
    mixed = len({_kind(literal) for literal in literals}) > 1
    digits = common_digits(literals, data_type)
    places = [place(literal, column, data_type, mixed=mixed, digits=digits) for literal in literals]
    exact = all(at.certain for at in places)
    if leaf.negated:
        return _outside([(at.begin, at.end) for at in places if at.certain], data_type, exact)
    return _within(_equal(literals, places, data_type), data_type, exact)


def _kind(literal: object) -> object:
    """Literals of one kind have one type in Spark, or types without loss between them."""
    if isinstance(literal, datetime.datetime) and literal.tzinfo is not None:
        return SessionTimestamp  # an instant, too
    if isinstance(literal, datetime.datetime | np.datetime64):
        return datetime.datetime
    return int if isinstance(literal, Decimal) else type(literal)


def _equal(literals: list[object], places: list[Place], data_type: DataType) -> Iterator[Interval]:
    """The intervals of the keys that equal a literal."""
    for literal, at in zip(literals, places, strict=True):
        keys = None
        if data_type.root == "CHAR":
            keys = padded_keys(str(literal).encode(), data_type.length)
        if keys is None:
            yield at.begin, at.end
        else:
            yield from ((key, key + b"\0") for key in keys)


def _lower_like(leaf: Like, data_type: DataType) -> Question:
    if data_type.root not in ("CHAR", "VARCHAR"):
        return Anything()
    try:
        text = leaf.text.encode()
    except UnicodeEncodeError:
        raise LiteralError("LIKE with a lone surrogate") from None
    end = _successor(text) if leaf.prefix else text + b"\0"
    if data_type.root == "VARCHAR":
        return (_outside if leaf.negated else _within)([(text, end)], data_type, True)
    if leaf.negated:
        return NotNulls(exact=False)
    # The pattern may ask for spaces that are padding, and so not in the key.
    padded = end if leaf.prefix else padded_place(text, data_type.length).end
    return _within([(text.rstrip(b" "), padded)], data_type, False)


def _successor(prefix: bytes) -> bytes | None:
    """The least bytes above all that start with `prefix`; UTF-8 has no byte 0xFF to carry over."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def _within(intervals: Iterable[Interval], data_type: DataType, exact: bool) -> Question:
    merged = merge(intervals, data_type)
    return NotNulls(exact) if merged == EVERY_KEY else Within(merged, exact)


def _outside(intervals: Iterable[Interval], data_type: DataType, exact: bool) -> Question:
    merged = merge(intervals, data_type)
    if not merged:
        return NotNulls(exact)
    return _NO_ROW if merged == EVERY_KEY else Outside(merged, exact)
