"""CAST among numbers, text, dates and timestamps, as Spark does it.

What is not listed is refused, because Spark's result could not be had to the last digit.

| from                     | to                                                               |
|--------------------------|------------------------------------------------------------------|
| BOOLEAN                  | integers, FLOAT, DOUBLE, STRING                                  |
| integers                 | BOOLEAN, integers, FLOAT, DOUBLE, DECIMAL, STRING                |
| FLOAT, DOUBLE            | BOOLEAN, integers, FLOAT, DOUBLE                                 |
| DECIMAL                  | BOOLEAN, integers, DOUBLE, DECIMAL, STRING                       |
| STRING                   | BOOLEAN, integers, FLOAT, DOUBLE, DECIMAL, DATE, TIMESTAMP, _LTZ |
| DATE, TIMESTAMP, ..._LTZ | each other, STRING                                               |

Timestamps of a column in the session's zone: wall clocks, instants, fields, truncation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.errors import EvaluationError, PredicateError
from alcid.expressions.casts_from_text import (
    Zone,
    instant_of,
    to_boolean,
    to_date,
    to_double,
    to_integer,
    to_timestamp,
    wall_of,
)
from alcid.expressions.literal_times import instant_of_clock, session_zone
from alcid.expressions.row_values import to_mask
from alcid.expressions.scalar_values import (
    BOOLEAN,
    DATE,
    INT,
    INTEGERS,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Failure,
    Values,
    rescaled,
    within_width,
)
from alcid.types import DATETIME_TYPES, FLOAT_TYPES, DataType

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


def walls_of(instants: Int64Array) -> Int64Array:
    """What the session's zone shows at instants."""
    zone = _zone()
    return _by_day(instants, lambda instant: wall_of(instant * 1000, zone) // 1000)


def instants_of(walls: Int64Array) -> Int64Array:
    """The instants when the session's zone shows wall clocks."""
    zone = _zone()
    return _by_day(walls, lambda wall: instant_of(wall * 1000, zone) // 1000)


def _zone() -> Zone:
    zone = session_zone()
    if isinstance(zone, str):
        raise PredicateError(zone)
    return zone


def _by_day(moments: Int64Array, convert: Callable[[int], int]) -> Int64Array:
    """Moments converted: those of a day by one offset, where its two ends have the same."""
    days, picks = np.unique(moments // _DAY, return_inverse=True)
    ends = [
        (convert(day * _DAY) - day * _DAY, convert((day + 1) * _DAY) - (day + 1) * _DAY)
        for day in days.tolist()
    ]
    offsets = np.array(ends, np.int64).reshape(-1, 2)
    steady = offsets[:, 0] == offsets[:, 1]
    converted: Int64Array = moments + offsets[:, 0][picks]
    changing = np.flatnonzero(~steady[picks])
    converted[changing] = [convert(moment) for moment in moments[changing].tolist()]
    return converted


def date_field(part: str, dates: Values) -> Values:
    """`year`, `quarter`, `month` or `day` of a DATE."""
    days = dates.data.astype("M8[D]")
    months = days.astype("M8[M]").astype(np.int64)
    if part == "day":
        numbers = (days - days.astype("M8[M]")).astype(np.int64) + 1
    elif part == "year":
        numbers = months // 12 + 1970
    else:
        numbers = months % 12 // (3 if part == "quarter" else 1) + 1
    return Values(INT, numbers, dates.valid)


def clock_field(part: str, walls: Int64Array, values: Values) -> Values:
    """`hour`, `minute` or `second` of wall clocks."""
    within = walls % _DAY
    numbers = within // _CLOCK[part] % (24 if part == "hour" else 60)
    return Values(INT, numbers, values.valid)


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


def _first_day(unit: str, days: Int64Array) -> Int64Array:
    if unit == "week":
        return days - (days + _MONDAY) % 7
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    size = {"month": 1, "quarter": 3, "year": 12}[unit]
    first: Int64Array = (months - months % size).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return first


def dates_of(values: Values) -> Values:
    """The days of wall clocks."""
    return Values(DATE, values.data // _DAY, values.valid)


_TARGETS: dict[str, tuple[str, ...]] = {
    "BOOLEAN": (*INTEGERS, *FLOAT_TYPES, "VARCHAR"),
    **dict.fromkeys(INTEGERS, ("BOOLEAN", *INTEGERS, *FLOAT_TYPES, "DECIMAL", "VARCHAR")),
    **dict.fromkeys(FLOAT_TYPES, ("BOOLEAN", *INTEGERS, *FLOAT_TYPES)),
    "DECIMAL": ("BOOLEAN", *INTEGERS, "DOUBLE", "DECIMAL", "VARCHAR"),
    "VARCHAR": ("BOOLEAN", *INTEGERS, *FLOAT_TYPES, "DECIMAL", *DATETIME_TYPES),
    **dict.fromkeys(DATETIME_TYPES, (*DATETIME_TYPES, "VARCHAR")),
}
_SHORT_INTEGER = r"^-?[0-9]{1,18}$"
_FRACTION = re.compile(r"([+-]?)([0-9]*)\.([0-9]*)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_TIME_ONLY = re.compile(r"T?\d{1,2}:")
_DAY_IN_MICROS = 86_400_000_000
# The years that are written with four digits.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MOST_PLAIN_SCALE = 6
_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22


def can_cast(source: DataType, target: DataType, *, ansi: bool) -> bool:
    """Whether `cast` gives Spark's result to the last digit."""
    if source == target:
        return True
    if source.root == "DECIMAL" and target.root == "VARCHAR" and not ansi:
        return source.scale <= _MOST_PLAIN_SCALE  # else small numbers have an exponent
    if target.root == "VARCHAR" and target != STRING:
        return False
    return target.root in _TARGETS.get(source.root, ())


def cast(values: Values, target: DataType, failure: Failure) -> Values:
    """Values of one type as those of another; `can_cast` says which."""
    source = values.type
    if source == target:
        return values
    if target.root == "VARCHAR":
        return _to_text(values)
    if source.root == "VARCHAR":
        return _from_text(values, target, failure)
    if source.root in DATETIME_TYPES:
        return _among_times(values, target)
    if target.root == "BOOLEAN":
        return Values(BOOLEAN, (values.data != 0).astype(bool), values.valid)
    if target.root in FLOAT_TYPES:
        return _to_floating(values, target)
    if target.root == "DECIMAL":
        data, beyond = rescaled(values.data, source.scale, target)
        fitted = Values(target, data, values.valid)
        return fitted.without(beyond, failure, f"a number does not fit into {target}")
    return _to_integer(values, target, failure)


def _to_floating(values: Values, target: DataType) -> Values:
    dtype = np.float32 if target.root == "FLOAT" else np.float64
    if values.type.root != "DECIMAL" or (values.type.scale == 0 and values.data.dtype != object):
        with np.errstate(over="ignore"):
            return Values(target, values.data.astype(dtype), values.valid)
    scale, data = values.type.scale, values.data
    exact = scale <= _EXACT_POWER and (
        data.dtype != object and len(data) and int(np.abs(data).max()) < _EXACT_DOUBLE
    )
    if exact:
        return Values(target, data / float(10**scale), values.valid)
    # Python divides integers of any size with one rounding.
    quotients = [number / 10**scale for number in data.tolist()]
    return Values(target, np.array(quotients, np.float64), values.valid)


def _to_integer(values: Values, target: DataType, failure: Failure) -> Values:
    data, source = values.data, values.type
    if source.root in FLOAT_TYPES:
        return _floating_to_integer(values, target, failure)
    if source.root == "DECIMAL" and source.scale:
        power = 10**source.scale
        size = np.abs(data) // power
        data = np.where(data < 0, -size, size)
    if source.root == "BOOLEAN":
        data = data.astype(np.int64)
    wrapped, beyond = within_width(data, target)
    integers = Values(target, wrapped, values.valid)
    if failure is Failure.LEGACY:
        return integers
    return integers.without(beyond, failure, f"a number does not fit into {target}")


def _floating_to_integer(values: Values, target: DataType, failure: Failure) -> Values:
    data = values.data.astype(np.float64)
    bits = INTEGERS[target.root]
    least, most = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1)
    whole = np.trunc(data)
    # The greatest BIGINT is no double: as one it is 2**63, which Spark lets pass.
    fits = (whole >= least) & ((whole < most) | ((bits == 64) & (whole == most)))
    if failure is Failure.LEGACY:  # as Java: to the nearest INT or BIGINT, then cut to the width
        wide = 64 if bits == 64 else 32
        edge = 2.0 ** (wide - 1)
        inside = np.where(np.isnan(whole), 0.0, np.clip(whole, -edge, edge))
        near = np.where(inside >= edge, (1 << wide - 1) - 1, _truncate(inside, inside < edge))
        return Values(target, within_width(near, target)[0], values.valid)
    near = np.where(whole >= 2.0**63, (1 << 63) - 1, _truncate(whole, fits & (whole < 2.0**63)))
    integers = Values(target, near, values.valid)
    return integers.without(~fits, failure, f"a number does not fit into {target}")


def _truncate(whole: Float64Array, fits: BoolArray) -> Any:
    return np.where(fits, whole, 0.0).astype(np.int64)


# -- text --------------------------------------------------------------------------------------


def _to_text(values: Values) -> Values:
    source, valid = values.type, values.valid
    mask = ~valid
    match source.root:
        case "BOOLEAN":
            texts = pc.if_else(pa.array(values.data), "true", "false").cast(pa.large_string())
        case "DECIMAL":
            plain = [_plain_text(number, source.scale) for number in values.data.tolist()]
            texts = pa.array(plain, pa.large_string())
        case "DATE" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            texts = _time_text(values)
        case _:
            texts = pa.array(values.data).cast(pa.large_string())
    return Values(STRING, pc.if_else(pa.array(mask), None, texts), valid)


def _plain_text(number: int, scale: int) -> str:
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if number < 0 else text


def _time_text(values: Values) -> pa.Array:
    data = walls_of(values.data) if values.type.root == "TIMESTAMP_LTZ" else values.data
    days = data if values.type.root == "DATE" else data // _DAY_IN_MICROS
    if ((days < _FIRST_DAY) | (days > _LAST_DAY))[values.valid].any():
        raise EvaluationError("a date before the year 1 or after 9999 as text")
    days = np.where(values.valid, days, 0)
    dates = pa.array(np.datetime_as_string(days.astype("M8[D]")), pa.large_string())
    if values.type.root == "DATE":
        return dates
    clocks = np.where(values.valid, data, 0).astype("M8[us]")
    texts = pa.array(np.datetime_as_string(clocks, unit="us"), pa.large_string())
    texts = pc.replace_substring(texts, pattern="T", replacement=" ")
    return pc.utf8_rtrim(pc.utf8_rtrim(_guarded(texts), characters="0"), characters=".#")


def _guarded(texts: pa.Array) -> pa.Array:
    """Fractions of six digits; those of zeros only are marked, so that no other zero is cut."""
    return pc.replace_substring_regex(texts, pattern=r"\.000000$", replacement=".#")


def _from_text(values: Values, target: DataType, failure: Failure) -> Values:
    legacy = failure is Failure.LEGACY
    dtype = _dtype_of(target)
    data = np.zeros(len(values), dtype)
    valid = values.valid.copy()
    rest = valid.copy()
    if target.root in INTEGERS:  # most text that is cast to an integer is a short one
        short = to_mask(pc.match_substring_regex(values.data, pattern=_SHORT_INTEGER)) & valid
        numbers = pc.if_else(pa.array(short), values.data, "0").cast(pa.int64())
        data = np.where(short, numbers.to_numpy(zero_copy_only=False), 0)
        fits = ~within_width(data, target)[1]
        valid &= ~short | fits
        rest &= ~short
    rows = np.flatnonzero(rest)
    if len(rows):
        encoded = values.data.take(pa.array(rows)).dictionary_encode()
        read = _reader(target, legacy)
        numbers = [read(text) for text in encoded.dictionary.to_pylist()]
        known = np.array([number is not None for number in numbers], bool)
        picks = encoded.indices.to_numpy(zero_copy_only=False)
        parsed = np.zeros(len(numbers), dtype)
        parsed[known] = [number for number in numbers if number is not None]
        data[rows], valid[rows] = parsed[picks], known[picks]
    bad = values.valid & ~valid
    converted = Values(target, data, values.valid)
    if not bad.any():
        return converted
    shown = str(values.data[int(np.argmax(bad))].as_py())[:40]
    name = "STRING" if legacy else str(target)
    null = Failure.NULL if legacy else failure
    return converted.without(bad, null, f"the text {shown!r} is no {name}")


def _dtype_of(target: DataType) -> Any:
    match target.root:
        case "BOOLEAN":
            return np.bool_
        case "FLOAT":
            return np.float32
        case "DOUBLE":
            return np.float64
        case "DECIMAL" if target.precision > 18:
            return object
    return np.int64


def _reader(target: DataType, legacy: bool) -> Callable[[str], Any]:
    """What reads one text; None for text that is no value of the type."""
    match target.root:
        case "BOOLEAN":
            return to_boolean
        case "DOUBLE":
            return to_double
        case "FLOAT":
            return _to_float
        case "DATE":
            return to_date
        case "DECIMAL":
            return lambda text: _to_decimal(text, target)
        case "TIMESTAMP":
            return lambda text: _to_micros(text, zoned=False)
        case "TIMESTAMP_LTZ":
            return lambda text: _to_micros(text, zoned=True)
    bits = INTEGERS[target.root]

    def read(text: str) -> int | None:
        number = to_integer(_whole(text) if legacy else text)
        fits = number is not None and -(1 << bits - 1) <= number < 1 << bits - 1
        return number if fits else None

    return read


def _whole(text: str) -> str:
    """Without ANSI a fraction is cut off."""
    match = _FRACTION.fullmatch(text.strip(_BLANK))
    if match is None or not match[2] + match[3]:
        return text
    return f"{match[1]}{match[2] or '0'}"


def _to_float(text: str) -> np.float32 | None:
    """Text as a FLOAT, rounded once."""
    double = to_double(text)
    if double is None:
        return None
    with np.errstate(over="ignore"):
        near = np.float32(double)
        # Half way between two floats, what the double has lost decides.
        if np.isfinite(near) and _NUMBER.fullmatch(text.strip(_BLANK)):
            between = {np.nextafter(near, np.float32(end)) for end in ("-inf", "inf")}
            halves = [(float(near) + float(other)) / 2 for other in between]
            if double in halves:
                raise EvaluationError(f"the text {text[:40]!r} half way between two FLOATs")
    return near


def _to_decimal(text: str, target: DataType) -> int | None:
    word = text.strip(_BLANK)
    if not _NUMBER.fullmatch(word):
        return None
    number = Decimal(word)
    if number.adjusted() >= MOST_DIGITS and number:
        return None
    if number.adjusted() < -target.scale - 1:
        return 0
    sign, digits, exponent = number.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = -int(exponent)
    if shift < 0:
        unscaled, shift = unscaled * 10**-shift, 0
    data, beyond = rescaled(np.array([unscaled], object), shift, target)
    return None if beyond[0] else int(data[0])


def _to_micros(text: str, *, zoned: bool) -> int | None:
    if _TIME_ONLY.match(text.strip(_BLANK)):
        raise EvaluationError(f"the text {text[:40]!r} is a time of today")
    clock = to_timestamp(text)
    if clock is None:
        return None
    if not zoned:
        return clock.nanos // 1000
    instant = instant_of_clock(clock)
    return None if isinstance(instant, str) else instant // 1000


# -- dates and timestamps ----------------------------------------------------------------------


def _among_times(values: Values, target: DataType) -> Values:
    source = values.type.root
    if target.root == "DATE":
        return dates_of(_as_walls(values))
    if target.root == "TIMESTAMP":
        return _as_walls(values)
    walls = values.data * _DAY_IN_MICROS if source == "DATE" else values.data
    return Values(TIMESTAMP_LTZ, instants_of(walls), values.valid)


def _as_walls(values: Values) -> Values:
    match values.type.root:
        case "DATE":
            return Values(TIMESTAMP, values.data * _DAY_IN_MICROS, values.valid)
        case "TIMESTAMP_LTZ":
            return Values(TIMESTAMP, walls_of(values.data), values.valid)
    return values
