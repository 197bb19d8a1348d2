"""ORDER BY with a LIMIT: the best rows without sorting, and often without reading, the others.

A range-bitmap knows the highest values of its file. The k-th best over all files is a cut-off: no
row behind it can be among the k best, so it is one more condition, and rules out files by their
bounds and rows by their indexes. Where there is no index, files are read by their best bound, a few
at a time, and each round may raise the cut-off.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.file_index.column import read_column
from alcid.formats.file_index.keys import Key, is_below, key_type
from alcid.formats.selection import Selection
from alcid.plan.candidates import Candidates
from alcid.plan.columns import ColumnGroup
from alcid.plan.parts import Part
from alcid.plan.reading import Reading
from alcid.plan.recorder import Recorder
from alcid.plan.sorting import SortKey, best_places, sorted_places
from alcid.plan.table_files import Integers, TableFiles
from alcid.predicate import Interval, Nulls, Within, ask
from alcid.types import DataType

__all__ = ["BestRows", "TopRows"]

_INDEX = "range-bitmap"
_FIRST_WAVE, _LARGEST_WAVE = 4, 16  # files that are read before the cut-off is looked at again
_MOST_EXTREMES = 1000  # of each file


@dataclass(frozen=True, slots=True, eq=False)
class BestRows:
    """Rows in their order, with their sort columns, and where they stand."""

    table: pa.Table
    files: Integers
    positions: Integers


@dataclass(frozen=True, slots=True, eq=False)
class TopRows:
    """Finds the rows of `ORDER BY ... LIMIT k`."""

    table: TableFiles
    keys: Sequence[SortKey]
    """With the names of the table."""
    k: int
    reading: Reading
    recorder: Recorder
    use_indexes: bool

    def find(self, candidates: Candidates) -> BestRows:
        """The best rows with their sort columns, in order."""
        columns = list(dict.fromkeys(key.column for key in self.keys))
        nothing = np.zeros(0, np.int64)
        best = BestRows(self.reading.empty(columns), nothing, nothing)
        group = self._group() if self.use_indexes else None
        cut: Key | None = None
        if group is not None:
            self.table.indexes.load(candidates.files)
            cut = self._extremes(candidates, group)
            candidates = self._cut(candidates, group, cut)
        order = self._by_bound(candidates.files, group)
        start, wave = 0, _FIRST_WAVE
        while start < len(order):
            places = np.sort(order[start : start + wave])
            some = candidates.take(places)
            if group is not None:
                some = self._cut(some, group, cut)
                some = self._reduced(some, group, cut)
            for part in self.reading.read(some, columns):
                best = self._better(best, part)
            if group is not None and len(best.files) >= self.k:
                cut = self._stricter(cut, self._last_key(best, group))
            start, wave = start + wave, min(2 * wave, _LARGEST_WAVE)
        return best

    def _stricter(self, one: Key | None, other: Key | None) -> Key | None:
        """The cut-off that leaves less."""
        if one is None or other is None:
            return other if one is None else one
        return other if is_below(one, other) == self.keys[0].descending else one

    def _group(self) -> ColumnGroup | None:
        """The first sort column, if statistics and indexes of all files go by one order."""
        name = self.keys[0].column
        if name in self.table.columns.partitions:
            return None
        groups = [group for group in self.table.columns.groups(name) if group.files.any()]
        first = groups[0] if groups else None
        if first is None or first.name is None or first.data_type is None or first.problem:
            return None
        alike = all((one.name, one.data_type) == (first.name, first.data_type) for one in groups)
        # CHAR is ordered as if padded, which neither bounds nor indexes are.
        if not alike or first.data_type.root == "CHAR" or any(one.problem for one in groups):
            return None
        files = np.logical_or.reduce([one.files for one in groups])
        return ColumnGroup(files, first.name, first.data_type, "")

    def _extremes(self, candidates: Candidates, group: ColumnGroup) -> Key | None:
        """The k-th best value of all files whose rows all match, if indexes know so many."""
        name, data_type = _of(group)
        if _INDEX not in self.table.indexes.types(name) or self.k > _MOST_EXTREMES:
            return None
        fresh = self.table.indexes.fresh(name, _INDEX)
        best: list[Key] = []
        for file, found in zip(candidates.files.tolist(), candidates.selections, strict=True):
            if not fresh[file] or not found.exact or found.rows is not None:
                continue
            try:
                reader = self.table.indexes.reader(name, _INDEX, file, key_type(data_type))
                best += reader.extremes(self.k, descending=self.keys[0].descending)
            except FormatError as error:
                self.recorder.damaged(f"ORDER BY {self.keys[0]}", _INDEX, error)
        choose = heapq.nlargest if self.keys[0].descending else heapq.nsmallest
        chosen = choose(self.k, best)
        return chosen[-1] if len(chosen) == self.k else None

    def _cut(self, candidates: Candidates, group: ColumnGroup, cut: Key | None) -> Candidates:
        """Leave out files that end before the cut-off, by their bounds."""
        if cut is None:
            return candidates
        name, data_type = _of(group)
        bounds = self.table.bounds(name, data_type)
        if bounds is None:
            return candidates
        possible = bounds.ask(Within((self._before(cut, data_type),))).possible
        if self.keys[0].nulls_first:
            possible = possible | bounds.ask(Nulls()).possible
        return candidates.filter(possible[candidates.files])

    def _before(self, cut: Key, data_type: DataType) -> Interval:
        """The keys that are not behind the cut-off."""
        if isinstance(cut, bytes):
            return (cut, None) if self.keys[0].descending else (None, cut + b"\0")
        low, high = cut, cut + 1
        if data_type.root in ("FLOAT", "DOUBLE") and cut in (-1, 0):  # the two zeros are equal
            low, high = -1, 1
        return (low, None) if self.keys[0].descending else (None, high)

    def _reduced(self, candidates: Candidates, group: ColumnGroup, cut: Key | None) -> Candidates:
        """Leave only those rows of each file that its index counts among the best."""
        name, _ = _of(group)
        if _INDEX not in self.table.indexes.types(name):
            return candidates
        fresh = self.table.indexes.fresh(name, _INDEX)
        return candidates.chosen(
            self._top_of(file, found, group, cut) if fresh[file] and found.exact else found
            for file, found in zip(candidates.files.tolist(), candidates.selections, strict=True)
        )

    def _top_of(
        self, file: int, found: Selection, group: ColumnGroup, cut: Key | None
    ) -> Selection:
        """The rows of a file that are not behind the cut-off, or its `k` best with their ties."""
        key, (name, data_type) = self.keys[0], _of(group)
        try:
            reader = self.table.indexes.reader(name, _INDEX, file, key_type(data_type))
            if cut is None:
                nulls: Literal["first", "last"] = "first" if key.nulls_first else "last"
                rows = reader.top_n(
                    self.k, descending=key.descending, nulls=nulls, among=found.rows
                ).rows
            else:
                rows = ask(reader, Within((self._before(cut, data_type),))).rows
                if rows is not None and key.nulls_first:
                    rows |= reader.is_null().rows or BitMap()
                if rows is not None and found.rows is not None:
                    rows &= found.rows
        except (FormatError, UnsupportedError) as error:
            self.recorder.damaged(f"ORDER BY {key}", _INDEX, error)
            return found
        if rows is None:
            return found
        self.recorder.answered(f"ORDER BY {key}", _INDEX)
        return Selection(rows, exact=True)

    def _by_bound(self, files: Integers, group: ColumnGroup | None) -> Integers:
        """Places of files, those that may have the best rows first; not known is first of all."""
        if group is None:
            return np.arange(len(files))
        name, data_type = _of(group)
        bounds, key = self.table.bounds(name, data_type), self.keys[0]
        if bounds is None:
            return np.arange(len(files))
        bound = (bounds.most if key.descending else bounds.least).take(pa.array(files))
        first = SortKey(key.column, key.descending, nulls_first=True)
        return sorted_places([(pa.chunked_array([bound]), data_type)], [first])

    def _last_key(self, best: BestRows, group: ColumnGroup) -> Key | None:
        """The key of the last of k rows; None if it is null."""
        _, data_type = _of(group)
        last = best.table.column(self.keys[0].column).slice(len(best.files) - 1)
        if last.null_count:
            return None
        try:
            keys = read_column(last.cast(data_type.to_arrow()), data_type).keys
        except (UnsupportedError, pa.ArrowException):
            return None
        return keys[0].as_py() if isinstance(keys, pa.Array) else int(keys[0])

    def _better(self, best: BestRows, part: Part) -> BestRows:
        """The best rows of those so far and of another part."""
        places = self._first(part.table)
        places.sort()
        some = part.places.take(places)
        rows = pa.concat_tables([best.table, part.table.take(pa.array(places))])
        files = np.concatenate([best.files, some.files])
        positions = np.concatenate([best.positions, some.positions])
        by_place = np.lexsort((positions, files))  # ties go by file and position
        rows = rows.take(pa.array(by_place))
        first = self._first(rows)
        chosen = by_place[first]
        return BestRows(rows.take(pa.array(first)), files[chosen], positions[chosen])

    def _first(self, rows: pa.Table) -> Integers:
        """The places of the k best rows, in order."""
        types = self.table.columns.columns
        keyed = [(rows.column(key.column), types[key.column].data_type) for key in self.keys]
        return best_places(keyed, self.keys, self.k)


def _of(group: ColumnGroup) -> tuple[str, DataType]:
    if group.name is None or group.data_type is None:
        raise TypeError("a group without a column")
    return group.name, group.data_type
