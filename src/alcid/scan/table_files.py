"""What a scan needs of a table, whatever its kind: its files, their statistics and indexes.

Tables implement these protocols in columns, where a file is its number in the listing. Indexes that
are stored in bundles are served by `BundleIndexes`, for all kinds of tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from alcid._arrays import BoolArray, Int8Array, Int64Array
from alcid.datafiles.parquet import Coalescing, FileLayout, ReadReport
from alcid.datafiles.parquet.decoding import Int96Unit
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import Range, ReadMany, Source, read_each
from alcid.index.bundle import (
    BundleSet,
    CheckedSource,
    Coverage,
    PayloadKind,
    State,
    probe,
    without_keys,
)
from alcid.index.bundle.probing import ProbeResult
from alcid.index.opened import OpenedIndexes
from alcid.scan.bounds import Bounds
from alcid.scan.columns import TableColumns
from alcid.scan.deletes import PendingDeletes
from alcid.storage import Traffic
from alcid.types import DataType


class Indexes(Protocol):
    """The indexes of the files of a table; a file is its number in the listing."""

    disabled: str
    """The option by which indexes are not used, whatever files have; empty if they are used."""

    def load(self, files: Int64Array, /) -> None:
        """Find out which indexes some files have; until then they seem to have none."""

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""

    def states(self, column: str, index_type: str) -> Int8Array:
        """One of `State` for each file."""

    def fresh(self, column: str, index_type: str) -> BoolArray:
        """The files that have an index which can be used."""

    def lengths(self, column: str, index_type: str) -> Int64Array:
        """The bytes of the index of each file; 0 where there is none."""

    def probe(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> ProbeResult:
        """Probe the bloom filters of some files, all of which have one, for keys."""

    def without_keys(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> BoolArray:
        """Which of some files have a fresh bitmap with none of the keys, as far as that is cheap.

        Of the others nothing is said.
        """

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has a fresh one.

        Raises:
            FormatError: It is damaged; asking it may raise too.
        """


class BundleIndexes:
    """The indexes in a set of bundles; those that were opened are kept, up to a size."""

    disabled = ""

    def __init__(
        self, bundles: BundleSet, read_ranges: ReadMany, *, gap: int, remote: bool
    ) -> None:
        """Use bundles, reading with `read_ranges`.

        Args:
            bundles: The bundles.
            read_ranges: How to read a round of ranges.
            gap: A request is worth so many bytes.
            remote: Whether a round of reads waits for a network.
        """
        self._bundles, self._read_ranges = bundles, read_ranges
        self._gap, self._rounds = gap, 1 if remote else 2
        self._kinds = {
            (kind.column, kind.index_type): kind
            for kind in bundles.kinds
            if kind.index_type in READERS
        }
        self._opened = OpenedIndexes()

    def load(self, _files: Int64Array, /) -> None:
        """Bundles say all at once."""

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        return [index_type for index_type in READERS if (column, index_type) in self._kinds]

    def states(self, column: str, index_type: str) -> Int8Array:
        """One of `State` for each file."""
        return self._coverage(column, index_type).states

    def fresh(self, column: str, index_type: str) -> BoolArray:
        """The files that have an index which can be used."""
        fresh: BoolArray = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Int64Array:
        """The bytes of the index of each file; 0 where there is none."""
        return self._coverage(column, index_type).lengths

    def probe(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> ProbeResult:
        """Probe the bloom filters of files for keys, in one round of reads."""
        coverage = self._coverage(column, "bloom-filter")
        return probe(
            coverage,
            files,
            keys,
            key_type,
            self._read_ranges,
            gap=self._gap,
            rounds=self._rounds,
        )

    def without_keys(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> BoolArray:
        """Which files have a bitmap with none of the keys: small ones are read, many in one."""
        coverage, search = self._coverage(column, "bitmap"), BitmapSearch(keys, key_type)
        return without_keys(coverage, files, search, self._read_ranges, gap=self._gap)

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has a fresh one.

        Raises:
            FormatError: It is damaged; asking it may raise too.
        """
        return self._opened.get(
            (column, index_type, file), lambda: self._open(column, index_type, file, key_type)
        )

    def _open(
        self, column: str, index_type: str, file: int, key_type: KeyType
    ) -> tuple[IndexReader, CheckedSource]:
        coverage = self._coverage(column, index_type)
        payload = coverage.payload(file)
        reader = coverage.index(file, key_type, payload)
        if payload is None or reader is None:
            raise LookupError(f"{index_type} of {column!r}: none for file {file}")
        return reader, payload

    def _coverage(self, column: str, index_type: str) -> Coverage:
        kind = self._kinds.get((column, index_type)) or PayloadKind.index(column, index_type)
        return self._bundles.coverage(kind)


class FileScan(Protocol):
    """A file whose footer was read: its row groups, whole. Of an ORC file, these are stripes."""

    source: Source

    @property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each row group, the empty ones too."""

    def group_bytes(self, group: int) -> int:
        """About how many bytes a row group has when it is decompressed."""

    def column_sizes(self, columns: Sequence[str]) -> Int64Array:
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
    """Files that can be read, in columns; a file is its number in the listing."""

    paths: pa.StringArray
    sizes: Int64Array
    rows: Int64Array
    """How many rows each has."""
    columns: TableColumns
    partitions: pa.Table
    """The values that stand in the paths, a row for each file."""
    gap: int
    """A request costs as much as reading this many bytes."""
    remote: bool
    """Whether requests wait for a network, so that many should run at the same time."""
    int96_unit: Int96Unit
    """What INT96 is read as."""
    replaced: set[int]
    """Files that were replaced after they were indexed, as reading them has shown."""

    def distrust(self, files: Iterable[int], problem: str) -> None:
        """Note that files were replaced after they were indexed, and warn.

        Neither their indexes nor their bounds are used from now on.

        Raises:
            FormatError: The table is strict.
        """

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """The bounds of a column, by its name in the files, in files where it has this type.

        None if there are none. They count as unknown in files where the column has another type.
        """

    def group_bounds(
        self, file: int, scan: FileScan, columns: Collection[str]
    ) -> Mapping[str, Bounds]:
        """The bounds of columns in each row group, as far as the footer of the file is trusted."""

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
            FileGoneError: A file was replaced, and is distrusted from now on.
        """

    def is_compared(self, file: int) -> bool:
        """Whether a checksum ties what is known of a file to the footer that it has now."""

    @property
    def traffic(self) -> Traffic:
        """What was read since the table was opened."""

    def part(self, files: Int64Array) -> DataFiles:
        """Some of the files, to be read elsewhere: it pickles, and knows no indexes."""


class TableFiles(DataFiles, Protocol):
    """The files of a table snapshot, with their metadata, indexes and deleted rows."""

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

    def load_deletions(self, files: Int64Array, /) -> None:
        """Find the deleted rows of some files, in this process."""

    def pending_deletes(self, files: Int64Array, /) -> PendingDeletes | None:
        """The deleted rows of some files, as far as they are not loaded; None: all of them are."""
