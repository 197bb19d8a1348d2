"""Table definitions under Paimon's Java."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.values import Json


def read_schema(path: Path) -> dict[str, Any]:
    """The first schema of a table, without the time."""
    schema: dict[str, Any] = json.loads((path / "schema" / "schema-0").read_text("utf-8"))
    schema.pop("timeMillis")
    return schema


def create_by_java(java: JavaPaimon, path: Path, like: dict[str, Any]) -> None:
    """Make a table as an engine does, which leaves the ids of columns to Paimon."""
    numbers = count(1000)
    fields = [{**field, "type": _numbered(field["type"], numbers)} for field in like["fields"]]
    text = {"fields": fields, "partitionKeys": [], "primaryKeys": [], "options": {}}
    kind = java.jvm.java.lang.Class.forName("org.apache.paimon.schema.Schema")
    parsed = java.jvm.paimon.utils.JsonSerdeUtil.fromJson(json.dumps(text), kind)
    builder = java.jvm.paimon.schema.Schema.newBuilder()
    for field in parsed.fields():
        builder.column(field.name(), field.type())
    builder.primaryKey(java.items(like["primaryKeys"]))
    builder.partitionKeys(java.items(like["partitionKeys"]))
    for key, value in like["options"].items():
        builder.option(key, value)
    java._schemas(path).createTable(builder.build())


def _numbered(kind: Json, numbers: Iterator[int]) -> Json:
    """A type with other ids for the fields inside."""
    if isinstance(kind, str):
        return kind
    made = dict(kind)
    for part in ("element", "key", "value"):
        if part in made:
            made[part] = _numbered(made[part], numbers)
    if "fields" in made:
        made["fields"] = [
            {**field, "id": next(numbers), "type": _numbered(field["type"], numbers)}
            for field in made["fields"]
        ]
    return made
