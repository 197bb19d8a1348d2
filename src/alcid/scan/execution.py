"""One way from a predicate to an answer.

A scan up to the point where rows are read: who reads them, and where, is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from alcid._arrays import Int64Array, split_by
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.errors import FileGoneError
from alcid.expressions import Constant, Predicate
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index.reader import ANY, Selection
from alcid.scan.access import Part, table_schema
from alcid.scan.candidates import Candidates
from alcid.scan.explain import Explanation
from alcid.scan.leaves import TablePredicate
from alcid.scan.planner import Plan, make_plan
from alcid.scan.reading import Reading
from alcid.scan.report import counting_stages, fetching_stage, outcomes_of, reading_stages
from alcid.scan.sorting import SortKey, sorted_places
from alcid.scan.table_files import DataFiles, TableFiles
from alcid.scan.top_n import BestRows, TopRows

if TYPE_CHECKING:
    from alcid.scan.scan import Scan

__all__ = ["ReadPlan", "Run", "ScanEngine", "ScanPlan"]

_TOGETHER = 64 << 20  # bytes of files whose rows are in memory together
_SMALL, _SMALL_REMOTE = 512 << 20, 64 << 20  # bytes that this process reads faster than a job
_PAGE_ROWS = 4096  # of Parquet pages, which have 2,000 to 20,000 rows


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """Rows that are to be read; it pickles."""

    files: DataFiles
    where: Predicate
    """Normalized; it holds for the rows that are given."""
    where_columns: Sequence[str]
    columns: Sequence[str]
    candidates: Candidates
    use_statistics: bool
    deletions: Mapping[int, DeletionVector]
    """The deleted rows of files whose index names rows, for the case that it is not used."""

    def read(self, places: Sequence[int]) -> Iterator[Part]:
        """The rows of some of the candidates, a few files at a time."""
        where = TablePredicate(self.where, self.files, self.where_columns)
        reading = Reading(self.files, where, self.use_statistics)
        for some in self._rounds(places):
            yield from self._read(reading, self.candidates.take(some))

    def _read(self, reading: Reading, candidates: Candidates) -> list[Part]:
        """The rows of some candidates; without indexes of a file that was not the one indexed."""
        replaced: set[int] = set()
        while True:
            try:
                return reading.read(candidates, self.columns)
            except FileGoneError:
                if replaced == self.files.replaced:
                    raise
                replaced = set(self.files.replaced)
            pairs = zip(candidates.files.tolist(), candidates.selections, strict=True)
            candidates = candidates.chosen(
                self._any_row(file) if file in replaced else found for file, found in pairs
            )

    def _any_row(self, file: int) -> Selection:
        """The rows of a file that may match, where nothing else is known of it."""
        vector = self.deletions.get(file)
        return Selection(vector.live_rows(int(self.files.rows[file]))) if vector else ANY

    def _rounds(self, places: Sequence[int]) -> Iterator[npt.NDArray[np.int64]]:
        sizes = self.sizes[list(places)]
        numbers = (np.cumsum(sizes) - sizes) // _TOGETHER
        yield from split_by(np.asarray(places, np.int64), numbers)

    @property
    def sizes(self) -> Int64Array:
        """Roughly the bytes that are read of each candidate: a row takes its page along."""
        share = self.candidates.rows(self.files) / np.maximum(self._rows, 1)
        sizes: Int64Array = (self.whole_sizes * np.minimum(share * _PAGE_ROWS, 1.0)).astype(
            np.int64
        )
        return sizes

    @property
    def whole_sizes(self) -> Int64Array:
        """Roughly the bytes of the needed columns of each candidate."""
        needed = len(dict.fromkeys([*self.columns, *self.where_columns]))
        share = self.files.columns.share(max(needed, 1))
        sizes: Int64Array = (self.files.sizes * share)[self.candidates.files].astype(np.int64)
        return sizes

    @property
    def _rows(self) -> Int64Array:
        return self.files.rows[self.candidates.files]


@dataclass(frozen=True, slots=True, eq=False)
class ScanPlan(ReadPlan):
    """The rows of a whole scan, with the table that they are of."""

    table: TableFiles
    bound: TablePredicate
    """The predicate, bound to the table."""

    @property
    def expected_rows(self) -> int:
        """Roughly how many rows match: as many as are left, where that is exact."""
        files, left = self.candidates.files, self.candidates.rows(self.files)
        share = self.bound.share(files)
        exact = np.array([found.exact for found in self.candidates.selections], bool)
        return int(np.where(exact, left, np.minimum(left, share * self._rows)).sum())

    @property
    def is_small(self) -> bool:
        """Whether so little is read that a job of Spark would take longer."""
        return int(self.sizes.sum()) <= (_SMALL_REMOTE if self.files.remote else _SMALL)

    def to_arrow(self) -> pa.Table:
        """The rows, read in this process."""
        parts = [part.table for part in self.read(range(len(self.candidates.files)))]
        return pa.concat_tables([table_schema(self.table, self.columns).empty_table(), *parts])

    def read_plan(self) -> ReadPlan:
        """The same to be read elsewhere: it pickles, with no more files than it reads."""
        found = self.candidates
        pairs = enumerate(zip(found.files.tolist(), found.selections, strict=True))
        indexed = [(place, file) for place, (file, one) in pairs if one.exact or one.claims]
        vectors = {place: self.deletions.get(file) for place, file in indexed}
        return ReadPlan(
            self.table.part(found.files),
            self.where,
            self.where_columns,
            self.columns,
            Candidates(np.arange(len(found.files)), found.selections),
            self.use_statistics,
            {place: vector for place, vector in vectors.items() if vector},
        )


class ScanEngine(Protocol):
    """What reads the rows of scans: this process, or Spark."""

    has_spark: bool
    """Whether `to_spark` can be asked."""

    def settings(self) -> AbstractContextManager[None]:
        """Let the settings count that its queries go by; see `alcid.config.using`."""

    def to_spark(self, scan: Scan, /) -> Any:
        """The rows of a scan as a DataFrame."""

    def count(self, plan: ScanPlan, /) -> int | None:
        """How many rows match; None if this process should read them."""

    def note(self, scan: Scan, /) -> str | None:
        """How `to_spark` reads and why, for explanations; None if it does not."""


@dataclass(eq=False)
class Run:
    """Plans, reads and keeps what it took; a scan makes a new one for each answer."""

    files: TableFiles
    where: TablePredicate
    columns: list[str]
    keys: list[SortKey]
    limit: int | None
    use_indexes: bool
    strict: bool

    def __post_init__(self) -> None:
        self._plan: Plan | None = None
        self.where = self.where.renewed()
        self._reading = Reading(self.files, self.where, self.use_indexes)
        # What it reads are rows that were found to match.
        every = TablePredicate(Constant(True), self.files, ())
        self._fetching = Reading(self.files, every, self.use_indexes)
        self._found: int | None = None
        self._notes: list[str] = []
        self._said: set[str] = set()
        self._counted = False
        self._elsewhere: Candidates | None = None

    def rows(self) -> pa.Table:
        """The rows, in order."""
        plan = self._planned(rows_needed=True)
        if self.limit == 0:
            table = self._reading.empty(self.columns)
        elif self.keys and self.limit is not None:
            table = self._top(plan, self.limit)
        else:
            table = self._all(plan)
        self._found = table.num_rows
        return table

    def count(self, elsewhere: Callable[[ScanPlan], int | None]) -> int:
        """How many rows there are; `elsewhere` may count those that must be read."""
        candidates = self._planned(rows_needed=False).candidates
        self._counted = True
        exact = np.array([found.exact for found in candidates.selections], bool)
        known, rest = int(candidates.rows(self.files)[exact].sum()), candidates.filter(~exact)
        counted = elsewhere(self._scan_plan(rest, [])) if len(rest.files) else 0
        if counted is None:
            counted = self._reading.count(rest)
        elif len(rest.files):
            self._elsewhere = rest
        self._found = counted
        read = f", {self._found:,} by reading" if len(rest.files) else ": no data was read"
        self._notes.append(f"{known:,} rows counted from indexes and statistics{read}")
        total = known + self._found
        return total if self.limit is None else min(total, self.limit)

    def plan(self) -> ScanPlan:
        """The rows, planned but not read, with the columns to sort by; that is left to do."""
        columns = list(dict.fromkeys([*self.columns, *(key.column for key in self.keys)]))
        return self._scan_plan(self._planned(rows_needed=True).candidates, columns)

    def _scan_plan(self, candidates: Candidates, columns: list[str]) -> ScanPlan:
        return ScanPlan(
            self.files,
            self.where.root.predicate,
            self.where.columns,
            columns,
            candidates,
            self.use_indexes,
            self.files.deletions,
            table=self.files,
            bound=self.where,
        )

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was read or counted yet, though it may be planned."""
        return self._found is None and not self._reading.offered

    def explain(self) -> Explanation:
        """What was done; of a scan that did not run, what would be."""
        plan = self._planned(rows_needed=True)
        if self._found is None and not self._reading.offered:
            self._reading.open(self._expected(plan), self.columns)
        recorder = plan.recorder
        spared = ("cut-off", "behind the last row") if self.keys else ("limit", "enough rows")
        if self._counted:
            spared = "count", "counted without reading"
        notes, candidates, rest = recorder.outcomes.copy(), plan.candidates, self._elsewhere
        if rest is None:
            read = reading_stages(self._reading, candidates, self._found, spared)
        else:
            read = counting_stages(self.files, candidates, rest, self._found or 0, spared)
            notes.note(rest.files, "read", "and counted by Spark")
        stages = [*recorder.stages, *read]
        if self._fetching.offered:
            stages.append(fetching_stage(self._fetching, stages[-1].after))
        return Explanation(
            str(self.where.root),
            tuple(stages),
            tuple(recorder.uses.uses()),
            ", ".join(map(str, self.keys)),
            self.limit,
            tuple(self._notes),
            outcomes_of(notes, self.files, self._reading, candidates, spared),
        )

    def problems(self) -> list[str]:
        """What is damaged and was not used, said once."""
        if self._plan is None:
            return []
        found = [one for one in self._plan.recorder.problems if one not in self._said]
        self._said.update(found)
        return found

    def _planned(self, *, rows_needed: bool) -> Plan:
        if self._plan is None:
            keys = [key.column for key in self.keys]
            output = [*self.columns, *keys] if rows_needed else []
            self._plan = make_plan(
                self.files,
                self.where,
                list(dict.fromkeys([*self.where.columns, *output])),
                use_indexes=self.use_indexes,
                rows_needed=rows_needed,
                strict=self.strict,
            )
        return self._plan

    def _all(self, plan: Plan) -> pa.Table:
        columns = list(dict.fromkeys([*self.columns, *(key.column for key in self.keys)]))
        parts = list(self._parts(plan.candidates, columns))
        if not columns:
            count = sum(map(len, parts))
            return rows_without_columns(count if self.limit is None else min(count, self.limit))
        if not parts:
            return self._reading.empty(self.columns)
        table = pa.concat_tables([part.table for part in parts])
        if self.keys:
            types = self.files.columns.columns
            keyed = [(table.column(k.column), types[k.column].data_type) for k in self.keys]
            table = table.take(pa.array(sorted_places(keyed, self.keys)))
        table = table.select(self.columns)
        return table if self.limit is None else table.slice(0, self.limit)

    def _parts(self, candidates: Candidates, columns: list[str]) -> Iterator[Part]:
        """All rows; with a limit and no order, files one after the other until it is reached."""
        if self.limit is None or self.keys:
            yield from self._reading.read(candidates, columns)
            return
        start, wave, rows = 0, 1, 0
        while start < len(candidates.files) and rows < self.limit:
            for part in self._reading.read(candidates.slice(start, start + wave), columns):
                rows += len(part)
                yield part
            start, wave = start + wave, 2 * wave

    def _expected(self, plan: Plan) -> Candidates:
        """What would be read, as far as that is known before."""
        if not self.keys or not self.limit:
            return plan.candidates
        return self._finder(plan, self.limit).expected(plan.candidates)

    def _finder(self, plan: Plan, k: int) -> TopRows:
        return TopRows(self.files, self.keys, k, self._reading, plan.recorder, self.use_indexes)

    def _top(self, plan: Plan, k: int) -> pa.Table:
        best = self._finder(plan, k).find(plan.candidates)
        if set(self.columns) <= set(best.table.schema.names):
            return best.table.select(self.columns)
        return self._fetch(best)

    def _fetch(self, best: BestRows) -> pa.Table:
        """All columns of rows that were found, in their order."""
        files = np.unique(best.files)
        selections = (
            Selection(BitMap(best.positions[best.files == file].tolist()), exact=True)
            for file in files.tolist()
        )
        columns = list(dict.fromkeys(self.columns))
        parts = self._fetching.read(Candidates(files, tuple(selections)), columns)
        if not parts:
            return self._reading.empty(self.columns)
        table = pa.concat_tables([part.table for part in parts])
        by_place = np.lexsort((best.positions, best.files))
        places = np.empty(len(by_place), np.int64)
        places[by_place] = np.arange(len(by_place))
        return table.take(pa.array(places)).select(self.columns)
