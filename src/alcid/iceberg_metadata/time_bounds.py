"""Bounds of dates and timestamps, from the year, month, day or hour of their partition.

These count from 1970. Early writers rounded moments before 1970 up instead of down: what is marked
with hour 0 may be of hour -1, and so on below. Iceberg's own planning allows for that, and so do
these bounds; whole days of a date were never rounded.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import TICKS_PER_SECOND
from alcid.types import DataType

__all__ = ["UNITS", "time_bounds"]

Longs: TypeAlias = npt.NDArray[np.int64]

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


def _dates(numbers: Longs, transform: str) -> Longs:
    """The first date of each unit; the farthest that there is, if it is beyond."""
    return np.clip(_days(numbers, transform), _DATES.min, _DATES.max)


def _micros(numbers: Longs, transform: str) -> Longs:
    """The first microsecond of each unit; the farthest that there is, if it is beyond."""
    if transform == "hour":
        return numbers * _HOUR_IN_MICROS  # of 32 bits: always within 64
    days = _days(numbers, transform)
    micros = np.clip(days, -_LAST_DAY, _LAST_DAY) * _DAY_IN_MICROS
    return np.where(days < -_LAST_DAY, _MICROS.min, np.where(days > _LAST_DAY, _MICROS.max, micros))


def _days(numbers: Longs, transform: str) -> Longs:
    units = numbers.astype(f"datetime64[{UNITS[transform]}]")
    return units.astype("datetime64[D]").astype(np.int64)


def _array(numbers: Longs, unknown: npt.NDArray[np.bool_], arrow_type: Any) -> pa.Array:
    narrow = numbers.astype(np.int32) if pa.types.is_date32(arrow_type) else numbers
    return pa.array(narrow, mask=unknown).view(arrow_type)
