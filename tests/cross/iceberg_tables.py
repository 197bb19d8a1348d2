"""Iceberg tables in this process: format 3, partitions, vectors and position delete files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from alcid import col
from alcid.tables.iceberg.catalog import VectorCommit
from alcid.tables.iceberg.deletes.plan import with_vectors
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg_table import IcebergTable
from tests.cross.data import PARTITION, ROW, Data
from tests.cross.factors import iceberg_type
from tests.cross.layouts import group_rows, write_options
from tests.tables.iceberg.deletes.delete_files import write_columns, write_positions
from tests.tables.iceberg.memory_catalog import MemoryCatalog

__all__ = ["make_iceberg"]

_PARTITION_SPEC = {"field-id": 1000, "name": PARTITION, "transform": "identity"}
_ENTRY = pa.schema(
    [
        ("sequence_number", pa.int64()),
        ("content", pa.int32()),
        ("file_path", pa.string()),
        ("file_format", pa.string()),
        ("spec_id", pa.int32()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("referenced_data_file", pa.string()),
        ("content_offset", pa.int64()),
        ("content_size_in_bytes", pa.int64()),
    ]
)


class _Catalog(MemoryCatalog):
    """A table of format 3 with the files that it is given."""

    def __init__(self, folder: Path, data: Data) -> None:
        self.ids = {name: number for number, name in enumerate(data.columns, 1)}
        fields = [
            (name, number, iceberg_type(data.columns[name].data_type) or "")
            for name, number in self.ids.items()
        ]
        super().__init__(folder, fields)
        self.metadata["format-version"] = 3
        self._schema = _ENTRY
        if PARTITION in self.ids:
            parted = {**_PARTITION_SPEC, "source-id": self.ids[PARTITION]}
            self.metadata["partition-specs"] = [{"spec-id": 0, "fields": [parted]}]
            self._schema = _ENTRY.append(
                pa.field("partition", pa.struct([(PARTITION, pa.int32())]))
            )

    def commit(self, files: list[dict[str, Any]]) -> None:
        """Commit a snapshot with these files and no others."""
        self.files[self.add({})] = files

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        assert metrics
        return pa.Table.from_pylist(self.files[snapshot_id], schema=self._schema)

    def commit_vectors(self, change: VectorCommit) -> int:
        before = Entries.of(self.entries(change.snapshot_id))
        made = with_vectors(before, change, len(self.metadata["snapshots"]) + 1)
        self.commit(pa.concat_tables([made.data, made.deletes]).to_pylist())
        return int(self.metadata["current-snapshot-id"])


def make_iceberg(
    levels: Mapping[str, str], data: Data, folder: Path, options: Mapping[str, str]
) -> IcebergTable:
    """Write a table below an empty folder, and open it."""
    catalog = _Catalog(folder / "t", data)
    files = [_write_file(catalog, levels, data, number) for number in range(len(data.files))]
    if levels["deletions"] == "positions":
        files += list(_write_deletes(catalog, data, files))
    catalog.commit(files)
    table = IcebergTable(catalog, strict=True)
    if options:
        table.build_indexes(options, progress=False)
    if levels["deletions"] == "64":
        deleted = data.deleted.tolist()
        assert table.delete(col(ROW).isin(deleted), progress=False).rows == len(deleted)
    return IcebergTable(catalog, strict=True)


def _write_file(
    catalog: _Catalog, levels: Mapping[str, str], data: Data, number: int
) -> dict[str, Any]:
    file = data.files[number]
    rows = data.rows.slice(file.start, file.stop - file.start)
    path = catalog.folder / "data" / f"{number}.parquet"
    columns = {name: (catalog.ids[name], rows[name]) for name in rows.column_names}
    options = {"row_group_size": group_rows(levels), **write_options(levels)}
    size = write_columns(path, columns, **options)
    return _entry(path, 1, 0, len(rows), size, file.partition)


def _write_deletes(
    catalog: _Catalog, data: Data, files: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A position delete file for each partition."""
    for number, partition in enumerate({file.partition for file in data.files}):
        path = catalog.folder / "data" / f"{number}-deletes.parquet"
        rows = [
            (entry["file_path"], row)
            for entry, file in zip(files, data.files, strict=True)
            for row in file.deleted
            if file.partition == partition
        ]
        size = write_positions(path, rows)
        yield _entry(path, 2, 1, len(rows), size, partition)


def _entry(
    path: Path, age: int, content: int, rows: int, size: int, partition: int | None
) -> dict[str, Any]:
    return {
        "sequence_number": age,
        "content": content,
        "file_path": str(path),
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": {PARTITION: partition},
        "record_count": rows,
        "file_size_in_bytes": size,
    }
