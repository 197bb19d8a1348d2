"""Rows that are to be appended, in the columns of the table.

Columns go by name. A narrower type is widened, a column that is not given is null; what the table
does not know, or what could lose values, is an error that names the column. A table without files
takes the columns as they are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types

from alcid.errors import ColumnError, UnsupportedError
from alcid.options import find_column, fold_name, match_column
from alcid.tables.table_schema import common_type
from alcid.tables.writing import written_type
from alcid.types import DataType

__all__ = ["TargetColumns", "fit_columns"]


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
