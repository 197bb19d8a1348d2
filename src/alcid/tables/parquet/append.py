"""`t.append(rows)` on a folder: rows become files, with their indexes.

Tasks write into a staging folder, see `staging`; then what they report is moved into the table, see
`publishing`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from pyarrow import types

from alcid.errors import ColumnError, OptionError, StorageError, UnsupportedError, require
from alcid.index.bundle import PayloadKind
from alcid.options import (
    IndexSpec,
    OptionValue,
    default_options,
    find_column,
    fold_name,
    match_column,
    parse_options,
)
from alcid.tables.parquet.open_table import OpenParquetTable
from alcid.tables.parquet.publishing import publish
from alcid.tables.parquet.staging import StagedBundle, StagingJob, check_paths, new_job
from alcid.tables.reports import AppendReport, SkippedCounter
from alcid.tables.rows import RowSource
from alcid.tables.schema import TargetColumns, fit_columns
from alcid.types import INDEX_TYPES


def append(
    table: OpenParquetTable,
    rows: RowSource,
    options: Mapping[str, OptionValue] | None = None,
    *,
    partition_by: Sequence[str] | None = None,
    target_file_bytes: int = 128 << 20,
    dry_run: bool = False,
) -> AppendReport:
    """Write rows as files of a table, and their indexes with them.

    Args:
        table: The table; it is listed anew before and after.
        rows: Columns go by name. Narrower types are widened, missing columns are null.
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
    with table.engine.settings():
        table.refresh()
        columns = _fit(table, rows.schema, partition_by)
        specs = _specs(table, columns, options)
        if dry_run:
            count = rows.count()
            return AppendReport(None, count, None, None, 0, time.monotonic() - begin, dry_run=True)
        job = StagingJob(
            table.storage,
            new_job(),
            columns,
            _above(table),
            specs,
            rows.footer_metadata(columns),
            target_file_bytes,
        )
        try:
            staged = list(rows.write(job))
            _check(table, rows.schema, job, staged)
            report = _publish(table, job, staged, begin)
        finally:
            with suppress(StorageError):  # `clean` removes it later
                table.storage.remove_folder(job.folder)
        table.refresh()
        return report


def _check(
    table: OpenParquetTable, schema: pa.Schema, job: StagingJob, staged: Sequence[StagedBundle]
) -> None:
    """See that the files still go with those of the table, to which others append too."""
    was_empty = not table.files
    table.refresh()
    if was_empty and table.files and _fit(table, schema, job.columns.partitions) != job.columns:
        raise UnsupportedError(f"{table.location}: others have appended other columns meanwhile")
    added = [file.path for bundle in staged for file in bundle.files]
    check_paths(table.snapshot.paths, added, table.partition_types)


def _publish(
    table: OpenParquetTable, job: StagingJob, staged: Sequence[StagedBundle], begin: float
) -> AppendReport:
    """Move what was staged into the table."""
    files = [file for bundle in staged for file in bundle.files]
    sizes = publish(table.engine, job, table.bundle_folder, staged)
    skipped = SkippedCounter()
    for bundle in staged:
        for column, index_type, reason, path in bundle.skipped:
            skipped.add(PayloadKind.index(column, index_type), reason, path)
    if sizes:
        with suppress(StorageError):  # the rows are there: a later append or build does it
            table.tidy()
    return AppendReport(
        len(files),
        sum(file.rows for file in files),
        sum(file.size for file in files),
        sum(sizes),
        len(sizes),
        time.monotonic() - begin,
        skipped.reasons,
    )


def _fit(
    table: OpenParquetTable, schema: pa.Schema, partition_by: Sequence[str] | None
) -> TargetColumns:
    if isinstance(partition_by, str):
        raise OptionError("partition_by: found text, expected a list of names")
    files, columns = table.snapshot, table.snapshot.columns
    partitions = list(columns.partitions)
    table_types = None
    if len(files.sizes):
        table_types = {
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
        partitions = [find_column(name, schema.names) for name in partition_by]
    fitted = fit_columns(schema, table_types, partitions)
    for name, source in zip(fitted.partitions, fitted.partition_sources, strict=True):
        if source is not None and types.is_nested(schema.field(source).type):
            raise UnsupportedError(f"column {name}: {schema.field(source).type} is not for paths")
    return fitted


def _specs(
    table: OpenParquetTable, columns: TargetColumns, options: Mapping[str, OptionValue] | None
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


def _above(table: OpenParquetTable) -> str:
    """The folders before those of partitions, which all files of the table are in."""
    if not len(table.snapshot.sizes) or not table.snapshot.columns.partitions:
        return ""
    folders = table.snapshot.paths[0].as_py().split("/")[:-1]
    first = next(level for level, folder in enumerate(folders) if "=" in folder)
    return "/".join(folders[:first])
