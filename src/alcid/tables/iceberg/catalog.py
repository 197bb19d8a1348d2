"""What an Iceberg table asks of its catalog; `alcid.spark.iceberg` answers with a session's.

Everything that changes the table goes through here, so that every catalog that Iceberg knows works,
and its own checks are made.

The files of a snapshot: from its manifests, which are read here.

The manifests of many files are read faster by the catalog's engine, which has many tasks for them;
what that cannot list is read here as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from alcid.errors import FileGoneError, StorageError, UnsupportedError
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.manifests import ManifestFile, read_manifest_list, read_manifests
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata

__all__ = [
    "MOST_VALUES",
    "CatalogTable",
    "OwnQuery",
    "RemovedDeletes",
    "VectorCommit",
    "VectorFile",
    "snapshot_entries",
]


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A deletion vector within a Puffin file, as a delete file of the table."""

    path: str
    size: int
    """Of the whole Puffin file."""
    data_file: str
    """The path of its data file, as the manifest has it."""
    spec_id: int
    partition: tuple[Any, ...]
    """The values of that spec, as Python values; those of the data file."""
    offset: int
    length: int
    cardinality: int


@dataclass(frozen=True, slots=True)
class RemovedDeletes:
    """A delete file that the new vectors replace: an older vector, or deletes of one data file."""

    path: str
    size: int
    data_file: str | None
    spec_id: int
    partition: tuple[Any, ...]
    cardinality: int
    file_format: str
    """`PUFFIN` or `PARQUET`."""
    offset: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class VectorCommit:
    """What one delete changes."""

    snapshot_id: int
    """The snapshot whose rows were looked at."""
    added: Sequence[VectorFile]
    removed: Sequence[RemovedDeletes]


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """A query for Iceberg's own Spark scan, in Spark's SQL."""

    version: int | str | None
    """A snapshot, which is read with its own schema; or a branch, with that of the table."""
    where: str | None
    columns: Sequence[str]
    order_by: Sequence[str] = ()
    limit: int | None = None
    is_filtered_above: bool = False
    """Whether Spark applies filters after the scan, that Iceberg does not see: by its own meaning,
    `f > 1` leaves NaN out, and negations of partition columns keep nulls."""


class CatalogTable(Protocol):
    """A table as its catalog knows it."""

    @property
    def name(self) -> str:
        """As the session calls it: `catalog.db.table`."""

    def load(self) -> TableMetadata:
        """The metadata as they are now."""

    def entries(self, snapshot_id: int) -> pa.Table:
        """The live data and delete files of a snapshot, as its metadata table `entries` has them.

        Columns are `sequence_number`, then those of `data_file`.
        """

    def storage_options(self, location: str) -> Mapping[str, Any]:
        """The options by which the catalog itself reads files below a location, as far as known."""

    def working_folder(self) -> str:
        """What paths of metadata without a root are below, as the catalog reads them."""

    def data_location(self, name: str) -> str:
        """Where the table wants a data or delete file of a name."""

    def metadata_location(self, name: str) -> str:
        """Where the table wants a file of a name beside its metadata."""

    def set_statistics(self, base: TableMetadata, statistics: StatisticsFile) -> None:
        """Register the statistics file of a snapshot.

        Raises:
            ConflictError: The metadata are not those of `base` any more.
        """

    def remove_statistics(self, base: TableMetadata, snapshot_id: int) -> None:
        """Let a snapshot have no statistics file.

        Raises:
            ConflictError: The metadata are not those of `base` any more.
        """

    def set_property(self, base: TableMetadata, name: str, value: str | None) -> None:
        """Set a table property; None removes it.

        Raises:
            ConflictError: The metadata are not those of `base` any more.
        """

    def commit_vectors(self, change: VectorCommit) -> int:
        """Commit deletion vectors, and return the new snapshot.

        Raises:
            ConflictError: A data file is gone, or has got another vector, since the snapshot.
        """

    def append(self, rows: Any) -> None:
        """Append the rows of a DataFrame, by Iceberg's own writer."""

    def check_append(self, rows: Any) -> None:
        """See that the columns of a DataFrame can be appended; nothing is written.

        Raises:
            UnsupportedError: They cannot.
        """

    def rows(self, query: OwnQuery) -> Any:
        """The rows of a query as a DataFrame, by Iceberg's own scan."""


MOST_VALUES: Final = 50_000
"""Files times columns up to which manifests are read here; a Spark job takes as long as these."""
_FIELDS_PER_FILE: Final = 5  # besides what it says of each column
_AT_ONCE: Final = 64  # manifests in memory


def snapshot_entries(
    catalog: CatalogTable, places: Places, metadata: TableMetadata, snapshot: Snapshot
) -> Entries:
    """The live data and delete files of a snapshot.

    Args:
        catalog: Lists the files of snapshots with very many of them.
        places: What manifests are read from.
        metadata: Of the table.
        snapshot: One of its snapshots.

    Raises:
        FileGoneError: The snapshot is expired.
        FormatError: A manifest is damaged.
        UnsupportedError: Manifests are encrypted.
    """
    if snapshot.manifest_list is None and not snapshot.manifests:
        return Entries.of(catalog.entries(snapshot.id), name=catalog.name)
    manifests = _manifests(places, snapshot, catalog.name)
    files = [one.live_files for one in manifests]
    values = sum(filter(None, files)) * (len(metadata.schema.fields) + _FIELDS_PER_FILE)
    if None not in files and values > MOST_VALUES:
        try:
            return Entries.of(catalog.entries(snapshot.id), name=catalog.name)
        except FileGoneError:
            raise
        except (StorageError, UnsupportedError):  # partition fields that share a name, and others
            pass
    found = read_manifests(_contents(places, manifests), metadata.specs)
    return Entries.of(found, name=catalog.name)


def _manifests(places: Places, snapshot: Snapshot, name: str) -> list[ManifestFile]:
    """The manifests of a snapshot that have live files."""
    if snapshot.manifest_list is None:
        return [ManifestFile(path) for path in snapshot.manifests]
    if snapshot.key_id is not None:
        raise UnsupportedError(f"{name}: encrypted manifests, which are not read")
    [data] = places.read_files([snapshot.manifest_list])
    manifests = read_manifest_list(data, file=snapshot.manifest_list)
    for one in manifests:
        if one.is_encrypted:
            raise UnsupportedError(f"{name}: encrypted manifests, which are not read: {one.path}")
    return [one for one in manifests if one.live_files != 0]


def _contents(
    places: Places, manifests: Sequence[ManifestFile]
) -> Iterator[tuple[ManifestFile, bytes]]:
    for first in range(0, len(manifests), _AT_ONCE):
        some = manifests[first : first + _AT_ONCE]
        yield from zip(some, places.read_files([one.path for one in some]), strict=True)
