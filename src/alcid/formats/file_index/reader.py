"""What an index can be asked. A format answers what it can and leaves the rest at any row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyroaring import BitMap

from alcid.formats.file_index.keys import Key
from alcid.formats.selection import ANY, Selection, no_row

__all__ = ["EmptyReader", "IndexReader"]


class IndexReader:
    """An opened index of one column. Every answer holds all rows that match, and maybe more."""

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
