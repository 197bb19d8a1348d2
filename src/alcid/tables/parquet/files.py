"""The Parquet files of a folder at one moment, as planning asks for them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import ParquetScan
from alcid.datafiles.parquet.columns import FileColumn, file_columns
from alcid.datafiles.parquet.footer import row_count_problem
from alcid.errors import AlcidError, DamagedIndexWarning, FileGoneError, require
from alcid.formats.deletion_vector import DeletionVector
from alcid.index.bundle import BundleSet
from alcid.index.bundle.columns import schema_bytes, schema_columns
from alcid.options import fold_name
from alcid.scan import Bounds, BundleIndexes, Column, TableColumns
from alcid.storage import Listing, Storage, Traffic
from alcid.tables.open_files import OpenFiles, PlacedColumn, known_layouts, places_of
from alcid.tables.parquet.partitions import Partitions
from alcid.tables.schema import merge_schemas
from alcid.types import DataType

_ROUND = 256  # footers that are read at a time


class FolderFiles(OpenFiles):
    """Files with what bundles know of them; the rest comes from their footers."""

    holds_partitions = False

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
        rows = bundles.rows.fill_null(-1).to_numpy().copy()
        unknown = TableColumns([], {}, [], np.zeros(0, np.int64))
        crcs, paths = bundles.footer_crcs, partitions.to_table()
        super().__init__(storage, listing, rows, unknown, (), paths, crcs)
        self._index_storage, self._bundles, self._distrusted = index_storage, bundles, distrusted
        self.replaced, self.strict = places_of(distrusted, listing.paths), bundles.strict
        self.location, self.has_options = storage.location, storage.has_options
        self._bounds: dict[tuple[str, DataType], Bounds | None] = {}
        self._row_count_problems: list[str] = []
        self.columns, self._schemas = self._read_columns(partitions)
        self.deletions = self._deletions(deletions)
        self.indexes = BundleIndexes(
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

        def enter(data: bytes, file: int, read: tuple[FileColumn, ...] | None = None) -> int:
            if data not in known:
                path = self.paths[file].as_py()
                known[data] = len(columns)
                columns.append(schema_columns(data, file=path) if read is None else read)
                examples.append(path)
            return known[data]

        for code, first in zip(*np.unique(codes, return_index=True), strict=True):
            if code >= 0:
                data = schemas.dictionary[int(code)].as_py()
                schema_of[codes == code] = enter(data, int(first))
        unknown = np.flatnonzero((schema_of < 0) | (self.rows < 0)).tolist()
        for start in range(0, len(unknown), _ROUND):
            some = unknown[start : start + _ROUND]
            for file, scan in zip(some, self._open(some), strict=True):
                path = self.paths[file].as_py()
                metadata = require(scan, ParquetScan, path).metadata
                in_footer = file_columns(metadata, path)
                self.rows[file] = sum(scan.group_rows)
                if problem := row_count_problem(metadata):
                    self._row_count_problems.append(f"{path}: {problem}")
                schema_of[file] = enter(schema_bytes(in_footer), file, in_footer)
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

    def own_columns(self, file: int) -> Sequence[FileColumn]:
        """All columns of a file, as it spells them."""
        return self._schemas[int(self.columns.schema_of[file])]

    def _deletions(self, given: Mapping[str, DeletionVector]) -> Mapping[int, DeletionVector]:
        """The vectors by file: one without its file may be of rows that came back elsewhere."""
        places = {path: place for place, path in enumerate(self.paths.to_pylist())} if given else {}
        for path in given:
            if path not in places:
                raise FileGoneError("a file with deleted rows is not there", file=path)
        return {places[path]: vector for path, vector in given.items()}

    @property
    def notes(self) -> Sequence[str]:
        """Which files contradict themselves about their rows."""
        if not self._row_count_problems:
            return ()
        first, *others = self._row_count_problems
        more = f"; so do {len(others)} other files" if others else ""
        return (f"{first}, which count{more}",)

    def load_deletions(self, _files: Int64Array, /) -> None:
        """They were given."""

    def pending_deletes(self, _files: Int64Array, /) -> None:
        """Nothing is left to be found."""

    @property
    def traffic(self) -> Traffic:
        """What was read of data and indexes."""
        traffic = super().traffic
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

    def is_compared(self, file: int) -> bool:
        """Whether bounds are of the footer that was compared when the file was opened."""
        return file not in self.replaced and self._footer_crcs[file].is_valid

    def _warn(self, error: AlcidError) -> None:
        """Say that something of a bundle is not used, or raise if that is wanted."""
        if self._bundles.strict:
            raise error
        warnings.warn(f"not used: {error}", DamagedIndexWarning, stacklevel=2)

    def _known_layouts(
        self, wanted: Sequence[tuple[int, str]]
    ) -> dict[tuple[int, str], PlacedColumn]:
        """The layouts that bundles have; what is damaged there is left out with a warning."""
        read_ranges = self._index_storage.read_ranges
        layouts = known_layouts(self._bundles, wanted, read_ranges, self._warn)
        self._keep(layouts)
        return layouts


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
