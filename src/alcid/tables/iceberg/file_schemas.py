"""The columns of a data file by their field ids, whatever they are called there.

Iceberg's writers put the id of a column beside it, and change characters of names that Avro does
not know. Files that were imported have no ids; the table property `schema.name-mapping.default`
says then which name is which column, and without it a column's place is its id:

```
[
    {"field-id": 1, "names": ["id"]},
    {"field-id": 2, "names": ["a"], "fields": [{"field-id": 3, "names": ["b"]}]},
]
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from alcid.errors import FormatError, UnsupportedError
from alcid.tables.file_columns import FileColumn, field_id, stored_type
from alcid.types import DataType

__all__ = ["IdColumn", "NameMapping", "columns_by_id"]

_PROPERTY: Final = "schema.name-mapping.default"
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class NameMapping:
    """Which column a name means, in files without ids."""

    ids: Mapping[str, int] = field(default_factory=dict)
    children: Mapping[str, NameMapping] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> NameMapping | None:
        """That of a table, by its properties; None if there is none.

        Raises:
            FormatError: It is damaged.

        >>> NameMapping.of({_PROPERTY: '[{"field-id": 1, "names": ["id", "ID"]}]'}).ids
        {'id': 1, 'ID': 1}
        """
        text = properties.get(_PROPERTY)
        if text is None:
            return None
        try:
            return cls._parse(json.loads(text), 0)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise FormatError("damaged", file=f"property {_PROPERTY}", found=text[:40]) from None

    @classmethod
    def _parse(cls, found: Iterable[Mapping[str, Any]], depth: int) -> NameMapping:
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        ids: dict[str, int] = {}
        children: dict[str, NameMapping] = {}
        for one in found:
            inner = cls._parse(one.get("fields", ()), depth + 1)
            for name in one["names"]:
                children[name] = inner
                if one.get("field-id") is not None:
                    ids[name] = int(one["field-id"])
        return cls(ids, children)

    def child(self, name: str) -> NameMapping:
        """That of the fields within one; none are known where it is not."""
        return self.children.get(name, NameMapping())


@dataclass(frozen=True, slots=True)
class IdColumn:
    """A column of a file whose id is known."""

    column: FileColumn
    id: int
    inner_ids: tuple[int, ...]
    """The ids of fields within its type, each before those within it; below 0 where unknown."""

    @property
    def name(self) -> str:
        """As the file spells it."""
        return self.column.name

    @property
    def data_type(self) -> DataType:
        """Its type.

        Raises:
            UnsupportedError: There is no such type here.
        """
        if self.column.data_type is None:
            raise UnsupportedError(f"column {self.name}: {self.column.problem}")
        return self.column.data_type


def columns_by_id(
    columns: Sequence[FileColumn], mapping: NameMapping | None, file: str
) -> dict[int, IdColumn]:
    """The columns of a file by their ids; those without one are nobody's.

    Args:
        columns: All columns of the file.
        mapping: What names mean, if the file has no ids. Where the table has none, the columns of
            such a file have their places as ids, from 1 on, and fields of structs none.
        file: What errors call it.

    Raises:
        FormatError: Two columns have the same id.
    """
    # As Iceberg does it: one id is enough for a file to be one with ids.
    has_ids = any(_has_ids(pa.field(one.name, one.arrow_type), one.field_id) for one in columns)
    names = None if has_ids else mapping
    found: dict[int, IdColumn] = {}
    for one in columns if has_ids or names is not None else _placed(columns):
        number = one.field_id if names is None else names.ids.get(one.name)
        if number is None:
            continue
        if number in found:
            raise FormatError(
                f"column {one.name}", file=file, found=f"field id {number} again", expected="others"
            )
        inner = None if names is None else names.child(one.name)
        ids = tuple(_inner_ids(one.arrow_type, inner, count(-1, -1)))
        found[number] = IdColumn(one, number, ids)
    return found


def _placed(columns: Sequence[FileColumn]) -> Iterator[FileColumn]:
    """The columns with their places as ids, but no fields of structs have any.

    Iceberg reads columns of structs whose fields it does not know as null. Maps of them keep their
    keys, which is not done here.
    """
    for place, one in enumerate(columns, 1):
        parts = set(_nested_types(one.arrow_type))
        if "struct" not in parts:
            yield replace(one, field_id=place)
        elif "map" in parts:
            problem = "a map of structs without field ids"
            yield replace(one, field_id=place, data_type=None, problem=problem)


def _nested_types(given: Any) -> Iterator[str]:
    given = stored_type(given)
    if types.is_map(given):
        yield "map"
        for one in (given.key_field, given.item_field):
            yield from _nested_types(one.type)
    elif types.is_nested(given):
        yield "struct" if types.is_struct(given) else "list"
        for one in _fields(given):
            yield from _nested_types(one.type)


def _has_ids(one: pa.Field, number: int | None) -> bool:
    return number is not None or any(
        _has_ids(inner, field_id(inner)) for inner in _fields(stored_type(one.type))
    )


def _fields(given: Any) -> list[pa.Field]:
    return [given.field(place) for place in range(given.num_fields)]


def _inner_ids(given: Any, names: NameMapping | None, unknown: Iterator[int]) -> Iterator[int]:
    """The ids of fields of structs, in the order of `IdColumn.inner_ids`."""
    given = stored_type(given)
    if types.is_struct(given):
        for one in _fields(given):
            number = field_id(one) if names is None else names.ids.get(one.name)
            yield next(unknown) if number is None else number
            inner = None if names is None else names.child(one.name)
            yield from _inner_ids(one.type, inner, unknown)
    elif types.is_map(given):
        for one, part in ((given.key_field, "key"), (given.item_field, "value")):
            inner = None if names is None else names.child(part)
            yield from _inner_ids(one.type, inner, unknown)
    elif types.is_nested(given):  # a list
        inner = None if names is None else names.child("element")
        yield from _inner_ids(given.value_type, inner, unknown)
