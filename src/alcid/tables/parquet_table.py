"""`ParquetTable`, the public API of a folder of Parquet files.

It stands above `maintenance`, which its methods call, so it is no part of `parquet/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from alcid.errors import ColumnError, FileGoneError, OptionError
from alcid.options import OptionValue, parse_options
from alcid.storage import retry
from alcid.tables.distinct_values import compute_stats
from alcid.tables.engine import no_spark, row_source
from alcid.tables.maintenance.clean import CleanReport, clean
from alcid.tables.maintenance.parquet import repair, verify
from alcid.tables.maintenance.repair import RepairReport
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.parquet.append import append
from alcid.tables.parquet.open_table import OpenParquetTable
from alcid.tables.progress import Progress
from alcid.tables.reports import AppendReport, BuildReport


class ParquetTable(OpenParquetTable):
    """A folder of Parquet files; `alcid.parquet` opens one.

    It sees the files that there were when it was opened, or at the last `refresh`.
    """

    def build_indexes(
        self,
        options: Mapping[str, OptionValue],
        *,
        rebuild: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> BuildReport:
        """Build missing indexes; see `alcid.options` for what can be asked for.

        What a killed build has published is used, and the next build goes on from there.

        Args:
            options: Paimon's options, as `{"file-index.bloom-filter.columns": "id"}`.
            rebuild: Build all anew, fresh or not.
            dry_run: Only say what is missing; nothing is read of their data.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            OptionError: An option that cannot be.
            ColumnError: No file has a column, or it stands in the paths.
        """
        self.refresh()
        columns = self.snapshot.columns
        with self.engine.settings():
            for spec in parse_options(options):
                if not columns.columns:
                    break
                if columns.find(spec.top_level) in columns.partitions:
                    raise ColumnError(
                        f"column {spec.column}: stands in the paths, and needs no index"
                    )
            if dry_run:
                return self._indexes.preview(options, self.snapshot, rebuild=rebuild)
            report = self._indexes.build(options, rebuild=rebuild, progress=progress)
        if rebuild:
            self._distrusted.clear()
        self.refresh()
        return report

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
        for what, given in (("columns", columns), ("types", types)):
            if isinstance(given, str):
                raise OptionError(f"{what}: found text, expected a list of names")
        with self.engine.settings():
            dropped = self._indexes.drop(columns, types, dry_run=dry_run)
        self.refresh()
        return dropped

    def append(
        self,
        rows: Any,
        options: Mapping[str, OptionValue] | None = None,
        *,
        partition_by: Sequence[str] | None = None,
        target_file_bytes: int = 128 << 20,
        dry_run: bool = False,
    ) -> AppendReport:
        """Write the rows of a DataFrame as new files, with pages of 2,000 rows and their indexes.

        A task that is tried twice doubles nothing. The files appear one after the other when all
        are written: a folder has no commit.

        Args:
            rows: A DataFrame of Spark. Its columns go by name, narrower types are widened, columns
                that it does not have are null.
            options: The indexes to build, see `alcid.options`; by default those that the table has.
                `{}` for none.
            partition_by: The columns to stand in the paths, for the first rows of a table.
            target_file_bytes: A file is closed when it is about so long.
            dry_run: Only see whether the columns fit, and count the rows.

        Raises:
            ColumnError: A column that the table does not have.
            UnsupportedError: The table was not opened with a session, or a type does not fit.
        """
        if not self.engine.has_spark:
            raise no_spark(self)
        return append(
            self,
            row_source(self.engine, rows, self),
            options,
            partition_by=partition_by,
            target_file_bytes=target_file_bytes,
            dry_run=dry_run,
        )

    def compute_stats(
        self, columns: Collection[str] | None = None, *, progress: Progress | bool | None = None
    ) -> pa.Table:
        """Count the distinct values of columns by theta sketches, and keep these in a Puffin file.

        Args:
            columns: By default all that can be counted.
            progress: As for `build_indexes`.

        Returns:
            A row for each column, with `ndv`, how many distinct values it has: exact up to 4,096,
            and within some percent beyond.

        Raises:
            ColumnError: There is no such column.
            UnsupportedError: Values of a column cannot be counted, or rows are deleted.
        """

        def attempt() -> pa.Table:
            self.refresh()
            return compute_stats(
                self.snapshot, self.bundle_folder, self.engine, columns, progress=progress
            )

        with self.engine.settings():  # a file may be gone or replaced since it was listed
            return retry(attempt, on=FileGoneError, attempts=2)

    def verify(
        self, sample: float = 1.0, *, progress: Progress | bool | None = None
    ) -> VerifyReport:
        """Build every index again from its data, and compare.

        Args:
            sample: The fraction of files to look at; each run takes the same ones.
            progress: As for `build_indexes`.
        """
        with self.engine.settings():
            report = verify(
                self.storage, self.bundle_folder, self.engine, sample=sample, progress=progress
            )
        return report.shortened()

    def repair(
        self,
        older_than: timedelta = timedelta(days=1),
        *,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
    ) -> RepairReport:
        """Repair what `verify` finds wrong, as far as nothing is lost by it.

        Indexes are built again of the files in which they are wrong. Bundles that are damaged are
        dropped, with what else `clean` removes. All of the table is read for it, and once more to
        see what is left.

        Args:
            older_than: As for `clean`, which is done at the end.
            dry_run: Only say what would be done.
            progress: As for `build_indexes`.
        """
        report = repair(self, self._indexes, older_than, dry_run=dry_run, progress=progress)
        if not dry_run:
            self._distrusted.clear()
            self.refresh()
        return report

    def clean(
        self, older_than: timedelta = timedelta(days=1), *, dry_run: bool = False
    ) -> CleanReport:
        """Merge bundles, and remove what is left of work that was killed.

        Args:
            older_than: What is younger is left alone: somebody may be writing or reading it.
            dry_run: Only say what would be done.
        """
        report = clean(
            self.storage,
            self.bundle_folder,
            engine=self.engine,
            older_than=older_than,
            dry_run=dry_run,
        )
        if not dry_run:
            self.refresh()
        return report
