"""Probes: the rows that a leaf of a predicate looks for in an index, as intervals of keys.

| probe                       | rows                                                    |
|-----------------------------|---------------------------------------------------------|
| `NullRows()`                | the null rows                                           |
| `NonNullRows()`             | the others                                              |
| `InIntervals(intervals)`    | rows whose key lies in one of them; no interval: no row |
| `NotInIntervals(intervals)` | non-null rows whose key lies in none of them            |
| `AnyRow()`                  | any row: the index is not probed                        |

A probe is `exact` when each of its rows matches the predicate; else the rows have to be compared
again, because keys, or the way Spark compares, cannot tell some of them apart. Intervals are
half-open, `begin <= key < end`, where None is no bound; they are sorted, do not overlap, are not
empty, and lie within the range of the column's keys.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import TypeAlias

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
from alcid.expressions.literal_times import KeyRange
from alcid.expressions.literals import (
    bounds_of,
    common_digits,
    key_range,
    padded_keys,
    padded_range,
)
from alcid.formats.file_index.keys import Key, key_type
from alcid.formats.file_index.reader import ANY, IndexReader, Selection, no_row
from alcid.types import INTEGER_TYPES, DataType

Interval: TypeAlias = tuple[Key | None, Key | None]
EVERY_KEY: tuple[Interval, ...] = ((None, None),)
_FEW = 16


def points(interval: Interval, limit: int = _FEW) -> list[Key] | None:
    """The keys of an interval when they are few and can be listed, else None.

    >>> points((3, 5)), points((b"a", b"a" + bytes(1))), points((3, None))
    ([3, 4], [b'a'], None)
    """
    match interval:
        case (int(begin), int(end)) if end - begin <= limit:
            return list(range(begin, end))
        case (bytes(begin), bytes(end)) if end == begin + b"\0":
            return [begin]
    return None


def merge(intervals: Iterable[Interval], data_type: DataType) -> tuple[Interval, ...]:
    """The same keys in intervals that are sorted, apart from each other and not empty.

    A bound at the edge of the type's keys becomes None, except where the keys are few: those stay
    listable by `points`.

    >>> from alcid.types import DataType
    >>> merge([(5, 9), (9, None), (1, 2)], DataType("TINYINT"))
    ((1, 2), (5, None))
    >>> merge([(120, None)], DataType("TINYINT"))
    ((120, 128),)
    """
    if key_type(data_type).is_bytes:
        return _merge_bytes(intervals)
    least, greatest = bounds_of(data_type)
    edges = least, greatest + 1
    closed = [(_clip(begin, least, edges), _clip(end, edges[1], edges)) for begin, end in intervals]
    joined: list[list[int]] = []
    for low, high in sorted(pair for pair in closed if pair[0] < pair[1]):
        if joined and low <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], high)
        else:
            joined.append([low, high])
    if joined == [list(edges)]:
        return EVERY_KEY
    return tuple(_open(low, high, edges) for low, high in joined)


def intersect(some: tuple[Interval, ...], others: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """The keys that both have, of intervals that are sorted and apart from each other.

    >>> intersect(((5, None),), ((None, 7), (9, 12)))
    ((5, 7), (9, 12))
    """
    common: list[Interval] = []
    one = other = 0
    while one < len(some) and other < len(others):
        (begin, end), (start, stop) = some[one], others[other]
        low = max((key for key in (begin, start) if key is not None), default=None)
        high = min((key for key in (end, stop) if key is not None), default=None)
        if low is None or high is None or low < high:  # type: ignore[operator]
            common.append((low, high))
        if stop is None or (end is not None and end <= stop):  # type: ignore[operator]
            one += 1
        else:
            other += 1
    return tuple(common)


def _clip(bound: Key | None, missing: int, edges: tuple[int, int]) -> int:
    return min(max(bound, edges[0]), edges[1]) if isinstance(bound, int) else missing


def _open(low: int, high: int, edges: tuple[int, int]) -> Interval:
    if high - low <= _FEW:
        return low, high
    return None if low == edges[0] else low, None if high == edges[1] else high


def _merge_bytes(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    # The least bytes are b"", so a missing begin is that; a missing end sorts behind all others.
    closed = sorted(
        (
            (begin if isinstance(begin, bytes) else b"", not isinstance(end, bytes), end)
            for begin, end in intervals
            if not isinstance(end, bytes) or (begin or b"") < end  # type: ignore[operator]
        ),
        key=lambda entry: (entry[0], entry[1]),
    )
    # Neighbours are not joined, as integers are: the point b"a" ends where b"a\0" begins.
    joined: list[tuple[bytes, bytes | None]] = []
    for begin, _, bound in closed:
        end = bound if isinstance(bound, bytes) else None
        if not joined or (joined[-1][1] is not None and begin >= joined[-1][1]):
            joined.append((begin, end))
        elif joined[-1][1] is not None and (end is None or end > joined[-1][1]):
            joined[-1] = (joined[-1][0], end)
    return tuple((begin or (b"" if end == b"\0" else None), end) for begin, end in joined)


@dataclass(frozen=True, slots=True)
class NullRows:
    """The null rows."""


@dataclass(frozen=True, slots=True)
class NonNullRows:
    """The rows that are not null."""

    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class InIntervals:
    """The rows whose key lies in one of the intervals."""

    intervals: tuple[Interval, ...]
    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class NotInIntervals:
    """The rows that are not null and whose key lies in none of the intervals."""

    intervals: tuple[Interval, ...]
    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class AnyRow:
    """Any row."""


Probe: TypeAlias = NullRows | NonNullRows | InIntervals | NotInIntervals | AnyRow


_NO_ROW = InIntervals(())
_LEAST_LONG, _GREATEST_LONG = -(1 << 63), (1 << 63) - 1


def probe_for(leaf: Predicate, column: str, data_type: DataType) -> Probe:
    """The probe of a leaf for the index of its column.

    Args:
        leaf: A leaf of a normalized predicate.
        column: The name of the column, for the message of an error.
        data_type: The type of the column.

    Returns:
        The rows that may match; never fewer than those that do.

    Raises:
        LiteralError: A literal has no meaning for the type.

    >>> from alcid.expressions import col
    >>> from alcid.types import DataType
    >>> probe_for(col("a") > 5.5, "a", DataType("INT"))
    InIntervals(intervals=((6, None),))
    >>> probe_for(col("a").isin([3, 4, 9]), "a", DataType("INT"))
    InIntervals(intervals=((3, 5), (9, 10)))
    >>> probe_for(col("a") < 1000, "a", DataType("TINYINT"))
    NonNullRows()
    """
    match leaf:
        case IsNull(_, negated):
            return NonNullRows() if negated else NullRows()
        case Constant(value):
            return AnyRow() if value else _NO_ROW
        case Comparison(_, operator, literal):
            return _probe_comparison(operator, literal, column, data_type)
        case Between(_, low, high):
            return _probe_between(low, high, column, data_type)
        case In():
            return _probe_in(leaf, column, data_type)
        case Like():
            return _probe_like(leaf, data_type)
    return AnyRow()


def _probe_comparison(
    operator: Operator, literal: object, column: str, data_type: DataType
) -> Probe:
    at = key_range(literal, column, data_type)
    exact = at.exact
    if _ignores_nulls(operator, literal, data_type):
        return AnyRow()
    match operator:
        case "=" | "<=>":
            return _within_probe(_equal([literal], [at], data_type), data_type, exact)
        case "<>":
            return _outside_probe([(at.begin, at.end)] if exact else [], data_type, exact)
        case "<":
            return _within_probe([(None, at.begin if exact else at.end)], data_type, exact)
        case "<=":
            return _within_probe([(None, at.end)], data_type, exact)
        case ">":
            return _within_probe([(at.end if exact else at.begin, None)], data_type, exact)
        case ">=":
            return _within_probe([(at.begin, None)], data_type, exact)


def _ignores_nulls(operator: Operator, literal: object, data_type: DataType) -> bool:
    """True for `bigint < 9223372036854775808` and its like, which Spark takes for TRUE.

    It finds out without a look at the row, so that null rows match too.
    """
    if data_type.root not in INTEGER_TYPES or not isinstance(literal, int | Decimal):
        return False
    if operator in ("<", "<="):
        return literal > _GREATEST_LONG
    return operator in (">", ">=") and literal < _LEAST_LONG


def _probe_between(low: object, high: object, column: str, data_type: DataType) -> Probe:
    least, most = key_range(low, column, data_type), key_range(high, column, data_type)
    if _ignores_nulls(">=", low, data_type) and _ignores_nulls("<=", high, data_type):
        return AnyRow()
    return _within_probe([(least.begin, most.end)], data_type, least.exact and most.exact)


def _probe_in(leaf: In, column: str, data_type: DataType) -> Probe:
    literals = [plain(literal) for literal in leaf.literals]
    mixed = len({literal_kind(literal) for literal in literals}) > 1
    digits = common_digits(literals, data_type)
    key_ranges = [
        key_range(literal, column, data_type, mixed=mixed, digits=digits) for literal in literals
    ]
    exact = all(at.exact for at in key_ranges)
    if leaf.negated:
        return _outside_probe(
            [(at.begin, at.end) for at in key_ranges if at.exact], data_type, exact
        )
    return _within_probe(_equal(literals, key_ranges, data_type), data_type, exact)


def literal_kind(literal: object) -> object:
    """Literals of one kind have one type in Spark, or types without loss between them."""
    if isinstance(literal, datetime.datetime) and literal.tzinfo is not None:
        return SessionTimestamp  # an instant, too
    if isinstance(literal, datetime.datetime | np.datetime64):
        return datetime.datetime
    return int if isinstance(literal, Decimal) else type(literal)


def _equal(
    literals: list[object], key_ranges: list[KeyRange], data_type: DataType
) -> Iterator[Interval]:
    """The intervals of the keys that equal a literal."""
    for literal, at in zip(literals, key_ranges, strict=True):
        keys = None
        if data_type.root == "CHAR":
            keys = padded_keys(str(literal).encode(), data_type.length)
        if keys is None:
            yield at.begin, at.end
        else:
            yield from ((key, key + b"\0") for key in keys)


def _probe_like(leaf: Like, data_type: DataType) -> Probe:
    if data_type.root not in ("CHAR", "VARCHAR"):
        return AnyRow()
    try:
        text = leaf.text.encode()
    except UnicodeEncodeError:
        raise LiteralError("LIKE with a lone surrogate") from None
    end = _successor(text) if leaf.prefix else text + b"\0"
    if data_type.root == "VARCHAR":
        return (_outside_probe if leaf.negated else _within_probe)([(text, end)], data_type, True)
    if leaf.negated:
        return NonNullRows(exact=False)
    # The pattern may ask for spaces that are padding, and so not in the key.
    padded = end if leaf.prefix else padded_range(text, data_type.length).end
    return _within_probe([(text.rstrip(b" "), padded)], data_type, False)


def _successor(prefix: bytes) -> bytes | None:
    """The least bytes above all that start with `prefix`; UTF-8 has no byte 0xFF to carry over."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def _within_probe(intervals: Iterable[Interval], data_type: DataType, exact: bool) -> Probe:
    merged = merge(intervals, data_type)
    return NonNullRows(exact) if merged == EVERY_KEY else InIntervals(merged, exact)


