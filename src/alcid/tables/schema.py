"""The schema of a table: merged from its files, and fitted with rows that are appended.

Files were written over years. A column that a file does not have is null there. Types are
reconciled where no value is lost: to the wider integer, to DOUBLE, to more digits, to finer ticks.
Anything else is an error, because then no type says what the column is.

Columns of appended rows go by name. A narrower type is widened, a missing column is null; a column
that the table does not have, or a type that could lose values, is an error that names the column. A
table without files takes the columns as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types

from alcid.errors import ColumnError, UnsupportedError
from alcid.options import find_column, fold_name, match_column
from alcid.scan import Column
from alcid.tables.parquet_writer import written_type
from alcid.types import DataType

_TICKS = ("s", "ms", "us", "ns")


def merge_schemas(schemas: Sequence[tuple[str, Sequence[Column]]]) -> list[Column]:
    """The columns of a table, in the order in which files bring them.

    Args:
        schemas: A file of each schema, to be named in errors, and its columns.

    Raises:
        UnsupportedError: A column has types that cannot be reconciled.
        ColumnError: A file has two columns whose names are the same.

    >>> merge_schemas([("a", [Column("id", pa.int32())]), ("b", [Column("ID", pa.int64())])])
    [Column(name='id', arrow_type=DataType(int64), ...)]
    """
    merged: dict[str, Column] = {}
    first_file: dict[str, str] = {}
    for file, columns in schemas:
        names = [fold_name(column.name) for column in columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ColumnError(f"{file}: column {twice}: fits more than one column")
        for name, column in zip(names, columns, strict=True):
            before = merged.get(name)
            if before is None:
                merged[name], first_file[name] = column, file
            elif before.arrow_type != column.arrow_type or before.data_type != column.data_type:
                merged[name] = _merge(before, column, first_file[name], file)
    return list(merged.values())


def _merge(first: Column, other: Column, first_file: str, file: str) -> Column:
    if types.is_null(other.arrow_type):
        return first
    if types.is_null(first.arrow_type):
        return Column(first.name, other.arrow_type, other.data_type)
    arrow_type = common_type(first.arrow_type, other.arrow_type)
    if arrow_type is None:
        raise UnsupportedError(
            f"{file}: column {other.name}: found {other.arrow_type}, "
            f"which does not go with {first.arrow_type} in {first_file}"
        )
    if first.data_type is None or other.data_type is None:
        return Column(first.name, arrow_type)
    if first.data_type == other.data_type:
        return Column(first.name, arrow_type, first.data_type)
    return Column(first.name, arrow_type, DataType.from_arrow(arrow_type))


def common_type(left: Any, right: Any) -> Any:
    """The type that holds all values of both; None if there is none.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int32(), pa.string())
    (DataType(int64), None)
    """
    left, right = _unwrapped(left), _unwrapped(right)
    if types.is_null(left) or types.is_null(right):
        return left if types.is_null(right) else right
    for common in (_numbers, _decimals, _texts, _timestamps, _nested):
        merged_type = common(left, right)
        if merged_type is not None:
            return merged_type
    return left if left == right else None


def _unwrapped(arrow_type: Any) -> Any:
    """Without a dictionary."""
    return arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type


def _numbers(left: Any, right: Any) -> Any:
    if types.is_signed_integer(left) and types.is_signed_integer(right):
        return max(left, right, key=lambda kind: kind.bit_width)
    if types.is_unsigned_integer(left) and types.is_unsigned_integer(right):
        return max(left, right, key=lambda kind: kind.bit_width)
    if types.is_floating(left) and types.is_floating(right):
        return max(left, right, key=lambda kind: kind.bit_width)
    return None


def _decimals(left: Any, right: Any) -> Any:
    if not (types.is_decimal(left) and types.is_decimal(right)):
        return None
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else None


def _texts(left: Any, right: Any) -> Any:
    for kinds, wide in (
        ((types.is_string, types.is_large_string, _is("string_view")), pa.large_string()),
        ((types.is_binary, types.is_large_binary, _is("binary_view")), pa.large_binary()),
    ):
        if all(any(kind(some) for kind in kinds) for some in (left, right)):
            return left if left == right else wide
    return None


def _is(name: str) -> Any:
    return getattr(types, f"is_{name}", lambda _: False)


def _timestamps(left: Any, right: Any) -> Any:
    if (
        types.is_timestamp(left)
        and types.is_timestamp(right)
        and (left.tz is None) == (right.tz is None)
    ):
        unit = max(left.unit, right.unit, key=_TICKS.index)
        return pa.timestamp(unit, left.tz)
    if types.is_date(left) and types.is_date(right):
        return pa.date32()
    return None


def _nested(left: Any, right: Any) -> Any:
    """The same nested type, though in one of them something cannot be null."""
    if left == right or not types.is_nested(left):
        return None
    loose = _nullable(left)
    return loose if loose == _nullable(right) else None


def _nullable(given: Any) -> Any:
    """The type with all in it that may be null."""
    if types.is_map(given):
        return pa.map_(_nullable(given.key_type), _nullable(given.item_type))
    if types.is_struct(given):
        return pa.struct([(field.name, _nullable(field.type)) for field in given])
    if types.is_list(given):
        return pa.list_(pa.field("element", _nullable(given.value_type)))
    return given


@dataclass(frozen=True, slots=True)
class TargetColumns:
    """The columns of files to be written, and where their values come from."""

    schema: pa.Schema
    """What the files hold."""
    sources: tuple[int | None, ...]
    """For each of these the place among the given columns; None: it is null."""
    partitions: tuple[str, ...]
    """The columns that stand in the paths, in the order of the folders."""
    partition_sources: tuple[int | None, ...]

    def rows(self, columns: Sequence[pa.Array]) -> pa.Table:
        """Rows as the files hold them.

        Args:
            columns: Those that `sources` names, in its order, without the missing ones.

        Raises:
            UnsupportedError: A value does not fit the type of the table, or is null and must not.
        """
        given = iter(columns)
        count = len(columns[0])
        arrays = [
            pa.nulls(count, field.type) if source is None else _cast(next(given), field)
            for field, source in zip(self.schema, self.sources, strict=True)
        ]
        for field, values in zip(self.schema, arrays, strict=True):
            if not field.nullable and values.null_count:
                raise UnsupportedError(f"column {field.name}: found null, expected NOT NULL")
        return pa.Table.from_arrays(arrays, schema=self.schema)


def fit_columns(
    given: pa.Schema,
    table: Mapping[str, Any] | None,
    partitions: Sequence[str],
    *,
    any_unit: bool = False,
) -> TargetColumns:
    """Find the columns of a table among those that are given.

    Args:
        given: Names and types.
        table: The Arrow types of the columns that the files of the table have, without those in the
            paths; None if it has no files.
        partitions: The columns in the paths; of a table without files they must be given.
        any_unit: Take times and timestamps of a finer unit than that of the table. It is for
            `rows` to find a value that loses a part.

    Raises:
        ColumnError: A column is given twice, or the table does not have it; or none is left that
            files could hold.
        UnsupportedError: A type does not go into that of the table.
    """
    names = given.names
    for name in names:
        match_column(name, names)  # fits more than one: error
    apart = [_find(name, names, required=table is None) for name in partitions]
    if len({fold_name(name) for name in partitions}) < len(partitions):
        raise ColumnError(f"partition_by: a column twice: {', '.join(partitions)}")
    inside = [name for name in names if match_column(name, partitions) is None]
    fields: list[tuple[str, Any]] = []
    sources: list[int | None] = []
    if table is None:
        fields = [(name, _new_type(given.field(name))) for name in inside]
        sources = [names.index(name) for name in inside]
    else:
        for name in inside:
            find_column(name, table)
        for name, table_type in table.items():
            source = _find(name, inside)
            row_type = None if source is None else given.field(source).type
            arrow_type = (
                table_type if row_type is None else _absorbed(name, row_type, table_type, any_unit)
            )
            if not types.is_null(arrow_type):  # a column of which nothing is known stays away
                fields.append((name, written_type(arrow_type)))
                sources.append(None if source is None else names.index(source))
    if not any(source is not None for source in sources):
        raise ColumnError("no column is left for the files to hold, beside those in the paths")
    partition_sources = [None if name is None else names.index(name) for name in apart]
    return TargetColumns(
        pa.schema(fields), tuple(sources), tuple(partitions), tuple(partition_sources)
    )


def _find(name: str, names: Sequence[str], *, required: bool = False) -> str | None:
    return find_column(name, names) if required else match_column(name, names)


def _new_type(field: pa.Field) -> Any:
    if types.is_null(field.type):
        raise UnsupportedError(f"column {field.name}: void has no values, give it a type")
    return written_type(field.type)


def _absorbed(name: str, row_type: Any, table_type: Any, any_unit: bool) -> Any:
    """The type of the table, if it holds all values of the given one."""
    if types.is_null(table_type):
        return row_type
    if _holds(written_type(table_type), written_type(row_type), any_unit):
        return table_type
    raise UnsupportedError(
        f"column {name}: {row_type} does not go into {table_type}, as the table has it"
    )


def _holds(table_type: Any, row_type: Any, any_unit: bool) -> bool:
    if types.is_map(table_type) and types.is_map(row_type):
        return _holds(table_type.key_type, row_type.key_type, any_unit) and _holds(
            table_type.item_type, row_type.item_type, any_unit
        )
    if types.is_list(table_type) and types.is_list(row_type):
        return _holds(table_type.value_type, row_type.value_type, any_unit)
    if types.is_struct(table_type) and types.is_struct(row_type):
        return [field.name for field in table_type] == [field.name for field in row_type] and all(
            _holds(inner.type, given.type, any_unit)
            for inner, given in zip(table_type, row_type, strict=True)
        )
    if any_unit and types.is_time(table_type) and types.is_time(row_type):
        return True
    if any_unit and types.is_timestamp(table_type) and types.is_timestamp(row_type):
        return bool(table_type.tz == row_type.tz)  # none, or UTC: as both are written
    if types.is_binary(table_type) and types.is_fixed_size_binary(row_type):
        return True
    if types.is_unsigned_integer(row_type) and not types.is_unsigned_integer(table_type):
        row_type = DataType.from_arrow(row_type).to_arrow()  # the next wider type that has a sign
    return bool(common_type(table_type, row_type) == table_type)


def _cast(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type == field.type:
        return values
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        problem = str(error).splitlines()[0]
        raise UnsupportedError(f"column {field.name}: {problem}") from None
