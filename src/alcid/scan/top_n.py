"""ORDER BY with a LIMIT: the best rows without sorting, and often without reading, the others.

A range-bitmap knows the highest values of its file. The k-th best over all files is a cut-off: no
row behind it can be among the k best, so it is one more condition, and rules out files by their
bounds and rows by their indexes. Where there is no index, files are read by their best bound, a few
at a time, and each round may raise the cut-off.

The cut-off of ORDER BY with a LIMIT: no row behind it can be among the k best.

It is a value of the first sort column. A range-bitmap knows the highest values of its file, so that
the k-th best over all files is found without reading rows; files come by their best bound, so that
few are asked.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from alcid._arrays import BoolArray, Int64Array
from alcid.errors import FormatError, UnsupportedError
from alcid.expressions import (
    Interval,
    Nulls,
    Within,
    ask,
)
from alcid.formats.file_index.keys import Key, Keys, is_below, key_type, read_column
from alcid.formats.file_index.reader import Selection
from alcid.scan.access import Part
from alcid.scan.candidates import Candidates, Recorder
from alcid.scan.reading import Reading
from alcid.scan.sorting import SortKey, best_places, sorted_places
from alcid.scan.table_files import TableFiles
from alcid.types import DataType

__all__ = ["BestRows", "CutOff", "TopRows"]

_INDEX = "range-bitmap"
_FIRST_PROBED = 4  # files that are asked before it is seen whether others can have a better value
_MOST_EXTREMES = 1000  # of each file
_MOST_IN_VAIN = 64  # files without an index, until it is taken that the others have none either


@dataclass(frozen=True, slots=True, eq=False)
class CutOff:
    """What bounds and indexes of the first sort column tell of the best rows."""

    table: TableFiles
    sort: SortKey
    k: int
    recorder: Recorder
    name: str
    """The column, as files spell it."""
    data_type: DataType

    @classmethod
    def of(cls, table: TableFiles, sort: SortKey, k: int, recorder: Recorder) -> CutOff | None:
        """None unless statistics and indexes of all files go by one order."""
        if sort.column in table.columns.partitions:
            return None
        groups = [group for group in table.columns.groups(sort.column) if group.files.any()]
        first = groups[0] if groups else None
        if first is None or first.name is None or first.data_type is None:
            return None
        alike = all((one.name, one.data_type) == (first.name, first.data_type) for one in groups)
        # CHAR is ordered as if padded, which neither bounds nor indexes are.
        if not alike or first.data_type.root == "CHAR" or any(one.problem for one in groups):
            return None
        return cls(table, sort, k, recorder, first.name, first.data_type)

    def by_bound(self, files: Int64Array) -> Int64Array:
        """Places of files, those that may have the best rows first; not known is first of all."""
        bounds, sort = self.table.bounds(self.name, self.data_type), self.sort
        if bounds is None:
            return np.arange(len(files))
        bound = (bounds.most if sort.descending else bounds.least).take(pa.array(files))
        first = SortKey(sort.column, sort.descending, nulls_first=True)
        return sorted_places([(pa.chunked_array([bound]), self.data_type)], [first])

    def find(self, candidates: Candidates) -> Key | None:
        """The k-th best value of all files whose rows all match, if indexes know so many.

        Args:
            candidates: Those that may have the best rows first: soon no other has a better value.
        """
        if self.k > _MOST_EXTREMES:
            return None
        whole = [found.exact and found.rows is None for found in candidates.selections]
        left, wave, in_vain = candidates.filter(np.array(whole, bool)), _FIRST_PROBED, 0
        choose = heapq.nlargest if self.sort.descending else heapq.nsmallest
        best: list[Key] = []
        while len(left.files) and in_vain < _MOST_IN_VAIN:
            some = self._indexed(left.files[:wave])
            in_vain = 0 if len(some) else in_vain + wave
            for file in some.tolist():
                try:
                    reader = self.table.indexes.reader(
                        self.name, _INDEX, file, key_type(self.data_type)
                    )
                    best += reader.extremes(self.k, descending=self.sort.descending)
                except FormatError as error:
                    self.recorder.damaged(f"ORDER BY {self.sort}", _INDEX, error)
            best = choose(self.k, best)
            left, wave = left.slice(wave, None), 2 * wave
            if len(best) == self.k:
                left = self._within(left, self._better_than(best[-1]))
        return best[-1] if len(best) == self.k else None

    def stricter(self, one: Key | None, other: Key | None) -> Key | None:
        """The cut-off that leaves less."""
        if one is None or other is None:
            return other if one is None else one
        return other if is_below(one, other) == self.sort.descending else one

    def key_of(self, last: pa.ChunkedArray) -> Key | None:
        """The key of a single value; None if it is null."""
        if last.null_count:
            return None
        try:
            keys = read_column(last.cast(self.data_type.to_arrow()), self.data_type).keys
        except (UnsupportedError, pa.ArrowException):
            return None
        return keys[0].as_py() if isinstance(keys, pa.Array) else int(keys[0])

    def leave(self, candidates: Candidates, cut: Key | None) -> Candidates:
        """Leave out files that end before the cut-off, by their bounds."""
        if cut is None:
            return candidates
        return self._within(candidates, self._before(cut), or_null=self.sort.nulls_first)

    def reduce(self, candidates: Candidates, cut: Key | None) -> tuple[Candidates, Int64Array]:
        """Leave only those rows of each file that its index counts among the best.

        Returns:
            What is left, and the files of which an index has chosen the rows.
        """
        indexed = set(self._indexed(candidates.files).tolist())
        pairs = list(zip(candidates.files.tolist(), candidates.selections, strict=True))
        selections = [
            self._top_of(file, found, cut) if file in indexed and found.exact else found
            for file, found in pairs
        ]
        is_chosen = [one is not found for one, (_, found) in zip(selections, pairs, strict=True)]
        return candidates.chosen(selections), candidates.files[np.array(is_chosen, bool)]

    def disagreeing(self, part: Part, files: Int64Array, cut: Key | None) -> Int64Array:
        """Those of some files of which rows were read that are not as their index has it.

        Args:
            part: The rows that were read, with the sort column.
            files: The files whose rows the index has chosen.
            cut: The cut-off by which it did; None: it has chosen the `k` best.
        """
        column, of_row = part.table.column(self.sort.column), part.places.files
        is_null = pc.is_null(column).to_numpy()
        try:
            keys = read_column(column.cast(self.data_type.to_arrow()), self.data_type).keys
        except (UnsupportedError, pa.ArrowException):
            return files[:0]
        if cut is not None:
            is_wrong = is_null & (not self.sort.nulls_first)
            is_wrong[~is_null] = ~_are_within(keys, self._before(cut))
            return np.intersect1d(files, of_row[is_wrong])
        positions, place_of = part.places.positions, np.cumsum(~is_null) - 1
        wrong = []
        for file in np.intersect1d(files, of_row).tolist():
            rows = np.flatnonzero((of_row == file) & ~is_null)
            if len(rows):
                chosen = (
                    keys.take(pa.array(place_of[rows]))
                    if isinstance(keys, pa.Array)
                    else (keys[place_of[rows]])
                )
                known = self._rows_within(file, _interval(chosen))
                if known is not None and not BitMap(positions[rows]) <= known:
                    wrong.append(file)
        return np.array(wrong, np.int64)

    def _rows_within(self, file: int, interval: Interval) -> BitMap | None:
        """The rows of a file that have a value of an interval, by its index."""
        reader = self.table.indexes.reader(self.name, _INDEX, file, key_type(self.data_type))
        return ask(reader, Within((interval,))).rows

    def _indexed(self, files: Int64Array) -> Int64Array:
        """Those of some files that have an index to be asked."""
        self.table.indexes.load(files)
        return files[self.table.indexes.fresh(self.name, _INDEX)[files]]

    def _within(
        self, candidates: Candidates, interval: Interval, *, or_null: bool = False
    ) -> Candidates:
        """The files that may have a value of an interval, by their bounds; or a null, too."""
        bounds = self.table.bounds(self.name, self.data_type)
        if bounds is None or not len(candidates.files):
            return candidates
        possible = bounds.ask(Within((interval,))).possible.copy()
        if or_null:
            possible = possible | bounds.ask(Nulls()).possible
        if self.table.replaced:
            possible[list(self.table.replaced)] = True
        return candidates.filter(possible[candidates.files])

    def _better_than(self, key: Key) -> Interval:
        """The keys that come before one."""
        if not self.sort.descending:
            return None, key
        return (key + b"\0" if isinstance(key, bytes) else key + 1), None

    def _before(self, cut: Key) -> Interval:
        """The keys that are not behind the cut-off."""
        if isinstance(cut, bytes):
            return (cut, None) if self.sort.descending else (None, cut + b"\0")
        low, high = cut, cut + 1
        if self.data_type.root in ("FLOAT", "DOUBLE") and cut in (-1, 0):  # two equal zeros
            low, high = -1, 1
        return (low, None) if self.sort.descending else (None, high)

    def _top_of(self, file: int, found: Selection, cut: Key | None) -> Selection:
        """The rows of a file that are not behind the cut-off, or its `k` best with their ties."""
        sort = self.sort
        try:
            reader = self.table.indexes.reader(self.name, _INDEX, file, key_type(self.data_type))
            if cut is None:
                nulls: Literal["first", "last"] = "first" if sort.nulls_first else "last"
                rows = reader.top_n(
                    self.k, descending=sort.descending, nulls=nulls, among=found.rows
                ).rows
            else:
                rows = ask(reader, Within((self._before(cut),))).rows
                if rows is not None and sort.nulls_first:
                    rows |= reader.is_null().rows or BitMap()
                if rows is not None and found.rows is not None:
                    rows &= found.rows
        except (FormatError, UnsupportedError) as error:
            self.recorder.damaged(f"ORDER BY {sort}", _INDEX, error)
            return found
        if rows is None:
            return found
        self.recorder.answered(f"ORDER BY {sort}", _INDEX)
        return Selection(rows, exact=True)


def _are_within(keys: Keys, interval: Interval) -> BoolArray:
    """Which keys are of an interval."""
    low, high = interval
    if isinstance(keys, pa.Array):
        found = pa.array(np.ones(len(keys), bool))
        if low is not None:
            found = pc.and_(found, pc.greater_equal(keys, pa.scalar(low, keys.type)))
        if high is not None:
            found = pc.and_(found, pc.less(keys, pa.scalar(high, keys.type)))
        return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    mask: BoolArray = np.ones(len(keys), bool)
    if low is not None:
        mask &= keys >= low
    if high is not None:
        mask &= keys < high
    return mask


def _interval(keys: Keys) -> Interval:
    """The least interval of some keys."""
    if isinstance(keys, pa.Array):
        ends = pc.min_max(keys).as_py()
        return ends["min"], ends["max"] + b"\0"
    return int(keys.min()), int(keys.max()) + 1


_FIRST_WAVE, _LARGEST_WAVE = 4, 16  # files that are read before the cut-off is looked at again


@dataclass(frozen=True, slots=True, eq=False)
class BestRows:
    """Rows in their order, with their sort columns, and where they stand."""

    table: pa.Table
    files: Int64Array
    positions: Int64Array


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
        known, cut, left = self._begin(candidates)
        wave = _FIRST_WAVE
        while len(left.files):
            some = left.slice(0, wave).in_order()
            chosen = np.zeros(0, np.int64)
            if known is not None:
                some, chosen = known.reduce(some, cut)
            for part in self.reading.read(some, columns):
                if known is not None and len(chosen):
                    self.reading.refuse(known.disagreeing(part, chosen, cut).tolist())
                best = self._better(best, part)
            left, wave = left.slice(wave, None), min(2 * wave, _LARGEST_WAVE)
            if known is not None and len(best.files) >= self.k:
                last = best.table.column(self.keys[0].column).slice(len(best.files) - 1)
                stricter = known.stricter(cut, known.key_of(last))
                if stricter != cut:
                    cut, left = stricter, known.leave(left, stricter)
        return best

    def expected(self, candidates: Candidates) -> Candidates:
        """The files and rows that are left to be read, as far as indexes tell beforehand."""
        known, cut, left = self._begin(candidates)
        left = left.in_order()
        return left if known is None else known.reduce(left, cut)[0]

    def _begin(self, candidates: Candidates) -> tuple[CutOff | None, Key | None, Candidates]:
        """What tells of the cut-off, what it is so far, and the files that are left.

        They are in the order in which they are read.
        """
        known = None
        if self.use_indexes:
            known = CutOff.of(self.table, self.keys[0], self.k, self.recorder)
        if known is None:
            return None, None, candidates
        left = candidates.take(known.by_bound(candidates.files))
        cut = known.find(left)
        return known, cut, known.leave(left, cut)

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

    def _first(self, rows: pa.Table) -> Int64Array:
        """The places of the k best rows, in order."""
        types = self.table.columns.columns
        keyed = [(rows.column(key.column), types[key.column].data_type) for key in self.keys]
        return best_places(keyed, self.keys, self.k)
