"""Execution: one run from a bound query to an answer, and the plan that others may read instead.

A `ScanPlan` is a scan up to the point where rows are read. This process reads it, or hands the part
of it that pickles, a `ReadPlan`, to the tasks of an engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid._arrays import Int64Array, split_by
from alcid._text import count_text
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.errors import FileGoneError
from alcid.expressions import Constant, Predicate
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index.reader import ANY, Selection
from alcid.scan.access import Part, table_schema
from alcid.scan.candidates import Candidates, IndexUses
from alcid.scan.deletes import PendingDeletes
from alcid.scan.explain import Explanation, Outcome
from alcid.scan.leaves import TablePredicate
from alcid.scan.planner import Pruning, prune
from alcid.scan.positions import PAGE_ROWS
from alcid.scan.reading import ReadResult, RowReader
from alcid.scan.report import ScanReport
from alcid.scan.sorting import SortKey, sort_indices
from alcid.scan.table_files import DataFiles, TableFiles
from alcid.scan.top_n import BestRows, TopRows
from alcid.storage import Meter

if TYPE_CHECKING:
    from alcid.scan.scan import Scan

_TOGETHER = 64 << 20  # bytes of files whose rows are in memory together
_SMALL, _SMALL_REMOTE = 512 << 20, 64 << 20  # bytes that this process reads faster than a job


def small_bytes(*, remote: bool) -> int:
    """How many bytes this process reads where tasks could read them."""
    return _SMALL_REMOTE if remote else _SMALL


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """Which rows of which files are to be read; it pickles.

    It is divided by items: files whose deleted rows are known, then the units that find those of
    the other files. A task that has a unit finds the deleted rows, then reads the others.
    """

    files: DataFiles
    where: Predicate
    """Normalized; the rows that are read satisfy it."""
    where_columns: Sequence[str]
    columns: Sequence[str]
    candidates: Candidates
    use_statistics: bool
    deletions: Mapping[int, DeletionVector]
    """The deleted rows of files whose index names rows, for the case that it is not used."""
    pending: PendingDeletes | None = None
    """The deleted rows that are still to be found, by the numbers that files have in the table."""
    numbers: Int64Array | None = None
    """The numbers that the files have in the table; None: the same as here."""

    def read(self) -> Iterator[Part]:
        """The rows, a few files at a time."""
        for _, parts in self.read_items():
            yield from parts

    def read_items(self) -> Iterator[tuple[int, Iterator[Part]]]:
        """The rows, some items at a time: how many items, and their rows."""
        where = TablePredicate(self.where, self.files, self.where_columns)
        reader = RowReader(self.files, where, self.use_statistics)
        for some in self._rounds(self._resolved):
            yield len(some), self._read(reader, self.candidates.take(some), {})
        for unit in range(self._unit_count):
            yield 1, self._read_unit(reader, unit)

    def _read_unit(self, reader: RowReader, unit: int) -> Iterator[Part]:
        """The rows of a unit, whose deleted rows are found first."""
        assert self.pending is not None
        members = self._members(self.pending.units[unit])
        files = self.candidates.files[members].tolist()
        decided = self.pending.resolve(unit)
        live = {
            file: decided[number].live(int(self.files.rows[file]), ANY)
            for file, number in zip(files, self._table_numbers(files).tolist(), strict=True)
        }
        for some in self._rounds(members):
            candidates = self.candidates.take(some)
            left = {file: selection & live[file] for file, selection in candidates.items()}
            yield from self._read(reader, candidates.narrowed(left), live)

    def _read(
        self, reader: RowReader, candidates: Candidates, live: Mapping[int, Selection]
    ) -> Iterator[Part]:
        """The rows of some candidates; without indexes of a file that was not the one indexed."""
        replaced: set[int] = set()
        while True:
            try:
                parts = reader.read(candidates, self.columns).parts
            except FileGoneError:
                if replaced == self.files.replaced:
                    raise
                replaced = set(self.files.replaced)
            else:
                yield from parts
                return
            candidates = candidates.narrowed(
                {
                    file: live[file] if file in live else self._any_row(file)
                    for file in candidates.files.tolist()
                    if file in replaced
                }
            )

    def _any_row(self, file: int) -> Selection:
        """The rows of a file that may match, where nothing else is known of it."""
        vector = self.deletions.get(file)
        return Selection(vector.live_rows(int(self.files.rows[file]))) if vector else ANY

    def _rounds(self, indices: Int64Array) -> Iterator[Int64Array]:
        sizes = self.candidate_sizes[indices]
        numbers = (np.cumsum(sizes) - sizes) // _TOGETHER
        yield from split_by(indices, numbers)

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._resolved) + self._unit_count

    @property
    def _unit_count(self) -> int:
        return 0 if self.pending is None else len(self.pending.units)

    @property
    def _resolved(self) -> Int64Array:
        """The candidates whose deleted rows are known, by index."""
        every = np.arange(len(self.candidates))
        if self.pending is None or not self._unit_count:
            return every
        return np.setdiff1d(every, self._members(*self.pending.units), assume_unique=True)

    def _members(self, *units: Int64Array) -> Int64Array:
        """The candidates that are in some units, by index, ascending."""
        files = np.concatenate([np.zeros(0, np.int64), *units])
        return np.flatnonzero(np.isin(self._table_numbers(self.candidates.files), files))

    def _table_numbers(self, files: Int64Array | Sequence[int]) -> Int64Array:
        """The numbers that some files have in the table."""
        numbers = np.asarray(files, np.int64)
        return numbers if self.numbers is None else self.numbers[numbers]

    def part(self, positions: Int64Array) -> ReadPlan:
        """Some of the items, to be read elsewhere: it pickles, and has no other files."""
        resolved, pending = self._resolved, None
        members = resolved[positions[positions < len(resolved)]]
        if self.pending is not None:
            pending = self.pending.take(positions[positions >= len(resolved)] - len(resolved))
            members = np.union1d(members, self._members(*pending.units))
        chosen = self.candidates.take(members)
        vectors = {
            index: self.deletions.get(file)
            for index, (file, selection) in enumerate(chosen.items())
            if selection.exact or selection.claims
        }
        return ReadPlan(
            self.files.part(chosen.files),
            self.where,
            self.where_columns,
            self.columns,
            chosen.renumbered(),
            self.use_statistics,
            {index: vector for index, vector in vectors.items() if vector},
            pending,
            self._table_numbers(chosen.files),
        )

    @property
    def sizes(self) -> Int64Array:
        """Roughly the bytes that are read for each item."""
        sizes = self.candidate_sizes
        resolved = sizes[self._resolved]
        if self.pending is None or not self._unit_count:
            return resolved
        units = self.pending.units
        # A file that several units share counts for a part in each.
        shares = np.bincount(np.concatenate(units))
        numbers = self._table_numbers(self.candidates.files)
        size_of = np.zeros(len(shares), np.int64)
        inside = numbers < len(shares)
        size_of[numbers[inside]] = sizes[inside] // np.maximum(shares[numbers[inside]], 1)
        read = np.array([int(size_of[unit].sum()) for unit in units], np.int64)
        return np.concatenate([resolved, read + self.pending.sizes])

    @property
    def candidate_sizes(self) -> Int64Array:
        """Roughly the bytes that are read of each candidate: for each row, its whole page."""
        share = self.candidates.rows(self.files) / np.maximum(self._rows, 1)
        sizes: Int64Array = (self.whole_sizes * np.minimum(share * PAGE_ROWS, 1.0)).astype(np.int64)
        return sizes

    @property
    def whole_sizes(self) -> Int64Array:
        """Roughly the bytes of the needed columns of each candidate."""
        needed = len(dict.fromkeys([*self.columns, *self.where_columns]))
        share = self.files.columns.fraction(max(needed, 1))
        sizes: Int64Array = (self.files.sizes * share)[self.candidates.files].astype(np.int64)
        return sizes

    @property
    def _rows(self) -> Int64Array:
        return self.files.rows[self.candidates.files]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScanPlan(ReadPlan):
    """The rows of a whole scan, with the table that they belong to."""

    table: TableFiles
    bound: TablePredicate
    """The predicate, bound to the table."""

    @property
    def expected_rows(self) -> int:
        """Roughly how many rows match: as many as are left, where that is exact."""
        left = self.candidates.rows(self.files)
        share = self.bound.selectivity(self.candidates.files)
        expected = np.minimum(left, share * self._rows)
        return int(np.where(self.candidates.exact, left, expected).sum())

    @property
    def is_small(self) -> bool:
        """Whether so little is read that a job of Spark would take longer."""
        if self.pending is not None:
            return False
        return int(self.sizes.sum()) <= small_bytes(remote=self.files.remote)

    def to_arrow(self) -> pa.Table:
        """The rows, read in this process."""
        parts = [part.table for part in self.read()]
        return pa.concat_tables([table_schema(self.table, self.columns).empty_table(), *parts])

    def read_plan(self) -> ReadPlan:
        """The same to be read elsewhere: it pickles, with no more files than it reads."""
        return self.part(np.arange(len(self)))


class ScanEngine(Protocol):
    """Where the rows of scans are read: in this process, or by Spark."""

    has_spark: bool
    """Whether `to_spark` can be called."""
    delete_bytes: int | None
    """How many bytes this process reads to find deleted rows; more is left to tasks. None: all."""

    def settings(self) -> AbstractContextManager[None]:
        """Apply the settings of its session; see `alcid.config.using`."""

    def to_spark(self, scan: Scan, /) -> Any:
        """The rows of a scan as a DataFrame."""

    def count(self, plan: ScanPlan, /) -> int | None:
        """How many rows match; None if this process should read them."""

    def find(self, plan: ScanPlan, /) -> Mapping[int, DeletionVector]:
        """The positions of the rows that match, by file; of a plan with pending deletes."""

    def note(self, scan: Scan, /) -> str | None:
        """How `to_spark` reads and why, for explanations; None if it does not."""


class TooManyBytesError(Exception):
    """More bytes were read than the caller wants to read itself."""


def _bitmap(rows: DeletionVector) -> BitMap:
    return BitMap(rows.to_numpy().astype(np.uint32))


@dataclass(eq=False)
class Run:
    """One execution of a query: prunes, reads, and can explain what it did."""

    files: TableFiles
    where: TablePredicate
    columns: list[str]
    keys: list[SortKey]
    limit: int | None
    use_indexes: bool
    strict: bool
    engine: ScanEngine

    def __post_init__(self) -> None:
        self._pruning: Pruning | None = None
        self.where = self.where.renewed()
        self._reader = RowReader(self.files, self.where, self.use_indexes)
        self._index_uses: list[IndexUses] = []
        self._read_columns = list(
            dict.fromkeys([*self.columns, *[key.column for key in self.keys]])
        )
        self._reads: list[ReadResult] = []
        self._fetches: list[ReadResult] = []
        self._row_count: int | None = None
        self._notes: list[str] = []
        self._warned: set[str] = set()
        self._is_count = False
        self._counted_elsewhere: Candidates | None = None
        self._meter = Meter()
        self._most_bytes: int | None = None

    def rows(self, most_bytes: int | None = None) -> pa.Table:
        """The rows, in order.

        Args:
            most_bytes: Give up when more bytes than this were read.

        Raises:
            TooManyBytesError: More were read, and there is not an answer yet.
        """
        with Meter() as self._meter:
            self._most_bytes = most_bytes
            candidates = self._live(self._prune(rows_needed=True))
            if self.limit == 0:
                table = self._reader.empty(self.columns)
            elif self.keys and self.limit is not None:
                table = self._top(candidates, self.limit)
            else:
                table = self._all(candidates)
        self._row_count = table.num_rows
        return table

    def _check_bytes(self) -> None:
        if self._most_bytes is not None and self._meter.snapshot().bytes_read > self._most_bytes:
            raise TooManyBytesError

    @property
    def has_pending_deletes(self) -> bool:
        """Whether tasks are to find deleted rows."""
        return self._prune(rows_needed=True).pending is not None

    def _live(self, pruning: Pruning) -> Candidates:
        """The candidates without deleted rows: where these are pending, tasks find what matches."""
        if pruning.pending is None:
            return pruning.candidates
        rows = self.engine.find(self._scan_plan(pruning.candidates, []))
        return Candidates.of(
            {file: Selection(_bitmap(rows[file]), exact=True) for file in sorted(rows)}
        )

    def count(self) -> int:
        """How many rows there are; the engine may count those that must be read."""
        candidates = self._prune(rows_needed=False).candidates
        self._is_count = True
        exact = candidates.exact
        from_indexes = int(candidates.rows(self.files)[exact].sum())
        rest = candidates.filter(~exact)
        counted = self.engine.count(self._scan_plan(rest, [])) if len(rest) else 0
        if counted is None:
            self._reads.append(self._reader.read(rest, []))
            counted = self._reads[-1].count
        elif len(rest):
            self._counted_elsewhere = rest
        self._row_count = counted
        read = f", {counted:,} by reading" if len(rest) else ": no data was read"
        self._notes.append(f"{from_indexes:,} rows counted from indexes and statistics{read}")
        total = from_indexes + counted
        return total if self.limit is None else min(total, self.limit)

    def plan(self) -> ScanPlan:
        """The rows, planned but not read, with the columns to sort by; that is left to do."""
        return self._scan_plan(self._prune(rows_needed=True).candidates, self._read_columns)

    def _scan_plan(self, candidates: Candidates, columns: list[str]) -> ScanPlan:
        return ScanPlan(
            self.files,
            self.where.root.predicate,
            self.where.columns,
            columns,
            candidates,
            self.use_indexes,
            self.files.deletions,
            None if self._pruning is None else self._pruning.pending,
            table=self.files,
            bound=self.where,
        )

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was read or counted yet, though it may be planned."""
        return self._row_count is None and not self._reads

    def explain(self) -> Explanation:
        """What was done; of a scan that did not run, what would be."""
        pruning = self._prune(rows_needed=True)
        if self.is_untouched:
            expected = self._expected(pruning.candidates)
            self._reads.append(ReadResult(self._reader.open(expected, self.columns)))
        unread = Outcome("limit", "enough rows")
        if self._is_count:
            unread = Outcome("count", "counted without reading")
        elif self.keys:
            unread = Outcome("cut-off", "behind the last row")
        report = ScanReport(
            self.files,
            self.where,
            pruning,
            self._index_uses,
            unread,
            self._reads,
            self._fetches,
            self._counted_elsewhere,
            self._row_count,
        )
        indexes = report.indexes()
        return Explanation(
            str(self.where.root),
            tuple(report.stages()),
            indexes.counts(),
            ", ".join(map(str, self.keys)),
            self.limit,
            tuple(self._notes),
            report.outcomes(indexes),
        )

    def new_warnings(self) -> list[str]:
        """What is damaged and was not used, each once."""
        new: list[str] = []
        for uses in self._index_uses:
            for error in uses.damage:
                text = f"not used: {error}"
                if text not in self._warned:
                    self._warned.add(text)
                    new.append(text)
        return new

    def _prune(self, *, rows_needed: bool) -> Pruning:
        if self._pruning is None:
            output = self._read_columns if rows_needed else []
            self._pruning = prune(
                self.files,
                self.where,
                list(dict.fromkeys([*self.where.columns, *output])),
                use_indexes=self.use_indexes,
                rows_needed=rows_needed,
                strict=self.strict,
                delete_bytes=self.engine.delete_bytes,
            )
            if self._pruning.pending is not None:
                files = len(np.unique(np.concatenate(self._pruning.pending.units)))
                what = f"deleted rows of {count_text(files, 'file')}"
                self._notes.append(f"{what} are found where rows are read")
            self._index_uses += self._pruning.index_uses
        return self._pruning

    def _all(self, candidates: Candidates) -> pa.Table:
        columns = self._read_columns
        parts = list(self._parts(candidates, columns))
        if not columns:
            count = sum(map(len, parts))
            return rows_without_columns(count if self.limit is None else min(count, self.limit))
        if not parts:
            return self._reader.empty(self.columns)
        table = pa.concat_tables([part.table for part in parts])
        if self.keys:
            types = self.files.columns.columns
            keyed = [(table.column(k.column), types[k.column].data_type) for k in self.keys]
            table = table.take(pa.array(sort_indices(keyed, self.keys)))
        table = table.select(self.columns)
        return table if self.limit is None else table.slice(0, self.limit)

    def _parts(self, candidates: Candidates, columns: list[str]) -> Iterator[Part]:
        """All rows; with a limit and no order, files one after the other until it is reached."""
        if self.limit is None or self.keys:
            self._reads.append(self._reader.read(candidates, columns))
            yield from self._reads[-1].parts
            return
        start, wave, rows = 0, 1, 0
        while start < len(candidates) and rows < self.limit:
            self._check_bytes()
            self._reads.append(self._reader.read(candidates.slice(start, start + wave), columns))
            yield from self._reads[-1].parts
            rows += self._reads[-1].count
            start, wave = start + wave, 2 * wave

    def _expected(self, candidates: Candidates) -> Candidates:
        """What would be read, as far as that is known before."""
        if not self.keys or not self.limit:
            return candidates
        finder = self._top_rows(self.limit)
        expected = finder.expected(candidates)
        finder.uses.check(strict=self.strict)
        return expected

    def _top_rows(self, k: int) -> TopRows:
        uses = IndexUses(len(self.files.sizes))
        self._index_uses.append(uses)
        return TopRows(self.files, self.keys, k, self._reader, uses, self.use_indexes)

    def _top(self, candidates: Candidates, k: int) -> pa.Table:
        finder = self._top_rows(k)
        best, reads = finder.find(candidates, self._check_bytes)
        finder.uses.check(strict=self.strict)
        self._reads += reads
        if set(self.columns) <= set(best.table.schema.names):
            return best.table.select(self.columns)
        return self._fetch(best)

    def _fetch(self, best: BestRows) -> pa.Table:
        """All columns of rows that were found, in their order."""
        selections = {
            file: Selection(BitMap(best.positions[best.files == file].tolist()), exact=True)
            for file in np.unique(best.files).tolist()
        }
        columns = list(dict.fromkeys(self.columns))
        # The rows are known to match.
        every = TablePredicate(Constant(True), self.files, ())
        reader = RowReader(self.files, every, self.use_indexes)
        self._fetches.append(reader.read(Candidates.of(selections), columns))
        parts = self._fetches[-1].parts
        if not parts:
            return self._reader.empty(self.columns)
        table = pa.concat_tables([part.table for part in parts])
        by_position = np.lexsort((best.positions, best.files))
        indices = np.empty(len(by_position), np.int64)
        indices[by_position] = np.arange(len(by_position))
        return table.take(pa.array(indices)).select(self.columns)
