"""`upsert` of a DataFrame: each key once, in its bucket, as in an upsert without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    FormatError,
    UnsupportedError,
)
from alcid.formats.binary_row import hash_rows
from alcid.formats.buckets import fixed_bucket
from alcid.spark import rows as spark_rows
from alcid.spark.rows import DataFrameRows, run_tasks
from alcid.tables.paimon.keyed import upsert
from alcid.tables.paimon.keyed.memory import DEFAULT_MEMORY
from tests.spark.lost_attempts import LostAttempts
from tests.tables.paimon.small_tables import create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {"id": "BIGINT", "dt": "DATE", "name": "STRING", "score": "DOUBLE"}
VECTORS = {"deletion-vectors.enabled": "true"}
INDEXES = {
    "file-index.bitmap.columns": "name",
    "file-index.bloom-filter.columns": "id",
    "file-index.in-manifest-threshold": "1 b",
}
FIXED = {"bucket": "3"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "40"}


def keyed(
    folder: Path, options: dict[str, str], *, by_day: bool = False, spark: SparkSession | None
) -> PaimonTable:
    keys = ["dt"] if by_day else []
    made = create(
        folder,
        COLUMNS,
        partition_keys=keys,
        primary_keys=[*keys, "id"],
        options=VECTORS | options,
    )
    return alcid.paimon(made.location, spark)


def columns_of(step: int) -> list[str]:
    """Rows that depend on `id` and on the step; a key keeps its day."""
    return [
        "id",
        f"if(id % 5 = 0, NULL, concat('n', (id + {step}) % 7)) AS NAME",
        "date_add(DATE'2025-01-01', cast(id % 3 AS int)) AS dt",
        f"id / 8 + {step} AS score",
    ]


def rows_in(table: PaimonTable) -> list[dict[str, Any]]:
    table.refresh()
    rows: list[dict[str, Any]] = table.scan(order_by="id").to_arrow().to_pylist()
    return rows


def files_below(table: PaimonTable) -> list[Path]:
    return sorted(Path(table.location).rglob("bucket-*/*"))


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, str(before))


@pytest.mark.parametrize("by_day", [False, True], ids=["whole", "by day"])
@pytest.mark.parametrize("buckets", [FIXED, DYNAMIC], ids=["fixed", "dynamic"])
def test_rows_are_those_that_upserts_without_spark_give(
    spark: SparkSession, tmp_path: Path, buckets: dict[str, str], by_day: bool
) -> None:
    table = keyed(tmp_path / "table", INDEXES | buckets, by_day=by_day, spark=spark)
    other = keyed(tmp_path / "other", INDEXES | buckets, by_day=by_day, spark=None)
    for step, (first, stop) in enumerate([(0, 200), (100, 300), (50, 60)]):
        kind = "if(id < 150, '-D', '+U') AS op" if step == 1 else "'+I' AS op"
        df = spark.range(first, stop, 1, 3).selectExpr(*columns_of(step), kind)
        report = table.upsert(df, row_kind="op")
        expected = other.upsert(df.toArrow(), row_kind="op")
        assert (report.rows, report.deletes, report.replaced, report.snapshot_id) == (
            (200, 0, 0, 1),
            (150, 50, 100, 3),
            (10, 0, 10, 5),
        )[step]
        assert (expected.rows, expected.deletes, expected.replaced) == (
            report.rows,
            report.deletes,
            report.replaced,
        )
        assert rows_in(table) == rows_in(other)
    assert [row["id"] for row in rows_in(table)] == [*range(100), *range(150, 300)]
    assert (verified := table.verify(progress=False)).ok, verified
    if buckets == FIXED:
        for placed in table.snapshot.placed:
            rows = pq.read_table(Path(table.location, placed.path))
            assert set(fixed_bucket(hash_rows([rows["id"]]), 3)) == {placed.entry.bucket}
    expected_ids = [row["id"] for row in rows_in(table) if row["name"] == "n3"]
    frame = table.read("name = 'n3'").select("id").collect()
    assert sorted(row.id for row in frame) == expected_ids


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("buckets", [FIXED, DYNAMIC], ids=["fixed", "dynamic"])
def test_the_later_row_of_a_key_wins_and_a_bucket_has_one_writer(
    spark: SparkSession, tmp_path: Path, buckets: dict[str, str], adaptive: str
) -> None:
    table = keyed(tmp_path, buckets, spark=spark)
    rows = ["id % 100 AS id", "DATE'2025-01-01' AS dt", "cast(id AS string) AS name"]
    with setting(spark, "spark.sql.adaptive.enabled", adaptive):
        for round_ in (1, 2):
            df = spark.range(0, 3000 * round_, 1, 5).selectExpr(*rows)
            report = table.upsert(df)
            assert (report.rows, report.replaced) == (100, 100 * (round_ - 1))
            assert report.files == report.buckets
            last = 3000 * round_ - 100
            assert [(row["id"], row["name"]) for row in rows_in(table)] == [
                (number, str(last + number)) for number in range(100)
            ]


@pytest.fixture
def two_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are enough for both cores."""
    monkeypatch.setattr(upsert, "_CHANNEL_BYTES", 100)
    monkeypatch.setattr(upsert, "_WAVES", 1)


