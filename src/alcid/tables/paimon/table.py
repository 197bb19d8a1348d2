"""A Paimon table: what a user holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from alcid.errors import OptionError, UnsupportedError, require
from alcid.options import OptionValue
from alcid.paimon_metadata.commit import Committer
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.snapshot import MAIN
from alcid.paimon_metadata.table_folder import TableFolder
from alcid.paimon_metadata.table_options import TableOptions
from alcid.paimon_metadata.table_state import TableState
from alcid.predicate import Predicate
from alcid.storage import Storage
from alcid.tables.append_report import AppendReport
from alcid.tables.build_report import BuildReport, IndexInfo
from alcid.tables.cleaning import CleanReport
from alcid.tables.engine import Engine, Threads
from alcid.tables.paimon import building
from alcid.tables.paimon.appending import append_arrow
from alcid.tables.paimon.deleting import DeleteReport, delete
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.key_indexes import key_indexes
from alcid.tables.paimon.keyed.compacting import CompactReport, compact
from alcid.tables.paimon.keyed.upsert_report import UpsertReport
from alcid.tables.paimon.keyed.upserting import UpsertPlan, upsert
from alcid.tables.paimon.levels import NotCompacted
from alcid.tables.paimon.orphans import clean
from alcid.tables.paimon.repairing import repair
from alcid.tables.paimon.statistics import compute_stats
from alcid.tables.paimon.verifying import verify
from alcid.tables.progress import Progress
from alcid.tables.repair_report import RepairReport
from alcid.tables.table import Table
from alcid.tables.verify_report import VerifyReport

__all__ = ["PaimonTable"]


class PaimonTable(Table[PaimonFiles]):
    """A Paimon table at its latest snapshot, or at one of the past; `alcid.paimon` opens one."""

    def __init__(
        self,
        storage: Storage,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        branch: str = MAIN,
        merge_on_read: bool = False,
        strict: bool = False,
        engine: Engine | None = None,
    ) -> None:
        """Read the manifests; `alcid.paimon` is the usual way to one."""
        super().__init__(storage, strict=strict, engine=engine)
        if snapshot_id is not None and tag is not None:
            raise OptionError("snapshot_id and tag: found both, expected one of them")
        if snapshot_id is not None:
            require(snapshot_id, int, "snapshot_id")
        self.folder = TableFolder(storage, branch)
        self._snapshot_id, self._tag, self._merge_on_read = snapshot_id, tag, merge_on_read
        self._last = TableState(storage, None)  # what it has read is not read again
        self.refresh()

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the table."""
        return self.snapshot.schema.options

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None before the first commit."""
        found = self.snapshot.state.snapshot
        return None if found is None else found.id

    def committer(self) -> Committer:
        """What makes snapshots of the table as it is known here.

        Raises:
            UnsupportedError: It was opened as it was in the past, or at a branch; or it has files
                outside of its folder.
        """
        if self.folder.branch != MAIN:
            raise UnsupportedError(
                f"{self.location}: opened at the branch {self.folder.branch}, which nothing is "
                "written to; write with Paimon's Java"
            )
        if self._snapshot_id is not None or self._tag is not None:
            raise UnsupportedError(
                f"{self.location}: opened at a snapshot of the past, which nothing is written to"
            )
        if self.snapshot.reaches_outside:
            raise UnsupportedError(
                f"{self.location}: has files outside of its folder (data-file.external-paths), and "
                "nothing is written to such a table; write with Paimon's Java"
            )
        return Committer(self.storage, self.snapshot.schema, self.snapshot.options)

    def build_indexes(
        self,
        options: Mapping[str, OptionValue] | None = None,
        *,
        rebuild: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build the indexes that files lack, and drop those that are not asked for, in one commit.

        Data files stay as they are: a snapshot of kind COMPACT says where their indexes are.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`; by default
                those of the table.
            rebuild: Build all anew.
            dry_run: Only say what files lack; nothing is read of their data.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            OptionError: An option that cannot be.
            ColumnError: The table does not have a column.
            UnsupportedError: An option of the table that is not followed.
        """
        if rebuild and not dry_run:
            self._distrusted.clear()
        return building.build(self, options, rebuild=rebuild, dry_run=dry_run, progress=progress)

    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and how many files have each."""
        return building.indexes(self)

    def key_indexes(self) -> list[IndexInfo]:
        """Paimon's own indexes of a table with a primary key, as `pk-btree` and `pk-bitmap`.

        Its writers make them for whole levels of buckets. Reads here do without.
        """
        return key_indexes(self.snapshot)

    def drop_indexes(
        self,
        columns: Collection[str] | None = None,
        types: Collection[str] | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """Remove indexes of these columns and types, in one commit; by default all.

        Args:
            columns: Those of these columns.
            types: Those of these types, as `bitmap`.
            dry_run: Only count.

        Returns:
            How many files had one of them.
        """
        return building.drop(self, columns, types, dry_run=dry_run)

    def append(
        self,
        rows: Any,
        options: Mapping[str, OptionValue] | None = None,
        *,
        dry_run: bool = False,
    ) -> AppendReport:
        """Append rows with statistics and indexes, in one commit.

        Args:
            rows: A DataFrame of Spark, for which the table must have been opened with a session; or
                an Arrow table or record batch, which is written by this process. Its columns go by
                name, narrower types are widened, columns that it does not have are null.
            options: The indexes to build, see `alcid.options`; by default those that the options
                of the table name. `{}` for none.
            dry_run: Write all in memory only, and say what would be done; for Arrow.

        Raises:
            ColumnError: A column that the table does not have, or that must be given.
            UnsupportedError: The table has a primary key, or an option that is not followed; or a
                type or a value does not fit.
            ConflictError: The schema of the table was changed meanwhile.
        """
        if dry_run:
            _require_arrow(rows)
            return replace(self.rehearsal().append(rows, options), dry_run=True)
        if isinstance(rows, pa.Table | pa.RecordBatch):
            return append_arrow(self, rows, options)
        if not hasattr(rows, "sparkSession"):
            raise UnsupportedError(
                f"rows: found {type(rows).__name__}, expected a Spark DataFrame or an Arrow table"
            )
        return self.engine.append(self, rows, options=options)

    def upsert(
        self,
        rows: Any,
        *,
        row_kind: str | None = None,
        write_only: bool = False,
        options: Mapping[str, OptionValue] | None = None,
        dry_run: bool = False,
    ) -> UpsertReport:
        """Put rows in place of those of their key, or delete these; for tables with a primary key.

        Of several rows of a key that with the greatest `sequence.field` counts, then the last. It
        is committed twice: the rows first, which streaming readers see; then that they replace
        older ones, which batch readers see.

        Args:
            rows: A DataFrame of Spark, for which the table must have been opened with a session; or
                an Arrow table or record batch, which is written by this process. Its columns go by
                name, narrower types are widened, columns that it does not have are null.
            row_kind: A column of the rows that says what each does: `+I` and `+U` put it, `-U` and
                `-D` delete its key. By default that of the option `rowkind.field`. The table need
                not have it.
            write_only: Stop after the first commit, for a table that a job of Java compacts.
            options: The indexes to build, see `alcid.options`; by default those that the options
                of the table name. `{}` for none.
            dry_run: As for `append`.

        Raises:
            ColumnError: A column that the table does not have, or that must be given.
            UnsupportedError: The table has no primary key, or an option that is not followed; or a
                type or a value does not fit.
            ConflictError: Others were faster again and again.
        """
        plan = UpsertPlan(row_kind=row_kind, write_only=write_only, options=options)
        if dry_run:
            _require_arrow(rows)
            return replace(upsert(self.rehearsal(), rows, plan), dry_run=True)
        report = upsert(self.apart(), rows, plan)
        self.refresh()
        return report

    def compact(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> CompactReport:
        """Merge the files of each bucket of a table with a primary key into one sorted run.

        What was not compacted is taken in, and rows that were deleted are gone from the files.

        Args:
            partition: The values of partition columns, as `{"dt": date(2025, 8, 1)}`; by default
                all partitions.
            dry_run: Only say which buckets have something to be merged.
            progress: As for `build_indexes`.

        Raises:
            UnsupportedError: The table has no primary key, or an option that is not followed.
            ConflictError: Others changed the same buckets again and again.
        """
        report = compact(self.apart(), partition, dry_run=dry_run, progress=progress)
        self.refresh()
        return report

    def delete(
        self,
        where: str | Predicate,
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> DeleteReport:
        """Delete the rows that match, by deletion vectors; with a primary key, in two snapshots.

        A table without a primary key and without `deletion-vectors.enabled` gets new files in place
        of those that have such rows, as Paimon's Java writes them.

        In a table with a primary key they are also written as rows that delete, which streaming
        readers see; this is committed as an upsert is.

        Args:
            where: SQL text, or a predicate made with `alcid.col`.
            dry_run: Only say how many rows match; what is written stays in memory.
            progress: As for `build_indexes`.

        Raises:
            UnsupportedError: The table has an option that is not followed, or a type that is not
                written.
            ConflictError: Others changed the same rows again and again.
        """
        if dry_run:
            return replace(delete(self.rehearsal(), where, progress=progress), dry_run=True)
        report = delete(self.apart(), where, progress=progress)
        self.refresh()
        return report

    def compute_stats(
        self, columns: Collection[str] | None = None, *, progress: Progress | bool | None = None
    ) -> pa.Table:
        """Count the distinct values of columns by theta sketches.

        They are kept in a Puffin file, and told in a snapshot of kind ANALYZE, which engines that
        read the table plan by.

        Args:
            columns: By default all that can be counted.
            progress: As for `build_indexes`.

        Returns:
            A row for each column, with `ndv`, how many distinct values it has: exact up to 4,096,
            and within some percent beyond.
        """
        return compute_stats(self, columns, progress=progress)

    def verify(
        self, sample: float = 1.0, *, progress: Progress | bool | None = None
    ) -> VerifyReport:
        """Read the files of the latest snapshot, and compare them with what the table says of them.

        Args:
            sample: The share of files to look at; each run takes the same ones.
            progress: As for `build_indexes`.
        """
        with self.engine.settings():
            branch = self.folder.branch
            report = verify(
                self.storage, self.engine, sample=sample, progress=progress, branch=branch
            )
        return report.shortened()

    def repair(
        self,
        older_than: timedelta = timedelta(days=1),
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> RepairReport:
        """Mend what `verify` finds wrong, as far as nothing is lost by it, in one commit.

        Deletion vectors that are there twice become one, those of files that are gone are dropped,
        wrong numbers are put right. Of rows of a key that is live twice the older ones are marked
        as deleted, hash indexes and file indexes are built anew. What cannot be mended is told, and
        not touched. All of the table is read for it, and once more to see what is left.

        Args:
            older_than: As for `clean`, which is done at the end.
            dry_run: Only say what would be done; what is written stays in memory.
            progress: As for `build_indexes`.

        Raises:
            UnsupportedError: The table has an option that is not followed.
            ConflictError: Others changed the same files again and again.
        """
        if dry_run:
            return replace(repair(self.rehearsal(), older_than, progress=progress), dry_run=True)
        self._distrusted.clear()
        report = repair(self.apart(), older_than, progress=progress)
        self.refresh()
        return report

    def clean(
        self, older_than: timedelta = timedelta(days=1), *, dry_run: bool = False
    ) -> CleanReport:
        """Remove files that no snapshot needs, as work that was killed leaves them.

        Args:
            older_than: What is younger is left alone: somebody may be about to commit it.
            dry_run: Only say what would be done.
        """
        return clean(self.storage, older_than=older_than, dry_run=dry_run)

    def apart(self) -> PaimonTable:
        """The same table, for work that reads it anew: no other thread changes what it sees."""
        return copy(self)

    def rehearsal(self) -> PaimonTable:
        """The same table, to try changes on.

        They are made in the memory of this process: the files of the table stay as they are, and
        nobody else sees anything.
        """
        return PaimonTable(
            self.storage.rehearsal(),
            snapshot_id=self._snapshot_id,
            tag=self._tag,
            branch=self.folder.branch,
            merge_on_read=self._merge_on_read,
            strict=self._strict,
            engine=Threads(like=self.engine),
        )

    def with_level_zero(self) -> PaimonTable:
        """The table with what is not compacted yet: itself, if there is no such file."""
        if self.snapshot.not_compacted == NotCompacted():
            return self
        return PaimonTable(
            self.storage,
            branch=self.folder.branch,
            merge_on_read=True,
            strict=self._strict,
            engine=self.engine,
        )

    def _open(self, before: PaimonFiles | None = None) -> PaimonFiles:
        state = self._state() if before is None else before.state
        self._last = state
        latest = self.folder.latest_schema()
        given = self.folder.options(latest)
        options = TableOptions.parse(given, has_primary_key=bool(latest.primary_keys))
        if self._merge_on_read and options.merge_engine != "deduplicate":
            raise UnsupportedError(
                f"merge_on_read: merge-engine={options.merge_engine}, expected deduplicate"
            )
        numbers = {entry.file.schema_id for entry in state.entries}
        return PaimonFiles(
            self.storage,
            state,
            self._schema(state, latest),
            {number: self.folder.schema(number) for number in numbers},
            options,
            merge_on_read=self._merge_on_read or options.merge_on_read,
            strict=self._strict,
            distrusted=self._distrusted,
        )

    def _state(self) -> TableState:
        snapshots = self.folder.snapshots
        if self._tag is not None:
            return self._last.at(snapshots.tag(self._tag))
        if self._snapshot_id is not None:
            return self._last.at(snapshots.get(self._snapshot_id))
        return self._last.at(snapshots.latest())

    def _schema(self, state: TableState, latest: TableSchema) -> TableSchema:
        """The latest schema; that of a snapshot of the past, where one is asked for."""
        if state.snapshot is not None and (self._tag is not None or self._snapshot_id is not None):
            return self.folder.schema(state.snapshot.schema_id)
        return latest


def _require_arrow(rows: Any) -> None:
    """See that rows can be written without Spark."""
    if not isinstance(rows, pa.Table | pa.RecordBatch):
        raise UnsupportedError(
            f"rows: found {type(rows).__name__}, expected an Arrow table for a dry run"
        )
