"""The interface of index readers: probes, and selections of the rows that may match.

A format answers the probes that it can answer, with exactly the rows that have such keys; any row
may match the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from pyroaring import BitMap

from alcid.errors import PredicateError
from alcid.formats.file_index.keys import Key


@dataclass(frozen=True, slots=True)
class Selection:
    """Positions that may match, or any row where an index cannot tell.

    `&` and `|` know four kinds of answers: any row, every row, no row, these rows.

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
    """Parts of the predicate that each row satisfies by the index; whoever reads rows checks it."""

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


class IndexReader:
    """An opened index of one column.

    An answer is "any row", or exactly the rows whose keys are asked for: never fewer, and no more.
    `probe_index` relies on it: exact rows are counted without being read, and if they are read,
    one that does not match means that the index is stale.
    """

    def _unanswered(self) -> Selection:
        """The answer to what a format cannot tell."""
        return ANY

    def is_null(self) -> Selection:
        """Rows without a value."""
        return self._unanswered()

    def is_not_null(self) -> Selection:
        """Rows with a value."""
        return self._unanswered()

    def is_in(self, keys: Sequence[Key]) -> Selection:  # noqa: ARG002
        """Rows with one of these keys."""
        return self._unanswered()

    def is_not_in(self, keys: Sequence[Key]) -> Selection:  # noqa: ARG002
        """Rows with a key that is none of these."""
        return self._unanswered()

    def between(self, begin: Key | None, end: Key | None) -> Selection:  # noqa: ARG002
        """Rows with `begin <= key < end`; None is no bound."""
        return self._unanswered()

    def top_n(
        self,
        k: int,  # noqa: ARG002
        *,
        descending: bool,  # noqa: ARG002
        nulls: Literal["first", "last"],  # noqa: ARG002
        among: BitMap | None = None,  # noqa: ARG002
        ties: bool = True,  # noqa: ARG002
    ) -> Selection:
        """The `k` highest (else lowest) rows `among` some; with `ties`, all that equal the last."""
        return self._unanswered()

    def extremes(self, k: int, *, descending: bool) -> list[Key]:  # noqa: ARG002
        """The `k` highest (else lowest) keys that some row has, or fewer; none if not known."""
        return []


class EmptyReader(IndexReader):
    """The index of a map key in a file without rows, of which nothing was written: no row."""

    def _unanswered(self) -> Selection:
        return no_row()
