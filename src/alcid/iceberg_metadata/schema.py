"""The columns of a table, by field id.

```
{
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {
            "id": 2,
            "name": "tags",
            "required": false,
            "type": {
                "type": "list",
                "element-id": 3,
                "element-required": false,
                "element": "string",
            },
        },
    ],
}
```

A column keeps its id for life, and data files have the id beside each column: names do not matter
there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from alcid.errors import ColumnError, UnsupportedError
from alcid.iceberg_metadata.metadata_json import MetadataJson
from alcid.types import MAX_LENGTH, DataType

__all__ = ["Field", "Schema"]

_PRIMITIVES: Final = {
    "boolean": DataType("BOOLEAN"),
    "int": DataType("INT"),
    "long": DataType("BIGINT"),
    "float": DataType("FLOAT"),
    "double": DataType("DOUBLE"),
    "date": DataType("DATE"),
    "timestamp": DataType("TIMESTAMP", precision=6),
    "timestamptz": DataType("TIMESTAMP_LTZ", precision=6),
    "string": DataType("VARCHAR", length=MAX_LENGTH),
    "binary": DataType("VARBINARY", length=MAX_LENGTH),
}
_DECIMAL: Final = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_FIXED: Final = re.compile(r"fixed\[\s*[0-9]+\s*\]")
_MAX_DEPTH: Final = 64  # as deep as Arrow reads


@dataclass(frozen=True, slots=True)
class Field:
    """A column."""

    id: int
    name: str
    type_text: str
    """The type as Iceberg calls it: `decimal(10, 2)`, `list<string>`."""
    data_type: DataType | None
    """None if Alcid does not read it: see `problem`."""
    inner_ids: tuple[int, ...] = ()
    """The ids of the fields of structs within its type, each before those within it."""
    required: bool = False
    initial_default: Any = None
    """What rows have that were written before the column was there, as JSON has it."""
    problem: str = ""
    """Why there is no `data_type`."""

    @classmethod
    def from_json(cls, found: MetadataJson) -> Field:
        """One of `fields` of a schema or a struct."""
        name = found.text("name")
        kind = _Type.of(found, "type", name)
        return cls(
            found.integer("id"),
            name,
            kind.text,
            kind.data_type,
            kind.inner_ids,
            found.flag("required"),
            found.values.get("initial-default"),
            kind.problem,
        )


@dataclass(frozen=True)
class Schema:
    """One schema of a table.

    >>> found = {
    ...     "schema-id": 0,
    ...     "fields": [{"id": 1, "name": "u", "required": True, "type": "uuid"}],
    ... }
    >>> Schema.from_json(found).by_name["u"].problem
    'column u: uuid is not read natively'
    """

    id: int
    fields: tuple[Field, ...]

    @classmethod
    def from_json(cls, found: Mapping[str, Any], *, file: str = "<schema>") -> Schema:
        """Read one of `schemas`; that of the oldest tables has no number, which is 0 then.

        Raises:
            FormatError: It is damaged.
        """
        given = MetadataJson.of(found, file, "schema")
        fields = tuple(map(Field.from_json, given.children("fields")))
        _check_unique("name", [one.name for one in fields], given)
        ids = [number for one in fields for number in (one.id, *one.inner_ids)]
        _check_unique("field id", ids, given)
        return cls(given.integer("schema-id", 0), fields)

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """The columns by their id."""
        return {one.id: one for one in self.fields}

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The columns by exactly their name."""
        return {one.name: one for one in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(one.name for one in self.fields)

    def field(self, name: str) -> Field:
        """The column of exactly this name.

        Raises:
            ColumnError: There is none.
        """
        if name not in self.by_name:
            raise ColumnError(f"no column {name}, found {', '.join(self.names)}")
        return self.by_name[name]


def _check_unique(what: str, values: Sequence[object], given: MetadataJson) -> None:
    if len(set(values)) < len(values):
        twice = next(one for one in values if values.count(one) > 1)
        raise given.error(f"{what} {twice} is given twice in a schema")


@dataclass(frozen=True, slots=True)
class _Type:
    """A type of Iceberg, and what it is here."""

    text: str
    data_type: DataType | None
    inner_ids: tuple[int, ...] = ()
    problem: str = ""

    @classmethod
    def of(cls, owner: MetadataJson, key: str, path: str, depth: int = 0) -> _Type:
        """The type at `key`: a text, or an object if it is nested; `path` names the column."""
        if depth == _MAX_DEPTH:
            raise owner.error(f"column {path}: more than {_MAX_DEPTH} nested types")
        if isinstance(owner.values.get(key), str):
            return cls._primitive(owner.text(key), path)
        given = owner.child(key)
        root = given.text("type")
        if root == "struct":
            return cls._struct(given, path, depth)
        if root == "list":
            return cls._nested(given, "ARRAY", ("element",), path, depth)
        if root == "map":
            return cls._nested(given, "MAP", ("key", "value"), path, depth)
        raise given.error(f"column {path}: type", root, "struct, list or map")

    @classmethod
    def _primitive(cls, text: str, path: str) -> _Type:
        if text in _PRIMITIVES:
            return cls(text, _PRIMITIVES[text])
        if _FIXED.fullmatch(text):
            return cls(text, _PRIMITIVES["binary"])
        problem = f"column {path}: {text} is not read natively"
        if digits := _DECIMAL.fullmatch(text):
            try:
                data_type = DataType("DECIMAL", precision=int(digits[1]), scale=int(digits[2]))
                return cls(text, data_type)
            except UnsupportedError as error:
                problem = f"column {path}: {error}"
        return cls(text, None, problem=problem)

    @classmethod
    def _struct(cls, given: MetadataJson, path: str, depth: int) -> _Type:
        names, inner, ids = [], [], []
        for one in given.children("fields"):
            names.append(one.text("name"))
            kind = cls.of(one, "type", f"{path}.{names[-1]}", depth + 1)
            if one.has("initial-default"):
                problem = f"column {path}.{names[-1]}: an initial default within a column"
                kind = cls(kind.text, None, kind.inner_ids, f"{problem} is not read natively")
            inner.append(kind)
            ids += [one.integer("id"), *inner[-1].inner_ids]
        spelled = ", ".join(f"{name}: {one.text}" for name, one in zip(names, inner, strict=True))
        return cls._made(f"struct<{spelled}>", "ROW", tuple(inner), tuple(ids), names=tuple(names))

    @classmethod
    def _nested(
        cls, given: MetadataJson, root: str, parts: tuple[str, ...], path: str, depth: int
    ) -> _Type:
        inner = tuple(cls.of(given, part, f"{path}.{part}", depth + 1) for part in parts)
        ids = tuple(number for one in inner for number in one.inner_ids)
        spelled = ", ".join(one.text for one in inner)
        return cls._made(f"{given.text('type')}<{spelled}>", root, inner, ids)

    @classmethod
    def _made(
        cls, text: str, root: str, inner: tuple[_Type, ...], ids: tuple[int, ...], **more: Any
    ) -> _Type:
        """A nested type; what hinders one within it hinders it."""
        children = [one.data_type for one in inner if one.data_type is not None]
        if len(children) < len(inner):
            return cls(text, None, ids, next(one.problem for one in inner if one.problem))
        return cls(text, DataType(root, children=tuple(children), **more), ids)
