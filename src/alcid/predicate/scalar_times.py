"""Timestamps of a column in the session's zone: wall clocks, instants, fields, truncation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from alcid.errors import PredicateError
from alcid.predicate.moments import session_zone
from alcid.predicate.scalar_values import DATE, INT, TIMESTAMP_LTZ, Values
from alcid.predicate.zones import Zone, instant_of, wall_of

__all__ = [
    "FIELDS",
    "UNITS",
    "clock_field",
    "date_field",
    "dates_of",
    "instants_of",
    "truncated",
    "walls_of",
]

Micros = npt.NDArray[np.int64]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_CLOCK = {"hour": 3600 * _SECOND, "minute": 60 * _SECOND, "second": _SECOND}
_UNITS: dict[str, tuple[str, ...]] = {
    "year": ("year", "yyyy", "yy"),
    "quarter": ("quarter",),
    "month": ("month", "mm", "mon"),
    "week": ("week",),
    "day": ("day", "dd"),
    "hour": ("hour",),
    "minute": ("minute",),
    "second": ("second",),
    "millisecond": ("millisecond",),
    "microsecond": ("microsecond",),
}
UNITS = {name: unit for unit, names in _UNITS.items() for name in names}
"""What `date_trunc` takes, in lower case, and the unit that it means."""
FIELDS = {
    "year": "year",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
    "quarter": "quarter",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
"""Functions that give a part of a date or of a clock, and the part."""
_MONDAY = 3  # 1970-01-01 was a Thursday


def walls_of(instants: Micros) -> Micros:
    """What the session's zone shows at instants."""
    zone = _zone()
    return _by_day(instants, lambda instant: wall_of(instant * 1000, zone) // 1000)


def instants_of(walls: Micros) -> Micros:
    """The instants when the session's zone shows wall clocks."""
    zone = _zone()
    return _by_day(walls, lambda wall: instant_of(wall * 1000, zone) // 1000)


def _zone() -> Zone:
    zone = session_zone()
    if isinstance(zone, str):
        raise PredicateError(zone)
    return zone


def _by_day(moments: Micros, convert: Callable[[int], int]) -> Micros:
    """Moments converted: those of a day by one offset, where its two ends have the same."""
    days, picks = np.unique(moments // _DAY, return_inverse=True)
    ends = [
        (convert(day * _DAY) - day * _DAY, convert((day + 1) * _DAY) - (day + 1) * _DAY)
        for day in days.tolist()
    ]
    offsets = np.array(ends, np.int64).reshape(-1, 2)
    steady = offsets[:, 0] == offsets[:, 1]
    converted: Micros = moments + offsets[:, 0][picks]
    changing = np.flatnonzero(~steady[picks])
    converted[changing] = [convert(moment) for moment in moments[changing].tolist()]
    return converted


def date_field(part: str, dates: Values) -> Values:
    """`year`, `quarter`, `month` or `day` of a DATE."""
    days = dates.data.astype("M8[D]")
    months = days.astype("M8[M]").astype(np.int64)
    if part == "day":
        found = (days - days.astype("M8[M]")).astype(np.int64) + 1
    elif part == "year":
        found = months // 12 + 1970
    else:
        found = months % 12 // (3 if part == "quarter" else 1) + 1
    return Values(INT, found, dates.valid)


def clock_field(part: str, walls: Micros, values: Values) -> Values:
    """`hour`, `minute` or `second` of wall clocks."""
    within = walls % _DAY
    found = within // _CLOCK[part] % (24 if part == "hour" else 60)
    return Values(INT, found, values.valid)


def truncated(unit: str, values: Values) -> Values:
    """`date_trunc` of TIMESTAMP_LTZ, by the wall clock of the session's zone."""
    instants = values.data
    if unit in ("microsecond", "millisecond", "second"):
        size = {"microsecond": 1, "millisecond": 1000, "second": _SECOND}[unit]
        return Values(TIMESTAMP_LTZ, instants - instants % size, values.valid)
    walls = walls_of(instants)
    if unit in ("minute", "hour", "day"):
        size = _DAY if unit == "day" else _CLOCK[unit]
        begun = walls - walls % size
        # As java.time does: an hour that the zone shows twice keeps its own offset.
        same = begun - (walls - instants)
        fits = walls_of(same) == begun
        return Values(TIMESTAMP_LTZ, np.where(fits, same, instants_of(begun)), values.valid)
    days = _first_day(unit, walls // _DAY)
    return Values(TIMESTAMP_LTZ, instants_of(days * _DAY), values.valid)


def _first_day(unit: str, days: Micros) -> Micros:
    if unit == "week":
        return days - (days + _MONDAY) % 7
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    size = {"month": 1, "quarter": 3, "year": 12}[unit]
    first: Micros = (months - months % size).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return first


def dates_of(values: Values) -> Values:
    """The days of wall clocks."""
    return Values(DATE, values.data // _DAY, values.valid)
