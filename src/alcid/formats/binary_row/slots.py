"""The slots of binary rows: the 8 bytes that each row has for a value of an Arrow column.

| type                                  | slot, little-endian           | variable part           |
|---------------------------------------|-------------------------------|-------------------------|
| BOOLEAN, TINYINT                      | 1 byte                        |                         |
| SMALLINT                              | 2 bytes                       |                         |
| INT, DATE (days), TIME (milliseconds) | 4 bytes, no sign beyond them  |                         |
| BIGINT                                | 8 bytes                       |                         |
| FLOAT, DOUBLE                         | the bits, 4 or 8 bytes        |                         |
| text and binary up to 7 bytes         | the bytes; 0x80 + length last |                         |
| longer text and binary                | length, offset                | the bytes               |
| DECIMAL(p, s), p <= 18                | the unscaled number, 8 bytes  |                         |
| DECIMAL(p, s), p > 18                 | bytes used, offset            | 16: the unscaled number |
| TIMESTAMP(p), TIMESTAMP_LTZ(p) p <= 3 | milliseconds, 8 bytes         |                         |
| the same, p > 3                       | nanoseconds within the        | 8: the milliseconds     |
|                                       | millisecond, offset           |                         |

What is not used is zero. The unscaled number of a long DECIMAL is big-endian, in as few bytes as
its sign allows. A null has a slot of zeros, but keeps the place of a long DECIMAL or TIMESTAMP in
the variable part, and its offset.

Floats go in with the bits that they have: 0.0 and -0.0 differ, and so may two NaN. Of a timestamp
no more goes in than a data file of its type keeps: milliseconds up to p = 3, microseconds up to 6.

A *tail* is the variable part of a column: it gives 8 bytes of many rows at a time, in the order of
the bytes of each row, to be mixed into the hashes of those rows or copied into the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from alcid._arrays import (
    DAY_IN_MILLIS,
    TICKS_PER_SECOND,
    BoolArray,
    Int64Array,
    IntArray,
    UInt8Array,
    UInt64Array,
    least_bytes,
)
from alcid.errors import UnsupportedError
from alcid.types import DataType

Rows: TypeAlias = npt.NDArray[np.intp] | slice

LONGEST_INLINE = 7
"""Bytes of text or binary that fit into the slot itself."""

# Of fewer rows, or longer strings, each is faster on its own than in NumPy's steps together.
_FEWEST_TOGETHER = 64
_MOST_WORDS_TOGETHER = 96
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


class Tail(Protocol):
    """What a column keeps in the variable part of each row."""

    @property
    def reserved(self) -> Int64Array | int:
        """The bytes it takes in each row, or in all: a multiple of 8."""

    def words(self) -> Iterator[tuple[Rows, int, UInt64Array]]:
        """Rows, the number of a word within their tails, and that word of each of these rows."""

    def rest(self) -> Iterator[tuple[int, int, bytes | memoryview]]:
        """For a row with words left after `words`: it, their first number, and their bytes."""


class WordTail:
    """The same number of words in every row."""

    def __init__(self, *columns: UInt64Array) -> None:
        """Take the words by their number, each for all rows."""
        self._columns = columns
        self.reserved = 8 * len(columns)

    def words(self) -> Iterator[tuple[Rows, int, UInt64Array]]:
        """Each word, of all rows."""
        for index, column in enumerate(self._columns):
            yield slice(None), index, column

    def rest(self) -> Iterator[tuple[int, int, bytes | memoryview]]:
        """Nothing: `words` gives them all."""
        return iter(())


class ByteTail:
    """Byte strings, padded with zeros to whole words; those that fit into the slot have no tail."""

    def __init__(self, data: UInt8Array, starts: Int64Array, lengths: Int64Array) -> None:
        """Take strings that lie anywhere in `data`."""
        self._data = data
        counts = lengths + 7 >> 3
        counts[lengths <= LONGEST_INLINE] = 0
        self.reserved: Int64Array = counts << 3
        # Rows with the most words first, so that those that have another are always in front.
        capped = np.minimum(counts, _MOST_WORDS_TOGETHER + 1).astype(np.uint8)
        self._order = np.argsort(capped, kind="stable")[::-1]  # by counting, for narrow numbers
        self._starts, self._lengths = starts[self._order], lengths[self._order]
        at_most = np.cumsum(np.bincount(capped, minlength=_MOST_WORDS_TOGETHER + 1))
        # How many rows have a word 0, 1, 2 ...: at the end the very long ones, which stay apart.
        self._having: list[int] = (len(counts) - at_most[: _MOST_WORDS_TOGETHER + 1]).tolist()
        self._apart = self._having[-1]
        self._together = next(
            index
            for index, count in enumerate(self._having)
            if count - self._apart < _FEWEST_TOGETHER
        )

    def words(self) -> Iterator[tuple[Rows, int, UInt64Array]]:
        """Word by word, the rows that have it."""
        for index in range(self._together):
            end, last = self._having[index], self._having[index + 1]
            words = words_at(self._data, self._starts[self._apart : end] + 8 * index)
            words[last - self._apart :] &= _KEEP[self._lengths[last:end] - 8 * index]
            yield self._order[self._apart : end], index, words

    def rest(self) -> Iterator[tuple[int, int, bytes | memoryview]]:
        """Very long strings, and those that are longer than most others."""
        view = self._data.data
        for number in range(self._having[self._together]):
            index = 0 if number < self._apart else self._together
            begin, length = int(self._starts[number]), int(self._lengths[number])
            data = view[begin + 8 * index : begin + length]
            missing = -len(data) % 8
            padded = bytes(data) + bytes(missing) if missing else data
            yield int(self._order[number]), index, padded


def words_at(data: UInt8Array, positions: Int64Array) -> UInt64Array:
    """The 8 bytes at each position, little-endian; zeros stand beyond the end of the data."""
    if len(data) < 8:
        data = np.concatenate((data, np.zeros(8, np.uint8)))
    last = len(data) - 8
    every = np.ndarray(last + 1, "<u8", data, strides=(1,))
    if not len(positions) or positions.max() <= last:
        return every[positions].astype(np.uint64, copy=False)
    within = np.minimum(positions, last)
    words: UInt64Array = every[within].astype(np.uint64, copy=False)
    words >>= (positions - within << 3).astype(np.uint64)
    return words


NO_TAIL = WordTail()
"""Of a column that is all in its slot."""


Nulls: TypeAlias = BoolArray | None

INTEGERS: Final = {"TINYINT": "i1", "SMALLINT": "i2", "INT": "i4", "BIGINT": "i8"}
"""The NumPy types of integers."""

_LONGEST_SHORT_DECIMAL: Final = 18
_INLINE_LENGTH: Final = np.array([0x80 + length << 56 for length in range(8)], np.uint64)
_INLINE_BYTES: Final = np.array([(1 << 8 * length) - 1 for length in range(8)], np.uint64)


@dataclass(frozen=True, slots=True)
class Slots:
    """What some rows have for one column."""

    fixed: UInt64Array
    """The slots, without the offsets of the variable part."""
    nulls: Nulls = None
    """Which rows are null, or None if there is none."""
    tail: Tail = NO_TAIL


class MisfitError(UnsupportedError):
    """A value that its type cannot hold."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the value of row {position} does not fit its type")
        self.position = position


