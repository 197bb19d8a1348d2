"""The columns of a file as bytes: a schema message of Arrow, which the table of files keeps.

A field has the type that `read_rows` gives. Its metadata say what Arrow's type does not:

    alcid.type         the type, as Paimon writes it; missing if there is none here
    alcid.problem      why the column gets neither index nor statistics; missing if it may
    PARQUET:field_id   the number that the file has beside it; missing if it has none

Files of one table have the same bytes as a rule, and a bundle keeps equal ones once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.tables.file_columns import FIELD_ID, FileColumn, place_columns
from alcid.types import DataType

__all__ = ["schema_bytes", "schema_columns"]

_TYPE, _PROBLEM = b"alcid.type", b"alcid.problem"


def schema_bytes(columns: Iterable[FileColumn]) -> bytes:
    """All columns of a file, in its order.

    >>> column = FileColumn("id", 0, pa.int64(), DataType.parse("BIGINT"))
    >>> schema_columns(schema_bytes([column]), file="a.parquet") == (column,)
    True
    """
    data: bytes = pa.schema([_field(column) for column in columns]).serialize().to_pybytes()
    return data


def schema_columns(data: bytes, *, file: str) -> tuple[FileColumn, ...]:
    """The columns again.

    A type of a later version is none here, so that its column gets no index.

    Args:
        data: What `schema_bytes` gave.
        file: What errors call it.

    Raises:
        FormatError: The bytes are damaged.
    """
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(data))
        placed = place_columns(schema)
        return tuple(
            _described(column, field.metadata or {})
            for column, field in zip(placed, schema, strict=True)
        )
    except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"damaged schema in a bundle: {problem}", file=file) from None


def _field(column: FileColumn) -> pa.Field:
    said: dict[bytes, str] = {}
    if column.data_type is not None:
        said[_TYPE] = str(column.data_type)
    if column.problem:
        said[_PROBLEM] = column.problem
    if column.field_id is not None:
        said[FIELD_ID] = str(column.field_id)
    return pa.field(column.name, column.arrow_type, metadata=said or None)


def _described(column: FileColumn, metadata: dict[bytes, bytes]) -> FileColumn:
    problem = metadata.get(_PROBLEM, b"").decode()
    if _TYPE not in metadata:
        return replace(column, problem=problem or "no type")
    try:
        data_type = DataType.parse(metadata[_TYPE].decode())
    except UnsupportedError as error:
        return replace(column, problem=problem or str(error))
    return replace(column, data_type=data_type, problem=problem)
