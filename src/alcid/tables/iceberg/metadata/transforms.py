"""Partition transforms: the bounds of a column that follow from a partition value.

| transform               | a partition value `v` means                                         |
|-------------------------|---------------------------------------------------------------------|
| identity                | every value is `v`                                                  |
| truncate[W]             | numbers from `v` to `v + W - 1`; text that begins with `v`          |
| year, month, day, hour  | timestamps within that period                                       |
| bucket[N]               | values whose hash is in bucket `v`: no bounds                       |
| void, any other         | nothing                                                             |

A null partition value means that all values are null.

Years to hours count from 1970. Early writers rounded timestamps before 1970 up instead of down: a
value in partition hour 0 may belong to hour -1, and so on below. Iceberg's planning allows for
that, and so do these bounds; the days of a date were never rounded.

`truncate[W]` rounds a number down to a multiple of W (a decimal by its unscaled value); a string
keeps its first W characters, binary its first W bytes.

`bucket[N]` takes MurmurHash3 (x86, 32 bits, seed 0) of a value:

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

UNITS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
"""The NumPy unit of each transform."""
_HOUR_IN_MICROS: Final = 3_600 * TICKS_PER_SECOND["us"]
_DAY_IN_MICROS: Final = 24 * _HOUR_IN_MICROS
_DATES: Final = np.iinfo(np.int32)
_MICROS: Final = np.iinfo(np.int64)
_LAST_DAY: Final = _MICROS.max // _DAY_IN_MICROS
"""The last day whose microseconds fit into 64 bits."""


def time_bounds(
    transform: str, values: pa.Array, data_type: DataType
) -> tuple[pa.Array, pa.Array] | None:
    """The first and last date or microsecond of each partition; None for other types.

    >>> lower, upper = time_bounds("hour", pa.array([1]), DataType("TIMESTAMP", precision=6))
    >>> str(lower[0]), str(upper[0])
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
    lower, end = starts(first, transform), starts(numbers + 1, transform)
    upper = np.where(end == (_DATES if is_date else _MICROS).max, end, end - 1)
    kind = data_type.to_arrow()
    return _array(lower, unknown, kind), _array(upper, unknown, kind)


def _dates(numbers: Int64Array, transform: str) -> Int64Array:
    """The first date of each period, clipped to the range of dates."""
    return np.clip(_days(numbers, transform), _DATES.min, _DATES.max)


def _micros(numbers: Int64Array, transform: str) -> Int64Array:
    """The first microsecond of each period, clipped to the range of timestamps."""
    if transform == "hour":
        return numbers * _HOUR_IN_MICROS  # 32 bits: always fits into 64
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
"""Precision of intermediate decimals: enough to add any width to any 38 digits."""


