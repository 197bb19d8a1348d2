"""Text as Spark's ANSI cast reads it: booleans, numbers, dates, times and timestamps.

Each function gives None for text that Spark's cast would refuse. Spaces and control characters
around the text do not count. Years go beyond those of `datetime`, so a date is a number of days and
a moment a number of nanoseconds.

| function       | takes                                                                        |
|----------------|------------------------------------------------------------------------------|
| `to_boolean`   | t true y yes 1, f false n no 0, in any case                                  |
| `to_integer`   | sign and digits, within 64 bits                                              |
| `to_double`    | 1.5, .5, 1e3, 1d, 0x1p3, NaN, inf, Infinity                                  |
| `to_date`      | yyyy, yyyy-[m]m, yyyy-[m]m-[d]d and then a space or T and anything           |
| `to_timestamp` | the same, then [h]h[:[m]m[:[s]s[.fraction][zone]]]                           |
| `to_time`      | [h]h:[m]m[:[s]s[.fraction]], then AM or PM                                   |

Time zones as Spark names them, and the instant that a wall clock shows in one.

A wall clock that a zone skipped (spring) moves forward by the gap; one that it showed twice
(autumn) is the earlier of the two: java.time's rules, and those of `fold=0`.
"""

from __future__ import annotations

import calendar
import datetime
import math
import re
import zoneinfo
from dataclasses import dataclass
from typing import TypeAlias

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_DAY = 86_400 * NANOS_PER_SECOND

_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
_INFINITY = frozenset(("inf", "infinity"))

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?"
)
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_CLOCK = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?"
_TIMESTAMP = re.compile(
    rf"([+-]?[0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_CLOCK})?)?)?", re.DOTALL
)
_TIME = re.compile(
    r"T?([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?(?: *([aApP][mM]))?"
)


@dataclass(frozen=True, slots=True)
class WallClock:
    """What a clock on the wall shows, and the zone that the text named, if any."""

    nanos: int
    """Nanoseconds since 1970-01-01 00:00:00 of the same wall."""
    zone: str | None = None
    """The zone as written; None where the text had none."""


@dataclass(frozen=True, slots=True)
class SessionTimestamp:
    """SQL's `TIMESTAMP '...'` without a zone: an instant, in the zone that is set when it is used.

    Not for Python code: a naive `datetime` says the same there.
    """

    text: str


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; None for a day that is not one.

    >>> days_of(1970, 1, 2), days_of(0, 2, 29), days_of(2023, 2, 29)
    (1, -719469, None)
    """
    # The calendar repeats every 400 years, which brings any year into the range of `date`.
    cycles, within = divmod(year - 1, 400)
    within += 1
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(2000 + within % 400, month)[1]:
        return None
    return datetime.date(within, month, day).toordinal() - 719_163 + cycles * 146_097


def to_boolean(text: str) -> bool | None:
    """Spark's cast to BOOLEAN."""
    word = text.strip(_BLANK).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def to_integer(text: str) -> int | None:
    """Spark's cast to BIGINT.

    >>> to_integer(" +5 "), to_integer("5.0"), to_integer("9223372036854775808")
    (5, None, None)
    """
    word = text.strip(_BLANK)
    # The length is checked first: Python refuses, or takes long for, thousands of digits.
    if not _INTEGER.fullmatch(word) or len(word.lstrip("+-0")) > 19:
        return None
    number = int(word)
    return number if -(1 << 63) <= number < 1 << 63 else None


def to_double(text: str) -> float | None:
    """Spark's cast to DOUBLE.

    >>> to_double("1e3"), to_double("-Infinity"), to_double("1.5d"), to_double("0x1p3")
    (1000.0, -inf, 1.5, 8.0)
    """
    word = text.strip(_BLANK[:-1])  # Java's own trim, which leaves DEL
    if match := _DECIMAL.fullmatch(word):
        return float(match[1])
    if match := _HEXADECIMAL.fullmatch(word):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("-inf" if word.startswith("-") else "inf")
    if word.lower() == "nan" or word in ("+NaN", "-NaN"):
        return math.nan
    if word.lower().lstrip("+-") in _INFINITY and word[1:2] not in ("+", "-"):
        return float("-inf" if word.startswith("-") else "inf")
    return None


def to_date(text: str) -> int | None:
    """Spark's cast to DATE, as days since 1970-01-01.

    >>> to_date("1970-1-2"), to_date("1970-01-02T25:00 or so"), to_date("1970-01-02x")
    (1, 1, None)
    """
    match = _DATE.fullmatch(text.strip(_BLANK))
    if match is None:
        return None
    days = days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    return days if days is not None and -(1 << 31) <= days < 1 << 31 else None


