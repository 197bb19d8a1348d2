"""The files that may have rows, and which rows: what stages hand on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.formats.selection import ANY, EVERY, Selection
from alcid.plan.explanation import Counts
from alcid.plan.table_files import DataFiles, Integers

__all__ = ["Candidates"]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Files, in the order of the table as a rule, with the rows of each that may match."""

    files: Integers
    selections: tuple[Selection, ...]

    @classmethod
    def of(cls, files: Integers, certain: npt.NDArray[np.bool_]) -> Candidates:
        """Whole files, of which every row matches, or any."""
        return cls(files, tuple(EVERY if sure else ANY for sure in certain.tolist()))

    def chosen(self, selections: Iterable[Selection]) -> Candidates:
        """With other selections; files of which no row is left are dropped."""
        pairs = [
            (file, found)
            for file, found in zip(self.files.tolist(), selections, strict=True)
            if not found.skip
        ]
        files = np.array([file for file, _ in pairs], np.int64)
        return Candidates(files, tuple(found for _, found in pairs))

    def filter(self, mask: npt.NDArray[np.bool_]) -> Candidates:
        """Some of the files, with their selections."""
        kept = zip(self.selections, mask.tolist(), strict=True)
        return Candidates(self.files[mask], tuple(found for found, keep in kept if keep))

    def take(self, places: Integers) -> Candidates:
        """Some of the files, by their places among these."""
        return Candidates(self.files[places], tuple(self.selections[place] for place in places))

    def slice(self, start: int, end: int | None) -> Candidates:
        """Some of the files, one after the other; without an end, all that follow."""
        return Candidates(self.files[start:end], self.selections[start:end])

    def in_order(self) -> Candidates:
        """The same in the order of the table."""
        return self.take(np.argsort(self.files))

    def rows(self, table: DataFiles) -> Integers:
        """How many rows of each file are left."""
        whole = table.rows[self.files].tolist()
        found = [
            rows if selection.rows is None else len(selection.rows)
            for rows, selection in zip(whole, self.selections, strict=True)
        ]
        return np.array(found, np.int64)

    def counts(self, table: DataFiles) -> Counts:
        """What is left to be read."""
        return Counts(
            len(self.files),
            rows=int(self.rows(table).sum()),
            bytes=int(table.sizes[self.files].sum()),
        )
