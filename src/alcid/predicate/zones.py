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


def instant_of(wall: int, zone: Zone) -> int | None:
    """The instant, in nanoseconds since the epoch, when `zone` shows `wall` (nanoseconds too).

    None where the zone's rules are not known: years that `datetime` does not have, in a region.
    """
    if isinstance(zone, datetime.timezone):
        return wall - _nanos(zone.utcoffset(None))
    try:
        shown = _EPOCH + datetime.timedelta(seconds=wall // NANOS_PER_SECOND)
    except OverflowError:
        return None
    return wall - _nanos(shown.replace(tzinfo=zone).utcoffset())


def wall_of(instant: int, zone: Zone) -> int | None:
    """What `zone` shows at an instant; None where its rules are not known."""
    if isinstance(zone, datetime.timezone):
        return instant + _nanos(zone.utcoffset(None))
    try:
        moment = _EPOCH + datetime.timedelta(seconds=instant // NANOS_PER_SECOND)
        shown = moment.replace(tzinfo=datetime.UTC).astimezone(zone)
    except OverflowError:
        return None
    return instant + _nanos(shown.utcoffset())


def moved_forward(wall: int, zone: Zone) -> int:
    """By how much the zone's clock was put forward in the day before `wall`; 0 if it was not."""
    if isinstance(zone, datetime.timezone):
        return 0
    try:
        shown = _EPOCH + datetime.timedelta(seconds=wall // NANOS_PER_SECOND)
        now = _nanos(shown.replace(tzinfo=zone).utcoffset())
        return max(0, now - _nanos((shown - _DAY).replace(tzinfo=zone).utcoffset()))
    except OverflowError:
        return 0


def _nanos(offset: datetime.timedelta | None) -> int:
    """An offset in nanoseconds; the zones here always have one."""
    return 0 if offset is None else offset // datetime.timedelta(microseconds=1) * 1000
