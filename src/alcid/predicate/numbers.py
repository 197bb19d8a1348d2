"""Where a number lies among the keys of a numeric column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from alcid.formats.file_index.keys import Key, order_float

__all__ = ["Number", "Place", "among_doubles", "among_floats", "among_fractions", "as_double"]

Number: TypeAlias = int | float | Decimal

# No column holds a number of this many digits before or behind the point, and a Fraction of a
# Decimal with an exponent in the millions would not fit into memory.
_MOST_DIGITS = 1_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a literal lies among the keys of a column.

    | comparison | keys                  | when not certain        |
    |------------|-----------------------|-------------------------|
    | `= x`      | `begin <= key < end`  | the same                |
    | `< x`      | `key < begin`         | `key < end`             |
    | `<= x`     | `key < end`           | the same                |
    | `> x`      | `key >= end`          | `key >= begin`          |
    | `>= x`     | `key >= begin`        | the same                |
    | `<> x`     | all others            | every key               |
    """

    begin: Key
    """The least key that is not below the literal."""
    end: Key
    """The least key above the literal: `begin` when no key equals it."""
    certain: bool = True
    """False when a key from `begin` to `end` may or may not equal the literal."""


def among_floats(number: float, width: int) -> Place:
    """The place of a double among floats of `width` bytes; both zeros are one number.

    >>> among_floats(0.0, 8)
    Place(begin=-1, end=1, certain=True)
    >>> among_floats(0.1, 4)  # lies between two floats of four bytes
    Place(begin=1036831949, end=1036831949, certain=True)
    """
    if number == 0:
        return Place(order_float(-0.0, width), order_float(0.0, width) + 1)
    with np.errstate(over="ignore", under="ignore"):
        near = float(np.array(number, f"f{width}"))
    rank = order_float(near, width)
    if near < number:
        return Place(rank + 1, rank + 1)
    return Place(rank, rank if near > number else rank + 1)


def as_double(number: Number) -> float | None:
    """The double nearest to a number; None for a finite number that is beyond every double."""
    try:
        double = float(number)
    except OverflowError:
        return None
    return None if math.isinf(double) and not isinstance(number, float) else double


def among_fractions(number: int | Decimal, scale: int, bounds: tuple[int, int]) -> Place:
    """The place of an exact number among the keys of an integer or decimal column.

    >>> among_fractions(Decimal("5.5"), 0, (-128, 127))
    Place(begin=6, end=6, certain=True)
    >>> among_fractions(1000, 0, (-128, 127))
    Place(begin=128, end=128, certain=True)
    """
    if isinstance(number, Decimal) and number and abs(number.adjusted()) > _MOST_DIGITS:
        if number.adjusted() > 0:
            return _clip(bounds[1] + 1 if number > 0 else bounds[0] - 1, None, bounds)
        number = Decimal(1 if number > 0 else -1).scaleb(-_MOST_DIGITS)
    scaled = Fraction(number or 0) * 10**scale
    return _clip(math.ceil(scaled), math.floor(scaled) + 1, bounds)


def among_doubles(number: float, scale: int, bounds: tuple[int, int]) -> Place:
    """The place of a double among the keys of an integer or decimal column.

    Spark compares these as doubles, so from 2**53 on a double equals many integers.

    >>> among_doubles(2.0**53, 0, (-(2**63), 2**63 - 1))
    Place(begin=9007199254740992, end=9007199254740994, certain=False)
    """
    if math.isnan(number):
        return Place(bounds[1] + 1, bounds[1] + 1)
    unit = 10**scale
    begin = _least(bounds, lambda key: key / unit >= number)
    end = _least(bounds, lambda key: key / unit > number)
    return Place(begin, end, certain=end - begin <= 1)


def _least(bounds: tuple[int, int], holds: Callable[[int], bool]) -> int:
    """The least key from which on `holds`; one above the bounds when none does."""
    low, high = bounds[0], bounds[1] + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _clip(begin: int, end: int | None, bounds: tuple[int, int]) -> Place:
    least, beyond = bounds[0], bounds[1] + 1
    begin = min(max(begin, least), beyond)
    return Place(begin, begin if end is None else min(max(end, least), beyond))
