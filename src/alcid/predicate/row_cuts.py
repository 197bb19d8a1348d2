r"""Where a literal cuts the values of a column in two, to the last digit.

An index may leave open whether a key equals a literal, because keys are shorter than values or are
stored without padding. Rows may not. A `Cut` holds the values below a literal and those equal to
it, each as intervals, because neither need be one:

- TIME and TIMESTAMP in the ticks of the Arrow column, so that nothing is rounded.
- TIMESTAMP (wall clocks) against a list with instants: Spark makes instants of the column. Where a
  zone puts its clock forward, the hour that it skips moves, so that 02:30 and 03:30 are equal to
  03:30, and below it is all before 02:30, and 03:00 to 03:30. Against one instant it makes a wall
  clock of that, so that only 03:30 is equal.
- CHAR, of values without the spaces at their end. Spark compares them padded: `a` is above
  `a\t`, because a space is, though it begins it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from alcid.errors import LiteralError
from alcid.predicate.intervals import Interval
from alcid.predicate.moments import _instant, _session_zone, _wall_clock
from alcid.predicate.numbers import Place
from alcid.predicate.text import (
    NANOS_PER_DAY,
    NANOS_PER_SECOND,
    SessionTimestamp,
    WallClock,
    to_time,
)
from alcid.predicate.zones import Zone, instant_of, moved_forward, wall_of
from alcid.types import DataType

__all__ = ["Cut", "cut_at", "cut_moments", "cut_padded"]

_MICROS, _NANOS = 6, 9


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
        start = bare[:length]
        if not start.endswith(b" ") and bare[length:].lstrip(b" ")[0] < ord(" "):
            yield start


def cut_moments(literal: object, data_type: DataType, nanos: int, *, as_instants: bool) -> Cut:
    """The cut among the values of a TIME or TIMESTAMP column.

    Args:
        literal: What `place` takes for the type.
        data_type: The type.
        nanos: The nanoseconds of a tick, in which the column counts.
        as_instants: Wall clocks are made instants of the session's zone.
    """
    if data_type.root == "TIME":
        return _in_ticks(_at(_time(literal, data_type)), nanos)
    clock = _wall_clock(literal, _NANOS if data_type.precision > _MICROS else _MICROS)
    if not isinstance(clock, WallClock):
        raise LiteralError(f"{data_type} does not take {literal!r}: {clock}")
    if data_type.root == "TIMESTAMP" and not (as_instants or isinstance(literal, SessionTimestamp)):
        return _in_ticks(_at(clock.nanos), nanos)
    instant, zone = _instant(clock), _session_zone()
    if isinstance(instant, str) or isinstance(zone, str):
        raise LiteralError(f"{data_type} does not take {literal!r}: it names no known zone")
    if data_type.root == "TIMESTAMP_LTZ":
        return _in_ticks(_at(instant), nanos)
    found = _among_walls(instant, zone) if as_instants else _at(wall_of(instant, zone))
    return _in_ticks(found, nanos)


def _time(literal: object, data_type: DataType) -> int:
    if isinstance(literal, datetime.time):
        seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
        return seconds * NANOS_PER_SECOND + literal.microsecond * 1000
    return to_time(str(literal), _NANOS if data_type.precision > _MICROS else _MICROS) or 0


def _at(nanos: int) -> Cut:
    return Cut(((None, nanos),), ((nanos, nanos + 1),))


def _in_ticks(cut: Cut, nanos: int) -> Cut:
    def ticks(intervals: tuple[Interval, ...]) -> tuple[Interval, ...]:
        return tuple((_round_up(begin, nanos), _round_up(end, nanos)) for begin, end in intervals)

    return Cut(ticks(cut.below), ticks(cut.equal))


def _round_up(bound: object, nanos: int) -> int | None:
    return -(-bound // nanos) if isinstance(bound, int) else None


def _among_walls(instant: int, zone: Zone) -> Cut:
    wall = wall_of(instant, zone)
    gap = moved_forward(wall, zone)
    if not gap:
        return _at(wall)
    resumed = _end_of_gap(wall, zone)
    skipped = min(wall - gap, resumed)  # the skipped wall clock that is the same instant
    return Cut(
        ((None, skipped), (resumed, wall)), ((skipped, min(skipped + 1, resumed)), (wall, wall + 1))
    )


def _end_of_gap(wall: int, zone: Zone) -> int:
    """The first wall clock that is shown after the gap, in the day before `wall`."""
    after = wall - instant_of(wall, zone)
    low, high = -NANOS_PER_DAY // NANOS_PER_SECOND, 0  # seconds from the wall clock's own
    start = wall // NANOS_PER_SECOND
    while low + 1 < high:
        middle = (low + high) // 2
        shown = (start + middle) * NANOS_PER_SECOND
        low, high = (low, middle) if shown - instant_of(shown, zone) == after else (middle, high)
    return (start + high) * NANOS_PER_SECOND
