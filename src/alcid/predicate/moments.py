"""Where a date or a time lies among the keys of a DATE, TIME or TIMESTAMP column.

Each function gives the place, or says in words why there is none. A literal is first a `WallClock`
(nanoseconds, in no zone) or an instant (nanoseconds since the epoch); nothing is rounded.
"""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np

from alcid import options
from alcid.predicate.numbers import Place, either
from alcid.predicate.text import (
    NANOS_PER_DAY,
    NANOS_PER_SECOND,
    SessionTimestamp,
    WallClock,
    to_date,
    to_time,
    to_timestamp,
)
from alcid.predicate.zones import Zone, find_zone, instant_of, moved_forward, wall_of

__all__ = [
    "day_of_instant",
    "days_at_instant",
    "instant_of_clock",
    "place_of_date",
    "place_of_time",
    "place_of_timestamp",
    "session_zone",
    "wall_clock",
]

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.date().toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_NANOS_PER_MILLI, _NANOS_PER_MICRO = 1_000_000, 1_000
_MILLIS, _MICROS, _NANOS = 3, 6, 9
_NANOS_PER = {
    "h": 3600 * NANOS_PER_SECOND,
    "m": 60 * NANOS_PER_SECOND,
    "s": NANOS_PER_SECOND,
    "ms": _NANOS_PER_MILLI,
    "us": _NANOS_PER_MICRO,
    "ns": 1,
}


def place_of_date(value: object, mixed: bool = False) -> Place | str | None:
    """The place among days; a timestamp is compared with the midnights.

    In a list with an instant, all that is `mixed` with it is an instant too, the column's days
    among them. A day that the zone skipped is then the same as the next one.
    """
    if isinstance(value, str):
        return _place_of_day(value, mixed)
    clock = wall_clock(value, _NANOS)
    if not isinstance(clock, WallClock):
        return clock
    if clock.zone is not None or isinstance(value, SessionTimestamp):
        return _among_days(clock)
    place = _among(clock.nanos, NANOS_PER_DAY)
    if not mixed:
        return place
    beside = _among_days(clock)
    return beside if isinstance(beside, str) else either(place, beside)


def _place_of_day(text: str, mixed: bool) -> Place | str:
    days = to_date(text)
    if days is None:
        return "it is no date"
    place = Place(days, days + 1)
    if not mixed:
        return place
    # As a timestamp its time of the day counts; as an instant its zone, too.
    clock = wall_clock(text, _MICROS)
    beside = _among_days(clock) if isinstance(clock, WallClock) else place
    return replace(place if isinstance(beside, str) else either(place, beside), certain=False)


def place_of_time(value: object, precision: int) -> Place | str | None:
    """The place among milliseconds of the day."""
    if isinstance(value, str):
        nanos = to_time(value, _NANOS if precision > _MICROS else _MICROS)
        if nanos is None:
            return "it is no time of the day"
    elif isinstance(value, datetime.time):
        if value.tzinfo is not None:
            return "a time of the day has no zone"
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        nanos = seconds * NANOS_PER_SECOND + value.microsecond * _NANOS_PER_MICRO
    else:
        return None
    return _among(nanos, _NANOS_PER_MILLI, truncated=precision > _MILLIS)


def place_of_timestamp(
    value: object, precision: int, local: bool, mixed: bool = False
) -> Place | str | None:
    """The place among the milliseconds or microseconds of a TIMESTAMP, or `local` TIMESTAMP_LTZ."""
    unit = _NANOS_PER_MILLI if precision <= _MILLIS else _NANOS_PER_MICRO
    truncated = precision > _MICROS
    clock = wall_clock(value, _NANOS if truncated else _MICROS)
    if not isinstance(clock, WallClock):
        return clock
    if local:
        instant = instant_of_clock(clock)
        return instant if isinstance(instant, str) else _among(instant, unit, truncated)
    if clock.zone is not None:
        return "a TIMESTAMP has no zone"
    if mixed or isinstance(value, SessionTimestamp):
        return _among_walls(clock, unit, truncated)
    return _among(clock.nanos, unit, truncated)


