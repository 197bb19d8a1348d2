"""`schema/schema-<n>`: the columns, keys and options of a table, as JSON.

```
{
    "version": 3,
    "id": 0,
    "highestFieldId": 1,
    "partitionKeys": [],
    "primaryKeys": ["id"],
    "fields": [
        {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
        {"id": 1, "name": "tags", "type": {"type": "ARRAY", "element": "STRING"}},
    ],
    "options": {"bucket": "4"},
    "timeMillis": 1700000000000,
}
```

A column keeps its `id` for life, whatever it is called later: files of an older schema are read by
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.types import DataType

_VERSION = 3
_NOT_NULL = " NOT NULL"
_MAX_DEPTH = 64  # as deep as Arrow reads
_OLD_DEFAULTS = {1: {"bucket": "1", "file.format": "orc"}, 2: {"file.format": "orc"}}
"""Default options of older schema versions."""


def schema_path(number: int) -> str:
    """The path of a schema in its table."""
    return f"schema/schema-{number}"


@dataclass(frozen=True, slots=True)
class Field:
    """A column."""

    id: int
    name: str
    data_type: DataType
    nullable: bool = True
    description: str | None = None
    default_value: str | None = None
    """The value that Paimon's writers put in place of null."""
    inner_ids: tuple[int, ...] = field(default=(), compare=False)
    """The ids of nested fields, outer ones first."""


