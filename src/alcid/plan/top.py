"""ORDER BY with a LIMIT: the best rows without sorting, and often without reading, the others.

A range-bitmap knows the highest values of its file. The k-th best over all files is a cut-off: no
row behind it can be among the k best, so it is one more condition, and rules out files by their
bounds and rows by their indexes. Where there is no index, files are read by their best bound, a few
at a time, and each round may raise the cut-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from alcid.formats.file_index.keys import Key
from alcid.plan.candidates import Candidates
from alcid.plan.cut_off import CutOff
from alcid.plan.parts import Part
from alcid.plan.reading import Reading
from alcid.plan.recorder import Recorder
from alcid.plan.sorting import SortKey, best_places
from alcid.plan.table_files import Integers, TableFiles

__all__ = ["BestRows", "TopRows"]

_FIRST_WAVE, _LARGEST_WAVE = 4, 16  # files that are read before the cut-off is looked at again


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

    def _first(self, rows: pa.Table) -> Integers:
        """The places of the k best rows, in order."""
        types = self.table.columns.columns
        keyed = [(rows.column(key.column), types[key.column].data_type) for key in self.keys]
        return best_places(keyed, self.keys, self.k)
