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

__all__ = ["Field", "TableSchema", "schema_path"]

_VERSION = 3
_NOT_NULL = " NOT NULL"
_MAX_DEPTH = 64  # as deep as Arrow reads
_OLD_DEFAULTS = {1: {"bucket": "1", "file.format": "orc"}, 2: {"file.format": "orc"}}
"""What options were when schemas of older versions did not say."""


def schema_path(number: int) -> str:
    """Where a schema lies in the folder of its table."""
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
    """What Paimon's writers put in place of null."""
    inner_ids: tuple[int, ...] = field(default=(), compare=False)
    """The ids of the fields within its type, each before those within it."""


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
        found = parse_json(data, file)
        try:
            version = int(found.get("version", 1))
            if version > _VERSION:
                raise FormatError("schema version", file=file, found=version, expected=_VERSION)
            options = {str(key): str(value) for key, value in found["options"].items()}
            return cls(
                int(found["id"]),
                tuple(_field(one) for one in found["fields"]),
                int(found["highestFieldId"]),
                tuple(found["partitionKeys"]),
                tuple(found["primaryKeys"]),
                _OLD_DEFAULTS.get(version, {}) | options,
                found.get("comment") or "",
                int(found.get("timeMillis", 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FormatError | UnsupportedError):
                raise
            raise FormatError(f"damaged schema: {error!r}", file=file) from None

    def to_json(self) -> bytes:
        """As Paimon writes that of a new table: ids of inner fields follow that of their column."""
        fields = []
        for one in self.fields:
            inner = count(one.id + 1)
            described = {"id": one.id, "name": one.name}
            described["type"] = _type_json(one.data_type, one.nullable, inner)
            more = {"description": one.description, "defaultValue": one.default_value}
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
        return {one.name: one.data_type for one in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(one.name for one in self.fields)

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """The columns by their id."""
        return {one.id: one for one in self.fields}

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
        """The primary key without partition columns: it is what tells rows of a bucket apart."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)


def parse_json(data: bytes, file: str) -> dict[str, Any]:
    """An object of JSON.

    Raises:
        FormatError: It is none.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no JSON: {error}", file=file) from None
    if not isinstance(found, dict):
        raise FormatError("JSON", file=file, found=type(found).__name__, expected="an object")
    return found


def to_json(value: Mapping[str, Any]) -> bytes:
    """JSON as people like to read it."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode()


def _field(found: Mapping[str, Any], depth: int = 0) -> Field:
    data_type, nullable = _data_type(found["type"], depth)
    return Field(
        int(found["id"]),
        str(found["name"]),
        data_type,
        nullable,
        found.get("description"),
        found.get("defaultValue"),
        tuple(_ids_within(found["type"])),
    )


def _ids_within(found: Any) -> Iterator[int]:
    """The ids of all fields of a type, as `Field.inner_ids` has them."""
    if isinstance(found, str):
        return
    for one in found.get("fields", ()):
        yield int(one["id"])
        yield from _ids_within(one["type"])
    for part in ("key", "value", "element"):
        if part in found:
            yield from _ids_within(found[part])


def _data_type(found: Any, depth: int) -> tuple[DataType, bool]:
    """A type as text, or nested ones as an object; and whether it may be null."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"a type nested deeper than {_MAX_DEPTH}")
    if isinstance(found, str):
        return DataType.parse(found), not found.upper().endswith(_NOT_NULL)
    root = str(found["type"]).upper()
    nullable = not root.endswith(_NOT_NULL)
    root = root.removesuffix(_NOT_NULL)
    if root == "ROW":
        inner = [_field(one, depth + 1) for one in found["fields"]]
        children = tuple(one.data_type for one in inner)
        return DataType(root, children=children, names=tuple(one.name for one in inner)), nullable
    parts = ("key", "value") if root == "MAP" else ("element",)
    children = tuple(_data_type(found[part], depth + 1)[0] for part in parts)
    return DataType(root, children=children, length=int(found.get("length", 0))), nullable


def _type_json(data_type: DataType, nullable: bool, ids: Iterator[int]) -> Any:
    suffix = "" if nullable else _NOT_NULL
    if not data_type.children:
        return f"{data_type}{suffix}"
    root = data_type.root + suffix
    if data_type.root == "ROW":
        fields = []
        for name, child in zip(data_type.names, data_type.children, strict=True):
            kind = _type_json(child, True, ids)  # whose fields are counted before their owner
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
    """How many fields there are within a type: each has an id of its own."""
    own = len(data_type.names)
    return own + sum(map(_inner_fields, data_type.children))
