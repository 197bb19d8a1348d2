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
from alcid.formats.file_index.keys import float_order, order_float
from alcid.predicate.intervals import Interval, points

__all__ = ["Mask", "Wide", "numbers_within", "to_mask"]

Mask = npt.NDArray[np.bool_]

_FEW = 6
_MOST_SPAN = 1 << 20
_SLOTS_LOG2 = 16
# Odd, with bits all over: the upper bits of a product tell numbers apart.
_MULTIPLIER = {4: np.uint32(0x9E3779B1), 8: np.uint64(0x9E3779B97F4A7C15)}


class Wide:
    """Integers of 128 bits, as the two halves of each."""

    def __init__(self, words: npt.NDArray[np.int64]) -> None:
        """Take words of 64 bits, the lower half of each number first."""
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


def numbers_within(values: npt.NDArray[Any] | Wide, intervals: Sequence[Interval]) -> Mask:
    """True where a value lies in one of the intervals, which are sorted and apart.

    >>> numbers_within(np.array([1, 5, 9], np.int8), [(None, 2), (9, 1000)]).tolist()
    [True, False, True]
    """
    if isinstance(values, Wide):
        return _any(values, [_wide(values, *_bounds(interval)) for interval in intervals])
    few = len(intervals) <= _FEW
    if values.dtype.kind == "f":
        if few:
            return _any(values, [_floats(values, *_bounds(interval)) for interval in intervals])
        return _many_floats(values, intervals)
    cut = [_cut(interval, values.dtype) for interval in intervals]
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


def _wide(values: Wide, begin: int | None, end: int | None) -> Mask:
    mask = np.ones(len(values), bool) if begin is None else values.at_least(begin)
    if end is not None:
        mask &= ~values.at_least(end)
    return mask


def _cut(interval: Interval, dtype: np.dtype[Any]) -> tuple[int | None, int | None] | None:
    """The interval within what the type holds, with None for its edges; None if nothing is left."""
    least, greatest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
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
        return _is_in(values, np.array(keys, values.dtype))
    edges = [bound for interval in intervals for bound in interval if bound is not None]
    passed = np.searchsorted(np.array(edges, values.dtype), values, "right")
    inside = 0 if intervals[0][0] is None else 1
    mask: Mask = (passed & 1) == inside
    return mask


def _many_floats(values: npt.NDArray[Any], intervals: Sequence[Interval]) -> Mask:
    width = values.dtype.itemsize
    single, ranges = list[float](), list[Mask]()
    for interval in intervals:
        listed = points(interval)
        if listed is None or math.isnan(float_order(int(listed[0]), width)):
            ranges.append(_floats(values, *_bounds(interval)))
        else:
            single += (float_order(int(rank), width) for rank in listed)
    return _any(values, [_is_in(values, np.array(single, values.dtype)), *ranges])


def _is_in(values: npt.NDArray[Any], keys: npt.NDArray[Any]) -> Mask:
    """True where a value is one of `keys`: no NaN, and both zeros or none."""
    if not len(keys):
        return np.zeros(len(values), bool)
    if values.dtype.kind != "f":
        if values.dtype.itemsize < 4:
            values, keys = values.astype(np.int32), keys.astype(np.int32)
        if int(keys.max()) - int(keys.min()) < _MOST_SPAN:
            return _is_in_table(values, keys)
    # Most rows match none: what has the hash of no key is not looked for.
    taken = np.zeros(1 << _SLOTS_LOG2, bool)
    taken[_slots(keys)] = True
    mask: Mask = taken[_slots(values)]
    rows = np.flatnonzero(mask)
    mask[rows] = to_mask(pc.is_in(pa.array(values[rows]), value_set=pa.array(keys)))
    return mask


def _is_in_table(values: IntArray, keys: IntArray) -> Mask:
    unsigned = f"u{values.dtype.itemsize}"
    least = keys.min().astype(unsigned)
    # Differences wrap around, so that a value below the least key is far above the greatest.
    places = keys.view(unsigned) - least
    beyond = places.max() + 1
    table = np.zeros(int(beyond) + 1, bool)
    table[places] = True
    mask: Mask = table[np.minimum(values.view(unsigned) - least, beyond)]
    return mask


def _slots(values: npt.NDArray[Any]) -> IntArray:
    width = values.dtype.itemsize
    bits = values.view(f"u{width}")
    slots: IntArray = (bits * _MULTIPLIER[width]) >> (8 * width - _SLOTS_LOG2)
    return slots


def to_mask(array: pa.BooleanArray) -> Mask:
    """Arrow's bits, null as false, as NumPy's."""
    filled = array.fill_null(False) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
