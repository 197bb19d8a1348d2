"""The columns of a Parquet file as Spark reads them: their types, and which get no index or bounds.

Arrow's metadata is all it takes, so that a file without indexes is opened quickly.

Spark writes its own schema into the footer. It has what Parquet's schema lacks: CHAR(n) and
VARCHAR(n), and collations, by which texts of different bytes may be equal. An index or a bound that
goes by the bytes would then hide rows, so a collated column gets neither. Nor do dates and
timestamps that were written in the calendar before 1582: Spark moves them when it reads them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alcid._arrays import storage_type
from alcid.datafiles.parquet.footer import leaf_count
from alcid.errors import FormatError, UnsupportedError
from alcid.types import DATETIME_TYPES, DataType

COLLATED, OLD_CALENDAR = "collated by", "dates of the old calendar"
"""How the problem of a column begins that Spark compares, or reads, otherwise."""

FIELD_ID = b"PARQUET:field_id"
"""What Arrow calls the number that some tables know a column by, in the metadata of a field."""

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_DATETIME, _LEGACY_INT96 = (
    b"org.apache.spark.legacyDateTime",
    b"org.apache.spark.legacyINT96",
)
_FIRST_CORRECT = {_LEGACY_DATETIME: b"3.0.0", _LEGACY_INT96: b"3.1.0"}
_OLD_SCHEMA = b"StructType("  # of Spark before 1.2, which had neither CHAR(n) nor collations
_CHAR, _COLLATIONS = "__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A top-level column of a file."""

    name: str
    """As the file spells it."""
    leaf: int
    """The number of its first leaf column in the file."""
    arrow_type: Any
    """The type that `read_rows` gives."""
    data_type: DataType | None = None
    """Its type; None if there is no such type here."""
    problem: str = ""
    """Why it gets neither index nor statistics; empty if it may get both."""
    field_id: int | None = None
    """The number that the file has beside it; Iceberg knows columns by these."""

    @property
    def nested(self) -> bool:
        """Whether a row may have none, or many, or several values."""
        return pa.types.is_nested(stored_type(self.arrow_type))  # type: ignore[no-any-return]

    @property
    def has_bounds(self) -> bool:
        """Whether it may get statistics: it is flat, and not INT96, which has no order."""
        if self.problem or self.data_type is None or self.nested:
            return False
        # Only INT96 is a TIMESTAMP_LTZ to Spark where Arrow sees no zone.
        is_instant = self.data_type.root == "TIMESTAMP_LTZ"
        return not is_instant or stored_type(self.arrow_type).tz is not None


def file_columns(
    metadata: pq.FileMetaData, file: str, encrypted: Collection[int] = frozenset()
) -> tuple[FileColumn, ...]:
    """The columns of a file, in its order.

    Args:
        metadata: Its footer.
        file: What errors call it.
        encrypted: The first leaves of the columns that cannot be read, as far as it is known.

    Raises:
        FormatError: The schema is damaged; or Spark's is, so that collations may be hidden in it.
    """
    properties = metadata.metadata or {}
    spark = _spark_fields(properties, file)
    old = {key for key in _FIRST_CORRECT if _is_old(properties, key)}
    try:
        schema = _arrow_schema(metadata)
        placed = list(place_columns(schema))
        physical = [
            metadata.schema.column(leaf).physical_type for leaf in range(len(metadata.schema))
        ]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(f"damaged schema: {str(error).splitlines()[0]}", file=file) from None
    ends = [column.leaf for column in placed[1:]] + [len(physical)]
    return tuple(
        replace(column, problem="encrypted")
        if column.leaf in encrypted
        else _describe(
            column, "INT96" in physical[column.leaf : end], spark.get(column.name, {}), old
        )
        for column, end in zip(placed, ends, strict=True)
    )


def place_columns(fields: Iterable[pa.Field]) -> Iterator[FileColumn]:
    """Columns by name, Arrow type and id, each with the number of its first leaf."""
    leaf = 0
    for field in fields:
        yield FileColumn(field.name, leaf, storage_type(field.type), field_id=field_id(field))
        leaf += leaf_count(field.type)


def field_id(field: pa.Field) -> int | None:
    """The number that a Parquet file has beside a column or a field within one.

    >>> field_id(pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}))
    1
    """
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def _arrow_schema(metadata: pq.FileMetaData) -> pa.Schema:
    """The types as they are read: INT96 in microseconds, see `alcid.datafiles.parquet.virtual`."""
    empty = pa.BufferReader(b"")  # the footer is known, and nothing else is read
    return pq.ParquetFile(empty, metadata=metadata, coerce_int96_timestamp_unit="us").schema_arrow


def stored_type(arrow_type: Any) -> Any:
    """The type without extension or dictionary, which Parquet does not store."""
    while pa.types.is_dictionary(arrow_type := storage_type(arrow_type)):
        arrow_type = arrow_type.value_type
    return arrow_type


def _describe(
    column: FileColumn, is_int96: bool, spark_metadata: Mapping[str, Any], old: Collection[bytes]
) -> FileColumn:
    """A column with its type, and what Spark's schema says of it."""
    try:
        data_type = DataType.from_arrow(column.arrow_type)
        if _CHAR in spark_metadata and data_type.root == "VARCHAR":
            data_type = DataType.from_spark(str(spark_metadata[_CHAR]))
    except UnsupportedError as error:
        return replace(column, problem=str(error))
    if is_int96 and data_type.root == "TIMESTAMP":
        data_type = replace(data_type, root="TIMESTAMP_LTZ")  # as Spark reads it
    problem, legacy = "", _LEGACY_INT96 if is_int96 else _LEGACY_DATETIME
    if spark_metadata.get(_COLLATIONS):
        names = ", ".join(sorted({str(name) for name in spark_metadata[_COLLATIONS].values()}))
        problem = f"{COLLATED} {names}"
    elif legacy in old and _has_datetimes(data_type):
        problem = f"{OLD_CALENDAR} ({legacy.decode()})"
    return replace(column, data_type=data_type, problem=problem)


def _has_datetimes(data_type: DataType) -> bool:
    """Whether there are dates or timestamps in it."""
    return data_type.root in DATETIME_TYPES or any(map(_has_datetimes, data_type.children))


def _is_old(metadata: Mapping[bytes, bytes], key: bytes) -> bool:
    """Whether Spark takes timestamps of the file for the old calendar; it compares text."""
    version = metadata.get(_SPARK_VERSION)
    return key in metadata or (version is not None and version < _FIRST_CORRECT[key])


def _spark_fields(metadata: Mapping[bytes, bytes], file: str) -> dict[str, dict[str, Any]]:
    """The metadata of the columns in Spark's schema, by name."""
    text = metadata.get(_SPARK_SCHEMA, _OLD_SCHEMA)
    if text.startswith(_OLD_SCHEMA):
        return {}
    try:
        by_name = {field["name"]: field.get("metadata", {}) for field in json.loads(text)["fields"]}
        if all(isinstance(each.get(_COLLATIONS, {}), dict) for each in by_name.values()):
            return by_name
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise FormatError("damaged Spark schema in the metadata", file=file, found=text[:40])
