"""The catalog interface of an Iceberg table, which `alcid.spark.iceberg` implements for a session.

All changes of a table go through its catalog, so that every catalog of Iceberg works and makes its
own checks. The files of a snapshot are read here from its manifests; if they are many, the
catalog's engine lists them in parallel, as far as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from alcid.errors import FileGoneError, StorageError, UnsupportedError
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.manifests import ManifestFile, read_manifest_list, read_manifests
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A deletion vector in a Puffin file, as a delete file of the table."""

    path: str
    size: int
    """The size of the Puffin file."""
    data_file: str
    """The path of its data file in the manifest."""
    spec_id: int
    partition: tuple[Any, ...]
    """The partition values of the data file, in the order of the spec."""
    offset: int
    length: int
    cardinality: int


@dataclass(frozen=True, slots=True)
class RemovedDeletes:
    """A delete file that new vectors replace: an older vector, or deletes of one data file."""

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
    """The delete files that a commit adds and removes."""

    snapshot_id: int
    """The snapshot that the vectors are based on."""
    added: Sequence[VectorFile]
    removed: Sequence[RemovedDeletes]


@dataclass(frozen=True, slots=True)
class OwnQuery:
    """A Spark SQL query for Iceberg's own scan."""

    version: int | str | None
    """A snapshot id, read with its own schema, or a branch, read with the current one."""
    where: str | None
    columns: Sequence[str]
    order_by: Sequence[str] = ()
    limit: int | None = None
    is_filtered_above: bool = False
    """Whether Spark filters after the scan, because Iceberg would give other rows: there `f > 1`
    drops NaN, and negations on partition columns keep nulls."""


class CatalogTable(Protocol):
    """A table in its catalog."""

    @property
    def name(self) -> str:
        """The name in the session: `catalog.db.table`."""

    def load(self) -> TableMetadata:
        """Load the current metadata."""

    def entries(self, snapshot_id: int) -> pa.Table:
        """The live data and delete files of a snapshot, from the metadata table `entries`.

        Columns are `sequence_number`, then those of `data_file`.
        """

    def storage_options(self, location: str) -> Mapping[str, Any]:
        """The storage options of the catalog for files below a location, as far as known."""

    def working_folder(self) -> str:
        """The folder of relative paths in metadata."""

    def data_location(self, name: str) -> str:
        """The location for a new data or delete file."""

    def metadata_location(self, name: str) -> str:
        """The location for a new file beside the metadata."""

    def set_statistics(self, base: TableMetadata, statistics: StatisticsFile) -> None:
        """Register the statistics file of a snapshot.

        Raises:
            ConflictError: The metadata has changed since `base`.
        """

    def remove_statistics(self, base: TableMetadata, snapshot_id: int) -> None:
        """Remove the statistics file of a snapshot.

        Raises:
            ConflictError: The metadata has changed since `base`.
        """

    def set_property(self, base: TableMetadata, name: str, value: str | None) -> None:
        """Set a table property; None removes it.

        Raises:
            ConflictError: The metadata has changed since `base`.
        """

    def commit_vectors(self, change: VectorCommit) -> int:
        """Commit deletion vectors, and return the id of the new snapshot.

        Raises:
            ConflictError: A data file was removed, or got another vector, since the snapshot.
        """

    def append(self, rows: Any) -> None:
        """Append the rows of a DataFrame, by Iceberg's own writer."""

    def check_append(self, rows: Any) -> None:
        """Check that the columns of a DataFrame can be appended, without writing.

        Raises:
            UnsupportedError: They cannot.
        """

    def rows(self, query: OwnQuery) -> Any:
        """The rows of a query as a DataFrame, by Iceberg's own scan."""


MAX_VALUES: Final = 50_000
"""The product of files and columns up to which manifests are read here, as fast as a Spark job."""
_FIELDS_PER_FILE: Final = 5  # besides the metrics of each column
_BATCH: Final = 64  # manifests in memory


def snapshot_entries(
    catalog: CatalogTable, file_io: FileIO, metadata: TableMetadata, snapshot: Snapshot
) -> Entries:
    """The live data and delete files of a snapshot.

    Args:
        catalog: Lists the files of very large snapshots.
        file_io: Opens manifests.
        metadata: The table metadata.
        snapshot: The snapshot.

    Raises:
        FileGoneError: The snapshot has expired.
        FormatError: A manifest is damaged.
        UnsupportedError: Manifests are encrypted.
    """
    if snapshot.manifest_list is None and not snapshot.manifests:
        return Entries.of(catalog.entries(snapshot.id), name=catalog.name)
    manifests = _manifests(file_io, snapshot, catalog.name)
    files = [manifest.live_files for manifest in manifests]
    values = sum(filter(None, files)) * (len(metadata.schema.fields) + _FIELDS_PER_FILE)
    if None not in files and values > MAX_VALUES:
        try:
            return Entries.of(catalog.entries(snapshot.id), name=catalog.name)
        except FileGoneError:
            raise
        except (StorageError, UnsupportedError):  # for example partition fields of the same name
            pass
    entries = read_manifests(_contents(file_io, manifests), metadata.specs)
    return Entries.of(entries, name=catalog.name)


def _manifests(file_io: FileIO, snapshot: Snapshot, name: str) -> list[ManifestFile]:
    """The manifests of a snapshot that have live files."""
    if snapshot.manifest_list is None:
        return [ManifestFile(path) for path in snapshot.manifests]
    if snapshot.key_id is not None:
        raise UnsupportedError(f"{name}: encrypted manifests are not supported")
    [data] = file_io.read_files([snapshot.manifest_list])
    manifests = read_manifest_list(data, file=snapshot.manifest_list)
    for manifest in manifests:
        if manifest.is_encrypted:
            raise UnsupportedError(
                f"{name}: encrypted manifests are not supported: {manifest.path}"
            )
    return [manifest for manifest in manifests if manifest.live_files != 0]


def _contents(
    file_io: FileIO, manifests: Sequence[ManifestFile]
) -> Iterator[tuple[ManifestFile, bytes]]:
    for first in range(0, len(manifests), _BATCH):
        batch = manifests[first : first + _BATCH]
        yield from zip(
            batch, file_io.read_files([manifest.path for manifest in batch]), strict=True
        )
