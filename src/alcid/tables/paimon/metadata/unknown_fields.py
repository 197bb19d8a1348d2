"""Fields of Avro records that this version does not know: they survive when a record is rewritten.

A newer Paimon adds fields to manifests, manifest lists and index manifests. What such a field says
is kept with its Avro type, and is written again with the record that it stood in.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.avro import inner_types, short_name

__all__ = ["FieldFinder", "UnknownField", "extend_schema", "put_values"]

ITEM: Final = "*"
"""Stands in a path for the items of an array."""

_NAMED: Final = ("record", "error", "enum", "fixed")
_MOST_TYPES: Final = 10_000
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """What a field says that this version does not know."""

    path: _Path
    """The names of the fields that lead to it, its own the last; `*` for the items of an array."""
    kind: str
    """Its Avro type or null, as JSON that refers to nothing outside of it; empty: not known."""
    value: Any = field(hash=False)
    """What it says; of the items of an array, by the first field of each item."""


class FieldFinder:
    """Finds the unknown fields in the records of one file."""

    def __init__(self, written: Any, known: Mapping[str, Any], *, file: str) -> None:
        """Compare two schemas.

        Args:
            written: The schema that the file was written with.
            known: The schema of the records that this version writes.
            file: Its name, for errors.

        Raises:
            FormatError: A type that refers to a type which the schema does not have, or that is
                made of too many types.
        """
        self._file = file
        self._named: dict[str, Any] = {}
        self._collect(written)
        self._found = list(self._compare(written, known, ()))

    def find(self, record: Mapping[str, Any]) -> tuple[UnknownField, ...]:
        """The unknown fields of a record that say something."""
        if not self._found:
            return ()
        values = ((path, kind, _value(record, path)) for path, kind in self._found)
        return tuple(UnknownField(*one) for one in values if one[2] is not None)

    def _collect(self, kind: Any) -> None:
        """Note the types that have names."""
        if isinstance(kind, dict) and kind.get("type") in _NAMED:
            self._named.setdefault(short_name(kind["name"]), kind)
        for inner in inner_types(kind):
            self._collect(inner)

    def _compare(self, written: Any, known: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
        written, known = self._without_null(written), self._without_null(known)
        match written, known:
            case {"type": "record", "fields": fields}, {"type": "record", "fields": others}:
                types = {one["name"]: one["type"] for one in others}
                for one in fields:
                    name, kind = one["name"], one["type"]
                    if name in types:
                        yield from self._compare(kind, types[name], (*path, name))
                    else:
                        branches = kind if isinstance(kind, list) else [kind]
                        optional = ["null", *(one for one in branches if one != "null")]
                        whole = self._whole(optional, (*path, name), [0])
                        yield (*path, name), json.dumps(whole, sort_keys=True)
            case {"type": "array", "items": item}, {"type": "array", "items": other}:
                yield from self._compare(item, other, (*path, ITEM))

    def _without_null(self, kind: Any) -> Any:
        """The one type that a value has which is not null; the type itself if there are several."""
        if isinstance(kind, list):
            others = [one for one in kind if one != "null"]
            kind = others[0] if len(others) == 1 else kind
        return self._named.get(short_name(kind), kind) if isinstance(kind, str) else kind

    def _whole(self, kind: Any, path: _Path, seen: list[int]) -> Any:
        """A type with all that it refers to, its own types named after the path."""
        seen[0] += 1
        if seen[0] > _MOST_TYPES:
            raise FormatError(
                f"schema of an Avro file: {path[-1]}: too many types", file=self._file
            )
        if isinstance(kind, list):
            return [self._whole(one, path, seen) for one in kind]
        if isinstance(kind, str):
            defined = self._named.get(short_name(kind))
            return kind if defined is None else self._whole(defined, path, seen)
        found = {key: value for key, value in kind.items() if key not in ("namespace", "aliases")}
        if found["type"] in _NAMED:
            found["name"] = f"record_{'_'.join(path).replace(ITEM, 'item')}_{seen[0]}"
        match found:
            case {"type": "record" | "error", "fields": fields}:
                found["fields"] = [
                    {**one, "type": self._whole(one["type"], path, seen)} for one in fields
                ]
            case {"type": "array", "items": item}:
                found["items"] = self._whole(item, path, seen)
            case {"type": "map", "values": item}:
                found["values"] = self._whole(item, path, seen)
            case {"type": dict() | list() as inner}:
                found["type"] = self._whole(inner, path, seen)
        return found


def extend_schema(
    schema: Mapping[str, Any], unknown: Iterable[tuple[UnknownField, ...]]
) -> dict[str, Any]:
    """The schema of records that have unknown fields.

    Raises:
        UnsupportedError: A field has two types, or its type is not known.
    """
    kinds: dict[_Path, str] = {}
    for fields in unknown:
        for one in fields:
            kind = kinds.setdefault(one.path, one.kind)
            if kind != one.kind or not kind:
                types = "is of two types" if kind else "is of an unknown type"
                raise UnsupportedError(
                    f"{'.'.join(one.path)}: written by a newer Paimon, and {types}: its record "
                    "cannot be written again; commit with that Paimon"
                )
    extended = copy.deepcopy(dict(schema))
    for path, kind in kinds.items():
        *above, name = path
        described = {"name": name, "type": json.loads(kind), "default": None}
        _record_at(extended, above)["fields"].append(described)
    return extended


def put_values(record: dict[str, Any], unknown: Iterable[UnknownField]) -> dict[str, Any]:
    """Put unknown fields into a record that is to be written."""
    for one in unknown:
        _put(record, one.path, one.value)
    return record


def _value(record: Any, path: _Path) -> Any:
    """What a field says; None if there is none on the way to it."""
    for place, name in enumerate(path):
        if record is None:
            return None
        if name == ITEM:
            rest = path[place + 1 :]
            items = {next(iter(item.values())): _value(item, rest) for item in record}
            return {key: value for key, value in items.items() if value is not None} or None
        record = record.get(name)
    return record


def _put(record: Any, path: _Path, value: Any) -> None:
    name, *rest = path
    if name == ITEM:
        for item in record:
            if (key := next(iter(item.values()))) in value:
                _put(item, tuple(rest), value[key])
    elif not rest:
        record[name] = value
    elif record.get(name) is not None:
        _put(record[name], tuple(rest), value)


def _record_at(schema: Any, path: Iterable[str]) -> dict[str, Any]:
    """The record within a schema that a path leads to."""
    for name in path:
        if name == ITEM:
            schema = schema["items"]
        else:
            schema = next(one["type"] for one in schema["fields"] if one["name"] == name)
        if isinstance(schema, list):
            (schema,) = (one for one in schema if one != "null")
    found: dict[str, Any] = schema
    return found
