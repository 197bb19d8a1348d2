"""Values of an Arrow column, compared with the intervals of a probe.

A column is read chunk by chunk and not copied where Arrow's buffers can be used as they are. Of a
dictionary only the values are compared, once each.

Values are compared in their own width, and bounds are clipped to what it holds. The keys of floats
are ranks (`alcid.formats.file_index.keys`); a rank is converted back to its float, rather than
every value to its rank. The two zeros have neighbouring ranks, which no interval separates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, IntArray, plain
from alcid.expressions.like import Pattern
from alcid.expressions.probes import (
    AnyRow,
    InIntervals,
    Interval,
    NotInIntervals,
    NullRows,
    Probe,
    points,
)
from alcid.formats.file_index.keys import KeyType, float_order, order_float, order_floats

_MOST_SPAN = 1 << 20
_SLOTS_LOG2 = 16
_BLOCK = 1 << 14
# Odd, with bits all over: the upper bits of a product tell numbers apart.
_MULTIPLIER = {4: np.uint32(0x9E3779B1), 8: np.uint64(0x9E3779B97F4A7C15)}


def numbers_in(values: npt.NDArray[Any], keys: npt.NDArray[Any]) -> BoolArray:
    """True where a value is one of `keys`, which are of the same type.

    Floats are compared by their bits: list both zeros, and ask for NaN in another way.

    >>> numbers_in(np.array([1, 5, 9], np.int8), np.array([9, 1], np.int8)).tolist()
    [True, False, True]
    """
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
    mask = _by_blocks(values, lambda block: taken[_slots(block)])
    rows = np.flatnonzero(mask)
    mask[rows] = to_mask(pc.is_in(pa.array(values[rows]), value_set=pa.array(keys)))
    return mask


def _is_in_table(values: IntArray, keys: IntArray) -> BoolArray:
    signed, unsigned = f"i{values.dtype.itemsize}", f"u{values.dtype.itemsize}"
    least = keys.min().astype(unsigned)
    # Differences wrap around, so that a value below the least key is far above the greatest.
    slots = keys.view(unsigned) - least
    beyond = slots.max() + 1
    table = np.zeros(int(beyond) + 1, bool)
    table[slots] = True

    def find(block: IntArray) -> BoolArray:
        near = np.minimum(block.view(unsigned) - least, beyond)
        is_in: BoolArray = table[near.view(signed)]
        return is_in

    return _by_blocks(values, find)


def _slots(values: npt.NDArray[Any]) -> IntArray:
    width = values.dtype.itemsize
    hashed = values.view(f"u{width}") * _MULTIPLIER[width]
    hashed >>= 8 * width - _SLOTS_LOG2
    slots: IntArray = hashed.view(f"i{width}")  # NumPy would copy what is unsigned to look it up
    return slots


def _by_blocks(
    values: npt.NDArray[Any], find: Callable[[npt.NDArray[Any]], BoolArray]
) -> BoolArray:
    """Blocks stay in the cache between the steps of `find`."""
    mask = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        mask[start : start + _BLOCK] = find(values[start : start + _BLOCK])
    return mask


def to_mask(array: pa.BooleanArray) -> BoolArray:
    """Arrow's bits, null as false, as NumPy's."""
    filled = array.fill_null(False) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


_FEW_INTERVALS = 6


class Wide:
    """Integers of 128 bits, as the two halves of each."""

    def __init__(self, words: Int64Array) -> None:
        """Take words of 64 bits, the lower half of each number first."""
        self._words = words
        self.upper = words[1::2]
        self.lower = words.view(np.uint64)[0::2]

    def __len__(self) -> int:
        return len(self.upper)

    def at_least(self, bound: int) -> BoolArray:
        """True where a number is not below `bound`."""
        upper, lower = bound >> 64, bound & ((1 << 64) - 1)
        if not -(1 << 63) <= upper < 1 << 63:
            return np.full(len(self), upper < 0)
        mask: BoolArray = self.upper == upper
        mask &= self.lower >= np.uint64(lower)
        mask |= self.upper > upper
        return mask

    def is_in(self, keys: Sequence[int]) -> BoolArray:
        """True where a number is one of `keys`."""
        listed = pa.array([key.to_bytes(16, "little", signed=True) for key in keys], pa.binary(16))
        values = pa.Array.from_buffers(listed.type, len(self), [None, pa.py_buffer(self._words)])
        return to_mask(pc.is_in(values, value_set=listed))


def numbers_within(values: npt.NDArray[Any] | Wide, intervals: Sequence[Interval]) -> BoolArray:
    """True where a value lies in one of the intervals, which are sorted and apart.

    >>> numbers_within(np.array([1, 5, 9], np.int8), [(None, 2), (9, 1000)]).tolist()
    [True, False, True]
    """
    few = len(intervals) <= _FEW_INTERVALS
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


def _any(values: npt.NDArray[Any] | Wide, masks: list[BoolArray]) -> BoolArray:
    if not masks:
        return np.zeros(len(values), bool)
    for mask in masks[1:]:
        masks[0] |= mask
    return masks[0]


def _bounds(interval: Interval) -> tuple[int | None, int | None]:
    begin, end = interval
    return begin if isinstance(begin, int) else None, end if isinstance(end, int) else None


def _wide_within(values: Wide, intervals: Sequence[Interval]) -> BoolArray:
    listed = [points(interval) for interval in intervals]
    keys = [int(key) for keys in listed for key in keys or ()]
    if len(keys) <= _FEW_INTERVALS:
        return _any(values, [_wide(values, *_bounds(interval)) for interval in intervals])
    ranges = [pair for pair, few in zip(intervals, listed, strict=True) if few is None]
    masks = [_wide(values, *_bounds(interval)) for interval in ranges]
    return _any(values, [values.is_in(keys), *masks])


def _wide(values: Wide, begin: int | None, end: int | None) -> BoolArray:
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


def _integers(values: IntArray, begin: int | None, end: int | None) -> BoolArray:
    if begin is None:
        return np.ones(len(values), bool) if end is None else np.less(values, end)
    if end is None:
        return np.greater_equal(values, begin)
    if end - begin == 1:
        return np.equal(values, begin)
    mask: BoolArray = np.greater_equal(values, begin)
    mask &= values < end
    return mask


def _floats(values: npt.NDArray[Any], begin: int | None, end: int | None) -> BoolArray:
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


def _many_integers(
    values: IntArray, intervals: Sequence[tuple[int | None, int | None]]
) -> BoolArray:
    listed = [points(interval) for interval in intervals]
    if None not in listed:
        keys = [key for keys in listed for key in keys or ()]
        return numbers_in(values, np.array(keys, values.dtype))
    edges = [bound for interval in intervals for bound in interval if bound is not None]
    passed = np.searchsorted(np.array(edges, values.dtype), values, "right")
    inside = 0 if intervals[0][0] is None else 1
    mask: BoolArray = (passed & 1) == inside
    return mask


def _many_floats(values: npt.NDArray[Any], intervals: Sequence[Interval]) -> BoolArray:
    width = values.dtype.itemsize
    infinity = order_float(math.inf, width)
    ranks, ranges = list[int](), list[BoolArray]()
    for interval in intervals:
        listed = points(interval)
        if listed is None or int(listed[-1]) > infinity:
            ranges.append(_floats(values, *_bounds(interval)))
        else:
            ranks += map(int, listed)
    stored = KeyType(width, floating=True).to_stored(np.array(ranks, f"i{width}"))
    keys = stored.view(f">f{width}").astype(values.dtype)
    return _any(values, [numbers_in(values, keys), *ranges])


_DAY_IN_MILLIS = 86_400_000
_FEW = 3
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class _Chunk:
    values: Any
    """A NumPy array or `Wide`, with anything for a null; or an Arrow array, binary for text."""
    valid: BoolArray | None
    """None if no value is null."""
    picks: npt.NDArray[Any] | None = None
    """For each row its place among the values of a dictionary; -1 for null."""


class RowColumn:
    """One column of a table, read when it is first compared."""

    def __init__(self, array: pa.Array | pa.ChunkedArray, *, trimmed: bool = False) -> None:
        """Take a column; `trimmed`: of text, without the spaces at the end."""
        arrays = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        self._arrays = [part for part in arrays if len(part)]
        self._trimmed = trimmed
        self._chunks: list[_Chunk] | None = None

    def matching(self, probe: Probe | Pattern) -> BoolArray:
        """True for the rows that match a probe."""
        masks = [_matching(chunk, probe) for chunk in self._read_chunks()]
        if len(masks) == 1:
            return masks[0]
        return np.concatenate(masks) if masks else np.zeros(0, bool)

    def keys(self) -> npt.NDArray[Any] | None:
        """The values as int64 keys, or text as objects, with anything for a null.

        None where they are neither: integers of more than 64 bits, or a dictionary.
        """
        chunks = self._read_chunks()
        if len(chunks) != 1 or chunks[0].picks is not None:
            return None
        values = chunks[0].values
        if isinstance(values, pa.Array):
            return (
                np.array(values.fill_null(b"").to_pylist(), object) if _is_binary(values) else None
            )
        if isinstance(values, Wide) or values.dtype == np.uint64:
            return None
        ranks = order_floats(values) if values.dtype.kind == "f" else values
        return ranks.astype(np.int64)

    def _read_chunks(self) -> list[_Chunk]:
        if self._chunks is None:
            self._chunks = [_read(array, self._trimmed) for array in self._arrays]
        return self._chunks

    def longest(self) -> int:
        """The bytes of the longest text."""
        lengths = (pc.max(pc.binary_length(_text(array))).as_py() for array in self._arrays)
        return max((length or 0 for length in lengths), default=0)


def _is_binary(array: pa.Array) -> bool:
    return bool(pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type))


def _text(array: pa.Array) -> pa.Array:
    """Text or bytes of whatever layout as binary."""
    array = plain(array)
    if pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    return array.cast(pa.large_binary()) if pa.types.is_large_string(array.type) else array


def _read(array: pa.Array, trimmed: bool) -> _Chunk:
    if isinstance(array.type, pa.BaseExtensionType):
        return _read(array.storage, trimmed)
    if pa.types.is_dictionary(array.type) and len(array.dictionary) <= len(array):
        values = _read(array.dictionary, trimmed)
        if values.picks is None:
            signed = array.indices.cast(pa.int64())
            picks = signed.fill_null(-1).to_numpy(zero_copy_only=False)
            return _Chunk(values.values, values.valid, picks)
    array = plain(array)
    valid = to_mask(pc.is_valid(array)) if array.null_count else None
    return _Chunk(_values(array, trimmed), valid)


def _values(array: pa.Array, trimmed: bool) -> Any:
    kind = array.type
    if pa.types.is_decimal(kind):
        return _unscaled(array)
    if trimmed:
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        text = array.view(pa.large_string() if wide else pa.string())
        return _text(pc.ascii_rtrim(text, characters=" "))
    if pa.types.is_boolean(kind):
        return to_mask(array).view(np.uint8)
    if pa.types.is_float16(kind):
        return _numbers(array.cast(pa.float32()), np.dtype("f4"))
    if pa.types.is_floating(kind):
        return _numbers(array, np.dtype(f"f{kind.bit_width // 8}"))
    if pa.types.is_date64(kind):
        return _numbers(array, np.dtype("i8")) // _DAY_IN_MILLIS
    if pa.types.is_unsigned_integer(kind):
        return _numbers(array, np.dtype(f"u{kind.bit_width // 8}"))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return _numbers(array, np.dtype(f"i{kind.bit_width // 8}"))
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_string(kind):
        return _text(array)
    return _text(array) if pa.types.is_large_string(kind) else array


def _numbers(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The buffer of an array: unlike `to_numpy` it does not care for nulls."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):  # nothing but nulls, maybe
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def _unscaled(array: pa.Array) -> npt.NDArray[Any] | Wide:
    """The unscaled numbers; those of 18 digits or fewer are the lower half."""
    kind = array.type
    if kind.precision > _MOST_DIGITS:  # which are not compared, only asked whether they are null
        return np.zeros(len(array), np.int64)
    if kind.bit_width != 128:
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    buffer = array.buffers()[1]
    words = np.zeros(2 * len(array), np.int64)
    if buffer is not None:
        words = np.frombuffer(buffer, np.int64, 2 * len(array), 16 * array.offset)
    return words[0::2] if kind.precision <= 18 else Wide(words)


def _matching(chunk: _Chunk, probe: Probe | Pattern) -> BoolArray:
    mask = _matching_values(chunk, probe)
    if chunk.picks is None:
        return mask
    # What a null row answers stands behind the others, where -1 finds it.
    picked: BoolArray = np.append(mask, isinstance(probe, NullRows | AnyRow))[chunk.picks]
    return picked


def _matching_values(chunk: _Chunk, probe: Probe | Pattern) -> BoolArray:
    values, valid = chunk.values, chunk.valid
    mask = np.ones(len(values), bool)
    match probe:
        case AnyRow():
            return mask
        case NullRows():
            return ~(mask if valid is None else valid)
        case InIntervals(intervals):
            mask = _within(values, intervals)
        case NotInIntervals(intervals):
            mask = ~_within(values, intervals)
        case Pattern():
            mask = _like(values, probe)
    if valid is not None:
        mask &= valid
    return mask


def _like(values: pa.Array, pattern: Pattern) -> BoolArray:
    wide = pa.types.is_large_binary(values.type)
    mask = to_mask(pattern.match(values.view(pa.large_string() if wide else pa.string())))
    return ~mask if pattern.negated else mask


def _within(values: Any, intervals: Sequence[Interval]) -> BoolArray:
    if isinstance(values, pa.Array):
        return _bytes_within(values, intervals)
    return numbers_within(values, intervals)


def _bytes_within(values: pa.Array, intervals: Sequence[Interval]) -> BoolArray:
    single = [key for interval in intervals for key in points(interval) or ()]
    ranges = [interval for interval in intervals if points(interval) is None]
    masks = [_between(values, begin, end) for begin, end in ranges]
    if len(single) <= _FEW:
        masks += (to_mask(pc.equal(values, pa.scalar(key, values.type))) for key in single)
    else:
        masks.append(to_mask(pc.is_in(values, value_set=pa.array(single, values.type))))
    return np.logical_or.reduce(masks) if masks else np.zeros(len(values), bool)


def _between(values: pa.Array, begin: object, end: object) -> BoolArray:
    mask = np.ones(len(values), bool)
    if begin is not None:
        mask = to_mask(pc.greater_equal(values, pa.scalar(begin, values.type)))
    if end is not None:
        below = to_mask(pc.less(values, pa.scalar(end, values.type)))
        mask = below if begin is None else mask & below
    return mask
