"""Time zones as Spark names them, and the instant that a wall clock shows in one.

A wall clock that a zone skipped (spring) moves forward by the gap; one that it showed twice
(autumn) is the earlier of the two: java.time's rules, and those of `fold=0`.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import TypeAlias

from alcid.predicate.text import NANOS_PER_SECOND

__all__ = ["Zone", "find_zone", "instant_of", "moved_forward", "wall_of"]

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
