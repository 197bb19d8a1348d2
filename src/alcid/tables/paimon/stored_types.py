"""The columns of a Paimon table as its Parquet files hold them.

| type                                       | in the file                                         |
|--------------------------------------------|-----------------------------------------------------|
| TIME                                       | milliseconds, whatever its precision                |
| TIMESTAMP(0..3), (4..6)                    | milliseconds, microseconds                          |
| TIMESTAMP(7..9)                            | INT96, and with it all timestamps of the file       |
| BINARY(n), CHAR(n)                         | as long as they are: nothing is padded              |
| DECIMAL of up to 9, 18 digits              | an integer                                          |

Arrow writes INT96 for all timestamps of a file or for none, and Paimon reads either in any column.
Nanoseconds as INT64, which Arrow writes else, it does not read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import ColumnError, UnsupportedError
from alcid.paimon_metadata.schema import TableSchema
from alcid.tables.target_columns import TargetColumns, fit_columns
from alcid.types import DataType
from alcid.types.data_type import MAX_LENGTH

__all__ = ["check_lengths", "fit_stored", "has_nanoseconds", "stored_schema"]

_MICROSECONDS = 6
_MILLISECONDS = 3
_TEXTS = ("CHAR", "VARCHAR")
_BINARIES = ("BINARY", "VARBINARY")
_NOT_WRITTEN = ("VARIANT", "BLOB", "VECTOR")


def stored_schema(schema: TableSchema) -> pa.Schema:
    """What files of a table hold: types, ids, and what must not be null.

    Raises:
        UnsupportedError: A column of a type that is not written.

    >>> schema = TableSchema.of([("at", DataType.parse("TIME(6)"))], [], [], {}, not_null=["at"])
    >>> print(stored_schema(schema).field("at"))
    pyarrow.Field<at: time32[ms] not null>
    """
    in_nanoseconds = has_nanoseconds(schema)
    fields = []
    for one in schema.fields:
        found = next((kind for kind in _all(one.data_type) if kind.root in _NOT_WRITTEN), None)
        if found is not None:
            raise UnsupportedError(f"column {one.name}: {found} is not written")
        kind = _stored_type(one.data_type, in_nanoseconds)
        fields.append(
            pa.field(one.name, kind, one.nullable, metadata={"PARQUET:field_id": str(one.id)})
        )
    return pa.schema(fields)


def fit_stored(given: pa.Schema, schema: TableSchema) -> TargetColumns:
    """The columns of files among those that are given.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A type that does not go into that of the table.
    """
    stored = stored_schema(schema)
    known = dict(zip(stored.names, stored.types, strict=True))
    fitted = fit_columns(given, known, [], any_unit=True)
    for field, source in zip(stored, fitted.sources, strict=True):
        if source is None and not field.nullable:
            raise ColumnError(f"column {field.name}: NOT NULL in the table, and not given")
    return replace(fitted, schema=stored)


def has_nanoseconds(schema: TableSchema) -> bool:
    """Whether timestamps are to be written as INT96."""
    return any(
        kind.root.startswith("TIMESTAMP") and kind.precision > _MICROSECONDS
        for one in schema.fields
        for kind in _all(one.data_type)
    )


def check_lengths(rows: pa.Table, schema: TableSchema) -> None:
    """See that no text is longer than the table has it; those within other values are not seen.

    Raises:
        UnsupportedError: One is.
    """
    for one in schema.fields:
        kind, values = one.data_type, rows.column(one.name)
        if kind.root not in _TEXTS + _BINARIES or kind.length == MAX_LENGTH:
            continue
        lengths = pc.utf8_length(values) if kind.root in _TEXTS else pc.binary_length(values)
        longest = pc.max(lengths).as_py() or 0
        if longest > kind.length:
            raise UnsupportedError(f"column {one.name}: found length {longest}, expected {kind}")


def _all(data_type: DataType) -> list[DataType]:
    """A type, and those within."""
    return [data_type, *(kind for child in data_type.children for kind in _all(child))]


def _stored_type(data_type: DataType, in_nanoseconds: bool) -> Any:
    children = [_stored_type(child, in_nanoseconds) for child in data_type.children]
    match data_type.root:
        case "BINARY":
            return pa.binary()
        case "TIME":
            return pa.time32("ms")
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            unit = "ms" if data_type.precision <= _MILLISECONDS else "us"
            zone = "UTC" if data_type.root == "TIMESTAMP_LTZ" else None
            return pa.timestamp("ns" if in_nanoseconds else unit, zone)
        case "ARRAY":
            return pa.list_(pa.field("element", children[0]))
        case "MAP":
            return pa.map_(*children)
        case "MULTISET":
            return pa.map_(children[0], pa.int32())
        case "ROW":
            return pa.struct(list(zip(data_type.names, children, strict=True)))
    return data_type.to_arrow()
