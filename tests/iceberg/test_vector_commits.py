"""Deletion vectors that are committed through the catalog, as Iceberg sees them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from alcid.errors import ConflictError, UnsupportedError
from alcid.spark.iceberg import SparkCatalogTable, scan_tasks
from alcid.tables.iceberg.catalog import VectorFile
from tests.iceberg.vectors import commit_of, data_entries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"


def made(
    lake: SparkSession, name: str, columns: str, partitions: str, rows: str, format_version: int = 3
) -> SparkCatalogTable:
    """A table of one append."""
    properties = PROPERTIES.replace("'3'", f"'{format_version}'")
    by = f"PARTITIONED BY ({partitions})" if partitions else ""
    lake.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} {properties}")
    lake.sql(f"INSERT INTO {name} {rows}")
    return SparkCatalogTable(lake, name)


def ids(lake: SparkSession, name: str) -> list[int]:
    return [row[0] for row in lake.sql(f"SELECT id FROM {name} ORDER BY id").collect()]


def test_a_vector_deletes_rows_for_iceberg_and_is_replaced(lake: SparkSession, name: str) -> None:
    table = made(lake, name, "id BIGINT", "", "SELECT /*+ COALESCE(1) */ id FROM range(10)")
    number = table.commit_vectors(commit_of(table, {0: [1, 3]}))
    assert table.load().current_snapshot_id == number
    assert table.load().snapshots[number].operation == "delete"
    assert ids(lake, name) == [0, 2, 4, 5, 6, 7, 8, 9]
    [old] = data_entries(table, content=1)
    table.commit_vectors(commit_of(table, {0: [1, 3, 5]}, [old]))
    assert ids(lake, name) == [0, 2, 4, 6, 7, 8, 9]
    [new] = data_entries(table, content=1)
    assert (new["record_count"], new["file_format"]) == (3, "PUFFIN")
    lake.sql(f"DELETE FROM {name} WHERE id = 6")  # Iceberg adds to ours
    [theirs] = data_entries(table, content=1)
    assert theirs["record_count"] == 4
    table.commit_vectors(commit_of(table, {0: [1, 3, 5, 6, 9]}, [theirs]))  # and we to theirs
    assert ids(lake, name) == [0, 2, 4, 7, 8]


def test_rows_in_the_cache_of_spark_are_read_again(lake: SparkSession, name: str) -> None:
    table = made(lake, name, "id BIGINT", "", "SELECT /*+ COALESCE(1) */ id FROM range(5)")
    lake.catalog.cacheTable(name)
    try:
        assert ids(lake, name) == [0, 1, 2, 3, 4]
        table.commit_vectors(commit_of(table, {0: [2]}))
        assert ids(lake, name) == [0, 1, 3, 4]
    finally:
        lake.catalog.uncacheTable(name)


VALUES = {
    "b": ("BOOLEAN", "true"),
    "i": ("INT", "-5"),
    "f": ("FLOAT", "CAST(1.5 AS FLOAT)"),
    "n": ("DOUBLE", "CAST(-0.1 AS DOUBLE)"),
    "dec": ("DECIMAL(20, 3)", "CAST(-12345678901234567.890 AS DECIMAL(20, 3))"),
    "day": ("DATE", "DATE'1969-07-20'"),
    "moment": ("TIMESTAMP", "TIMESTAMP'2024-02-03 04:05:06.000007'"),
    "local": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2024-02-03 04:05:06'"),
    "word": ("STRING", "'a/b \u00e9\U0001f600'"),
    "raw": ("BINARY", "X'00FF'"),
    "nothing": ("STRING", "CAST(NULL AS STRING)"),
}
MADE = [
    *("years(moment)", "hours(moment2)", "months(local)", "days(day)", "bucket(8, word)"),
    *("truncate(2, word)", "truncate(10, i)", "truncate(1, raw)", "truncate(7, dec)"),
]


@pytest.mark.parametrize("partitions", [list(VALUES), MADE], ids=["identity", "made"])
def test_partitions_of_every_type(lake: SparkSession, name: str, partitions: list[str]) -> None:
    columns = {**VALUES, "moment2": VALUES["moment"]}
    table = made(
        lake,
        name,
        "id BIGINT, " + ", ".join(f"{column} {kind}" for column, (kind, _) in columns.items()),
        ", ".join(partitions),
        f"SELECT /*+ COALESCE(1) */ id, {', '.join(value for _, value in columns.values())} "
        "FROM range(4)",
    )
    [data] = data_entries(table)
    table.commit_vectors(commit_of(table, {0: [2]}))
    [vector] = data_entries(table, content=1)
    assert vector["partition"] == data["partition"]
    assert len(vector["partition"]) == len(partitions)
    assert ids(lake, name) == [0, 1, 3]
    table.commit_vectors(commit_of(table, {0: [0, 2]}, [vector]))  # found by partition
    assert len(data_entries(table, content=1)) == 1
    assert ids(lake, name) == [1, 3]


def test_files_of_several_specs_in_one_commit(lake: SparkSession, name: str) -> None:
    columns = "id BIGINT, a INT, s STRUCT<x: INT>"
    row = "SELECT /*+ COALESCE(1) */ id, 1, named_struct('x', 2) FROM range({}, {})"
    table = made(lake, name, columns, "a", row.format(0, 3))
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD s.x")
    lake.sql(f"INSERT INTO {name} {row.format(3, 6)}")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD a")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD s.x")
    lake.sql(f"INSERT INTO {name} {row.format(6, 9)}")
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN s TO t")
    files = {file["spec_id"]: number for number, file in enumerate(data_entries(table))}
    assert sorted(files) == [0, 1, 3]
    table.commit_vectors(commit_of(table, {number: [spec % 3] for spec, number in files.items()}))
    assert ids(lake, name) == [1, 2, 3, 5, 7, 8]
    files_by_spec = {entry["spec_id"]: entry for entry in data_entries(table, content=1)}
    assert files_by_spec[1]["partition"] == {"a": 1, "s.x": 2}
    table.commit_vectors(
        commit_of(
            table, {number: [0, 1, 2] for number in files.values()}, list(files_by_spec.values())
        )
    )
    assert ids(lake, name) == []


def test_a_partition_of_a_column_that_is_dropped(lake: SparkSession, name: str) -> None:
    rows = "SELECT /*+ COALESCE(1) */ id, DATE'2024-01-01' FROM range(3)"
    table = made(lake, name, "id BIGINT, day DATE", "day", rows)
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD day")
    lake.sql(f"ALTER TABLE {name} DROP COLUMN day")
    with pytest.raises(UnsupportedError, match="partition field day: its column is dropped"):
        table.commit_vectors(commit_of(table, {0: [1]}))
    assert ids(lake, name) == [0, 1, 2]
    lake.sql(
        f"CALL lake.system.rewrite_data_files("
        f"table => '{name}', options => map('rewrite-all', 'true'))"
    )
    table.commit_vectors(commit_of(table, {0: [1]}))
    assert ids(lake, name) == [0, 2]


def test_position_deletes_of_version_2_are_replaced(lake: SparkSession, name: str) -> None:
    rows = "SELECT /*+ COALESCE(1) */ id FROM range(6)"
    table = made(lake, name, "id BIGINT", "", rows, format_version=2)
    lake.sql(f"DELETE FROM {name} WHERE id = 4")
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    [old] = data_entries(table, content=1)
    assert old["file_format"] == "PARQUET"
    table.commit_vectors(commit_of(table, {0: [1, 4]}, [old]))
    [new] = data_entries(table, content=1)
    assert new["file_format"] == "PUFFIN"
    assert ids(lake, name) == [0, 2, 3, 5]


def test_a_vector_that_another_added_is_a_conflict(lake: SparkSession, name: str) -> None:
    table = made(lake, name, "id BIGINT", "", "SELECT /*+ COALESCE(1) */ id FROM range(6)")
    change = commit_of(table, {0: [1]})
    lake.sql(f"DELETE FROM {name} WHERE id = 4")
    with pytest.raises(ConflictError, match=r"^lake\.db\.t\d+: Found concurrently added DV"):
        table.commit_vectors(change)
    assert ids(lake, name) == [0, 1, 2, 3, 5]


def test_a_vector_of_a_file_that_is_gone_is_a_conflict(lake: SparkSession, name: str) -> None:
    table = made(lake, name, "id BIGINT, a INT", "a", "VALUES (1, 1), (2, 1), (3, 2)")
    change = commit_of(table, {0: [1]})
    lake.sql(f"DELETE FROM {name} WHERE a = 1")
    with pytest.raises(ConflictError, match=r"^lake\.db\.t\d+: .*missing data files"):
        table.commit_vectors(change)
    assert ids(lake, name) == [3]


def test_a_vector_to_remove_that_is_gone_is_a_conflict(lake: SparkSession, name: str) -> None:
    table = made(lake, name, "id BIGINT", "", "SELECT /*+ COALESCE(1) */ id FROM range(6)")
    table.commit_vectors(commit_of(table, {0: [1]}))
    change = commit_of(table, {0: [1, 2]}, data_entries(table, content=1))
    lake.sql(f"DELETE FROM {name} WHERE id = 4")
    with pytest.raises(ConflictError):
        table.commit_vectors(change)
    assert ids(lake, name) == [0, 2, 3, 5]


def test_rows_that_are_appended_meanwhile_are_no_conflict(lake: SparkSession, name: str) -> None:
    table = made(lake, name, "id BIGINT", "", "SELECT /*+ COALESCE(1) */ id FROM range(3)")
    change = commit_of(table, {0: [1]})
    lake.sql(f"INSERT INTO {name} VALUES (7)")
    table.commit_vectors(change)
    assert ids(lake, name) == [0, 2, 7]


METADATA = {
    "current-schema-id": 1,
    "partition-specs": [
        {
            "spec-id": 3,
            "fields": [{"source-id": 5, "field-id": 1000, "name": "p", "transform": "identity"}],
        }
    ],
    "schemas": [
        {"schema-id": 0, "fields": [{"id": 5, "name": "p", "type": "int"}]},
        {"schema-id": 1, "fields": [{"id": 5, "name": "q", "type": "long"}]},
    ],
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (False, False),
        (1 << 60, 1 << 60),
        (2.5, 2.5),
        (Decimal("1E+2"), "100"),
        (Decimal("-0.50"), "-0.50"),
        (date(1, 2, 3), "0001-02-03"),
        (datetime(2024, 1, 2, 3, 4, 5, 6), "2024-01-02T03:04:05.000006"),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02T03:04:05+00:00"),
        ("\u00e9", "\u00e9"),
        (b"\x00\xff", "00FF"),
    ],
    ids=str,
)
def test_partition_values_as_json(value: Any, text: Any) -> None:
    [task] = scan_tasks(METADATA, [VectorFile("a.puffin", 9, "a", 3, (value,), 4, 5, 1)])
    task_json = json.loads(task)
    assert task_json["delete-files"][0]["partition"] == [text]
    assert task_json["schema"]["schema-id"] == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_partition_values_that_json_has_no_word_for(value: float) -> None:
    with pytest.raises(UnsupportedError, match=f"partition value {value}: DELETE of Spark"):
        scan_tasks(METADATA, [VectorFile("a.puffin", 9, "a", 3, (value,), 4, 5, 1)])