@pytest.mark.usefixtures("two_channels")
def test_rows_of_few_tasks_are_shared_out_to_all_channels(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = keyed(tmp_path, DYNAMIC, spark=spark)
    # Both channels get new keys, and fill the buckets that they own: even or odd ones.
    assert table.upsert(spark.range(0, 100, 1, 1).selectExpr(*columns_of(0))).rows == 100
    assert {placed.entry.bucket for placed in table.snapshot.placed} == {0, 1, 2, 3}
    again = table.upsert(spark.range(0, 100, 1, 4).selectExpr(*columns_of(1)))
    assert (again.rows, again.replaced, again.buckets) == (100, 100, 4)


@pytest.mark.usefixtures("two_channels")
def test_partitions_of_one_bucket_are_shared_out_to_all_channels(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    table, arranged = keyed(tmp_path, {"bucket": "1"}, by_day=True, spark=spark), list[Any]()

    def run_seen(rows: DataFrame, write: Any, description: str) -> Any:
        arranged.append(rows)
        return run_tasks(rows, write, description)

    days = "date_add(DATE'2025-01-01', cast(id % 20 AS int)) AS dt"
    with patch.object(spark_rows, "run_tasks", run_seen):
        report = table.upsert(spark.range(0, 100, 1, 1).selectExpr("id", days))
    assert (report.rows, report.buckets) == (100, 20)
    tasks = arranged[0].select("c1", f.spark_partition_id().alias("task")).distinct().collect()
    assert len(tasks) == 20
    assert {task.task for task in tasks} == {0, 1}


@pytest.mark.parametrize("buckets", [FIXED, DYNAMIC], ids=["fixed", "dynamic"])
def test_rows_that_do_not_fit_are_an_error_in_one_line_and_change_nothing(
    spark: SparkSession, tmp_path: Path, buckets: dict[str, str]
) -> None:
    table = keyed(tmp_path, buckets, by_day=True, spark=spark)
    day = "DATE'2025-01-01' AS dt"
    # One of these rows is wrong: the other tasks may have written theirs.
    rows = spark.range(0, 10, 1, 2)
    for wrong, problem in {
        "if(id = 9, NULL, id) AS id": r"^column id: found null, expected NOT NULL$",
        "if(id = 9, NULL, DATE'2025-01-01') AS dt": r"^column dt: found null, expected NOT NULL$",
        "if(id = 9, 'x', '+I') AS op": r"^column op: found 'x', expected \+I, -U, \+U or -D$",
    }.items():
        name = wrong.rpartition(" ")[2]
        others = [column for column in ("id", day, "'+I' AS op") if not column.endswith(name)]
        with pytest.raises(UnsupportedError, match=problem):
            table.upsert(rows.selectExpr(wrong, *others), row_kind="op")
    with pytest.raises(ColumnError, match="column no"):
        table.upsert(rows.selectExpr("id", day, "1 AS no"))
    with pytest.raises(ColumnError, match="column id: NOT NULL in the table, and not given"):
        table.upsert(rows.selectExpr(day))
    with pytest.raises(UnsupportedError, match="column id: double does not go into int64"):
        table.upsert(rows.selectExpr("id / 2 AS id", day))
    assert table.snapshot_id is None
    assert files_below(table) == []


def test_a_damaged_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table = keyed(tmp_path, FIXED, spark=spark)
    df = spark.range(0, 30, 1, 2).selectExpr(*columns_of(0))
    table.upsert(df)
    files = files_below(table)
    for file in files:
        file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(FormatError, match=r"^.*/bucket-[0-2]/data-[^ ]*\.parquet: "):
        table.upsert(df)
    assert files_below(table) == files


def test_an_empty_data_frame_makes_no_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = keyed(tmp_path, DYNAMIC, by_day=True, spark=spark)
    report = table.upsert(spark.range(0).selectExpr(*columns_of(0)))
    assert (report.rows, report.files, report.snapshot_id) == (0, 0, None)
    assert table.snapshot_id is None


def test_without_a_session_only_arrow_is_taken(tmp_path: Path, spark: SparkSession) -> None:
    table = keyed(tmp_path, FIXED, spark=None)
    with pytest.raises(UnsupportedError, match=r"PaimonTable .*: needs Spark"):
        table.upsert(spark.range(1))


def test_columns_go_by_name_whatever_the_name_and_a_rowkind_field_is_one_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = create(
        tmp_path,
        {"a.b": "INT", "`k`": "STRING", "op": "STRING"},
        primary_keys=["`k`"],
        options=VECTORS | DYNAMIC | {"rowkind.field": "op"},
    )
    table = alcid.paimon(made.location, spark)
    df = spark.range(0, 4, 1, 2).selectExpr(
        "if(id = 2, '-D', '+I') AS op", "concat('k', id % 3) AS ```k```", "cast(id AS int) `a.b`"
    )
    report = table.upsert(df)
    assert (report.rows, report.deletes, report.replaced) == (2, 0, 0)
    assert table.scan(order_by="`a.b`").to_arrow().to_pylist() == [
        {"a.b": 1, "`k`": "k1", "op": "+I"},
        {"a.b": 3, "`k`": "k0", "op": "+I"},
    ]


def test_keys_are_the_same_in_any_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"z": "TIMESTAMP_LTZ(3)", "n": "TIMESTAMP(6)", "d": "DECIMAL(20, 4)", "v": "INT"}
    table, other = (
        create(
            tmp_path / name,
            columns,
            partition_keys=["d"],
            primary_keys=["d", "z", "n"],
            options=VECTORS | DYNAMIC,
        )
        for name in ("table", "other")
    )
    table = alcid.paimon(table.location, spark)
    for zone, more in {"Europe/Vienna": 0, "America/New_York": 1000}.items():
        with setting(spark, "spark.sql.session.timeZone", zone):
            df = spark.range(0, 40, 1, 3).selectExpr(
                "timestamp_millis(id * 1001) AS z",
                "make_timestamp_ntz(2025, 1, 1, 0, 0, id) AS n",
                "cast(id % 2 AS decimal(12, 2)) AS d",
                f"cast(id + {more} AS int) AS v",
            )
            for report in (table.upsert(df), other.upsert(df.toArrow())):
                assert (report.rows, report.replaced) == (40, 40 if more else 0)
    first, expected = (opened.scan(order_by="v").to_arrow() for opened in (table, other))
    assert first.equals(expected)
    assert first["v"].to_pylist() == list(range(1000, 1040))


def test_two_upserts_at_a_time_both_count(spark: SparkSession, tmp_path: Path) -> None:
    tables = [keyed(tmp_path, DYNAMIC, spark=spark)]
    tables.append(alcid.paimon(tables[0].location, spark))
    frames = [
        spark.range(first, first + 100, 1, 2).selectExpr(*columns_of(step))
        for step, first in enumerate((0, 50))
    ]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda table, df: table.upsert(df), tables, frames))
    assert [report.rows for report in reports] == [100, 100]
    assert [row["id"] for row in rows_in(tables[0])] == list(range(150))
    assert (verified := tables[0].verify(progress=False)).ok, verified


