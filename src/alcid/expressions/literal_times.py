"""The keys of a DATE, TIME or TIMESTAMP column that equal a literal.

A literal is first a `WallClock` (nanoseconds, in no zone) or an instant (nanoseconds since the
epoch); nothing is rounded. Where there is no key range, functions return words that say why.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

import numpy as np

from alcid.config import current_settings
from alcid.expressions.casts_from_text import (
    NANOS_PER_DAY,
    NANOS_PER_SECOND,
    SessionTimestamp,
    WallClock,
    Zone,
    find_zone,
    instant_of,
    moved_forward,
    to_date,
    to_time,
    to_timestamp,
    wall_of,
)
from alcid.formats.file_index.keys import Key


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of a column that equal a literal: from `begin` to before `end`.

    | comparison | keys                  | when not exact          |
    |------------|-----------------------|-------------------------|
    | `= x`      | `begin <= key < end`  | the same                |
    | `< x`      | `key < begin`         | `key < end`             |
    | `<= x`     | `key < end`           | the same                |
    | `> x`      | `key >= end`          | `key >= begin`          |
    | `>= x`     | `key >= begin`        | the same                |
    | `<> x`     | all others            | every key               |
    """

    begin: Key
    """The least key that is not below the literal."""
    end: Key
    """The least key above the literal: `begin` when no key equals it."""
    exact: bool = True
    """False when a key from `begin` to `end` may or may not equal the literal."""


def either(first: KeyRange, second: KeyRange) -> KeyRange:
    """The key range of a literal that may have either of two key ranges.

    >>> either(KeyRange(5, 6), KeyRange(6, 6))
    KeyRange(begin=5, end=6, exact=False)
    """
    if first == second:
        return first
    keys = [int(key) for at in (first, second) for key in (at.begin, at.end)]
    return KeyRange(min(keys), max(keys), exact=False)


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


def date_range(value: object, mixed: bool = False) -> KeyRange | str | None:
    """The key range among days; a timestamp is compared with the midnights.

    In a list with an instant, all that is `mixed` with it is an instant too, the column's days
    among them. A day that the zone skipped is then the same as the next one.
    """
    if isinstance(value, str):
        return _day_range(value, mixed)
    clock = wall_clock(value, _NANOS)
    if not isinstance(clock, WallClock):
        return clock
    if clock.zone is not None or isinstance(value, SessionTimestamp):
        return _among_days(clock)
    key_range = _among(clock.nanos, NANOS_PER_DAY)
    if not mixed:
        return key_range
    beside = _among_days(clock)
    return beside if isinstance(beside, str) else either(key_range, beside)


def _day_range(text: str, mixed: bool) -> KeyRange | str:
    days = to_date(text)
    if days is None:
        return "it is no date"
    key_range = KeyRange(days, days + 1)
    if not mixed:
        return key_range
    # As a timestamp its time of the day counts; as an instant its zone, too.
    clock = wall_clock(text, _MICROS)
    beside = _among_days(clock) if isinstance(clock, WallClock) else key_range
    return replace(key_range if isinstance(beside, str) else either(key_range, beside), exact=False)


def time_range(value: object, precision: int) -> KeyRange | str | None:
    """The key range among milliseconds of the day."""
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


def timestamp_range(
    value: object, precision: int, local: bool, mixed: bool = False
) -> KeyRange | str | None:
    """The key range among those of a TIMESTAMP or, if `local`, of a TIMESTAMP_LTZ."""
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


def _among(nanos: int, unit: int, truncated: bool = False) -> KeyRange:
    """The key range among keys that are multiples of `unit`, or what is left of finer values."""
    key, rest = divmod(nanos, unit)
    if truncated:
        return KeyRange(key, key + 1, exact=False)
    return KeyRange(key + 1 if rest else key, key + 1)


def session_zone() -> Zone | str:
    """The zone of `alcid.config.timezone`; else words that say that it is none."""
    name = current_settings().timezone
    return find_zone(name) or f"alcid.config.timezone {name!r} is no zone"


def instant_of_clock(clock: WallClock) -> int | str:
    """The instant when its zone, or the session's, shows a wall clock; else why there is none."""
    if clock.zone is None:
        zone = session_zone()
    else:
        zone = find_zone(clock.zone) or f"{clock.zone!r} is no zone"
    if isinstance(zone, str):
        return zone
    return instant_of(clock.nanos, zone)


def _among_days(clock: WallClock) -> KeyRange | str:
    """An instant among days, alone or in a list."""
    instant, zone = instant_of_clock(clock), session_zone()
    if isinstance(instant, str):
        return instant
    if isinstance(zone, str):
        return zone
    return either(day_of_instant(instant, zone), days_at_instant(instant, zone))


def day_of_instant(instant: int, zone: Zone) -> KeyRange:
    """A lone instant among days: Spark makes a day of it, if that begins at this instant."""
    day = wall_of(instant, zone) // NANOS_PER_DAY
    return KeyRange(day if instant_of(day * NANOS_PER_DAY, zone) == instant else day + 1, day + 1)


def days_at_instant(instant: int, zone: Zone) -> KeyRange:
    """An instant of a list among days, of which Spark makes instants: their midnights.

    They are those of the zone, and two where it skipped a day. Nor need they part days as its
    clock does: it may show 23:30 again after midnight.
    """
    day = wall_of(instant, zone) // NANOS_PER_DAY
    midnights = {near: instant_of(near * NANOS_PER_DAY, zone) for near in range(day - 1, day + 3)}
    return KeyRange(
        min(near for near, at in midnights.items() if at >= instant),
        min(near for near, at in midnights.items() if at > instant),
    )


def _among_walls(clock: WallClock, unit: int, truncated: bool) -> KeyRange | str:
    """An instant of the session's zone among wall clocks, which Spark compares as instants.

    Wall clocks that the zone skipped are the same instants as later ones. So in the day after the
    clock was put forward, the key range reaches back by the gap, and is not exact.
    """
    instant, zone = instant_of_clock(clock), session_zone()
    if isinstance(instant, str):
        return instant
    if isinstance(zone, str):
        return zone
    wall = wall_of(instant, zone)
    key_range = _among(wall, unit, truncated)
    gap = moved_forward(wall, zone)
    if not gap:
        return key_range
    return KeyRange((wall - gap) // unit, key_range.end, exact=False)
