"""The answer of an index: which rows of a file may match."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from pyroaring import BitMap

from alcid.errors import PredicateError

__all__ = ["ANY", "EVERY", "Selection", "no_row"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Positions that may match, or any row where an index cannot tell.

    `&` and `|` follow the three kinds of answers: any row, no row, these rows.

    >>> Selection(BitMap([1, 2])) & Selection(BitMap([2, 3]))
    Selection(rows=BitMap([2]), exact=False)
    >>> (ANY & Selection(BitMap([1]))).rows
    BitMap([1])
    >>> (ANY | Selection(BitMap([1]))).rows is None
    True
    """

    rows: BitMap | None
    """The positions, or None for any row."""
    exact: bool = False
    """True when each of these rows matches, so that nothing is left to be looked at."""
    claims: tuple[Any, ...] = field(default=(), repr=False)
    """Parts of the predicate that the index says each row satisfies, to see that it is right."""

    @property
    def skip(self) -> bool:
        """True when no row can match, so that the file need not be read."""
        return self.rows is not None and not self.rows

    def __bool__(self) -> NoReturn:
        """Raise: whether a row can match is `not skip`."""
        raise PredicateError("a selection is neither true nor false: ask its skip or its rows")

    def __and__(self, other: Selection) -> Selection:
        """Rows in both."""
        exact = self.exact and other.exact
        if self.rows is None or other.rows is None:
            rows = other.rows if self.rows is None else self.rows
        else:
            rows = self.rows & other.rows
        claims = self.claims + other.claims
        return Selection(rows, exact or (rows is not None and not rows), claims)

    def __or__(self, other: Selection) -> Selection:
        """Rows in either."""
        if self.rows is None or other.rows is None:
            every = any(part.rows is None and part.exact for part in (self, other))
            return EVERY if every else ANY
        return Selection(self.rows | other.rows, self.exact and other.exact)


ANY = Selection(None)
EVERY = Selection(None, exact=True)


def no_row() -> Selection:
    """The answer that no row can match; a new one each time, as callers may add to its rows."""
    return Selection(BitMap(), exact=True)
