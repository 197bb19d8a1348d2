"""`t.append(df)` on a folder: rows become files, with their indexes, in one Spark job.

Tasks write into a staging folder, see `alcid.tables.staging`, and the driver moves what they told.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from alcid.bundle import Kind
from alcid.errors import (
    ColumnError,
    OptionError,
    StorageError,
    UnsupportedError,
    require,
)
from alcid.options import (
    IndexSpec,
    OptionValue,
    default_options,
    find_column,
    fold_name,
    match_column,
    parse_options,
)
from alcid.spark.append_schema import arrow_schema, footer_metadata, spark_fields
from alcid.spark.append_tasks import column_at, run_tasks, together
from alcid.tables import ParquetTable
from alcid.tables.append_report import AppendReport
from alcid.tables.build_report import SkippedCounter
from alcid.tables.engine import Engine
from alcid.tables.publishing import check_paths, move_files, publish_bundle
from alcid.tables.staging import StagedBundle, StagingJob, new_job
from alcid.tables.target_columns import TargetColumns, fit_columns
from alcid.types import INDEX_TYPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["append_to_folder"]


def append_to_folder(
    engine: Engine,
    table: ParquetTable,
    df: DataFrame,
    options: Mapping[str, OptionValue] | None = None,
    *,
    partition_by: Sequence[str] | None = None,
    target_file_bytes: int = 128 << 20,
    dry_run: bool = False,
) -> AppendReport:
    """Write the rows of a DataFrame as files of a table, and their indexes with them.

    Args:
        engine: That of the table.
        table: The table; it is listed anew before and after.
        df: Columns go by name. Narrower types are widened, missing columns are null.
        options: The indexes to build, see `alcid.options`; by default those that the table has,
            with default options. `{}` for none.
        partition_by: The columns to stand in the paths, of a table without files.
        target_file_bytes: A file is closed when it is about so long.
        dry_run: Only see whether the columns fit, and count the rows.

    Raises:
        ColumnError: A column that the table does not have, or no column for the files.
        UnsupportedError: A type that could lose values in the table, or that files do not hold.
        OptionError: An option that cannot be.
        StorageError: Files could not be moved; then none was appended.
    """
    begin = time.monotonic()
    if require(target_file_bytes, int, "target_file_bytes") < 1:
        raise OptionError(f"target_file_bytes: found {target_file_bytes}, expected 1 or more")
    with engine.settings():
        table.refresh()
        storage = table.storage
        fields = spark_fields(df.schema)
        given = arrow_schema(fields)
        columns = _fit(table, given, partition_by)
        specs = _specs(table, columns, options)
        if dry_run:
            count = df.count()
            return AppendReport(None, count, None, None, 0, time.monotonic() - begin, dry_run=True)
        job = StagingJob(
            storage,
            new_job(),
            columns,
            _above(table),
            specs,
            footer_metadata(columns, fields, df.sparkSession.version),
            target_file_bytes,
        )
        try:
            staged = list(run_tasks(_arranged(df, columns), _Stage(job)))
            _check(table, given, job, staged)
            report = _publish(table, job, staged, begin)
        finally:
            with suppress(StorageError):  # `clean` removes it later
                storage.remove_folder(job.folder)
        table.refresh()
        return report


def _check(
    table: ParquetTable, given: pa.Schema, job: StagingJob, staged: Sequence[StagedBundle]
) -> None:
    """See that the files still go with those of the table, to which others append too."""
    was_empty = not table.files
    table.refresh()
    if was_empty and table.files and _fit(table, given, job.columns.partitions) != job.columns:
        raise UnsupportedError(f"{table.location}: others have appended other columns meanwhile")
    added = [file.path for bundle in staged for file in bundle.files]
    check_paths(table.snapshot.paths, added, table.partition_types)


def _publish(
    table: ParquetTable, job: StagingJob, staged: Sequence[StagedBundle], begin: float
) -> AppendReport:
    """Move what was staged into the table."""
    files = [file for bundle in staged for file in bundle.files]
    known = iter(move_files(job.storage, files))
    skipped = SkippedCounter()
    sizes = []
    for bundle in staged:
        for column, index_type, reason, path in bundle.skipped:
            skipped.add(Kind.index(column, index_type), reason, path)
        found = list(islice(known, len(bundle.files)))
        if bundle.bundle:
            sizes.append(publish_bundle(job.storage, table.bundle_folder, bundle, found))
    if sizes:
        with suppress(StorageError):  # the rows are there: a later append or build does it
            table.tidy()
    return AppendReport(
        len(files),
        sum(file.rows for file in files),
        sum(file.size for file in files),
        sum(sizes),
        sum(size > 0 for size in sizes),
        time.monotonic() - begin,
        skipped.found,
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    """What a task does with its rows."""

    job: StagingJob

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[StagedBundle]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return self.job.write(batches, 0 if context is None else context.partitionId())


def _arranged(df: DataFrame, columns: TargetColumns) -> DataFrame:
    """The columns for the files, then the partition columns as text; rows of a partition together.

    Without partitions rows stay where they are. With them, each goes to few tasks, but a large one
    to several.
    """
    from pyspark.sql import functions as f

    inside = [
        column_at(df, place).alias(f"c{number}")
        for number, place in enumerate(one for one in columns.sources if one is not None)
    ]
    # As Spark writes them into paths.
    keys = [
        (f.lit(None) if place is None else column_at(df, place)).cast("string").alias(f"p{number}")
        for number, place in enumerate(columns.partition_sources)
    ]
    return together(df.select(*inside, *keys), [f"p{number}" for number in range(len(keys))])


def _fit(
    table: ParquetTable, given: pa.Schema, partition_by: Sequence[str] | None
) -> TargetColumns:
    if isinstance(partition_by, str):
        raise OptionError("partition_by: found text, expected a list of names")
    files, columns = table.snapshot, table.snapshot.columns
    partitions = list(columns.partitions)
    known = None
    if len(files.sizes):
        known = {
            name: column.arrow_type
            for name, column in columns.columns.items()
            if name not in columns.partitions
        }
        if partition_by is not None and list(map(fold_name, partition_by)) != list(
            map(fold_name, partitions)
        ):
            raise OptionError(
                f"partition_by: found {list(partition_by)}, expected {partitions} as in the table"
            )
    elif partition_by is not None:
        partitions = [find_column(name, given.names) for name in partition_by]
    fitted = fit_columns(given, known, partitions)
    for name, place in zip(fitted.partitions, fitted.partition_sources, strict=True):
        if place is not None and types.is_nested(given.field(place).type):
            raise UnsupportedError(f"column {name}: {given.field(place).type} is not for paths")
    return fitted


def _specs(
    table: ParquetTable, columns: TargetColumns, options: Mapping[str, OptionValue] | None
) -> tuple[IndexSpec, ...]:
    """The indexes to build."""
    if options is None:
        return tuple(
            spec
            for info in table.indexes()
            if info.fresh and info.index_type in INDEX_TYPES
            for spec in [IndexSpec(info.column, info.index_type, default_options(info.index_type))]
            if match_column(spec.top_level, columns.schema.names) is not None
        )
    specs = tuple(parse_options(options)) if options else ()
    for spec in specs:
        if match_column(spec.top_level, columns.partitions) is not None:
            raise ColumnError(f"column {spec.column}: stands in the paths, and needs no index")
        find_column(spec.top_level, columns.schema.names)
    return specs


def _above(table: ParquetTable) -> str:
    """The folders before those of partitions, which all files of the table are in."""
    if not len(table.snapshot.sizes) or not table.snapshot.columns.partitions:
        return ""
    folders = table.snapshot.paths[0].as_py().split("/")[:-1]
    first = next(place for place, folder in enumerate(folders) if "=" in folder)
    return "/".join(folders[:first])
