"""Keys: what an index keeps of a value, and the bytes it keeps them in.

Every value becomes a key that is either an `int` or `bytes`, so that order and equality of keys are
those of the index:

| column type                               | key                                     | bytes   |
|-------------------------------------------|-----------------------------------------|---------|
| BOOLEAN                                   | 0 or 1                                  | 1       |
| TINYINT, SMALLINT, INT, BIGINT            | the number                              | 1 2 4 8 |
| DATE                                      | days since 1970-01-01                   | 4       |
| TIME(p)                                   | milliseconds of the day                 | 4       |
| TIMESTAMP(p), TIMESTAMP_LTZ(p), p <= 3    | milliseconds since 1970-01-01           | 8       |
| the same, p >= 4                          | microseconds                            | 8       |
| DECIMAL(p, s)                             | the unscaled number                     | 8       |
| FLOAT, DOUBLE                             | the rank of the bits in the total order | 4 8     |
| CHAR, VARCHAR, BINARY, VARBINARY          | the bytes                               | i32 + n |

The total order of floats is Java's: -0.0 below 0.0, every NaN the same and above all numbers. Its
rank is the bit pattern read as a signed integer, with the lower bits turned over for negative
numbers, so that neighbouring floats are neighbouring ranks. A key that drops a part of the value
(TIME finer than milliseconds, TIMESTAMP finer than microseconds) is `truncated`: equal keys need
not be equal values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import DAY_IN_MILLIS, TICKS_PER_SECOND, IntArray, UInt32Array, plain
from alcid.errors import LimitError, UnsupportedError
from alcid.formats.cursor import Cursor
from alcid.types import DataType

Key: TypeAlias = int | bytes

_CANONICAL_NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}
_FLOAT_BITS = {4: struct.Struct(">f"), 8: struct.Struct(">d")}


@dataclass(frozen=True, slots=True)
class KeyType:
    """How the keys of a column type are ordered and stored."""

    width: int
    """Bytes of a stored key; 0 for a length and that many bytes."""
    floating: bool = False
    """True when the stored bytes are a float and the key is its rank."""
    truncated: bool = False
    """True when different values can share a key."""
    millis: bool = False
    """True for times and timestamps kept in milliseconds."""
    nan_bits: int | None = None
    """The bits to store for NaN, if not Java's canonical ones."""

    @property
    def is_bytes(self) -> bool:
        """True when keys are bytes, not integers."""
        return self.width == 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the keys in memory."""
        return np.dtype(f"i{self.width}")

    @property
    def minimum(self) -> int:
        """The least key; negative infinity for floats."""
        return (
            order_float(float("-inf"), self.width) if self.floating else -(1 << 8 * self.width - 1)
        )

    @property
    def maximum(self) -> int:
        """The greatest key; NaN for floats."""
        return (
            order_float(float("nan"), self.width)
            if self.floating
            else (1 << 8 * self.width - 1) - 1
        )

    def read(self, cursor: Cursor) -> Key:
        """Read one key."""
        if self.is_bytes:
            return cursor.take(cursor.count("key length"))
        return int(self.from_stored(np.frombuffer(cursor.take(self.width), self.stored))[0])

    @property
    def stored(self) -> np.dtype[Any]:
        """The NumPy type of stored keys: big-endian integers, the bits of floats."""
        return np.dtype(f">i{self.width}")

    def from_stored(self, stored: IntArray) -> IntArray:
        """Keys from stored integers."""
        keys = stored.astype(self.dtype)
        return _flip(_canonical(keys)) if self.floating else keys

    def to_stored(self, keys: IntArray) -> IntArray:
        """Stored integers from keys."""
        bits = _flip(keys) if self.floating else keys
        if self.nan_bits is not None:
            bits = np.where(keys == self.maximum, bits.dtype.type(self.nan_bits), bits)
        return bits.astype(self.stored)


def is_below(left: Key, right: Key) -> bool:
    """Whether one key comes before another of the same type."""
    return left < right  # type: ignore[operator]


def are_ascending(keys: Sequence[Key]) -> bool:
    """Whether every key comes before the next one."""
    return all(map(lt, keys, islice(keys, 1, None)))


def _flip(bits: IntArray) -> IntArray:
    """Between float bits and ranks; its own inverse."""
    lower = np.array((1 << 8 * bits.dtype.itemsize - 1) - 1, bits.dtype)
    flipped: IntArray = bits ^ ((bits >> (8 * bits.dtype.itemsize - 1)) & lower)
    return flipped


def _canonical(bits: IntArray) -> IntArray:
    """Every NaN as Java's canonical one."""
    width = bits.dtype.itemsize
    return np.where(np.isnan(bits.view(f"f{width}")), bits.dtype.type(_CANONICAL_NAN[width]), bits)


