"""Which numbers of an array lie in intervals of keys.

Values are compared as they stand, in their own width: bounds are cut to what it holds. The keys of
floats are ranks (`alcid.formats.file_index.keys`); a rank is brought back to its float, and not
every value to its rank. The two zeros stand side by side among ranks and no interval parts them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import IntArray
from alcid.formats.file_index.keys import KeyType, float_order, order_float
from alcid.predicate.intervals import Interval, points
from alcid.predicate.row_lists import Mask, numbers_in, to_mask

__all__ = ["Wide", "numbers_within"]

_FEW = 6


class Wide:
    """Integers of 128 bits, as the two halves of each."""

    def __init__(self, words: npt.NDArray[np.int64]) -> None:
        """Take words of 64 bits, the lower half of each number first."""
        self._words = words
        self.upper = words[1::2]
        self.lower = words.view(np.uint64)[0::2]

    def __len__(self) -> int:
        return len(self.upper)

    def at_least(self, bound: int) -> Mask:
        """True where a number is not below `bound`."""
        upper, lower = bound >> 64, bound & ((1 << 64) - 1)
        if not -(1 << 63) <= upper < 1 << 63:
            return np.full(len(self), upper < 0)
        mask: Mask = self.upper == upper
        mask &= self.lower >= np.uint64(lower)
        mask |= self.upper > upper
        return mask

    def is_in(self, keys: Sequence[int]) -> Mask:
        """True where a number is one of `keys`."""
        listed = pa.array([key.to_bytes(16, "little", signed=True) for key in keys], pa.binary(16))
        values = pa.Array.from_buffers(listed.type, len(self), [None, pa.py_buffer(self._words)])
        return to_mask(pc.is_in(values, value_set=listed))


def numbers_within(values: npt.NDArray[Any] | Wide, intervals: Sequence[Interval]) -> Mask:
    """True where a value lies in one of the intervals, which are sorted and apart.

    >>> numbers_within(np.array([1, 5, 9], np.int8), [(None, 2), (9, 1000)]).tolist()
    [True, False, True]
    """
    few = len(intervals) <= _FEW
    if isinstance(values, Wide):
        return _wide_within(values, intervals)
    if values.dtype.kind == "f":
        if few:
            return _any(values, [_floats(values, *_bounds(interval)) for interval in intervals])
        return _many_floats(values, intervals)
    holds = np.iinfo(values.dtype)
    cut = [_cut(interval, int(holds.min), int(holds.max)) for interval in intervals]
    kept = [pair for pair in cut if pair is not None]
    if few:
        return _any(values, [_integers(values, *pair) for pair in kept])
    return _many_integers(values, kept)


def _any(values: npt.NDArray[Any] | Wide, masks: list[Mask]) -> Mask:
    if not masks:
        return np.zeros(len(values), bool)
    for mask in masks[1:]:
        masks[0] |= mask
    return masks[0]


def _bounds(interval: Interval) -> tuple[int | None, int | None]:
    begin, end = interval
    return begin if isinstance(begin, int) else None, end if isinstance(end, int) else None


def _wide_within(values: Wide, intervals: Sequence[Interval]) -> Mask:
    listed = [points(interval) for interval in intervals]
    keys = [int(key) for keys in listed for key in keys or ()]
    if len(keys) <= _FEW:
        return _any(values, [_wide(values, *_bounds(interval)) for interval in intervals])
    ranges = [pair for pair, few in zip(intervals, listed, strict=True) if few is None]
    masks = [_wide(values, *_bounds(interval)) for interval in ranges]
    return _any(values, [values.is_in(keys), *masks])


def _wide(values: Wide, begin: int | None, end: int | None) -> Mask:
    mask = np.ones(len(values), bool) if begin is None else values.at_least(begin)
    if end is not None:
        mask &= ~values.at_least(end)
    return mask


def _cut(interval: Interval, least: int, greatest: int) -> tuple[int | None, int | None] | None:
    """The interval within what a type holds, with None for its edges; None if nothing is left."""
    begin, end = _bounds(interval)
    if (begin is not None and begin > greatest) or (end is not None and end <= least):
        return None
    return (
        None if begin is None or begin <= least else begin,
        None if end is None or end > greatest else end,
    )


def _integers(values: IntArray, begin: int | None, end: int | None) -> Mask:
    if begin is None:
        return np.ones(len(values), bool) if end is None else np.less(values, end)
    if end is None:
        return np.greater_equal(values, begin)
    if end - begin == 1:
        return np.equal(values, begin)
    mask: Mask = np.greater_equal(values, begin)
    mask &= values < end
    return mask


def _floats(values: npt.NDArray[Any], begin: int | None, end: int | None) -> Mask:
    """The same for floats; a comparison with NaN is false, so that `not below` lets it pass."""
    width = values.dtype.itemsize
    # Ranks from that of NaN on are NaN, so as an end they are "not NaN", or no bound behind it.
    bounded = end is not None and end <= order_float(math.nan, width)
    high = float_order(end, width) if end is not None and bounded else None
    if begin is None:
        mask = np.ones(len(values), bool)
    elif math.isnan(low := float_order(begin, width)):
        mask = np.isnan(values)
    elif end == begin + 1 or (low == 0 and end == 1):
        return np.asarray(values == low)
    else:
        mask = ~(values < low)
    if high is not None:
        mask &= ~np.isnan(values) if math.isnan(high) else values < high
    return mask


def _many_integers(values: IntArray, intervals: Sequence[tuple[int | None, int | None]]) -> Mask:
    listed = [points(interval) for interval in intervals]
    if None not in listed:
        keys = [key for keys in listed for key in keys or ()]
        return numbers_in(values, np.array(keys, values.dtype))
    edges = [bound for interval in intervals for bound in interval if bound is not None]
    passed = np.searchsorted(np.array(edges, values.dtype), values, "right")
    inside = 0 if intervals[0][0] is None else 1
    mask: Mask = (passed & 1) == inside
    return mask


def _many_floats(values: npt.NDArray[Any], intervals: Sequence[Interval]) -> Mask:
    width = values.dtype.itemsize
    infinity = order_float(math.inf, width)
    ranks, ranges = list[int](), list[Mask]()
    for interval in intervals:
        listed = points(interval)
        if listed is None or int(listed[-1]) > infinity:
            ranges.append(_floats(values, *_bounds(interval)))
        else:
            ranks += map(int, listed)
    stored = KeyType(width, floating=True).to_stored(np.array(ranks, f"i{width}"))
    keys = stored.view(f">f{width}").astype(values.dtype)
    return _any(values, [numbers_in(values, keys), *ranges])
