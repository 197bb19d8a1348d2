"""`PaimonTable`, the public API of a Paimon table.

It stands above `maintenance`, which its methods call, so it is no part of `paimon/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.expressions import Predicate
from alcid.options import OptionValue
from alcid.tables.engine import row_source
from alcid.tables.maintenance.clean import CleanReport
from alcid.tables.maintenance.paimon_clean import clean
from alcid.tables.maintenance.paimon_repair import repair
from alcid.tables.maintenance.paimon_verify import verify
from alcid.tables.maintenance.repair import RepairReport
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.paimon.delete import delete
from alcid.tables.paimon.expire import expire_snapshots
from alcid.tables.paimon.keyed.compact import compact
from alcid.tables.paimon.keyed.upsert import UpsertPlan, upsert
from alcid.tables.paimon.open_table import OpenPaimonTable
from alcid.tables.paimon.write import build
from alcid.tables.paimon.write.append import append_rows
from alcid.tables.paimon.write.build import key_indexes
from alcid.tables.paimon.write.distinct_values import compute_stats
from alcid.tables.progress import Progress
from alcid.tables.reports import (
    AppendReport,
    BuildReport,
    CompactReport,
    DeleteReport,
    ExpireReport,
    IndexInfo,
    UpsertReport,
)


class PaimonTable(OpenPaimonTable):
    """A Paimon table at its latest snapshot, or at one of the past; `alcid.paimon` opens one."""

    def build_indexes(
        self,
        options: Mapping[str, OptionValue] | None = None,
        *,
        rebuild: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build missing indexes, and drop those that are not asked for, in one commit.

        Data files stay as they are: a snapshot of kind COMPACT says where their indexes are.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`; by default
                those of the table.
            rebuild: Build all anew.
            dry_run: Only say what is missing; nothing is read of their data.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            OptionError: An option that cannot be.
            ColumnError: The table does not have a column.
            UnsupportedError: An option of the table that is not followed.
        """
        if rebuild and not dry_run:
            self._distrusted.clear()
        return build.build(self, options, rebuild=rebuild, dry_run=dry_run, progress=progress)

    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and how many files have each."""
        return build.indexes(self)

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
        return build.drop(self, columns, types, dry_run=dry_run)

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
            return replace(self.dry_run().append(rows, options), dry_run=True)
        return append_rows(self, row_source(self.engine, rows, self), options)

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
            return replace(upsert(self.dry_run(), rows, plan), dry_run=True)
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
            return replace(delete(self.dry_run(), where, progress=progress), dry_run=True)
        report = delete(self.apart(), where, progress=progress)
        self.refresh()
        return report

    def compute_stats(
        self, columns: Collection[str] | None = None, *, progress: Progress | bool | None = None
    ) -> pa.Table:
        """Count the distinct values of columns by theta sketches.

        They are kept in a Puffin file, and named by a snapshot of kind ANALYZE, which engines that
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
            sample: The fraction of files to look at; each run takes the same ones.
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
        """Repair what `verify` finds wrong, as far as nothing is lost by it, in one commit.

        Deletion vectors that are there twice become one, those of files that are gone are dropped,
        wrong numbers are put right. Of rows of a key that is live twice the older ones are marked
        as deleted, hash indexes and file indexes are built anew. What cannot be repaired is
        reported, and not touched. All of the table is read for it, and once more to see what is
        left.

        Args:
            older_than: As for `clean`, which is done at the end.
            dry_run: Only say what would be done; what is written stays in memory.
            progress: As for `build_indexes`.

        Raises:
            UnsupportedError: The table has an option that is not followed.
            ConflictError: Others changed the same files again and again.
        """
        if dry_run:
            return replace(repair(self.dry_run(), older_than, progress=progress), dry_run=True)
        self._distrusted.clear()
        report = repair(self.apart(), older_than, progress=progress)
        self.refresh()
        return report

    def expire_snapshots(
        self,
        older_than: timedelta | None = None,
        retain_last: int | None = None,
        *,
        dry_run: bool = False,
    ) -> ExpireReport:
        """Let old snapshots expire, and remove the files that only they named.

        What tags and branches name is kept, and a consumer keeps the snapshots that it has not
        read. Without arguments this does what Paimon's jobs do after each commit, by the options
        `snapshot.time-retained` (1 hour), `snapshot.num-retained.min` (10) and `.max`, and
        `snapshot.expire.limit` (50 at once). With an argument there is no such limit.

        Args:
            older_than: A snapshot expires if it has not been the latest for so long; in place of
                `snapshot.time-retained`. Queries of older snapshots must have ended by then.
            retain_last: So many of the latest stay, however old; in place of
                `snapshot.num-retained.min`.
            dry_run: Only say what would be done.

        Raises:
            OptionError: An age below 0, a number below 1, or an invalid option.
            UnsupportedError: The table was opened at a branch or a past snapshot, has files outside
                of its folder, or keeps changelogs longer than snapshots.
            FormatError: Metadata that name files are damaged: nothing was removed.
        """
        report = expire_snapshots(self, older_than, retain_last, dry_run=dry_run)
        if not dry_run:
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
        return clean(self.storage, older_than=older_than, dry_run=dry_run, engine=self.engine)


def _require_arrow(rows: Any) -> None:
    """See that rows can be written without Spark."""
    if not isinstance(rows, pa.Table | pa.RecordBatch):
        raise UnsupportedError(
            f"rows: found {type(rows).__name__}, expected an Arrow table for a dry run"
        )