def wall_clock(value: object, digits: int) -> WallClock | str | None:
    """What a literal shows, with the zone that it names; else why it shows nothing."""
    match value:
        case str() | SessionTimestamp():
            text = value if isinstance(value, str) else value.text
            # SQL's TIMESTAMP '...' has microseconds, whatever it is compared with.
            return to_timestamp(text, digits if isinstance(value, str) else _MICROS) or (
                "it is no timestamp"
            )
        case datetime.datetime():
            offset = value.utcoffset()
            shown = value.replace(tzinfo=None)
            nanos = (shown - _EPOCH) // _MICROSECOND * _NANOS_PER_MICRO
            nanos += getattr(value, "nanosecond", 0)  # pandas has them, `datetime` has not
            if offset is None:
                return WallClock(nanos)
            return WallClock(nanos - offset // _MICROSECOND * _NANOS_PER_MICRO, "UTC")
        case datetime.date():
            return WallClock((value.toordinal() - _EPOCH_DAY) * NANOS_PER_DAY)
        case np.datetime64() if np.datetime_data(value.dtype)[0] not in ("ps", "fs", "as"):
            return WallClock(_nanos_of(value))
    return None


def _nanos_of(moment: np.datetime64) -> int:
    """A datetime64 in nanoseconds, of which Python's integers hold more than 64 bits."""
    unit, count = np.datetime_data(moment.dtype)
    if unit in ("Y", "M", "W", "D"):
        return int(moment.astype("M8[D]").astype("i8")) * NANOS_PER_DAY
    return int(moment.astype("i8")) * count * _NANOS_PER[unit]


def _among(nanos: int, unit: int, truncated: bool = False) -> Place:
    """The place among keys that are multiples of `unit`, or what is left of finer values."""
    key, rest = divmod(nanos, unit)
    if truncated:
        return Place(key, key + 1, certain=False)
    return Place(key + 1 if rest else key, key + 1)


def session_zone() -> Zone | str:
    """The zone of `alcid.options.timezone`; else words that say that it is none."""
    name = options.current_settings().timezone
    return find_zone(name) or f"alcid.options.timezone {name!r} is no zone"


def instant_of_clock(clock: WallClock) -> int | str:
    """The instant when its zone, or the session's, shows a wall clock; else why there is none."""
    if clock.zone is None:
        zone = session_zone()
    else:
        zone = find_zone(clock.zone) or f"{clock.zone!r} is no zone"
    if isinstance(zone, str):
        return zone
    return instant_of(clock.nanos, zone)


def _among_days(clock: WallClock) -> Place | str:
    """An instant among days, alone or in a list."""
    instant, zone = instant_of_clock(clock), session_zone()
    if isinstance(instant, str):
        return instant
    if isinstance(zone, str):
        return zone
    return either(day_of_instant(instant, zone), days_at_instant(instant, zone))


def day_of_instant(instant: int, zone: Zone) -> Place:
    """A lone instant among days: Spark makes a day of it, if that begins at this instant."""
    day = wall_of(instant, zone) // NANOS_PER_DAY
    return Place(day if instant_of(day * NANOS_PER_DAY, zone) == instant else day + 1, day + 1)


def days_at_instant(instant: int, zone: Zone) -> Place:
    """An instant of a list among days, of which Spark makes instants: their midnights.

    They are those of the zone, and two where it skipped a day. Nor need they part days as its
    clock does: it may show 23:30 again after midnight.
    """
    day = wall_of(instant, zone) // NANOS_PER_DAY
    midnights = {near: instant_of(near * NANOS_PER_DAY, zone) for near in range(day - 1, day + 3)}
    return Place(
        min(near for near, at in midnights.items() if at >= instant),
        min(near for near, at in midnights.items() if at > instant),
    )


def _among_walls(clock: WallClock, unit: int, truncated: bool) -> Place | str:
    """An instant of the session's zone among wall clocks, which Spark compares as instants.

    Wall clocks that the zone skipped are the same instants as later ones. So in the day after the
    clock was put forward, the place reaches back by the gap, and is not certain.
    """
    instant, zone = instant_of_clock(clock), session_zone()
    if isinstance(instant, str):
        return instant
    if isinstance(zone, str):
        return zone
    wall = wall_of(instant, zone)
    place = _among(wall, unit, truncated)
    gap = moved_forward(wall, zone)
    if not gap:
        return place
    return Place((wall - gap) // unit, place.end, certain=False)
