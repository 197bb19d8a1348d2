"""One schema for files that were written over years.

A column that a file does not have is null there. Types are reconciled where no value is lost: to
the wider integer, to DOUBLE, to more digits, to finer ticks. Anything else is an error, because
then no type says what the column is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from alcid.errors import ColumnError, UnsupportedError
from alcid.options import fold_name
from alcid.plan import Column
from alcid.types import DataType

__all__ = ["common_type", "merge_schemas"]

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
