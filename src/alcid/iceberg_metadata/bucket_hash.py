"""`bucket[N]`: the bucket of a value, by MurmurHash3 (x86, 32 bits, seed 0).

    int, long, date, timestamp   8 bytes, little-endian: the number, days or microseconds
    decimal                      the unscaled number, big-endian, in as few bytes as hold it
    string                       UTF-8
    fixed, binary                as they are

The bucket is the hash without its sign, modulo N.
"""

from __future__ import annotations

from typing import Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.formats.arrays import plain
from alcid.formats.binary_row.row_hash import finish, mix
from alcid.formats.same_length import ByteValues
from alcid.formats.theta.single_values import decimal_values
from alcid.types import DataType

__all__ = ["bucket_of", "has_buckets"]

_NUMBERS: Final = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
}
_TEXT: Final = ("VARCHAR", "VARBINARY")
_NO_SIGN: Final = np.int32(0x7FFFFFFF)


def has_buckets(data_type: DataType) -> bool:
    """Whether values of a type have a bucket: booleans, floats and nested ones have none."""
    return data_type.root in (*_NUMBERS, *_TEXT, "DECIMAL")


def bucket_of(
    values: pa.Array | pa.ChunkedArray, data_type: DataType, count: int
) -> npt.NDArray[np.int32]:
    """The bucket of each value that a query asks for; do not give whole columns of text.

    Args:
        values: Without null, which is in no bucket.
        data_type: The type of the column: 1 as INT and as DECIMAL are of two buckets.
        count: The number of buckets, N.

    Raises:
        UnsupportedError: A type that has no buckets, a value that is not of it, or null.

    >>> bucket_of(pa.array([34, -1]), DataType("BIGINT"), 16).tolist()
    [3, 8]
    """
    if not has_buckets(data_type):
        raise UnsupportedError(f"{data_type} has no buckets")
    try:
        hashes = _hashes(plain(values), data_type)
    except pa.ArrowException as error:
        raise UnsupportedError(f"bucket of {data_type}: {error}") from None
    return (hashes & _NO_SIGN) % np.int32(count)


def _hashes(values: pa.Array, data_type: DataType) -> npt.NDArray[np.int32]:
    if values.null_count:
        raise UnsupportedError("null is in no bucket")
    if data_type.root in _TEXT:
        return _of_bytes(ByteValues.of(values.cast(pa.large_binary())))
    if data_type.root == "DECIMAL":
        return _of_bytes(decimal_values(values.cast(data_type.to_arrow())))
    kind = _NUMBERS[data_type.root]
    whole = values.cast(kind).view(pa.int32() if kind.bit_width == 32 else pa.int64())
    words = whole.to_numpy().astype(np.int64).view(np.uint64)
    state = np.zeros(len(words), np.uint32)
    mix(state, words)
    return finish(state, 8)


def _of_bytes(values: ByteValues) -> npt.NDArray[np.int32]:
    view = values.data.data
    ends = zip(values.starts, np.broadcast_to(values.lengths, len(values)), strict=True)
    hashes = [mmh3.mmh3_32_sintdigest(view[start : start + length]) for start, length in ends]
    return np.array(hashes, np.int32)
