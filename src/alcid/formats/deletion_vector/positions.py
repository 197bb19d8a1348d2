"""Sparse sets of row positions: a Roaring bitmap for each key that has any.

    key      position >> 32, 0 for every file of fewer than 2^32 rows
    bitmap   the lower 32 bits of the positions with that key

A dictionary and not an array: a single position far up costs no memory for the keys below it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from alcid._arrays import BoolArray, Int64Array, IntArray, UInt32Array
from alcid.errors import LimitError, UnsupportedError

Positions: TypeAlias = Iterable[int] | IntArray | pa.Array | pa.ChunkedArray | AbstractBitMap
Bitmaps: TypeAlias = dict[int, BitMap]
"""Bitmaps by key, ascending, none of them empty."""

LARGEST_KEY = (1 << 31) - 2
LARGEST_POSITION = LARGEST_KEY << 32 | 1 << 31  # the reference caps the last key's bitmap here
_LARGEST_LOW = (1 << 32) - 1
_LEAST_ENTRIES = 1 << 18
_ENTRIES_PER_MEMBER = 32
_MOST_MEMBERS_PER_VALUE = 4  # of more, members are first cut down to those asked for
_BLOCK = 1 << 14
_CONTAINER = 1 << 16


def group(positions: Positions) -> Bitmaps:
    """The bitmaps of positions in any order.

    >>> group([70000, 5, 2**32 + 7])
    {0: BitMap([5, 70000]), 1: BitMap([7])}
    """
    if isinstance(positions, AbstractBitMap):
        return {0: BitMap(positions)} if positions else {}
    if isinstance(positions, range) and positions and positions.step == 1:  # all rows of a file
        _check_limits(positions[0], positions[-1])
        return _runs(positions)
    values = _values(positions)
    if not len(values):
        return {}
    first, last = int(values.min()), int(values.max())
    _check_limits(first, last)
    if last <= _LARGEST_LOW:
        return {0: _bitmap(_ascending(values.astype(np.uint32)))}
    values = _ascending(values.astype(np.int64))
    keys = values >> 32
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    lows = np.split(values.astype(np.uint32), starts[1:])
    return {int(keys[start]): _bitmap(low) for start, low in zip(starts, lows, strict=True)}


def largest(bitmaps: Bitmaps) -> int | None:
    """The last position, if there is one."""
    if not bitmaps:
        return None
    key = next(reversed(bitmaps))
    return int(key << 32 | bitmaps[key].max())


def between(bitmaps: Bitmaps, first: int, last: int) -> Int64Array:
    """The positions from `first` to `last`, ascending.

    >>> between(group([5, 6, 2**32, 2**32 + 7]), 6, 2**32)
    array([         6, 4294967296])
    """
    chosen = []
    for key, bitmap in bitmaps.items():
        low, high = max(first - (key << 32), 0), min(last - (key << 32), _LARGEST_LOW)
        if low > high:
            continue
        whole = low <= bitmap.min() and bitmap.max() <= high
        chosen.append((key, bitmap if whole else bitmap & BitMap(range(low, high + 1))))
    positions = np.empty(sum(len(bitmap) for _, bitmap in chosen), np.int64)
    end = 0
    for key, bitmap in chosen:
        start, end = end, end + len(bitmap)
        positions[start:end] = bitmap.to_array()
        positions[start:end] += key << 32
    return positions


def contains(bitmaps: Bitmaps, positions: Positions) -> BoolArray:
    """Whether each of the positions is in the set; one beyond every limit of an array is not.

    >>> contains(group([5, 70000]), np.array([-1, 5, 6]))
    array([False,  True, False])
    """
    values = _values(positions, limited=False)
    if not len(values):
        return np.zeros(0, bool)
    first, last = int(values.min()), int(values.max())
    if _count(bitmaps, first, last) > _MOST_MEMBERS_PER_VALUE * len(values):
        bitmaps = _common(bitmaps, values)
    members = between(bitmaps, first, last)
    if not len(members):
        return np.zeros(len(values), bool)
    members -= (origin := members[0])
    span = int(members[-1]) + 1
    # A table of which members there are, or, if they lie far apart, of where there are any.
    entries = max(_LEAST_ENTRIES, _ENTRIES_PER_MEMBER * len(members))
    shift = (span // entries).bit_length()
    table = np.zeros((span >> shift) + 2, bool)
    table[members >> shift] = True
    contained = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK].astype(np.uint64)
        block -= np.uint64(origin)  # what lies before the first wraps to beyond the last
        distances = np.minimum(block, np.uint64(span)).view(np.int64)
        hits = contained[start : start + _BLOCK]
        np.take(table, distances >> shift, out=hits)
        if shift:
            maybe = np.flatnonzero(hits)
            asked = distances[maybe]
            hits[maybe] = members[np.searchsorted(members[:-1], asked)] == asked
    return contained


def _count(bitmaps: Bitmaps, first: int, last: int) -> int:
    """How many positions there are from `first` to `last`."""
    count = 0
    for key, bitmap in bitmaps.items():
        low, high = max(first - (key << 32), 0), min(last - (key << 32), _LARGEST_LOW)
        count += bitmap.range_cardinality(low, high + 1) if low <= high else 0
    return count


def _common(bitmaps: Bitmaps, values: IntArray) -> Bitmaps:
    """The positions that are among the values: few values need not look at all of a long run."""
    asked = group(values[(values >= 0) & (values <= LARGEST_POSITION)])
    common = {key: bitmaps[key] & bitmap for key, bitmap in asked.items() if key in bitmaps}
    return {key: bitmap for key, bitmap in common.items() if bitmap}


def _runs(positions: range) -> Bitmaps:
    """The bitmaps of positions without a gap, which take no memory for each of them."""
    bitmaps = {}
    for key in range(positions[0] >> 32, (positions[-1] >> 32) + 1):
        begin = max(positions.start - (key << 32), 0)
        end = min(positions.stop - (key << 32), _LARGEST_LOW + 1)
        # Where a run is no shorter than an array, as three rows at an end are not, the bitmap
        # would keep the run: the ends go in as rows, and whole containers as runs.
        first = min(-(-begin // _CONTAINER) * _CONTAINER, end)
        last = max(end // _CONTAINER * _CONTAINER, first)
        ends = array("I", (*range(begin, first), *range(last, end)))
        bitmaps[key] = BitMap(range(first, last)) | BitMap(ends)
    return bitmaps


def _values(positions: Any, *, limited: bool = True) -> IntArray:
    """Positions as a NumPy array of integers, whatever they came in.

    Listed ones beyond the limits are refused, or become -1, which is never a member.
    """
    is_array = isinstance(positions, pa.Array | pa.ChunkedArray) or (
        isinstance(positions, np.ndarray) and positions.dtype != object
    )
    if is_array:
        return _integers(positions)
    listed = _listed(positions)
    if limited and listed:
        _check_limits(min(listed), max(listed))  # in Python's integers, which have no end
    inside = (value if 0 <= value <= LARGEST_POSITION else -1 for value in listed)
    return np.fromiter(inside, np.int64, len(listed))


def _integers(values: Any) -> IntArray:
    """A NumPy array of whatever integers an array holds."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        if len(values) and not pa.types.is_integer(values.type):
            raise UnsupportedError(f"positions must be integers, found Arrow's {values.type}")
        if values.null_count:
            raise UnsupportedError(f"positions must not be null, found {values.null_count} nulls")
        values = values.to_numpy(zero_copy_only=False)
    integers: IntArray = values
    if integers.ndim != 1:
        raise UnsupportedError(f"positions must have one dimension, found {integers.ndim}")
    if len(integers) and integers.dtype.kind not in "iu":
        raise UnsupportedError(f"positions must be integers, found NumPy's {integers.dtype}")
    return integers


def _listed(values: Any) -> list[int]:
    """The integers that an iterable gives."""
    if isinstance(values, bytes | bytearray | memoryview):
        raise UnsupportedError("positions must be integers, found bytes: from_bytes reads those")
    if not isinstance(values, Iterable):
        raise UnsupportedError(f"positions must be an iterable, found {type(values).__name__}")
    listed = list(values)
    for kind in set(map(type, listed)):
        if not issubclass(kind, int | np.integer) or kind is bool:
            raise UnsupportedError(f"positions must be integers, found {kind.__name__}")
    return listed


def _check_limits(first: int, last: int) -> None:
    if first < 0 or last > LARGEST_POSITION:
        beyond = first if first < 0 else last
        raise LimitError(f"position {beyond} is not one of 0 to {LARGEST_POSITION}")


def _ascending(values: IntArray) -> IntArray:
    return values if bool((values[:-1] <= values[1:]).all()) else np.sort(values)


def _bitmap(values: UInt32Array) -> BitMap:
    """The bitmap of ascending values; from any other kind of array it would take ten times."""
    return BitMap(array("I", values.tobytes()))
