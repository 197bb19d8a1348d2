"""`Scan.to_spark`: the rows of a scan as a DataFrame, by one of four read strategies.

| strategy | who reads                            | for                                           |
|----------|--------------------------------------|-----------------------------------------------|
| driver   | this process, then `createDataFrame` | few bytes: a job costs more than reading them |
| tasks    | Arrow in Spark's Python workers      | rows of some pages, in many files             |
| Spark    | Spark's own Parquet reader           | most pages of the files that are left         |
| Iceberg  | Iceberg's own scan, of its tables    | most of the table: it has no filter           |

All of them give the same columns, types and rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pyarrow import types

from alcid.config import Settings, current_settings, using
from alcid.datafiles.parquet.columns import COLLATED, OLD_CALENDAR
from alcid.errors import UnsupportedError, require
from alcid.expressions import Constant
from alcid.options import match_column
from alcid.scan import ReadPlan, Scan, ScanPlan, TableFiles, table_schema
from alcid.scan.execution import small_bytes
from alcid.scan.sorting import SortKey
from alcid.spark import jvm
from alcid.spark.jobs import over_tasks, split_by_bytes, tasks_of
from alcid.spark.jvm.files import read_parquet
from alcid.spark.schema import arrow_for_spark, conform_batches, quoted, spark_schema
from alcid.tables.iceberg.delegated import DelegatedScan
from alcid.tables.iceberg.files import IcebergFiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

MAX_TOP_ROWS = 100_000
"""Rows of an answer with a limit, up to which the driver looks for them before tasks do."""
_DRIVER_ROWS = 1 << 16  # each takes Spark some microseconds to take over from the driver
_DENSE_FRACTION = 0.5
"""From this fraction of the bytes on, Spark's own reader is faster."""
# All else has a meaning in a pattern of Hadoop's, or in its URIs.
_PLAIN_PATH = re.compile(r"[\w/.=+@,%~ -]*")


@dataclass(frozen=True, slots=True)
class ReadStrategy:
    """How rows are read, and why."""

    name: Literal["driver", "tasks", "Spark", "Iceberg"]
    why: str

    def __str__(self) -> str:
        by = {
            "driver": "in the driver",
            "tasks": "by Arrow in tasks of Spark",
            "Spark": "by Spark's own Parquet reader",
            "Iceberg": "by Iceberg's own scan",
        }
        return f"rows are read {by[self.name]}: {self.why}"


def choose_strategy(plan: ScanPlan, *, has_s3a: bool, in_driver: bool = True) -> ReadStrategy:
    """Choose by what is left to be read.

    Args:
        plan: The rows.
        has_s3a: Whether Spark's own reader can read from S3.
        in_driver: Whether this process may read them.

    Raises:
        UnsupportedError: There is a column that only Spark's own reader reads as Spark does, and it
            cannot be taken; or one that is collated.
    """
    special = only_for_spark(plan)
    if special:
        obstacle = _obstacle(plan, has_s3a)
        if obstacle:
            raise UnsupportedError(
                f"{special}, for which Spark's own Parquet reader is needed, but {obstacle}"
            )
        return ReadStrategy("Spark", special)
    read = int(plan.sizes.sum())
    if in_driver and plan.is_small and plan.expected_rows <= _DRIVER_ROWS:
        return ReadStrategy("driver", f"about {_megabytes(read)} at most to read")
    whole = int(plan.whole_sizes.sum())
    if read < _DENSE_FRACTION * whole:
        return ReadStrategy(
            "tasks", f"about {_megabytes(read)} of {_megabytes(whole)} at most to read"
        )
    of_iceberg = isinstance(plan.table, IcebergFiles)
    obstacle = _iceberg_obstacle(plan) if of_iceberg else _obstacle(plan, has_s3a)
    if obstacle:
        return ReadStrategy("tasks", obstacle)
    return ReadStrategy(
        "Iceberg" if of_iceberg else "Spark", f"most of {_megabytes(whole)} is read"
    )


def only_for_spark(plan: ScanPlan) -> str:
    """Why Arrow would give other values than Spark; empty if it gives the same.

    Raises:
        UnsupportedError: A collated column: as plain text it would be compared otherwise.
    """
    files = plan.candidates.files
    for name in dict.fromkeys([*plan.columns, *plan.where_columns]):
        if name in plan.table.columns.partitions:
            continue
        for group in plan.table.columns.groups(name):
            if not group.files[files].any():
                continue
            if group.problem.startswith(COLLATED):
                raise UnsupportedError(
                    f"column {name}: {group.problem}, which is not supported: leave it out, or "
                    "read the files with spark.read.parquet"
                )
            if group.problem.startswith(OLD_CALENDAR):
                return f"column {name}: {group.problem}"
    return ""