def _outside_probe(intervals: Iterable[Interval], data_type: DataType, exact: bool) -> Probe:
    merged = merge(intervals, data_type)
    if not merged:
        return NonNullRows(exact)
    return _NO_ROW if merged == EVERY_KEY else NotInIntervals(merged, exact)


_MOST_POINTS = 1024


def probe_index(reader: IndexReader, probe: Probe) -> Selection:
    """The rows that an index finds for a probe."""
    match probe:
        case NullRows():
            return _exact(reader.is_null(), True)
        case NonNullRows(exact):
            return _exact(reader.is_not_null(), exact)
        case InIntervals(intervals, exact):
            return _exact(_within(reader, intervals), exact)
        case NotInIntervals(intervals, exact):
            return _exact(_outside(reader, intervals), exact)
        case AnyRow():
            return ANY


def _exact(answer: Selection, exact: bool) -> Selection:
    """The answer, exact if the probe is: readers give exactly the rows with the keys asked for."""
    return ANY if answer.rows is None else Selection(answer.rows, exact)


def _outside(reader: IndexReader, intervals: Sequence[Interval]) -> Selection:
    """Rows in none of the intervals."""
    listed = [points(interval, _MOST_POINTS) for interval in intervals]
    if None not in listed:
        return reader.is_not_in([key for keys in listed for key in keys or ()])
    return _within(reader, _gaps(intervals))


def _gaps(intervals: Sequence[Interval]) -> list[Interval]:
    """What lies between sorted intervals, before the first and behind the last."""
    gaps: list[Interval] = []
    if intervals[0][0] is not None:
        gaps.append((None, intervals[0][0]))
    gaps.extend((left[1], right[0]) for left, right in pairwise(intervals))
    if intervals[-1][1] is not None:
        gaps.append((intervals[-1][1], None))
    return gaps


def _within(reader: IndexReader, intervals: Iterable[Interval]) -> Selection:
    """Rows in any of the intervals; single keys are probed together."""
    selection, keys = no_row(), list[Key]()
    for interval in intervals:
        listed = points(interval, _MOST_POINTS)
        if listed is None or len(listed) > 1:
            answer = reader.between(*interval)
            if answer.rows is not None:
                selection |= answer
                continue
            if listed is None:
                return ANY
        keys.extend(listed)
    return selection | reader.is_in(keys) if keys else selection
