"""What planning asks of a table, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.bundle import Statistics
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import Range, ReadMany, Source, read_each
from alcid.parquet_file import Coalescing, FileLayout, ReadReport
from alcid.parquet_file.decoding import Int96Unit
from alcid.plan.bounds import Bounds
from alcid.plan.columns import TableColumns
from alcid.plan.indexes import Indexes
from alcid.storage import Traffic
from alcid.types import DataType

__all__ = ["DataFiles", "FileScan", "Integers", "TableFiles"]

Integers = npt.NDArray[np.int64]


class FileScan(Protocol):
    """A file whose footer was read: its row groups, whole. Of an ORC file, these are stripes."""

    source: Source

    @property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each row group, the empty ones too."""

    def group_bytes(self, group: int) -> int:
        """About how many bytes a row group has when it is decompressed."""

    def column_sizes(self, columns: Sequence[str]) -> Integers:
        """Bytes of some columns in each row group, as they are read."""

    def read(
        self,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        coalescing: Coalescing | None = None,
        read_ranges: ReadMany = read_each,
        report: ReadReport | None = None,
    ) -> pa.Table:
        """Columns of row groups, in the order that is wanted; by default all."""


class DataFiles(Protocol):
    """Files that can be read, in columns; a file is its place among them."""

    paths: pa.StringArray
    sizes: Integers
    rows: Integers
    """How many rows each has."""
    columns: TableColumns
    partitions: pa.Table
    """The values that stand in the paths, a row for each file."""
    gap: int
    """A request costs as much as to read so many bytes."""
    remote: bool
    """Whether requests wait for a network, so that many should run at the same time."""
    int96_unit: Int96Unit
    """What INT96 is read as."""
    replaced: set[int]
    """Files that are not those that were indexed, as was seen when they were read."""

    def distrust(self, files: Iterable[int], problem: str) -> None:
        """Note that files are not those that were indexed, and warn: their indexes are not used.

        Raises:
            FormatError: The table is strict.
        """

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """What is known of a column, as files spell it, in those where it is of a type."""

    def group_statistics(
        self, file: int, scan: FileScan, columns: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """What the footer of a file says of columns, by row group, as far as it is trusted."""

    def source(self, file: int) -> Source:
        """The bytes of a file."""

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """One round of reads."""

    def has_pages(self, file: int) -> bool:
        """Whether rows of a file can be read by its pages; if not, row groups are read."""

    def layouts(self, files: Sequence[int], columns: Sequence[Sequence[str]]) -> list[FileLayout]:
        """Where the pages of some columns of each file are; each of them has pages."""

    def open(self, files: Sequence[int]) -> Sequence[FileScan]:
        """The footers of files, in one round."""

    def check_again(self, files: Sequence[int]) -> None:
        """Compare the footers of files with those that were indexed, as far as these are known.

        Raises:
            FileGoneError: One is another, and is distrusted by now.
        """

    def is_compared(self, file: int) -> bool:
        """Whether all that is known of a file is of the footer that it had when it was opened."""

    @property
    def traffic(self) -> Traffic:
        """What was read since the table was opened."""


class TableFiles(DataFiles, Protocol):
    """The files of a table at one moment, with what is known of them without reading them."""

    location: str
    """The folder that paths are below."""
    has_options: bool
    """Whether it takes keys or other options to read them."""
    holds_partitions: bool
    """Whether files hold the partition columns, too, so that paths need not be read."""

    @property
    def notes(self) -> Sequence[str]:
        """What is to be said of every scan; a table warns of it, too."""

    @property
    def remarks(self) -> Sequence[str]:
        """What explanations say of every scan, besides."""

    @property
    def indexes(self) -> Indexes:
        """The indexes of the files."""

    @property
    def deletions(self) -> Mapping[int, DeletionVector]:
        """The deleted rows of those files that may have any."""

    def load_deletions(self, files: Integers, /) -> None:
        """Make ready the deleted rows of some files, in one round of reads."""

    def part(self, files: Integers) -> DataFiles:
        """Some of the files, to be read elsewhere: it pickles, and knows no indexes."""
