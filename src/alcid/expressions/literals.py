"""Literals brought to the type of their column, as Spark's ANSI comparison would.

`key_range` finds the keys of a column that equal a literal. It never wraps, and rounds only what
Spark does: numbers beside a double, and decimals that with their column need more than 38 digits.
What a type does not take is a `LiteralError`:

| column           | takes                                                                         |
|------------------|-------------------------------------------------------------------------------|
| BOOLEAN          | bool, text                                                                    |
| integers         | int, Decimal, float, text of an integer                                       |
| DECIMAL          | int, Decimal; float and text, which Spark compares as doubles                 |
| FLOAT, DOUBLE    | int, Decimal, float, text; all compared as doubles                            |
| CHAR, VARCHAR    | text                                                                          |
| BINARY           | bytes, text as UTF-8                                                          |
| DATE             | date, text; datetime as midnight of the date against it                       |
| TIMESTAMP        | naive datetime, datetime64, date, text without a zone                         |
| TIMESTAMP_LTZ    | aware datetime, text; all that names no zone is in `alcid.config.timezone`   |
| TIME             | time without a zone, text                                                     |

Spark compares a DECIMAL with a DECIMAL, or with an integer, in one DECIMAL type for both. Where
that would need more than 38 digits it keeps those before the point, and both sides are rounded.

NULL is not a literal here: whoever compares with it knows the answer (`normalize`).

Spark pads CHAR(n) columns and literals with spaces before it compares them. It stores padded
values, too; other writers need not, and then `ab` is stored where Spark reads `ab   `. So a literal
equals every key that differs from it only in spaces at the end.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from alcid.errors import LiteralError
from alcid.expressions.casts_from_text import SessionTimestamp, to_boolean, to_double, to_integer
from alcid.expressions.expression import plain
from alcid.expressions.literal_times import (
    KeyRange,
    date_range,
    either,
    time_range,
    timestamp_range,
)
from alcid.formats.file_index.keys import key_type, order_float
from alcid.types import INTEGER_TYPES, DataType

Number: TypeAlias = int | float | Decimal

# No column holds a number of this many digits before or behind the point, and a Fraction of a
# Decimal with an exponent in the millions would not fit into memory.
_MOST_DIGITS = 1_000
_MOST_PRECISE = 38
_BEYOND = 10**_MOST_PRECISE

_MOST_KEYS = 64


def padded_range(text: bytes, length: int) -> KeyRange:
    r"""The key range of a literal among values that are stored with or without their padding.

    >>> padded_range(b"ab ", 4)
    KeyRange(begin=b'ab', end=b'ab    \x00', exact=False)
    """
    bare = text.rstrip(b" ")
    # Padding goes above a control character: "a" is below "a<tab>", and padded above it.
    control = next((at for at, byte in enumerate(bare) if byte < ord(" ")), len(bare))
    spaces = b" " * max(length, len(text) - len(bare))
    return KeyRange(bare[:control].rstrip(b" "), bare + spaces + b"\0", exact=False)


def padded_keys(text: bytes, length: int) -> list[bytes] | None:
    """The keys that equal a literal, one for each number of spaces; None when they are many.

    >>> padded_keys(b"ab", 4)
    [b'ab', b'ab ', b'ab  ']
    """
    bare = text.rstrip(b" ")
    missing = length - len(bare.decode())
    if missing >= _MOST_KEYS:
        return None
    return [bare + b" " * spaces for spaces in range(max(missing, 0) + 1)]


class Digits(NamedTuple):
    """The type DECIMAL(precision, scale)."""

    precision: int
    scale: int

    def widened(self, other: Digits) -> Digits:
        """The type in which Spark compares two: what is beyond 38 digits is cut from the scale.

        >>> Digits(10, 2).widened(Digits(5, 4))
        Digits(precision=12, scale=4)
        >>> Digits(38, 0).widened(Digits(2, 1))
        Digits(precision=38, scale=0)
        """
        scale = max(self.scale, other.scale)
        precision = scale + max(self.precision - self.scale, other.precision - other.scale)
        beyond = max(0, precision - _MOST_PRECISE)
        return Digits(precision - beyond, max(0, scale - beyond))


INT_DIGITS, BIGINT_DIGITS = Digits(10, 0), Digits(20, 0)
"""The DECIMALs that Spark takes an INT and a BIGINT for."""


def digits_of(number: int | Decimal, *, listed: bool = False) -> Digits | None:
    """The DECIMAL type of a literal; None for one that has too many digits for any.

    Args:
        number: The literal, with the zeros at its end: 5.50 has two digits behind the point.
        listed: It stands in a list, where Spark takes every INT for the widest.

    >>> digits_of(5), digits_of(Decimal("0.05"))
    (Digits(precision=1, scale=0), Digits(precision=2, scale=2))
    >>> digits_of(5, listed=True)
    Digits(precision=10, scale=0)
    """
    if isinstance(number, int):
        if listed and -(1 << 63) <= number < 1 << 63:
            return INT_DIGITS if -(1 << 31) <= number < 1 << 31 else BIGINT_DIGITS
        return Digits(len(str(abs(number))), 0) if -_BEYOND < number < _BEYOND else None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return None
    scale = max(0, -exponent)
    precision = max(scale, len(digits) + (max(0, exponent) if number else 0))
    return Digits(precision, scale) if precision <= _MOST_PRECISE else None


_DIGITS = {
    "TINYINT": Digits(3, 0),
    "SMALLINT": Digits(5, 0),
    "INT": INT_DIGITS,
    "BIGINT": BIGINT_DIGITS,
}
_MOST_SHOWN = 40


def key_range(
    literal: object,
    column: str,
    data_type: DataType,
    *,
    mixed: bool = False,
    digits: Digits | None = None,
) -> KeyRange:
    """The keys of a column that equal a literal.

    Args:
        literal: Any value but None.
        column: The name of the column, for the message of an error.
        data_type: The type of the column.
        mixed: The literal stands in a list with others of another type, and Spark brings a list
            to one type before it compares.
        digits: The `common_digits` of the list that the literal stands in.

    Returns:
        The range of keys, clipped to those of the type.

    Raises:
        LiteralError: The literal has no meaning for the type.

    >>> from alcid.types import DataType
    >>> key_range(5, "a", DataType("INT"))
    KeyRange(begin=5, end=6, exact=True)
    >>> key_range(5.5, "a", DataType("INT"))
    KeyRange(begin=6, end=6, exact=True)
    >>> key_range("x", "a", DataType("INT"))
    Traceback (most recent call last):
    alcid.errors.LiteralError: column a of type INT does not take the str 'x'
    """
    value = plain(literal)
    result = _key_range(value, data_type, mixed, digits)
    if isinstance(result, KeyRange):
        return result
    # repr(int) refuses thousands of digits.
    shown = str(Decimal(value)) if type(value) is int else repr(value)
    named = type(value).__name__ + (f" {shown}" if len(shown) <= _MOST_SHOWN else "")
    if result is None and isinstance(value, bool):  # a lone column c is read as c = TRUE
        result = "only a BOOLEAN column equals TRUE or FALSE, or stands on its own"
    reason = f": {result}" if result else ""
    raise LiteralError(f"column {column} of type {data_type} does not take the {named}{reason}")


def _key_range(
    value: object, data_type: DataType, mixed: bool, digits: Digits | None
) -> KeyRange | str | None:
    """The key range; else why there is none, or None where types say it all."""
    match data_type.root:
        case "BOOLEAN":
            return _among_booleans(value)
        case "FLOAT" | "DOUBLE":
            return _among_floating(value, key_type(data_type).width)
        case "DECIMAL":
            return _among_exact(value, data_type, mixed, digits)
        case root if root in INTEGER_TYPES:
            return _among_exact(value, data_type, mixed, digits)
        case "CHAR" | "VARCHAR":
            return _among_bytes(value, data_type) if isinstance(value, str) else None
        case "BINARY" | "VARBINARY":
            return _among_bytes(value, data_type) if isinstance(value, str | bytes) else None
        case "DATE" | "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _among_moments(value, data_type, mixed)
    return "no literal can be compared with this type"


def bounds_of(data_type: DataType) -> tuple[int, int]:
    """The least and the greatest key of a type whose keys are integers.

    >>> from alcid.types import DataType
    >>> bounds_of(DataType("TINYINT"))
    (-128, 127)
    """
    if data_type.root == "BOOLEAN":
        return 0, 1
    keys = key_type(data_type)
    if data_type.root == "DECIMAL":
        # More than 18 digits do not fit into a key of 8 bytes: those have no index.
        most = max(10**data_type.precision - 1, keys.maximum)
        return -most - 1, most
    return keys.minimum, keys.maximum


def common_digits(literals: Sequence[object], data_type: DataType) -> Digits | None:
    """The DECIMAL type to which Spark brings a list of literals and its column.

    Args:
        literals: Those of the list, in its order: what is cut for one is not given back.
        data_type: The type of the column.

    Returns:
        The type; None for a column that is neither an integer nor a DECIMAL. A literal that no
        DECIMAL holds, a double among them, has no part in it.

    >>> from alcid.types import DataType
    >>> common_digits([Decimal("0.5"), 10**20], DataType("DECIMAL", precision=18, scale=18))
    Digits(precision=38, scale=17)
    """
    if data_type.root != "DECIMAL" and data_type.root not in INTEGER_TYPES:
        return None
    common = _digits_of_column(data_type)
    for digits in dict.fromkeys(map(_listed_digits, literals)):  # once each: a list may be long
        common = common if digits is None else common.widened(digits)
    return common


def share_digits(literals: Sequence[object], data_type: DataType) -> bool:
    """Whether one DECIMAL type holds all numbers of a list, and its column, without loss.

    >>> from alcid.types import DataType
    >>> share_digits([1, Decimal("0.5")], DataType("INT"))
    True
    >>> share_digits([Decimal("0.5"), 10**20], DataType("DECIMAL", precision=18, scale=18))
    False
    """
    common = common_digits(literals, data_type)
    if common is None:
        return False
    scales = [_digits_of_column(data_type).scale]
    for literal in literals:
        if _as_number(literal) is not None and not isinstance(literal, float):
            digits = _listed_digits(literal)
            if digits is None:
                return False
            scales.append(digits.scale)
    return common.scale >= max(scales)


def _listed_digits(literal: object) -> Digits | None:
    if isinstance(literal, int | Decimal) and not isinstance(literal, bool):
        return digits_of(literal, listed=True)
    return BIGINT_DIGITS if isinstance(literal, str) else None  # beside a DECIMAL all are doubles


def _digits_of_column(data_type: DataType) -> Digits:
    return _DIGITS.get(data_type.root) or Digits(data_type.precision, data_type.scale)


def _as_number(value: object) -> Number | None:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value
    return None


def _among_booleans(value: object) -> KeyRange | None:
    truth = to_boolean(value) if isinstance(value, str) else value
    return KeyRange(int(truth), int(truth) + 1) if isinstance(truth, bool) else None


def _among_floating(value: object, width: int) -> KeyRange | None:
    number = to_double(value) if isinstance(value, str) else _as_number(value)
    if number is None:
        return None
    double = as_double(number)
    if double is None:  # above every finite double and below infinity, or the same below zero
        key_range = among_floats(float("inf") if number > 0 else float("-inf"), width)
        edge = key_range.begin if number > 0 else key_range.end
        return KeyRange(edge, edge)
    return among_floats(double, width)


def _among_exact(
    value: object, data_type: DataType, mixed: bool, digits: Digits | None
) -> KeyRange | None:
    number = _as_number(value)
    if isinstance(value, str):  # Spark reads text as a BIGINT, or beside a DECIMAL as a DOUBLE
        number = to_double(value) if data_type.root == "DECIMAL" else to_integer(value)
    if number is None:
        return None
    bounds = bounds_of(data_type)
    double = as_double(number)
    if double is None:
        edge = bounds[1] + 1 if number > 0 else bounds[0]
        return KeyRange(edge, edge)
    if isinstance(number, float):
        return among_doubles(number, data_type.scale, bounds)
    exact = _among_decimals(number, data_type, digits, bounds)
    return either(exact, among_doubles(double, data_type.scale, bounds)) if mixed else exact


def _among_decimals(
    number: int | Decimal, data_type: DataType, listed: Digits | None, bounds: tuple[int, int]
) -> KeyRange:
    exact = among_fractions(number, data_type.scale, bounds)
    if isinstance(number, int) and data_type.scale == 0:
        return exact
    own, column = digits_of(number), _digits_of_column(data_type)
    if own is None:
        return exact
    common = listed or column.widened(own)
    if common.scale >= max(own.scale, column.scale):  # nothing is cut
        return exact
    rounded = among_rounded(number, data_type.scale, common.scale, bounds)
    # Spark rounds to find what equals an integer, but orders integers and decimals exactly.
    return rounded if listed or data_type.root == "DECIMAL" else either(exact, rounded)


def among_floats(number: float, width: int) -> KeyRange:
    """The key range of a double among floats of `width` bytes; both zeros are one number.

    >>> among_floats(0.0, 8)
    KeyRange(begin=-1, end=1, exact=True)
    >>> among_floats(0.1, 4)  # lies between two floats of four bytes
    KeyRange(begin=1036831949, end=1036831949, exact=True)
    """
    if number == 0:
        return KeyRange(order_float(-0.0, width), order_float(0.0, width) + 1)
    with np.errstate(over="ignore", under="ignore"):
        near = float(np.array(number, f"f{width}"))
    rank = order_float(near, width)
    if near < number:
        return KeyRange(rank + 1, rank + 1)
    return KeyRange(rank, rank if near > number else rank + 1)


def as_double(number: Number) -> float | None:
    """The double nearest to a number; None for a finite number that is beyond every double."""
    try:
        double = float(number)
    except OverflowError:
        return None
    return None if math.isinf(double) and not isinstance(number, float) else double


def among_fractions(number: int | Decimal, scale: int, bounds: tuple[int, int]) -> KeyRange:
    """The key range of an exact number among the keys of an integer or decimal column.

    >>> among_fractions(Decimal("5.5"), 0, (-128, 127))
    KeyRange(begin=6, end=6, exact=True)
    >>> among_fractions(1000, 0, (-128, 127))
    KeyRange(begin=128, end=128, exact=True)
    """
    if isinstance(number, Decimal) and number and abs(number.adjusted()) > _MOST_DIGITS:
        if number.adjusted() > 0:
            return _clip(bounds[1] + 1 if number > 0 else bounds[0] - 1, None, bounds)
        number = Decimal(1 if number > 0 else -1).scaleb(-_MOST_DIGITS)
    scaled = Fraction(number or 0) * 10**scale
    return _clip(math.ceil(scaled), math.floor(scaled) + 1, bounds)


def among_rounded(
    number: int | Decimal, scale: int, kept: int, bounds: tuple[int, int]
) -> KeyRange:
    """The key range of a number where only `kept` digits behind the point are compared.

    Halves are rounded away from zero. Where keys have more digits they are rounded as well, so
    that one number equals many.

    Args:
        number: A number that has a DECIMAL type.
        scale: The digits behind the point of the keys.
        kept: The digits behind the point of the type in which the two are compared.
        bounds: The least and the greatest key.

    >>> among_rounded(Decimal("5.5"), 0, 0, (-128, 127))
    KeyRange(begin=6, end=7, exact=True)
    >>> among_rounded(1, 2, 1, (-128, 127))
    KeyRange(begin=95, end=105, exact=True)
    """
    scaled = Fraction(number) * 10**kept
    nearest = math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled > 0 else -1)
    if kept >= scale:
        among = Fraction(nearest, 10 ** (kept - scale))
        return _clip(math.ceil(among), math.floor(among) + 1, bounds)
    step = 10 ** (scale - kept)
    return _clip(_first_near(nearest, step), _first_near(nearest + 1, step), bounds)


def _first_near(number: int, step: int) -> int:
    """The least key that is rounded to `number` steps, or to more."""
    return number * step - step // 2 + (1 if number <= 0 else 0)


def among_doubles(number: float, scale: int, bounds: tuple[int, int]) -> KeyRange:
    """The key range of a double among the keys of an integer or decimal column.

    Spark compares these as doubles, so from 2**53 on a double equals many integers.

    >>> among_doubles(2.0**53, 0, (-(2**63), 2**63 - 1))
    KeyRange(begin=9007199254740992, end=9007199254740994, exact=False)
    """
    if math.isnan(number):
        return KeyRange(bounds[1] + 1, bounds[1] + 1)
    unit = 10**scale
    begin = _least(bounds, lambda key: key / unit >= number)
    end = _least(bounds, lambda key: key / unit > number)
    return KeyRange(begin, end, exact=end - begin <= 1)


def _least(bounds: tuple[int, int], holds: Callable[[int], bool]) -> int:
    """The least key from which on `holds`; one above the bounds when none does."""
    low, high = bounds[0], bounds[1] + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _clip(begin: int, end: int | None, bounds: tuple[int, int]) -> KeyRange:
    least, beyond = bounds[0], bounds[1] + 1
    begin = min(max(begin, least), beyond)
    return KeyRange(begin, begin if end is None else min(max(end, least), beyond))


def _among_bytes(value: str | bytes, data_type: DataType) -> KeyRange | str:
    if isinstance(value, str):
        try:
            value = value.encode()
        except UnicodeEncodeError:
            return "it has a lone surrogate"
    if data_type.root == "CHAR":
        return padded_range(value, data_type.length)
    return KeyRange(value, value + b"\0")


def _among_moments(value: object, data_type: DataType, mixed: bool) -> KeyRange | str | None:
    known = isinstance(
        value, str | datetime.date | datetime.time | np.datetime64 | SessionTimestamp
    )
    if not known:
        return None
    if value != value:  # noqa: PLR0124 - NaT, NumPy's or pandas', is the one that differs from itself
        return "it is not a time"
    match data_type.root:
        case "DATE":
            return date_range(value, mixed)
        case "TIME":
            return time_range(value, data_type.precision)
        case root:
            local = root == "TIMESTAMP_LTZ"
            return timestamp_range(value, data_type.precision, local, mixed)
