"""The catalog interface of an Iceberg table, which `alcid.spark.iceberg` implements for a session.

All changes of a table go through its catalog, so that every catalog of Iceberg works and makes its
own checks. The files of a snapshot are read here from its manifests; if they are many, the
catalog's engine lists them in parallel, as far as it can.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import FileGoneError, StorageError, UnsupportedError
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import DATA, METRICS, Entries
from alcid.tables.iceberg.metadata.manifests import (
    ManifestEntries,
    ManifestFile,
    join_manifests,
    read_manifest,
    read_manifest_list,
)
from alcid.tables.iceberg.metadata.schema import partition_names
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

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        """The live data and delete files of a snapshot, from the metadata table `entries`.

        Columns are `sequence_number`, then those of `data_file`. Without `metrics`, those of data
        files may be missing.
        """

    def metrics(self, snapshot_id: int, field_ids: Collection[int]) -> pa.Table:
        """`file_path` and the metrics of some columns of the live data files of a snapshot."""

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
"""The product of files and columns up to which all metrics are read with the files, and kept."""
MAX_READ: Final = 200_000
"""The product of files and columns up to which manifests are read here, as fast as a Spark job."""
FEW_MANIFESTS: Final = 32
"""Manifests that are read all, whatever the predicate, unless they have many files."""
CACHE_BYTES: Final = 64 << 20
"""Bytes of manifests in memory, for all tables of the process."""
_FIELDS_PER_FILE: Final = 5  # besides the metrics of each column
_BATCH: Final = 16  # manifests whose bytes are in memory


class _ManifestCache:
    """The manifests that were read last, up to a size: a manifest never changes."""

    def __init__(self, largest: int) -> None:
        self._largest, self._bytes, self._lock = largest, 0, Lock()
        self._entries: OrderedDict[Hashable, ManifestEntries] = OrderedDict()

    def get(self, key: Hashable) -> ManifestEntries | None:
        with self._lock:
            entries = self._entries.get(key)
            if entries is not None:
                self._entries.move_to_end(key)
            return entries

    def put(self, key: Hashable, entries: ManifestEntries) -> None:
        with self._lock:
            if key in self._entries or entries.nbytes > self._largest:
                return
            self._entries[key] = entries
            self._bytes += entries.nbytes
            while self._bytes > self._largest:
                self._bytes -= self._entries.popitem(last=False)[1].nbytes


_cache = _ManifestCache(CACHE_BYTES)


class SnapshotManifests:
    """The manifests of a snapshot; what they list is read when it is asked for."""

    def __init__(
        self, catalog: CatalogTable, file_io: FileIO, metadata: TableMetadata, snapshot: Snapshot
    ) -> None:
        """Read nothing yet.

        Args:
            catalog: Lists the files of very large snapshots.
            file_io: Opens manifests.
            metadata: The table metadata.
            snapshot: The snapshot.
        """
        self._catalog, self._file_io = catalog, file_io
        self._metadata, self._snapshot = metadata, snapshot

    @property
    def is_listed(self) -> bool:
        """Whether the snapshot names its manifests; else only the catalog knows its files."""
        return self._snapshot.manifest_list is not None or bool(self._snapshot.manifests)

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """The manifests that have live files.

        Raises:
            FileGoneError: The snapshot has expired.
            FormatError: The manifest list is damaged.
            UnsupportedError: Manifests are encrypted.
        """
        snapshot, name = self._snapshot, self._catalog.name
        if snapshot.manifest_list is None:
            return [ManifestFile(path) for path in snapshot.manifests]
        if snapshot.key_id is not None:
            raise UnsupportedError(f"{name}: encrypted manifests are not supported")
        [data] = self._file_io.read_files([snapshot.manifest_list])
        manifests = read_manifest_list(data, file=snapshot.manifest_list)
        for manifest in manifests:
            if manifest.is_encrypted:
                raise UnsupportedError(
                    f"{name}: encrypted manifests are not supported: {manifest.path}"
                )
        return [manifest for manifest in manifests if manifest.live_files != 0]

    @property
    def is_large(self) -> bool:
        """Whether it takes long enough to read all manifests that a query should choose some."""
        values = self._values(self.manifests)
        return len(self.manifests) > FEW_MANIFESTS or values is None or values > MAX_VALUES

    def entries(self, chosen: Sequence[ManifestFile] | None = None) -> Entries:
        """The live data and delete files of the snapshot.

        Args:
            chosen: Only those of these manifests.

        Raises:
            FileGoneError: The snapshot has expired.
            FormatError: A manifest is damaged.
            UnsupportedError: Manifests are encrypted.
        """
        name, number = self._catalog.name, self._snapshot.id
        if not self.is_listed:
            return Entries.of(self._catalog.entries(number), name=name)
        manifests = self.manifests if chosen is None else chosen
        values = self._values(manifests)
        if values is not None and values <= MAX_VALUES:
            return Entries.of(join_manifests(self._read(manifests, None)), name=name)
        is_whole = chosen is None or len(chosen) == len(self.manifests)
        if values is not None and values > MAX_READ and is_whole:
            try:
                entries = self._catalog.entries(number, metrics=False)
                return self._by_catalog(entries)
            except FileGoneError:
                raise
            except (StorageError, UnsupportedError):  # as partition fields of the same name
                pass
        entries = join_manifests(self._read(manifests, ()))
        return Entries.of(entries, name=name, read_metrics=partial(self._metrics, manifests))

    def _values(self, manifests: Sequence[ManifestFile]) -> int | None:
        """The product of files and columns; None if manifests do not say it."""
        files = [manifest.live_files for manifest in manifests]
        if None in files:
            return None
        return sum(filter(None, files)) * (len(self._metadata.schema.fields) + _FIELDS_PER_FILE)

    def _by_catalog(self, entries: pa.Table) -> Entries:
        """Entries that the catalog has listed, whose metrics it reads when they are asked for."""
        data = entries.filter(pc.equal(entries["content"], DATA))
        paths = data["file_path"].combine_chunks()

        def read_metrics(field_ids: Collection[int]) -> pa.Table:
            metrics = self._catalog.metrics(self._snapshot.id, field_ids)
            known = metrics["file_path"].combine_chunks()
            # Of a file that is listed twice it is not known which metrics are whose.
            counts = pc.value_counts(known)
            twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
            known = pc.if_else(pc.is_in(known, value_set=twice), None, known)
            return metrics.take(pc.index_in(paths, value_set=known))

        return Entries.of(entries, name=self._catalog.name, read_metrics=read_metrics)

    def _metrics(self, manifests: Sequence[ManifestFile], field_ids: Collection[int]) -> pa.Table:
        """The metrics of columns of all data files, in the order of the manifests."""
        tables = []
        wanted = frozenset(field_ids)
        of_data = [manifest for manifest in manifests if manifest.content == 0]
        for entries in self._read(of_data, wanted):
            columns = entries.columns
            tables.append(columns.filter(pc.equal(columns["content"], DATA)).select(METRICS))
        return pa.concat_tables([join_manifests([]).select(METRICS), *tables])

    def _read(
        self, manifests: Sequence[ManifestFile], metrics: Collection[int] | None
    ) -> Iterator[ManifestEntries]:
        """The files of manifests; those that are not cached are read in rounds."""
        specs = self._metadata.specs
        names = tuple(partition_names(specs).items())
        kind = None if metrics is None else frozenset(metrics)
        keys = [(self._file_io.identity, manifest, names, kind) for manifest in manifests]
        for first in range(0, len(manifests), _BATCH):
            batch = range(first, min(first + _BATCH, len(manifests)))
            cached = {number: _cache.get(keys[number]) for number in batch}
            missing = [number for number in batch if cached[number] is None]
            paths = [manifests[number].path for number in missing]
            contents = dict(zip(missing, self._file_io.read_files(paths), strict=True))
            for number in batch:
                entries = cached[number]
                if entries is None:
                    data = contents.pop(number)
                    entries = read_manifest(manifests[number], data, specs, metrics)
                    if metrics:
                        entries = entries.select(["content", *METRICS])
                    _cache.put(keys[number], entries)
                yield entries


def snapshot_entries(
    catalog: CatalogTable, file_io: FileIO, metadata: TableMetadata, snapshot: Snapshot
) -> Entries:
    """The live data and delete files of a snapshot; see `SnapshotManifests`."""
    return SnapshotManifests(catalog, file_io, metadata, snapshot).entries()
