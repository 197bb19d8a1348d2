"""Delete files as JSON: many of them go to Java as the deletes of one scan task."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from alcid.errors import UnsupportedError
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorFile

__all__ = ["scan_tasks"]

_UNBOUND = "any"  # the data file of the task, which nobody looks at


def scan_tasks(
    metadata: Mapping[str, Any], files: Sequence[VectorFile | RemovedDeletes]
) -> list[str]:
    """Delete files as the JSON of scan tasks, one for each partition spec.

    Args:
        metadata: The JSON of the table's metadata.
        files: The delete files.

    Raises:
        UnsupportedError: A partition that cannot be told: one of a column that is dropped, or a
            value that JSON has no word for.
    """
    specs = {one["spec-id"]: one for one in metadata["partition-specs"]}
    [schema] = [
        one for one in metadata["schemas"] if one["schema-id"] == metadata["current-schema-id"]
    ]
    by_spec = defaultdict[int, list[dict[str, Any]]](list)
    for file in files:
        by_spec[file.spec_id].append(_delete_file(file))
    return [json.dumps(_task(schema, specs[spec], found)) for spec, found in by_spec.items()]


def _task(
    schema: Mapping[str, Any], spec: Mapping[str, Any], deletes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    _check(schema, spec)
    data_file = {
        "spec-id": spec["spec-id"],
        "content": "data",
        "file-path": _UNBOUND,
        "file-format": "parquet",
        "partition": deletes[0]["partition"],
        "file-size-in-bytes": 1,
        "record-count": 1,
    }
    return {
        "task-type": "file-scan-task",
        "schema": schema,
        "spec": spec,
        "data-file": data_file,
        "start": 0,
        "length": 1,
        "delete-files": deletes,
        "residual-filter": True,
    }


def _check(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    known = set(_ids(schema))
    for field in spec["fields"]:
        # Iceberg does not show values of such a field any more, but compares them.
        if not known.issuperset(field.get("source-ids") or [field["source-id"]]):
            raise UnsupportedError(
                f"partition field {field['name']}: its column is dropped, so that no rows can be "
                "deleted from these files: rewrite them first, as with rewrite_data_files"
            )


def _delete_file(file: VectorFile | RemovedDeletes) -> dict[str, Any]:
    kind = "PUFFIN" if isinstance(file, VectorFile) else file.file_format
    found = {
        "spec-id": file.spec_id,
        "content": "position-deletes",
        "file-path": file.path,
        "file-format": kind.lower(),
        "partition": [_single_value(value) for value in file.partition],
        "file-size-in-bytes": file.size,
        "record-count": file.cardinality,
        "referenced-data-file": file.data_file,
        "content-offset": file.offset,
        "content-size-in-bytes": file.length,
    }
    return {key: value for key, value in found.items() if value is not None}


def _single_value(value: Any) -> Any:
    """A value as Iceberg's JSON has it."""
    match value:
        case float() if not math.isfinite(value):
            raise UnsupportedError(f"partition value {value}: DELETE of Spark can do this")
        case Decimal():
            return format(value, "f")
        case datetime(tzinfo=None):
            return value.isoformat()
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case bytes():
            return value.hex().upper()
        case _:
            return value


def _ids(type_: Any) -> Iterator[int]:
    """The ids of the columns of a schema, and of those within them."""
    if isinstance(type_, Mapping):
        for field in type_.get("fields", ()):
            yield field["id"]
            yield from _ids(field["type"])