@dataclass(frozen=True)
class TableSchema:
    """One schema of a table.

    >>> made = TableSchema.of([("id", DataType("BIGINT")), ("a", DataType("INT"))], ["id"], [], {})
    >>> TableSchema.parse(made.to_json()) == made
    True
    """

    id: int
    fields: tuple[Field, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    time_millis: int = 0

    @classmethod
    def of(
        cls,
        columns: Sequence[tuple[str, DataType]],
        primary_keys: Sequence[str],
        partition_keys: Sequence[str],
        options: Mapping[str, str],
        *,
        not_null: Sequence[str] = (),
        time_millis: int = 0,
    ) -> TableSchema:
        """The first schema of a new table; columns of the primary key are not null.

        Raises:
            ColumnError: A key that is no column, or a name that is there twice.
        """
        names = [name for name, _ in columns]
        for name in names:
            if names.count(name) > 1:
                raise ColumnError(f"column {name}: given twice")
        for keys, what in ((primary_keys, "primary key"), (partition_keys, "partition")):
            for name in keys:
                if name not in names:
                    raise ColumnError(f"{what}: no column {name}, found {', '.join(names)}")
        fields, number = [], -1
        for name, data_type in columns:
            nullable = name not in primary_keys and name not in not_null
            fields.append(Field(number + 1, name, data_type, nullable))
            number += 1 + _inner_fields(data_type)
        return cls(
            0,
            tuple(fields),
            number,
            tuple(partition_keys),
            tuple(primary_keys),
            dict(options),
            time_millis=time_millis,
        )

    @classmethod
    def parse(cls, data: bytes, *, file: str = "<schema>") -> TableSchema:
        """Read the JSON of a schema.

        Raises:
            FormatError: It is damaged.
            UnsupportedError: A type that is not known.
        """
        document = parse_json(data, file)
        try:
            version = int(document.get("version", 1))
            if version > _VERSION:
                raise FormatError("schema version", file=file, found=version, expected=_VERSION)
            options = {str(key): str(value) for key, value in document["options"].items()}
            return cls(
                int(document["id"]),
                tuple(map(_field, document["fields"])),
                int(document["highestFieldId"]),
                tuple(document["partitionKeys"]),
                tuple(document["primaryKeys"]),
                _OLD_DEFAULTS.get(version, {}) | options,
                document.get("comment") or "",
                int(document.get("timeMillis", 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FormatError | UnsupportedError):
                raise
            raise FormatError(f"damaged schema: {error!r}", file=file) from None

    def to_json(self) -> bytes:
        """The JSON of a new table, as Paimon writes it: nested ids follow that of their column."""
        fields = []
        for column in self.fields:
            inner = count(column.id + 1)
            described = {"id": column.id, "name": column.name}
            described["type"] = _type_json(column.data_type, column.nullable, inner)
            more = {"description": column.description, "defaultValue": column.default_value}
            fields.append(described | {name: text for name, text in more.items() if text})
        return to_json(
            {
                "version": _VERSION,
                "id": self.id,
                "fields": fields,
                "highestFieldId": self.highest_field_id,
                "partitionKeys": list(self.partition_keys),
                "primaryKeys": list(self.primary_keys),
                "options": dict(self.options),
                **({"comment": self.comment} if self.comment else {}),
                "timeMillis": self.time_millis,
            }
        )

    @cached_property
    def types(self) -> dict[str, DataType]:
        """The type of each column."""
        return {column.name: column.data_type for column in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.fields)

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """The columns by their id."""
        return {column.id: column for column in self.fields}

    def field(self, name: str) -> Field:
        """The column of exactly this name.

        Raises:
            ColumnError: There is none.
        """
        if name not in self.names:
            raise ColumnError(f"no column {name}, found {', '.join(self.names)}")
        return self.fields[self.names.index(name)]

    @property
    def partition_types(self) -> list[DataType]:
        """The types of the partition columns."""
        return [self.types[name] for name in self.partition_keys]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The trimmed primary key, without partition columns: unique within a bucket."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)


def parse_json(data: bytes, file: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        FormatError: It is none.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no JSON: {error}", file=file) from None
    if not isinstance(document, dict):
        raise FormatError("JSON", file=file, found=type(document).__name__, expected="an object")
    return document


def to_json(value: Mapping[str, Any]) -> bytes:
    """Indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode()


def _field(described: Mapping[str, Any], depth: int = 0) -> Field:
    data_type, nullable = _data_type(described["type"], depth)
    return Field(
        int(described["id"]),
        str(described["name"]),
        data_type,
        nullable,
        described.get("description"),
        described.get("defaultValue"),
        tuple(_inner_ids(described["type"])),
    )


def _inner_ids(described: Any) -> Iterator[int]:
    """The ids of all fields of a type, see `Field.inner_ids`."""
    if isinstance(described, str):
        return
    for inner in described.get("fields", ()):
        yield int(inner["id"])
        yield from _inner_ids(inner["type"])
    for part in ("key", "value", "element"):
        if part in described:
            yield from _inner_ids(described[part])


def _data_type(described: Any, depth: int) -> tuple[DataType, bool]:
    """A type, of text or of an object if it is nested; and whether it is nullable."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"a type nested deeper than {_MAX_DEPTH}")
    if isinstance(described, str):
        return DataType.parse(described), not described.upper().endswith(_NOT_NULL)
    root = str(described["type"]).upper()
    nullable = not root.endswith(_NOT_NULL)
    root = root.removesuffix(_NOT_NULL)
    if root == "ROW":
        inner = [_field(field, depth + 1) for field in described["fields"]]
        children = tuple(field.data_type for field in inner)
        names = tuple(field.name for field in inner)
        return DataType(root, children=children, names=names), nullable
    parts = ("key", "value") if root == "MAP" else ("element",)
    children = tuple(_data_type(described[part], depth + 1)[0] for part in parts)
    return DataType(root, children=children, length=int(described.get("length", 0))), nullable


def _type_json(data_type: DataType, nullable: bool, ids: Iterator[int]) -> Any:
    suffix = "" if nullable else _NOT_NULL
    if not data_type.children:
        return f"{data_type}{suffix}"
    root = data_type.root + suffix
    if data_type.root == "ROW":
        fields = []
        for name, child in zip(data_type.names, data_type.children, strict=True):
            kind = _type_json(child, True, ids)  # nested fields are numbered first
            fields.append({"id": next(ids), "name": name, "type": kind})
        return {"type": root, "fields": fields}
    if data_type.root == "MAP":
        key, value = data_type.children
        # The key of a map is never null.
        return {
            "type": root,
            "key": _type_json(key, False, ids),
            "value": _type_json(value, True, ids),
        }
    described = {"type": root, "element": _type_json(data_type.children[0], True, ids)}
    return described | ({"length": data_type.length} if data_type.length else {})


def _inner_fields(data_type: DataType) -> int:
    """The number of fields within a type, each of which has an id."""
    own = len(data_type.names)
    return own + sum(map(_inner_fields, data_type.children))
