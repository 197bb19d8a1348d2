"""The Parquet files of a folder at one moment, as planning asks for them."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.bundle import BundleSet, Kind, Statistics, prefetch
from alcid.errors import (
    AlcidError,
    DamagedIndexWarning,
    FileGoneError,
    FormatError,
    UnsupportedError,
)
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import BytesSource, Range, Source
from alcid.options import fold_name
from alcid.parquet_file import (
    Coalescing,
    ColumnLayout,
    FileLayout,
    ParquetScan,
    open_scans,
    read_layout,
)
from alcid.plan import Bounds, Column, Indexes, TableColumns
from alcid.storage import Listing, Storage, Traffic
from alcid.tables.file_columns import FileColumn, file_columns
from alcid.tables.file_statistics import group_statistics
from alcid.tables.page_bytes import join_columns, unpack_column
from alcid.tables.partitions import Partitions
from alcid.tables.schema_bytes import schema_bytes, schema_columns
from alcid.tables.table_schema import merge_schemas
from alcid.types import DataType

__all__ = ["FolderFiles"]

Integers = npt.NDArray[np.int64]

_Column = tuple[Integers, ColumnLayout]
"""The row groups of a file, and one column."""

_MOST_FOOTERS = 256
_SMALL = 64 << 10  # bytes of a file, no more than are read to find its footer
_MOST_JOINS = 1024
_MOST_LAYOUTS = 64 << 20  # bytes of page places


class FolderFiles:
    """Files with what bundles know of them; the rest comes from their footers."""

    def __init__(
        self,
        storage: Storage,
        index_storage: Storage,
        listing: Listing,
        bundles: BundleSet,
        partitions: Partitions,
        deletions: Mapping[str, DeletionVector],
        distrusted: set[str],
    ) -> None:
        """Take what was listed; footers of files that no bundle knows are read now.

        `distrusted` takes the files that are found to be others than those that were indexed.
        """
        self._storage, self._index_storage, self._bundles = storage, index_storage, bundles
        self._versions = listing.versions
        self.paths, self.sizes = listing.paths, listing.sizes
        self.gap, self.remote = storage.gap, storage.remote
        self.partitions = partitions.to_table()
        self._distrusted, self._footer_crcs = distrusted, bundles.footer_crcs
        self._lock = Lock()
        self._scans: OrderedDict[int, ParquetScan] = OrderedDict()
        self._layouts: OrderedDict[tuple[int, str], _Column] = OrderedDict()
        self._layout_bytes = 0
        self._joins: dict[tuple[int, tuple[str, ...]], FileLayout] = {}
        self._bounds: dict[tuple[str, DataType], Bounds | None] = {}
        self.rows = bundles.rows.fill_null(-1).to_numpy().copy()
        self.columns, self._schemas = self._read_columns(partitions)
        self.deletions = self._deletions(deletions)
        self.indexes = Indexes(
            bundles, index_storage.read_ranges, gap=index_storage.gap, remote=index_storage.remote
        )

    def _read_columns(
        self, partitions: Partitions
    ) -> tuple[TableColumns, list[tuple[FileColumn, ...]]]:
        """The columns of the table, and those of each schema that files have."""
        schemas = self._bundles.schemas
        codes = schemas.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        known: dict[bytes, int] = {}
        columns: list[tuple[FileColumn, ...]] = []
        examples: list[str] = []
        schema_of = np.full(len(codes), -1, np.int64)

        def enter(data: bytes, file: int, found: tuple[FileColumn, ...] | None = None) -> int:
            if data not in known:
                path = self.paths[file].as_py()
                known[data] = len(columns)
                columns.append(schema_columns(data, file=path) if found is None else found)
                examples.append(path)
            return known[data]

        for code, first in zip(*np.unique(codes, return_index=True), strict=True):
            if code >= 0:
                data = schemas.dictionary[int(code)].as_py()
                schema_of[codes == code] = enter(data, int(first))
        unknown = np.flatnonzero((schema_of < 0) | (self.rows < 0)).tolist()
        for start in range(0, len(unknown), _MOST_FOOTERS):
            some = unknown[start : start + _MOST_FOOTERS]
            for file, scan in zip(some, self.open(some), strict=True):
                found = file_columns(scan.metadata, self.paths[file].as_py())
                self.rows[file] = scan.metadata.num_rows
                schema_of[file] = enter(schema_bytes(found), file, found)
        hidden = {fold_name(column.name) for column in partitions.columns}
        inside = [
            [
                Column(one.name, _table_type(one), one.data_type, one.problem)
                for one in schema
                if fold_name(one.name) not in hidden
            ]
            for schema in columns
        ]
        merged = merge_schemas(list(zip(examples, inside, strict=True)))
        outside = [
            Column(column.name, column.values.type, column.data_type)
            for column in partitions.columns
        ]
        table = TableColumns([*merged, *outside], partitions.types, inside, schema_of)
        return table, columns

    def _deletions(self, given: Mapping[str, DeletionVector]) -> Mapping[int, DeletionVector]:
        """The vectors by file: one without its file may be of rows that came back elsewhere."""
        places = {path: place for place, path in enumerate(self.paths.to_pylist())} if given else {}
        for path in given:
            if path not in places:
                raise FileGoneError("a file with deleted rows is not there", file=path)
        return {places[path]: vector for path, vector in given.items()}

    @property
    def traffic(self) -> Traffic:
        """What was read of data and indexes."""
        traffic = self._storage.traffic
        if self._index_storage is self._storage:
            return traffic
        return traffic + self._index_storage.traffic

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """What bundles know of a column where it is of a type."""
        if (column, data_type) not in self._bounds:
            every = self._bundles.statistics(column)
            known = next((one for one in every if one.data_type == data_type), None)
            self._bounds[column, data_type] = None if known is None else Bounds(known, self.rows)
        return self._bounds[column, data_type]

    def group_statistics(
        self, file: int, scan: ParquetScan, columns: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """What the footer of a file says of its row groups; nothing of keys of maps."""
        described = {c.name: c for c in self._schemas[int(self.columns.schema_of[file])]}
        found: dict[str, Statistics] = {}
        for name in described.keys() & set(columns):
            column = described[name]
            # Arrow must not be asked for a column that is encrypted; empty row groups it may.
            with suppress(UnsupportedError):
                scan.check(range(len(scan.group_rows)), [column.leaf])
                known = group_statistics(column, scan.metadata)
                if known is not None:
                    found[name] = known
        return found

    def source(self, file: int) -> Source:
        """A file; that it is replaced is noticed where the storage can tell."""
        return self._storage.source(
            self.paths[file].as_py(), int(self.sizes[file]), self._versions[file].as_py()
        )

    def read_ranges(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        """One round of reads of data files."""
        return self._storage.read_ranges(ranges)

    def open(self, files: Sequence[int]) -> list[ParquetScan]:
        """The footers of files; those read last are kept."""
        with self._lock:
            found = {file: self._scans[file] for file in files if file in self._scans}
        missing = [file for file in files if file not in found]
        sources = self._at_hand([self.source(file) for file in missing])
        scans = open_scans(sources, read_ranges=self.read_ranges) if sources else []
        for file, scan in zip(missing, scans, strict=True):
            self._check_footer(file, scan)
        found.update(zip(missing, scans, strict=True))
        with self._lock:
            # Small files were read whole; they are read again, so that a change is noticed.
            self._scans.update(
                (file, scan)
                for file, scan in zip(missing, scans, strict=True)
                if not isinstance(scan.source, BytesSource)
            )
            while len(self._scans) > _MOST_FOOTERS:
                self._scans.popitem(last=False)
        return [found[file] for file in files]

    def _at_hand(self, sources: Sequence[Source]) -> list[Source]:
        """The same, with small files read whole: nothing more is read of them."""
        small = [source for source in sources if source.size <= _SMALL]
        parts = self.read_ranges([Range(source, 0, source.size) for source in small])
        held = {
            id(one): BytesSource(data, one.name) for one, data in zip(small, parts, strict=True)
        }
        return [held.get(id(source), source) for source in sources]

    def _check_footer(self, file: int, scan: ParquetScan) -> None:
        """See that a file is the one that was indexed, though size and version are the same.

        Raises:
            FileGoneError: It is another, so what was planned by its indexes does not hold.
        """
        expected = self._footer_crcs[file].as_py()
        if expected is not None and scan.footer_crc != expected:
            path = self.paths[file].as_py()
            self._distrusted.add(path)
            raise FileGoneError(
                "another footer than when it was indexed, with the same size and version",
                file=scan.source.name,
            )

    def layouts(self, files: Sequence[int], columns: Sequence[Sequence[str]]) -> list[FileLayout]:
        """Where pages are: from bundles in one round of reads, else from the files."""
        with self._lock:
            known = {
                (file, name): self._layouts[file, name]
                for file, names in zip(files, columns, strict=True)
                for name in names
                if (file, name) in self._layouts
            }
        wanted = [
            (file, name)
            for file, names in zip(files, columns, strict=True)
            for name in names
            if (file, name) not in known
        ]
        known |= self._unpack(wanted)
        layouts = []
        for file, names in zip(files, columns, strict=True):
            missing = [name for name in names if (file, name) not in known]
            if missing:
                known |= self._from_file(file, missing)
            layouts.append(self._joined(file, tuple(names), known))
        return layouts

    def _joined(
        self,
        file: int,
        names: tuple[str, ...],
        known: Mapping[tuple[int, str], _Column],
    ) -> FileLayout:
        """The layout of some columns; it is kept, as making it checks all its numbers."""
        layout = self._joins.get((file, names))
        if layout is None:
            path = self.paths[file].as_py()
            try:
                layout = join_columns({name: known[file, name] for name in names}, file=path)
            except FormatError as error:
                self._warn(error)
                found = self._from_file(file, names)
                layout = join_columns({name: found[file, name] for name in names}, file=path)
            with self._lock:
                if len(self._joins) >= _MOST_JOINS:
                    self._joins.clear()
                self._joins[file, names] = layout
        return layout

    def _warn(self, error: AlcidError) -> None:
        """Say that something of a bundle is damaged and not used, or raise if that is wanted."""
        if self._bundles.strict:
            raise error
        warnings.warn(f"not used: {error}", DamagedIndexWarning, stacklevel=2)

    def _unpack(self, wanted: Sequence[tuple[int, str]]) -> dict[tuple[int, str], _Column]:
        """The layouts that bundles have; what is damaged there is left out with a warning."""
        found = {}
        payloads = {}
        for file, name in wanted:
            payload = self._bundles.coverage(Kind.pages(name)).payload(file)
            if payload is not None:
                payloads[file, name] = payload
        prefetch(
            ((payload, [(0, payload.size)]) for payload in payloads.values()),
            self._index_storage.read_ranges,
        )
        for (file, name), payload in payloads.items():
            try:
                data = payload.read(0, payload.size)
                found[file, name] = unpack_column(name, data, file=self.paths[file].as_py())
            except (FormatError, UnsupportedError) as error:
                self._warn(error)
        self._keep(found)
        return found

    def _from_file(self, file: int, names: Sequence[str]) -> dict[tuple[int, str], _Column]:
        layout = read_layout(
            self.source(file),
            names,
            coalescing=Coalescing(gap=self.gap),
            read_ranges=self.read_ranges,
        )
        found = {(file, name): (layout.starts, layout.column(name)) for name in names}
        self._keep(found)
        return found

    def _keep(self, found: Mapping[tuple[int, str], _Column]) -> None:
        with self._lock:
            for place, (starts, column) in found.items():
                if place not in self._layouts:
                    self._layouts[place] = starts, column
                    self._layout_bytes += _size(column)
            while self._layout_bytes > _MOST_LAYOUTS and self._layouts:
                _, (_, column) = self._layouts.popitem(last=False)
                self._layout_bytes -= _size(column)


def _table_type(column: FileColumn) -> Any:
    """The type of a column in the table.

    INT96 are instants in Spark, though Arrow has no zone for them.
    """
    given = column.arrow_type
    is_instant = column.data_type is not None and column.data_type.root == "TIMESTAMP_LTZ"
    if is_instant and pa.types.is_timestamp(given) and given.tz is None:
        return pa.timestamp(given.unit, "UTC")
    # Arrow cannot take rows out of views.
    if pa.types.is_string_view(given):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(given) else given


def _size(column: ColumnLayout) -> int:
    return sum(leaf.pieces.nbytes + leaf.groups.nbytes for leaf in column.leaves)
