"""`t.append(df)` on a Paimon table: tasks write its data files, and the driver commits them.

`t.upsert(df)`: the rows of a bucket come to one task, which writes them; the driver commits.

    key columns -> channel, and bucket if the key is known    a function that Spark calls
    rows of a channel -> the task of its number               a shuffle
    rows of a bucket -> files                                 what that task does

A task holds the rows of its channel. Only what Spark gives back is committed: what an attempt wrote
that was lost, or that another was faster than, is left for `clean`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from alcid.errors import AlcidError, UnsupportedError
from alcid.options import OptionValue
from alcid.spark import jvm
from alcid.spark.append import (
    arrow_schema,
    columns_at,
    run_tasks,
    spark_fields,
    together,
    told_error,
)
from alcid.tables.paimon.keyed.bucket import BucketChange
from alcid.tables.paimon.keyed.upsert import Routed, UpsertJob, UpsertPlan, upsert_rows
from alcid.tables.paimon.merge_on_read import parse_kinds
from alcid.tables.paimon.new_files import WrittenData
from alcid.tables.paimon.open_table import OpenPaimonTable
from alcid.tables.paimon.write.append import DataJob, append_rows
from alcid.tables.reports import AppendReport, UpsertReport
from alcid.tables.schema import TargetColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["append_to_paimon", "upsert_to_paimon"]

_BUCKET = "bucket"


def append_to_paimon(
    table: OpenPaimonTable, df: DataFrame, options: Mapping[str, OptionValue] | None = None
) -> AppendReport:
    """Append the rows of a DataFrame; see `append_rows`, also for what it raises."""
    given = arrow_schema(spark_fields(df.schema))

    def write(job: DataJob) -> Iterator[WrittenData]:
        return run_tasks(_arranged_for_append(df, job), job.write)

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


def _arranged_for_append(df: DataFrame, job: DataJob) -> DataFrame:
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


_ROUTED, _ORDER = "routed", "order"  # beside the columns c0, c1 and so on
_NUMBERS = "hash", "bucket", "channel"
_ROUTE = "hash int, bucket int, channel int, problem binary"


def upsert_to_paimon(table: OpenPaimonTable, df: DataFrame, plan: UpsertPlan) -> UpsertReport:
    """Upsert the rows of a DataFrame; see `upsert_rows`, also for what it raises.

    The later of two rows is that of the later partition, or the one behind in the same. Where
    another upsert was faster, all is done again: the DataFrame should give the same rows then.
    """
    given = arrow_schema(spark_fields(df.schema))
    workers = jvm.parallelism(df.sparkSession)

    def write(job: UpsertJob) -> Iterator[BucketChange]:
        return run_tasks(_arranged_by_bucket(df, job), _Write(job))

    return upsert_rows(table, given, plan, write, parallelism=workers)


def _arranged_by_bucket(df: DataFrame, job: UpsertJob) -> DataFrame:
    """The columns for the files, the kind, where rows go, and their order; a channel in a task."""
    from pyspark.sql import functions as f

    sources = zip(job.columns.schema, job.columns.sources, strict=True)
    given = [(field, place) for field, place in sources if place is not None]
    kind = [] if job.kind_column is None else [job.kind_column[0]]
    rows = columns_at(df, [*(place for _, place in given), *kind])
    keys = [
        (field, name)
        for (field, _), name in zip(given, rows.columns, strict=False)
        if field.name in job.keyed.schema.primary_keys
    ]
    fields = [field for field, _ in keys]
    columns = TargetColumns(pa.schema(fields), tuple(range(len(fields))), (), ())
    # A function of Spark gives Python the key columns only, and not all of the rows.
    routed = f.arrow_udf(_Route(job, columns).routed, _ROUTE)(*(name for _, name in keys))
    return rows.select(
        "*", routed.alias(_ROUTED), f.monotonically_increasing_id().alias(_ORDER)
    ).repartitionById(job.routing.channels, f.col(f"{_ROUTED}.channel"))


@dataclass(frozen=True, slots=True)
class _Route:
    """Finds out where rows go."""

    job: UpsertJob
    columns: TargetColumns
    """The key."""

    def routed(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """Numbers for each row; Spark goes by these types, though it gives one column as itself."""
        for batch in batches:
            keys = (batch,) if isinstance(batch, pa.Array) else batch  # the key is one column
            numbers = [pa.array(np.zeros(len(keys[0]), np.int32))] * 3
            problem = None
            try:
                found = self.job.route(self.columns.rows(keys))
                numbers = [pa.array(one) for one in (found.hashes, found.buckets, found.channels)]
            except AlcidError as error:  # the task that is to write the rows tells of it
                problem = told_error(error)
            problems = pa.array([problem] * len(keys[0]), pa.binary())
            yield pa.StructArray.from_arrays([*numbers, problems], [*_NUMBERS, "problem"])


@dataclass(frozen=True, slots=True)
class _Write:
    """Writes the rows of a channel."""

    job: UpsertJob

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[BucketChange]:
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        job, given = self.job, pa.Table.from_batches(held)
        routed = given.column(_ROUTED).combine_chunks()
        for problem in routed.field("problem").drop_null()[:1]:
            raise pickle.loads(problem.as_py())
        count = sum(place is not None for place in job.columns.sources)
        rows = job.columns.rows(given.columns[:count])
        kinds = np.zeros(len(rows), np.int8)
        if job.kind_column is not None:
            kinds = parse_kinds(given.column(count), column=job.kind_column[1])
        columns = *(routed.field(name) for name in _NUMBERS), given.column(_ORDER)
        found = Routed(*(column.to_numpy() for column in columns))
        parts = job.parts(rows, kinds, found, int(found.channels[0]))
        yield from job.write(parts, 1)
