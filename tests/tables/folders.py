"""Folders of Parquet files for the tests, and the indexes that they must have."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alcid import FileIndex
from alcid.index.bundle import BundleSet, PayloadKind, State
from alcid.index.bundle.format import INDEX
from alcid.storage import Storage
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.indexes import FolderIndexes

OPTIONS: dict[str, str | int | float] = {
    "file-index.bitmap.columns": "class_id,tags[color]",
    "file-index.bloom-filter.columns": "id",
    "file-index.bloom-filter.id.items": 100,
}
KINDS = [
    PayloadKind.index("class_id", "bitmap"),
    PayloadKind.index("id", "bloom-filter"),
    PayloadKind.index("tags[color]", "bitmap"),
]


def rows_of(seed: int, count: int = 60) -> pa.Table:
    rng = np.random.default_rng(seed)
    score = rng.random(count)
    score[seed % 7 :: 7] = np.nan
    tags = [[("color", ("red", "blue")[row % 2])] if row % 3 else [] for row in range(count)]
    return pa.table(
        {
            "id": rng.integers(0, 10**6, count),
            "class_id": pa.array(rng.integers(0, 5, count), pa.int32()),
            "score": score,
            "name": pa.array([f"name {number}" for number in rng.integers(0, 30, count)]),
            "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
        }
    )


def put_table(storage: Storage, path: str, table: pa.Table) -> None:
    """Write a file, or replace an existing one."""
    data = io.BytesIO()
    pq.write_table(table, data)
    storage.delete([path])
    storage.put(path, data.getvalue())


def path_of(number: int) -> str:
    return f"dt=2025-08-{number // 2 + 1:02d}/part-{number}.parquet"


def fill(storage: Storage, count: int, first: int = 0) -> dict[str, pa.Table]:
    """Files with different rows, and their tables by path."""
    tables = {path_of(number): rows_of(number) for number in range(first, first + count)}
    for path, table in tables.items():
        put_table(storage, path, table)
    return tables


def bundle_names(storage: Storage, under: str = "_alcid") -> list[str]:
    paths: list[str] = storage.list(under, hidden=True).paths.to_pylist()
    return [path.rpartition("/")[2] for path in paths]


def opened(indexes: FolderIndexes, storage: Storage) -> BundleSet:
    return indexes.open(list_data_files(storage))


def states(bundles: BundleSet, kind: PayloadKind) -> list[str]:
    return [State(state).name for state in bundles.coverage(kind).states]


def check_indexes(
    bundles: BundleSet,
    tables: Mapping[str, pa.Table],
    options: Mapping[str, str | int | float] = OPTIONS,
) -> None:
    """Check that every file has exactly these indexes, byte for byte as `FileIndex` builds them."""
    assert bundles.paths.to_pylist() == sorted(tables)
    for row, path in enumerate(sorted(tables)):
        container = FileIndex.build(tables[path], options).container
        expected = {
            PayloadKind.index(entry.column, entry.index_type): b""
            if entry.is_empty
            else container.section(entry).read(0, entry.length)
            for entry in container.entries
        }
        payloads_read = {}
        for kind in bundles.kinds:
            payload = bundles.coverage(kind).payload(row)
            if kind.type == INDEX and payload is not None:
                payloads_read[kind] = payload.read(0, payload.size)
        assert payloads_read == expected, path
