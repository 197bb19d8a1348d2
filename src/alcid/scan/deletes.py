"""Deleted rows that are found by reading: vectors, delete files, and older rows of the same key.

Planning only pairs files: which vectors and delete files belong to a data file, and which files
share keys. The deleted rows themselves are found unit by unit, here in threads or in the tasks that
read the rows. No unit depends on another.

    files that share keys      unit       decides
    a, b, c                    keys < 40  rows of a, b
                               the rest   rows of b, c
    d, with a vector           d          all rows of d
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyroaring import BitMap

from alcid._arrays import Int64Array
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index.reader import Selection
from alcid.storage.threads import run_in_threads


@dataclass(frozen=True, slots=True, eq=False)
class DecidedRows:
    """The rows of a data file that a unit decides, and those of them that are deleted."""

    deleted: DeletionVector
    rows: BitMap | None = None
    """The rows that are decided; None: all of the file."""

    def live(self, row_count: int, selection: Selection) -> Selection:
        """Those of some selected rows that are decided, and not deleted."""
        rows = selection.rows
        if self.rows is not None:
            rows = self.rows if rows is None else rows & self.rows
        if rows is None and not self.deleted:
            return selection
        live = self.deleted.live_rows(row_count, rows)
        return Selection(live, selection.exact, selection.claims)


class PendingDeletes(Protocol):
    """Deleted rows of some data files that have not been looked for yet; it pickles."""

    @property
    def units(self) -> Sequence[Int64Array]:
        """For each unit the numbers of its data files; several units may decide rows of a file."""

    @property
    def sizes(self) -> Int64Array:
        """Roughly the bytes that each unit reads to find deleted rows."""

    def take(self, units: Int64Array) -> PendingDeletes:
        """Some of the units, and what these need."""

    def resolve(self, unit: int) -> Mapping[int, DecidedRows]:
        """Find the deleted rows of a unit, by the number of the data file.

        Raises:
            FormatError: A vector, a delete file or a data file is damaged: a deleted row must not
                come back.
        """


def resolve_all(pending: PendingDeletes, *, remote: bool) -> dict[int, DeletionVector]:
    """The deleted rows of all units, found in threads, by the number of the data file."""
    deleted: dict[int, DeletionVector] = {}
    decided = run_in_threads(pending.resolve, range(len(pending.units)), waiting=remote)
    for file, rows in (item for unit in decided for item in unit.items()):
        deleted[file] = deleted[file] | rows.deleted if file in deleted else rows.deleted
    return deleted
