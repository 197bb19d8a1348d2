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

JSON of a table's metadata, checked: what is missing or of another kind is a `FormatError`.

Unlike the footers of Puffin files, metadata are read leniently: many programs write them, older
ones leave members out, and members that are not known do not matter.

How the rows of a table are parted: each partition value is made of a column by a transform.

```
{"spec-id": 0, "fields": [{"source-id": 3, "field-id": 1000, "name": "ts_day", "transform": "day"}]}
```
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.types import MAX_LENGTH, DataType

__all__ = [
    "VOID",
    "Field",
    "MetadataJson",
    "PartitionField",
    "PartitionSpec",
    "Schema",
    "partition_names",
]

T = TypeVar("T")
_KINDS: Final = {int: "a whole number", str: "a text", bool: "true or false", list: "a list"}
_LONGS: Final = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class MetadataJson:
    """An object of JSON, and the file that errors name.

    >>> MetadataJson.parse('{"schema-id": "one"}', "metadata of t").integer("schema-id")
    Traceback (most recent call last):
    alcid.errors.FormatError: metadata of t: schema-id: found 'one', expected a whole number
    """

    values: dict[str, Any]
    file: str

    @classmethod
    def parse(cls, text: str | bytes, file: str) -> MetadataJson:
        """Read the JSON of an object.

        Raises:
            FormatError: It is none.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"no JSON: {error}", file=file) from None
        return cls.of(found, file, "JSON")

    @classmethod
    def of(cls, found: Any, file: str, what: str) -> MetadataJson:
        """A value that must be an object."""
        if not isinstance(found, dict):
            raise FormatError(what, file=file, found=reprlib.repr(found), expected="an object")
        return cls(found, file)

    def has(self, key: str) -> bool:
        """Whether there is a value that is not null."""
        return self.values.get(key) is not None

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number of 64 bits; the default, if there is one, where it is missing."""
        return self._long(key, self._value(key, int, default))

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        return self._value(key, str, default)

    def flag(self, key: str) -> bool:
        """True or false."""
        return self._value(key, bool)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self._long(key, one) for one in self._value(key, list))

    def all_texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self._value(key, list)
        for one in found:
            if type(one) is not str:
                raise self.error(key, one, "a text")
        return tuple(found)

    def child(self, key: str) -> MetadataJson:
        """An object within."""
        return MetadataJson.of(self._present(key), self.file, key)

    def children(self, key: str, *, optional: bool = False) -> Iterator[MetadataJson]:
        """The objects of a list; none where it is missing, if it is optional."""
        for one in self._value(key, list, [] if optional else None):
            yield MetadataJson.of(one, self.file, key)

    def texts(self, key: str) -> dict[str, str]:
        """An object whose values are all texts; empty where it is missing."""
        if not self.has(key):
            return {}
        found = self.child(key)
        return {name: found.text(name) for name in found.values}

    def error(self, problem: str, found: Any = None, expected: str | None = None) -> FormatError:
        """What is wrong, with the name of the file."""
        shown = None if found is None else reprlib.repr(found)
        return FormatError(problem, file=self.file, found=shown, expected=expected)

    def _value(self, key: str, kind: type[T], default: T | None = None) -> T:
        if default is not None and not self.has(key):
            return default
        found = self._present(key)
        if type(found) is not kind:  # bool is an int to isinstance
            raise self.error(key, found, _KINDS[kind])
        return found

    def _long(self, key: str, value: Any) -> int:
        if type(value) is not int or value not in _LONGS:
            raise self.error(key, value, "a whole number of 64 bits")
        return value

    def _present(self, key: str) -> Any:
        if not self.has(key):
            raise self.error(f"{key} is missing")
        return self.values[key]


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


VOID = "void"
"""The transform that makes null of every value."""
_FIRST_FIELD_ID = 1000


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One value of a partition."""

    source_id: int
    """The column that it is made of, by its id."""
    field_id: int
    name: str
    transform: str
    """`identity`, `bucket[16]`, `day` ...; one that is not known says nothing about the column."""

    def is_like(self, other: PartitionField) -> bool:
        """Whether it is the same field, under whichever name; `void` stands for one dropped."""
        transforms = {self.transform, other.transform} - {VOID}
        return self.source_id == other.source_id and len(transforms) < 2


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What the partitions of a data file are; old files keep the spec they were written with.

    >>> PartitionSpec.from_json({"spec-id": 2, "fields": []})
    PartitionSpec(id=2, fields=())
    """

    id: int
    fields: tuple[PartitionField, ...]

    @classmethod
    def from_json(cls, found: Mapping[str, Any], *, file: str = "<spec>") -> PartitionSpec:
        """Read one of `partition-specs`; ids that the oldest tables leave out count from 1000.

        A field of more than one source column is taken for one of an unknown transform.

        Raises:
            FormatError: It is damaged.
        """
        given = MetadataJson.of(found, file, "partition spec")
        fields = tuple(
            _field(one, _FIRST_FIELD_ID + place)
            for place, one in enumerate(given.children("fields"))
        )
        return cls(given.integer("spec-id", 0), fields)


def partition_names(specs: Mapping[int, PartitionSpec]) -> dict[tuple[int, int], str]:
    """The names of partition fields in `entries`, by spec and field id.

    A field may be renamed: all files have it under the name that the newest spec gives it, whatever
    the spec calls it that they were written with. Version 1 gave ids anew in each spec, and a new
    field may have the name of an old one: such fields are told apart by what follows their name.

    >>> old, new = (PartitionField(1, 1000, name, "identity") for name in ("a", "b"))
    >>> partition_names({0: PartitionSpec(0, (old,)), 1: PartitionSpec(1, (new,))})
    {(1, 1000): 'b', (0, 1000): 'b'}
    >>> other = PartitionField(2, 1001, "b", "day")
    >>> partition_names({0: PartitionSpec(0, (other,)), 1: PartitionSpec(1, (new,))})
    {(1, 1000): 'b', (0, 1001): 'b#1001'}
    """
    names: dict[tuple[int, int], str] = {}
    known: dict[int, dict[str, list[PartitionField]]] = {}
    for number in sorted(specs, reverse=True):
        for one in specs[number].fields:
            groups = known.setdefault(one.field_id, {})
            name = next((name for name, same in groups.items() if all(map(one.is_like, same))), "")
            if not name:
                name, taken = one.name, set(names.values())
                for mark in (one.field_id, number):
                    name = f"{name}#{mark}" if name in taken else name
            groups.setdefault(name, []).append(one)
            names[number, one.field_id] = name
    return names


def _field(found: MetadataJson, number: int) -> PartitionField:
    transform = found.text("transform")
    if found.has("source-id"):
        sources: tuple[int, ...] = (found.integer("source-id"),)
    else:
        sources = found.integers("source-ids")
    if not sources:
        raise found.error("source-ids", sources, "at least one")
    if len(sources) > 1:
        transform = f"{transform} of {len(sources)} columns"
    return PartitionField(
        sources[0], found.integer("field-id", number), found.text("name"), transform
    )
