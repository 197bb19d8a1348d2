"""Schemas and partition specs of a table, and the checked JSON that they are parsed from.

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

A column never changes its id, and data files store the ids of their columns, so names do not matter
there. A partition spec derives each partition value from a column by a transform:

```
{"spec-id": 0, "fields": [{"source-id": 3, "field-id": 1000, "name": "ts_day", "transform": "day"}]}
```

Missing members and members of another type are a `FormatError`. Unlike the footers of Puffin files,
metadata is read leniently otherwise: many programs write it, older ones leave members out, and
unknown members are ignored.
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

T = TypeVar("T")
_KINDS: Final = {int: "a whole number", str: "a string", bool: "true or false", list: "a list"}
_LONGS: Final = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class MetadataJson:
    """A JSON object, with the name of its file for errors.

    >>> MetadataJson.parse('{"schema-id": "one"}', "metadata of t").integer("schema-id")
    Traceback (most recent call last):
    alcid.errors.FormatError: metadata of t: schema-id: found 'one', expected a whole number
    """

    values: dict[str, Any]
    file: str

    @classmethod
    def parse(cls, text: str | bytes, file: str) -> MetadataJson:
        """Parse a JSON object.

        Raises:
            FormatError: The text is not a JSON object.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"not JSON: {error}", file=file) from None
        return cls.of(value, file, "JSON")

    @classmethod
    def of(cls, value: Any, file: str, what: str) -> MetadataJson:
        """Wrap a value that must be an object."""
        if not isinstance(value, dict):
            raise FormatError(what, file=file, found=reprlib.repr(value), expected="an object")
        return cls(value, file)

    def has(self, key: str) -> bool:
        """Whether there is a value that is not null."""
        return self.values.get(key) is not None

    def integer(self, key: str, default: int | None = None) -> int:
        """A 64-bit integer, or the default if it is missing."""
        return self._long(key, self._value(key, int, default))

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        return self._value(key, str, default)

    def flag(self, key: str) -> bool:
        """True or false."""
        return self._value(key, bool)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of 64-bit integers."""
        return tuple(self._long(key, value) for value in self._value(key, list))

    def all_texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self._value(key, list)
        for value in values:
            if type(value) is not str:
                raise self.error(key, value, "a string")
        return tuple(values)

    def child(self, key: str) -> MetadataJson:
        """A nested object."""
        return MetadataJson.of(self._present(key), self.file, key)

    def children(self, key: str, *, optional: bool = False) -> Iterator[MetadataJson]:
        """The objects of a list; none where it is missing, if it is optional."""
        for value in self._value(key, list, [] if optional else None):
            yield MetadataJson.of(value, self.file, key)

    def texts(self, key: str) -> dict[str, str]:
        """An object of strings; empty if it is missing."""
        if not self.has(key):
            return {}
        child = self.child(key)
        return {name: child.text(name) for name in child.values}

    def error(self, problem: str, found: Any = None, expected: str | None = None) -> FormatError:
        """An error with the name of the file."""
        shown = None if found is None else reprlib.repr(found)
        return FormatError(problem, file=self.file, found=shown, expected=expected)

    def _value(self, key: str, kind: type[T], default: T | None = None) -> T:
        if default is not None and not self.has(key):
            return default
        value = self._present(key)
        if type(value) is not kind:  # a bool is also an instance of int
            raise self.error(key, value, _KINDS[kind])
        return value

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
    """The type in Iceberg's notation: `decimal(10, 2)`, `list<string>`."""
    data_type: DataType | None
    """None if the type is not supported: see `problem`."""
    inner_ids: tuple[int, ...] = ()
    """The ids of nested struct fields in depth-first order."""
    required: bool = False
    initial_default: Any = None
    """The JSON value in rows that were written before the column was added."""
    problem: str = ""
    """Why there is no `data_type`."""

    @classmethod
    def from_json(cls, json_field: MetadataJson) -> Field:
        """Parse one of the `fields` of a schema or struct."""
        name = json_field.text("name")
        field_type = _Type.of(json_field, "type", name)
        return cls(
            json_field.integer("id"),
            name,
            field_type.text,
            field_type.data_type,
            field_type.inner_ids,
            json_field.flag("required"),
            json_field.values.get("initial-default"),
            field_type.problem,
        )