def _obstacle(plan: ScanPlan, has_s3a: bool) -> str:
    """Why Spark's own reader cannot be taken; empty if it can."""
    table, files = plan.table, plan.candidates.files
    scheme, _, path = table.location.rpartition("://")
    if not all(map(table.has_pages, files.tolist())):
        return "some files are not Parquet"
    if plan.pending is not None or any(table.deletions.get(file) for file in files.tolist()):
        return "some rows are deleted"
    if scheme == "s3" and not has_s3a:
        return "Spark cannot read s3a:// (the jar hadoop-aws is not there)"
    if scheme not in ("", "s3") or (scheme and table.has_options):
        return "Spark may not know the file system, or its keys"
    columns = list(dict.fromkeys([*plan.columns, *plan.where_columns]))
    for name in columns:
        problem = _column_problem(table, files, name)
        if problem:
            return f"column {name}: {problem}"
    if not all(map(_PLAIN_PATH.fullmatch, [path, *table.paths.take(pa.array(files)).to_pylist()])):
        return "a path has characters that Spark takes for a pattern"
    return ""


def _iceberg_obstacle(plan: ScanPlan) -> str:
    """Why Iceberg's own scan, of all files, is not taken; empty if it is."""
    table = require(plan.table, IcebergFiles, "table")
    if table.own_rows is None or table.version is None:
        return "the schema is another than that of the snapshot"
    chosen, total = int(table.sizes[plan.candidates.files].sum()), int(table.sizes.sum())
    if chosen < _DENSE_FRACTION * total:
        return f"files of {_megabytes(chosen)} of {_megabytes(total)} are left"
    return ""


def _column_problem(table: TableFiles, files: np.ndarray, name: str) -> str:
    """Why Spark's own reader does not give the same values for a column."""
    if name in table.columns.partitions and not table.holds_partitions:
        return ""
    wanted = table.columns.columns[name].arrow_type
    if not _is_plain(wanted):
        return f"Spark reads {wanted} otherwise"
    if types.is_struct(wanted) and _has_floats(wanted):
        return "Spark may pass over NaN within a struct"
    for number, group in enumerate(table.columns.groups(name)):
        if not group.files[files].any():
            continue
        schema = table.columns.schemas[number]
        if table.columns.conversion(number, name) is not None:
            return "another type in some files than in the table"
        # Spark goes by names, and the files of some tables do not.
        called = match_column(name, schema)
        if group.name != called:
            return f"some files call {name} otherwise, or something else {name}"
        if group.name is not None and schema[group.name].arrow_type != wanted:
            return f"{schema[group.name].arrow_type} in some files, {wanted} in the table"
    return ""


def _is_plain(arrow_type: pa.DataType) -> bool:
    """Whether Spark's own reader gives the same values."""
    simple = (
        types.is_boolean,
        types.is_signed_integer,
        types.is_float32,
        types.is_float64,
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
        types.is_date32,
        types.is_decimal128,
    )
    if any(is_kind(arrow_type) for is_kind in simple):
        return True
    if types.is_timestamp(arrow_type):
        return arrow_type.unit in ("ms", "us")
    if types.is_list(arrow_type):
        return _is_plain(arrow_type.value_type)
    if types.is_map(arrow_type):
        return _is_plain(arrow_type.key_type) and _is_plain(arrow_type.item_type)
    return types.is_struct(arrow_type) and all(_is_plain(field.type) for field in arrow_type)


def _has_floats(arrow_type: pa.DataType) -> bool:
    """Whether there are floats that Spark filters by what footers say, which not all do of NaN."""
    if types.is_struct(arrow_type):
        return any(_has_floats(field.type) for field in arrow_type)
    return bool(types.is_floating(arrow_type))


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def to_spark(spark: SparkSession, scan: Scan, *, filtered: bool = True) -> DataFrame:
    """The rows of a scan; if not filtered, the caller leaves out rows that do not match."""
    names, limit = scan.schema.names, scan.query.limit
    if isinstance(scan, DelegatedScan):
        handed: DataFrame = scan.to_spark()
        return handed if names else handed.select()
    plan, is_whole = scan.plan()
    if is_whole and not names:
        return spark.range(scan.count()).select()
    strategy = strategy_of(spark, scan)
    if is_whole and strategy.name == "driver":
        answer = scan.to_arrow() if limit is None else scan.first_rows()
        if answer is not None:
            return _from_arrow(spark, answer).select(*map(quoted, names))
        strategy = _choose_strategy(spark, plan, in_driver=False)
    if strategy.name == "driver":
        rows = _from_arrow(spark, plan.to_arrow())
    elif strategy.name == "tasks":
        rows = _from_tasks(spark, plan)
    else:
        rows = _from_files(spark, plan) if strategy.name == "Spark" else _from_iceberg(plan)
        is_whole = is_whole and plan.where == Constant(True)
    if (filtered or limit is not None) and not is_whole:
        rows = rows.where(str(scan.query.where))
    if scan.keys:
        rows = rows.orderBy(*map(_sort_key, scan.keys))
    if limit is not None:
        rows = rows.limit(int(limit))
    return rows.select(*map(quoted, names))


