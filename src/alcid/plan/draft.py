"""A scan up to the point where rows are read: who reads them, and where, is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import FileGoneError
from alcid.formats.arrays import split_by
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.selection import ANY, Selection
from alcid.plan.candidates import Candidates
from alcid.plan.conform import table_schema
from alcid.plan.leaves import Leaf, leaves_of, share_of
from alcid.plan.parts import Part
from alcid.plan.reading import Reading
from alcid.plan.table_files import DataFiles, Integers, TableFiles
from alcid.predicate import Predicate

if TYPE_CHECKING:
    from alcid.plan.scan import Scan

__all__ = ["Draft", "DraftPart", "ScanEngine"]

_TOGETHER = 64 << 20  # bytes of files whose rows are in memory together
_SMALL, _SMALL_REMOTE = 512 << 20, 64 << 20  # bytes that this process reads faster than a job
_PAGE_ROWS = 4096  # of Parquet pages, which have 2,000 to 20,000 rows


@dataclass(frozen=True, slots=True, eq=False)
class DraftPart:
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
        leaves = leaves_of(self.where, self.files)
        reading = Reading(self.files, self.where, leaves, self.where_columns, self.use_statistics)
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
    def sizes(self) -> Integers:
        """Roughly the bytes that are read of each candidate: a row takes its page along."""
        share = self.candidates.rows(self.files) / np.maximum(self._rows, 1)
        sizes: Integers = (self.whole_sizes * np.minimum(share * _PAGE_ROWS, 1.0)).astype(np.int64)
        return sizes

    @property
    def whole_sizes(self) -> Integers:
        """Roughly the bytes of the needed columns of each candidate."""
        needed = len(dict.fromkeys([*self.columns, *self.where_columns]))
        share = self.files.columns.share(max(needed, 1))
        sizes: Integers = (self.files.sizes * share)[self.candidates.files].astype(np.int64)
        return sizes

    @property
    def _rows(self) -> Integers:
        return self.files.rows[self.candidates.files]


@dataclass(frozen=True, slots=True, eq=False)
class Draft(DraftPart):
    """The rows of a whole scan, with the table that they are of."""

    table: TableFiles
    leaves: Mapping[int, Leaf]
    """Of the predicate."""

    @property
    def expected_rows(self) -> int:
        """Roughly how many rows match: as many as are left, where that is exact."""
        files, left = self.candidates.files, self.candidates.rows(self.files)
        share = share_of(self.where, self.leaves, files)
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

    def part(self) -> DraftPart:
        """The same to be read elsewhere: it pickles, with no more files than it reads."""
        found = self.candidates
        pairs = enumerate(zip(found.files.tolist(), found.selections, strict=True))
        indexed = [(place, file) for place, (file, one) in pairs if one.exact or one.claims]
        vectors = {place: self.deletions.get(file) for place, file in indexed}
        return DraftPart(
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
        """Let the settings count that its queries go by; see `alcid.options.using`."""

    def to_spark(self, scan: Scan, /) -> Any:
        """The rows of a scan as a DataFrame."""

    def count(self, draft: Draft, /) -> int | None:
        """How many rows match; None if this process should read them."""

    def note(self, scan: Scan, /) -> str | None:
        """How `to_spark` reads and why, for explanations; None if it does not."""
