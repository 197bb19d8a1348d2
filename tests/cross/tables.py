"""The same rows in a table of each kind, with indexes, and without the deleted rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid.types import indexes_for
from tests.cross.data import PARTITION, ROW, A, B, Data
from tests.cross.iceberg_tables import make_iceberg
from tests.cross.layouts import group_rows, write_options, writers_follow
from tests.tables.paimon.small_tables import create

__all__ = ["index_options", "make_table"]

_VECTORS = {"deletion-vectors.enabled": "true"}


def make_table(levels: Mapping[str, str], data: Data, folder: Path, source: random.Random) -> Any:
    """Write a table below an empty folder, and open it."""
    options = index_options(levels, data)
    match levels["kind"]:
        case "folder":
            return _make_folder(levels, data, folder, options)
        case "iceberg":
            return make_iceberg(levels, data, folder, options)
    with writers_follow(levels):
        return _make_paimon(levels, data, folder, options, source)


def index_options(levels: Mapping[str, str], data: Data) -> dict[str, str]:
    """The options that build the indexes of a table, on both columns as far as they allow it."""
    options: dict[str, str] = {}
    chosen_type, _, version = levels["index"].partition("-")
    for name in (A, B):
        for index_type in indexes_for(data.columns[name].data_type):
            if levels["index"] in ("several", index_type) or chosen_type == index_type:
                key = f"file-index.{index_type}.columns"
                options[key] = f"{options[key]},{name}" if key in options else name
                if index_type == "bitmap" and version:
                    options[f"file-index.bitmap.{name}.version"] = version
    return options


def _make_folder(
    levels: Mapping[str, str], data: Data, folder: Path, options: Mapping[str, str]
) -> Any:
    vectors = {}
    for number, file in enumerate(data.files):
        rows = data.rows.slice(file.start, file.stop - file.start)
        path = f"{number}.parquet"
        if PARTITION in rows.column_names:
            rows = rows.drop_columns(PARTITION)
            text = "__HIVE_DEFAULT_PARTITION__" if file.partition is None else file.partition
            path = f"{PARTITION}={text}/{path}"
        (folder / path).parent.mkdir(exist_ok=True)
        size = group_rows(levels)
        pq.write_table(rows, folder / path, row_group_size=size, **write_options(levels))
        if file.deleted:
            bits: Literal[32, 64] = 64 if levels["deletions"] == "64" else 32
            vectors[path] = alcid.DeletionVector(file.deleted, bits=bits)
    types = {PARTITION: "INT"} if PARTITION in data.columns else None
    table = alcid.parquet(folder, partition_types=types, strict=True)
    if options:
        table.build_indexes(options, progress=False)
    return table.with_deletions(vectors)


def _make_paimon(
    levels: Mapping[str, str],
    data: Data,
    folder: Path,
    indexes: Mapping[str, str],
    source: random.Random,
) -> Any:
    keyed = levels["kind"] == "keyed"
    options = {"file-index.in-manifest-threshold": source.choice(("1 b", "500 b", "1 mb"))}
    options["metadata.stats-mode"] = source.choice(("none", "counts", "truncate(3)", "full"))
    if keyed or levels["deletions"] != "none":
        options |= _VECTORS
    if levels["deletions"] == "64":
        options["deletion-vectors.bitmap64"] = "true"
    if keyed:
        options["bucket"] = source.choice(("1", "2"))
    partitions = [PARTITION] if PARTITION in data.columns else []
    table = create(
        folder,
        {name: str(kind) for name, kind in data.types.items()},
        partition_keys=partitions,
        primary_keys=[*partitions, ROW] if keyed else [],
        options=options,
    )
    later = source.random() < 0.5  # except for how the rows are written and deleted
    write = table.upsert if keyed else table.append
    for file in data.files:
        rows = data.rows.slice(file.start, file.stop - file.start)
        if keyed and source.random() < 0.5:  # older rows, which are replaced
            write(_shuffled(rows, source), options={})
        write(rows, options={} if later else indexes)
    if len(data.deleted):
        assert table.delete(alcid.col(ROW).isin(data.deleted.tolist())).rows == len(data.deleted)
    if later and indexes:
        table.build_indexes(indexes, progress=False)
    return alcid.paimon(folder, strict=True)


def _shuffled(rows: pa.Table, source: random.Random) -> pa.Table:
    """The same keys with the values of other rows."""
    order = pa.array(source.sample(range(len(rows)), len(rows)), pa.int64())
    columns = [
        column if name in (ROW, PARTITION) else column.take(order)
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)
