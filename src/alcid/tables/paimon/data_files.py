"""The data files of a snapshot: their paths, their columns, and how they are opened.

Types of columns in Parquet files of a Paimon table:

| type                                       | in the file                                         |
|--------------------------------------------|-----------------------------------------------------|
| TIME                                       | milliseconds, whatever its precision                |
| TIMESTAMP(0..3), (4..6)                    | milliseconds, microseconds                          |
| TIMESTAMP(7..9)                            | INT96, and with it all timestamps of the file       |
| BINARY(n), CHAR(n)                         | as long as they are, without padding                |
| DECIMAL of up to 9, 18 digits              | an integer                                          |

Arrow writes INT96 for all timestamps of a file or for none, and Paimon reads both in any column. It
does not read nanoseconds as INT64, which Arrow writes otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alcid.datafiles.avro import AvroScan, open_avro_scans
from alcid.datafiles.orc import OrcScan, open_orc_scans
from alcid.datafiles.parquet import ParquetScan, open_scans
from alcid.datafiles.parquet.decoding import Int96Unit, int96_as
from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.storage import Storage
from alcid.storage.backend import Location
from alcid.tables.paimon.metadata.manifest import DataFile, ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_folder import Paths
from alcid.tables.schema import TargetColumns, fit_columns
from alcid.types import CHARACTER_TYPES, DataType
from alcid.types.data_type import MAX_LENGTH

DataScan: TypeAlias = ParquetScan | OrcScan | AvroScan

INT96_UNIT: Int96Unit = "ns"
"""Paimon writes INT96 only for nanoseconds."""

_FORMATS = ("parquet", "orc", "avro")


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A data file, and the folder that it is in."""

    entry: ManifestEntry
    folder: str
    """The folder of its bucket, which ends with `/`."""

    @property
    def file(self) -> DataFile:
        """Its metadata."""
        return self.entry.file

    @property
    def path(self) -> str:
        """Its path, relative to the table."""
        return self.folder + self.entry.file.name

    @property
    def format(self) -> str:
        """Its file format, which is the extension of its name."""
        return self.entry.file.name.rpartition(".")[2]


def table_paths(schema: TableSchema, options: TableOptions) -> Paths:
    """The paths of the data files of a table."""
    return Paths(
        schema.partition_keys,
        schema.partition_types,
        default_name=options.partition_default_name,
        legacy_name=options.partition_legacy_name,
        directory=options.data_file_path_directory,
    )


def open_data(storage: Storage, placed: PlacedFile, options: TableOptions) -> DataScan:
    """Open a data file: read its footer.

    Raises:
        FormatError: It is damaged.
    """
    source = storage.source(placed.path, placed.file.size)
    if placed.format == "avro":
        (scan,) = open_avro_scans([source], [placed.file.rows], read_ranges=storage.read_ranges)
        return scan
    if placed.format != "orc":
        return open_scans([source], read_ranges=storage.read_ranges)[0]
    return open_orc_scans(
        [source],
        read_ranges=storage.read_ranges,
        has_local_instants=options.orc_timestamp_ltz_legacy,
    )[0]


def read_present(
    scan: DataScan,
    columns: Iterable[str],
    storage: Storage,
    groups: Sequence[int] | None = None,
) -> pa.Table:
    """Columns of a data file, as far as it has them, system columns included.

    Args:
        scan: The file.
        columns: Their names.
        storage: The storage of the file.
        groups: The row groups or stripes to read; by default all.
    """
    names = set(scan.names)
    present = [name for name in dict.fromkeys(columns) if name in names]
    return read_columns(scan, present, storage, groups)


def read_columns(
    scan: DataScan, columns: Sequence[str], storage: Storage, groups: Sequence[int] | None = None
) -> pa.Table:
    """Columns of a data file; see `read_present` for the arguments.

    Raises:
        ColumnError: It has no such column.
        UnsupportedError: It has timestamps beyond the range of Arrow's nanoseconds.
    """
    with int96_as(INT96_UNIT):
        return scan.read(groups, columns, read_ranges=storage.read_ranges)


@dataclass(frozen=True, slots=True)
class DataPlace:
    """The storage of all data files, and the folder of the table in it.

    It is that of the table, or with files outside of the table the whole file system or bucket.
    """

    storage: Storage
    table: str = ""
    """The folder of the table, which ends with `/`."""
    allowed: tuple[str, ...] = ()
    """Folders outside of the table that its options name."""

    @classmethod
    def of(cls, storage: Storage, options: TableOptions) -> DataPlace:
        """The storage of a table that has files outside of its folder."""
        whole, folder = storage.whole()
        return cls(whole, folder, tuple(map(_location, options.external_paths)))

    def outside(self, path: str) -> str:
        """The path in the storage of a file with an absolute path.

        Raises:
            UnsupportedError: It is in none of the folders of the option, or not in the storage of
                the table, such as in another bucket.
        """
        location, root = _location(path), f"{self.storage.location.rstrip('/')}/"
        if not any(location.startswith(f"{folder}/") for folder in self.allowed):
            raise UnsupportedError(
                f"{path}: lies outside of its table, and in none of the folders of "
                "data-file.external-paths, which is not read"
            )
        if not location.startswith(root):
            raise UnsupportedError(
                f"{path}: lies outside of its table, and not in {root}, which is not read"
            )
        return location[len(root) :]


