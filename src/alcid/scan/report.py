"""Explanations, computed from what the stages of a scan returned.

Pruning stages say which files they dropped and why; reads say how each file was opened, and so its
row groups and pages. Nothing here is done for a scan that nobody asks to explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from alcid._arrays import Int64Array
from alcid.scan.access import PageAccess, WholeAccess
from alcid.scan.candidates import Candidates, StageResult
from alcid.scan.explain import (
    Counts,
    FileOutcomes,
    GroupColumns,
    Outcome,
    OutcomeCodes,
    Stage,
)
from alcid.scan.reading import ReadResult
from alcid.scan.table_files import DataFiles, TableFiles
from alcid.storage import Meter, Traffic

__all__ = ["ScanReport"]

_NO_ROW_IN_INDEX = Outcome("file index", "no row in the index")
_OUT_OF_BOUNDS = Outcome("row groups", "no value within bounds")
_NO_ROW_GROUP = Outcome("row groups", "no row group within bounds")
_NO_ROWS = Outcome("row groups", "no rows")
_ALL_DELETED = Outcome("deletion vectors", "all rows deleted")
_COUNTED_BY_SPARK = Outcome("read", "and counted by Spark")


@dataclass(frozen=True, slots=True, eq=False)
class ScanReport:
    """What the stages of a scan returned, from which its explanation is computed."""

    table: TableFiles
    pruning: Sequence[StageResult]
    unread: Outcome
    """Why candidates that were not opened need not be read."""
    reads: Sequence[ReadResult]
    fetches: Sequence[ReadResult]
    """Reads of the other columns of rows that were already found."""
    counted_elsewhere: Candidates | None
    """Files whose rows the engine counted; then nothing was read here."""
    row_count: int | None
    """The rows that match, as far as they were read or counted; None if nothing ran."""

    @property
    def planned(self) -> Candidates:
        """The candidates that pruning left."""
        return self.pruning[-1].candidates

    def stages(self) -> list[Stage]:
        """All stages, with what there was before and after each."""
        table, stages = self.table, []
        before = _counts(Candidates.whole(np.arange(len(table.sizes))), table)
        for result in self.pruning:
            after = _counts(result.candidates, table)
            dropped = {why: len(files) for why, files in result.dropped.items() if len(files)}
            stages.append(_stage(result.name, before, after, [result.cost], dropped))
            before = after
        if self.counted_elsewhere is None:
            stages += self._reading_stages(before)
        else:
            rest = _counts(self.counted_elsewhere, table)
            stages += self._unread_stage(before, rest)
            stages.append(Stage("rows", rest, replace(rest, rows=self.row_count)))
        if self.fetches:
            costs = [cost for read in self.fetches for cost in (read.opened.cost, read.cost)]
            stages.append(_stage("fetch", stages[-1].after, stages[-1].after, costs))
        return stages

    def _reading_stages(self, planned: Counts) -> list[Stage]:
        """What is read of the candidates.

        Pages are counted of files that are read by pages, if any is; of the others whole row groups
        are read.
        """
        counts = [_counts(read.opened.candidates, self.table) for read in self.reads]
        opened = Counts(
            sum(count.files for count in counts),
            rows=sum(count.rows or 0 for count in counts),
            bytes=sum(count.bytes or 0 for count in counts),
        )
        stages = self._unread_stage(planned, opened)
        groups = all_groups = pages = all_pages = rows = files = paged = 0
        size = page_size = 0
        for access in _accesses(self.reads):
            rows += access.rows
            if isinstance(access, PageAccess):
                files, paged = files + 1, paged + 1
                usage = access.usage
                groups, all_groups = groups + usage.row_groups, all_groups + usage.all_row_groups
                pages, all_pages = pages + usage.pages, all_pages + usage.all_pages
                size, page_size = size + usage.all_bytes, page_size + usage.bytes
            else:
                files += bool(access.groups)
                groups, all_groups = (
                    groups + len(access.groups),
                    all_groups + len(access.starts) - 1,
                )
                size, page_size = size + access.size, page_size + access.size
        left = Counts(files, groups, all_pages if paged else None, rows, size)
        read = replace(left, pages=pages if paged else None, bytes=page_size)
        before = replace(opened, row_groups=all_groups)
        dropped = {_NO_ROW_GROUP.reason: opened.files - files} if opened.files > files else {}
        opening = [result.opened.cost for result in self.reads]
        stages.append(_stage("row groups", before, left, opening, dropped))
        if paged:
            stages.append(Stage("pages", left, read))
        reading = [result.cost for result in self.reads]
        stages.append(_stage("rows", read, replace(read, rows=self.row_count), reading))
        return stages

    def _unread_stage(self, planned: Counts, opened: Counts) -> list[Stage]:
        """The stage that left out files, or rows of them, before they were opened, if one did."""
        if opened == planned:
            return []
        files = planned.files - opened.files
        dropped = {self.unread.reason: files} if files else {}
        return [Stage(self.unread.stage, planned, opened, dropped=dropped)]

    def outcomes(self) -> FileOutcomes:
        """What became of each file, and of the row groups of those that were opened."""
        codes = OutcomeCodes(len(self.table.sizes))
        for result in self.pruning:
            for reason, files in result.dropped.items():
                codes.note(files, Outcome(result.name, reason))
        codes.note(self.planned.files, self.unread)
        if self.counted_elsewhere is not None:
            codes.note(self.counted_elsewhere.files, _COUNTED_BY_SPARK)
        selections = dict(self.planned.items())
        groups = []
        for access in _accesses(self.reads):
            is_planned = access.selection is selections[access.file]
            # Else the cut-off left fewer of its rows.
            without_rows = _NO_ROW_IN_INDEX if is_planned else self.unread
            codes.note(np.array([access.file]), _outcome(access))
            groups.append(_row_groups(codes, self.table, access, without_rows))
        return FileOutcomes(self.table, codes, GroupColumns.of(groups))


def _accesses(reads: Sequence[ReadResult]) -> list[PageAccess | WholeAccess]:
    return [access for read in reads for access in read.opened.accesses]


def _counts(candidates: Candidates, table: DataFiles) -> Counts:
    """What is left to be read."""
    return Counts(
        len(candidates),
        rows=int(candidates.rows(table).sum()),
        bytes=int(table.sizes[candidates.files].sum()),
    )


def _stage(
    name: str,
    before: Counts,
    after: Counts,
    costs: Sequence[Meter],
    dropped: dict[str, int] | None = None,
) -> Stage:
    seconds = sum(cost.seconds for cost in costs)
    traffic = sum((cost.snapshot() for cost in costs), Traffic())
    return Stage(name, before, after, seconds, traffic.requests, traffic.bytes_read, dropped or {})


def _outcome(access: PageAccess | WholeAccess) -> Outcome:
    if isinstance(access, PageAccess):
        return Outcome("read", "by pages")
    if not access.groups:
        return _NO_ROW_GROUP
    return Outcome("read", f"by whole row groups: {access.reason}")


def _row_groups(
    codes: OutcomeCodes,
    table: TableFiles,
    access: PageAccess | WholeAccess,
    without_rows: Outcome,
) -> GroupColumns:
    """The row groups of a file; `without_rows` is the outcome of those that no row is left of."""
    starts = access.layout.starts if isinstance(access, PageAccess) else access.starts
    rows = np.diff(starts)
    chosen = access.selection.rows
    left = rows if chosen is None else _per_group(starts, np.asarray(chosen.to_array()))
    if isinstance(access, PageAccess):
        is_read = left > 0
        pages, all_pages = _pages(access)
    else:
        is_read = np.zeros(len(rows), bool)
        is_read[list(access.groups)] = True
        pages = all_pages = np.full(len(rows), -1, np.int64)
    outcomes = np.full(len(rows), codes.code(_outcome(access)), np.int64)
    outcomes[~is_read] = codes.code(_OUT_OF_BOUNDS)
    if not left.all():
        outcomes[left == 0] = codes.code(without_rows)
        outcomes[rows == 0] = codes.code(_NO_ROWS)
        vector = table.deletions.get(access.file)
        if vector:
            deleted = _per_group(starts, vector.to_numpy())
            outcomes[(deleted == rows) & (rows > 0)] = codes.code(_ALL_DELETED)
    file = np.full(len(rows), access.file, np.int64)
    return GroupColumns(file, rows, outcomes, np.where(is_read, left, 0), pages, all_pages)


def _per_group(starts: Int64Array, positions: Int64Array) -> Int64Array:
    """How many of some positions are in each row group."""
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
