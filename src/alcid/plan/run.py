"""One way from a predicate to an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid.formats.selection import Selection
from alcid.parquet_file.decoding import rows_without_columns
from alcid.plan.candidates import Candidates
from alcid.plan.draft import Draft
from alcid.plan.explanation import Explanation
from alcid.plan.group_fates import fates_of
from alcid.plan.leaves import leaves_of
from alcid.plan.parts import Part
from alcid.plan.planner import Plan, make_plan
from alcid.plan.reading import Reading
from alcid.plan.report import counting_stages, fetching_stage, reading_stages
from alcid.plan.sorting import SortKey, sorted_places
from alcid.plan.table_files import TableFiles
from alcid.plan.top import BestRows, TopRows
from alcid.predicate import Constant, Predicate

__all__ = ["Run"]


@dataclass(eq=False)
class Run:
    """Plans, reads and keeps what it took; a scan makes a new one for each answer."""

    files: TableFiles
    where: Predicate
    asked: list[str]
    columns: list[str]
    keys: list[SortKey]
    limit: int | None
    use_indexes: bool
    strict: bool

    def __post_init__(self) -> None:
        self._plan: Plan | None = None
        self._leaves = leaves_of(self.where, self.files)
        self._reading = Reading(self.files, self.where, self._leaves, self.asked, self.use_indexes)
        # What it reads are rows that were found to match.
        self._fetching = Reading(self.files, Constant(True), {}, (), self.use_indexes)
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

    def count(self, elsewhere: Callable[[Draft], int | None]) -> int:
        """How many rows there are; `elsewhere` may count those that must be read."""
        candidates = self._planned(rows_needed=False).candidates
        self._counted = True
        exact = np.array([found.exact for found in candidates.selections], bool)
        known, rest = int(candidates.rows(self.files)[exact].sum()), candidates.filter(~exact)
        counted = elsewhere(self._draft(rest, [])) if len(rest.files) else 0
        if counted is None:
            counted = self._reading.count(rest)
        elif len(rest.files):
            self._elsewhere = rest
        self._found = counted
        read = f", {self._found:,} by reading" if len(rest.files) else ": no data was read"
        self._notes.append(f"{known:,} rows counted from indexes and statistics{read}")
        total = known + self._found
        return total if self.limit is None else min(total, self.limit)

    def draft(self) -> Draft:
        """The rows, planned but not read, with the columns to sort by; that is left to do."""
        columns = list(dict.fromkeys([*self.columns, *(key.column for key in self.keys)]))
        return self._draft(self._planned(rows_needed=True).candidates, columns)

    def _draft(self, candidates: Candidates, columns: list[str]) -> Draft:
        given = self.files, self.where, self.asked, columns, candidates, self.use_indexes
        return Draft(*given, self.files.deletions, table=self.files, leaves=self._leaves)

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
        notes, candidates, rest = recorder.fates.copy(), plan.candidates, self._elsewhere
        if rest is None:
            read = reading_stages(self._reading, candidates, self._found, spared)
        else:
            read = counting_stages(self.files, candidates, rest, self._found or 0, spared)
            notes.note(rest.files, "read", "and counted by Spark")
        stages = [*recorder.stages, *read]
        if self._fetching.offered:
            stages.append(fetching_stage(self._fetching, stages[-1].after))
        return Explanation(
            str(self.where),
            tuple(stages),
            tuple(recorder.uses.uses()),
            ", ".join(map(str, self.keys)),
            self.limit,
            tuple(self._notes),
            fates_of(notes, self.files, self._reading, candidates, spared),
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
                self._leaves,
                list(dict.fromkeys([*self.asked, *output])),
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
