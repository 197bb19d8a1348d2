"""Small Paimon tables without a key, whose files and entries are built by hand."""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alcid import PaimonTable
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile, table_paths
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.statistics import EMPTY, FULL, RowStats, collect, pack_rows
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.types import DataType

COLUMNS = {"id": "BIGINT", "name": "STRING"}
VECTORS = {"deletion-vectors.enabled": "true"}
_NO_KEY = RowStats(EMPTY, EMPTY, ())


def create(
    location: Path | Storage,
    columns: Mapping[str, str] = COLUMNS,
    *,
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = (),
    options: Mapping[str, str] = VECTORS,
) -> PaimonTable:
    """Make a table without rows, and open it."""
    storage = location if isinstance(location, Storage) else Storage.open(location)
    types = [(name, DataType.parse(kind)) for name, kind in columns.items()]
    schema = TableSchema.of(types, primary_keys, partition_keys, options)
    TableFolder(storage).create(schema)
    return PaimonTable(storage)


def set_options(table: PaimonTable, **options: str) -> None:
    """Change options, with `_` for `-` and `__` for `.`, as ALTER TABLE does."""
    before = table.folder.latest_schema()
    table_options = {
        key.replace("__", ".").replace("_", "-"): value for key, value in options.items()
    }
    after = replace(before, id=before.id + 1, options={**before.options, **table_options})
    table.storage.create(f"schema/schema-{after.id}", after.to_json())
    table.refresh()


def rows_of(ids: Sequence[int]) -> pa.Table:
    """Rows for the usual columns; names repeat."""
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{key % 5}" for key in ids]})


def partition_of(table: PaimonTable, *values: Any) -> bytes:
    """The bytes of a partition."""
    types = table.snapshot.schema.partition_types
    columns = [
        pa.array([value], kind.to_arrow()) for value, kind in zip(values, types, strict=True)
    ]
    return pack_rows(columns, types)[0] if columns else EMPTY


def write_file(
    table: PaimonTable,
    rows: pa.Table,
    *,
    partition: bytes = EMPTY,
    bucket: int = 0,
    data: bytes | None = None,
) -> ManifestEntry:
    """Write a data file, of which nobody knows yet, and return its entry.

    `data` are the bytes of the file, if it is not Arrow that writes the rows.
    """
    schema, options = table.snapshot.schema, table.snapshot.options
    if data is None:
        file_data = io.BytesIO()
        pq.write_table(rows, file_data, row_group_size=max(rows.num_rows // 2, 1))
        data = file_data.getvalue()
    types = [schema.types[name] for name in schema.names]
    file = DataFile(
        name=f"data-{uuid.uuid4()}-0.parquet",
        size=len(data),
        rows=rows.num_rows,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=_NO_KEY,
        value_stats=collect(rows, types, [FULL] * len(types)),
        min_sequence=0,
        max_sequence=rows.num_rows - 1,
        schema_id=schema.id,
        level=0,
        creation_time=datetime.now(UTC).replace(microsecond=0),  # compactions of Java need one
        delete_rows=0,
        source=0,
    )
    entry = ManifestEntry(ADD, partition, bucket, options.bucket, file)
    folder = table_paths(schema, options).bucket(partition, bucket)
    table.storage.put(PlacedFile(entry, folder).path, data)
    return entry


def append(
    table: PaimonTable, ids: Sequence[int], *, partition: bytes = EMPTY, bucket: int = 0
) -> ManifestEntry:
    """Commit a file of the usual columns."""
    entry = write_file(table, rows_of(ids), partition=partition, bucket=bucket)
    commit(table, Change(kind="APPEND", added=[entry]))
    return entry


def commit(table: PaimonTable, change: Change) -> Snapshot:
    """Commit a change unchanged."""
    made = table.committer().commit(lambda _: change)
    assert made is not None
    table.refresh()
    return made


def swap_index(table: PaimonTable, entry: ManifestEntry, name: str) -> ManifestEntry:
    """Commit the same file with another index file, which does not exist."""
    new = entry.with_file(replace(entry.file, extra_files=(name,)))
    commit(table, Change(kind="COMPACT", deleted=[entry], added=[new]))
    return new


def ids(table: PaimonTable) -> list[int]:
    """The ids of all rows, sorted."""
    table.refresh()
    listed: list[int] = table.scan(columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(listed)
