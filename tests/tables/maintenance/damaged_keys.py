"""Tables with a primary key whose index files are changed to be wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from alcid import PaimonTable
from alcid.errors import AlcidWarning
from alcid.formats.binary_row import hash_rows
from alcid.formats.hash_index import HashIndex
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    Buckets,
    KeyedTable,
    buckets_of,
    read_hashes,
    write_hashes,
)
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.metadata.commit import Change
from tests.tables.paimon.small_tables import VECTORS, commit, create

COLUMNS = {"id": "BIGINT", "at": "INT", "v": "STRING"}


def keyed_of(table: PaimonTable) -> KeyedTable:
    return keyed_table(table, "compact")


def new_table(path: Path, options: Mapping[str, str]) -> PaimonTable:
    """A table with vectors, of the columns `id` (the key), `at` and `v`."""
    return create(path, COLUMNS, primary_keys=["id"], options={**VECTORS, **options})


def rows_of(ids: Iterable[int], text: str, at: int | None = 0) -> pa.Table:
    keys = list(ids)
    columns: dict[str, Any] = {
        "id": pa.array(keys, pa.int64()),
        "at": pa.array([at] * len(keys), pa.int32()),
        "v": [text] * len(keys),
    }
    return pa.table(columns)


def seen(table: PaimonTable) -> list[tuple[int, str]]:
    """Key and text of all rows, as readers see them."""
    table.refresh()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlcidWarning)  # on level 0
        rows = table.scan(columns=["id", "v"]).to_arrow()
    return sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


def all_of(**texts: Iterable[int]) -> list[tuple[int, str]]:
    return sorted((key, text) for text, keys in texts.items() for key in keys)


def buckets(table: PaimonTable) -> Buckets:
    table.refresh()
    files = table.snapshot
    return buckets_of(files.state, table_paths(files.schema, files.options))


def count_repaired(table: PaimonTable) -> int:
    """Repair a table; returns how many rows and hashes were repaired."""
    return sum(repair.count for repair in table.repair().repaired)


def drop_vectors(table: PaimonTable) -> None:
    """Lose all deletion vectors, as a writer that does not know them."""
    entries = [entry for bucket in buckets(table) for entry in bucket.vectors]
    commit(table, Change(kind="COMPACT", index_deleted=entries))


def swap_levels(table: PaimonTable, bucket: Bucket) -> None:
    """Swap the levels of two files of a bucket, and with them their ages."""
    first, second = (file.entry for file in bucket.sorted_files)
    moved = [
        file.with_file(replace(file.file, level=other.file.level))
        for file, other in ((first, second), (second, first))
    ]
    commit(table, Change(kind="COMPACT", deleted=[first, second], added=moved))


def hashes_of(ids: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return hash_rows([pa.array(list(ids), pa.int64())])


def forget(table: PaimonTable, ids: Iterable[int], *, stays_full: bool = False) -> None:
    """Take keys out of all hash indexes.

    Args:
        table: The table.
        ids: The keys.
        stays_full: Let others take their places, so that they are put into another bucket when
            they come again.
    """
    gone = HashIndex(hashes_of(ids))
    for bucket in list(buckets(table)):
        index = read_hashes(keyed_of(table), bucket)
        kept = HashIndex(index.hashes[~gone.contains(index.hashes)])
        lost = len(index) - len(kept)
        if lost and stays_full:
            first = 1000 * (table.snapshot_id or 0)
            kept = kept.union(hashes_of(range(first, first + lost)))
        if lost:
            put_hashes(table, bucket, kept)


def put_hashes(table: PaimonTable, bucket: Bucket, hashes: HashIndex) -> None:
    """Give a bucket another hash index."""
    entry = write_hashes(keyed_of(table), bucket, hashes)
    commit(table, Change(kind="COMPACT", index_deleted=bucket.hashes, index_added=[entry]))


def homes(table: PaimonTable) -> dict[int, list[int]]:
    """The buckets of each hash, according to the hash indexes."""
    bucket_numbers: dict[int, list[int]] = {}
    for bucket in buckets(table):
        for hash_ in read_hashes(keyed_of(table), bucket).hashes.tolist():
            bucket_numbers.setdefault(hash_, []).append(bucket.number)
    return bucket_numbers
