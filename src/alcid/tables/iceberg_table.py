"""An Iceberg table: what a user holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from alcid.config import current_settings
from alcid.errors import (
    FileGoneError,
    OptionError,
    StorageError,
    UnsupportedError,
    require,
)
from alcid.expressions import Predicate
from alcid.expressions.casts_from_text import find_zone
from alcid.options import OptionValue
from alcid.scan import Scan
from alcid.tables.base import Table
from alcid.tables.engine import Engine, Progress
from alcid.tables.iceberg.bundles import BundleFinder, build
from alcid.tables.iceberg.bundles.build import append
from alcid.tables.iceberg.bundles.statistics import compute_stats
from alcid.tables.iceberg.catalog import CatalogTable, VectorCommit, snapshot_entries
from alcid.tables.iceberg.delegated import hand_over
from alcid.tables.iceberg.deletes.delete import delete
from alcid.tables.iceberg.deletes.plan import with_vectors
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.locations import Places, advice, is_whole
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import partition_names
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, TableMetadata
from alcid.tables.maintenance.clean import CleanReport
from alcid.tables.maintenance.findings import RepairReport, VerifyReport
from alcid.tables.maintenance.iceberg_clean import clean
from alcid.tables.maintenance.iceberg_repair import repair
from alcid.tables.maintenance.iceberg_verify import verify
from alcid.tables.reports import AppendReport, BuildReport, DeleteReport, IndexInfo

__all__ = ["IcebergTable"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Names: TypeAlias = tuple[tuple[tuple[int, int], str], ...]
"""Of partition fields, by their specs and ids."""


class IcebergTable(Table[IcebergFiles]):
    """An Iceberg table at its current snapshot, or at one of the past; `alcid.iceberg` opens one.

    Rows, indexes and statistics are read here; every change goes through the catalog of the
    session, as one of Iceberg's own.
    """

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
        """Load the metadata; `alcid.iceberg` is the usual way to one."""
        if snapshot_id is not None:
            require(snapshot_id, int, "snapshot_id")
        if as_of is not None:
            require(as_of, datetime, "as_of")
        if sum(one is not None for one in (snapshot_id, ref, as_of)) > 1:
            raise OptionError("snapshot_id, ref and as_of: found several, expected one of them")
        self.catalog = catalog
        self._snapshot_id, self._ref, self._as_of = snapshot_id, ref, as_of
        self.metadata: TableMetadata = catalog.load()
        self._is_by_catalog = storage_options is None
        if storage_options is None:
            storage_options = catalog.storage_options(self.metadata.location)
        base = None if is_whole(self.metadata.location) else catalog.working_folder()
        self.places, self._storage_options = Places(storage_options, base), storage_options
        super().__init__(self.places.folder(self.metadata.location), strict=strict, engine=engine)
        self._bundles = BundleFinder(self.places, strict=strict)
        # Of the last snapshot: they never change, but for the names of partition fields.
        self._entries: dict[tuple[int | None, _Names], Entries] = {}
        self._commits: dict[int, VectorCommit] = {}  # whose entries were not needed so far
        self._is_open = False
        self._pin()

    @property
    def name(self) -> str:
        """As the session calls it."""
        return self.catalog.name

    @property
    def snapshot(self) -> IcebergFiles:
        """The files of the snapshot, which are listed when they are first asked for."""
        if not self._is_open:
            try:
                super().refresh()
            except FileGoneError:  # expired since
                self.refresh()
                super().refresh()
            self._is_open = True
        return super().snapshot

    def refresh(self) -> None:
        """See which snapshot is the current one now."""
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
        """The branch or tag that it was opened at; None if it was not."""
        return self._ref

    @property
    def format_version(self) -> int:
        """That of the table: rows are deleted by vectors from version 3 on."""
        return self.metadata.format_version

    @property
    def is_past(self) -> bool:
        """Whether it was opened at a snapshot, a tag or a moment, so that nothing is changed."""
        return any(one is not None for one in (self._snapshot_id, self._ref, self._as_of))

    def require_present(self, doing: str) -> None:
        """See that the current snapshot is read, so that the table can be changed.

        Raises:
            UnsupportedError: It was opened as it was in the past.
        """
        if self.is_past:
            raise UnsupportedError(
                f"{self.name}: opened with snapshot_id, ref or as_of, which are for reading, so no"
                f" {doing}: open it without"
            )

    def at(self, snapshot_id: int) -> IcebergTable:
        """The same table as it was at a snapshot."""
        return IcebergTable(
            self.catalog,
            snapshot_id=snapshot_id,
            storage_options=None if self._is_by_catalog else self._storage_options,
            strict=self._strict,
            engine=self.engine,
        )

    def _chosen(self, scan: Scan) -> Scan:
        """The scan; by Iceberg's own, if something of it cannot be read here."""
        return hand_over(self, scan)

    def build_indexes(
        self,
        options: Mapping[str, OptionValue] | None = None,
        *,
        rebuild: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build the indexes that files lack, and keep them in a statistics file of the snapshot.

        Data files stay as they are, and there is no new snapshot. What a killed build has done is
        used by the next one.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`; by default
                those of the indexes that some files have.
            rebuild: Build all anew.
            dry_run: Only say what files lack; nothing is read of them.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            OptionError: An option that cannot be.
            ColumnError: The table does not have a column.
            UnsupportedError: It was opened as it was in the past.
        """
        wanted = build.options_of(self) if options is None else options
        if rebuild and not dry_run:
            self._distrusted.clear()
        return build.build(self, wanted, rebuild=rebuild, dry_run=dry_run, progress=progress)

    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and how many files have each."""
        return build.indexes(self)

    def drop_indexes(
        self,
        columns: Collection[str] | None = None,
        types: Collection[str] | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """Remove indexes of these columns and types; by default all.

        Args:
            columns: Those of these columns.
            types: Those of these types, as `bitmap`.
            dry_run: Only count.

        Returns:
            How many files had one of them.
        """
        return build.drop(self, columns, types, dry_run=dry_run)

    def append(
        self,
        rows: Any,
        options: Mapping[str, OptionValue] | None = None,
        *,
        dry_run: bool = False,
    ) -> AppendReport:
        """Append rows by Iceberg's own writer, and index the files that it makes.

        Args:
            rows: A DataFrame of Spark; its columns go by name, those that it does not have are
                null, or have their defaults.
            options: The indexes to build, see `alcid.options`; by default those that the table has.
                `{}` for none.
            dry_run: Only let Iceberg see whether the columns fit, and count the rows.

        Returns:
            What was appended, by others too if they did so at the same time.
        """
        return append(self, rows, options, dry_run=dry_run)

    def delete(
        self,
        where: str | Predicate,
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> DeleteReport:
        """Delete the rows that match, by deletion vectors, in one commit.

        Args:
            where: SQL text, or a predicate made with `alcid.col`; `"true"` is every row.
            dry_run: Only say how many rows match.
            progress: As for `build_indexes`.

        Raises:
            UnsupportedError: The table is of a format version before 3, or was opened as it was in
                the past.
            ConflictError: Others changed the same files again and again.
        """
        return delete(self, where, dry_run=dry_run, progress=progress)

    def compute_stats(
        self,
        columns: Collection[str] | None = None,
        *,
        snapshot_id: int | None = None,
        progress: Progress | bool | None = None,
    ) -> pa.Table:
        """Count the distinct values of columns by theta sketches.

        They are kept in the statistics file of the snapshot, which Spark's optimiser plans by.

        Args:
            columns: By default all that can be counted.
            snapshot_id: The snapshot whose rows are counted; by default the one that is read.
            progress: As for `build_indexes`.

        Returns:
            A row for each column, with `ndv`, how many distinct values it has: exact up to 4,096,
            and within some percent beyond.
        """
        return compute_stats(self, columns, snapshot_id=snapshot_id, progress=progress)

    def verify(
        self, sample: float = 1.0, *, progress: Progress | bool | None = None
    ) -> VerifyReport:
        """Read the files of the snapshot, and compare them with what the table says of them.

        Args:
            sample: The share of files to look at; each run takes the same ones.
            progress: As for `build_indexes`.
        """
        return verify(self, sample, progress=progress).shortened()

    def repair(
        self,
        older_than: timedelta = timedelta(days=1),
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> RepairReport:
        """Mend what `verify` finds wrong, as far as nothing is lost by it.

        Deletion vectors that are there twice become one, those of files that are gone are dropped,
        wrong numbers are put right: one commit. Statistics files, and the indexes in them, are made
        again in commits of their own. What cannot be mended is told, and not touched. All of the
        table is read for it, and once more to see what is left.

        Args:
            older_than: As for `clean`, which is done at the end.
            dry_run: Only say what would be done.
            progress: As for `build_indexes`.

        Raises:
            UnsupportedError: It was opened as it was in the past.
            ConflictError: Others changed the same files again and again.
        """
        if not dry_run:
            self._distrusted.clear()
        return repair(self, older_than, dry_run=dry_run, progress=progress)

    def clean(
        self, older_than: timedelta = timedelta(days=1), *, dry_run: bool = False
    ) -> CleanReport:
        """Remove what work on indexes and statistics has left that no snapshot lists.

        Args:
            older_than: What is younger is left alone: somebody may be about to register it.
            dry_run: Only say what would be done.
        """
        return clean(self, older_than, dry_run=dry_run)

    def note_commit(self, snapshot_id: int, change: VectorCommit) -> None:
        """Take note of a commit of its own: the files of its snapshot need not be listed."""
        self._commits[snapshot_id] = change

    def _open(self, before: IcebergFiles | None = None) -> IcebergFiles:
        pinned = self._pinned if before is None else before.snapshot
        return IcebergFiles(
            self.places,
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
                found = with_vectors(before, change, snapshot.sequence_number)
            else:
                found = self._read_entries(snapshot)
            self._entries, self._commits = {(snapshot.id, names): found}, {}
        return self._entries[snapshot.id, names]

    def _read_entries(self, snapshot: Snapshot) -> Entries:
        try:
            return snapshot_entries(self.catalog, self.places, self.metadata, snapshot)
        except FileGoneError:
            raise
        except StorageError as error:
            if not self._is_by_catalog or not self.places.folder(self.metadata.location).remote:
                raise
            problem = f"{error.problem}; {advice(self._storage_options)}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error

    def _as_of_ms(self) -> int | None:
        """The moment that is asked for; without a zone, it is one of the session's."""
        moment = self._as_of
        if moment is None:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=find_zone(current_settings().timezone))
        return (moment - _EPOCH) // timedelta(milliseconds=1)  # exactly: a float may fall below
