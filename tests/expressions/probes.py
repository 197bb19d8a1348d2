"""Whether a probe contains a key."""

from __future__ import annotations

from alcid.expressions.probes import (
    InIntervals,
    Interval,
    NonNullRows,
    NotInIntervals,
    NullRows,
    Probe,
)
from alcid.formats.file_index.keys import Key

__all__ = ["holds", "inside"]


def holds(probe: Probe, key: Key | None) -> bool:
    """Whether rows with this key (None: null) are among those of a probe."""
    match probe:
        case NullRows():
            return key is None
        case NonNullRows():
            return key is not None
        case InIntervals(intervals):
            return key is not None and any(inside(key, interval) for interval in intervals)
        case NotInIntervals(intervals):
            return key is not None and not any(inside(key, interval) for interval in intervals)
    return True


def inside(key: Key, interval: Interval) -> bool:
    """Whether a key is in an interval."""
    begin, end = interval
    below = begin is not None and key < begin  # type: ignore[operator]
    return not below and (end is None or key < end)  # type: ignore[operator]
