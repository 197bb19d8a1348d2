"""Literals brought to the type of their column, exactly, as Spark's ANSI comparison would.

`place` says where a literal lies among the keys of a column; it never rounds and never wraps. What
a type does not take is a `LiteralError`:

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
| TIMESTAMP_LTZ    | aware datetime, text; all that names no zone is in `alcid.options.timezone`   |
| TIME             | time without a zone, text                                                     |

NULL is not a literal here: whoever compares with it knows the answer (`normalize`).
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np

from alcid.errors import LiteralError
from alcid.formats.file_index.keys import key_type
from alcid.predicate.column import plain
from alcid.predicate.moments import place_of_date, place_of_time, place_of_timestamp
from alcid.predicate.numbers import (
    Number,
    Place,
    among_doubles,
    among_floats,
    among_fractions,
    as_double,
)
from alcid.predicate.padding import padded_place
from alcid.predicate.text import SessionTimestamp, to_boolean, to_double, to_integer
from alcid.types import DataType

__all__ = ["INTEGERS", "bounds_of", "place"]

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_MOST_SHOWN = 40


def place(literal: object, column: str, data_type: DataType, *, mixed: bool = False) -> Place:
    """Where `literal` lies among the keys of a column.

    Args:
        literal: Any value but None.
        column: The name of the column, for the message of an error.
        data_type: The type of the column.
        mixed: The literal stands in a list with others of another type, and Spark brings a list
            to one type before it compares.

    Returns:
        The place, within the range of the keys.

    Raises:
        LiteralError: The literal has no meaning for the type.

    >>> from alcid.types import DataType
    >>> place(5, "a", DataType("INT"))
    Place(begin=5, end=6, certain=True)
    >>> place(5.5, "a", DataType("INT"))
    Place(begin=6, end=6, certain=True)
    >>> place("x", "a", DataType("INT"))
    Traceback (most recent call last):
    alcid.errors.LiteralError: column a of type INT does not take the str 'x'
    """
    value = plain(literal)
    found = _place(value, data_type, mixed)
    if isinstance(found, Place):
        return found
    # repr(int) refuses thousands of digits.
    shown = str(Decimal(value)) if type(value) is int else repr(value)
    named = type(value).__name__ + (f" {shown}" if len(shown) <= _MOST_SHOWN else "")
    if found is None and isinstance(value, bool):  # a lone column c is read as c = TRUE
        found = "only a BOOLEAN column equals TRUE or FALSE, or stands on its own"
    reason = f": {found}" if found else ""
    raise LiteralError(f"column {column} of type {data_type} does not take the {named}{reason}")


def _place(value: object, data_type: DataType, mixed: bool) -> Place | str | None:
    """The place; else why there is none, or None where types say it all."""
    match data_type.root:
        case "BOOLEAN":
            return _among_booleans(value)
        case "FLOAT" | "DOUBLE":
            return _among_floating(value, key_type(data_type).width)
        case "DECIMAL":
            return _among_exact(value, data_type, mixed)
        case root if root in INTEGERS:
            return _among_exact(value, data_type, mixed)
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
        # More than 18 digits do not fit into a key of 8 bytes: those have no index, but a place.
        most = max(10**data_type.precision - 1, keys.maximum)
        return -most - 1, most
    return keys.minimum, keys.maximum


def _as_number(value: object) -> Number | None:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value
    return None


def _among_booleans(value: object) -> Place | None:
    truth = to_boolean(value) if isinstance(value, str) else value
    return Place(int(truth), int(truth) + 1) if isinstance(truth, bool) else None


def _among_floating(value: object, width: int) -> Place | None:
    number = to_double(value) if isinstance(value, str) else _as_number(value)
    if number is None:
        return None
    double = as_double(number)
    if double is None:  # above every finite double and below infinity, or the same below zero
        place = among_floats(float("inf") if number > 0 else float("-inf"), width)
        edge = place.begin if number > 0 else place.end
        return Place(edge, edge)
    return among_floats(double, width)


def _among_exact(value: object, data_type: DataType, mixed: bool) -> Place | None:
    number = _as_number(value)
    if isinstance(value, str):  # Spark reads text as a BIGINT, or beside a DECIMAL as a DOUBLE
        number = to_double(value) if data_type.root == "DECIMAL" else to_integer(value)
    if number is None:
        return None
    bounds = bounds_of(data_type)
    double = as_double(number)
    if double is None:
        edge = bounds[1] + 1 if number > 0 else bounds[0]
        return Place(edge, edge)
    if isinstance(number, float):
        return among_doubles(number, data_type.scale, bounds)
    exact = among_fractions(number, data_type.scale, bounds)
    if not mixed:
        return exact
    rounded = among_doubles(double, data_type.scale, bounds)
    if exact == rounded:
        return exact
    begin, end = min(exact.begin, rounded.begin), max(exact.end, rounded.end)
    return Place(begin, end, certain=False)


def _among_bytes(value: str | bytes, data_type: DataType) -> Place | str:
    if isinstance(value, str):
        try:
            value = value.encode()
        except UnicodeEncodeError:
            return "it has a lone surrogate"
    if data_type.root == "CHAR":
        return padded_place(value, data_type.length)
    return Place(value, value + b"\0")


def _among_moments(value: object, data_type: DataType, mixed: bool) -> Place | str | None:
    known = isinstance(
        value, str | datetime.date | datetime.time | np.datetime64 | SessionTimestamp
    )
    if not known:
        return None
    if value != value:  # noqa: PLR0124 - NaT, NumPy's or pandas', is the one that differs from itself
        return "it is not a time"
    match data_type.root:
        case "DATE":
            return place_of_date(value, mixed)
        case "TIME":
            return place_of_time(value, data_type.precision)
        case root:
            local = root == "TIMESTAMP_LTZ"
            return place_of_timestamp(value, data_type.precision, local, mixed)