def strategy_of(spark: SparkSession, scan: Scan) -> ReadStrategy:
    """How the rows of a scan are read."""
    plan, is_whole = scan.plan()
    limit = scan.query.limit
    if plan.pending is None and (
        is_whole and limit is not None and limit <= MAX_TOP_ROWS and not only_for_spark(plan)
    ):
        most = _megabytes(small_bytes(remote=plan.files.remote))
        return ReadStrategy("driver", f"{limit:,} rows at most, or by tasks beyond {most}")
    return _choose_strategy(spark, plan)


def count_by_spark(spark: SparkSession, plan: ScanPlan) -> int | None:
    """How many rows match, where only Spark's own reader gives the right values; else None."""
    if not only_for_spark(plan):
        return None
    _choose_strategy(spark, plan)  # raises if it cannot be taken
    return int(_from_files(spark, plan).where(str(plan.where)).count())


def _choose_strategy(
    spark: SparkSession, plan: ScanPlan, *, in_driver: bool = True
) -> ReadStrategy:
    is_s3 = plan.table.location.startswith("s3://")
    has_s3a = is_s3 and jvm.has_class(spark, _S3A)
    return choose_strategy(plan, has_s3a=has_s3a, in_driver=in_driver)


@dataclass(frozen=True, eq=False)
class ReadTasks:
    """Reads the rows of tasks, as `mapInArrow` calls it."""

    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks that come as rows."""
        for _, plan in tasks_of(batches):
            yield from self.read(plan)

    def read(self, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the types that Spark takes."""
        schema = arrow_for_spark(table_schema(plan.files, plan.columns))
        with using(self.settings):
            for part in plan.read():
                yield from conform_batches(part.table, schema)


def split_plan(plan: ScanPlan, cores: int) -> list[ReadPlan]:
    """What each task reads, without the files of the others."""
    return [plan.part(positions) for positions in split_by_bytes(plan.sizes, cores)]


def _from_arrow(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows as they are; a column that is there twice is given once."""
    rows = pa.table(dict(zip(rows.schema.names, rows.columns, strict=True)))
    if not rows.num_rows:
        return spark.createDataFrame([], spark_schema(rows.schema))
    batches = conform_batches(rows, arrow_for_spark(rows.schema))
    return spark.createDataFrame(pa.Table.from_batches(batches), spark_schema(rows.schema))


def _from_tasks(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    tasks = split_plan(plan, jvm.parallelism(spark))
    schema = spark_schema(table_schema(plan.files, plan.columns))
    return over_tasks(spark, tasks, ReadTasks(current_settings()), schema)


def _from_files(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    """All rows of the files that are left, by Spark's own reader."""
    table = plan.table
    asked = dict.fromkeys([*plan.columns, *plan.where_columns])
    outside = [] if table.holds_partitions else list(table.columns.partitions)
    inside = [name for name in asked if name not in outside]
    # With their types given, Spark does not infer those of values that happen to be left.
    schema = spark_schema(table_schema(table, [*inside, *outside]))
    root = _spark_path(table.location)
    paths = table.paths.take(pa.array(plan.candidates.files)).to_pylist()
    full_paths = [f"{root}/{path}" for path in paths]
    rows = read_parquet(spark, full_paths, schema, root if outside else None)
    return rows.select(*(_unpushed(field) for field in rows.schema))


def _from_iceberg(plan: ScanPlan) -> DataFrame:
    """All rows of the table, by Iceberg's own scan."""
    table = require(plan.table, IcebergFiles, "table")
    asked = dict.fromkeys([*plan.columns, *plan.where_columns])
    rows: DataFrame = table.all_rows(list(asked))
    return rows


def _unpushed(field: StructField) -> Column:
    """A column; of floats, in such a way that Spark does not filter them by what footers say.

    Arrow leaves NaN out of the least and greatest values that it writes, and for Spark NaN is above
    every number: it would pass over row groups that have one. The same goes for -0.0.
    """
    from pyspark.sql import functions

    column = functions.col(quoted(field.name))
    if field.dataType.typeName() not in ("float", "double"):
        return column
    return functions.nanvl(column, column).alias(field.name)


def _spark_path(location: str) -> str:
    """A folder as Spark's own reader names it."""
    location = location.rstrip("/")
    return f"file:{location}" if "://" not in location else location.replace("s3://", "s3a://", 1)


def _sort_key(key: SortKey) -> Column:
    from pyspark.sql.functions import col

    column = col(quoted(key.column))
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
