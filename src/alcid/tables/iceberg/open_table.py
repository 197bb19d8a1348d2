"""An open Iceberg table: its metadata, the snapshot that is read, and its files.

`alcid.IcebergTable` is the public API on top of it. Builds, deletes, statistics, verify and repair
work on the table as it is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeAlias

import numpy as np

from alcid.config import current_settings
from alcid.errors import FileGoneError, OptionError, StorageError, UnsupportedError, require
from alcid.expressions import Predicate
from alcid.expressions.casts_from_text import find_zone
from alcid.scan import Query, left_by_statistics
from alcid.tables.base import Table
from alcid.tables.engine import Engine
from alcid.tables.iceberg.bundles import BundleFinder
from alcid.tables.iceberg.catalog import CatalogTable, SnapshotManifests, VectorCommit
from alcid.tables.iceberg.deletes.plan import with_vectors
from alcid.tables.iceberg.file_io import FileIO, advice, is_absolute
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.manifest_pruning import ManifestRanges
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.manifests import ManifestFile
from alcid.tables.iceberg.metadata.schema import Schema, partition_names
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, TableMetadata

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Names: TypeAlias = tuple[tuple[tuple[int, int], str], ...]
"""Names of partition fields, by spec and field id."""


class OpenIcebergTable(Table[IcebergFiles]):
    """An Iceberg table at its current or another snapshot."""

    def __init__(
        self,
        catalog: CatalogTable,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: datetime | None = None,
        storage_options: Mapping[str, Any] | None = None,
        strict: bool = False,
        engine: Engine | None = None,
    ) -> None:
        """Load the metadata; use `alcid.iceberg` to open a table."""
        if snapshot_id is not None:
            require(snapshot_id, int, "snapshot_id")
        if as_of is not None:
            require(as_of, datetime, "as_of")
        if sum(argument is not None for argument in (snapshot_id, ref, as_of)) > 1:
            raise OptionError("snapshot_id, ref and as_of: found several, expected one of them")
        self.catalog = catalog
        self._snapshot_id, self._ref, self._as_of = snapshot_id, ref, as_of
        self.metadata: TableMetadata = catalog.load()
        self._is_by_catalog = storage_options is None
        if storage_options is None:
            storage_options = catalog.storage_options(self.metadata.location)
        base = None if is_absolute(self.metadata.location) else catalog.working_folder()
        self.file_io, self._storage_options = FileIO(storage_options, base), storage_options
        super().__init__(self.file_io.folder(self.metadata.location), strict=strict, engine=engine)
        self._bundles = BundleFinder(self.file_io, strict=strict)
        # Of the last snapshot: only the names of partition fields can change.
        self._entries: dict[tuple[int | None, _Names], Entries] = {}
        self._commits: dict[
            int, VectorCommit
        ] = {}  # commits of this process whose entries were not needed yet
        self._is_open = False
        self._pin()

    @property
    def name(self) -> str:
        """The name in the session: `catalog.db.table`."""
        return self.catalog.name

    @property
    def snapshot(self) -> IcebergFiles:
        """The files of the snapshot, which are listed on first use."""
        if not self._is_open:
            try:
                super().refresh()
            except FileGoneError:  # the snapshot has expired
                self.refresh()
                super().refresh()
            self._is_open = True
        return super().snapshot

    def refresh(self) -> None:
        """Load the current metadata and snapshot."""
        self.metadata = self.catalog.load()
        self._pin()

    def _pin(self) -> None:
        with self.engine.settings():
            self._pinned = self.metadata.find(self._snapshot_id, self._ref, self._as_of_ms())
        self._is_open = False

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None before the first commit."""
        return None if self._pinned is None else self._pinned.id

    @property
    def ref(self) -> str | None:
        """The branch or tag that it was opened at, if any."""
        return self._ref

    @property
    def format_version(self) -> int:
        """The format version; deletion vectors need 3."""
        return self.metadata.format_version

    @property
    def is_past(self) -> bool:
        """Whether it was opened at a snapshot, ref or timestamp, and so is read-only."""
        return any(argument is not None for argument in (self._snapshot_id, self._ref, self._as_of))

    def require_present(self, doing: str) -> None:
        """Check that the table can be changed.

        Raises:
            UnsupportedError: It was opened at a snapshot, ref or timestamp.
        """
        if self.is_past:
            raise UnsupportedError(
                f"{self.name}: opened with snapshot_id, ref or as_of, which are for reading, so no"
                f" {doing}: open it without"
            )

    def at(self, snapshot_id: int) -> Self:
        """The table at a snapshot."""
        return type(self)(
            self.catalog,
            snapshot_id=snapshot_id,
            storage_options=None if self._is_by_catalog else self._storage_options,
            strict=self._strict,
            engine=self.engine,
        )

    def note_commit(self, snapshot_id: int, change: VectorCommit) -> None:
        """Record a commit of this process, so that its files need not be listed."""
        self._commits[snapshot_id] = change

    def _files_of(self, query: Query) -> IcebergFiles:
        """The files of the snapshot; of a large one, those of the manifests that a query needs."""
        if query.where is not None and query.use_indexes and not self._is_open:
            files = self._pruned(query.where)
            if files is not None:
                return files
        return self.snapshot

    def _pruned(self, where: str | Predicate) -> IcebergFiles | None:
        """The files of the manifests that a predicate needs; None if all files are as good."""
        snapshot = self._pinned
        specs = self.metadata.specs.values()
        if snapshot is None or self._entries or not any(spec.fields for spec in specs):
            return None
        listed = SnapshotManifests(self.catalog, self.file_io, self.metadata, snapshot)
        try:
            if not listed.is_listed or not listed.is_large:
                return None
            with self.engine.settings():
                chosen = self._needed(listed.manifests, where)
                skipped = len(listed.manifests) - len(chosen)
                # The files of a scan are not used for the next one, but all files are.
                if 2 * skipped < sum(one.content == 0 for one in listed.manifests):
                    return None
                note = (
                    f"{skipped:,} of {len(listed.manifests):,} manifests are not read: their"
                    " partition summaries rule out the predicate"
                )
                return self._files(snapshot, listed.entries(chosen), note)
        except FileGoneError:  # the snapshot has expired
            return None

    def _needed(
        self, manifests: Sequence[ManifestFile], where: str | Predicate
    ) -> list[ManifestFile]:
        """The manifests that a predicate needs, those of delete files among them."""
        data = [manifest for manifest in manifests if manifest.content == 0]
        ranges = ManifestRanges(
            self.storage, data, self.metadata.specs, self._schema_of(self._pinned)
        )
        may_match = left_by_statistics(where, ranges)
        needed = {id(data[number]) for number in np.flatnonzero(may_match).tolist()}
        return [one for one in manifests if one.content != 0 or id(one) in needed]

    def _schema_of(self, snapshot: Snapshot | None) -> Schema:
        """The columns that are read of a snapshot."""
        if self.is_past:
            return self.metadata.schema_of(snapshot, self._ref)
        return self.metadata.schema

    def _open(self, before: IcebergFiles | None = None) -> IcebergFiles:
        pinned = self._pinned if before is None else before.snapshot
        return self._files(pinned, self._entries_of(pinned))

    def _files(self, snapshot: Snapshot | None, entries: Entries, note: str = "") -> IcebergFiles:
        bundles = self._bundles.find(self.metadata, snapshot)
        if note:
            bundles = replace(bundles, notes=(*bundles.notes, note))
        return IcebergFiles(
            self.file_io,
            self.metadata,
            snapshot,
            self._schema_of(snapshot),
            entries,
            bundles,
            strict=self._strict,
            own_rows=self.catalog.rows,
            distrusted=self._distrusted,
        )

    def _entries_of(self, snapshot: Snapshot | None) -> Entries:
        if snapshot is None:
            return Entries.none()
        names = tuple(partition_names(self.metadata.specs).items())
        if (snapshot.id, names) not in self._entries:
            change = self._commits.get(snapshot.id)
            before = self._entries.get((snapshot.parent_id, names))
            if change is not None and before is not None:
                entries = with_vectors(before, change, snapshot.sequence_number)
            else:
                entries = self._read_entries(snapshot)
            self._entries, self._commits = {(snapshot.id, names): entries}, {}
        return self._entries[snapshot.id, names]

    def _read_entries(self, snapshot: Snapshot) -> Entries:
        try:
            return SnapshotManifests(self.catalog, self.file_io, self.metadata, snapshot).entries()
        except FileGoneError:
            raise
        except StorageError as error:
            if not self._is_by_catalog or not self.file_io.folder(self.metadata.location).remote:
                raise
            problem = f"{error.problem}; {advice(self._storage_options)}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error

    def _as_of_ms(self) -> int | None:
        """The requested timestamp, by default in the session's time zone."""
        as_of = self._as_of
        if as_of is None:
            return None
        if as_of.tzinfo is None:
            as_of = as_of.replace(tzinfo=find_zone(current_settings().timezone))
        return (as_of - _EPOCH) // timedelta(milliseconds=1)  # exact, unlike a float
