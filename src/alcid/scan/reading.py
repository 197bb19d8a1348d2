"""From files and rows that may match to the rows that do.

Files whose rows are known are read together, page by page; of the others the columns of the
predicate are read first, and of the rest only what the rows that match need.

Rows are compared with the predicate also where an index, or bounds, say that they match: so it is
seen that a data file is not the one that was indexed, though its size and time are the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import Coalescing, FileRows, read_many
from alcid.datafiles.parquet.decoding import int96_as
from alcid.errors import FileGoneError, FormatError
from alcid.expressions import And, Predicate, RowFilter
from alcid.formats.file_index.reader import EVERY, Selection
from alcid.scan.access import (
    PageAccess,
    Part,
    Places,
    Spent,
    WholeAccess,
    conform,
    file_columns,
    table_schema,
)
from alcid.scan.candidates import Candidates
from alcid.scan.leaves import TablePredicate
from alcid.scan.table_files import DataFiles, FileScan
from alcid.storage import metered
from alcid.storage.threads import run_in_threads

__all__ = ["Reading"]

_TOGETHER = 512  # rows of files that one thread reads together, or a little more
_FEW = 1024  # one row of so many: pages are looked at, else all is read
_Access = PageAccess | WholeAccess
_Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(slots=True, eq=False)
class Reading:
    """Reads the rows of candidates; what it took is kept for the explanation."""

    table: DataFiles
    where: TablePredicate
    use_statistics: bool
    offered: list[Candidates] = field(default_factory=list)
    accesses: list[PageAccess | WholeAccess] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    _claims: dict[tuple[Predicate, ...], RowFilter] = field(default_factory=dict)
    _stale: set[int] = field(default_factory=set)
    """Files with a row that does not match though an index, or bounds, say so."""

    def read(self, candidates: Candidates, columns: Sequence[str]) -> list[Part]:
        """The rows that match, by file and position.

        Raises:
            FileGoneError: A file is not the one that was indexed; it is distrusted by now.
        """
        tasks = list(self._tasks(self.open(candidates, columns)))
        began = time.perf_counter()
        with int96_as(self.table.int96_unit), metered() as meter:
            parts = run_in_threads(
                lambda task: self._run(task, columns), tasks, waiting=self.table.remote
            )
        self.spent.reading(time.perf_counter() - began, meter.snapshot())
        self.refuse(sorted(self._stale))
        return [part for part in parts if len(part)]

    def count(self, candidates: Candidates) -> int:
        """How many rows match."""
        return sum(map(len, self.read(candidates, [])))

    def empty(self, columns: Sequence[str]) -> pa.Table:
        """No rows."""
        return table_schema(self.table, columns).empty_table()

    def _is_checked(self, selection: Selection) -> bool:
        """Whether rows are compared with the predicate: not where partitions alone decide."""
        return not selection.exact or not self.where.is_partition_only

    def _needed(self, selection: Selection, columns: Sequence[str]) -> list[str]:
        """Columns of the table that are read of a file."""
        asked = self.where.columns if self._is_checked(selection) else ()
        return list(dict.fromkeys([*asked, *columns]))

    def open(self, candidates: Candidates, columns: Sequence[str]) -> list[_Access]:
        """Find out how each file is read."""
        began = time.perf_counter()
        with metered() as meter:
            accesses = self._open(candidates, columns)
        self.offered.append(candidates)
        self.accesses += accesses
        self.spent.opening(time.perf_counter() - began, meter.snapshot())
        return accesses

    def _open(self, candidates: Candidates, columns: Sequence[str]) -> list[_Access]:
        table = self.table
        pairs = list(zip(candidates.files.tolist(), candidates.selections, strict=True))
        inside = {
            file: file_columns(table, file, self._needed(found, columns)) for file, found in pairs
        }
        why = {file: self._why_whole(file, found, inside[file]) for file, found in pairs}
        with_rows = [(file, found) for file, found in pairs if not why[file]]
        layouts = table.layouts(
            [file for file, _ in with_rows], [inside[file] for file, _ in with_rows]
        )
        paged: dict[int, PageAccess] = {}
        for (file, found), layout in zip(with_rows, layouts, strict=True):
            if self._lacks_rows(file, found, int(layout.starts[-1])):
                continue
            access = PageAccess(file, found, layout, _array(found), inside[file])
            if access.is_sparse:
                paged[file] = access
            else:
                unpaged = next(filter(None, (one.whole for one in layout.columns)), "")
                why[file] = (
                    f"its pages are not known: {unpaged}" if unpaged else "most pages have a row"
                )
        whole = [(file, found) for file, found in pairs if file not in paged]
        scans = table.open([file for file, _ in whole])
        wholly = {
            file: self._whole(file, found, scan, columns, why[file])
            for (file, found), scan in zip(whole, scans, strict=True)
        }
        self.refuse(sorted(self._stale))
        return [paged[file] if file in paged else wholly[file] for file, _ in pairs]

    def _why_whole(self, file: int, found: Selection, inside: Sequence[str]) -> str:
        """Why a file is not read by its pages; empty if it may be."""
        if found.rows is None:
            return "every row matches" if found.exact else "no index says which rows"
        if 2 * len(found.rows) > self.table.rows[file]:  # of most rows, most pages are read
            return "most rows are needed" if found.exact else "no index leaves out most rows"
        if not inside:
            return "no column of it is needed"
        return "" if self.table.has_pages(file) else "its pages are not known"

    def _lacks_rows(self, file: int, found: Selection, count: int) -> bool:
        """Whether an index names rows that a file, which has `count`, does not have."""
        if not found.rows or not (found.exact or found.claims) or found.rows.max() < count:
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
        self, file: int, found: Selection, scan: FileScan, columns: Sequence[str], why: str
    ) -> WholeAccess:
        rows = scan.group_rows
        starts = np.cumsum([0, *rows])
        self._lacks_rows(file, found, int(starts[-1]))
        is_checked = self._is_checked(found) and not self._is_certain(file, found, scan, columns)
        needed = self._needed(found, columns) if is_checked else columns
        inside = file_columns(self.table, file, needed)
        if found.exact or not self.use_statistics:
            groups = [group for group, count in enumerate(rows) if count]
        else:
            groups = self.where.kept_groups(file, scan)
        positions = None
        if found.rows is not None:
            bounds = {group: range(starts[group], starts[group + 1]) for group in groups}
            left = {group: found.rows & BitMap(rows) for group, rows in bounds.items()}
            groups = [group for group in groups if left[group]]
            arrays = [left[group].to_array() for group in groups]
            positions = np.concatenate([np.zeros(0, np.int64), *arrays], dtype=np.int64)
        sizes = scan.column_sizes(inside)
        size = int(sizes[groups].sum())
        return WholeAccess(file, found, scan, groups, starts, size, positions, why, is_checked)

    def _is_certain(
        self, file: int, found: Selection, scan: FileScan, columns: Sequence[str]
    ) -> bool:
        """Whether a file itself says that all its rows match, as the bounds that are known of it.

        It need not be asked where the columns of the predicate are read anyway.
        """
        if not found.exact or found.rows is not None or set(self.where.columns) <= set(columns):
            return False
        if self.table.is_compared(file):
            return True
        return bool(self.where.judge_groups(file, scan).certain.all())

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
            and sum(one.rows for one in others) < _TOGETHER
        )

    def _run(self, task: list[PageAccess] | WholeAccess, columns: Sequence[str]) -> Part:
        if isinstance(task, WholeAccess):
            return self._read_groups(task, columns)
        places = Places.of_pages([one.file for one in task], [one.positions for one in task])
        needed = self._needed(task[0].selection, columns)
        try:
            found = conform(self.table, self._read_pages(task), needed, places)
        except FormatError:  # where the pages are may be known of another file
            self.table.check_again([one.file for one in task])
            raise
        if self._is_checked(task[0].selection):
            mask = self._checked(found, task[0].selection, places)
            if not mask.all():
                found, places = found.filter(pa.array(mask)), places.filter(mask)
        return Part(found.select(columns), places)

    def _read_pages(self, task: Sequence[PageAccess]) -> pa.Table:
        return read_many(
            [FileRows(self.table.source(one.file), one.layout, one.positions) for one in task],
            task[0].columns,
            coalescing=Coalescing(gap=self.table.gap),
            read_ranges=self.table.read_ranges,
        )

    def _read_groups(self, access: WholeAccess, columns: Sequence[str]) -> Part:
        """Read the columns of the predicate, then the others for the rows that match.

        Where all rows should match, they are read together.
        """
        rows, positions = access.group_rows, access.positions
        chosen = None if positions is None else rows.numbers(positions)
        arrays: dict[str, pa.ChunkedArray] = {}
        if access.is_checked:
            exact = access.selection.exact
            asked = list(dict.fromkeys([*self.where.columns, *(columns if exact else ())]))
            found = self._groups(access, asked)
            if chosen is not None:
                found = found.take(pa.array(chosen))
            mask = self._checked(
                found, access.selection, Places.of_groups(access.file, rows, chosen)
            )
            if not mask.all():
                chosen = np.flatnonzero(mask) if chosen is None else chosen[mask]
                found = found.filter(pa.array(mask))
            arrays = dict(zip(asked, found.columns, strict=True))
        places = Places.of_groups(access.file, rows, chosen)
        rest = [name for name in columns if name not in arrays]
        if rest:
            others = self._rest(access, rest, chosen, places)
            arrays.update(zip(rest, others.columns, strict=True))
        schema = table_schema(self.table, columns)
        table = pa.Table.from_arrays([arrays[name] for name in columns], schema=schema)
        return Part(table, places)

    def _rest(
        self,
        access: WholeAccess,
        rest: Sequence[str],
        chosen: Int64Array | None,
        places: Places,
    ) -> pa.Table:
        """The columns that the predicate does not need, for rows that match."""
        inside = file_columns(self.table, access.file, rest)
        if chosen is not None and inside and len(chosen) * _FEW < access.group_rows.count:
            if not len(chosen):
                return self.empty(rest)
            if self.table.has_pages(access.file):
                (layout,) = self.table.layouts([access.file], [inside])
                paged = PageAccess(access.file, EVERY, layout, places.positions, inside)
                if paged.is_sparse:
                    return conform(self.table, self._read_pages([paged]), rest, places)
        found = self._groups(access, rest)
        return found if chosen is None else found.take(pa.array(chosen))

    def _groups(self, access: WholeAccess, columns: Sequence[str]) -> pa.Table:
        """Columns of the table, of all rows of the row groups."""
        places = Places.of_groups(access.file, access.group_rows, None)
        inside = file_columns(self.table, access.file, columns)
        if not inside:
            return conform(self.table, pa.table({}), columns, places)
        rows = access.scan.read(
            access.groups,
            inside,
            coalescing=Coalescing(gap=self.table.gap),
            read_ranges=self.table.read_ranges,
        )
        return conform(self.table, rows, columns, places)

    def _checked(self, rows: pa.Table, selection: Selection, places: Places) -> _Mask:
        """Which rows match; files are noted of which the index says something else."""
        mask = self.where.row_filter.matching(rows)
        if (selection.exact or selection.claims) and not mask.all():
            wrong = ~mask
            if not selection.exact:
                claimed = self._claimed(selection.claims)
                wrong[wrong] = ~claimed.matching(rows.filter(pa.array(wrong)))
            self._stale.update(np.unique(places.filter(wrong).files).tolist())
        return mask

    def _claimed(self, claims: tuple[Predicate, ...]) -> RowFilter:
        """Evaluates the parts of the predicate of which an index says that they hold."""
        row_filter = self._claims.get(claims)
        if row_filter is None:
            row_filter = self._claims[claims] = self.where.filter_for(And.of(claims))
        return row_filter


def _array(selection: Selection) -> Int64Array:
    """The positions of a selection."""
    rows = selection.rows
    return np.zeros(0, np.int64) if rows is None else np.asarray(rows.to_array()).astype(np.int64)
