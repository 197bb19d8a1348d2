"""Metadata of a future Paimon: with fields that nobody knows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro

__all__ = ["add_fields", "avro_records", "change_snapshot", "find", "newer_file"]

Fields = Mapping[tuple[str, ...], tuple[Any, Any]]
"""Type and value of a field, by the names that lead to it; `*`: of all items."""


def avro_records(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def add_fields(data: bytes, fields: Fields) -> bytes:
    """The same container with more fields, or with other values in existing ones."""
    reader = fastavro.reader(io.BytesIO(data))
    schema: Any = json.loads(reader.metadata["avro.schema"])
    records: list[Any] = list(reader)
    for (*above, name), (kind, value) in fields.items():
        at, others = schema, records
        for step in above:
            at, others = _below(at, others, step)
        if all(field["name"] != name for field in at["fields"]):
            at["fields"].append({"name": name, "type": kind})
        for record in others:
            record[name] = value(record) if callable(value) else value
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), records, codec="zstandard")
    return file.getvalue()


def find(record: Any, path: tuple[str, ...]) -> Any:
    """The value of a field; a list for items."""
    for number, name in enumerate(path):
        if name == "*":
            return [find(item, path[number + 1 :]) for item in record]
        record = record[name]
    return record


def newer_file(path: Path, fields: Fields) -> None:
    """Add fields to a file of the manifest folder; its size need not be correct."""
    path.write_bytes(add_fields(path.read_bytes(), fields))


def change_snapshot(table: Path, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Change the latest snapshot, and omit the sizes of manifest lists."""
    path = max((table / "snapshot").glob("snapshot-*"), key=lambda path: int(path.name[9:]))
    snapshot: dict[str, Any] = json.loads(path.read_bytes())
    for name in ("baseManifestListSize", "deltaManifestListSize"):
        snapshot.pop(name, None)
    change(snapshot)
    path.write_text(json.dumps(snapshot))
    return snapshot


def _below(schema: Any, records: list[Any], step: str) -> tuple[Any, list[Any]]:
    if step == "*":
        inner, below = schema["items"], [item for items in records for item in items]
    else:
        inner = next(field["type"] for field in schema["fields"] if field["name"] == step)
        below = [value for record in records if (value := record[step]) is not None]
    if isinstance(inner, list):
        (inner,) = (branch for branch in inner if branch != "null")
    return inner, below
