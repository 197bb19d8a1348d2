"""The data files of an Iceberg table at one snapshot, as planning asks for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int8Array, Int64Array
from alcid.datafiles.parquet.decoding import int96_as
from alcid.errors import AlcidError, DamagedIndexWarning, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.index.bundle import BundleSet, State, Statistics
from alcid.index.bundle.statistics import statistics_type
from alcid.scan import Bounds, BundleIndexes
from alcid.storage import Listing, Storage, Traffic
from alcid.tables.iceberg.bounds import BucketedBounds, FilePartitions, column_metrics
from alcid.tables.iceberg.bundles import FoundBundles, bundles_against
from alcid.tables.iceberg.catalog import OwnQuery
from alcid.tables.iceberg.data_files import AS_TABLE, IdFiles, Wanted
from alcid.tables.iceberg.deletes import TableDeletes, delete_problem
from alcid.tables.iceberg.field_ids import NameMapping, SchemaGroups, WantedField
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Field, Schema
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, TableMetadata
from alcid.tables.iceberg.metadata.transforms import has_buckets
from alcid.tables.open_files import PlacedColumn, known_layouts, places_of
from alcid.types import DataType

__all__ = ["IcebergFiles"]


class IcebergFiles(IdFiles):
    """Files with what manifests and bundles say of them; no data file is looked at."""

    holds_partitions = True
    notes: Sequence[str] = ()

    def __init__(
        self,
        places: Places,
        metadata: TableMetadata,
        snapshot: Snapshot | None,
        schema: Schema,
        entries: Entries,
        found: FoundBundles,
        *,
        strict: bool,
        own_rows: Callable[[OwnQuery], Any] | None = None,
        distrusted: set[str] | None = None,
    ) -> None:
        """Take a table as it was at a snapshot.

        Args:
            places: Where its files are.
            metadata: Of the table.
            snapshot: The one that is read; None if there is none.
            schema: The columns that a read gives.
            entries: The files of the snapshot.
            found: The bundles of its statistics files.
            strict: Raise where an index is damaged, in place of a warning.
            own_rows: Reads rows by Iceberg's own scan.
            distrusted: Takes the files that are found to be others than those that were indexed.
        """
        self.own_rows = own_rows
        self.metadata, self.snapshot, self.schema = metadata, snapshot, schema
        self.entries, self.remarks, data = entries, found.notes, entries.data
        self.file_paths: pa.StringArray = data["file_path"].combine_chunks()
        sizes = data["file_size_in_bytes"].to_numpy()
        self.delegated_reason = _problem(entries, metadata)
        storage, paths = self._place(places)
        distrusted = set() if distrusted is None else distrusted
        replaced = places_of(distrusted, paths)
        # No bundle has a file of that size.
        indexed = np.where(np.isin(np.arange(len(sizes)), list(replaced)), -1, sizes)
        self.bundles = bundles_against(found.bundles, self.file_paths, indexed, strict=strict)
        self._parted = FilePartitions(metadata.specs, data)
        self._groups = SchemaGroups(schema)
        mapping = NameMapping.of(metadata.properties)
        constants = self._parted.identities
        types = {one.id: one.data_type for one in self._groups.fields.values()}
        columns = self._parted.columns(types)
        # What partitions tell of all files is not read of any.
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
            Wanted(self._groups.fields, mapping),
            pa.table({str(number): values for number, values in constants.items()}),
        )
        self._distrusted, self.replaced, self.strict = distrusted, replaced, strict
        self._places, self._index_storage = places, places.find(metadata.location)[0]
        self.location, self.has_options = storage.location, storage.has_options
        self.deletions: TableDeletes | Mapping[int, DeletionVector] = (
            {}
            if self.delegated_reason
            else TableDeletes(entries, metadata, places, self._read_fields)
        )
        self.indexes = _KnownIndexes(self.bundles, places, storage, group_of != AS_TABLE)
        self._bounds: dict[tuple[str, DataType], Bounds | None] = {}

    def _place(self, places: Places) -> tuple[Storage, pa.Array]:
        """One storage for all data files, and their paths in it."""
        location = self.metadata.location
        try:
            return places.below(location, self.file_paths)
        except UnsupportedError as error:
            self.delegated_reason = self.delegated_reason or str(error)
            return places.folder(location), self.file_paths

    @property
    def version(self) -> int | None:
        """What Iceberg's own scan names the rows by; None if it would give other columns."""
        found = self.snapshot
        return found.id if found is not None and found.schema_id == self.schema.id else None

    def all_rows(self, columns: Sequence[str]) -> Any:
        """Columns of every row as a DataFrame, by Iceberg's own scan, which sees no filter.

        Raises:
            UnsupportedError: There is no session.
        """
        if self.own_rows is None:
            raise UnsupportedError("there is no session that reads rows by Iceberg's own scan")
        return self.own_rows(OwnQuery(self.version, None, columns, is_filtered_above=True))

    def problem(self, column: str) -> str:
        """Why a column of the table is not read here; empty if it is."""
        return self._groups.problems.get(column, "")

    @property
    def traffic(self) -> Traffic:
        """What was read of data, delete files and indexes."""
        traffic = super().traffic
        if self._index_storage is self._storage:
            return traffic
        return traffic + self._index_storage.traffic

    def load_deletions(self, files: Int64Array) -> None:
        """Read what deletes rows of some files."""
        if isinstance(self.deletions, TableDeletes):
            self.deletions.load(files)

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """What is known of a column, as files spell it, where it is of a type."""
        if (column, data_type) not in self._bounds:
            self._bounds[column, data_type] = self._find_bounds(column, data_type)
        return self._bounds[column, data_type]

    def _find_bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """By the field ids that the column has: a name may have been given to another."""
        members: dict[int, BoolArray] = {}
        for place, ids in enumerate(self._groups.ids):
            known = self.columns.schemas[place].get(column)
            if column in ids and known is not None and known.data_type == data_type:
                own = members.setdefault(ids[column], np.zeros(len(self.rows), bool))
                own |= self.columns.schema_of == place
        if not members:
            return None
        parts, buckets = [], []
        for number, files in members.items():
            parts.append(self._statistics(column, number, data_type))
            if has_buckets(data_type):
                buckets += [one.among(files) for one in self._parted.buckets(number)]
        values = parts[0]
        if len(parts) > 1:
            places = np.full(len(self.rows), -1, np.int64)
            for part, files in enumerate(members.values()):
                places[files] = part * len(self.rows) + np.flatnonzero(files)
            values = pa.concat_arrays(parts).take(pa.array(places, mask=places < 0))
        statistics = Statistics(column, data_type, values)
        if buckets:
            return BucketedBounds(statistics, self.rows, buckets)
        return Bounds(statistics, self.rows)

    def _statistics(self, column: str, number: int, data_type: DataType) -> pa.StructArray:
        """What manifests, partitions and bundles say of a column, by its id."""
        told = column_metrics(self.entries.data, _Numbered(number), data_type)
        values = self._parted.narrow(number, Statistics(column, data_type, told), self.rows).values
        for known in self.bundles.statistics(column):
            if known.data_type == data_type:
                is_known = known.values.is_valid().to_numpy(zero_copy_only=False)
                has_bound = pc.is_valid(known.values.field("min")).to_numpy(zero_copy_only=False)
                better = is_known & has_bound & (self.columns.schema_of != AS_TABLE)
                places = np.arange(len(values)) + np.where(better, len(values), 0)
                both = pa.concat_arrays([values, known.values.cast(statistics_type(data_type))])
                values = both.take(pa.array(places))
        return values

    def _read_fields(self, file: int, fields: Sequence[Field]) -> pa.Table:
        """Columns of a file, which the table may have dropped: all rows."""
        wanted = {str(one.id): WantedField.of(one) for one in fields}
        scan = self.conformed(file, wanted)
        with int96_as(self.int96_unit):
            found = scan.read(None, list(wanted), read_ranges=self.read_ranges)
        return found.rename_columns([one.name for one in fields])

    def _known_layouts(
        self, wanted: Sequence[tuple[int, str]]
    ) -> dict[tuple[int, str], PlacedColumn]:
        """The layouts that bundles have."""
        found = known_layouts(self.bundles, wanted, self._places.read_ranges, self._warn)
        self._keep(found)
        return found

    def _warn(self, error: AlcidError) -> None:
        """Say that something of a bundle is not used, or raise if that is wanted."""
        if self.bundles.strict:
            raise error
        warnings.warn(f"not used: {error}", DamagedIndexWarning, stacklevel=2)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A column by nothing but its id."""

    id: int


class _KnownIndexes(BundleIndexes):
    """The indexes of files that are asked by the names that they have for columns."""

    def __init__(
        self, bundles: BundleSet, places: Places, storage: Storage, known: BoolArray
    ) -> None:
        super().__init__(bundles, places.read_ranges, gap=storage.gap, remote=storage.remote)
        self._known = known

    def states(self, column: str, index_type: str) -> Int8Array:
        """One of `State` for each file."""
        states = super().states(column, index_type)
        return np.where(self._known, states, np.int8(State.ABSENT))


def _problem(entries: Entries, metadata: TableMetadata) -> str:
    """Why files of a snapshot are not read here; empty if they are."""
    formats = pc.unique(pc.utf8_upper(entries.data["file_format"])).to_pylist()
    others = sorted(set(formats) - {"PARQUET"})
    if others:
        return f"data files in {others[0]}"
    if entries.data["key_metadata"].null_count < len(entries.data):
        return "encrypted data files"
    return delete_problem(entries.deletes, metadata)