def _location(path: str) -> str:
    """A normalized absolute path: Java also writes `FILE:/folder` and `file:///folder`."""
    scheme, colon, rest = path.partition(":")
    return Location.parse(f"{scheme.lower()}:{rest}" if colon else path).text


def place_files(
    entries: Iterable[ManifestEntry], paths: Paths, place: DataPlace | None = None
) -> list[PlacedFile]:
    """Find the folders of data files.

    Args:
        entries: The files.
        paths: The paths of the table.
        place: Where files are read, if files outside of the table are.

    Raises:
        UnsupportedError: A file in a format that is not read, or outside of the table.
    """
    placed, entries = [], list(entries)
    paths.learn(entry.partition for entry in entries)
    for entry in entries:
        folder = paths.bucket(entry.partition, entry.bucket)
        file = PlacedFile(entry, folder if place is None else place.table + folder)
        external = entry.file.external_path
        if external is not None and place is None:
            raise UnsupportedError(
                f"{external}: lies outside of its table, which is for reading rows only"
            )
        if external is not None and place is not None:
            outside = place.outside(external)
            if not outside.endswith(f"/{entry.file.name}"):
                raise FormatError("external path", file=entry.file.name, found=external)
            file = PlacedFile(entry, outside.removesuffix(entry.file.name))
        if file.format not in _FORMATS:
            raise UnsupportedError(
                f"{file.path}: file format {file.format}, expected one of {', '.join(_FORMATS)}"
            )
        placed.append(file)
    return placed


_MICROSECONDS = 6
_MILLISECONDS = 3
_BINARIES = ("BINARY", "VARBINARY")
_NOT_WRITTEN = ("VARIANT", "BLOB", "VECTOR")


def stored_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of new data files: types, field ids, and nullability.

    Raises:
        UnsupportedError: A column of a type that is not written.

    >>> schema = TableSchema.of([("at", DataType.parse("TIME(6)"))], [], [], {}, not_null=["at"])
    >>> print(stored_schema(schema).field("at"))
    pyarrow.Field<at: time32[ms] not null>
    """
    in_nanoseconds = has_nanoseconds(schema)
    fields = []
    for column in schema.fields:
        for inner in _with_inner(column.data_type):
            if inner.root in _NOT_WRITTEN:
                raise UnsupportedError(f"column {column.name}: {inner} is not written")
        arrow_type = _stored_type(column.data_type, in_nanoseconds)
        metadata = {"PARQUET:field_id": str(column.id)}
        fields.append(pa.field(column.name, arrow_type, column.nullable, metadata=metadata))
    return pa.schema(fields)


def fit_stored(input_schema: pa.Schema, schema: TableSchema) -> TargetColumns:
    """Match input columns with those of data files.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A type that cannot be converted to that of the table.
    """
    stored = stored_schema(schema)
    types = dict(zip(stored.names, stored.types, strict=True))
    fitted = fit_columns(input_schema, types, [], any_unit=True)
    for field, source in zip(stored, fitted.sources, strict=True):
        if source is None and not field.nullable:
            raise ColumnError(f"column {field.name}: NOT NULL in the table, and not given")
    return replace(fitted, schema=stored)


def has_nanoseconds(schema: TableSchema) -> bool:
    """Whether timestamps are written as INT96."""
    return any(
        kind.root.startswith("TIMESTAMP") and kind.precision > _MICROSECONDS
        for column in schema.fields
        for kind in _with_inner(column.data_type)
    )


def check_lengths(rows: pa.Table, schema: TableSchema) -> None:
    """Check that no text is longer than its column allows; nested texts are not checked.

    Raises:
        UnsupportedError: One is.
    """
    for column in schema.fields:
        kind, values = column.data_type, rows.column(column.name)
        if kind.root not in CHARACTER_TYPES + _BINARIES or kind.length == MAX_LENGTH:
            continue
        lengths = (
            pc.utf8_length(values) if kind.root in CHARACTER_TYPES else pc.binary_length(values)
        )
        longest = pc.max(lengths).as_py() or 0
        if longest > kind.length:
            raise UnsupportedError(f"column {column.name}: found length {longest}, expected {kind}")


def _with_inner(data_type: DataType) -> list[DataType]:
    """A type, and all types nested in it."""
    return [data_type, *(inner for child in data_type.children for inner in _with_inner(child))]


def _stored_type(data_type: DataType, in_nanoseconds: bool) -> Any:
    children = [_stored_type(child, in_nanoseconds) for child in data_type.children]
    match data_type.root:
        case "BINARY":
            return pa.binary()
        case "TIME":
            return pa.time32("ms")
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            unit = "ms" if data_type.precision <= _MILLISECONDS else "us"
            zone = "UTC" if data_type.root == "TIMESTAMP_LTZ" else None
            return pa.timestamp("ns" if in_nanoseconds else unit, zone)
        case "ARRAY":
            return pa.list_(pa.field("element", children[0]))
        case "MAP":
            return pa.map_(*children)
        case "MULTISET":
            return pa.map_(children[0], pa.int32())
        case "ROW":
            return pa.struct(list(zip(data_type.names, children, strict=True)))
    return data_type.to_arrow()
