"""An open Iceberg table: its metadata, the snapshot that is read, and its files.

`alcid.IcebergTable` is the public API on top of it. Builds, deletes, statistics, verify and repair
work on the table as it is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeAlias

from alcid.config import current_settings
from alcid.errors import FileGoneError, OptionError, StorageError, UnsupportedError, require
from alcid.expressions.casts_from_text import find_zone
from alcid.tables.base import Table
from alcid.tables.engine import Engine
from alcid.tables.iceberg.bundles import BundleFinder
from alcid.tables.iceberg.catalog import CatalogTable, VectorCommit, snapshot_entries
from alcid.tables.iceberg.deletes.plan import with_vectors
from alcid.tables.iceberg.file_io import FileIO, advice, is_absolute
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import partition_names
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

    def _open(self, before: IcebergFiles | None = None) -> IcebergFiles:
        pinned = self._pinned if before is None else before.snapshot
        return IcebergFiles(
            self.file_io,
            self.metadata,
            pinned,
            self.metadata.schema_of(pinned, self._ref) if self.is_past else self.metadata.schema,
            self._entries_of(pinned),
            self._bundles.find(self.metadata, pinned),
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
            return snapshot_entries(self.catalog, self.file_io, self.metadata, snapshot)
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
