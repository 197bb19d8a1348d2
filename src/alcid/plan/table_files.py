"""What planning asks of a table, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.bundle import Statistics
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import Range, Source
from alcid.parquet_file import FileLayout, ParquetScan
from alcid.plan.bounds import Bounds
from alcid.plan.columns import TableColumns
from alcid.plan.indexes import Indexes
from alcid.storage import Traffic
from alcid.types import DataType

__all__ = ["DataFiles", "Integers", "TableFiles"]

Integers = npt.NDArray[np.int64]


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

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """What is known of a column, as files spell it, in those where it is of a type."""

    def group_statistics(
        self, file: int, scan: ParquetScan, columns: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """What the footer of a file says of columns, by row group, as far as it is trusted."""

    def source(self, file: int) -> Source:
        """The bytes of a file."""

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """One round of reads."""

    def layouts(self, files: Sequence[int], columns: Sequence[Sequence[str]]) -> list[FileLayout]:
        """Where the pages of some columns of each file are."""

    def open(self, files: Sequence[int]) -> list[ParquetScan]:
        """The footers of files, in one round."""

    @property
    def traffic(self) -> Traffic:
        """What was read since the table was opened."""


class TableFiles(DataFiles, Protocol):
    """The files of a table at one moment, with what is known of them without reading them."""

    location: str
    """The folder that paths are below."""
    has_options: bool
    """Whether it takes keys or other options to read them."""
    indexes: Indexes
    deletions: Mapping[int, DeletionVector]
    """The deleted rows of those files that have any."""

    def part(self, files: Integers) -> DataFiles:
        """Some of the files, to be read elsewhere: it pickles, and knows no indexes."""
