"""Delete files as the entries of a snapshot have them, for reading and for commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from alcid.iceberg_metadata.partition_spec import PartitionSpec
from alcid.parquet_file import ParquetScan, open_scans
from alcid.tables.iceberg.catalog import RemovedDeletes
from alcid.tables.iceberg.places import Places
from alcid.tables.iceberg.vectors_file import StoredVector

__all__ = [
    "VOID",
    "lost_fields",
    "open_deletes",
    "partition_of",
    "removed_deletes",
    "stored_vectors",
]

VOID = "void"
"""The transform that makes null of every value."""


def lost_fields(entries: pa.Table, spec: PartitionSpec) -> list[str]:
    """The fields of a spec that entries do not tell the values of, as their columns are dropped."""
    told = {field.name for field in entries.schema.field("partition").type}
    return [one.name for one in spec.fields if one.name not in told and one.transform != VOID]


def partition_of(entries: pa.Table, row: int, spec: PartitionSpec) -> tuple[Any, ...]:
    """The partition of a file: the values of its spec, as Python values."""
    values = entries["partition"][row].as_py() or {}
    return tuple(values.get(field.name) for field in spec.fields)


def open_deletes(places: Places, deletes: pa.Table, rows: Sequence[int]) -> list[ParquetScan]:
    """The footers of some delete files in Parquet, in one round.

    Raises:
        FormatError: One is damaged.
        FileGoneError: One is not there.
    """
    paths, sizes = deletes["file_path"], deletes["file_size_in_bytes"]
    sources = [places.source(paths[row].as_py(), sizes[row].as_py()) for row in rows]
    return open_scans(sources, read_ranges=places.read_ranges) if sources else []


def stored_vectors(
    deletes: pa.Table, rows: Sequence[int], data_rows: Sequence[int]
) -> list[StoredVector]:
    """Where vectors are, of data files with so many rows."""
    columns = deletes.select(
        [
            *("file_path", "file_size_in_bytes", "content_offset", "content_size_in_bytes"),
            *("record_count", "referenced_data_file"),
        ]
    )
    values = [column.to_pylist() for column in columns.take(pa.array(rows, pa.int64())).columns]
    return [StoredVector(*one) for one in zip(*values, data_rows, strict=True)]


def removed_deletes(deletes: pa.Table, row: int, spec: PartitionSpec) -> RemovedDeletes:
    """A delete file of a spec, as a commit that removes it tells it."""
    return RemovedDeletes(
        _value(deletes, "file_path", row),
        _value(deletes, "file_size_in_bytes", row),
        _value(deletes, "referenced_data_file", row),
        spec.id,
        partition_of(deletes, row, spec),
        _value(deletes, "record_count", row),
        _value(deletes, "file_format", row).upper(),
        _value(deletes, "content_offset", row),
        _value(deletes, "content_size_in_bytes", row),
    )


def _value(deletes: pa.Table, name: str, row: int) -> Any:
    return deletes[name][row].as_py()
