r"""The probe whose rows are exactly those that match a leaf.

`probe_for` makes the probe for an index. Where that is exact, rows are compared with the same
intervals; where it is not, because keys are shorter than values or stored without padding, the
literals are compared with the values themselves. A `ValueSplit` holds the values below a literal
and those equal to it, each as intervals, because neither need be one:

- TIME and TIMESTAMP in the ticks of the Arrow column, so that nothing is rounded.
- CHAR, of values without the spaces at their end. Spark compares them padded: `a` is above
  `a\t`, because a space is, though it begins it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from alcid.errors import LiteralError
from alcid.expressions.casts_from_text import (
    NANOS_PER_SECOND,
    SessionTimestamp,
    WallClock,
    Zone,
    instant_of,
    moved_forward,
    to_double,
    to_time,
    to_timestamp,
    wall_of,
)
from alcid.expressions.expression import (
    Between,
    Comparison,
    In,
    IsNull,
    Leaf,
    Like,
    Operator,
    plain,
)
from alcid.expressions.literal_times import (
    KeyRange,
    day_of_instant,
    days_at_instant,
    instant_of_clock,
    session_zone,
    wall_clock,
)
from alcid.expressions.literals import (
    Digits,
    among_fractions,
    as_double,
    bounds_of,
    common_digits,
    key_range,
)
from alcid.expressions.probes import (
    AnyRow,
    InIntervals,
    Interval,
    NonNullRows,
    NotInIntervals,
    NullRows,
    Probe,
    merge,
    probe_for,
)
from alcid.types import INTEGER_TYPES, MAX_LENGTH, TIME_TYPES, DataType

_MICROS, _NANOS = 6, 9
_DATE = DataType("DATE")


@dataclass(frozen=True, slots=True)
class ValueSplit:
    """The values below a literal, and those equal to it."""

    below: tuple[Interval, ...]
    equal: tuple[Interval, ...]


def split_at(key_range: KeyRange) -> ValueSplit:
    """The split at a key range whose keys are the values."""
    return ValueSplit(((None, key_range.begin),), ((key_range.begin, key_range.end),))


def split_padded(literal: str, longest: int) -> ValueSplit:
    r"""The split among the values of a CHAR column without the spaces at their end.

    Args:
        literal: The text.
        longest: The bytes of the longest value, or more.

    >>> split_padded("a\tb ", 3).below
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
    return ValueSplit(
        (*below, (begin, bare), (bare + b"\0", bare + b" " * longest)), ((bare, bare + b"\0"),)
    )


def _padded_above(bare: bytes) -> Iterator[bytes]:
    for length in range(len(bare)):
        if bare[length:].lstrip(b" ")[0] < ord(" "):
            yield bare[:length]


