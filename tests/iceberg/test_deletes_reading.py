"""Deleted rows of all kinds, compared with the rows that Iceberg itself reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid import DeletionVector
from alcid.errors import ChecksumError, FileGoneError, FormatError
from alcid.spark.engine import SparkEngine
from alcid.spark.iceberg import SparkCatalogTable
from alcid.tables.iceberg.deletes import DeleteColumns, TableDeletes
from alcid.tables.iceberg_table import IcebergTable
from tests.iceberg.deleted import delete_equal, deleted_by_iceberg, insert
from tests.iceberg.vectors import data_entries, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_READ = "'write.delete.mode'='merge-on-read'"
COLUMNS = "id, cast(id % 3 as int) as p, concat('n', id % 10) as name"


def create(lake: SparkSession, name: str, version: int, *, by: str = "", more: str = "") -> None:
    parted = f"PARTITIONED BY ({by})" if by else ""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, p INT, name STRING) USING iceberg {parted}"
        f" TBLPROPERTIES ('format-version'='{version}', {ON_READ}{more})"
    )


def opened(lake: SparkSession, name: str) -> IcebergTable:
    return alcid.iceberg(name, lake)


def check(lake: SparkSession, name: str) -> dict[str, DeletionVector]:
    """Check that the same rows are deleted for us and for Iceberg, all at once and one by one."""
    expected = deleted_by_iceberg(lake, name)
    table = opened(lake, name)
    files = table.snapshot
    paths = files.file_paths.to_pylist()
    assert sorted(expected) == sorted(paths)
    files.load_deletions(np.arange(len(paths)))
    none = DeletionVector()
    vectors = {path: files.deletions.get(file, none) for file, path in enumerate(paths)}
    assert vectors == expected
    one_by_one = TableDeletes(
        files.entries, DeleteColumns.of(table.metadata), table.file_io, files.read_fields
    )
    assert {paths[file]: one_by_one[file] for file in reversed(list(one_by_one))} == {
        paths[file]: expected[paths[file]] for file in files.deletions
    }
    assert table.count() == sum(files.rows) - sum(map(len, expected.values()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkEngine, "delete_bytes", 0)
        check_tasks(lake, name)
    return expected


def check_tasks(lake: SparkSession, name: str) -> None:
    """See that tasks, which look for deleted rows themselves, read the rows that Iceberg reads."""
    table, rows = opened(lake, name), lake.table(name)
    assert as_text(table.read().toArrow()) == as_text(rows.toArrow())
    assert as_text(table.scan("id > 5").to_arrow()) == as_text(rows.where("id > 5").toArrow())
    assert table.count() == rows.count()
    assert table.count("id % 2 = 1") == rows.where("id % 2 = 1").count()
    highest = table.scan(columns=["id"], order_by="id DESC", limit=3).to_arrow()
    assert highest["id"].to_pylist() == [
        row["id"] for row in rows.orderBy(rows["id"].desc()).limit(3).collect()
    ]
    deletions = table.snapshot.deletions
    assert isinstance(deletions, TableDeletes)
    assert not deletions._loaded  # the driver has looked for none


def as_text(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


def kinds(lake: SparkSession, name: str) -> list[tuple[str, int]]:
    """The delete files: format, and how many rows they delete."""
    entries = data_entries(SparkCatalogTable(lake, name), 1)
    return sorted((entry["file_format"], entry["record_count"]) for entry in entries)


def test_positions_of_format_2_by_file_and_by_partition(lake: SparkSession, name: str) -> None:
    create(lake, name, 2, by="p", more=", 'write.delete.granularity'='file'")
    insert(lake, name, 0, 60, COLUMNS)
    insert(lake, name, 60, 120, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (1, 4, 7, 61, 2)")
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.granularity'='partition')")
    lake.sql(f"DELETE FROM {name} WHERE id IN (10, 62, 64, 65, 8)")
    insert(lake, name, 0, 60, COLUMNS)  # newer than what was deleted
    rows = check(lake, name)
    assert sum(map(len, rows.values())) == 10
    assert kinds(lake, name)
    assert {kind for kind, _ in kinds(lake, name)} == {"PARQUET"}


def test_vectors_of_format_3(lake: SparkSession, name: str) -> None:
    create(lake, name, 3, by="p")
    insert(lake, name, 0, 60, COLUMNS)
    insert(lake, name, 60, 120, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (1, 4, 61, 2)")
    before = opened(lake, name).snapshot_id
    lake.sql(f"DELETE FROM {name} WHERE id IN (10, 61, 5)")
    insert(lake, name, 0, 60, COLUMNS)
    check(lake, name)
    assert kinds(lake, name) == [("PUFFIN", 1), ("PUFFIN", 2), ("PUFFIN", 3)]
    past = alcid.iceberg(name, lake, snapshot_id=before)
    assert (past.count(), opened(lake, name).count()) == (116, 174)
    assert sorted(map(len, past.snapshot.deletions.values())) == [1, 1, 2]


def test_positions_of_format_2_with_vectors_of_format_3(lake: SparkSession, name: str) -> None:
    create(lake, name, 2, more=", 'write.delete.granularity'='partition'")
    insert(lake, name, 0, 30, COLUMNS)
    insert(lake, name, 30, 60, COLUMNS)
    insert(lake, name, 60, 90, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (1, 31, 61)")
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    lake.sql(f"DELETE FROM {name} WHERE id IN (2, 62)")
    rows = check(lake, name)
    assert sorted(map(len, rows.values())) == [1, 2, 2]
    assert {kind for kind, _ in kinds(lake, name)} == {"PARQUET", "PUFFIN"}


def test_deletes_of_several_partition_specs(lake: SparkSession, name: str) -> None:
    create(lake, name, 2, by="p", more=", 'write.delete.granularity'='partition'")
    insert(lake, name, 0, 30, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (1, 2)")
    lake.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD p WITH bucket(2, id)")
    insert(lake, name, 30, 60, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (3, 4, 31, 32)")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD bucket(2, id)")
    insert(lake, name, 60, 90, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (5, 33, 61)")
    rows = check(lake, name)
    assert sum(map(len, rows.values())) == 9


def test_equality_deletes(lake: SparkSession, name: str) -> None:
    create(lake, name, 2)
    insert(lake, name, 0, 20, COLUMNS)
    lake.sql(f"INSERT INTO {name} VALUES (NULL, 1, 'null'), (3, 0, 'again')")
    delete_equal(lake, name, {"id": (1, pa.array([3, 5, None], pa.int64()))})
    insert(lake, name, 0, 10, COLUMNS)  # newer, so they stay
    pairs = {
        "name": (3, pa.array(["n1", "n2"])),
        "p": (2, pa.array([1, 1], pa.int32())),
        "rest": (9, pa.array([0, 0])),
    }
    delete_equal(lake, name, pairs, ids=[3, 2])
    rows = check(lake, name)
    # 3, 5 and 1 of the first file, null and 3 of the next two, 1 of the last
    assert sorted(map(len, rows.values())) == [1, 1, 1, 3]


def test_equality_deletes_of_partitions(lake: SparkSession, name: str) -> None:
    create(lake, name, 2, by="p")
    insert(lake, name, 0, 30, COLUMNS)
    delete_equal(lake, name, {"name": (3, pa.array(["n1", "n4"]))}, partition="p=1")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD p")
    insert(lake, name, 30, 60, COLUMNS)
    delete_equal(lake, name, {"id": (1, pa.array([2, 3, 31]))})  # without a partition: everywhere
    rows = check(lake, name)
    assert sum(map(len, rows.values())) == 5


def test_equality_deletes_by_columns_that_changed(lake: SparkSession, name: str) -> None:
    create(lake, name, 2)
    insert(lake, name, 0, 20, COLUMNS)
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN p TO q")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN q TYPE BIGINT")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN p STRING")
    insert(lake, name, 20, 40, f"{COLUMNS}, 'new' as p")
    old = {"p": (2, pa.array([1], pa.int32())), "name": (3, pa.array(["n1"]))}
    delete_equal(lake, name, old)
    delete_equal(lake, name, {"p": (4, pa.array([None], pa.string())), "id": (1, pa.array([2]))})
    rows = check(lake, name)
    # 1 of the first file by its values then, 2 as it has no p; 31 of the second file
    assert sorted(map(len, rows.values())) == [1, 2]


def test_equality_deletes_with_vectors(lake: SparkSession, name: str) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    delete_equal(lake, name, {"id": (1, pa.array([3, 5]))})
    lake.sql(f"DELETE FROM {name} WHERE id IN (4, 6)")
    delete_equal(lake, name, {"id": (1, pa.array([7]))})
    assert list(check(lake, name).values()) == [DeletionVector([3, 4, 5, 6, 7])]


def test_a_damaged_vector_is_an_error_and_not_a_row_that_comes_back(
    lake: SparkSession, name: str
) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (4, 6)")
    (entry,) = data_entries(SparkCatalogTable(lake, name), 1)
    path = Path(local_path(entry["file_path"]))
    data = bytearray(path.read_bytes())
    data[entry["content_offset"] + entry["content_size_in_bytes"] - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ChecksumError, match=path.name):
        opened(lake, name).count()
    path.write_bytes(data[: entry["content_offset"] + 8])
    with pytest.raises((FormatError, OSError), match=path.name):
        opened(lake, name).count("id = 4")
    path.unlink()
    with pytest.raises(FileGoneError, match=path.name):
        opened(lake, name).count("id = 4")
