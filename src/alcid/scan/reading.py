"""Reading: from files and rows that may match to the rows that do.

Files whose rows are known are read together, page by page; of the others the columns of the
predicate are read first, and of the rest only what the rows that match need.

Rows are compared with the predicate also where an index, or bounds, say that they match: this shows
that a data file is not the one that was indexed, though its size and time are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid._arrays import BoolArray, Int64Array
from alcid.datafiles.parquet import Coalescing, FileRows, read_many
from alcid.datafiles.parquet.decoding import int96_as
from alcid.errors import FileGoneError, FormatError
from alcid.expressions import And, Predicate, RowFilter
from alcid.formats.file_index.reader import EVERY, Selection
from alcid.scan.access import (
    PageAccess,
    Part,
    RowPositions,
    WholeAccess,
    conform,
    table_schema,
)
from alcid.scan.candidates import Candidates
from alcid.scan.leaves import TablePredicate
from alcid.scan.table_files import DataFiles, FileScan
from alcid.storage import Meter
from alcid.storage.threads import run_in_threads

UNKNOWN_ROWS = "no index says which rows"
"""Why a file is read by whole row groups; explanations give the cause, where it is known."""
MOST_ROWS = "no index leaves out most rows"
"""The same for a file of which some rows are deleted, or an index leaves out only a few."""

_TOGETHER = 512  # rows of files that one thread reads together, or a little more
_FEW = 1024  # one row of so many: pages are looked at, else all is read
_Access = PageAccess | WholeAccess


@dataclass(frozen=True, slots=True, eq=False)
class OpenedFiles:
    """Candidates, and how each of their files is read."""

    candidates: Candidates
    accesses: Sequence[_Access]
    cost: Meter


@dataclass(frozen=True, slots=True, eq=False)
class ReadResult:
    """The rows of candidates that match."""

    opened: OpenedFiles
    parts: Sequence[Part] = ()
    """By file and position; empty parts are left out."""
    cost: Meter = field(default_factory=Meter)
    """Of reading, without that of opening."""

    @property
    def count(self) -> int:
        """How many rows match."""
        return sum(map(len, self.parts))


@dataclass(slots=True, eq=False)
class RowReader:
    """Reads the rows of candidates that match a predicate."""

    table: DataFiles
    where: TablePredicate
    use_statistics: bool
    _claims: dict[tuple[Predicate, ...], RowFilter] = field(default_factory=dict)
    _stale: set[int] = field(default_factory=set)
    """Files with a row that does not match though an index, or bounds, say so."""

    def read(self, candidates: Candidates, columns: Sequence[str]) -> ReadResult:
        """Read the rows that match.

        Raises:
            FileGoneError: A file is not the one that was indexed; it is distrusted from now on.
        """
        opened = self.open(candidates, columns)
        tasks = list(self._tasks(opened.accesses))
        with int96_as(self.table.int96_unit), Meter() as cost:
            parts = run_in_threads(
                lambda task: self._run(task, columns), tasks, waiting=self.table.remote
            )
        self.refuse(sorted(self._stale))
        return ReadResult(opened, [part for part in parts if len(part)], cost)

    def empty(self, columns: Sequence[str]) -> pa.Table:
        """No rows."""
        return table_schema(self.table, columns).empty_table()

    def _is_checked(self, selection: Selection) -> bool:
        """Whether rows are compared with the predicate: not where partitions alone decide."""
        return not selection.exact or not self.where.is_partition_only

    def _needed(self, selection: Selection, columns: Sequence[str]) -> list[str]:
        """Columns of the table that are read of a file."""
        checked = self.where.columns if self._is_checked(selection) else ()
        return list(dict.fromkeys([*checked, *columns]))

    def open(self, candidates: Candidates, columns: Sequence[str]) -> OpenedFiles:
        """Decide how each file is read."""
        with Meter() as cost:
            accesses = self._open(candidates, columns)
        return OpenedFiles(candidates, accesses, cost)

    def _open(self, candidates: Candidates, columns: Sequence[str]) -> list[_Access]:
        table, selections = self.table, candidates.items()
        accesses: dict[int, _Access] = {}
        reasons: dict[int, str] = {}  # of files that are read whole
        paged: list[tuple[int, Selection, list[str]]] = []
        for file, selection in selections:
            inside = table.columns.file_names(file, self._needed(selection, columns))
            reasons[file] = self._whole_reason(file, selection, inside)
            if not reasons[file]:
                paged.append((file, selection, inside))
        layouts = (
            table.layouts([file for file, *_ in paged], [inside for *_, inside in paged])
            if paged
            else []
        )
        for (file, selection, inside), layout in zip(paged, layouts, strict=True):
            if self._names_missing_rows(file, selection, int(layout.starts[-1])):
                continue
            access = PageAccess(file, selection, layout, _positions(selection), inside)
            if access.is_sparse:
                accesses[file] = access
            else:
                unpaged = next(filter(None, (column.whole for column in layout.columns)), "")
                reasons[file] = (
                    f"its pages are not known: {unpaged}" if unpaged else "most pages have a row"
                )
        whole = [(file, selection) for file, selection in selections if file not in accesses]
        scans = table.open([file for file, _ in whole])
        for (file, selection), scan in zip(whole, scans, strict=True):
            accesses[file] = self._whole(file, selection, scan, columns, reasons[file])
        self.refuse(sorted(self._stale))
        return [accesses[file] for file, _ in selections]

    def _whole_reason(self, file: int, selection: Selection, inside: Sequence[str]) -> str:
        """Why a file is not read by its pages; empty if it may be."""
        if selection.rows is None:
            return "every row matches" if selection.exact else UNKNOWN_ROWS
        if 2 * len(selection.rows) > self.table.rows[file]:  # of most rows, most pages are read
            return "most rows are needed" if selection.exact else MOST_ROWS
        if not inside:
            return "no column of it is needed"
        return "" if self.table.has_pages(file) else "its pages are not known"

    def _names_missing_rows(self, file: int, selection: Selection, count: int) -> bool:
        """Whether an index names rows that a file, which has `count`, does not have."""
        if (
            not selection.rows
            or not (selection.exact or selection.claims)
            or selection.rows.max() < count
        ):
            return False
        self._stale.add(file)
        return True

    def refuse(self, files: Sequence[int]) -> None:
        """Give up if there are files that are not those that were indexed.

        Raises:
            FileGoneError: There are; their indexes are not used from now on.
        """
        self._stale.clear()
        if files:
            problem = "its rows are not what its indexes or statistics say"
            self.table.distrust(files, problem)
            raise FileGoneError(problem, file=self.table.source(files[0]).name)

    def _whole(
        self,
        file: int,
        selection: Selection,
        scan: FileScan,
        columns: Sequence[str],
        reason: str,
    ) -> WholeAccess:
        rows = scan.group_rows
        starts = np.cumsum([0, *rows])
        self._names_missing_rows(file, selection, int(starts[-1]))
        is_checked = self._is_checked(selection) and not self._is_certain(
            file, selection, scan, columns
        )
        needed = self._needed(selection, columns) if is_checked else columns
        inside = self.table.columns.file_names(file, needed)
        if selection.exact or not self.use_statistics:
            groups = [group for group, count in enumerate(rows) if count]
        else:
            groups = self.where.matching_row_groups(file, scan)
        positions = None
        if selection.rows is not None:
            bounds = {group: range(starts[group], starts[group + 1]) for group in groups}
            left = {group: selection.rows & BitMap(rows) for group, rows in bounds.items()}
            groups = [group for group in groups if left[group]]
            arrays = [left[group].to_array() for group in groups]
            positions = np.concatenate([np.zeros(0, np.int64), *arrays], dtype=np.int64)
        sizes = scan.column_sizes(inside)
        size = int(sizes[groups].sum())
        return WholeAccess(
            file, selection, scan, groups, starts, size, positions, reason, is_checked
        )

    def _is_certain(
        self, file: int, selection: Selection, scan: FileScan, columns: Sequence[str]
    ) -> bool:
        """Whether the footer of a file, too, says that all its rows match.

        That need not be evaluated where the columns of the predicate are read anyway.
        """
        if (
            not selection.exact
            or selection.rows is not None
            or set(self.where.columns) <= set(columns)
        ):
            return False
        if self.table.is_compared(file):
            return True
        return bool(self.where.prune_row_groups(file, scan).all_match.all())

    def _tasks(self, accesses: Sequence[_Access]) -> Iterator[list[PageAccess] | WholeAccess]:
        """Files that can be read together, and batches of row groups, in the order of files."""
        together: list[PageAccess] = []
        for access in accesses:
            if together and not (
                isinstance(access, PageAccess) and self._goes_with(access, together)
            ):
                yield together
                together = []
            if isinstance(access, PageAccess):
                together.append(access)
            else:
                yield from access.batches()
        if together:
            yield together

    def _goes_with(self, access: PageAccess, others: Sequence[PageAccess]) -> bool:
        """Whether a file is read together with others: of the same columns, and not too many."""
        schema_of, other = self.table.columns.schema_of, others[0]
        return (
            schema_of[access.file] == schema_of[other.file]
            and access.selection.exact == other.selection.exact
            and access.selection.claims == other.selection.claims
            and sum(access.rows for access in others) < _TOGETHER
        )

    def _run(self, task: list[PageAccess] | WholeAccess, columns: Sequence[str]) -> Part:
        if isinstance(task, WholeAccess):
            return self._read_groups(task, columns)
        positions = RowPositions.of_pages(
            [access.file for access in task], [access.positions for access in task]
        )
        needed = self._needed(task[0].selection, columns)
        try:
            rows = conform(self.table, self._read_pages(task), needed, positions)
        except FormatError:  # the layout may be that of another file
            self.table.check_again([access.file for access in task])
            raise
        if self._is_checked(task[0].selection):
            mask = self._checked(rows, task[0].selection, positions)
            if not mask.all():
                rows, positions = rows.filter(pa.array(mask)), positions.filter(mask)
        return Part(rows.select(columns), positions)

    def _read_pages(self, task: Sequence[PageAccess]) -> pa.Table:
        return read_many(
            [
                FileRows(self.table.source(access.file), access.layout, access.positions)
                for access in task
            ],
            task[0].columns,
            coalescing=Coalescing(gap=self.table.gap),
            read_ranges=self.table.read_ranges,
        )

    def _read_groups(self, access: WholeAccess, columns: Sequence[str]) -> Part:
        """Read the columns of the predicate, then the others for the rows that match.

        Where all rows should match, they are read together.
        """
        group_rows = access.group_rows
        chosen = None if access.positions is None else group_rows.numbers(access.positions)
        arrays: dict[str, pa.ChunkedArray] = {}
        if access.is_checked:
            exact = access.selection.exact
            first = list(dict.fromkeys([*self.where.columns, *(columns if exact else ())]))
            rows = self._groups(access, first)
            if chosen is not None:
                rows = rows.take(pa.array(chosen))
            positions = RowPositions.of_groups(access.file, group_rows, chosen)
            mask = self._checked(rows, access.selection, positions)
            if not mask.all():
                chosen = np.flatnonzero(mask) if chosen is None else chosen[mask]
                rows = rows.filter(pa.array(mask))
            arrays = dict(zip(first, rows.columns, strict=True))
        positions = RowPositions.of_groups(access.file, group_rows, chosen)
        rest = [name for name in columns if name not in arrays]
        if rest:
            others = self._rest(access, rest, chosen, positions)
            arrays.update(zip(rest, others.columns, strict=True))
        schema = table_schema(self.table, columns)
        table = pa.Table.from_arrays([arrays[name] for name in columns], schema=schema)
        return Part(table, positions)

    def _rest(
        self,
        access: WholeAccess,
        rest: Sequence[str],
        chosen: Int64Array | None,
        positions: RowPositions,
    ) -> pa.Table:
        """The columns that the predicate does not need, for rows that match."""
        inside = self.table.columns.file_names(access.file, rest)
        if chosen is not None and inside and len(chosen) * _FEW < access.group_rows.count:
            if not len(chosen):
                return self.empty(rest)
            if self.table.has_pages(access.file):
                (layout,) = self.table.layouts([access.file], [inside])
                paged = PageAccess(access.file, EVERY, layout, positions.positions, inside)
                if paged.is_sparse:
                    return conform(self.table, self._read_pages([paged]), rest, positions)
        rows = self._groups(access, rest)
        return rows if chosen is None else rows.take(pa.array(chosen))

    def _groups(self, access: WholeAccess, columns: Sequence[str]) -> pa.Table:
        """Columns of the table, of all rows of the row groups."""
        positions = RowPositions.of_groups(access.file, access.group_rows, None)
        inside = self.table.columns.file_names(access.file, columns)
        if not inside:
            return conform(self.table, pa.table({}), columns, positions)
        rows = access.scan.read(
            access.groups,
            inside,
            coalescing=Coalescing(gap=self.table.gap),
            read_ranges=self.table.read_ranges,
        )
        return conform(self.table, rows, columns, positions)

    def _checked(self, rows: pa.Table, selection: Selection, positions: RowPositions) -> BoolArray:
        """Which rows match; files are noted of which the index says something else."""
        mask = self.where.row_filter.matching(rows)
        if (selection.exact or selection.claims) and not mask.all():
            wrong = ~mask
            if not selection.exact:
                claimed = self._claimed(selection.claims)
                wrong[wrong] = ~claimed.matching(rows.filter(pa.array(wrong)))
            self._stale.update(np.unique(positions.filter(wrong).files).tolist())
        return mask

    def _claimed(self, claims: tuple[Predicate, ...]) -> RowFilter:
        """Evaluates the parts of the predicate of which an index says that they hold."""
        row_filter = self._claims.get(claims)
        if row_filter is None:
            row_filter = self._claims[claims] = self.where.filter_for(And.of(claims))
        return row_filter


def _positions(selection: Selection) -> Int64Array:
    """The positions of a selection."""
    rows = selection.rows
    return np.zeros(0, np.int64) if rows is None else np.asarray(rows.to_array()).astype(np.int64)
