"""Intervals of keys, half-open: `begin <= key < end`, and None is no bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from alcid.formats.file_index.keys import Key, key_type
from alcid.predicate.literal import bounds_of
from alcid.types import DataType

__all__ = ["EVERY_KEY", "Interval", "intersect", "merge", "points"]

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
