"""What became of the row groups of files that were opened."""

from __future__ import annotations

import numpy as np

from alcid.plan.access import PageAccess, WholeAccess
from alcid.plan.candidates import Candidates
from alcid.plan.fates import FateNotes, Fates, GroupColumns
from alcid.plan.reading import Reading
from alcid.plan.table_files import Integers, TableFiles

__all__ = ["fates_of"]

_WITHIN = "row groups", "no value within bounds"


def fates_of(
    notes: FateNotes,
    table: TableFiles,
    reading: Reading,
    planned: Candidates,
    spared: tuple[str, str],
) -> Fates:
    """The fates of all files, when it is known what is read of the candidates.

    What is found is added to the notes. `spared` is the fate of candidates that were not opened.
    """
    unknown = planned.files[notes.codes[planned.files] < 0]
    notes.note(unknown, *spared)
    selections = dict(zip(planned.files.tolist(), planned.selections, strict=True))
    groups = []
    for access in reading.accesses:
        file = access.file
        stage = "file index"
        if access.selection is not selections[file]:  # the cut-off left fewer of its rows
            stage = spared[0]
        why = (stage, "no row in the index" if stage == "file index" else spared[1])
        notes.codes[file] = notes.code(*_fate(access))
        groups.append(_groups(notes, table, access, why))
    return Fates(table, notes, GroupColumns.of(groups))


def _fate(access: PageAccess | WholeAccess) -> tuple[str, str]:
    if isinstance(access, PageAccess):
        return "read", "by pages"
    if not access.groups:
        return "row groups", "no row group within bounds"
    return "read", f"by whole row groups: {access.why}"


def _groups(
    notes: FateNotes,
    table: TableFiles,
    access: PageAccess | WholeAccess,
    without_rows: tuple[str, str],
) -> GroupColumns:
    """The row groups of a file; `without_rows` is what left out those that no row is asked of."""
    starts = access.layout.starts if isinstance(access, PageAccess) else access.starts
    rows = np.diff(starts)
    chosen = access.selection.rows
    asked = rows if chosen is None else _per_group(starts, np.asarray(chosen.to_array()))
    if isinstance(access, PageAccess):
        kept = asked > 0
        pages, all_pages = _pages(access)
    else:
        kept = np.zeros(len(rows), bool)
        kept[list(access.groups)] = True
        pages = all_pages = np.full(len(rows), -1, np.int64)
    codes = np.full(len(rows), notes.code(*_fate(access)), np.int64)
    codes[~kept] = notes.code(*_WITHIN)
    if not asked.all():
        codes[asked == 0] = notes.code(*without_rows)
        codes[rows == 0] = notes.code("row groups", "no rows")
        vector = table.deletions.get(access.file)
        if vector:
            deleted = _per_group(starts, vector.to_numpy())
            gone = (deleted == rows) & (rows > 0)
            codes[gone] = notes.code("deletion vectors", "all rows deleted")
    file = np.full(len(rows), access.file, np.int64)
    return GroupColumns(file, rows, codes, np.where(kept, asked, 0), pages, all_pages)


def _per_group(starts: Integers, positions: Integers) -> Integers:
    """How many of some positions stand in each row group."""
    return np.diff(np.searchsorted(positions, starts))


def _pages(access: PageAccess) -> tuple[Integers, Integers]:
    """The pages that are read of each row group, and those that it has of the columns."""
    starts = access.layout.starts
    count = len(starts) - 1
    pages, all_pages = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for name in access.columns:
        for leaf in access.layout.column(name).leaves:
            firsts = leaf.pieces[2]
            group = np.searchsorted(starts, firsts, "right") - 1
            hit = np.unique(np.searchsorted(firsts, access.positions, "right") - 1)
            pages += np.bincount(group[hit], minlength=count)
            all_pages += np.bincount(group, minlength=count)
    return pages, all_pages
