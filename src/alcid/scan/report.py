"""The stages of reading, for the explanation: row groups, pages, rows.

What became of the row groups of files that were opened.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from alcid._arrays import Int64Array
from alcid.scan.access import PageAccess, WholeAccess
from alcid.scan.candidates import Candidates
from alcid.scan.explain import Counts, FileOutcomes, GroupColumns, OutcomeNotes, Stage
from alcid.scan.reading import Reading
from alcid.scan.table_files import DataFiles, TableFiles

__all__ = ["counting_stages", "fetching_stage", "outcomes_of", "reading_stages"]


def reading_stages(
    reading: Reading, candidates: Candidates, found: int | None, spared: tuple[str, str]
) -> list[Stage]:
    """What is read of the candidates, and how many rows were found, if any were looked for.

    `spared` is the name of a stage, and why the files that it leaves out need not be read. Pages
    are counted of files that are read by pages, if any is; of the others whole row groups are read.
    """
    planned, offered = candidates.counts(reading.table), _offered(reading)
    stages = _spared(planned, offered, spared)
    groups = all_groups = pages = all_pages = rows = files = paged = 0
    size = page_size = 0
    for access in reading.accesses:
        rows += access.rows
        if isinstance(access, PageAccess):
            files, paged = files + 1, paged + 1
            touched = access.touched
            groups, all_groups = groups + touched.row_groups, all_groups + touched.all_row_groups
            pages, all_pages = pages + touched.pages, all_pages + touched.all_pages
            size, page_size = size + touched.all_bytes, page_size + touched.bytes
        else:
            files += bool(access.groups)
            groups, all_groups = groups + len(access.groups), all_groups + len(access.starts) - 1
            size, page_size = size + access.size, page_size + access.size
    spent = reading.spent
    left = Counts(files, groups, all_pages if paged else None, rows, size)
    read = replace(left, pages=pages if paged else None, bytes=page_size)
    stages.append(
        Stage(
            "row groups",
            replace(offered, row_groups=all_groups),
            left,
            spent.open_seconds,
            spent.opened.requests,
            spent.opened.bytes_read,
            {"no row group within bounds": offered.files - files} if offered.files > files else {},
        )
    )
    if paged:
        stages.append(Stage("pages", left, read))
    stages.append(
        Stage(
            "rows",
            read,
            replace(read, rows=found),
            spent.read_seconds,
            spent.read.requests,
            spent.read.bytes_read,
        )
    )
    return stages


def counting_stages(
    table: DataFiles, planned: Candidates, rest: Candidates, found: int, spared: tuple[str, str]
) -> list[Stage]:
    """What was counted without reading, and the rest, of which others counted the rows."""
    before = rest.counts(table)
    counted = Stage("rows", before, replace(before, rows=found))
    return [*_spared(planned.counts(table), before, spared), counted]


def fetching_stage(reading: Reading, before: Counts) -> Stage:
    """The other columns of the best rows."""
    spent = reading.spent
    seconds, traffic = spent.open_seconds + spent.read_seconds, spent.opened + spent.read
    return Stage("fetch", before, before, seconds, traffic.requests, traffic.bytes_read)


def _spared(planned: Counts, offered: Counts, spared: tuple[str, str]) -> list[Stage]:
    """The stage that left out files, or rows of them, before they were opened, if one did."""
    if offered == planned:
        return []
    name, why = spared
    files = planned.files - offered.files
    return [Stage(name, planned, offered, dropped={why: files} if files else {})]


def _offered(reading: Reading) -> Counts:
    """All that it was asked to read."""
    every = [one.counts(reading.table) for one in reading.offered]
    return Counts(
        sum(one.files for one in every),
        rows=sum(one.rows or 0 for one in every),
        bytes=sum(one.bytes or 0 for one in every),
    )


_WITHIN = "row groups", "no value within bounds"


def outcomes_of(
    notes: OutcomeNotes,
    table: TableFiles,
    reading: Reading,
    planned: Candidates,
    spared: tuple[str, str],
) -> FileOutcomes:
    """The outcomes of all files, when it is known what is read of the candidates.

    What is found is added to the notes. `spared` is the outcome of candidates that were not opened.
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
        notes.codes[file] = notes.code(*_outcome(access))
        groups.append(_groups(notes, table, access, why))
    return FileOutcomes(table, notes, GroupColumns.of(groups))


def _outcome(access: PageAccess | WholeAccess) -> tuple[str, str]:
    if isinstance(access, PageAccess):
        return "read", "by pages"
    if not access.groups:
        return "row groups", "no row group within bounds"
    return "read", f"by whole row groups: {access.why}"


def _groups(
    notes: OutcomeNotes,
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
    codes = np.full(len(rows), notes.code(*_outcome(access)), np.int64)
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


def _per_group(starts: Int64Array, positions: Int64Array) -> Int64Array:
    """How many of some positions stand in each row group."""
    return np.diff(np.searchsorted(positions, starts))


def _pages(access: PageAccess) -> tuple[Int64Array, Int64Array]:
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
