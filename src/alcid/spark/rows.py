"""The rows of a DataFrame, written by tasks of Spark.

Columns go by the JSON that Spark writes of a schema: in it collated text is text, and the collation
stands in the metadata of the column, as CHAR(n) does. Spark gives back what each task reports that
counts, whatever was tried twice; what an attempt wrote that was lost is left for `clean`.

Rows with keys are routed to the task of their channel:

    key columns -> channel, and bucket if the key is known    a function that Spark calls
    rows of a channel -> the task of its number               a shuffle
    rows of a channel -> files                                what that task does

Where too many keys are known for each task to look all of them up, there is a shuffle before that:

    key columns -> range of keys -> the task of the range, sorted by range
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from alcid.config import Settings, current_settings, using
from alcid.errors import AlcidError, FileGoneError, StorageError, UnsupportedError
from alcid.spark import jvm
from alcid.spark.errors import naming_missing_package
from alcid.spark.schema import spark_schema
from alcid.tables.parquet_writer import written_type
from alcid.tables.rows import KeyedRowWriter, Routed, RowPiece, RowWriter, SizeEstimate
from alcid.tables.schema import TargetColumns
from alcid.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

Fields = Sequence[Mapping[str, Any]]
T = TypeVar("T")

_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
_VERSION = "org.apache.spark.version"
_NOT_WRITTEN = ("TIME", "VARIANT")  # Spark does not read TIME from Parquet either
_NULLABLE = ("nullable", "containsNull", "valueContainsNull")
_RESULT = "result binary, error binary"
_BUCKET = "bucket"
_ROUTED, _ORDER, _RANGE = "routed", "order", "range"  # beside the columns c0, c1 and so on
_NUMBERS = "hash", "bucket", "channel"
_ROUTE = "hash int, bucket int, channel int, error binary"


class DataFrameRows:
    """The rows of a DataFrame.

    The later of two rows is that of the later partition, or the one behind in the same. Where a
    write is repeated, the DataFrame should give the same rows again.
    """

    def __init__(self, df: DataFrame) -> None:
        """Take a DataFrame; nothing is computed yet."""
        self._df, self._fields = df, spark_fields(df.schema)
        self.schema: pa.Schema = arrow_schema(self._fields)

    @property
    def parallelism(self) -> int:
        """How many tasks run at a time."""
        return jvm.parallelism(self._df.sparkSession)

    def size(self) -> SizeEstimate | None:
        """What Spark's optimizer expects."""
        expected = jvm.plan_size(self._df)
        return None if expected is None else SizeEstimate(*expected)

    def count(self) -> int:
        """How many rows there are, by a job."""
        return int(self._df.count())

    def footer_metadata(self, columns: TargetColumns) -> Mapping[str, str]:
        """Spark's version and schema."""
        return footer_metadata(columns, self._fields, self._df.sparkSession.version)

    def write(self, writer: RowWriter[T]) -> Iterator[T]:
        """Let tasks write the rows, in clusters: each goes to few tasks, a large one to several."""
        return run_tasks(self._clustered(writer), _Write(writer))

    def write_by_key(self, writer: KeyedRowWriter[T]) -> Iterator[T]:
        """Let tasks write the rows, each those of its channel."""
        return run_tasks(self._routed(writer), _WriteChannel(writer))

    def _clustered(self, writer: RowWriter[Any]) -> DataFrame:
        """The columns for the files, the partition columns as text, and the buckets."""
        from pyspark.sql import functions as f

        columns = writer.columns
        used = [source for source in columns.sources if source is not None]
        inside = [self._column(source).alias(f"c{number}") for number, source in enumerate(used)]
        # As Spark writes them into paths.
        texts = [
            (f.lit(None) if source is None else self._column(source))
            .cast("string")
            .alias(f"p{number}")
            for number, source in enumerate(columns.partition_sources)
        ]
        rows = self._df.select(*inside, *texts)
        names = dict(zip(used, rows.columns, strict=False))
        sources = dict(zip(columns.schema.names, columns.sources, strict=True))
        keyed = [names[source] for source in map(sources.get, writer.cluster_by) if source in names]
        keys = [*keyed, *(f"p{number}" for number in range(len(texts)))]
        if writer.has_buckets:
            from pyspark.sql.types import IntegerType, StructField, StructType

            schema = StructType([*rows.schema.fields, StructField(_BUCKET, IntegerType())])
            rows = jvm.map_in_arrow(rows, _AddBuckets(writer), schema)
            keys.append(_BUCKET)
        return rows.hint("rebalance", *keys).sortWithinPartitions(*keys) if keys else rows

    def _routed(self, writer: KeyedRowWriter[Any]) -> DataFrame:
        """The columns for the files, the kind, where rows go, and their order; a channel a task."""
        from pyspark.sql import functions as f

        sources = zip(writer.columns.schema, writer.columns.sources, strict=True)
        used = [(field, source) for field, source in sources if source is not None]
        kind = [] if writer.kind_column is None else [writer.kind_column[0]]
        positions = [*(source for _, source in used), *kind]
        rows = self._df.select(
            *(self._column(source).alias(f"c{number}") for number, source in enumerate(positions))
        )
        keys = [
            (field, name)
            for (field, _), name in zip(used, rows.columns, strict=False)
            if field.name in writer.key_columns
        ]
        fields, names = [field for field, _ in keys], [name for _, name in keys]
        columns = TargetColumns(pa.schema(fields), tuple(range(len(fields))), (), ())
        rows = rows.withColumn(_ORDER, f.monotonically_increasing_id())
        route = _Route(writer, columns)
        # A function of Spark gives Python the key columns only, and not all of the rows.
        if writer.lookup_tasks:
            ranges = f.arrow_udf(route.lookup_ranges, "bigint")(*names)
            task = f.pmod(f.col(_RANGE), f.lit(writer.lookup_tasks)).cast("int")
            rows = (
                rows.withColumn(_RANGE, ranges)
                .repartitionById(writer.lookup_tasks, task)
                .sortWithinPartitions(_RANGE)
                .drop(_RANGE)
            )
        routed = f.arrow_udf(route.route, _ROUTE)(*names)
        return rows.withColumn(_ROUTED, routed).repartitionById(
            writer.channels, f.col(f"{_ROUTED}.channel")
        )

    def _column(self, position: int) -> Column:
        """A column by its position, whatever its name."""
        from pyspark.sql import functions as f

        name = self._df.columns[position].replace("`", "``")
        return f.col(f"`{name}`")


