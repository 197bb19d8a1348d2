"""The questions that an index can answer.

| question             | rows                                                    |
|----------------------|---------------------------------------------------------|
| `Nulls()`            | the null rows                                           |
| `NotNulls()`         | the others                                              |
| `Within(intervals)`  | rows whose key lies in one of them; no interval: no row |
| `Outside(intervals)` | non-null rows whose key lies in none of them            |
| `Anything()`         | any row: the index is not asked                         |

A question is `exact` when each of its rows matches the predicate it was made of; else the rows have
to be looked at, because keys, or the way Spark compares, cannot tell some of them apart.
Intervals are sorted, do not overlap, are not empty, and lie within the range of the column's keys.

Intervals of keys, half-open: `begin <= key < end`, and None is no bound.

A question put to an index, whatever its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from alcid.expressions.literals import bounds_of
from alcid.formats.file_index.keys import Key, key_type
from alcid.formats.file_index.reader import ANY, IndexReader, Selection, no_row
from alcid.types import DataType

__all__ = [
    "EVERY_KEY",
    "Anything",
    "Interval",
    "NotNulls",
    "Nulls",
    "Outside",
    "Question",
    "Within",
    "ask",
    "intersect",
    "merge",
    "points",
]

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
    found: list[Interval] = []
    one = other = 0
    while one < len(some) and other < len(others):
        (begin, end), (start, stop) = some[one], others[other]
        low = max((key for key in (begin, start) if key is not None), default=None)
        high = min((key for key in (end, stop) if key is not None), default=None)
        if low is None or high is None or low < high:  # type: ignore[operator]
            found.append((low, high))
        if stop is None or (end is not None and end <= stop):  # type: ignore[operator]
            one += 1
        else:
            other += 1
    return tuple(found)


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
class Nulls:
    """The null rows."""


@dataclass(frozen=True, slots=True)
class NotNulls:
    """The rows that are not null."""

    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class Within:
    """The rows whose key lies in one of the intervals."""

    intervals: tuple[Interval, ...]
    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class Outside:
    """The rows that are not null and whose key lies in none of the intervals."""

    intervals: tuple[Interval, ...]
    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class Anything:
    """Any row."""


Question: TypeAlias = Nulls | NotNulls | Within | Outside | Anything


_MOST_POINTS = 1024


def ask(reader: IndexReader, question: Question) -> Selection:
    """Put a question to an index."""
    match question:
        case Nulls():
            return _exact(reader.is_null(), True)
        case NotNulls(exact):
            return _exact(reader.is_not_null(), exact)
        case Within(intervals, exact):
            return _exact(_within(reader, intervals), exact)
        case Outside(intervals, exact):
            return _exact(_outside(reader, intervals), exact)
        case Anything():
            return ANY


def _exact(answer: Selection, exact: bool) -> Selection:
    """The rows of an index hold exactly the keys asked for, so that the question decides."""
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
    """Rows in any of the intervals; single keys are asked for together."""
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
