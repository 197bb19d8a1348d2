"""The data files of an Iceberg snapshot, with all that a scan plan needs of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int8Array, Int64Array
from alcid.errors import AlcidError, DamagedIndexWarning, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.index.bundle import BundleSet, State, Statistics
from alcid.index.bundle.statistics import statistics_type
from alcid.scan import Bounds, BundleIndexes
from alcid.storage import Listing, Storage, Traffic
from alcid.tables.iceberg.bounds import BucketedBounds, FilePartitions, column_metrics
from alcid.tables.iceberg.bundles import SnapshotBundles, match_bundles
from alcid.tables.iceberg.catalog import OwnQuery
from alcid.tables.iceberg.data_files import AS_TABLE, IdFiles, Projection
from alcid.tables.iceberg.deletes import (
    DeleteColumns,
    IcebergDeletes,
    TableDeletes,
    delete_problem,
)
from alcid.tables.iceberg.field_ids import NameMapping, SchemaGroups
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Schema
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, TableMetadata
from alcid.tables.iceberg.metadata.transforms import has_buckets
from alcid.tables.open_files import PlacedColumn, known_layouts, places_of
from alcid.types import DataType


class IcebergFiles(IdFiles):
    """The files of a snapshot, from manifests and bundles; no data file is opened."""

    holds_partitions = True
    notes: Sequence[str] = ()

    def __init__(
        self,
        file_io: FileIO,
        metadata: TableMetadata,
        snapshot: Snapshot | None,
        schema: Schema,
        entries: Entries,
        bundles: SnapshotBundles,
        *,
        strict: bool,
        own_rows: Callable[[OwnQuery], Any] | None = None,
        distrusted: set[str] | None = None,
    ) -> None:
        """Match the files of a snapshot with the bundles of its statistics files.

        Args:
            file_io: Opens files.
            metadata: The table metadata.
            snapshot: The snapshot; None before the first commit.
            schema: The columns to read.
            entries: The files of the snapshot.
            bundles: The bundles of its statistics files.
            strict: Raise an error for a damaged index, instead of a warning.
            own_rows: Reads rows by Iceberg's own scan.
            distrusted: Collects files that differ from those that were indexed.
        """
        self.own_rows = own_rows
        self.metadata, self.snapshot, self.schema = metadata, snapshot, schema
        self.entries, self.remarks, data = entries, bundles.notes, entries.data
        self.file_paths: pa.StringArray = data["file_path"].combine_chunks()
        sizes = data["file_size_in_bytes"].to_numpy()
        self.delegated_reason = _problem(entries, metadata)
        storage, paths = self._open_storage(file_io)
        distrusted = set() if distrusted is None else distrusted
        replaced = places_of(distrusted, paths)
        # No bundle has an entry for a file of this size.
        indexed = np.where(np.isin(np.arange(len(sizes)), list(replaced)), -1, sizes)
        self.bundles = match_bundles(bundles.bundles, self.file_paths, indexed, strict=strict)
        self._partitions_of_files = FilePartitions(metadata.specs, data)
        self._groups = SchemaGroups(schema)
        mapping = NameMapping.of(metadata.properties)
        constants = self._partitions_of_files.identities
        types = {field.id: field.data_type for field in self._groups.fields.values()}
        columns = self._partitions_of_files.columns(types)
        # Values that are partition values in all files are not read from any.
        read = {number: values for number, values in constants.items() if number not in columns}
        group_of = self._groups.group(self.bundles, mapping, read, self._warn)
        outside = {schema.by_id[number].name: values for number, values in columns.items()}
        partitions = {name: self._groups.fields[name].data_type for name in outside}
        super().__init__(
            storage,
            Listing(paths, sizes, pa.nulls(len(data), pa.string())),
            data["record_count"].to_numpy(),
            self._groups.columns(partitions, group_of),
            self._groups.files,
            pa.table(outside),
            self.bundles.footer_crcs,
            Projection(self._groups.fields, mapping),
            pa.table({str(number): values for number, values in constants.items()}),
        )
        self._distrusted, self.replaced, self.strict = distrusted, replaced, strict
        self._file_io, self._index_storage = file_io, file_io.find(metadata.location)[0]
        self.location, self.has_options = storage.location, storage.has_options
        self.deletions: TableDeletes | Mapping[int, DeletionVector] = (
            {}
            if self.delegated_reason
            else TableDeletes(entries, DeleteColumns.of(metadata), file_io, self.read_fields)
        )
        self.indexes = _GroupedIndexes(self.bundles, file_io, storage, group_of != AS_TABLE)
        self._bounds: dict[tuple[str, DataType], Bounds | None] = {}

    def _open_storage(self, file_io: FileIO) -> tuple[Storage, pa.Array]:
        """A storage for all data files, and their paths in it."""
        location = self.metadata.location
        try:
            return file_io.below(location, self.file_paths)
        except UnsupportedError as error:
            self.delegated_reason = self.delegated_reason or str(error)
            return file_io.folder(location), self.file_paths

    @property
    def version(self) -> int | None:
        """The snapshot id for Iceberg's own scan; None if that would use another schema."""
        snapshot = self.snapshot
        return (
            snapshot.id if snapshot is not None and snapshot.schema_id == self.schema.id else None
        )

    def all_rows(self, columns: Sequence[str]) -> Any:
        """Columns of all rows as a DataFrame, by Iceberg's own scan without filters.

        Raises:
            UnsupportedError: There is no Spark session.
        """
        if self.own_rows is None:
            raise UnsupportedError("reading by Iceberg's own scan needs a Spark session")
        return self.own_rows(OwnQuery(self.version, None, columns, is_filtered_above=True))

    def problem(self, column: str) -> str:
        """Why a column is not supported; empty if it is."""
        return self._groups.problems.get(column, "")

    @property
    def traffic(self) -> Traffic:
        """The traffic of data files, delete files and indexes."""
        traffic = super().traffic
        if self._index_storage is self._storage:
            return traffic
        return traffic + self._index_storage.traffic

    def load_deletions(self, files: Int64Array) -> None:
        """Read the delete files of some data files."""
        if isinstance(self.deletions, TableDeletes):
            self.deletions.load(files)

    def pending_deletes(self, files: Int64Array) -> IcebergDeletes | None:
        """The deleted rows of some data files, as far as they are not loaded."""
        if isinstance(self.deletions, TableDeletes):
            return self.deletions.pending(files, self)
        return None

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """The bounds of a column, by its name in files, where it has this type."""
        if (column, data_type) not in self._bounds:
            self._bounds[column, data_type] = self._find_bounds(column, data_type)
        return self._bounds[column, data_type]

    def _find_bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """Find bounds by the field ids of the column, since names can be reused."""
        members: dict[int, BoolArray] = {}
        for group, ids in enumerate(self._groups.ids):
            file_column = self.columns.schemas[group].get(column)
            if column in ids and file_column is not None and file_column.data_type == data_type:
                group_files = members.setdefault(ids[column], np.zeros(len(self.rows), bool))
                group_files |= self.columns.schema_of == group
        if not members:
            return None
        parts, buckets = [], []
        for number, files in members.items():
            parts.append(self._statistics(column, number, data_type))
            if has_buckets(data_type):
                buckets += [
                    bucket.among(files) for bucket in self._partitions_of_files.buckets(number)
                ]
        values = parts[0]
        if len(parts) > 1:
            positions = np.full(len(self.rows), -1, np.int64)
            for part, files in enumerate(members.values()):
                positions[files] = part * len(self.rows) + np.flatnonzero(files)
            values = pa.concat_arrays(parts).take(pa.array(positions, mask=positions < 0))
        statistics = Statistics(column, data_type, values)
        if buckets:
            return BucketedBounds(statistics, self.rows, buckets)
        return Bounds(statistics, self.rows)

    def _statistics(self, column: str, number: int, data_type: DataType) -> pa.StructArray:
        """Statistics of a column from manifests, partitions and bundles, by field id."""
        data = self.entries.with_metrics([number])
        metrics = column_metrics(data, _FieldId(number), data_type)
        values = self._partitions_of_files.narrow(
            number, Statistics(column, data_type, metrics), self.rows
        ).values
        for bundled in self.bundles.statistics(column):
            if bundled.data_type == data_type:
                is_known = bundled.values.is_valid().to_numpy(zero_copy_only=False)
                has_bound = pc.is_valid(bundled.values.field("min")).to_numpy(zero_copy_only=False)
                better = is_known & has_bound & (self.columns.schema_of != AS_TABLE)
                positions = np.arange(len(values)) + np.where(better, len(values), 0)
                both = pa.concat_arrays([values, bundled.values.cast(statistics_type(data_type))])
                values = both.take(pa.array(positions))
        return values

    def _known_layouts(
        self, wanted: Sequence[tuple[int, str]]
    ) -> dict[tuple[int, str], PlacedColumn]:
        """The layouts that bundles contain."""
        layouts = known_layouts(self.bundles, wanted, self._file_io.read_ranges, self._warn)
        self._keep(layouts)
        return layouts

    def _warn(self, error: AlcidError) -> None:
        """Warn that a part of a bundle is not used, or raise the error if strict."""
        if self.bundles.strict:
            raise error
        warnings.warn(f"not used: {error}", DamagedIndexWarning, stacklevel=2)


@dataclass(frozen=True, slots=True)
class _FieldId:
    """A column by its id alone."""

    id: int


class _GroupedIndexes(BundleIndexes):
    """The indexes of files whose schema is known; the others count as absent."""

    def __init__(
        self, bundles: BundleSet, file_io: FileIO, storage: Storage, is_known: BoolArray
    ) -> None:
        super().__init__(bundles, file_io.read_ranges, gap=storage.gap, remote=storage.remote)
        self._is_known = is_known

    def states(self, column: str, index_type: str) -> Int8Array:
        """One of `State` for each file."""
        states = super().states(column, index_type)
        return np.where(self._is_known, states, np.int8(State.ABSENT))


def _problem(entries: Entries, metadata: TableMetadata) -> str:
    """Why files of a snapshot are not supported; empty if they are."""
    formats = pc.unique(pc.utf8_upper(entries.data["file_format"])).to_pylist()
    others = sorted(set(formats) - {"PARQUET"})
    if others:
        return f"data files in {others[0]}"
    if entries.data["key_metadata"].null_count < len(entries.data):
        return "encrypted data files"
    return delete_problem(entries.deletes, metadata)