def to_timestamp(text: str, digits: int = 6) -> WallClock | None:
    """Spark's cast to a timestamp, which keeps six digits of the fraction.

    Text that has a time only means today to Spark, so it has no fixed meaning here.

    >>> to_timestamp("1970-01-01 00:00:01.5 Europe/Paris")
    WallClock(nanos=1500000000, zone='Europe/Paris')
    """
    match = _TIMESTAMP.fullmatch(text.strip(_BLANK))
    if match is None:
        return None
    days = days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    clock = _clock(match[4] or "0", match[5] or "0", match[6] or "0", match[7] or "", digits)
    if days is None or clock is None:
        return None
    nanos = days * NANOS_PER_DAY + clock
    if not -(1 << 63) <= nanos // 1000 < 1 << 63:  # Spark counts microseconds in 64 bits
        return None
    return WallClock(nanos, match[8] and match[8].strip(_BLANK))


def to_time(text: str, digits: int = 6) -> int | None:
    """Spark's cast to TIME, as nanoseconds of the day.

    >>> to_time("1:02:03"), to_time("12:30 AM"), to_time("24:00")
    (3723000000000, 1800000000000, None)
    """
    match = _TIME.fullmatch(text.strip(_BLANK))
    if match is None:
        return None
    hour = int(match[1])
    if match[5]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[5].upper() == "PM" else 0)
    return _clock(str(hour), match[2], match[3] or "0", match[4] or "", digits)


def _clock(hour: str, minute: str, second: str, fraction: str, digits: int) -> int | None:
    """Nanoseconds of the day, of a fraction cut to `digits`."""
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        return None
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    return seconds * NANOS_PER_SECOND + int(fraction[:digits].ljust(9, "0"))


Zone: TypeAlias = datetime.timezone | zoneinfo.ZoneInfo

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = datetime.timedelta(days=1)
_CYCLE = 146_097 * 86_400
_EARLIEST = (datetime.datetime(2, 1, 1) - _EPOCH) // datetime.timedelta(seconds=1)
_LATEST = (datetime.datetime(9999, 1, 1) - _EPOCH) // datetime.timedelta(seconds=1)
# h, hh, hhmm, hhmmss, h:m, hh:mm or hh:mm:ss, alone or behind UTC, GMT or UT.
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d\d)(\d\d)(\d\d)?|(\d\d?)(?::(\d\d?)(?::(\d\d))?)?)"
)
_REGION = re.compile(r"(?!Factory$)[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_LARGEST_OFFSET = 18 * 3600


def find_zone(name: str) -> Zone | None:
    """The zone that Spark takes `name` for; None when it is no zone.

    >>> find_zone("+1:0"), find_zone("GMT+2"), find_zone("Z")
    (datetime.timezone(datetime.timedelta(seconds=3600)),
     datetime.timezone(datetime.timedelta(seconds=7200)), datetime.timezone.utc)
    """
    if name in ("Z", "UTC", "GMT", "UT"):
        return datetime.UTC
    if match := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (
            int(packed or spaced or 0)
            for packed, spaced in zip(match.group(2, 3, 4), match.group(5, 6, 7), strict=True)
        )
        total = hours * 3600 + minutes * 60 + seconds
        if minutes > 59 or seconds > 59 or total > _LARGEST_OFFSET:
            return None
        return datetime.timezone(datetime.timedelta(seconds=-total if match[1] == "-" else total))
    if not _REGION.fullmatch(name):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def instant_of(wall: int, zone: Zone) -> int:
    """The instant, in nanoseconds since the epoch, when `zone` shows `wall` (nanoseconds too)."""
    return wall - _offset(_moment(wall).replace(tzinfo=zone))


def wall_of(instant: int, zone: Zone) -> int:
    """What `zone` shows at an instant."""
    return instant + _offset(_moment(instant).replace(tzinfo=datetime.UTC).astimezone(zone))


def moved_forward(wall: int, zone: Zone) -> int:
    """By how much the zone's clock was put forward in the day before `wall`; 0 if it was not."""
    shown = _moment(wall)
    before = _offset((shown - _DAY).replace(tzinfo=zone))
    return max(0, _offset(shown.replace(tzinfo=zone)) - before)


def _moment(nanos: int) -> datetime.datetime:
    """The second of a moment; one beyond the years of `datetime` moves by cycles of 400 years.

    The calendar repeats in them, weekdays included, so that the rules of a zone give the same
    offset: one rule holds for all far years, and local mean time for all early ones.
    """
    seconds = nanos // NANOS_PER_SECOND
    cycles = max(0, -((seconds - _EARLIEST) // _CYCLE)) - max(0, -((_LATEST - seconds) // _CYCLE))
    return _EPOCH + datetime.timedelta(seconds=seconds + cycles * _CYCLE)


def _offset(moment: datetime.datetime) -> int:
    """The offset from UTC in nanoseconds; every zone here has one."""
    offset = moment.utcoffset() or datetime.timedelta()
    return offset // datetime.timedelta(microseconds=1) * 1000
