"""`append` of a DataFrame to a Paimon table: each row once, in one snapshot, in its bucket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.binary_row import hash_rows
from alcid.formats.buckets import fixed_bucket
from alcid.tables.paimon.write.append import append_arrow
from tests.spark.lost_attempts import LostAttempts
from tests.tables.paimon.small_tables import create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "BIGINT", "name": "STRING", "dt": "DATE", "at": "TIMESTAMP_LTZ(3)"}
INDEXES = {
    "file-index.bitmap.columns": "name",
    "file-index.bloom-filter.columns": "id",
    "file-index.in-manifest-threshold": "1 b",
}
ROWS = [
    "id",
    "if(id % 5 = 0, NULL, concat('n', id % 7)) AS NAME",
    "date_add(DATE'2025-01-01', cast(id % 3 AS int)) AS dt",
    "timestamp_millis(id * 1001) AS at",
]


def opened(table: PaimonTable, spark: SparkSession) -> PaimonTable:
    return alcid.paimon(table.location, spark)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("bucket-*/*"))


def ids(table: PaimonTable, where: str | None = None) -> list[int]:
    numbers: list[int] = table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(numbers)


@pytest.mark.parametrize("buckets", [{}, {"bucket": "3", "bucket-key": "id"}], ids=["none", "3"])
@pytest.mark.parametrize("keys", [[], ["dt"]], ids=["whole", "by day"])
def test_rows_are_those_that_an_append_without_spark_gives(
    spark: SparkSession, tmp_path: Path, buckets: dict[str, str], keys: list[str]
) -> None:
    made = create(tmp_path / "t", COLUMNS, partition_keys=keys, options=INDEXES | buckets)
    table = opened(made, spark)
    df = spark.range(0, 200, 1, 3).selectExpr(*ROWS)
    report = table.append(df)
    assert (report.rows, report.files, report.snapshot_id) == (200, table.files, 1)
    other = create(tmp_path / "other", COLUMNS, partition_keys=keys, options=INDEXES | buckets)
    append_arrow(other, df.toArrow())
    rows, expected = (
        each_table.scan(order_by="id").to_arrow().to_pylist() for each_table in (table, other)
    )
    assert rows == expected
    if buckets or keys:  # the same buckets, and in each the rows in one file
        assert report.files == other.files
        assert sorted(placed.folder for placed in table.snapshot.placed) == sorted(
            placed.folder for placed in other.snapshot.placed
        )
    for placed in table.snapshot.placed:
        file_rows = pq.read_table(tmp_path / "t" / placed.path)
        assert len(file_rows) == placed.file.rows
        if buckets:
            assert set(fixed_bucket(hash_rows([file_rows["id"]]), 3)) == {placed.entry.bucket}
        assert placed.file.extra_files == (f"{placed.file.name}.index",)
    assert len(files_below(tmp_path / "t")) == 2 * table.files
    expected_ids = [number for number in range(200) if number % 7 == 3 and number % 5]
    assert ids(table, "name = 'n3'") == expected_ids
    assert table.read("name = 'n3'").count() == len(expected_ids)


def test_a_value_that_does_not_fit_is_reported_and_the_table_does_not_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    for options in ({}, {"bucket": "2", "bucket-key": "id"}):
        made = create(tmp_path / str(len(options)), COLUMNS, options=options)
        table = opened(made, spark)
        # One of the tasks fails: the other has written its rows.
        finer = spark.range(0, 10, 1, 2).selectExpr("id", "timestamp_micros(id div 9) AS at")
        with pytest.raises(UnsupportedError, match=r"column at: .* would lose data"):
            table.append(finer)
        with pytest.raises(ColumnError, match="column no"):
            table.append(spark.range(1).selectExpr("id AS no"))
        assert table.snapshot_id is None
        assert files_below(Path(table.location)) == []


def test_an_empty_data_frame_makes_no_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(create(tmp_path, COLUMNS, partition_keys=["dt"], options={}), spark)
    report = table.append(spark.range(0).selectExpr(*ROWS))
    assert (report.rows, report.files, report.snapshot_id) == (0, 0, None)
    assert table.snapshot_id is None


def test_without_a_session_only_arrow_is_taken(tmp_path: Path, spark: SparkSession) -> None:
    table = create(tmp_path, COLUMNS, options={})
    with pytest.raises(UnsupportedError, match=r"PaimonTable .*: needs Spark"):
        table.append(spark.range(1))


SCRIPT = """
df = spark.range(0, 1000, 1, 3).selectExpr("id", "concat('n', id % 7) AS name")
report = alcid.paimon(folder, spark).append(df)
"""


def test_a_task_that_is_tried_again_doubles_nothing(attempts: LostAttempts, tmp_path: Path) -> None:
    table, flags = create(tmp_path / "table", COLUMNS, options=INDEXES), tmp_path / "flags"
    output, lost = attempts.run(SCRIPT, table.location, flags)
    assert len(lost) == 3
    assert output[:2] == ["3", "1000"]
    table.refresh()
    assert (table.files, table.snapshot_id) == (3, 1)
    assert np.array_equal(ids(table), np.arange(1000))
    assert len(files_below(tmp_path / "table")) == 12  # the lost files are there, and are not read


def test_types_of_spark_go_into_those_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "id": "BIGINT",
        "c": "CHAR(5)",
        "n": "TIMESTAMP(3)",
        "z": "TIMESTAMP_LTZ(9)",
        "m": "DECIMAL(38, 4)",
        "l": "ARRAY<BIGINT>",
        "r": "ROW<x BIGINT, y MAP<STRING, INT>>",
    }
    table = opened(create(tmp_path, columns, options={}), spark)
    df = spark.sql(
        "SELECT 1 AS id, 'abc' AS c, TIMESTAMP_NTZ'2025-01-01 10:00:00.5' AS n, "
        "TIMESTAMP'2025-01-01 10:00:00.000001 UTC' AS z, 1.25BD AS m, array(1, NULL) AS l, "
        "named_struct('x', 5, 'y', map('k', 7)) AS r"
    )
    table.append(df)
    rows = table.scan().to_arrow()
    assert rows["n"].cast(pa.int64()).to_pylist() == [1735725600500]
    assert rows["z"].cast(pa.int64()).to_pylist() == [1735725600000001000]
    assert rows.select(["id", "c", "l", "r"]).to_pylist() == [
        {"id": 1, "c": "abc", "l": [1, None], "r": {"x": 5, "y": [("k", 7)]}}
    ]
    assert str(rows["m"][0]) == "1.2500"
