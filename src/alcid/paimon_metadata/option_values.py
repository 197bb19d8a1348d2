"""How Paimon reads the text of an option: whole numbers, flags, names, sizes and durations.

A reader takes the text and raises ValueError with what it expected. Paimon does not strip blanks
from numbers and flags, so that ` true` is an error there, and here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeAlias

from alcid.errors import OptionError
from alcid.options import memory_size

__all__ = ["MAX_INT", "Reader", "choice", "duration", "flag", "names", "read", "size", "whole"]

MAX_INT: Final = 2**31 - 1
Reader: TypeAlias = Callable[[str], Any]


def read(key: str, text: str, reader: Reader) -> Any:
    """The value of an option.

    >>> read("bucket", "4", whole(-2))
    4
    >>> read("bucket", "four", whole(-2))
    Traceback (most recent call last):
    alcid.errors.OptionError: bucket: found 'four', expected a whole number from -2 to 2147483647
    """
    try:
        return reader(text)
    except ValueError as error:
        raise OptionError(f"{key}: found {text!r}, expected {error}") from None


def whole(least: int, most: int = MAX_INT) -> Reader:
    """A reader of whole numbers."""

    def convert(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return convert


def flag(text: str) -> bool:
    """True or false, in any case.

    >>> flag("TRUE")
    True
    """
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def choice(*known: str) -> Reader:
    """A reader of one of some words, in any case; the word comes out as it is listed."""

    def convert(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"{', '.join(known[:-1])} or {known[-1]}")
        return text.lower()

    return convert


def names(text: str) -> tuple[str, ...]:
    """Names of columns with commas between.

    >>> names("day, hour")
    ('day', 'hour')
    """
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) and text.strip():
        raise ValueError("names of columns with commas between")
    return found if text.strip() else ()


def size(text: str) -> int:
    """Bytes of a memory size.

    >>> size("128 mb")
    134217728
    """
    try:
        return memory_size(text)
    except OptionError as error:
        raise ValueError(str(error).partition("expected ")[2]) from None


_SECONDS: Final = {
    unit: seconds
    for units, seconds in (
        ("d day days", 86_400.0),
        ("h hour hours", 3_600.0),
        ("min m minute minutes", 60.0),
        ("s sec secs second seconds", 1.0),
        ("ms milli millis millisecond milliseconds", 1e-3),
        ("µs micro micros microsecond microseconds", 1e-6),
        ("ns nano nanos nanosecond nanoseconds", 1e-9),
    )
    for unit in units.split()
}


def duration(text: str) -> timedelta:
    """A span of time; without a unit, milliseconds. Nanoseconds are rounded to microseconds.

    >>> duration("1 h") == duration("3600000") == duration("60min")
    True
    """
    found = re.fullmatch(r"\s*([0-9]{1,19})\s*([a-zµ]*)\s*", text.lower())
    seconds = _SECONDS.get(found[2] or "ms") if found else None
    if not found or not seconds or int(found[1]) * seconds > timedelta.max.total_seconds() - 1:
        raise ValueError("a duration, as 1 h, 30 min, 10s or 500 ms")
    return timedelta(seconds=int(found[1]) * seconds)
