"""The data files of a Paimon table at one snapshot, for planning.

The bounds of a column are those of the manifests (`value_stats`), as far as they can be read and do
not contradict themselves (`alcid.tables.manifest_bounds`). A file has none of a column for which
its writer kept none (`metadata.stats-mode`, `fields.<column>.stats-mode`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, IntArray
from alcid.errors import UnsupportedError
from alcid.index.bundle import Statistics
from alcid.index.bundle.statistics import bound_type, statistics_type
from alcid.scan import Bounds, Column, TableColumns
from alcid.storage import Listing, Storage
from alcid.tables.casts import FieldConversion, column_type, convert
from alcid.tables.manifest_bounds import checked_bounds
from alcid.tables.open_files import OpenFiles, places_of
from alcid.tables.paimon.data_files import (
    INT96_UNIT,
    DataPlace,
    place_files,
    table_paths,
)
from alcid.tables.paimon.deletion_vectors import (
    Merges,
    PaimonDeletes,
    TableVectors,
    stored_vectors,
)
from alcid.tables.paimon.indexes import PaimonIndexes
from alcid.tables.paimon.merge_on_read import NotCompacted, visible_entries
from alcid.tables.paimon.merge_units import MergeTable, plan_units
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.records import uncollected
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from alcid.tables.paimon.metadata.statistics import RowStats, salvage_packed
from alcid.tables.paimon.metadata.table_folder import partition_values
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.types import BYTE_STRING_TYPES, MAX_LENGTH, DataType

_NO_COUNTS: Final = ()
_ANY_BYTES: Final = DataType("VARBINARY", length=MAX_LENGTH)


def bounds_of(
    stats: Sequence[RowStats | None],
    column: int,
    types: Sequence[DataType],
    row_counts: IntArray,
) -> pa.StructArray:
    """The bounds of a column in many files, of the type `statistics_type`; null where unknown.

    Args:
        stats: The statistics of each file; None: there are none.
        column: The number of the column within the statistics.
        types: The types of all columns of the statistics. Statistics of another number of columns
            are ignored.
        row_counts: The rows of each file.

    >>> from alcid.tables.paimon.metadata.statistics import FULL, collect
    >>> types = [DataType.parse("BIGINT")]
    >>> stats = collect(pa.table({"a": [3, None, 7]}), types, [FULL])
    >>> bounds_of([stats, None], 0, types, np.array([3, 5])).to_pylist()
    [{'min': 3, 'max': 7, 'min_exact': True, 'max_exact': True, 'nulls': 1, 'has_nan': False}, None]
    """
    data_type = types[column]
    nulls, refused = _nulls(stats, column, len(types))
    if pa.types.is_null(bound_type(data_type)):
        minimum = maximum = pa.nulls(len(stats))
    else:
        # Text is compared by its bytes, valid characters or not.
        kinds = [_ANY_BYTES if item.root in BYTE_STRING_TYPES else item for item in types]
        minimum, min_damaged = salvage_packed(
            [item and item.minimum for item in stats], column, kinds
        )
        maximum, max_damaged = salvage_packed(
            [item and item.maximum for item in stats], column, kinds
        )
        refused |= min_damaged | max_damaged
        if _has_nanos(data_type):
            maximum = _last_of_micros(maximum)
    return checked_bounds(
        data_type,
        minimum,
        maximum,
        nulls,
        row_counts,
        refused=refused,
        max_exact=not _has_nanos(data_type),
    )


def _nulls(
    stats: Sequence[RowStats | None], column: int, width: int
) -> tuple[Int64Array, BoolArray]:
    """The null counts, negative: unknown; and the files whose statistics cannot be used."""
    counts = [_NO_COUNTS if item is None else item.null_counts for item in stats]
    nulls = [
        -1 if count is None or len(count) != width or count[column] is None else count[column]
        for count in counts
    ]
    refused = [count is not None and len(count) != width for count in counts]
    return np.array(nulls, np.int64), np.array(refused, bool)


def _has_nanos(data_type: DataType) -> bool:
    return data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and data_type.precision > 6


def _last_of_micros(maximum: pa.Array) -> pa.Array:
    """Timestamps of whole microseconds, moved to their last nanosecond.

    pypaimon omits the nanoseconds in bounds, although its data files have them.
    """
    ticks = maximum.view(pa.int64()).fill_null(0).to_numpy()
    last = np.minimum(ticks, np.iinfo(np.int64).max - 999) + 999
    moved = np.where(ticks % 1_000 == 0, last, ticks)
    return pa.array(moved, mask=pc.is_null(maximum).to_numpy(zero_copy_only=False)).view(
        maximum.type
    )


_FileKind = tuple[int, tuple[str, ...] | None]
"""The schema id of a file, and its written columns; None: all."""


class PaimonFiles(OpenFiles):
    """Data files with their metadata."""

    holds_partitions = True

    @uncollected()
    def __init__(
        self,
        storage: Storage,
        state: TableState,
        schema: TableSchema,
        schemas: Mapping[int, TableSchema],
        options: TableOptions,
        *,
        merge_on_read: bool,
        strict: bool,
        distrusted: set[str],
    ) -> None:
        """Take a table at a snapshot; no data file is opened.

        Args:
            storage: The folder of the table.
            state: Its manifests.
            schema: The schema of reads.
            schemas: The schemas of files, by id.
            options: Options of the table.
            merge_on_read: Read level 0, too.
            strict: Raise where an index is damaged, instead of a warning.
            distrusted: Collects files that turn out to be replaced since they were indexed.
        """
        self.state, self.schema, self.schemas, self.options = state, schema, schemas, options
        entries, self.not_compacted = visible_entries(
            state.entries, options, merge_on_read=merge_on_read
        )
        outside = [
            *(entry.file.external_path for entry in state.entries),
            *(entry.external_path for entry in state.indexes),
        ]
        self.reaches_outside = any(path is not None for path in outside)
        place = DataPlace.of(storage, options) if self.reaches_outside else DataPlace(storage)
        storage = place.storage
        self.placed = place_files(entries, table_paths(schema, options), place)
        files = [one.file for one in self.placed]
        rows = np.array([file.rows for file in files], np.int64)
        sizes = np.array([file.size for file in files], np.int64)
        paths = pa.array([one.path for one in self.placed], pa.string())
        listing = Listing(paths, sizes, pa.nulls(len(files), pa.string()))
        partitions = partition_values(
            [one.entry.partition for one in self.placed],
            schema.partition_keys,
            schema.partition_types,
            file="partitions of a manifest",
        )
        unknown = pa.nulls(len(files), pa.uint32())
        columns = self._read_columns()
        super().__init__(
            storage,
            listing,
            rows,
            columns,
            (),
            partitions,
            unknown,
            INT96_UNIT,
            has_local_instants=options.orc_timestamp_ltz_legacy,
        )
        self.location, self.has_options = storage.location, storage.has_options
        self._distrusted, self.replaced = distrusted, places_of(distrusted, paths)
        self.strict = strict
        self.indexes = PaimonIndexes(
            storage,
            self.placed,
            enabled=options.file_index_read_enabled,
            strict=strict,
            replaced=self.replaced,
        )
        self.deletions = TableVectors(
            storage,
            stored_vectors(
                state.indexes,
                self.placed,
                beside_data=options.index_file_in_data_file_dir,
                place=place,
            ),
            rows,
            self._merges(merge_on_read=merge_on_read) if schema.primary_keys else None,
        )
        self._bounds: dict[tuple[str, DataType], Bounds | None] = {}

    @property
    def notes(self) -> Sequence[str]:
        """Notes on every read."""
        return (str(self.not_compacted),) if self.not_compacted != NotCompacted() else ()

    def _read_columns(self) -> TableColumns:
        """The columns of the table and of its files, matched by field id."""
        names: dict[_FileKind, int] = {}
        schema_of = np.array(
            [
                names.setdefault((one.file.schema_id, one.file.write_columns), len(names))
                for one in self.placed
            ],
            np.int64,
        )
        inside: list[list[Column]] = []
        spelled: list[dict[str, str]] = []
        conversions: list[dict[str, FieldConversion]] = []
        now = self.schema.by_id
        for number, written in names:
            own = self.schemas[number]
            fields = [one for one in own.fields if written is None or one.name in written]
            # Dropped columns are never read, so their types may be unknown.
            inside.append([_column(one) for one in fields if one.id in now or _is_read(one)])
            own_fields = {one.id: one for one in fields}
            known = [one for one in self.schema.fields if one.id in own_fields]
            spelled.append({one.name: own_fields[one.id].name for one in known})
            conversions.append(
                {one.name: found for one in known if (found := convert(own_fields[one.id], one))}
            )
        partitions = dict(zip(self.schema.partition_keys, self.schema.partition_types, strict=True))
        columns = [_column(one) for one in self.schema.fields]
        return TableColumns(columns, partitions, inside, schema_of, spelled, conversions)

    def load_deletions(self, files: Int64Array) -> None:
        """Read the deletion vectors of some files, and merge those that have to be."""
        self.deletions.load(files)

    def pending_deletes(self, files: Int64Array) -> PaimonDeletes | None:
        """The deleted rows of some files, as far as they are not loaded."""
        return self.deletions.pending(files)

    def _merges(self, *, merge_on_read: bool) -> Merges:
        """The files that are merged; with deletion vectors without level 0, unless asked for."""
        table = MergeTable(self._storage, self.schema, self.schemas, self.options)
        compacted = self.options.skips_level_0 and not merge_on_read
        return Merges(table, self.placed, plan_units(table, self.placed, compacted=compacted))

    def bounds(self, column: str, data_type: DataType) -> Bounds | None:
        """The bounds of a column, by its name in the files, in all files where it has this type."""
        if (column, data_type) not in self._bounds:
            known = self._statistics(column, data_type)
            self._bounds[column, data_type] = None if known is None else Bounds(known, self.rows)
        return self._bounds[column, data_type]

    def _statistics(self, column: str, data_type: DataType) -> Statistics | None:
        places, parts = [], []
        for (number, columns), files in self._stats_groups.items():
            own = self.schemas[number]
            names = own.names if columns is None else columns
            if column not in names or own.types.get(column) != data_type:
                continue
            types = [own.types[name] for name in names]
            stats = [self.placed[file].file.value_stats for file in files.tolist()]
            places.append(files)
            parts.append(bounds_of(stats, names.index(column), types, self.rows[files]))
        if not parts:
            return None
        chosen = np.full(len(self.placed), -1, np.int64)
        chosen[np.concatenate(places)] = np.arange(sum(map(len, parts)))
        values = pa.concat_arrays([pa.nulls(0, statistics_type(data_type)), *parts])
        return Statistics(column, data_type, values.take(pa.array(chosen, mask=chosen < 0)))

    @cached_property
    def _stats_groups(self) -> dict[_FileKind, Int64Array]:
        """Files with statistics of the same columns."""
        groups: dict[_FileKind, list[int]] = {}
        for number, placed in enumerate(self.placed):
            file = placed.file
            columns = file.write_columns if file.stats_columns is None else file.stats_columns
            if columns is None or set(columns) <= set(self.schemas[file.schema_id].names):
                groups.setdefault((file.schema_id, columns), []).append(number)
        return {kind: np.array(numbers, np.int64) for kind, numbers in groups.items()}


def _is_read(field: Field) -> bool:
    try:
        column_type(field.data_type)
    except (UnsupportedError, KeyError):
        return False
    return True


def _column(field: Field) -> Column:
    if not _is_read(field):
        raise UnsupportedError(f"column {field.name}: {field.data_type} is not read")
    return Column(field.name, column_type(field.data_type), field.data_type)
