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

from alcid.formats.arrays import IntArray
from alcid.formats.cursor import Cursor
from alcid.types import DataType

__all__ = [
    "Key",
    "KeyType",
    "are_ascending",
    "float_order",
    "is_below",
    "key_type",
    "order_float",
    "order_floats",
]

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
