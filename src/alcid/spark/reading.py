"""`Scan.to_spark`: the rows of a scan as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import require
from alcid.options import Settings, current_settings, using
from alcid.plan import Draft, DraftPart, Scan, table_schema
from alcid.plan.sorting import SortKey
from alcid.predicate import Constant
from alcid.spark import jvm
from alcid.spark.schema import arrow_for_spark, conform_batches, quoted, spark_schema
from alcid.spark.shares import make_shares, over_shares
from alcid.spark.ways import MOST_TOP, Way, choose_way, only_for_spark
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.handed import HandedScan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

__all__ = ["ReadTask", "count_by_spark", "to_spark", "way_of"]

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def to_spark(spark: SparkSession, scan: Scan, *, filtered: bool = True) -> DataFrame:
    """The rows of a scan.

    Args:
        spark: The session.
        scan: What is asked for.
        filtered: Without, there may be rows that do not match: the caller leaves them out.
    """
    names, limit = scan.schema.names, scan.query.limit
    if isinstance(scan, HandedScan):
        handed: DataFrame = scan.to_spark()
        return handed if names else handed.select()
    draft, is_whole = scan.draft()
    if is_whole and not names:
        return spark.range(scan.count()).select()
    way = way_of(spark, scan)
    if is_whole and (way is None or way.name == "driver"):
        return _from_arrow(spark, scan.to_arrow()).select(*map(quoted, names))
    if way is None or way.name == "driver":
        rows = _from_arrow(spark, draft.to_arrow())
    elif way.name == "tasks":
        rows = _from_tasks(spark, draft)
    else:
        rows = _from_files(spark, draft) if way.name == "Spark" else _from_iceberg(draft)
        is_whole = is_whole and draft.where == Constant(True)
    if (filtered or limit is not None) and not is_whole:
        rows = rows.where(str(scan.query.where))
    if scan.keys:
        rows = rows.orderBy(*map(_sort_key, scan.keys))
    if limit is not None:
        rows = rows.limit(int(limit))
    return rows.select(*map(quoted, names))


def way_of(spark: SparkSession, scan: Scan) -> Way | None:
    """How the rows of a scan are read; None if the driver finds them, as they are few."""
    draft, is_whole = scan.draft()
    limit = scan.query.limit
    if is_whole and limit is not None and limit <= MOST_TOP and not only_for_spark(draft):
        return None
    return _choose_way(spark, draft)


def count_by_spark(spark: SparkSession, draft: Draft) -> int | None:
    """How many rows match, where only Spark's own reader gives the right values; else None."""
    if not only_for_spark(draft):
        return None
    _choose_way(spark, draft)  # raises if it cannot be taken
    return int(_from_files(spark, draft).where(str(draft.where)).count())


def _choose_way(spark: SparkSession, draft: Draft) -> Way:
    is_s3 = draft.table.location.startswith("s3://")
    return choose_way(draft, has_s3a=is_s3 and jvm.has_class(spark, _S3A))


@dataclass(frozen=True, eq=False)
class ReadTask:
    """What a task does, as `mapInArrow` calls it: read the rows of the shares with these numbers.

    Their numbers come as rows of one column.
    """

    draft: DraftPart
    shares: Sequence[npt.NDArray[np.int64]]
    """The places of candidates."""
    settings: Settings

    @classmethod
    def of(cls, draft: Draft, cores: int) -> ReadTask:
        """Share out what is read."""
        part = draft.part()
        return cls(part, make_shares(part.sizes, cores), current_settings())

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the shares whose numbers come."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.read(number)

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a share, in the types that Spark takes."""
        schema = arrow_for_spark(table_schema(self.draft.files, self.draft.columns))
        with using(self.settings):
            for part in self.draft.read(self.shares[number].tolist()):
                yield from conform_batches(part.table, schema)


def _from_arrow(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows as they are; a column that is there twice is given once."""
    rows = pa.table(dict(zip(rows.schema.names, rows.columns, strict=True)))
    if not rows.num_rows:
        return spark.createDataFrame([], spark_schema(rows.schema))
    batches = conform_batches(rows, arrow_for_spark(rows.schema))
    return spark.createDataFrame(pa.Table.from_batches(batches), spark_schema(rows.schema))


def _from_tasks(spark: SparkSession, draft: Draft) -> DataFrame:
    task = ReadTask.of(draft, jvm.parallelism(spark))
    schema = spark_schema(table_schema(draft.files, draft.columns))
    return over_shares(spark, len(task.shares), task, schema)


def _from_files(spark: SparkSession, draft: Draft) -> DataFrame:
    """All rows of the files that are left, by Spark's own reader."""
    table = draft.table
    asked = dict.fromkeys([*draft.columns, *draft.where_columns])
    outside = [] if table.holds_partitions else list(table.columns.partitions)
    inside = [name for name in asked if name not in outside]
    # With their types given, Spark does not infer those of values that happen to be left.
    schema = spark_schema(table_schema(table, [*inside, *outside]))
    root = _spark_path(table.location)
    paths = table.paths.take(pa.array(draft.candidates.files)).to_pylist()
    reader = spark.read.schema(schema)
    if outside:
        reader = reader.option("basePath", root)
    rows = reader.parquet(*(f"{root}/{path}" for path in paths))
    return rows.select(*(_unpushed(field) for field in rows.schema))


def _from_iceberg(draft: Draft) -> DataFrame:
    """All rows of the table, by Iceberg's own scan."""
    table = require(draft.table, IcebergFiles, "table")
    asked = dict.fromkeys([*draft.columns, *draft.where_columns])
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
