"""The columns of a Parquet file, as Spark reads them: their types, and which are left alone.

Spark writes its own schema into the footer. It tells what Parquet's schema does not: CHAR(n) and
VARCHAR(n), and collations, by which texts of other bytes may be equal. An index or a bound that
goes by the bytes would then hide rows, so a collated column gets neither. Nor do dates and
timestamps that were written in the calendar before 1582: Spark moves them when it reads them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from alcid.errors import FormatError, UnsupportedError
from alcid.parquet_file import Field, FileLayout
from alcid.parquet_file.virtual import arrow_schema
from alcid.types import DataType

__all__ = ["FileColumn", "file_columns"]

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_MOMENTS, _LEGACY_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
_FIRST_CORRECT = {_LEGACY_MOMENTS: b"3.0.0", _LEGACY_INT96: b"3.1.0"}
_OLD_SCHEMA = b"StructType("  # of Spark before 1.2, which had neither CHAR(n) nor collations
_CHAR, _COLLATIONS = "__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_INT96 = 3


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A top-level column of a file."""

    name: str
    """As the file spells it."""
    leaf: int
    """The number of its first leaf column in the file."""
    field: Field
    arrow_type: Any = None
    """The type that `read_rows` gives; None if it cannot be read."""
    data_type: DataType | None = None
    """Its type; None if there is no such type here."""
    problem: str = ""
    """Why it gets neither index nor statistics; empty if it may get both."""

    @property
    def has_bounds(self) -> bool:
        """Whether it may get statistics: it is flat, and not INT96, which has no order."""
        flat = self.data_type is not None and not self.field.nested
        return flat and not self.problem and self.field.leaves[0].physical_type != _INT96


def file_columns(layout: FileLayout, metadata: Mapping[bytes, bytes]) -> tuple[FileColumn, ...]:
    """The columns of a file, in its order.

    Args:
        layout: All columns of the file.
        metadata: Keys and values of its footer.

    Raises:
        FormatError: Spark's schema is damaged, so that collations may be hidden in it.
    """
    spark = _spark_fields(metadata, layout.file)
    old = {key for key in _FIRST_CORRECT if _is_old(metadata, key)}
    readable = tuple(column.field for column in layout.columns if column.leaves)
    arrow = iter(arrow_schema(readable, layout.file) if readable else ())
    found = []
    leaf = 0
    for column in layout.columns:
        field = column.field
        if column.leaves:
            told = spark.get(field.name, {})
            found.append(_column(field, leaf, next(arrow).type, told, old))
        else:
            found.append(FileColumn(field.name, leaf, field, problem=column.whole))
        leaf += len(field.leaves)
    return tuple(found)


def _column(
    field: Field, leaf: int, arrow_type: Any, told: Mapping[str, Any], old: Collection[bytes]
) -> FileColumn:
    """A column that can be read, of which Spark's schema has `told` some metadata."""
    is_int96 = any(leaf.physical_type == _INT96 for leaf in field.leaves)
    try:
        data_type = DataType.from_arrow(arrow_type)
        if _CHAR in told and data_type.root == "VARCHAR":
            data_type = DataType.from_spark(str(told[_CHAR]))
    except UnsupportedError as error:
        return FileColumn(field.name, leaf, field, arrow_type, problem=str(error))
    if is_int96 and data_type.root == "TIMESTAMP":
        data_type = replace(data_type, root="TIMESTAMP_LTZ")  # as Spark reads it
    problem = ""
    if told.get(_COLLATIONS):
        names = ", ".join(sorted({str(name) for name in told[_COLLATIONS].values()}))
        problem = f"collated by {names}"
    elif (key := _LEGACY_INT96 if is_int96 else _LEGACY_MOMENTS) in old and _moments(data_type):
        problem = f"dates of the old calendar ({key.decode()})"
    return FileColumn(field.name, leaf, field, arrow_type, data_type, problem)


def _moments(data_type: DataType) -> bool:
    """Whether there are dates or timestamps in it."""
    return data_type.root in _MOMENTS or any(map(_moments, data_type.children))


def _is_old(metadata: Mapping[bytes, bytes], key: bytes) -> bool:
    """Whether Spark takes moments of the file for those of the old calendar; it compares text."""
    version = metadata.get(_SPARK_VERSION)
    return key in metadata or (version is not None and version < _FIRST_CORRECT[key])


def _spark_fields(metadata: Mapping[bytes, bytes], file: str) -> dict[str, dict[str, Any]]:
    """The metadata of the columns in Spark's schema, by name."""
    text = metadata.get(_SPARK_SCHEMA, _OLD_SCHEMA)
    if text.startswith(_OLD_SCHEMA):
        return {}
    try:
        told = {field["name"]: field.get("metadata", {}) for field in json.loads(text)["fields"]}
        if all(isinstance(one.get(_COLLATIONS, {}), dict) for one in told.values()):
            return told
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise FormatError("damaged Spark schema in the metadata", file=file, found=text[:40])
