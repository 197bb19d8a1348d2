"""Deletion vectors made by hand for the data files of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import alcid
from alcid.spark.iceberg import SparkCatalogTable
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorCommit, VectorFile

__all__ = ["commit_of", "data_entries", "local_path", "removed", "vector_files"]

Entry = dict[str, Any]


def local_path(path: str) -> str:
    """The path of a file in a manifest."""
    return path.removeprefix("file:")


def data_entries(catalog: SparkCatalogTable, content: int = 0) -> list[Entry]:
    """The data files of the current snapshot, by path; or the delete files, which are content 1."""
    current = catalog.load().current_snapshot_id
    assert current is not None
    rows = catalog.entries(current).to_pylist()
    return sorted((row for row in rows if row["content"] == content), key=_place)


def vector_files(
    catalog: SparkCatalogTable, deleted: Sequence[tuple[Entry, Sequence[int]]]
) -> list[VectorFile]:
    """Write the vectors of some data files, as one Puffin file."""
    path = catalog.data_location(f"{uuid4()}-deletes.puffin")
    Path(local_path(path)).parent.mkdir(parents=True, exist_ok=True)
    with alcid.puffin.create(local_path(path)) as writer:
        blobs = [
            writer.add_deletion_vector(alcid.DeletionVector(positions), entry["file_path"])
            for entry, positions in deleted
        ]
    size = Path(local_path(path)).stat().st_size
    return [
        VectorFile(
            path,
            size,
            entry["file_path"],
            entry["spec_id"],
            _partition(catalog, entry),
            blob.offset,
            blob.length,
            len(positions),
        )
        for blob, (entry, positions) in zip(blobs, deleted, strict=True)
    ]


def removed(catalog: SparkCatalogTable, entry: Entry) -> RemovedDeletes:
    """A delete file of the table, to be removed."""
    return RemovedDeletes(
        entry["file_path"],
        entry["file_size_in_bytes"],
        entry["referenced_data_file"],
        entry["spec_id"],
        _partition(catalog, entry),
        entry["record_count"],
        entry["file_format"],
        entry["content_offset"],
        entry["content_size_in_bytes"],
    )


def commit_of(
    catalog: SparkCatalogTable,
    deleted: Mapping[int, Sequence[int]],
    gone: Sequence[Entry] = (),
) -> VectorCommit:
    """A commit that deletes positions of data files, which are numbered."""
    current = catalog.load().current_snapshot_id
    assert current is not None
    files = data_entries(catalog)
    added = vector_files(catalog, [(files[file], rows) for file, rows in deleted.items()])
    return VectorCommit(current, added, [removed(catalog, entry) for entry in gone])


def _partition(catalog: SparkCatalogTable, entry: Entry) -> tuple[Any, ...]:
    fields = catalog.load().specs[entry["spec_id"]].fields
    values = entry.get("partition", {})  # without those of dropped columns
    return tuple(values.get(field.name) for field in fields)


def _place(entry: Entry) -> tuple[str, int]:
    return entry["file_path"], entry["content_offset"] or 0
