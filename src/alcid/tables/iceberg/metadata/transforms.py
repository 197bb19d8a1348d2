"""What the value of a partition says about the column that it is made of.

| transform               | a partition value `v` means                                         |
|-------------------------|---------------------------------------------------------------------|
| identity                | every value is `v`                                                  |
| truncate[W]             | numbers from `v` to `v + W - 1`; text that begins with `v`          |
| year, month, day, hour  | moments within that one                                             |
| bucket[N]               | values whose hash falls into bucket `v`: no bounds                  |
| void, any other         | nothing                                                             |

Null means that all values are null.

Bounds of dates and timestamps, from the year, month, day or hour of their partition.

These count from 1970. Early writers rounded moments before 1970 up instead of down: what is marked
with hour 0 may be of hour -1, and so on below. Iceberg's own planning allows for that, and so do
these bounds; whole days of a date were never rounded.

Bounds of a column, from partition values of `truncate[W]`.

A number is rounded down to a multiple of W (a decimal by its digits without the point); text keeps
its first W characters, binary its first W bytes.

`bucket[N]`: the bucket of a value, by MurmurHash3 (x86, 32 bits, seed 0).

    int, long, date, timestamp   8 bytes, little-endian: the number, days or microseconds
    decimal                      the unscaled number, big-endian, in as few bytes as hold it
    string                       UTF-8
    fixed, binary                as they are

The bucket is the hash without its sign, modulo N.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import TICKS_PER_SECOND, BoolArray, Int32Array, Int64Array, byte_offsets, plain
from alcid.errors import UnsupportedError
from alcid.formats.hashing import ByteValues, finish, mix
from alcid.formats.theta.sketch import decimal_values
from alcid.types import FLOAT_TYPES, DataType

__all__ = [
    "UNITS",
    "TransformBounds",
    "bucket_count",
    "bucket_of",
    "has_buckets",
    "time_bounds",
    "transform_bounds",
    "truncated_bounds",
]

UNITS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
"""Each transform, and how NumPy calls its unit."""
_HOUR_IN_MICROS: Final = 3_600 * TICKS_PER_SECOND["us"]
_DAY_IN_MICROS: Final = 24 * _HOUR_IN_MICROS
_DATES: Final = np.iinfo(np.int32)
_MICROS: Final = np.iinfo(np.int64)
_LAST_DAY: Final = _MICROS.max // _DAY_IN_MICROS
"""The last one whose microseconds are within 64 bits."""


def time_bounds(
    transform: str, values: pa.Array, data_type: DataType
) -> tuple[pa.Array, pa.Array] | None:
    """The first and the last date or microsecond of each partition; None of other types.

    >>> least, most = time_bounds("hour", pa.array([1]), DataType("TIMESTAMP", precision=6))
    >>> str(least[0]), str(most[0])
    ('1970-01-01 01:00:00', '1970-01-01 01:59:59.999999')
    """
    is_date = data_type.root == "DATE"
    if is_date and transform == "hour":
        return None
    if not is_date and (data_type.root, data_type.precision) not in (
        ("TIMESTAMP", 6),
        ("TIMESTAMP_LTZ", 6),
    ):
        return None
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
    first = numbers if is_date and transform == "day" else numbers - (numbers <= 0)
    starts = _dates if is_date else _micros
    least, end = starts(first, transform), starts(numbers + 1, transform)
    most = np.where(end == (_DATES if is_date else _MICROS).max, end, end - 1)
    kind = data_type.to_arrow()
    return _array(least, unknown, kind), _array(most, unknown, kind)


def _dates(numbers: Int64Array, transform: str) -> Int64Array:
    """The first date of each unit; the farthest that there is, if it is beyond."""
    return np.clip(_days(numbers, transform), _DATES.min, _DATES.max)


def _micros(numbers: Int64Array, transform: str) -> Int64Array:
    """The first microsecond of each unit; the farthest that there is, if it is beyond."""
    if transform == "hour":
        return numbers * _HOUR_IN_MICROS  # of 32 bits: always within 64
    days = _days(numbers, transform)
    micros = np.clip(days, -_LAST_DAY, _LAST_DAY) * _DAY_IN_MICROS
    return np.where(days < -_LAST_DAY, _MICROS.min, np.where(days > _LAST_DAY, _MICROS.max, micros))


def _days(numbers: Int64Array, transform: str) -> Int64Array:
    units = numbers.astype(f"datetime64[{UNITS[transform]}]")
    return units.astype("datetime64[D]").astype(np.int64)


def _array(numbers: Int64Array, unknown: BoolArray, arrow_type: Any) -> pa.Array:
    narrow = numbers.astype(np.int32) if pa.types.is_date32(arrow_type) else numbers
    return pa.array(narrow, mask=unknown).view(arrow_type)


Bounds: TypeAlias = "tuple[pa.Array, pa.Array]"
_WIDE_DIGITS: Final = 60
"""Of decimals in between: any of 38 digits and any width are added within them."""


def truncated_bounds(values: pa.Array, data_type: DataType, width: int) -> Bounds | None:
    """The least and the greatest value that is truncated to each value; None of other types.

    >>> least, most = truncated_bounds(pa.array([-10]), DataType("INT"), 10)
    >>> least[0].as_py(), most[0].as_py()
    (-10, -1)
    """
    match data_type.root:
        case "INT" | "BIGINT":
            return _integers(values.cast(data_type.to_arrow()), width)
        case "DECIMAL":
            return _decimals(values.cast(data_type.to_arrow()), width)
        case "VARCHAR":
            return _prefixes(values, pc.utf8_length(values), width)
        case "VARBINARY":
            return _prefixes(values, pc.binary_length(values), width)
        case _:
            return None


def _integers(values: pa.Array, width: int) -> Bounds:
    end = (1 << values.type.bit_width - 1) - 1
    numbers = values.fill_null(0).to_numpy().astype(np.int64)
    # Just above the least number of its type, Java rounds down to beyond it and comes out at the
    # other end: a value that is no multiple of the width may stand for any number.
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False) | (numbers % width != 0)
    step = width - 1
    most = np.where(numbers > end - step, end, np.minimum(numbers, end - step) + step)
    return (
        pa.array(numbers, mask=unknown).cast(values.type),
        pa.array(most, mask=unknown).cast(values.type),
    )


def _decimals(least: pa.Array, width: int) -> Bounds:
    kind = least.type
    step = pa.scalar(_decimal(width - 1, kind.scale), pa.decimal256(_WIDE_DIGITS, kind.scale))
    most = pc.add(least.cast(step.type), step)
    end = pa.scalar(_decimal(10**kind.precision - 1, kind.scale), most.type)
    return least, pc.if_else(pc.greater(most, end), end, most).cast(kind)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(f"{unscaled}E-{scale}")  # from text, since arithmetic would round


def _prefixes(values: pa.Array, lengths: pa.Array, width: int) -> Bounds:
    """A value of fewer than W characters is whole; any other may be followed by anything.

    What begins with `cat` is below `cau`, by its bytes. No byte of text is FF; binary that ends in
    it has no bound.
    """
    least = values.cast(pa.large_binary())
    present = least.fill_null(b"")
    is_cut = pc.greater_equal(lengths, width).fill_null(False).to_numpy(zero_copy_only=False)
    offsets = byte_offsets(present)
    data = np.frombuffer(present.buffers()[2] or b"", np.uint8).copy()
    last = offsets[1:][is_cut] - 1
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False)
    unknown[is_cut] |= data[last] == 0xFF
    data[last] += data[last] < 0xFF
    buffers = [None, present.buffers()[1], pa.py_buffer(data)]
    most = pa.Array.from_buffers(pa.large_binary(), len(present), buffers, offset=present.offset)
    return least.cast(pa.binary()), pc.if_else(unknown, None, most).cast(pa.binary())


_WITH_NUMBER: Final = re.compile(r"(bucket|truncate)\[([0-9]{1,10})\]")
_TEXT: Final = ("VARCHAR", "VARBINARY")


class TransformBounds(NamedTuple):
    """Bounds of a column in many files, both ends included; null where one is not known."""

    least: pa.Array
    """Of the Arrow type of the column, but text as its bytes."""
    most: pa.Array
    all_null: BoolArray
    """True where every row is null."""


def transform_bounds(
    transform: str, values: pa.Array | pa.ChunkedArray, data_type: DataType
) -> TransformBounds | None:
    """The bounds of a column, from the partition values of files of one and the same spec.

    Do not give values of files of other specs: theirs are null because they have none.

    Args:
        transform: As the spec has it.
        values: The partition value of each file.
        data_type: The type of the column.

    Returns:
        None if the transform says nothing, or the values are not of a type that it gives.

    >>> years = transform_bounds("year", pa.array([54, None]), DataType("DATE"))
    >>> [str(years.least[0]), str(years.most[0]), years.all_null.tolist()]
    ['2024-01-01', '2024-12-31', [False, True]]
    """
    values = plain(values)
    try:
        bounds = _bounds(transform, values, data_type)
    except pa.ArrowException:  # values of a type that the transform never gives
        return None
    if bounds is None:
        return None
    all_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    if transform.startswith("truncate") and data_type.root == "DECIMAL":
        # Rounded down, a number may have a digit too many for its type: engines show null then.
        all_null = np.zeros(len(values), bool)
    return TransformBounds(*bounds, all_null)


def bucket_count(transform: str) -> int | None:
    """How many buckets there are; None if the transform is no `bucket`.

    >>> bucket_count("bucket[16]"), bucket_count("day")
    (16, None)
    """
    name, number = _parsed(transform)
    return number or None if name == "bucket" else None


def _parsed(transform: str) -> tuple[str, int]:
    """A transform and its number, 0 if there is none."""
    found = _WITH_NUMBER.fullmatch(transform)
    return (found[1], int(found[2])) if found else (transform, 0)


def _bounds(
    transform: str, values: pa.Array, data_type: DataType
) -> tuple[pa.Array, pa.Array] | None:
    name, number = _parsed(transform)
    if name == "identity":
        return _identity(values, data_type)
    if name in UNITS:
        return time_bounds(name, values, data_type)
    if name == "truncate" and number:
        return truncated_bounds(values, data_type, number)
    if name == "bucket" and number:
        kind = pa.binary() if data_type.root in _TEXT else data_type.to_arrow()
        return pa.nulls(len(values), kind), pa.nulls(len(values), kind)
    return None


def _identity(values: pa.Array, data_type: DataType) -> tuple[pa.Array, pa.Array] | None:
    if data_type.children:
        return None
    values = values.cast(pa.binary() if data_type.root in _TEXT else data_type.to_arrow())
    if data_type.root not in FLOAT_TYPES:
        return values, values
    # -0.0 equals 0.0, though they are two partitions; NaN is no bound.
    values = pc.if_else(pc.is_nan(values), None, values)
    least, most = (
        pc.if_else(pc.equal(values, 0.0), pa.scalar(zero, values.type), values)
        for zero in (-0.0, 0.0)
    )
    return least, most


_NUMBERS: Final = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
}

_NO_SIGN: Final = np.int32(0x7FFFFFFF)


def has_buckets(data_type: DataType) -> bool:
    """Whether values of a type have a bucket: booleans, floats and nested ones have none."""
    return data_type.root in (*_NUMBERS, *_TEXT, "DECIMAL")


def bucket_of(values: pa.Array | pa.ChunkedArray, data_type: DataType, count: int) -> Int32Array:
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


def _hashes(values: pa.Array, data_type: DataType) -> Int32Array:
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


def _of_bytes(values: ByteValues) -> Int32Array:
    view = values.data.data
    ends = zip(values.starts, np.broadcast_to(values.lengths, len(values)), strict=True)
    hashes = [mmh3.mmh3_32_sintdigest(view[start : start + length]) for start, length in ends]
    return np.array(hashes, np.int32)
