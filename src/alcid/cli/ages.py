"""How old files must be before a command removes them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, TypeAlias

import typer

from alcid.errors import OptionError

__all__ = ["OlderThan", "parse_age"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

OlderThan: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="AGE",
        help="What is younger is left alone, as somebody may be writing it: 90s, 30m, 12h, 1d"
        " or 2w.",
    ),
]


def parse_age(text: str) -> timedelta:
    """A time span with its unit.

    >>> parse_age("12h")
    datetime.timedelta(seconds=43200)
    """
    found = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip())
    if found is None:
        raise OptionError(f"--older-than: found {text!r}, expected a number and a unit, as 12h")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise OptionError(f"--older-than: found {text!r}, expected less") from None