def test_write_only_leaves_rows_on_level_0(spark: SparkSession, tmp_path: Path) -> None:
    table = keyed(tmp_path, {"bucket": "1"}, spark=spark)
    df = spark.range(0, 20, 1, 2).selectExpr(*columns_of(0))
    report = table.upsert(df, write_only=True)
    assert (report.rows, report.snapshot_id, report.is_compacted) == (20, 1, False)
    with pytest.warns(AlcidWarning, match=r"not yet compacted \(. files?, 20 rows\)"):
        assert rows_in(table) == []
    report = table.upsert(spark.range(19, 21).selectExpr(*columns_of(1)))
    assert (report.rows, report.snapshot_id, report.is_compacted) == (2, 3, True)
    assert [row["id"] for row in rows_in(table)] == list(range(21))


SCRIPT = """
df = spark.range(0, 1000, 1, 3).selectExpr("id", "DATE'2025-01-01' AS dt", "'new' AS name")
report = alcid.paimon(folder, spark).upsert(df)
"""


def test_a_task_that_is_tried_again_doubles_nothing(
    attempts: LostAttempts, tmp_path: Path, spark: SparkSession
) -> None:
    table, flags = keyed(tmp_path / "table", FIXED, spark=spark), tmp_path / "flags"
    table.upsert(spark.range(0, 100, 1, 2).selectExpr(*columns_of(0)))
    before = len(files_below(table))
    output, lost = attempts.run(SCRIPT, table.location, flags)
    assert lost == ["0"]  # rows are few
    assert output[:5] == ["1000", "0", "100", "3", "3"]
    assert [(row["id"], row["name"]) for row in rows_in(table)] == [
        (number, "new") for number in range(1000)
    ]
    assert len(files_below(table)) == before + 6  # the lost files are there, and are not read
    assert (verified := table.verify(progress=False)).ok, verified


