"""INT96, in which Spark, Paimon and Impala write timestamps, decoded exactly.

    i64 nanoseconds of the day | i32 Julian day, which is 2,440,588 for 1970-01-01

Arrow makes one int64 of the two, and of some values a wrong one: nanoseconds wrap around outside of
the years 1677 to 2262, and microseconds land in the year 2554 where the nanoseconds of the day are
negative, as Paimon's Java writes all that is before 1970. So Arrow is shown 12 bytes of
FIXED_LEN_BYTE_ARRAY, which are stored in the same way, and the numbers are put together here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from alcid._arrays import (
    TICKS_PER_SECOND,
    BoolArray,
    Int64Array,
    replace_leaves,
)
from alcid.datafiles.parquet.footer import END
from alcid.datafiles.parquet.schema import Field
from alcid.datafiles.parquet.thrift import StructReader, get, varint
from alcid.errors import UnsupportedError

_INT96, _FIXED_BYTES = 3, 7  # physical types of Parquet
_RAW = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH = 2_440_588
_SECONDS_PER_DAY = 86_400
_BOUNDS = -(1 << 63), (1 << 63) - 1
_NANOS_PER_DAY = _SECONDS_PER_DAY * 10**9


def has_int96(field: Field) -> bool:
    """Whether a column is INT96, or has some inside."""
    return any(leaf.physical_type == _INT96 for leaf in field.leaves)


@lru_cache(maxsize=256)
def as_bytes(field: Field) -> Field:
    """The column with FIXED_LEN_BYTE_ARRAY in the place of INT96.

    Raises:
        FormatError: Its schema elements are damaged.
    """
    leaves = tuple(
        replace(leaf, physical_type=_FIXED_BYTES) if leaf.physical_type == _INT96 else leaf
        for leaf in field.leaves
    )
    elements = tuple(_element(element, field.name) for element in field.elements)
    return replace(field, elements=elements, leaves=leaves)


def footer_as_bytes(footer: bytes, file: str) -> bytes:
    """A footer, its length and the magic, with FIXED_LEN_BYTE_ARRAY in the place of every INT96.

    Raises:
        FormatError: Its schema is damaged.
    """
    ranges = StructReader(footer, name=file).ranges(2)
    elements = [_element(footer[begin:end], file) for begin, end in ranges]
    head, rest = footer[: ranges[0][0]], footer[ranges[-1][1] : -END]
    changed = b"".join([head, *elements, rest])
    return changed + len(changed).to_bytes(4, "little") + footer[-END + 4 :]


def _element(element: bytes, file: str) -> bytes:
    """A schema element; of INT96 only what is needed to read it: repetition and name."""
    values = StructReader(element, name=file).struct()
    if 5 in values or values.get(1) != _INT96:  # with children it has no type of its own
        return element
    name = get(values, 4, bytes, file=file)
    repetition = get(values, 3, int, 0, file=file)
    parts = b"\x15", varint(2 * _FIXED_BYTES), b"\x15", varint(2 * _RAW.itemsize)
    return b"".join(
        [*parts, b"\x15", varint(2 * repetition), b"\x18", varint(len(name)), name, b"\0"]
    )


def restore_int96(table: pa.Table, fields: Mapping[int, pa.Field], file: str) -> pa.Table:
    """A table that was read as bytes, with the columns that Arrow would have made of INT96.

    What does not fit a tick is cut off towards 1970, as Spark does it.

    Args:
        table: The rows.
        fields: The columns with INT96 by their places, as Arrow describes them.
        file: Where the rows are from.

    Raises:
        UnsupportedError: A value does not fit the type; the error names file and column.
    """
    for number, field in fields.items():
        try:
            chunks = [
                replace_leaves(chunk, field.type, _timestamps)
                for chunk in table.column(number).chunks
            ]
        except _OutsideError as error:
            raise UnsupportedError(f"{file}: column {field.name}: {error}") from None
        table = table.set_column(number, field, pa.chunked_array(chunks, field.type))
    return table


class _OutsideError(Exception):
    """A timestamp that does not fit."""


def _timestamps(array: pa.FixedSizeBinaryArray, target: pa.TimestampType) -> pa.Array:
    """Days and nanoseconds as ticks since 1970; whatever stands where a null is does not matter."""
    if not len(array):
        return pa.array([], target)
    validity, data = array.buffers()
    raw = np.frombuffer(data, _RAW, len(array))
    nanos, days = raw["nanos"].copy(), raw["day"].astype(np.int64) - _EPOCH
    ticks_per_day = _SECONDS_PER_DAY * TICKS_PER_SECOND[target.unit]
    nanos_per_tick = _NANOS_PER_DAY // ticks_per_day
    rounded_up: BoolArray | bool = False
    if nanos.min() < 0 or nanos.max() >= _NANOS_PER_DAY:
        rounded_up = (nanos < 0) & (nanos % nanos_per_tick != 0)
        more_days, nanos = np.divmod(nanos, _NANOS_PER_DAY)
        days += more_days
    ticks = nanos // nanos_per_tick + rounded_up if nanos_per_tick > 1 else nanos
    first_day, last_day = (bound // ticks_per_day for bound in _BOUNDS)
    if days.min() <= first_day or days.max() >= last_day:
        outside = _outside(days, ticks, ticks_per_day)
        outside &= array.is_valid().to_numpy(zero_copy_only=False)
        if outside.any():
            raise _OutsideError(_refusal(int(days[outside.argmax()]), target))
    ticks += days * ticks_per_day  # wraps around twice for the first day that has some ticks
    return pa.Array.from_buffers(
        target, len(array), [validity, pa.py_buffer(ticks)], array.null_count
    )


def _outside(days: Int64Array, ticks: Int64Array, ticks_per_day: int) -> BoolArray:
    """Where an int64 does not hold so many ticks."""
    (first_day, first_tick), (last_day, last_tick) = (
        divmod(bound, ticks_per_day) for bound in _BOUNDS
    )
    outside: BoolArray = (days < first_day) | (days > last_day)
    outside |= (days == first_day) & (ticks < first_tick)
    outside |= (days == last_day) & (ticks > last_tick)
    return outside


def _refusal(day: int, target: pa.TimestampType) -> str:
    years = "the years 1677 to 2262" if target.unit == "ns" else "years that Spark has"
    return f"found INT96 of {np.datetime64(day, 'D')}, expected {years}, which {target} reaches"
