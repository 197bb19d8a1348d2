"""Columns of files that were written before the type of the column was changed.

Paimon's and Iceberg's Java cast each value when they read. Here this is done by the same rules, see
`alcid.tables.casts`; a value for which they are not known is an error, and so is a change that is
not in this table:

| from                     | to                                                                 |
|--------------------------|--------------------------------------------------------------------|
| integers                 | integers, floats, DECIMAL, BOOLEAN, VARCHAR                        |
| INT, BIGINT              | TIMESTAMP                                                          |
| FLOAT, DOUBLE            | floats, integers                                                   |
| DECIMAL                  | DECIMAL, integers, floats, VARCHAR                                 |
| BOOLEAN                  | numbers, VARCHAR                                                   |
| CHAR, VARCHAR            | numbers, BOOLEAN, DATE, TIMESTAMP, VARCHAR, VARBINARY              |
| BINARY, VARBINARY        | VARBINARY, VARCHAR                                                 |
| DATE                     | TIMESTAMP, VARCHAR                                                 |
| TIMESTAMP                | INT, BIGINT, DATE, VARCHAR                                         |
| TIME, TIMESTAMP, LTZ     | the same with other digits                                         |

Fields of a ROW are the same if their ids are, as columns are; one that was added is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.tables.casts import CASTS, cast_leaf
from alcid.types import DataType

__all__ = ["FieldConversion", "TypedField", "column_type", "convert"]


def column_type(data_type: DataType) -> Any:
    """The Arrow type of a column; BINARY(n) as bytes of any length, as Paimon does not pad."""
    return pa.binary() if data_type.root == "BINARY" else data_type.to_arrow()


class TypedField(Protocol):
    """A column of a schema that has ids."""

    @property
    def data_type(self) -> DataType:
        """Its type."""

    @property
    def inner_ids(self) -> tuple[int, ...]:
        """The ids of the fields within its type, each before those within it."""


def convert(own: TypedField, wanted: TypedField) -> FieldConversion | None:
    """What makes values of the table out of those of a file; None if they are the same.

    Args:
        own: The column as the schema of the file has it.
        wanted: The same as the table has it.
    """
    before, after = _Node.of(own), _Node.of(wanted)
    if before == after or _is_longer(before.data_type, after.data_type):
        return None
    return FieldConversion(before, after, column_type(after.data_type))


def _is_longer(before: DataType, after: DataType) -> bool:
    """Whether a text or bytes may only be longer than before."""
    return before.root == after.root in ("VARCHAR", "VARBINARY") and before.length <= after.length


@dataclass(frozen=True, slots=True)
class _Node:
    """A type, with the ids of its fields if it is a ROW."""

    data_type: DataType
    ids: tuple[int, ...]
    children: tuple[_Node, ...]

    @classmethod
    def of(cls, field: TypedField) -> _Node:
        return cls._next(field.data_type, iter(field.inner_ids))

    @classmethod
    def _next(cls, data_type: DataType, ids: Iterator[int]) -> _Node:
        own, children = [], []
        for child in data_type.children:
            if data_type.root == "ROW":
                own.append(next(ids))
            children.append(cls._next(child, ids))
        return cls(data_type, tuple(own), tuple(children))


@dataclass(frozen=True, slots=True)
class FieldConversion:
    """A change of the type of a column."""

    own: _Node
    wanted: _Node
    arrow_type: Any

    def __call__(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values as the table has them.

        Raises:
            UnsupportedError: One of them would not be what Java reads.
        """
        chunks = [_convert(one, self.own, self.wanted, self.arrow_type) for one in values.chunks]
        return pa.chunked_array(chunks, self.arrow_type)


def _convert(values: pa.Array, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    before, after = own.data_type, wanted.data_type
    if own == wanted:
        return _cast(values, before, after, arrow_type)
    if before.root == after.root and after.root in _NESTED:
        if values.type.id != arrow_type.id:  # the file is not what its schema says
            return _cast(values, before, after, arrow_type)
        return _NESTED[after.root](values, own, wanted, arrow_type)
    if after.root not in CASTS.get(before.root, ()):
        raise UnsupportedError(
            f"found {before}, expected {after} as in the table: such a change is not read"
        )
    try:
        # Some files hold other digits than their schema says, as ORC nanoseconds.
        values = _cast(values, before, before, column_type(before))
        return cast_leaf(values, before, after, arrow_type)
    except pa.ArrowException as error:
        raise _problem(before, after, error) from None


def _cast(values: pa.Array, before: DataType, after: DataType, arrow_type: Any) -> pa.Array:
    try:
        return values if values.type == arrow_type else values.cast(arrow_type)
    except pa.ArrowException as error:
        raise _problem(before, after, error) from None


def _problem(before: DataType, after: DataType, error: pa.ArrowException) -> UnsupportedError:
    problem = str(error).splitlines()[0]
    return UnsupportedError(f"found {before}, expected {after} as in the table: {problem}")


def _row(values: pa.StructArray, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    names = dict(zip(own.ids, own.data_type.names, strict=True))
    nodes = dict(zip(own.ids, own.children, strict=True))
    children = []
    for number, child, field in zip(wanted.ids, wanted.children, arrow_type, strict=True):
        place = values.type.get_field_index(names[number]) if number in names else -1
        children.append(
            pa.nulls(len(values), field.type)
            if place < 0
            else _convert(values.field(place), nodes[number], child, field.type)
        )
    return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=values.is_null())


def _array(values: pa.ListArray, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    (before,), (after,) = own.children, wanted.children
    return _filled(
        values, arrow_type, _convert(values.values, before, after, arrow_type.value_type)
    )


def _map(values: pa.MapArray, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    kinds = arrow_type.key_type, arrow_type.item_type
    inside = zip((values.keys, values.items), own.children, wanted.children, kinds, strict=True)
    pairs = [_convert(*one) for one in inside]
    fields = [arrow_type.key_field, arrow_type.item_field]
    return _filled(values, arrow_type, pa.StructArray.from_arrays(pairs, fields=fields))


def _filled(values: pa.Array, arrow_type: Any, child: pa.Array) -> pa.Array:
    """Lists or maps of the same lengths as others, with another child."""
    return pa.Array.from_buffers(
        arrow_type, len(values), values.buffers()[:2], -1, values.offset, [child]
    )


_NESTED: Final = {"ROW": _row, "ARRAY": _array, "MAP": _map}