def split_times(literal: object, data_type: DataType, nanos: int) -> ValueSplit:
    """The split among the values of a TIME or TIMESTAMP column.

    Args:
        literal: What `key_range` takes for the type.
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


def split_date(literal: object) -> ValueSplit:
    """The split at an instant among the values of a DATE column."""
    return split_at(day_of_instant(*_instant_in(literal, _DATE)))


def equal_days(literals: Sequence[object]) -> list[Interval]:
    """The values of a DATE column that equal a literal of a list with an instant in it.

    Spark makes instants of all, the column's days too; but of a single one it makes a day.
    """
    moments = dict.fromkeys(_instant_in(literal, _DATE) for literal in literals)
    find = day_of_instant if len(moments) == 1 else days_at_instant
    key_ranges = [find(instant, zone) for instant, zone in moments]
    return [(days.begin, days.end) for days in key_ranges]


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


def _at(instant: int, nanos: int) -> ValueSplit:
    """The split at a moment in nanoseconds, among ticks of `nanos` each."""
    begin, end = -(-instant // nanos), instant // nanos + 1
    return ValueSplit(((None, begin),), ((begin, end),))


_TICKS = DataType("BIGINT")
_STRING = DataType("VARCHAR", length=MAX_LENGTH)
_WHOLE_DAYS = ("Y", "M", "W", "D")


@dataclass(frozen=True, slots=True)
class RowType:
    """What a column of rows holds."""

    data_type: DataType
    nanos: int = 1
    """The nanoseconds of a tick of TIME and TIMESTAMP."""
    longest: int = 0
    """The bytes of the longest value of a CHAR column, or more."""


def row_probe(leaf: Leaf, row_type: RowType, probe: Probe) -> Probe | None:
    """The probe that gives exactly the rows for which a leaf is true.

    Args:
        leaf: A leaf of a normalized predicate.
        row_type: The type of its column. CHAR values are compared without the spaces at their
            end, except by LIKE.
        probe: The probe of the leaf for indexes of this type.

    Returns:
        The probe; None for LIKE on a column that is no text, and for a `Between` that has to be
        evaluated as two comparisons.

    Raises:
        LiteralError: A literal has no meaning for the type.
    """
    data_type = row_type.data_type
    match leaf:
        case IsNull():
            return probe
        case Between():
            return probe if _is_exact(probe, data_type) else None
        case Like():
            return _like(leaf, probe, data_type)
        case Comparison(_, operator, literal):
            if isinstance(probe, AnyRow) or _is_exact(probe, data_type):
                return probe
            return _compared(operator, _split_for(operator, literal, row_type), data_type)
        case In(_, literals, negated):
            if _is_exact(probe, data_type):
                return probe
            equal = _equal([plain(literal) for literal in literals], row_type)
            return (NotInIntervals if negated else InIntervals)(_merge(equal, data_type))
    raise TypeError(f"{leaf!r} is no leaf of a normalized predicate")


def _is_exact(probe: Probe, data_type: DataType) -> bool:
    """Whether values can be compared as keys are; times are compared in the ticks of the column."""
    if isinstance(probe, NullRows | AnyRow) or data_type.root in TIME_TYPES:
        return False
    return probe.exact


def _like(leaf: Like, probe: Probe, data_type: DataType) -> Probe | None:
    if data_type.root != "CHAR":
        return probe if data_type.root == "VARCHAR" else None
    # The value is padded to its length, so the pattern may ask for spaces that are not there.
    bare, length = leaf.text.rstrip(" "), len(leaf.text)
    if not leaf.prefix and length < data_type.length:
        return NonNullRows() if leaf.negated else InIntervals(())
    stored = probe_for(replace(leaf, negated=False), leaf.column, _STRING)
    if length > data_type.length or length == len(bare) or not isinstance(stored, InIntervals):
        return probe_for(leaf, leaf.column, _STRING)
    shorter = ((bare + " " * spaces).encode() for spaces in range(length - len(bare)))
    intervals = [*stored.intervals, *((key, key + b"\0") for key in shorter)]
    return (NotInIntervals if leaf.negated else InIntervals)(merge(intervals, data_type))


def _compared(operator: Operator, split: ValueSplit, data_type: DataType) -> Probe:
    match operator:
        case "=" | "<=>":
            return InIntervals(_merge(split.equal, data_type))
        case "<>":
            return NotInIntervals(_merge(split.equal, data_type))
        case "<":
            return InIntervals(_merge(split.below, data_type))
        case ">=":
            return NotInIntervals(_merge(split.below, data_type))
        case "<=":
            return InIntervals(_merge(split.below + split.equal, data_type))
        case ">":
            return NotInIntervals(_merge(split.below + split.equal, data_type))


def _merge(intervals: Iterable[Interval], data_type: DataType) -> tuple[Interval, ...]:
    return merge(intervals, _TICKS if data_type.root in TIME_TYPES else data_type)


def _equal(literals: list[object], row_type: RowType) -> list[Interval]:
    """The values that equal a literal of a list."""
    data_type = row_type.data_type
    if data_type.root == "DATE" and any(map(_is_zoned, literals)):
        return equal_days(literals)
    digits = common_digits(literals, data_type)
    equal = [
        _split_values(literal, row_type, digits).equal for literal in _alike(literals, data_type)
    ]
    if data_type.root == "TIMESTAMP" and any(map(_is_zoned, literals)) and len(set(equal)) > 1:
        equal = [equal_as_instants(literal, data_type, row_type.nanos) for literal in literals]
    return [interval for intervals in equal for interval in intervals]


def _split_for(operator: Operator, literal: object, row_type: RowType) -> ValueSplit:
    """The split for an operator: beside a DECIMAL, integers are rounded only to find equal ones."""
    data_type = row_type.data_type
    if data_type.root not in INTEGER_TYPES or not isinstance(literal, Decimal):
        return _split_values(literal, row_type)
    if operator in ("=", "<=>", "<>"):
        return _split_values(literal, row_type, common_digits([literal], data_type))
    return split_at(among_fractions(literal, 0, bounds_of(data_type)))


def _split_values(literal: object, row_type: RowType, digits: Digits | None = None) -> ValueSplit:
    data_type, literal = row_type.data_type, plain(literal)
    if data_type.root == "CHAR":
        return split_padded(str(literal), row_type.longest)
    if data_type.root in TIME_TYPES:
        return split_times(literal, data_type, row_type.nanos)
    if data_type.root == "DATE" and _is_zoned(literal):
        return split_date(literal)
    # A double that equals many numbers leaves nothing open: Spark takes every one as equal.
    return split_at(key_range(literal, "", data_type, digits=digits))


def _alike(literals: list[object], data_type: DataType) -> list[object]:
    """The literals of a list brought to one type, as Spark does first."""
    if data_type.root == "DATE":
        return _alike_dates(literals)
    if data_type.root != "DECIMAL" and data_type.root not in INTEGER_TYPES:
        return literals
    if not _are_doubles(literals, data_type):
        return literals
    # A number beyond all doubles stays what it is.
    return [literal if (near := _double(literal)) is None else near for literal in literals]


def _are_doubles(literals: list[object], data_type: DataType) -> bool:
    """Whether the common type of a list, and of its column, is DOUBLE.

    Spark finds it from left to right: text beside a BIGINT is one, but beside a DECIMAL a DOUBLE.
    """
    decimal = data_type.root == "DECIMAL"
    for literal in literals:
        if isinstance(literal, float) or (decimal and isinstance(literal, str)):
            return True
        if isinstance(literal, int):  # as SQL text it would be a DECIMAL
            decimal |= not -(1 << 63) <= literal < 1 << 63
        decimal |= isinstance(literal, Decimal)
    return False


def _double(literal: object) -> float | None:
    if isinstance(literal, str):
        return to_double(literal)
    return as_double(literal)  # type: ignore[arg-type]


def _alike_dates(literals: list[object]) -> list[object]:
    """Beside a wall clock, text is one: its time counts."""
    if not any(map(_is_wall_clock, literals)):
        return literals
    return [_wall_clock(literal) if isinstance(literal, str) else literal for literal in literals]


def _is_zoned(literal: object) -> bool:
    if isinstance(literal, datetime.datetime):
        return literal.tzinfo is not None
    return isinstance(literal, SessionTimestamp)


def _is_wall_clock(literal: object) -> bool:
    if isinstance(literal, np.datetime64):
        return np.datetime_data(literal.dtype)[0] not in _WHOLE_DAYS
    return isinstance(literal, datetime.datetime)


def _wall_clock(text: str) -> np.datetime64:
    clock = to_timestamp(text)
    if clock is None:
        raise LiteralError(f"a list with timestamps does not take the text {text!r}")
    return np.datetime64(clock.nanos // 1000, "us")