def order_floats(values: npt.NDArray[np.floating[Any]]) -> IntArray:
    """The ranks of floats in the total order, as integers of the same width."""
    return _flip(_canonical(values.view(f"i{values.dtype.itemsize}")))


def order_float(value: float, width: int = 8) -> int:
    """The rank of one float in the total order of floats of `width` bytes.

    >>> order_float(0.0), order_float(-0.0), order_float(5e-324)
    (0, -1, 1)
    """
    return int(order_floats(np.array([value], f"f{width}"))[0])


def float_order(rank: int, width: int = 8) -> float:
    """The float at `rank`: the inverse of `order_float`.

    >>> float_order(order_float(1.5))
    1.5
    """
    return float(_flip(np.array([rank], f"i{width}")).view(f"f{width}")[0])


_MILLIS, _MICROS = 3, 6
_WIDTHS = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "SMALLINT": 2,
    "INT": 4,
    "BIGINT": 8,
    "DATE": 4,
    "DECIMAL": 8,
    "CHAR": 0,
    "VARCHAR": 0,
    "BINARY": 0,
    "VARBINARY": 0,
}


def key_type(data_type: DataType) -> KeyType:
    """The key type of a column type; which index takes which type is `alcid.types`' to say."""
    match data_type.root:
        case "FLOAT":
            return KeyType(4, floating=True)
        case "DOUBLE":
            return KeyType(8, floating=True)
        case "TIME":
            return KeyType(4, truncated=data_type.precision > _MILLIS, millis=True)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            precision = data_type.precision
            return KeyType(8, truncated=precision > _MICROS, millis=precision <= _MILLIS)
        case root:
            return KeyType(_WIDTHS[root])


