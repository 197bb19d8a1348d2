"""Delete files as the entries of a snapshot have them, for reading and for commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from alcid.iceberg_metadata.entries import POSITION_DELETES, Entries
from alcid.iceberg_metadata.partition_spec import VOID, PartitionSpec, partition_names
from alcid.parquet_file import ParquetScan, open_scans
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorCommit
from alcid.tables.iceberg.places import Places
from alcid.tables.iceberg.vectors_file import StoredVector

__all__ = [
    "PUFFIN",
    "lost_fields",
    "open_deletes",
    "partition_of",
    "removed_deletes",
    "stored_vectors",
    "with_vectors",
]

PUFFIN = "PUFFIN"


def lost_fields(entries: pa.Table, specs: Mapping[int, PartitionSpec], spec_id: int) -> list[str]:
    """The fields of a spec that entries do not tell the values of, as their columns are dropped."""
    told = {field.name for field in entries.schema.field("partition").type}
    names = partition_names(specs)
    return [
        one.name
        for one in specs[spec_id].fields
        if names[spec_id, one.field_id] not in told and one.transform != VOID
    ]


def partition_of(
    entries: pa.Table, row: int, specs: Mapping[int, PartitionSpec]
) -> tuple[Any, ...]:
    """The partition of a file: the values of its spec, as Python values."""
    values = entries["partition"][row].as_py() or {}
    names = partition_names(specs)
    spec = specs[entries["spec_id"][row].as_py()]
    return tuple(values.get(names[spec.id, field.field_id]) for field in spec.fields)


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


def removed_deletes(
    deletes: pa.Table, row: int, specs: Mapping[int, PartitionSpec]
) -> RemovedDeletes:
    """A delete file, as a commit that removes it tells it."""
    return RemovedDeletes(
        _value(deletes, "file_path", row),
        _value(deletes, "file_size_in_bytes", row),
        _value(deletes, "referenced_data_file", row),
        _value(deletes, "spec_id", row),
        partition_of(deletes, row, specs),
        _value(deletes, "record_count", row),
        _value(deletes, "file_format", row).upper(),
        _value(deletes, "content_offset", row),
        _value(deletes, "content_size_in_bytes", row),
    )


def _value(deletes: pa.Table, name: str, row: int) -> Any:
    return deletes[name][row].as_py()


def with_vectors(entries: Entries, change: VectorCommit, age: int) -> Entries:
    """What the entries of a snapshot become by a commit of vectors on top of it.

    Args:
        entries: Of the snapshot.
        change: The commit.
        age: The sequence number of the new snapshot.
    """
    data, deletes = entries.data, entries.deletes
    gone = {(one.path, one.offset) for one in change.removed}
    places = zip(
        deletes["file_path"].to_pylist(), deletes["content_offset"].to_pylist(), strict=True
    )
    kept = deletes.filter(pa.array([place not in gone for place in places], pa.bool_()))
    files = pa.array([one.data_file for one in change.added], pa.string())
    of_files = data.take(pc.index_in(files, value_set=data["file_path"].chunk(0)))
    count = len(files)
    columns = {
        "sequence_number": [age] * count,
        "content": [POSITION_DELETES] * count,
        "file_path": [one.path for one in change.added],
        "file_format": [PUFFIN] * count,
        "spec_id": of_files["spec_id"],
        "partition": of_files["partition"],
        "record_count": [one.cardinality for one in change.added],
        "file_size_in_bytes": [one.size for one in change.added],
        "referenced_data_file": files,
        "content_offset": [one.offset for one in change.added],
        "content_size_in_bytes": [one.length for one in change.added],
    }
    added = [
        pa.array(columns[field.name], field.type)
        if isinstance(columns.get(field.name), list)
        else columns.get(field.name, pa.nulls(count, field.type))
        for field in deletes.schema
    ]
    return Entries.of(
        pa.concat_tables([data, kept, pa.Table.from_arrays(added, schema=deletes.schema)])
    )
