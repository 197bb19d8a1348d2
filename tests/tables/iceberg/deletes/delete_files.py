"""Entries and delete files built by hand, for tests that need no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alcid.tables.iceberg.metadata.entries import Entries

__all__ = ["data_file", "deletes_of", "entries_of", "write_keys", "write_positions"]

PATH, POSITION = 2147483546, 2147483545

Row = dict[str, Any]


def data_file(path: str, age: int, partition: Row | None = None, spec: int = 0) -> Row:
    """An entry of a data file of 100 rows."""
    return {
        "sequence_number": age,
        "content": 0,
        "file_path": path,
        "file_format": "PARQUET",
        "spec_id": spec,
        "partition": partition or {"p": None, "q": None},
        "record_count": 100,
        "file_size_in_bytes": 1000,
    }


def deletes_of(path: str, age: int, content: int = 1, **more: Any) -> Row:
    """An entry of a delete file; `more` are any of its columns."""
    return data_file(path, age) | {"content": content} | more


def entries_of(rows: Sequence[Row]) -> Entries:
    """Entries as the catalog returns them."""
    kinds = {
        "partition": pa.struct([("p", pa.int32()), ("q", pa.string())]),
        "lower_bounds": pa.map_(pa.int32(), pa.binary()),
        "upper_bounds": pa.map_(pa.int32(), pa.binary()),
        "equality_ids": pa.list_(pa.int32()),
        "referenced_data_file": pa.string(),
        "content_offset": pa.int64(),
        "content_size_in_bytes": pa.int64(),
        "key_metadata": pa.binary(),
    }
    names = dict.fromkeys([*data_file("", 0), *kinds])
    columns = {name: pa.array([row.get(name) for row in rows], kinds.get(name)) for name in names}
    return Entries.of(pa.table(columns))


def write_columns(path: Path, columns: Mapping[str, tuple[int, pa.Array]], **options: Any) -> int:
    """Write a Parquet file of columns with field ids; returns its size."""
    fields = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": str(number)})
        for name, (number, values) in columns.items()
    ]
    arrays = [values for _, values in columns.values()]
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path, **options)
    return path.stat().st_size


def write_positions(
    path: Path, rows: Sequence[tuple[str | None, int | None]], **options: Any
) -> int:
    """Write a position delete file."""
    paths = pa.array([name for name, _ in rows], pa.string())
    positions = pa.array([row for _, row in rows], pa.int64())
    columns = {"file_path": (PATH, paths), "pos": (POSITION, positions)}
    return write_columns(path, columns, **options)


def write_keys(path: Path, **columns: tuple[int, pa.Array]) -> int:
    """Write an equality delete file: columns with their field ids."""
    return write_columns(path, columns)
