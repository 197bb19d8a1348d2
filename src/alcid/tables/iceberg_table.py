"""`IcebergTable`, the public API of an Iceberg table.

It stands above `maintenance`, which its methods call, so it is no part of `iceberg/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from alcid.expressions import Predicate
from alcid.options import OptionValue
from alcid.scan import Scan
from alcid.tables.iceberg.delegated import delegate_if_needed
from alcid.tables.iceberg.delete import delete
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.iceberg.write import build
from alcid.tables.iceberg.write.build import append
from alcid.tables.iceberg.write.distinct_values import compute_stats
from alcid.tables.maintenance.clean import CleanReport
from alcid.tables.maintenance.iceberg_clean import clean
from alcid.tables.maintenance.iceberg_repair import repair
from alcid.tables.maintenance.iceberg_verify import verify
from alcid.tables.maintenance.repair import RepairReport
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.progress import Progress
from alcid.tables.reports import AppendReport, BuildReport, DeleteReport, IndexInfo


class IcebergTable(OpenIcebergTable):
    """An Iceberg table at its current snapshot, or at one of the past; `alcid.iceberg` opens one.

    Rows, indexes and statistics are read here; every change goes through the catalog of the
    session, as one of Iceberg's own.
    """

    def _chosen(self, scan: Scan) -> Scan:
        """The scan; by Iceberg's own, if something of it cannot be read here."""
        return delegate_if_needed(self, scan)

    def build_indexes(
        self,
        options: Mapping[str, OptionValue] | None = None,
        *,
        rebuild: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build missing indexes, and keep them in a statistics file of the snapshot.

        Data files stay as they are, and there is no new snapshot. What a killed build has done is
        used by the next one.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`; by default
                those of the indexes that some files have.
            rebuild: Build all anew.
            dry_run: Only say what is missing; nothing is read of them.
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
            sample: The fraction of files to look at; each run takes the same ones.
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
        """Repair what `verify` finds wrong, as far as nothing is lost by it.

        Deletion vectors that are there twice become one, those of files that are gone are dropped,
        wrong numbers are put right: one commit. Statistics files, and the indexes in them, are made
        again in commits of their own. What cannot be repaired is reported, and not touched. All
        of the table is read for it, and once more to see what is left.

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
