"""Deleted rows as Iceberg sees them, and equality deletes, which Spark cannot write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from alcid import DeletionVector
from alcid.spark.iceberg import SparkCatalogTable
from tests.iceberg.vectors import data_entries, local_path
from tests.tables.iceberg.deletes.delete_files import write_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["delete_equal", "deleted_by_iceberg", "insert"]


def insert(lake: SparkSession, name: str, first: int, end: int, columns: str) -> None:
    """Insert rows as one file; `columns` are SQL of `id`, which counts."""
    lake.sql(f"INSERT INTO {name} SELECT {columns} FROM range({first}, {end}, 1, 1)")


def deleted_by_iceberg(lake: SparkSession, name: str) -> dict[str, DeletionVector]:
    """The rows that Iceberg does not read, for the paths of all data files."""
    live = lake.sql(f"SELECT _file, _pos FROM {name}").toArrow()
    rows: dict[str, set[int]] = {
        entry["file_path"]: set(range(entry["record_count"]))
        for entry in data_entries(SparkCatalogTable(lake, name))
    }
    for row in live.to_pylist():
        rows[row["_file"]].remove(row["_pos"])
    return {path: DeletionVector(some) for path, some in rows.items()}


def delete_equal(
    lake: SparkSession,
    name: str,
    keys: dict[str, tuple[int, pa.Array]],
    *,
    partition: str | None = None,
    ids: Sequence[int] | None = None,
) -> None:
    """Commit an equality delete file with these columns, each with its field id."""
    catalog = SparkCatalogTable(lake, name)
    path = catalog.data_location(f"{uuid4()}-equal.parquet")
    Path(local_path(path)).parent.mkdir(parents=True, exist_ok=True)
    size = write_keys(Path(local_path(path)), **keys)
    gateway: Any = lake.sparkContext._gateway
    java = gateway.jvm
    table = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(lake._jsparkSession, name)
    table.refresh()
    numbers = [number for number, _ in keys.values()] if ids is None else ids
    array = gateway.new_array(java.int, len(numbers))
    for position, number in enumerate(numbers):
        array[position] = number
    count = len(next(iter(keys.values()))[1])
    builder = (
        java.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(array)
        .withPath(path)
        .withFormat("parquet")
        .withFileSizeInBytes(size)
        .withRecordCount(count)
    )
    if partition is not None:
        builder = builder.withPartitionPath(partition)
    table.newRowDelta().addDeletes(builder.build()).commit()
    lake.sql(f"REFRESH TABLE {name}")
