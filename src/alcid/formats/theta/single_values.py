"""Arrow columns as the bytes that Iceberg hashes: its serialisation of single values.

    boolean                  1 byte, 00 or 01
    int, date                4 bytes, little-endian; a date is the days since 1970
    long, time, timestamp    8 bytes, little-endian; time is microseconds, and timestamp,
                             or nanoseconds, if Arrow has it in those
    float, double            4 or 8 bytes, little-endian: their bits
    decimal                  the unscaled number, big-endian, in as few bytes as hold it
    string                   UTF-8
    uuid, fixed, binary      as they are

An integer of less than 32 bits is an int. An unsigned one is of the next wider type, a 64-bit one
decimal(20, 0). Nulls, and strings and binaries of no bytes, are left out: sketches do not count
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.formats.arrays import DAY_IN_MILLIS, least_bytes, plain
from alcid.formats.same_length import ByteValues
from alcid.types import DataType

__all__ = ["decimal_values", "single_values"]

_PIECE = 1 << 20  # rows that are brought to bytes at once, so that a large column needs little
_SERIALIZED: Final[dict[str, Any]] = {
    "BOOLEAN": pa.uint8(),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), pa.int32()),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.int32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
}


def single_values(array: pa.Array | pa.ChunkedArray) -> Iterator[ByteValues]:
    """The serialised values of a column, in the order of its rows, in pieces.

    Within a piece, a value of a dictionary may stand once only, where it occurs first.

    Raises:
        UnsupportedError: A type that is not one of Iceberg's primitive types, or a value that its
            type in Iceberg cannot hold.

    >>> from decimal import Decimal
    >>> (values,) = single_values(pa.array([Decimal("14.20"), None, Decimal("-1.28")]))
    >>> [
    ...     values.data[start : start + length].tobytes().hex()
    ...     for start, length in zip(values.starts, values.lengths)
    ... ]
    ['058c', '80']
    """
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise UnsupportedError(f"expected an Arrow array, found {type(array).__name__}")
    if pa.types.is_null(array.type):
        return
    data_type = DataType.from_arrow(array.type)
    if data_type.children:
        raise UnsupportedError(f"distinct values of {data_type} cannot be counted")
    if (
        isinstance(array, pa.ChunkedArray)
        and 0 < len(array) < _PIECE * (array.num_chunks - 1)
        and not pa.types.is_dictionary(array.type)  # each chunk may have its own
    ):
        array = array.combine_chunks()  # small ones cost more to go through than to copy
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        for start in range(0, len(chunk), _PIECE):
            piece = chunk.slice(start, _PIECE)
            if pa.types.is_dictionary(piece.type):
                piece = piece.unique()
            piece = plain(piece).drop_null()
            if len(piece):
                yield _serialize(piece, data_type)


def _serialize(array: pa.Array, data_type: DataType) -> ByteValues:
    """The values of an array without nulls, of the type `data_type`."""
    match data_type.root:
        case "VARCHAR" | "VARBINARY":
            values = ByteValues.of(array.cast(pa.large_binary()))
            lengths = np.asarray(values.lengths)
            counted = lengths > 0
            if counted.all():
                return values
            return ByteValues(values.data, np.asarray(values.starts)[counted], lengths[counted])
        case "BINARY":
            return _fixed(array)
        case "DECIMAL":
            decimals = pa.decimal128(data_type.precision, data_type.scale)
            return decimal_values(_cast(array, decimals))
        case "TIMESTAMP" | "TIMESTAMP_LTZ" if array.type.unit == "ns":
            return _fixed(array)
        case "DATE" if pa.types.is_date64(array.type):
            array = pa.array(array.view(pa.int64()).to_numpy() // DAY_IN_MILLIS)
    # A time of day is never negative, so cutting its nanoseconds off rounds it down.
    return _fixed(_cast(array, _SERIALIZED[data_type.root], safe=data_type.root != "TIME"))


def _cast(array: pa.Array, arrow_type: pa.DataType, *, safe: bool = True) -> pa.Array:
    try:
        return array.cast(arrow_type, safe=safe)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(f"a value does not fit its type in Iceberg: {error}") from None


def _fixed(array: pa.Array) -> ByteValues:
    """The values of an array of fixed width, where they lie."""
    width = array.type.bit_width // 8
    start, end = array.offset * width, (array.offset + len(array)) * width
    data = np.frombuffer(array.buffers()[1], np.uint8)[start:end]
    return ByteValues(data, range(0, len(data), width), width)


def decimal_values(array: pa.Array) -> ByteValues:
    """Decimals of 128 bits, none of them null, as single values.

    They are the unscaled numbers, big-endian, without the bytes that only repeat the sign.
    """
    words = np.frombuffer(array.buffers()[1], np.uint64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    lengths = least_bytes(words[:, 0], words[:, 1])
    data = words[:, ::-1].astype(">u8").view(np.uint8).reshape(-1)
    return ByteValues(data, np.arange(16, 16 * len(words) + 16, 16) - lengths, lengths)
