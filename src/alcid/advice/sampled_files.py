"""A table of which only some files seem to have rows, with indexes that are in memory.

Files keep their places, so that all that is known of the table still fits; those that are not in
the sample have no rows, and no plan looks at them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.advice.file_bounds import FileBounds, own_bounds
from alcid.advice.memory_indexes import MemoryIndexes
from alcid.bundle import Statistics
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import Range, Source
from alcid.parquet_file import FileLayout
from alcid.plan import Bounds, DataFiles, FileScan, TableFiles
from alcid.storage import Traffic
from alcid.types import DataType

__all__ = ["Pages", "SampledFiles"]

Integers = npt.NDArray[np.int64]


class Pages(Protocol):
    """Where the pages of files are, as it will be known when they have indexes."""

    def has(self, file: int) -> bool:
        """Whether rows of a file can be read by its pages."""

    def layout(self, file: int, columns: Sequence[str]) -> FileLayout:
        """Where the pages of some columns are, by the names that plans have for them."""


class SampledFiles:
    """The sample as planning asks for it; a `TableFiles`."""

    def __init__(
        self,
        files: TableFiles,
        chosen: Integers,
        indexes: MemoryIndexes,
        bounds: FileBounds,
        pages: Pages,
        read: Collection[str] = (),
    ) -> None:
        """See some files of a table with other indexes than it has; `read` are their columns."""
        self._read = read
        self._files, self._bounds, self._pages = files, bounds, pages
        self.indexes = indexes
        self.rows = np.zeros_like(files.rows)
        self.rows[chosen] = files.rows[chosen]
        self.paths: pa.StringArray = files.paths
        self.sizes, self.columns, self.partitions = files.sizes, files.columns, files.partitions
        self.gap, self.remote, self.int96_unit = files.gap, files.remote, files.int96_unit
        self.location, self.has_options = files.location, files.has_options
        self.holds_partitions, self.replaced = files.holds_partitions, files.replaced
        self.notes: Sequence[str] = ()
        self.remarks: Sequence[str] = ()

    @property
    def deletions(self) -> Mapping[int, DeletionVector]:
        """The deleted rows of those files that may have any."""
        return self._files.deletions

    def load_deletions(self, files: Integers, /) -> None:
        """Make ready the deleted rows of some files."""
        self._files.load_deletions(files)

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """What the table knows of a column, else what footers say, else what was read."""
        known = own_bounds(self._files, column, data_type)
        if known is not None:
            return known
        return self._bounds.of(column, data_type, is_read=column in self._read)

    def group_statistics(
        self, file: int, scan: FileScan, columns: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """What the footer of a file says of columns, by row group."""
        return self._bounds.of_groups(file, scan, columns)

    def source(self, file: int) -> Source:
        """The bytes of a file."""
        return self._files.source(file)

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """One round of reads."""
        return self._files.read_ranges(ranges)

    def has_pages(self, file: int) -> bool:
        """Whether rows of a file can be read by its pages, once an index is built."""
        return self._pages.has(file)

    def layouts(self, files: Sequence[int], columns: Sequence[Sequence[str]]) -> list[FileLayout]:
        """Where the pages of some columns of each file are."""
        pairs = zip(files, columns, strict=True)
        return [self._pages.layout(file, names) for file, names in pairs]

    def open(self, files: Sequence[int]) -> Sequence[FileScan]:
        """The footers of files."""
        return self._files.open(files)

    def check_again(self, files: Sequence[int]) -> None:
        """Compare the footers of files with those that were indexed."""
        self._files.check_again(files)

    def is_compared(self, file: int) -> bool:
        """Whether all that is known of a file is of the footer that it had when it was opened."""
        return self._files.is_compared(file)

    def distrust(self, files: Iterable[int], problem: str) -> None:
        """Note that files are not those that were indexed."""
        self._files.distrust(files, problem)

    def part(self, files: Integers) -> DataFiles:
        """Some of the files."""
        return self._files.part(files)

    @property
    def traffic(self) -> Traffic:
        """What was read since the table was opened."""
        return self._files.traffic