def truncated_bounds(values: pa.Array, data_type: DataType, width: int) -> Bounds | None:
    """The minimum and maximum of what is truncated to each value; None for other types.

    >>> lower, upper = truncated_bounds(pa.array([-10]), DataType("INT"), 10)
    >>> lower[0].as_py(), upper[0].as_py()
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
    # Just above the minimum of the type, Java rounds down below it and wraps around to the
    # maximum: a value that is not a multiple of the width may stand for any number.
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False) | (numbers % width != 0)
    step = width - 1
    upper = np.where(numbers > end - step, end, np.minimum(numbers, end - step) + step)
    return (
        pa.array(numbers, mask=unknown).cast(values.type),
        pa.array(upper, mask=unknown).cast(values.type),
    )


def _decimals(lower: pa.Array, width: int) -> Bounds:
    kind = lower.type
    step = pa.scalar(_decimal(width - 1, kind.scale), pa.decimal256(_WIDE_DIGITS, kind.scale))
    upper = pc.add(lower.cast(step.type), step)
    end = pa.scalar(_decimal(10**kind.precision - 1, kind.scale), upper.type)
    return lower, pc.if_else(pc.greater(upper, end), end, upper).cast(kind)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(f"{unscaled}E-{scale}")  # from text, since arithmetic would round


def _prefixes(values: pa.Array, lengths: pa.Array, width: int) -> Bounds:
    """Bounds of prefixes: a value of fewer than W characters is complete, others may go on.

    Whatever begins with `cat` is below `cau` in byte order. UTF-8 has no byte FF; binary that ends
    in it has no upper bound.
    """
    lower = values.cast(pa.large_binary())
    present = lower.fill_null(b"")
    is_cut = pc.greater_equal(lengths, width).fill_null(False).to_numpy(zero_copy_only=False)
    offsets = byte_offsets(present)
    data = np.frombuffer(present.buffers()[2] or b"", np.uint8).copy()
    last = offsets[1:][is_cut] - 1
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False)
    unknown[is_cut] |= data[last] == 0xFF
    data[last] += data[last] < 0xFF
    buffers = [None, present.buffers()[1], pa.py_buffer(data)]
    upper = pa.Array.from_buffers(pa.large_binary(), len(present), buffers, offset=present.offset)
    return lower.cast(pa.binary()), pc.if_else(unknown, None, upper).cast(pa.binary())


_WITH_NUMBER: Final = re.compile(r"(bucket|truncate)\[([0-9]{1,10})\]")
_TEXT: Final = ("VARCHAR", "VARBINARY")


class TransformBounds(NamedTuple):
    """Inclusive bounds of a column in many files; null where unknown."""

    lower: pa.Array
    """Of the Arrow type of the column; strings as bytes."""
    upper: pa.Array
    all_null: BoolArray
    """True where every row is null."""


def transform_bounds(
    transform: str, values: pa.Array | pa.ChunkedArray, data_type: DataType
) -> TransformBounds | None:
    """The bounds of a column from the partition values of files of the same spec.

    Files of other specs must not be included: their values are null because they have none.

    Args:
        transform: The transform in the spec.
        values: The partition value of each file.
        data_type: The type of the column.

    Returns:
        None if the transform gives no bounds, or the values are not of its type.

    >>> years = transform_bounds("year", pa.array([54, None]), DataType("DATE"))
    >>> [str(years.lower[0]), str(years.upper[0]), years.all_null.tolist()]
    ['2024-01-01', '2024-12-31', [False, True]]
    """
    values = plain(values)
    try:
        bounds = _bounds(transform, values, data_type)
    except pa.ArrowException:  # values that the transform cannot produce
        return None
    if bounds is None:
        return None
    all_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    if transform.startswith("truncate") and data_type.root == "DECIMAL":
        # Rounded down, a number may exceed the precision of its type: engines return null then.
        all_null = np.zeros(len(values), bool)
    return TransformBounds(*bounds, all_null)


def bucket_count(transform: str) -> int | None:
    """The number of buckets; None for other transforms.

    >>> bucket_count("bucket[16]"), bucket_count("day")
    (16, None)
    """
    name, number = _parsed(transform)
    return number or None if name == "bucket" else None


def _parsed(transform: str) -> tuple[str, int]:
    """The name of a transform and its parameter, 0 if there is none."""
    match = _WITH_NUMBER.fullmatch(transform)
    return (match[1], int(match[2])) if match else (transform, 0)


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
    lower, upper = (
        pc.if_else(pc.equal(values, 0.0), pa.scalar(zero, values.type), values)
        for zero in (-0.0, 0.0)
    )
    return lower, upper


_NUMBERS: Final = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
}

_NO_SIGN: Final = np.int32(0x7FFFFFFF)


def has_buckets(data_type: DataType) -> bool:
    """Whether a type supports `bucket`: booleans, floats and nested types do not."""
    return data_type.root in (*_NUMBERS, *_TEXT, "DECIMAL")


def bucket_of(values: pa.Array | pa.ChunkedArray, data_type: DataType, count: int) -> Int32Array:
    """The bucket of each literal of a query; too slow for whole columns of strings.

    Args:
        values: The values, without null, which is in no bucket.
        data_type: The type of the column: 1 as INT and as DECIMAL has different buckets.
        count: The number of buckets, N.

    Raises:
        UnsupportedError: The type has no buckets, or a value is null or of another type.

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