# -- at size -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by_day", [False, True], ids=["whole", "by day"])
def test_keys_are_looked_up_by_tasks_that_have_a_range_of_hashes_each(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_day: bool
) -> None:
    table = keyed(tmp_path / "table", DYNAMIC, by_day=by_day, spark=spark)
    other = keyed(tmp_path / "other", DYNAMIC, by_day=by_day, spark=None)
    first = spark.range(0, 300, 1, 2).selectExpr(*columns_of(0))
    table.upsert(first)
    other.upsert(first.toArrow())
    # The hash index has 1,200 bytes, so that each task has several ranges.
    monkeypatch.setattr(upsert, "DEFAULT_MEMORY", replace(DEFAULT_MEMORY, hash_bytes=128))
    arranged = list[Any]()

    def run_seen(rows: DataFrame, write: Any, *more: Any) -> Any:
        arranged.append(rows)
        return run_tasks(rows, write, *more)

    df = spark.range(0, 450, 1, 3).selectExpr(*columns_of(1))
    with patch.object(spark_rows, "run_tasks", run_seen):
        report = table.upsert(df)
    assert other.upsert(df.toArrow()).replaced == report.replaced == 300
    assert rows_in(table) == rows_in(other)
    plan = arranged[0]._jdf.queryExecution().toString()
    assert plan.count("ArrowEvalPython") >= 2
    assert (verified := table.verify(progress=False)).ok, verified


@pytest.mark.parametrize("buckets", [FIXED, DYNAMIC], ids=["fixed", "dynamic"])
def test_tasks_with_little_memory_spill_and_write_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    buckets: dict[str, str],
) -> None:
    table = keyed(tmp_path / "table", buckets, spark=spark)
    other = keyed(tmp_path / "other", buckets, spark=None)
    tiny = replace(DEFAULT_MEMORY, buffered_bytes=500, key_bytes=500, most_merged=2)
    rows = ["id % 150 AS id", "DATE'2025-01-01' AS dt", "cast(id AS string) AS name"]
    for more in (0, 75):
        df = spark.range(0, 1000, 1, 5).selectExpr(*rows)
        df = df.selectExpr(f"id + {more} AS id", "dt", "name")
        with (
            setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "20"),
            monkeypatch.context() as patched,
        ):
            patched.setattr(upsert, "DEFAULT_MEMORY", tiny)
            report = table.upsert(df)
        expected = other.upsert(df.toArrow())
        assert (report.rows, report.replaced) == (expected.rows, expected.replaced)
        assert rows_in(table) == rows_in(other)
    assert (verified := table.verify(progress=False)).ok, verified


def test_few_rows_start_few_tasks(spark: SparkSession, tmp_path: Path) -> None:
    for rows, parallelism, most, channels in (
        (10_000, 200, None, 1),
        (1_000_000, 200, None, 1),
        (20_000_000, 200, None, 20),
        (20_000_000, 2, 2, 2),
    ):
        size = DataFrameRows(spark.range(rows)).size()
        assert size is not None
        assert size.bytes == 8 * rows
        assert upsert.count_channels(size, parallelism, most=most) == channels
    joined = spark.range(10**9).crossJoin(spark.range(10**9))
    assert DataFrameRows(joined).size() is None
    assert upsert.count_channels(None, 200, 1, 800) == 200
    table = keyed(tmp_path, DYNAMIC, by_day=True, spark=spark)
    report = table.upsert(spark.range(0, 1000, 1, 8).selectExpr(*columns_of(0)))
    assert report.rows == 1000
