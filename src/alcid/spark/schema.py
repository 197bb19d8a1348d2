"""Columns of a table as Spark has them: the types that its own Parquet reader gives.

Spark has no unsigned numbers, no float16 and nothing finer than microseconds; the columns of such
types become the next wider ones. A type that it has none for at all is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types

from alcid.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_BATCH_ROWS = 1 << 16
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def arrow_for_spark(schema: pa.Schema) -> pa.Schema:
    """The same columns in the Arrow types that Spark takes.

    Raises:
        UnsupportedError: Spark has no such type.

    >>> arrow_for_spark(pa.schema([("a", pa.uint32()), ("b", pa.large_string())]))
    a: int64
    b: string
    """
    return pa.schema([(field.name, _plain(field.type, field.name)) for field in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns as Spark's types; every column may be null.

    Raises:
        UnsupportedError: Spark has no such type.
    """
    from pyspark.sql.types import StructField, StructType

    plain = arrow_for_spark(schema)
    return StructType([StructField(field.name, _spark_type(field.type), True) for field in plain])


def conform_batches(rows: pa.Table, schema: pa.Schema) -> Sequence[pa.RecordBatch]:
    """Rows in the types of `arrow_for_spark`, in batches that Spark can take one by one."""
    arrays = [_cast(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    batches: Sequence[pa.RecordBatch] = table.to_batches(max_chunksize=_BATCH_ROWS)
    return batches


def quoted(name: str) -> str:
    """A name as Spark takes it for that of one column or table, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def _cast(column: pa.ChunkedArray, wanted: Any) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if types.is_duration(column.type):
        return column.cast(pa.int64())
    # What is finer than microseconds is cut off; nothing else can be lost.
    return column.cast(wanted, safe=False)


def _plain(arrow_type: Any, name: str) -> Any:
    """The Arrow type for a column or a part of one."""
    if arrow_type in _WIDER:
        return _WIDER[arrow_type]
    if types.is_dictionary(arrow_type):
        return _plain(arrow_type.value_type, name)
    if types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return pa.string()
    if (
        types.is_large_binary(arrow_type)
        or types.is_fixed_size_binary(arrow_type)
        or types.is_binary_view(arrow_type)
    ):
        return pa.binary()
    if types.is_timestamp(arrow_type):
        return pa.timestamp("us", None if arrow_type.tz is None else "UTC")
    if types.is_duration(arrow_type):
        return pa.int64()
    if types.is_decimal(arrow_type) and arrow_type.precision <= 38:
        return pa.decimal128(arrow_type.precision, arrow_type.scale)
    if (
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
    ):
        return pa.list_(_plain(arrow_type.value_type, name))
    if types.is_map(arrow_type):
        return pa.map_(_plain(arrow_type.key_type, name), _plain(arrow_type.item_type, name))
    if types.is_struct(arrow_type):
        return pa.struct([(field.name, _plain(field.type, name)) for field in arrow_type])
    if arrow_type in _SIMPLE:
        return arrow_type
    raise UnsupportedError(f"column {name}: Spark has no type for {arrow_type}; leave it out")


_SIMPLE = {
    pa.bool_(): "BooleanType",
    pa.int8(): "ByteType",
    pa.int16(): "ShortType",
    pa.int32(): "IntegerType",
    pa.int64(): "LongType",
    pa.float32(): "FloatType",
    pa.float64(): "DoubleType",
    pa.string(): "StringType",
    pa.binary(): "BinaryType",
    pa.date32(): "DateType",
    pa.null(): "NullType",
    pa.timestamp("us"): "TimestampNTZType",
    pa.timestamp("us", "UTC"): "TimestampType",
}


def _spark_type(plain: Any) -> DataType:
    from pyspark.sql import types as spark

    if plain in _SIMPLE:
        simple: DataType = getattr(spark, _SIMPLE[plain])()
        return simple
    if types.is_decimal(plain):
        return spark.DecimalType(plain.precision, plain.scale)
    if types.is_list(plain):
        return spark.ArrayType(_spark_type(plain.value_type), True)
    if types.is_map(plain):
        return spark.MapType(_spark_type(plain.key_type), _spark_type(plain.item_type), True)
    return spark.StructType(
        [spark.StructField(field.name, _spark_type(field.type), True) for field in plain]
    )
