"""The data files of a snapshot that a read sees, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.orc_file import OrcScan, open_orc_scans
from alcid.paimon_metadata.manifest import DataFile, ManifestEntry
from alcid.paimon_metadata.paths import Paths
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.parquet_file import ParquetScan, open_scans
from alcid.parquet_file.decoding import Int96Unit, int96_as
from alcid.storage import Storage
from alcid.storage.location import Location
from alcid.tables.avro_scan import AvroScan, open_avro_scans

__all__ = [
    "INT96_UNIT",
    "DataPlace",
    "DataScan",
    "PlacedFile",
    "open_data",
    "place_files",
    "read_columns",
    "read_present",
    "table_paths",
]

DataScan: TypeAlias = ParquetScan | OrcScan | AvroScan

INT96_UNIT: Int96Unit = "ns"
"""Paimon writes INT96 for nothing but nanoseconds."""

_FORMATS = ("parquet", "orc", "avro")


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A data file, and the folder that it lies in."""

    entry: ManifestEntry
    folder: str
    """Of its bucket, with a `/` at its end."""

    @property
    def file(self) -> DataFile:
        """What the manifest says of it."""
        return self.entry.file

    @property
    def path(self) -> str:
        """Where it is, below the folder of the table."""
        return self.folder + self.entry.file.name

    @property
    def format(self) -> str:
        """What its name ends with."""
        return self.entry.file.name.rpartition(".")[2]


def table_paths(schema: TableSchema, options: TableOptions) -> Paths:
    """How the paths of a table are made."""
    return Paths(
        schema.partition_keys,
        schema.partition_types,
        default_name=options.partition_default_name,
        legacy_name=options.partition_legacy_name,
        directory=options.data_file_path_directory,
    )


def open_data(storage: Storage, placed: PlacedFile, options: TableOptions) -> DataScan:
    """Read the footer of a data file, by the options of its table.

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
    """Columns of a data file as it holds them, those of the system too, as far as it has them.

    Args:
        scan: The file.
        columns: Their names.
        storage: What reads it.
        groups: The row groups or stripes to read; by default all.
    """
    inside = set(scan.names)
    wanted = [name for name in dict.fromkeys(columns) if name in inside]
    return read_columns(scan, wanted, storage, groups)


def read_columns(
    scan: DataScan, columns: Sequence[str], storage: Storage, groups: Sequence[int] | None = None
) -> pa.Table:
    """Columns of a data file as it holds them; for the arguments, see `read_present`.

    Raises:
        ColumnError: It has no such column.
        UnsupportedError: It has timestamps that Arrow's nanoseconds do not reach.
    """
    with int96_as(INT96_UNIT):
        return scan.read(groups, columns, read_ranges=storage.read_ranges)


@dataclass(frozen=True, slots=True)
class DataPlace:
    """The storage that has all data files, and where the table is in it.

    It is that of the table; with files outside of it, the whole file system or bucket.
    """

    storage: Storage
    table: str = ""
    """The folder of the table, with a `/` at its end."""
    allowed: tuple[str, ...] = ()
    """Folders outside of the table that its options name."""

    @classmethod
    def of(cls, storage: Storage, options: TableOptions) -> DataPlace:
        """The place of a table that has files outside of its folder."""
        whole, folder = storage.whole()
        return cls(whole, folder, tuple(map(_location, options.external_paths)))

    def outside(self, path: str) -> str:
        """Where a file with a whole path is in the storage.

        Raises:
            UnsupportedError: In none of the folders that the option names, or elsewhere than the
                table, as in another bucket.
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
    """A whole path in one spelling: Java also writes `FILE:/folder` and `file:///folder`."""
    scheme, colon, rest = path.partition(":")
    return Location.parse(f"{scheme.lower()}:{rest}" if colon else path).text


def place_files(
    entries: Iterable[ManifestEntry], paths: Paths, place: DataPlace | None = None
) -> list[PlacedFile]:
    """Where files are.

    Args:
        entries: The files.
        paths: How the paths of the table are made.
        place: Where they are read, if files outside of the table are.

    Raises:
        UnsupportedError: A file of a format that is not read, or that lies outside of the table.
    """
    placed, entries = [], list(entries)
    paths.learn(entry.partition for entry in entries)
    for entry in entries:
        folder = paths.bucket(entry.partition, entry.bucket)
        found = PlacedFile(entry, folder if place is None else place.table + folder)
        external = entry.file.external_path
        if external is not None and place is None:
            raise UnsupportedError(
                f"{external}: lies outside of its table, which is for reading rows only"
            )
        if external is not None and place is not None:
            outside = place.outside(external)
            if not outside.endswith(f"/{entry.file.name}"):
                raise FormatError("external path", file=entry.file.name, found=external)
            found = PlacedFile(entry, outside.removesuffix(entry.file.name))
        if found.format not in _FORMATS:
            raise UnsupportedError(
                f"{found.path}: file format {found.format}, expected one of {', '.join(_FORMATS)}"
            )
        placed.append(found)
    return placed
