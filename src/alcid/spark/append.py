"""`t.append(df)` on a folder: rows become files, with their indexes, in one Spark job.

Tasks write into a staging folder, see `tables.parquet.append`; the driver moves what they report.

The columns of a DataFrame, and what Spark's own footers say of those of a file.

Both go by the JSON that Spark writes of a schema: in it collated text is text, and the collation
stands in the metadata of the column, as CHAR(n) does.

What appends to all kinds of tables share: rows go to tasks, which write, and tell what.

Spark gives back what each task told that counts, whatever was tried twice.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa
from pyarrow import types

from alcid.config import Settings, current_settings, using
from alcid.errors import (
    AlcidError,
    ColumnError,
    FileGoneError,
    OptionError,
    StorageError,
    UnsupportedError,
    require,
)
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
from alcid.spark import jvm
from alcid.spark.errors import naming_missing_package
from alcid.spark.schema import spark_schema
from alcid.tables.engine import Engine
from alcid.tables.parquet.append import (
    StagedBundle,
    StagingJob,
    check_paths,
    move_files,
    new_job,
    publish_bundle,
)
from alcid.tables.parquet_table import ParquetTable
from alcid.tables.parquet_writer import written_type
from alcid.tables.reports import AppendReport, SkippedCounter
from alcid.tables.schema import TargetColumns, fit_columns
from alcid.types import INDEX_TYPES, DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = [
    "append_to_folder",
    "arrow_schema",
    "column_at",
    "columns_at",
    "footer_metadata",
    "run_tasks",
    "spark_fields",
    "together",
    "told_error",
]

Fields = Sequence[Mapping[str, Any]]

_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
_VERSION = "org.apache.spark.version"
_NOT_WRITTEN = ("TIME", "VARIANT")  # Spark does not read TIME from Parquet either
_NULLABLE = ("nullable", "containsNull", "valueContainsNull")


def spark_fields(schema: StructType) -> Fields:
    """The columns as Spark's JSON has them; all may be null, as in the files that it writes."""
    fields: Fields = _loosened(json.loads(schema.json()))["fields"]
    return fields


def arrow_schema(fields: Fields) -> pa.Schema:
    """The columns in the Arrow types in which they are written.

    Raises:
        UnsupportedError: A type that is not written.

    >>> arrow_schema([{"name": "a", "type": {"type": "array", "elementType": "long"}}])
    a: list<element: int64>
      child 0, element: int64
    """
    return pa.schema(
        [
            (field["name"], written_type(_arrow_type(field["type"], field["name"])))
            for field in fields
        ]
    )


def footer_metadata(columns: TargetColumns, fields: Fields, version: str) -> dict[str, str]:
    """What the footers of files are to say, so that Spark reads what was given.

    With its version, dates before 1582 are taken for what they are. With its schema, collations and
    CHAR(n) are known.

    Args:
        columns: Those of the files.
        fields: Those that were given.
        version: That of Spark.
    """
    told = {_VERSION: version}
    try:
        described = [
            _described(own, None if source is None else fields[source])
            for own, source in zip(columns.schema, columns.sources, strict=True)
        ]
    except UnsupportedError:  # a column of the table that Spark has no type for
        return told
    return told | {_SCHEMA: json.dumps({"type": "struct", "fields": described})}


def _described(own: pa.Field, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A column of a file in Spark's JSON."""
    if given is not None and arrow_schema([given]).field(0).type == own.type:
        return {**given, "name": own.name}
    field: Mapping[str, Any] = json.loads(spark_schema(pa.schema([own])).json())["fields"][0]
    return field


def _arrow_type(told: Any, name: str) -> Any:
    if not isinstance(told, str):
        match told["type"]:
            case "array":
                return pa.list_(_arrow_type(told["elementType"], name))
            case "map":
                key, value = told["keyType"], told["valueType"]
                return pa.map_(_arrow_type(key, name), _arrow_type(value, name))
            case "struct":
                inner = ((one["name"], _arrow_type(one["type"], name)) for one in told["fields"])
                return pa.struct(list(inner))
        raise UnsupportedError(f"column {name}: {told['type']} is not written")
    if told == "void":
        return pa.null()
    try:
        data_type = DataType.from_spark(told)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {name}: {error}") from None
    if data_type.root in _NOT_WRITTEN:
        raise UnsupportedError(f"column {name}: {data_type.root} is not written")
    return data_type.to_arrow()


def _loosened(told: Any) -> Any:
    """Spark's JSON with all that may be null."""
    if isinstance(told, list):
        return [_loosened(one) for one in told]
    if not isinstance(told, dict):
        return told
    return {
        key: True if key in _NULLABLE else one if key == "metadata" else _loosened(one)
        for key, one in told.items()
    }


T = TypeVar("T")

_ANSWER = "answer binary, problem binary"


def run_tasks(
    rows: DataFrame, write: Callable[[Iterable[pa.RecordBatch]], Iterable[T]]
) -> Iterator[T]:
    """Let tasks write rows; what they tell, also if some of them fail, before that is raised.

    Args:
        rows: Those of each partition go to one task.
        write: Takes the rows of a task, and tells what it wrote; it is pickled, and what it tells.

    Raises:
        AlcidError: What a task raised, if it would raise it again.
    """
    task = _Task(write, current_settings())
    with naming_missing_package():
        answers = jvm.map_in_arrow(rows, task, _ANSWER).collect()
    for answer, _ in answers:
        if answer is not None:
            yield pickle.loads(answer)
    for _, problem in answers:
        if problem is not None:
            raise pickle.loads(problem)


@dataclass(frozen=True, slots=True)
class _Task(Generic[T]):
    """What runs on the executors."""

    write: Callable[[Iterable[pa.RecordBatch]], Iterable[T]]
    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with using(self.settings):
            try:
                for told in self.write(batches):
                    yield _row(pickle.dumps(told), None)
            except AlcidError as error:
                yield _row(None, told_error(error))


def told_error(error: AlcidError) -> bytes:
    """An error as the driver is told of it; one that may not come again is raised.

    Spark tries the task again then. Of a value that does not fit, it would only hide the cause.
    """
    if isinstance(error, StorageError) and not isinstance(error, FileGoneError):
        raise error
    return pickle.dumps(error)


def _row(answer: bytes | None, problem: bytes | None) -> pa.RecordBatch:
    arrays = [pa.array([answer], pa.binary()), pa.array([problem], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["answer", "problem"])


def column_at(df: DataFrame, place: int) -> Any:
    """A column by its place, whatever its name."""
    from pyspark.sql import functions as f

    name = df.columns[place].replace("`", "``")
    return f.col(f"`{name}`")


def columns_at(df: DataFrame, places: Iterable[int]) -> DataFrame:
    """Columns by their places, named c0, c1 and so on."""
    return df.select(
        *(column_at(df, place).alias(f"c{number}") for number, place in enumerate(places))
    )


def together(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows with those of the same values one after the other, in few tasks; many in several.

    Without names rows stay where they are.
    """
    if not names:
        return rows
    return rows.hint("rebalance", *names).sortWithinPartitions(*names)


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
            skipped.add(PayloadKind.index(column, index_type), reason, path)
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
