"""`alcid.col`: predicates written in Python."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from alcid.errors import PredicateError
from alcid.predicate.expression import (
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Operator,
    Predicate,
    Unknown,
)
from alcid.predicate.render import quote_name

__all__ = ["Column", "col", "plain"]


def col(name: str) -> Column:
    """The column called `name`, to build a predicate from; `m[key]` is a key of a map column.

    >>> print(col("score") >= 60)
    score >= 60
    >>> print(col("tags[colour]") == "red")
    tags['colour'] = 'red'
    """
    return Column(name)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column, as `alcid.col` gives it: compare it with a value to have a `Predicate`.

    >>> print((col("a") == 1) | (col("a") > 5) & col("b").is_not_null())
    a = 1 OR a > 5 AND b IS NOT NULL
    """

    name: str

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: object) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: object) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Predicate:
        return self._compare(">=", other)

    def __hash__(self) -> int:
        return hash(self.name)

    def isin(self, values: Iterable[object]) -> Predicate:
        """Equal to one of `values`.

        >>> print(col("a").isin([1, 2]))
        a IN (1, 2)
        """
        if isinstance(values, str | bytes):
            raise PredicateError(f"isin takes a list of values, found one {type(values).__name__}")
        literals = tuple(map(plain, values))
        return In(self.name, literals) if literals else Constant(False)

    def between(self, low: object, high: object) -> Predicate:
        """From `low` to `high`, both included.

        >>> print(col("a").between(1, 9))
        a BETWEEN 1 AND 9
        """
        return Between(self.name, plain(low), plain(high))

    def is_null(self) -> Predicate:
        """Null.

        >>> print(col("a").is_null())
        a IS NULL
        """
        return IsNull(self.name)

    def is_not_null(self) -> Predicate:
        """Not null.

        >>> print(col("a").is_not_null())
        a IS NOT NULL
        """
        return IsNull(self.name, negated=True)

    def starts_with(self, prefix: str) -> Predicate:
        r"""Text that starts with `prefix`.

        >>> print(col("a").starts_with("50%"))
        a LIKE '50\\%%'
        """
        if not isinstance(prefix, str):
            raise PredicateError(f"starts_with takes text, found {type(prefix).__name__}")
        return Like(self.name, str(prefix), prefix=True)

    def _compare(self, operator: Operator, other: object) -> Predicate:
        if isinstance(other, Column):
            text = f"{quote_name(self.name)} {operator} {quote_name(other.name)}"
            return Unknown(text, (self.name, other.name))
        return Comparison(self.name, operator, plain(other))


def plain(literal: object) -> object:
    """A literal as a Python value: NumPy's scalars and byte buffers are unwrapped.

    >>> plain(5), plain(bytearray(b"a"))
    (5, b'a')
    """
    match literal:
        case np.datetime64() | np.timedelta64():
            return literal
        case np.floating():
            return plain(float(literal))
        case np.generic():
            return literal.item()
        case float() | Decimal() if math.isnan(literal):
            return math.nan  # one object, so that equal predicates are equal
        case Decimal() if literal.is_infinite():  # not one that is only beyond every double
            return float(literal)
        case bytearray() | memoryview():
            return bytes(literal)
    return literal
