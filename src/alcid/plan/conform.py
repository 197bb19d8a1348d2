"""Rows of a file as rows of the table: columns by the table's names, in its types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.parquet_file.decoding import rows_without_columns
from alcid.plan.places import Places
from alcid.plan.table_files import DataFiles

__all__ = ["conform", "file_columns", "table_schema"]


def table_schema(table: DataFiles, columns: Sequence[str]) -> pa.Schema:
    """The schema of some columns of the table; every column may be null."""
    return pa.schema([(name, table.columns.columns[name].arrow_type) for name in columns])


def file_columns(table: DataFiles, file: int, columns: Sequence[str]) -> list[str]:
    """Those of some columns of the table that a file has, as it spells them."""
    inside = (name for name in columns if name not in table.columns.partitions)
    found = (table.columns.file_name(file, name) for name in inside)
    return [name for name in found if name is not None]


def conform(table: DataFiles, rows: pa.Table, columns: Sequence[str], places: Places) -> pa.Table:
    """Columns of the table, from rows that were read of files of one schema.

    Args:
        table: The table.
        rows: What was read; it may have more columns.
        columns: Of the table, those that the files do not have among them.
        places: Where the rows stand.

    Raises:
        UnsupportedError: A value does not fit the type that the table has.
    """
    schema = table_schema(table, columns)
    arrays = []
    for field in schema:
        if field.name in table.columns.partitions:
            values = _partition_values(table.partitions.column(field.name), places)
        elif (own := table.columns.file_name(places.first_file, field.name)) is not None:
            values = _converted(table, rows.column(own), field.name, places.first_file)
        else:
            values = pa.nulls(places.count, field.type)
        if values.type != field.type:
            values = _cast(table, values, field, places.first_file)
        arrays.append(values)
    if not arrays:
        return rows_without_columns(places.count)
    return pa.Table.from_arrays(arrays, schema=schema)


def _partition_values(values: pa.ChunkedArray, places: Places) -> pa.Array | pa.ChunkedArray:
    if places.one_file:
        return pa.repeat(values[places.first_file], places.count)
    return values.take(pa.array(places.files))


def _converted(
    table: DataFiles, values: pa.ChunkedArray, column: str, file: int
) -> pa.ChunkedArray:
    convert = table.columns.conversion(int(table.columns.schema_of[file]), column)
    if convert is None:
        return values
    try:
        return convert(values)
    except UnsupportedError as error:
        raise UnsupportedError(f"{table.paths[file]}: column {column}: {error}") from None


def _cast(table: DataFiles, values: pa.ChunkedArray, field: pa.Field, file: int) -> pa.ChunkedArray:
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        problem = str(error).splitlines()[0]
        raise UnsupportedError(
            f"{table.paths[file]}: column {field.name}: found {values.type}, "
            f"expected {field.type} as in the table: {problem}"
        ) from None
