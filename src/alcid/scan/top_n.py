"""ORDER BY with a LIMIT: the best rows without sorting, and often without reading, the others.

The k-th best value of the first sort column so far is a cut-off: no row behind it can be among the
k best, so it is one more condition, and rules out files by their bounds and rows by their indexes.
A range-bitmap knows the highest values of its file, so that a cut-off is often found before any row
is read. Files come in the order of their best bound, a few at a time, and each round may raise it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from alcid._arrays import BoolArray, Int64Array
from alcid.errors import FormatError, UnsupportedError
from alcid.expressions import (
    InIntervals,
    Interval,
    NullRows,
    probe_index,
)
from alcid.formats.file_index.keys import Key, Keys, is_below, key_type, read_column
from alcid.formats.file_index.reader import Selection
from alcid.scan.access import Part
from alcid.scan.candidates import Candidates, IndexUses
from alcid.scan.reading import ReadResult, RowReader
from alcid.scan.sorting import SortKey, sort_indices, top_k_indices
from alcid.scan.table_files import TableFiles
from alcid.types import DataType

_INDEX = "range-bitmap"
_FIRST_PROBED = 4  # files whose indexes are read before bounds tell which others are better
_MOST_EXTREMES = 1000  # of each file
_MOST_WITHOUT = 64  # files without an index, after which the others are taken to have none either


@dataclass(frozen=True, slots=True, eq=False)
class _CutOff:
    """Finds and applies cut-offs, by bounds and indexes of the first sort column."""

    table: TableFiles
    sort: SortKey
    k: int
    uses: IndexUses
    name: str
    """The column, as files spell it."""
    data_type: DataType

    @classmethod
    def of(cls, table: TableFiles, sort: SortKey, k: int, uses: IndexUses) -> _CutOff | None:
        """None unless statistics and indexes of all files go by one order."""
        if sort.column in table.columns.partitions:
            return None
        groups = [group for group in table.columns.groups(sort.column) if group.files.any()]
        first = groups[0] if groups else None
        if first is None or first.name is None or first.data_type is None:
            return None
        alike = all((g.name, g.data_type) == (first.name, first.data_type) for g in groups)
        # CHAR is ordered as if padded, which neither bounds nor indexes are.
        if not alike or first.data_type.root == "CHAR" or any(group.problem for group in groups):
            return None
        return cls(table, sort, k, uses, first.name, first.data_type)

    def by_bound(self, files: Int64Array) -> Int64Array:
        """Indices of files, those that may have the best rows first; unknown bounds come first."""
        bounds, sort = self.table.bounds(self.name, self.data_type), self.sort
        if bounds is None:
            return np.arange(len(files))
        bound = (bounds.maxima if sort.descending else bounds.minima).take(pa.array(files))
        first = SortKey(sort.column, sort.descending, nulls_first=True)
        return sort_indices([(pa.chunked_array([bound]), self.data_type)], [first])

    def find(self, candidates: Candidates) -> Key | None:
        """The k-th best value of all files whose rows all match, if indexes know so many.

        Args:
            candidates: Those that may have the best rows first: soon no other has a better value.
        """
        if self.k > _MOST_EXTREMES:
            return None
        left = candidates.filter(candidates.exact & candidates.is_whole)
        wave, without = _FIRST_PROBED, 0
        choose = heapq.nlargest if self.sort.descending else heapq.nsmallest
        best: list[Key] = []
        while len(left) and without < _MOST_WITHOUT:
            some = self._indexed(left.files[:wave])
            without = 0 if len(some) else without + wave
            for file in some.tolist():
                try:
                    reader = self.table.indexes.reader(
                        self.name, _INDEX, file, key_type(self.data_type)
                    )
                    best += reader.extremes(self.k, descending=self.sort.descending)
                except FormatError as error:
                    self.uses.note_damaged(f"ORDER BY {self.sort}", _INDEX, file, error)
            best = choose(self.k, best)
            left, wave = left.slice(wave, None), 2 * wave
            if len(best) == self.k:
                left = self._within(left, self._better_than(best[-1]))
        return best[-1] if len(best) == self.k else None

    def stricter(self, cut: Key | None, other: Key | None) -> Key | None:
        """The cut-off that leaves less."""
        if cut is None or other is None:
            return other if cut is None else cut
        return other if is_below(cut, other) == self.sort.descending else cut

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
        indexed = candidates.filter(np.isin(candidates.files, self._indexed(candidates.files)))
        selections: dict[int, Selection] = {}
        for file, selection in indexed.filter(indexed.exact).items():
            top = self._top_of(file, selection, cut)
            if top is not None:
                selections[file] = top
        return candidates.narrowed(selections), np.array(list(selections), np.int64)

    def disagreeing(self, part: Part, files: Int64Array, cut: Key | None) -> Int64Array:
        """Those of some files of which rows were read that are not as their index has it.

        Args:
            part: The rows that were read, with the sort column.
            files: The files whose rows the index has chosen.
            cut: The cut-off by which it did; None: it has chosen the `k` best.
        """
        column, of_row = part.table.column(self.sort.column), part.rows.files
        is_null = pc.is_null(column).to_numpy()
        try:
            keys = read_column(column.cast(self.data_type.to_arrow()), self.data_type).keys
        except (UnsupportedError, pa.ArrowException):
            return files[:0]
        if cut is not None:
            is_wrong = is_null & (not self.sort.nulls_first)
            is_wrong[~is_null] = ~_are_within(keys, self._before(cut))
            return np.intersect1d(files, of_row[is_wrong])
        positions, key_of_row = part.rows.positions, np.cumsum(~is_null) - 1
        wrong = []
        for file in np.intersect1d(files, of_row).tolist():
            rows = np.flatnonzero((of_row == file) & ~is_null)
            if len(rows):
                numbers = key_of_row[rows]
                own_keys = (
                    keys.take(pa.array(numbers)) if isinstance(keys, pa.Array) else keys[numbers]
                )
                indexed = self._rows_within(file, _interval(own_keys))
                if indexed is not None and not BitMap(positions[rows]) <= indexed:
                    wrong.append(file)
        return np.array(wrong, np.int64)

    def _rows_within(self, file: int, interval: Interval) -> BitMap | None:
        """The rows of a file that have a value of an interval, by its index."""
        reader = self.table.indexes.reader(self.name, _INDEX, file, key_type(self.data_type))
        return probe_index(reader, InIntervals((interval,))).rows

    def _indexed(self, files: Int64Array) -> Int64Array:
        """Those of some files that have a fresh index."""
        self.table.indexes.load(files)
        return files[self.table.indexes.fresh(self.name, _INDEX)[files]]

    def _within(
        self, candidates: Candidates, interval: Interval, *, or_null: bool = False
    ) -> Candidates:
        """The files that may have a value of an interval, by their bounds; or a null, too."""
        bounds = self.table.bounds(self.name, self.data_type)
        if bounds is None or not len(candidates):
            return candidates
        possible = bounds.evaluate(InIntervals((interval,))).may_match.copy()
        if or_null:
            possible = possible | bounds.evaluate(NullRows()).may_match
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

    def _top_of(self, file: int, selection: Selection, cut: Key | None) -> Selection | None:
        """The rows of a file that are not behind the cut-off, or its `k` best with their ties.

        None if its index cannot tell.
        """
        sort = self.sort
        try:
            reader = self.table.indexes.reader(self.name, _INDEX, file, key_type(self.data_type))
            if cut is None:
                nulls: Literal["first", "last"] = "first" if sort.nulls_first else "last"
                rows = reader.top_n(
                    self.k, descending=sort.descending, nulls=nulls, among=selection.rows
                ).rows
            else:
                rows = probe_index(reader, InIntervals((self._before(cut),))).rows
                if rows is not None and sort.nulls_first:
                    rows |= reader.is_null().rows or BitMap()
                if rows is not None and selection.rows is not None:
                    rows &= selection.rows
        except (FormatError, UnsupportedError) as error:
            self.uses.note_damaged(f"ORDER BY {sort}", _INDEX, file, error)
            return None
        if rows is None:
            return None
        self.uses.note(f"ORDER BY {sort}", _INDEX, file, "answered")
        return Selection(rows, exact=True)


def _are_within(keys: Keys, interval: Interval) -> BoolArray:
    """Which keys are of an interval."""
    low, high = interval
    if isinstance(keys, pa.Array):
        within = pa.array(np.ones(len(keys), bool))
        if low is not None:
            within = pc.and_(within, pc.greater_equal(keys, pa.scalar(low, keys.type)))
        if high is not None:
            within = pc.and_(within, pc.less(keys, pa.scalar(high, keys.type)))
        return within.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    mask: BoolArray = np.ones(len(keys), bool)
    if low is not None:
        mask &= keys >= low
    if high is not None:
        mask &= keys < high
    return mask


def _interval(keys: Keys) -> Interval:
    """The smallest interval with all of some keys."""
    if isinstance(keys, pa.Array):
        ends = pc.min_max(keys).as_py()
        return ends["min"], ends["max"] + b"\0"
    return int(keys.min()), int(keys.max()) + 1


def _do_nothing() -> None:
    """Read on."""


_FIRST_WAVE, _LARGEST_WAVE = 4, 16  # files that are read before the cut-off is looked at again


@dataclass(frozen=True, slots=True, eq=False)
class BestRows:
    """Rows in their order, with their sort columns, their files and positions."""

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
    reader: RowReader
    uses: IndexUses
    use_indexes: bool

    def find(
        self, candidates: Candidates, check: Callable[[], None] = _do_nothing
    ) -> tuple[BestRows, list[ReadResult]]:
        """The best rows with their sort columns, in order, and what was read to find them.

        Args:
            candidates: The files and rows that may match.
            check: Is called before each round of reads; what it raises is passed on.
        """
        columns = list(dict.fromkeys(key.column for key in self.keys))
        nothing = np.zeros(0, np.int64)
        best = BestRows(self.reader.empty(columns), nothing, nothing)
        reads: list[ReadResult] = []
        finder, cut, left = self._begin(candidates)
        wave = _FIRST_WAVE
        while len(left):
            check()
            some = left.slice(0, wave).in_order()
            chosen = np.zeros(0, np.int64)
            if finder is not None:
                some, chosen = finder.reduce(some, cut)
            reads.append(self.reader.read(some, columns))
            for part in reads[-1].parts:
                if finder is not None and len(chosen):
                    self.reader.refuse(finder.disagreeing(part, chosen, cut).tolist())
                best = self._better(best, part)
            left, wave = left.slice(wave, None), min(2 * wave, _LARGEST_WAVE)
            if finder is not None and len(best.files) >= self.k:
                last = best.table.column(self.keys[0].column).slice(len(best.files) - 1)
                stricter = finder.stricter(cut, finder.key_of(last))
                if stricter != cut:
                    cut, left = stricter, finder.leave(left, stricter)
        return best, reads

    def expected(self, candidates: Candidates) -> Candidates:
        """The files and rows that are left to be read, as far as indexes tell beforehand."""
        finder, cut, left = self._begin(candidates)
        left = left.in_order()
        return left if finder is None else finder.reduce(left, cut)[0]

    def _begin(self, candidates: Candidates) -> tuple[_CutOff | None, Key | None, Candidates]:
        """What finds cut-offs, the first of them, and the files left in the order of reading."""
        finder = None
        if self.use_indexes:
            finder = _CutOff.of(self.table, self.keys[0], self.k, self.uses)
        if finder is None:
            return None, None, candidates
        left = candidates.take(finder.by_bound(candidates.files))
        cut = finder.find(left)
        return finder, cut, finder.leave(left, cut)

    def _better(self, best: BestRows, part: Part) -> BestRows:
        """The best rows of those so far and of another part."""
        indices = self._first(part.table)
        indices.sort()
        some = part.rows.take(indices)
        rows = pa.concat_tables([best.table, part.table.take(pa.array(indices))])
        files = np.concatenate([best.files, some.files])
        positions = np.concatenate([best.positions, some.positions])
        by_position = np.lexsort((positions, files))  # ties go by file and position
        rows = rows.take(pa.array(by_position))
        first = self._first(rows)
        chosen = by_position[first]
        return BestRows(rows.take(pa.array(first)), files[chosen], positions[chosen])

    def _first(self, rows: pa.Table) -> Int64Array:
        """The indices of the k best rows, in order."""
        types = self.table.columns.columns
        keyed = [(rows.column(key.column), types[key.column].data_type) for key in self.keys]
        return top_k_indices(keyed, self.keys, self.k)
