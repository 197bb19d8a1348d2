"""The columns of a DataFrame, and what Spark's own footers say of those of a file.

Both go by the JSON that Spark writes of a schema: in it collated text is text, and the collation
stands in the metadata of the column, as CHAR(n) does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.spark.schema import spark_schema
from alcid.tables.target_columns import TargetColumns
from alcid.tables.writing import written_type
from alcid.types import DataType

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["arrow_schema", "footer_metadata", "spark_fields"]

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
