"""The cut-off of ORDER BY with a LIMIT: no row behind it can be among the k best.

It is a value of the first sort column. A range-bitmap knows the highest values of its file, so that
the k-th best over all files is found without reading rows; files come by their best bound, so that
few are asked.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.file_index.column import Keys, read_column
from alcid.formats.file_index.keys import Key, is_below, key_type
from alcid.formats.selection import Selection
from alcid.plan.candidates import Candidates
from alcid.plan.parts import Part
from alcid.plan.recorder import Recorder
from alcid.plan.sorting import SortKey, sorted_places
from alcid.plan.table_files import Integers, TableFiles
from alcid.plan.verdict import Mask
from alcid.predicate import Interval, Nulls, Within, ask
from alcid.types import DataType

__all__ = ["CutOff"]

_INDEX = "range-bitmap"
_FIRST_WAVE = 4  # files that are asked before it is seen whether others can have a better value
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

    def by_bound(self, files: Integers) -> Integers:
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
        left, wave, in_vain = candidates.filter(np.array(whole, bool)), _FIRST_WAVE, 0
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

    def reduce(self, candidates: Candidates, cut: Key | None) -> tuple[Candidates, Integers]:
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

    def disagreeing(self, part: Part, files: Integers, cut: Key | None) -> Integers:
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

    def _indexed(self, files: Integers) -> Integers:
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


def _are_within(keys: Keys, interval: Interval) -> Mask:
    """Which keys are of an interval."""
    low, high = interval
    if isinstance(keys, pa.Array):
        found = pa.array(np.ones(len(keys), bool))
        if low is not None:
            found = pc.and_(found, pc.greater_equal(keys, pa.scalar(low, keys.type)))
        if high is not None:
            found = pc.and_(found, pc.less(keys, pa.scalar(high, keys.type)))
        return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    mask: Mask = np.ones(len(keys), bool)
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
