"""Keys back to values that can be read, and those as text."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from alcid.formats.cursor import Cursor
from alcid.formats.file_index.keys import Key, float_order, key_type
from alcid.printable import printable
from alcid.types import DataType

__all__ = [
    "Value",
    "decimal_text",
    "key_reading",
    "key_text",
    "not_finite",
    "value_of",
    "value_text",
]

Value: TypeAlias = bool | int | float | Decimal | str | bytes | tuple[int, ...] | None
"""Dates and times are text: Python's own end with the year 9999, those of an index do not."""

_DAY_IN_SECONDS = 86_400


def value_of(key: Key, data_type: DataType) -> Value:
    """The value that a key stands for; text that is not UTF-8 stays bytes.

    >>> value_of(1250, DataType.parse("DECIMAL(9, 2)")), value_of(19000, DataType("DATE"))
    (Decimal('12.50'), '2022-01-08')
    >>> value_of(-1500, DataType.parse("TIMESTAMP_LTZ(3)"))
    '1969-12-31 23:59:58.5Z'
    """
    if isinstance(key, bytes):
        return _text(key) if data_type.root in ("CHAR", "VARCHAR") else key
    match data_type.root:
        case "BOOLEAN":
            return bool(key)
        case "FLOAT":  # the shortest digits of four bytes: 0.1, not 0.10000000149011612
            return float(str(np.float32(float_order(key, 4))))
        case "DOUBLE":
            return float_order(key)
        case "DECIMAL":
            return Decimal((key < 0, tuple(map(int, str(abs(key)))), -data_type.scale))
        case "DATE":
            return _date(key)
        case "TIME":
            return _clock(key, 1_000)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            per_second = 1_000 if key_type(data_type).millis else 1_000_000
            days, rest = divmod(key, _DAY_IN_SECONDS * per_second)
            zone = "Z" if data_type.root == "TIMESTAMP_LTZ" else ""
            return f"{_date(days)} {_clock(rest, per_second)}{zone}"
        case _:
            return key


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _date(days: int) -> str:
    """Year, month and day; numpy counts the sign among the four digits of a year."""
    text = str(np.datetime64(days, "D"))
    return f"-{text[1:]:0>10}" if text.startswith("-") else text


def _clock(ticks: int, per_second: int) -> str:
    """Hours, minutes, seconds, and a fraction without zeros at its end, as Spark writes it."""
    seconds, fraction = divmod(ticks, per_second)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    digits = f"{fraction:0{len(str(per_second)) - 1}}".rstrip("0")
    return f"{shown}.{digits}" if digits else shown


def value_text(value: Value) -> str:
    r"""A value on one line, as SQL would write it.

    >>> print(value_text("it's"), value_text(b"\xff"), value_text(True), value_text(float("inf")))
    'it''s' X'ff' true Infinity
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            doubled = value.replace("'", "''")
            return f"'{printable(doubled)}'"
        case bytes():
            return f"X'{value.hex()}'"
        case float() if not math.isfinite(value):
            return not_finite(value)
        case Decimal():
            return decimal_text(value)
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def decimal_text(value: Decimal) -> str:
    """All digits, never an exponent.

    >>> decimal_text(Decimal("0E-3"))
    '0.000'
    """
    return format(value, "f")


def not_finite(value: float) -> str:
    """The name of NaN or of an infinity, which JSON lacks."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def key_text(key: Key, data_type: DataType) -> str:
    """The value of a key as text.

    >>> key_text(b"Graz", DataType.parse("STRING")), key_text(19000, DataType("DATE"))
    ("'Graz'", "'2022-01-08'")
    """
    return value_text(value_of(key, data_type))


def key_reading(data_type: DataType) -> tuple[Callable[[Cursor], Key], Callable[[Key], str]]:
    """How the next key of a column is read, and then shown."""
    return key_type(data_type).read, lambda key: key_text(key, data_type)
