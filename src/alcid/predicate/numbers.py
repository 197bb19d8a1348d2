"""Where a number lies among the keys of a numeric column.

Spark compares a DECIMAL with a DECIMAL, or with an integer, in one DECIMAL type for both. Where
that would need more than 38 digits it keeps those before the point, and both sides are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from alcid.formats.file_index.keys import Key, order_float

__all__ = [
    "BIGINT_DIGITS",
    "INT_DIGITS",
    "Digits",
    "Number",
    "Place",
    "among_doubles",
    "among_floats",
    "among_fractions",
    "among_rounded",
    "as_double",
    "digits_of",
    "either",
]

Number: TypeAlias = int | float | Decimal

# No column holds a number of this many digits before or behind the point, and a Fraction of a
# Decimal with an exponent in the millions would not fit into memory.
_MOST_DIGITS = 1_000
_MOST_PRECISE = 38
_BEYOND = 10**_MOST_PRECISE


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


def either(first: Place, second: Place) -> Place:
    """The place of a literal that may lie at either of two among integer keys.

    >>> either(Place(5, 6), Place(6, 6))
    Place(begin=5, end=6, certain=False)
    """
    if first == second:
        return first
    keys = [int(key) for at in (first, second) for key in (at.begin, at.end)]
    return Place(min(keys), max(keys), certain=False)


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


def among_rounded(number: int | Decimal, scale: int, kept: int, bounds: tuple[int, int]) -> Place:
    """The place of a number where only `kept` digits behind the point are compared.

    Halves are rounded away from zero. Where keys have more digits they are rounded as well, so
    that one number equals many.

    Args:
        number: A number that has a DECIMAL type.
        scale: The digits behind the point of the keys.
        kept: The digits behind the point of the type in which the two are compared.
        bounds: The least and the greatest key.

    >>> among_rounded(Decimal("5.5"), 0, 0, (-128, 127))
    Place(begin=6, end=7, certain=True)
    >>> among_rounded(1, 2, 1, (-128, 127))
    Place(begin=95, end=105, certain=True)
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
