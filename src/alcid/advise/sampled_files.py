"""A sample of a table as a table of its own, with indexes that are in memory.

Files keep their positions, so that columns, partitions and bounds of the table still fit; those
that are not in the sample have no rows, and no plan looks at them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray, Int8Array, Int64Array
from alcid.advise.file_bounds import FileBounds, own_bounds
from alcid.datafiles.parquet import FileLayout
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index import READERS
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import BytesSource, Range, Section, Source
from alcid.index.bundle import State
from alcid.index.bundle.probing import ProbeResult
from alcid.scan import Bounds, DataFiles, FileScan, TableFiles
from alcid.scan.deletes import PendingDeletes
from alcid.storage import Traffic
from alcid.types import DataType

IndexName: TypeAlias = tuple[str, str]
"""A column, or a key of a map, and an index type."""
BOUNDS = "bounds"
"""Stands for an index type: least and greatest values, as any index of a column brings them."""
Readers: TypeAlias = dict[tuple[str, str, int], IndexReader]
"""Opened indexes, by the name that the file has for the column, index type and file."""


class MemoryIndexes:
    """The indexes of some files of a table; the others have none."""

    disabled = ""

    def __init__(
        self, count: int, payloads: Mapping[IndexName, Mapping[int, bytes]], readers: Readers
    ) -> None:
        """Take payloads by the names that files have for columns, then by file.

        `readers` takes those that were opened, so that other sets of indexes have them too.
        """
        self._count, self._payloads, self._readers = count, payloads, readers

    def load(self, _files: Int64Array, /) -> None:
        """They are here."""

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        return [index_type for index_type in READERS if (column, index_type) in self._payloads]

    def states(self, column: str, index_type: str) -> Int8Array:
        """One of `State` for each file."""
        states = np.full(self._count, State.ABSENT, np.int8)
        states[list(self._payloads.get((column, index_type), ()))] = State.FRESH
        return states

    def fresh(self, column: str, index_type: str) -> BoolArray:
        """The files that have one."""
        fresh: BoolArray = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Int64Array:
        """The bytes of the index of each file; 0 where there is none."""
        lengths = np.zeros(self._count, np.int64)
        for file, payload in self._payloads.get((column, index_type), {}).items():
            lengths[file] = len(payload)
        return lengths

    def probe(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> ProbeResult:
        """Probe the bloom filters of some files, all of which have one, for keys."""
        readers = (self.reader(column, "bloom-filter", file, key_type) for file in files.tolist())
        return ProbeResult(np.array([not reader.is_in(keys).skip for reader in readers], bool))

    def without_keys(
        self, _column: str, files: Int64Array, _keys: Sequence[Key], _key_type: KeyType
    ) -> BoolArray:
        """Those of a sample are few, and evaluated one by one."""
        return np.zeros(len(files), bool)

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has one."""
        name = column, index_type, file
        if name not in self._readers:
            data = self._payloads[column, index_type][file]
            section = Section(BytesSource(data, f"{index_type} of {column}"), 0, len(data))
            self._readers[name] = READERS[index_type](section, key_type)
        return self._readers[name]


class Pages(Protocol):
    """Where the pages of files are, as bundles will say once files have indexes."""

    def has(self, file: int) -> bool:
        """Whether rows of a file can be read by its pages."""

    def layout(self, file: int, columns: Sequence[str]) -> FileLayout:
        """Where the pages of some columns are, by the names that plans have for them."""


class SampledFiles:
    """The sample as planning asks for it; a `TableFiles`."""

    def __init__(
        self,
        files: TableFiles,
        chosen: Int64Array,
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

    def load_deletions(self, files: Int64Array, /) -> None:
        """Make ready the deleted rows of some files."""
        self._files.load_deletions(files)

    def pending_deletes(self, files: Int64Array, /) -> PendingDeletes | None:
        """The deleted rows of some files that are not loaded."""
        return self._files.pending_deletes(files)

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """What the table knows of a column, else what footers say, else what was read."""
        bounds = own_bounds(self._files, column, data_type)
        if bounds is not None:
            return bounds
        return self._bounds.of(column, data_type, is_read=column in self._read)

    def group_bounds(
        self, file: int, scan: FileScan, columns: Collection[str]
    ) -> Mapping[str, Bounds]:
        """The bounds of columns in each row group."""
        return self._files.group_bounds(file, scan, columns)

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

    def part(self, files: Int64Array) -> DataFiles:
        """Some of the files."""
        return self._files.part(files)

    @property
    def traffic(self) -> Traffic:
        """What was read since the table was opened."""
        return self._files.traffic
