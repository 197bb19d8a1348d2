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

NULL is not a literal here: whoever compares with it knows the answer (`normalize`).

Spark pads CHAR(n) columns and literals with spaces before it compares them. It stores padded
values, too; other writers need not, and then `ab` is stored where Spark reads `ab   `. So a literal
equals every key that differs from it only in spaces at the end.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from alcid.errors import LiteralError
from alcid.expressions.casts_from_text import SessionTimestamp, to_boolean, to_double, to_integer
from alcid.expressions.expression import plain
from alcid.expressions.literal_keys import (
    BIGINT_DIGITS,
    INT_DIGITS,
    Digits,
    KeyRange,
    Number,
    among_doubles,
    among_floats,
    among_fractions,
    among_rounded,
    as_double,
    date_range,
    digits_of,
    either,
    time_range,
    timestamp_range,
)
from alcid.formats.file_index.keys import key_type
from alcid.types import INTEGER_TYPES, DataType

__all__ = [
    "bounds_of",
    "common_digits",
    "key_range",
    "padded_keys",
    "padded_range",
    "share_digits",
]

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
    found = _key_range(value, data_type, mixed, digits)
    if isinstance(found, KeyRange):
        return found
    # repr(int) refuses thousands of digits.
    shown = str(Decimal(value)) if type(value) is int else repr(value)
    named = type(value).__name__ + (f" {shown}" if len(shown) <= _MOST_SHOWN else "")
    if found is None and isinstance(value, bool):  # a lone column c is read as c = TRUE
        found = "only a BOOLEAN column equals TRUE or FALSE, or stands on its own"
    reason = f": {found}" if found else ""
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
    found = _among_decimals(number, data_type, digits, bounds)
    return either(found, among_doubles(double, data_type.scale, bounds)) if mixed else found


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