MOST_ROWS = (1 << 31) - 1
Keys: TypeAlias = Any  # a NumPy array of integers, or an Arrow large_binary array


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The keys of a column, without the nulls, and the rows they stand in."""

    row_count: int
    key_type: KeyType
    keys: Keys
    rows: UInt32Array | None
    """The row of each key, or None if every row has one."""
    first_nan: int | None = None
    """The bits of the first NaN, which the range-bitmap keeps as they are."""

    @property
    def key_rows(self) -> UInt32Array:
        """The row of each key."""
        return np.arange(self.row_count, dtype=np.uint32) if self.rows is None else self.rows

    @property
    def null_rows(self) -> UInt32Array:
        """The rows without a key."""
        if self.rows is None:
            return np.zeros(0, np.uint32)
        absent = np.ones(self.row_count, bool)
        absent[self.rows] = False
        return np.flatnonzero(absent).astype(np.uint32)

    def spread(self, values: IntArray) -> IntArray:
        """`values`, one for each key, by row; 0 where there is no key."""
        if self.rows is None:
            return values
        spread = np.zeros(self.row_count, values.dtype)
        spread[self.rows] = values
        return spread


def key_array(keys: Sequence[Key], kind: KeyType) -> Keys:
    """Keys one by one as those of a column."""
    return pa.array(keys, pa.large_binary()) if kind.is_bytes else np.array(keys, kind.dtype)


def map_key_column(array: pa.Array | pa.ChunkedArray, key: str) -> pa.ChunkedArray:
    """The values that a MAP column holds for `key`: null where the map or the key is absent."""
    maps = pa.chunked_array(array)
    maps = maps.cast(
        pa.map_(pa.string(), maps.type.item_type)
    )  # of all kinds of text, one is enough
    return pc.map_lookup(maps, pa.scalar(key), "first")


def read_column(array: pa.Array | pa.ChunkedArray, data_type: DataType) -> KeyColumn:
    """Bring an Arrow column of the Paimon type `data_type` to keys."""
    row_count = len(array)
    if row_count > MOST_ROWS:
        raise LimitError(f"a file index holds at most {MOST_ROWS} rows, found {row_count}")
    array = plain(array)
    rows = None
    if array.null_count:
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(valid).astype(np.uint32)
        array = array.drop_null()
    kind = key_type(data_type)
    if kind.is_bytes:
        return KeyColumn(row_count, kind, array.cast(pa.large_binary()), rows)
    if kind.floating:
        values = array.cast(pa.float32() if kind.width == 4 else pa.float64()).to_numpy()
        nan = np.flatnonzero(np.isnan(values))[:1]
        first_nan = int(values[nan].view(kind.dtype)[0]) if len(nan) else None
        return KeyColumn(row_count, kind, order_floats(values), rows, first_nan)
    return KeyColumn(row_count, kind, _integers(array, data_type, kind, rows), rows)


def _integers(
    array: pa.Array, data_type: DataType, kind: KeyType, rows: UInt32Array | None
) -> IntArray:
    """Integer keys of an array without nulls, whose values stand in `rows`."""
    arrow_type = array.type
    match data_type.root:
        case "BOOLEAN":
            return array.cast(pa.int8()).to_numpy()  # type: ignore[no-any-return]
        case "DECIMAL":
            return _unscaled(array, data_type, rows)
        case "DATE" if pa.types.is_date64(arrow_type):
            return _narrow(array, array.view(pa.int64()).to_numpy() // DAY_IN_MILLIS, kind, rows)
        case "DATE":
            return array.view(pa.int32()).to_numpy()  # type: ignore[no-any-return]
        case "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _narrow(array, _ticks(array, kind, rows), kind, rows)
        case _:
            return array.cast(pa.from_numpy_dtype(kind.dtype)).to_numpy()  # type: ignore[no-any-return]


def _narrow(array: pa.Array, keys: IntArray, kind: KeyType, rows: UInt32Array | None) -> IntArray:
    """Keys of the width that is stored; a date or a time may be beyond it."""
    beyond = np.flatnonzero((keys > kind.maximum) | (keys < kind.minimum))
    if len(beyond):
        raise _does_not_fit(array.view(pa.int64()), int(beyond[0]), rows)
    return keys.astype(kind.dtype, copy=False)


def _does_not_fit(array: pa.Array, position: int, rows: UInt32Array | None) -> UnsupportedError:
    row = position if rows is None else int(rows[position])
    return UnsupportedError(f"{array[position]} in row {row} does not fit a key")


def _ticks(array: pa.Array, kind: KeyType, rows: UInt32Array | None) -> IntArray:
    """Milliseconds or microseconds, rounded down; the units of Arrow are finer or coarser."""
    width = array.type.bit_width
    ticks: IntArray = array.view(pa.int32() if width == 32 else pa.int64()).to_numpy()
    ticks = ticks.astype(np.int64, copy=False)
    have, want = TICKS_PER_SECOND[array.type.unit], TICKS_PER_SECOND["ms" if kind.millis else "us"]
    if have >= want:
        return ticks if have == want else ticks // (have // want)
    factor = want // have
    limit = np.iinfo(np.int64).max // factor
    beyond = np.flatnonzero((ticks > limit) | (ticks < -limit))
    if len(beyond):
        raise _does_not_fit(array.view(pa.int64()), int(beyond[0]), rows)
    return ticks * factor


def _unscaled(array: pa.Array, data_type: DataType, rows: UInt32Array | None) -> IntArray:
    """The unscaled numbers of a DECIMAL column, which must fit 64 bits."""
    if not pa.types.is_decimal(array.type):  # unsigned 64-bit integers
        array = array.cast(pa.decimal128(20, 0))
    try:
        wide = array.cast(
            pa.decimal256(max(array.type.precision, data_type.precision), array.type.scale)
        )
    except pa.ArrowInvalid as error:  # more digits than the array's own type has
        raise UnsupportedError(f"{data_type}: {error}") from None
    words = np.frombuffer(wide.buffers()[1], np.int64)[
        4 * wide.offset : 4 * (wide.offset + len(wide))
    ]
    lowest, higher = words[0::4], words.reshape(-1, 4)[:, 1:]
    misfit = np.flatnonzero((higher != (lowest >> 63)[:, None]).any(axis=1))
    if len(misfit):
        raise _does_not_fit(array, int(misfit[0]), rows)
    return lowest.copy()