def read_slots(array: pa.Array, data_type: DataType) -> Slots:
    """The slots of an array of a type that fits: no dictionary, no view, not empty.

    Raises:
        MisfitError: A value that the type cannot hold.
    """
    nulls = pc.is_null(array).to_numpy(zero_copy_only=False) if array.null_count else None
    match data_type.root:
        case "BOOLEAN":
            return _unsigned(_values(array.cast(pa.uint8()), "u1", nulls), nulls)
        case "FLOAT":
            return _unsigned(_values(array.cast(pa.float32()), "u4", nulls), nulls)
        case "DOUBLE":
            return _unsigned(_values(array.cast(pa.float64()), "u8", nulls), nulls)
        case "DATE" if types.is_date64(array.type):
            return _narrow(_values(array, "i8", nulls) // DAY_IN_MILLIS, "i4", nulls)
        case "DATE":
            return _narrow(_values(array, "i4", nulls), "i4", nulls)
        case "TIME":
            millis, _ = _split_ticks(array, nulls)
            return _narrow(millis, "i4", nulls)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamps(*_split_ticks(array, nulls), data_type, nulls)
        case "DECIMAL":
            return _decimals(*_unscaled(array, nulls), data_type, nulls)
        case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
            return _byte_strings(array, nulls)
        case root:
            return _narrow(_integers(array, nulls), INTEGERS[root], nulls)


def _values(array: pa.Array, dtype: str, nulls: Nulls, width: int = 1) -> IntArray:
    """The values of an array of fixed width, `width` numbers for each; zeros for the nulls."""
    kind = np.dtype(dtype)
    begin = array.offset * width * kind.itemsize
    values = np.frombuffer(array.buffers()[1], kind, len(array) * width, begin)
    if nulls is None:
        return values
    values = values.copy()
    values.reshape(-1, width)[nulls] = 0  # anything may stand there
    return values


def _integers(array: pa.Array, nulls: Nulls) -> IntArray:
    sign = "u" if types.is_unsigned_integer(array.type) else "i"
    return _values(array, f"{sign}{array.type.bit_width // 8}", nulls)


def _unsigned(values: IntArray, nulls: Nulls) -> Slots:
    return Slots(values.astype(np.uint64), nulls)


def _narrow(values: IntArray, dtype: str, nulls: Nulls) -> Slots:
    """Slots of integers that must fit a narrower type; beyond its bytes they are zero."""
    if not np.can_cast(values.dtype, dtype):
        limits = np.iinfo(dtype)
        _refuse((values < limits.min) | (values > limits.max))
    return _unsigned(values.astype(dtype).view(f"u{dtype[1:]}"), nulls)


def _refuse(misfits: BoolArray) -> None:
    if misfits.any():
        raise MisfitError(int(misfits.argmax()))


def _split_ticks(array: pa.Array, nulls: Nulls) -> tuple[IntArray, IntArray]:
    """Milliseconds, rounded down, and the nanoseconds beyond them."""
    ticks = _values(array, f"i{array.type.bit_width // 8}", nulls).astype(np.int64, copy=False)
    per_second = TICKS_PER_SECOND[array.type.unit]
    if per_second == 1:
        limit = np.iinfo(np.int64).max // 1_000
        _refuse((ticks > limit) | (ticks < -limit))
        return ticks * 1_000, np.zeros_like(ticks)
    per_milli = per_second // 1_000
    millis = ticks // per_milli
    return millis, (ticks - millis * per_milli) * (1_000_000 // per_milli)


def _timestamps(millis: IntArray, nanos: IntArray, data_type: DataType, nulls: Nulls) -> Slots:
    words = millis.astype(np.uint64)
    if data_type.precision <= 3:
        return Slots(words, nulls)
    if data_type.precision <= 6:
        nanos -= nanos % 1_000
    return Slots(nanos.astype(np.uint64), nulls, WordTail(words))


def _unscaled(array: pa.Array, nulls: Nulls) -> tuple[UInt64Array, UInt64Array]:
    """The unscaled numbers of decimals in two's complement: the lower and the upper 64 bits."""
    if types.is_integer(array.type) or array.type.bit_width <= 64:
        integers = _integers(array, nulls)
        lower = integers.astype(np.uint64)
        return lower, _sign(lower) if integers.dtype.kind == "i" else np.zeros_like(lower)
    width = array.type.bit_width // 64
    words = _values(array, "u8", nulls, width).reshape(-1, width)
    _refuse((words[:, 2:] != _sign(words[:, 1])[:, None]).any(axis=1))
    return words[:, 0], words[:, 1]


def _is_beyond(lower: UInt64Array, upper: UInt64Array, digits: int) -> BoolArray:
    """Whether a number has more digits than that."""
    sign = _sign(upper)
    size, upper_size = lower ^ sign, upper ^ sign  # one less than its value, if negative
    most_upper, most = divmod(10**digits - 1, 1 << 64)
    most_size = np.uint64(most) + sign  # the sum wraps: one less, if negative
    beyond: BoolArray = upper_size > np.uint64(most_upper)
    beyond |= (upper_size == np.uint64(most_upper)) & (size > most_size)
    return beyond


def _sign(words: UInt64Array) -> UInt64Array:
    """All bits set where the highest is, else none."""
    return (words.view(np.int64) >> 63).view(np.uint64)


def _decimals(lower: UInt64Array, upper: UInt64Array, data_type: DataType, nulls: Nulls) -> Slots:
    _refuse(_is_beyond(lower, upper, data_type.precision))
    if data_type.precision <= _LONGEST_SHORT_DECIMAL:
        return Slots(lower, nulls)
    used = least_bytes(lower, upper)
    # The first byte that is used becomes the first of 16. NumPy shifts by 64 and more to zero.
    shift, word = (8 * (16 - used)).astype(np.uint64), np.uint64(64)
    first = upper << shift | lower >> (word - shift) | lower << (shift - word)
    second = lower << shift
    if nulls is not None:
        used[nulls] = 0
    tail = WordTail(first.byteswap(), second.byteswap())
    return Slots(used.astype(np.uint64), nulls, tail)


def _byte_strings(array: pa.Array, nulls: Nulls) -> Slots:
    data, starts, lengths = _places(array)
    if nulls is not None:
        lengths[nulls] = 0
    inline = np.minimum(lengths, LONGEST_INLINE)
    fixed = words_at(data, starts)
    fixed &= _INLINE_BYTES[inline]
    fixed |= _INLINE_LENGTH[inline]
    long = lengths > LONGEST_INLINE
    fixed[long] = lengths[long].astype(np.uint64)
    if nulls is not None:
        fixed[nulls] = 0
    return Slots(fixed, nulls, ByteTail(data, starts, lengths))


def _places(array: pa.Array) -> tuple[UInt8Array, Int64Array, Int64Array]:
    """The bytes of an array, and where in them each value starts and how long it is."""
    *_, places, data = array.buffers()
    count, begin = len(array), array.offset
    content = np.frombuffer(data, np.uint8)
    if types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        return content, np.arange(begin, begin + count) * width, np.full(count, width)
    wide = types.is_large_binary(array.type) or types.is_large_string(array.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(places, kind, count + 1, begin * kind.itemsize).astype(np.int64)
    return content, offsets[:-1], np.diff(offsets)