def spark_fields(schema: StructType) -> Fields:
    """The columns as Spark's JSON has them; all may be null, as in the files that it writes."""
    fields: Fields = _all_nullable(json.loads(schema.json()))["fields"]
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
    """What the footers of files are to say, so that Spark reads what was written.

    With Spark's version, dates before 1582 are taken for what they are. With its schema, collations
    and CHAR(n) are known.
    """
    metadata = {_VERSION: version}
    try:
        described = [
            _described(own, None if source is None else fields[source])
            for own, source in zip(columns.schema, columns.sources, strict=True)
        ]
    except UnsupportedError:  # a column of the table that Spark has no type for
        return metadata
    return metadata | {_SCHEMA: json.dumps({"type": "struct", "fields": described})}


def _described(own: pa.Field, spark_field: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A column of a file in Spark's JSON."""
    if spark_field is not None and arrow_schema([spark_field]).field(0).type == own.type:
        return {**spark_field, "name": own.name}
    field: Mapping[str, Any] = json.loads(spark_schema(pa.schema([own])).json())["fields"][0]
    return field


def _arrow_type(spark_type: Any, name: str) -> Any:
    if not isinstance(spark_type, str):
        match spark_type["type"]:
            case "array":
                return pa.list_(_arrow_type(spark_type["elementType"], name))
            case "map":
                key, value = spark_type["keyType"], spark_type["valueType"]
                return pa.map_(_arrow_type(key, name), _arrow_type(value, name))
            case "struct":
                inner = (
                    (field["name"], _arrow_type(field["type"], name))
                    for field in spark_type["fields"]
                )
                return pa.struct(list(inner))
        raise UnsupportedError(f"column {name}: {spark_type['type']} is not written")
    if spark_type == "void":
        return pa.null()
    try:
        data_type = DataType.from_spark(spark_type)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {name}: {error}") from None
    if data_type.root in _NOT_WRITTEN:
        raise UnsupportedError(f"column {name}: {data_type.root} is not written")
    return data_type.to_arrow()


def _all_nullable(schema_json: Any) -> Any:
    """Spark's JSON of a schema in which everything may be null."""
    if isinstance(schema_json, list):
        return [_all_nullable(inner) for inner in schema_json]
    if not isinstance(schema_json, dict):
        return schema_json
    return {
        key: True if key in _NULLABLE else inner if key == "metadata" else _all_nullable(inner)
        for key, inner in schema_json.items()
    }


def run_tasks(
    rows: DataFrame, write: Callable[[Iterable[pa.RecordBatch]], Iterable[T]]
) -> Iterator[T]:
    """Let tasks write rows; what they report comes also if others fail, before that is raised.

    The rows of a partition go to one task. `write` and what it returns are pickled.

    Raises:
        AlcidError: What a task raised, if it would raise it again.
    """
    task = _WriteTask(write, current_settings())
    with naming_missing_package():
        results = jvm.map_in_arrow(rows, task, _RESULT).collect()
    for result, _ in results:
        if result is not None:
            yield pickle.loads(result)
    for _, error in results:
        if error is not None:
            raise pickle.loads(error)


@dataclass(frozen=True, slots=True)
class _WriteTask(Generic[T]):
    """What runs on the executors, as `mapInArrow` calls it."""

    write: Callable[[Iterable[pa.RecordBatch]], Iterable[T]]
    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with using(self.settings):
            try:
                for written in self.write(batches):
                    yield _result_row(pickle.dumps(written), None)
            except AlcidError as error:
                yield _result_row(None, _pickled_error(error))


def _pickled_error(error: AlcidError) -> bytes:
    """An error for the driver; one that may not come again is raised.

    Spark tries the task again then. Of a value that does not fit, it would only hide the cause.
    """
    if isinstance(error, StorageError) and not isinstance(error, FileGoneError):
        raise error
    return pickle.dumps(error)


def _result_row(result: bytes | None, error: bytes | None) -> pa.RecordBatch:
    arrays = [pa.array([result], pa.binary()), pa.array([error], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["result", "error"])


@dataclass(frozen=True, slots=True)
class _Write(Generic[T]):
    """Writes the rows of a partition."""

    writer: RowWriter[T]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterable[T]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return self.writer.write(batches, 0 if context is None else context.partitionId())


@dataclass(frozen=True, slots=True)
class _AddBuckets:
    """Adds a column with the bucket of each row, which Spark has no function for."""

    writer: RowWriter[Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                rows = self.writer.columns.rows(batch.columns)
                buckets = pa.array(self.writer.buckets(rows))
            except UnsupportedError:  # of a value: it is raised where the row is to be written
                buckets = pa.array([0] * batch.num_rows, pa.int32())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, buckets], [*batch.schema.names, _BUCKET]
            )


@dataclass(frozen=True, slots=True)
class _Route:
    """Finds the channels of rows."""

    writer: KeyedRowWriter[Any]
    columns: TargetColumns
    """The key."""

    def lookup_ranges(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """The range of each row; those of values that do not fit are of no range."""
        for batch in batches:
            keys = (batch,) if isinstance(batch, pa.Array) else batch
            try:
                ranges = self.writer.lookup_ranges(self.columns.rows(keys))
            except AlcidError:  # it is raised again by `route`
                ranges = np.zeros(len(keys[0]), np.int64)
            yield pa.array(ranges)

    def route(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """Numbers for each row; Spark goes by these types, though it gives one column as itself."""
        for batch in batches:
            keys = (batch,) if isinstance(batch, pa.Array) else batch  # the key is one column
            numbers = [pa.array(np.zeros(len(keys[0]), np.int32))] * 3
            problem = None
            try:
                routed = self.writer.route(self.columns.rows(keys))
                numbers = [*map(pa.array, (routed.hashes, routed.buckets, routed.channels))]
            except AlcidError as error:  # it is raised by the task that is to write the rows
                problem = _pickled_error(error)
            errors = pa.array([problem] * len(keys[0]), pa.binary())
            yield pa.StructArray.from_arrays([*numbers, errors], [*_NUMBERS, "error"])


@dataclass(frozen=True, slots=True)
class _WriteChannel(Generic[T]):
    """Writes the rows of a channel."""

    writer: KeyedRowWriter[T]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[T]:
        yield from self.writer.write_rows(self._pieces(batches))

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[RowPiece]:
        """The rows in pieces; Spark's batches are small."""
        buffered, size = list[pa.RecordBatch](), 0
        for batch in batches:
            if size > self.writer.piece_bytes:
                yield _piece(buffered, is_last=False)
                size = 0
            if batch.num_rows:
                buffered.append(batch)
                size += batch.nbytes
        if buffered:
            yield _piece(buffered, is_last=True)


def _piece(batches: list[pa.RecordBatch], *, is_last: bool) -> RowPiece:
    """Routed rows."""
    rows = pa.Table.from_batches(batches)
    batches.clear()
    routed = rows.column(_ROUTED).combine_chunks()
    for error in routed.field("error").drop_null()[:1]:
        raise pickle.loads(error.as_py())
    numbers = *(routed.field(name) for name in _NUMBERS), rows.column(_ORDER)
    columns = rows.drop_columns([_ROUTED, _ORDER]).columns
    return RowPiece(columns, Routed(*(column.to_numpy() for column in numbers)), is_last)
