"""`t.append(df)` on a Paimon table: tasks write its data files, and the driver commits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.options import OptionValue
from alcid.spark import jvm
from alcid.spark.append_schema import arrow_schema, spark_fields
from alcid.spark.append_tasks import columns_at, run_tasks, together
from alcid.tables.append_report import AppendReport
from alcid.tables.paimon.appending import append_rows
from alcid.tables.paimon.data_writing import DataJob, WrittenData
from alcid.tables.paimon.table import PaimonTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["append_to_paimon"]

_BUCKET = "bucket"


def append_to_paimon(
    table: PaimonTable, df: DataFrame, options: Mapping[str, OptionValue] | None = None
) -> AppendReport:
    """Append the rows of a DataFrame; see `append_rows`, also for what it raises."""
    given = arrow_schema(spark_fields(df.schema))

    def write(job: DataJob) -> Iterator[WrittenData]:
        return run_tasks(_arranged(df, job), job.write)

    return append_rows(table, given, options, write)


@dataclass(frozen=True, slots=True)
class _WithBuckets:
    """Puts the bucket of each row beside it, which Spark has no function for."""

    job: DataJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                buckets = pa.array(self.job.buckets(self.job.columns.rows(batch.columns)))
            except UnsupportedError:  # of a value: it is told when it is to be written
                buckets = pa.array([0] * batch.num_rows, pa.int32())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, buckets], [*batch.schema.names, _BUCKET]
            )


def _arranged(df: DataFrame, job: DataJob) -> DataFrame:
    """The columns for the files; rows of a partition and bucket together."""
    columns = job.columns
    places = [place for place in columns.sources if place is not None]
    rows = columns_at(df, places)
    numbers = dict(zip(places, rows.columns, strict=True))
    sources = dict(zip(columns.schema.names, columns.sources, strict=True))
    found = [sources[name] for name in job.schema.partition_keys]
    keys = [numbers[place] for place in found if place is not None]
    if job.options.bucket > 0:
        from pyspark.sql.types import IntegerType, StructField, StructType

        schema = StructType([*rows.schema.fields, StructField(_BUCKET, IntegerType())])
        rows = jvm.map_in_arrow(rows, _WithBuckets(job), schema)
        keys.append(_BUCKET)
    return together(rows, keys)
