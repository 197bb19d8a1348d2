r"""Where a literal cuts the values of a column in two, to the last digit.

An index may leave open whether a key equals a literal, because keys are shorter than values or are
stored without padding. Rows may not. A `Cut` holds the values below a literal and those equal to
it, each as intervals, because neither need be one:

- TIME and TIMESTAMP in the ticks of the Arrow column, so that nothing is rounded.
- CHAR, of values without the spaces at their end. Spark compares them padded: `a` is above
  `a\t`, because a space is, though it begins it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alcid.errors import LiteralError
from alcid.predicate.intervals import Interval
from alcid.predicate.moments import (
    day_of_instant,
    days_at_instant,
    instant_of_clock,
    session_zone,
    wall_clock,
)
from alcid.predicate.numbers import Place
from alcid.predicate.text import (
    NANOS_PER_SECOND,
    SessionTimestamp,
    WallClock,
    to_time,
)
from alcid.predicate.zones import Zone, instant_of, moved_forward, wall_of
from alcid.types import DataType

__all__ = [
    "Cut",
    "cut_at",
    "cut_day",
    "cut_moments",
    "cut_padded",
    "equal_as_instants",
    "equal_days",
]

_MICROS, _NANOS = 6, 9
_DATE = DataType("DATE")


@dataclass(frozen=True, slots=True)
class Cut:
    """The values below a literal, and those equal to it."""

    below: tuple[Interval, ...]
    equal: tuple[Interval, ...]


def cut_at(place: Place) -> Cut:
    """The cut of a place whose keys are the values."""
    return Cut(((None, place.begin),), ((place.begin, place.end),))


def cut_padded(literal: str, longest: int) -> Cut:
    r"""The cut among the values of a CHAR column without the spaces at their end.

    Args:
        literal: The text.
        longest: The bytes of the longest value.

    >>> cut_padded("a\tb ", 3).below
    ((None, b'a'), (b'a\x00', b'a\tb'), (b'a\tb\x00', b'a\tb   '))
    """
    bare = literal.encode().rstrip(b" ")
    below: list[Interval] = []
    begin = None
    # What the literal begins with is below it as bytes, but padded above a control character.
    for start in _padded_above(bare):
        below.append((begin, start))
        begin = start + b"\0"
    # And a literal begins what is longer: padded it is above where that goes on with such a one.
    return Cut(
        (*below, (begin, bare), (bare + b"\0", bare + b" " * longest)), ((bare, bare + b"\0"),)
    )


def _padded_above(bare: bytes) -> Iterator[bytes]:
    for length in range(len(bare)):
        if bare[length:].lstrip(b" ")[0] < ord(" "):
            yield bare[:length]


def cut_moments(literal: object, data_type: DataType, nanos: int) -> Cut:
    """The cut among the values of a TIME or TIMESTAMP column.

    Args:
        literal: What `place` takes for the type.
        data_type: The type.
        nanos: The nanoseconds of a tick, in which the column counts.
    """
    if data_type.root == "TIME":
        return _at(_time(literal, data_type), nanos)
    if data_type.root == "TIMESTAMP" and not isinstance(literal, SessionTimestamp):
        return _at(_clock(literal, data_type).nanos, nanos)
    instant, zone = _instant_in(literal, data_type)
    # Spark makes a wall clock of an instant that wall clocks are compared with.
    return _at(wall_of(instant, zone) if data_type.root == "TIMESTAMP" else instant, nanos)


def cut_day(literal: object) -> Cut:
    """The cut at an instant among the values of a DATE column."""
    return cut_at(day_of_instant(*_instant_in(literal, _DATE)))


def equal_days(literals: Sequence[object]) -> list[Interval]:
    """The values of a DATE column that equal a literal of a list with an instant in it.

    Spark makes instants of all, the column's days too; but of a single one it makes a day.
    """
    moments = dict.fromkeys(_instant_in(literal, _DATE) for literal in literals)
    find = day_of_instant if len(moments) == 1 else days_at_instant
    places = [find(instant, zone) for instant, zone in moments]
    return [(found.begin, found.end) for found in places]


def equal_as_instants(literal: object, data_type: DataType, nanos: int) -> tuple[Interval, ...]:
    """The wall clocks of a TIMESTAMP column that are the instant of a literal.

    In a list with instants Spark makes instants of all, the column too. Where a zone puts its clock
    forward, the hour that it skips moves: 02:30 and 03:30 are the same instant.
    """
    instant, zone = _instant_in(literal, data_type)
    wall = wall_of(instant, zone)
    skipped = wall - moved_forward(wall, zone)
    walls = {wall, skipped} if instant_of(skipped, zone) == instant else {wall}
    return tuple(interval for clock in walls for interval in _at(clock, nanos).equal)


def _clock(literal: object, data_type: DataType) -> WallClock:
    clock = wall_clock(literal, _NANOS if data_type.precision > _MICROS else _MICROS)
    if not isinstance(clock, WallClock):
        raise LiteralError(f"{data_type} does not take {literal!r}: {clock}")
    return clock


def _instant_in(literal: object, data_type: DataType) -> tuple[int, Zone]:
    """The instant of a literal, and the session's zone."""
    instant, zone = instant_of_clock(_clock(literal, data_type)), session_zone()
    if isinstance(instant, str) or isinstance(zone, str):
        raise LiteralError(f"{data_type} does not take {literal!r}: it names no known zone")
    return instant, zone


def _time(literal: object, data_type: DataType) -> int:
    if isinstance(literal, datetime.time):
        seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
        return seconds * NANOS_PER_SECOND + literal.microsecond * 1000
    return to_time(str(literal), _NANOS if data_type.precision > _MICROS else _MICROS) or 0


def _at(moment: int, nanos: int) -> Cut:
    """The cut at a moment in nanoseconds, among ticks of `nanos` each."""
    begin, end = -(-moment // nanos), moment // nanos + 1
    return Cut(((None, begin),), ((begin, end),))