@dataclass(frozen=True)
class Schema:
    """A schema of a table.

    >>> schema = {
    ...     "schema-id": 0,
    ...     "fields": [{"id": 1, "name": "u", "required": True, "type": "uuid"}],
    ... }
    >>> Schema.from_json(schema).by_name["u"].problem
    'column u: uuid is not read natively'
    """

    id: int
    fields: tuple[Field, ...]

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, file: str = "<schema>") -> Schema:
        """Parse one of `schemas`; the schema id defaults to 0, as the oldest tables have none.

        Raises:
            FormatError: It is damaged.
        """
        json_schema = MetadataJson.of(value, file, "schema")
        fields = tuple(map(Field.from_json, json_schema.children("fields")))
        _check_unique("name", [field.name for field in fields], json_schema)
        ids = [number for field in fields for number in (field.id, *field.inner_ids)]
        _check_unique("field id", ids, json_schema)
        return cls(json_schema.integer("schema-id", 0), fields)

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """The columns by id."""
        return {field.id: field for field in self.fields}

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The columns by their exact names."""
        return {field.name: field for field in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> Field:
        """The column with this exact name.

        Raises:
            ColumnError: There is no such column.
        """
        if name not in self.by_name:
            raise ColumnError(f"no column {name}, found {', '.join(self.names)}")
        return self.by_name[name]


def _check_unique(what: str, values: Sequence[object], json_schema: MetadataJson) -> None:
    if len(set(values)) < len(values):
        duplicate = next(value for value in values if values.count(value) > 1)
        raise json_schema.error(f"{what} {duplicate} occurs twice in a schema")


@dataclass(frozen=True, slots=True)
class _Type:
    """An Iceberg type and its `DataType`."""

    text: str
    data_type: DataType | None
    inner_ids: tuple[int, ...] = ()
    problem: str = ""

    @classmethod
    def of(cls, owner: MetadataJson, key: str, path: str, depth: int = 0) -> _Type:
        """Parse the type at `key`: a string, or an object if nested; `path` names the column."""
        if depth == _MAX_DEPTH:
            raise owner.error(f"column {path}: more than {_MAX_DEPTH} nested types")
        if isinstance(owner.values.get(key), str):
            return cls._primitive(owner.text(key), path)
        nested = owner.child(key)
        root = nested.text("type")
        if root == "struct":
            return cls._struct(nested, path, depth)
        if root == "list":
            return cls._nested(nested, "ARRAY", ("element",), path, depth)
        if root == "map":
            return cls._nested(nested, "MAP", ("key", "value"), path, depth)
        raise nested.error(f"column {path}: type", root, "struct, list or map")

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
    def _struct(cls, json_type: MetadataJson, path: str, depth: int) -> _Type:
        names, inner, ids = [], [], []
        for json_field in json_type.children("fields"):
            names.append(json_field.text("name"))
            field_type = cls.of(json_field, "type", f"{path}.{names[-1]}", depth + 1)
            if json_field.has("initial-default"):
                problem = f"column {path}.{names[-1]}: an initial default within a column"
                field_type = cls(
                    field_type.text, None, field_type.inner_ids, f"{problem} is not read natively"
                )
            inner.append(field_type)
            ids += [json_field.integer("id"), *inner[-1].inner_ids]
        fields = ", ".join(f"{name}: {part.text}" for name, part in zip(names, inner, strict=True))
        return cls._made(f"struct<{fields}>", "ROW", tuple(inner), tuple(ids), names=tuple(names))

    @classmethod
    def _nested(
        cls, json_type: MetadataJson, root: str, parts: tuple[str, ...], path: str, depth: int
    ) -> _Type:
        inner = tuple(cls.of(json_type, part, f"{path}.{part}", depth + 1) for part in parts)
        ids = tuple(number for part_type in inner for number in part_type.inner_ids)
        arguments = ", ".join(part_type.text for part_type in inner)
        return cls._made(f"{json_type.text('type')}<{arguments}>", root, inner, ids)

    @classmethod
    def _made(
        cls, text: str, root: str, inner: tuple[_Type, ...], ids: tuple[int, ...], **more: Any
    ) -> _Type:
        """A nested type, which is supported if all types within it are."""
        children = [part.data_type for part in inner if part.data_type is not None]
        if len(children) < len(inner):
            return cls(text, None, ids, next(part.problem for part in inner if part.problem))
        return cls(text, DataType(root, children=tuple(children), **more), ids)


VOID = "void"
"""The transform whose values are all null."""
_FIRST_FIELD_ID = 1000


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of a partition spec."""

    source_id: int
    """The field id of the column that it is derived from."""
    field_id: int
    name: str
    transform: str
    """`identity`, `bucket[16]`, `day` ...; an unknown one gives no bounds."""

    def is_like(self, other: PartitionField) -> bool:
        """Whether it is the same field under any name; `void` stands for a dropped field."""
        transforms = {self.transform, other.transform} - {VOID}
        return self.source_id == other.source_id and len(transforms) < 2


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition fields of data files; old files keep the spec they were written with.

    >>> PartitionSpec.from_json({"spec-id": 2, "fields": []})
    PartitionSpec(id=2, fields=())
    """

    id: int
    fields: tuple[PartitionField, ...]

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, file: str = "<spec>") -> PartitionSpec:
        """Parse one of `partition-specs`; field ids that the oldest tables leave out start at 1000.

        A field with several source columns is treated as one of an unknown transform.

        Raises:
            FormatError: It is damaged.
        """
        json_spec = MetadataJson.of(value, file, "partition spec")
        fields = tuple(
            _field(json_field, _FIRST_FIELD_ID + position)
            for position, json_field in enumerate(json_spec.children("fields"))
        )
        return cls(json_spec.integer("spec-id", 0), fields)


def partition_names(specs: Mapping[int, PartitionSpec]) -> dict[tuple[int, int], str]:
    """The names of partition fields in `entries`, by spec and field id.

    A field may be renamed: it has the name of the newest spec in all files. Version 1 reused ids in
    each spec, and a new field may have the name of an old one: such fields get a suffix.

    >>> old, new = (PartitionField(1, 1000, name, "identity") for name in ("a", "b"))
    >>> partition_names({0: PartitionSpec(0, (old,)), 1: PartitionSpec(1, (new,))})
    {(1, 1000): 'b', (0, 1000): 'b'}
    >>> other = PartitionField(2, 1001, "b", "day")
    >>> partition_names({0: PartitionSpec(0, (other,)), 1: PartitionSpec(1, (new,))})
    {(1, 1000): 'b', (0, 1001): 'b#1001'}
    """
    names: dict[tuple[int, int], str] = {}
    fields_by_id: dict[int, dict[str, list[PartitionField]]] = {}
    for number in sorted(specs, reverse=True):
        for field in specs[number].fields:
            groups = fields_by_id.setdefault(field.field_id, {})
            name = next(
                (name for name, same in groups.items() if all(map(field.is_like, same))), ""
            )
            if not name:
                name, taken = field.name, set(names.values())
                for suffix in (field.field_id, number):
                    name = f"{name}#{suffix}" if name in taken else name
            groups.setdefault(name, []).append(field)
            names[number, field.field_id] = name
    return names


def _field(json_field: MetadataJson, number: int) -> PartitionField:
    transform = json_field.text("transform")
    if json_field.has("source-id"):
        sources: tuple[int, ...] = (json_field.integer("source-id"),)
    else:
        sources = json_field.integers("source-ids")
    if not sources:
        raise json_field.error("source-ids", sources, "at least one")
    if len(sources) > 1:
        transform = f"{transform} of {len(sources)} columns"
    return PartitionField(
        sources[0], json_field.integer("field-id", number), json_field.text("name"), transform
    )
