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

__all__ = ["TargetColumns", "common_type", "fit_columns", "merge_schemas"]

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
    found: dict[str, Column] = {}
    first_file: dict[str, str] = {}
    for file, columns in schemas:
        names = [fold_name(column.name) for column in columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ColumnError(f"{file}: column {twice}: fits more than one column")
        for name, column in zip(names, columns, strict=True):
            known = found.get(name)
            if known is None:
                found[name], first_file[name] = column, file
            elif known.arrow_type != column.arrow_type or known.data_type != column.data_type:
                found[name] = _merge(known, column, first_file[name], file)
    return list(found.values())


def _merge(known: Column, other: Column, first_file: str, file: str) -> Column:
    if types.is_null(other.arrow_type):
        return known
    if types.is_null(known.arrow_type):
        return Column(known.name, other.arrow_type, other.data_type)
    arrow_type = common_type(known.arrow_type, other.arrow_type)
    if arrow_type is None:
        raise UnsupportedError(
            f"{file}: column {other.name}: found {other.arrow_type}, "
            f"which does not go with {known.arrow_type} in {first_file}"
        )
    if known.data_type is None or other.data_type is None:
        return Column(known.name, arrow_type)
    if known.data_type == other.data_type:
        return Column(known.name, arrow_type, known.data_type)
    return Column(known.name, arrow_type, DataType.from_arrow(arrow_type))


def common_type(one: Any, other: Any) -> Any:
    """The type that holds all values of both; None if there is none.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int32(), pa.string())
    (DataType(int64), None)
    """
    one, other = _unwrapped(one), _unwrapped(other)
    if types.is_null(one) or types.is_null(other):
        return one if types.is_null(other) else other
    for common in (_numbers, _decimals, _texts, _moments, _nested):
        found = common(one, other)
        if found is not None:
            return found
    return one if one == other else None


def _unwrapped(arrow_type: Any) -> Any:
    """Without a dictionary."""
    return arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type


def _numbers(one: Any, other: Any) -> Any:
    if types.is_signed_integer(one) and types.is_signed_integer(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    if types.is_unsigned_integer(one) and types.is_unsigned_integer(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    if types.is_floating(one) and types.is_floating(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    return None


def _decimals(one: Any, other: Any) -> Any:
    if not (types.is_decimal(one) and types.is_decimal(other)):
        return None
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else None


def _texts(one: Any, other: Any) -> Any:
    for kinds, wide in (
        ((types.is_string, types.is_large_string, _is("string_view")), pa.large_string()),
        ((types.is_binary, types.is_large_binary, _is("binary_view")), pa.large_binary()),
    ):
        if all(any(kind(some) for kind in kinds) for some in (one, other)):
            return one if one == other else wide
    return None


def _is(name: str) -> Any:
    return getattr(types, f"is_{name}", lambda _: False)


def _moments(one: Any, other: Any) -> Any:
    if (
        types.is_timestamp(one)
        and types.is_timestamp(other)
        and (one.tz is None) == (other.tz is None)
    ):
        unit = max(one.unit, other.unit, key=_TICKS.index)
        return pa.timestamp(unit, one.tz)
    if types.is_date(one) and types.is_date(other):
        return pa.date32()
    return None


def _nested(one: Any, other: Any) -> Any:
    """The same nested type, though in one of them something cannot be null."""
    if one == other or not types.is_nested(one):
        return None
    loose = _nullable(one)
    return loose if loose == _nullable(other) else None


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
        for name, known in table.items():
            source = _find(name, inside)
            own = None if source is None else given.field(source).type
            arrow_type = known if own is None else _absorbed(name, own, known, any_unit)
            if not types.is_null(arrow_type):  # a column of which nothing is known stays away
                fields.append((name, written_type(arrow_type)))
                sources.append(None if source is None else names.index(source))
    if not any(source is not None for source in sources):
        raise ColumnError("no column is left for the files to hold, beside those in the paths")
    places = [None if name is None else names.index(name) for name in apart]
    return TargetColumns(pa.schema(fields), tuple(sources), tuple(partitions), tuple(places))


def _find(name: str, names: Sequence[str], *, required: bool = False) -> str | None:
    return find_column(name, names) if required else match_column(name, names)


def _new_type(field: pa.Field) -> Any:
    if types.is_null(field.type):
        raise UnsupportedError(f"column {field.name}: void has no values, give it a type")
    return written_type(field.type)


def _absorbed(name: str, given: Any, known: Any, any_unit: bool) -> Any:
    """The type of the table, if it holds all values of the given one."""
    if types.is_null(known):
        return given
    if _holds(written_type(known), written_type(given), any_unit):
        return known
    raise UnsupportedError(f"column {name}: {given} does not go into {known}, as the table has it")


def _holds(known: Any, given: Any, any_unit: bool) -> bool:
    if types.is_map(known) and types.is_map(given):
        return _holds(known.key_type, given.key_type, any_unit) and _holds(
            known.item_type, given.item_type, any_unit
        )
    if types.is_list(known) and types.is_list(given):
        return _holds(known.value_type, given.value_type, any_unit)
    if types.is_struct(known) and types.is_struct(given):
        return [field.name for field in known] == [field.name for field in given] and all(
            _holds(one.type, other.type, any_unit) for one, other in zip(known, given, strict=True)
        )
    if any_unit and types.is_time(known) and types.is_time(given):
        return True
    if any_unit and types.is_timestamp(known) and types.is_timestamp(given):
        return bool(known.tz == given.tz)  # none, or UTC: as both are written
    if types.is_binary(known) and types.is_fixed_size_binary(given):
        return True
    if types.is_unsigned_integer(given) and not types.is_unsigned_integer(known):
        given = DataType.from_arrow(given).to_arrow()  # the next wider type that has a sign
    return bool(common_type(known, given) == known)


def _cast(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type == field.type:
        return values
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        problem = str(error).splitlines()[0]
        raise UnsupportedError(f"column {field.name}: {problem}") from None
