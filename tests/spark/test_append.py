"""`append`: plain Spark then reads from the folder exactly the rows that were given."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.datafiles.parquet import read_layout
from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.formats.source import FileSource
from alcid.tables.parquet_writer import GROUP_ROWS, PAGE_ROWS
from tests.spark.lost_attempts import LostAttempts
from tests.spark.ui import jobs_within
from tests.storage.conftest import KEYS, bucket, moto_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from alcid import ParquetTable

__all__ = ["bucket", "moto_port"]

TYPES = """
    id,
    cast(id - 128 AS byte) AS tiny,
    cast(id * 100 AS short) AS small,
    cast(id * 1000000 AS int) AS i,
    if(id % 5 = 0, NULL, cast(id / 3 AS float)) AS f,
    CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-Infinity') WHEN 2 THEN -0.0D
        ELSE id / 7 END AS d,
    cast(id / 100 AS decimal(9, 2)) AS money,
    cast(id AS decimal(18, 6)) AS middle,
    cast(-id AS decimal(38, 10)) AS wide,
    if(id % 4 = 0, NULL, concat('ä ', id)) AS name,
    cast(concat('b', id) AS binary) AS raw,
    date_add(DATE'1500-02-28', cast(id * 2000 AS int)) AS day,
    TIMESTAMP'1500-01-01 00:00:00.123456' + make_dt_interval(cast(id * 2000 AS int)) AS at,
    TIMESTAMP_NTZ'2025-03-30 02:30:00.000001' + make_dt_interval(cast(id AS int)) AS clock,
    id % 3 = 0 AS flag,
    if(id % 6 = 0, NULL, array(id, NULL)) AS list,
    if(id % 2 = 0, map('k', id, 'n', NULL), map()) AS map,
    if(id % 7 = 0, NULL, named_struct('x', id, 'y', array(map('z', cast(id AS string))))) AS struct
"""


def opened(folder: Path | str, spark: SparkSession, **options: Any) -> ParquetTable:
    return alcid.parquet(folder, spark, **options)


def everything(spark: SparkSession, rows: int = 100) -> DataFrame:
    return spark.range(0, rows, 1, 3).selectExpr(*_columns(TYPES))


def _columns(text: str) -> list[str]:
    """The expressions of a SELECT: commas inside brackets do not separate."""
    columns, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            columns.append("")
        else:
            columns[-1] += letter
    return [" ".join(column.split()) for column in columns]


def rows_of(df: DataFrame, order: str = "id") -> list[str]:
    """Rows as text, so that NaN equals NaN."""
    return [repr(row) for row in df.orderBy(order).collect()]


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_spark_reads_the_rows_and_types_that_were_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = everything(spark)
    table = opened(tmp_path, spark)
    report = table.append(df, {})
    assert (report.files, report.rows, report.bundles) == (3, 100, 3)
    back = spark.read.parquet(str(tmp_path))
    assert back.schema.simpleString() == df.schema.simpleString()
    assert all(field.nullable for field in back.schema)
    assert rows_of(back) == rows_of(df)
    assert rows_of(table.scan().to_spark()) == rows_of(df)
    assert [*files_below(tmp_path / "_alcid/staging")] == []
    expected = sum((tmp_path / path).stat().st_size for path in table_files(tmp_path))
    assert report.bytes_written == expected
    report_json = report.to_dict()
    assert (report_json["rows"], report_json["index_bytes"]) == (100, report.index_bytes)


def table_files(folder: Path) -> list[str]:
    return [path for path in files_below(folder) if not path.startswith("_alcid")]


def test_files_have_small_pages_and_fresh_indexes_that_answer(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.range(0, 10_000, 1, 2).selectExpr("id", "id % 50 AS class_id", "id / 3 AS score")
    table = opened(tmp_path, spark)
    table.append(
        df,
        {
            "file-index.bloom-filter.columns": "id",
            "file-index.bitmap.columns": "CLASS_ID",
            "file-index.range-bitmap.columns": "score",
        },
    )
    assert [
        (index.column, index.index_type, index.fresh, index.absent) for index in table.indexes()
    ] == [
        ("class_id", "bitmap", 2, 0),
        ("id", "bloom-filter", 2, 0),
        ("score", "range-bitmap", 2, 0),
    ]
    for path in table_files(tmp_path):
        with FileSource(tmp_path / path) as source:
            layout = read_layout(source)
            for column in layout.columns:
                firsts = column.leaves[0].pieces[2].tolist()
                assert firsts == [*range(0, layout.rows, PAGE_ROWS)]
    assert table.scan("id = 7777").to_arrow().to_pydict()["id"] == [7777]
    ids = table.scan("class_id = 7", columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(ids) == [*range(7, 10_000, 50)]
    best = table.scan(order_by="score DESC", limit=3, columns=["id"]).to_arrow()
    assert best["id"].to_pylist() == [9999, 9998, 9997]
    report = table.build_indexes({"file-index.bitmap.columns": "class_id"})
    assert (report.indexed, report.fresh) == (0, 2)


def test_by_default_files_get_the_indexes_that_the_table_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(
        pa.table({"id": [1, 2], "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64()))}),
        tmp_path / "a.parquet",
    )
    table = opened(tmp_path, spark)
    df = spark.sql("SELECT 3L AS id, map('k', 5L) AS m")
    table.append(df)
    assert table.indexes() == []
    table.build_indexes({"file-index.bitmap.columns": "id, m[k]"})
    table.append(df)
    table.append(df, {})
    assert [(index.column, index.fresh, index.absent) for index in table.indexes()] == [
        ("id", 3, 1),
        ("m[k]", 3, 1),
    ]
    assert table.count("id = 3 AND m['k'] = 5") == 3


def test_columns_that_cannot_be_indexed_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(tmp_path, spark)
    report = table.append(spark.sql("SELECT 1.5D AS s"), {"file-index.bsi.columns": "s"})
    assert report.rows == 1
    assert [skip.what for skip in report.skipped] == ["bsi of 's'"]
    assert str(report).splitlines()[1].startswith("skipped bsi of 's' in 1 file: ")


# -- partitions ----------------------------------------------------------------------------------

LETTERS = ["".join(map(chr, range(first, first + 25))) for first in range(1, 251, 25)]


def test_folders_are_those_that_spark_would_write(spark: SparkSession, tmp_path: Path) -> None:
    texts: list[str | None] = [*LETTERS, "", None, " a ", "日本", "..", "10%", "007"]
    df = spark.createDataFrame(pa.table({"id": range(len(texts)), "a b=": pa.array(texts)}))
    df.write.partitionBy("a b=").parquet(str(tmp_path / "spark"))
    (tmp_path / "ours").mkdir()
    table = opened(tmp_path / "ours", spark)
    table.append(df, {}, partition_by=["a b="])
    ours, theirs = (
        {
            Path(path).parts[0]
            for path in table_files(tmp_path / writer)
            if path.endswith(".parquet")
        }
        for writer in ("ours", "spark")
    )
    assert ours == theirs
    rows, other = (rows_of(spark.read.parquet(str(tmp_path / name))) for name in ("ours", "spark"))
    assert rows == other
    assert rows_of(table.scan().to_spark()) == other


@pytest.mark.parametrize(
    "expression",
    [
        "DATE'2025-08-01'",
        "TIMESTAMP'2025-08-01 10:00:00.5'",
        "TIMESTAMP_NTZ'2025-08-01 10:00:00'",
        "cast(id AS int)",
        "cast(id / 2 AS double)",
        "cast(id / 8 AS decimal(10, 3))",
        "id = 1",
        "cast('bytes' AS binary)",
        "cast(NULL AS int)",
    ],
)
def test_values_of_any_type_are_written_into_paths_as_spark_does(
    spark: SparkSession, tmp_path: Path, expression: str
) -> None:
    df = spark.range(3).selectExpr("id", f"{expression} AS p", "concat('c', id % 2) AS q")
    df.write.partitionBy("p", "q").parquet(str(tmp_path / "spark"))
    (tmp_path / "ours").mkdir()
    opened(tmp_path / "ours", spark).append(df, {}, partition_by=["p", "q"])
    first, other = (spark.read.parquet(str(tmp_path / name)) for name in ("ours", "spark"))
    assert (first.schema, rows_of(first)) == (other.schema, rows_of(other))


def test_a_task_writes_one_file_for_each_partition_that_it_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.range(0, 1000, 1, 4).selectExpr("id", "20250801 + id % 5 AS dt")
    table = opened(tmp_path, spark)
    report = table.append(df, partition_by=["dt"])
    assert (report.files, report.rows) == (5, 1000)  # not four times as many
    assert {Path(path).parts[0] for path in table_files(tmp_path)} == {
        f"dt={day}" for day in range(20250801, 20250806)
    }
    assert "dt" not in pq.read_schema(tmp_path / table_files(tmp_path)[0]).names
    table.append(df.selectExpr("id", "cast(dt AS string) AS DT"), partition_by=["Dt"])
    table.append(df.select("id").limit(1))
    assert table.count("dt = 20250803") == 400
    assert table.count("dt IS NULL") == 1
    assert (table.count(), table.schema.names) == (2001, ["id", "dt"])


def test_folders_above_those_of_partitions_stay(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x/dt=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x/dt=1/a.parquet")
    table = opened(tmp_path, spark)
    table.append(spark.sql("SELECT 2L AS id, 2 AS dt"))
    assert [Path(path).parts[:2] for path in table_files(tmp_path)] == [
        ("x", "dt=1"),
        ("x", "dt=2"),
    ]
    assert table.scan("dt = 2").to_arrow().to_pydict() == {"id": [2], "dt": [2]}


# -- schemas -------------------------------------------------------------------------------------


def test_columns_go_by_name_are_widened_and_null_where_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"id": pa.array([1]), "score": [0.5], "name": ["a"], "list": [[1]]})
    pq.write_table(rows, tmp_path / "a.parquet")
    table = opened(tmp_path, spark)
    table.append(spark.sql("SELECT float(1.5) AS SCORE, 2 AS ID, array(3) AS list"))
    expected = [
        {"id": 1, "score": 0.5, "name": "a", "list": [1]},
        {"id": 2, "score": 1.5, "name": None, "list": [3]},
    ]
    assert table.scan(order_by="id").to_arrow().to_pylist() == expected
    assert table.schema == rows.schema
    read = [row.asDict() for row in spark.read.parquet(str(tmp_path)).orderBy("id").collect()]
    assert read == expected


@pytest.mark.parametrize(
    ("select", "error", "problem"),
    [
        ("SELECT 1L AS id, 2 AS other", ColumnError, "column other: not in the table"),
        ("SELECT 1.5D AS id", UnsupportedError, "column id: double does not go into int64"),
        ("SELECT '1' AS id", UnsupportedError, "column id: string does not go into int64"),
        ("SELECT 1 AS id, 1L AS small", UnsupportedError, "column small"),
        ("SELECT 1 AS id, 2 AS ID", ColumnError, "fits more than one"),
        ("SELECT 1 AS dt", ColumnError, "no column is left"),
        ("SELECT 1 AS id, 'x' AS dt", UnsupportedError, "partition column dt: found .*INT"),
        ("SELECT 1 AS id, array(1) AS dt", UnsupportedError, "column dt: list.* is not for paths"),
        ("SELECT interval 1 day AS id", UnsupportedError, "column id"),
        ("SELECT parse_json('1') AS id", UnsupportedError, "column id: VARIANT is not written"),
        ("SELECT time'10:00:00' AS id", UnsupportedError, "column id: TIME is not written"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_left(
    spark: SparkSession, tmp_path: Path, select: str, error: type[Exception], problem: str
) -> None:
    (tmp_path / "dt=1").mkdir()
    rows = pa.table({"id": [1], "small": pa.array([1], pa.int32())})
    pq.write_table(rows, tmp_path / "dt=1/a.parquet")
    table = opened(tmp_path, spark)
    with pytest.raises(error, match=problem):
        table.append(spark.sql(select))
    assert files_below(tmp_path) == ["dt=1/a.parquet"]


def test_arguments_that_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dt=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "dt=1/a.parquet")
    table, df = opened(tmp_path, spark), spark.sql("SELECT 1L AS id, 2 AS dt")
    with pytest.raises(OptionError, match=r"partition_by: found \['id'\], expected \['dt'\]"):
        table.append(df, partition_by=["id"])
    with pytest.raises(OptionError, match="partition_by: found text"):
        table.append(df, partition_by="dt")
    with pytest.raises(OptionError, match="target_file_bytes"):
        table.append(df, target_file_bytes=0)
    with pytest.raises(ColumnError, match="stands in the paths"):
        table.append(df, {"file-index.bitmap.columns": "dt"})
    with pytest.raises(ColumnError, match="column nope"):
        table.append(df, {"file-index.bitmap.columns": "nope"})
    (tmp_path / "new").mkdir()
    with pytest.raises(ColumnError, match="column nope"):
        opened(tmp_path / "new", spark).append(df, partition_by=["nope"])
    with pytest.raises(ColumnError, match="no column is left"):
        opened(tmp_path / "new", spark).append(df, partition_by=["id", "dt"])
    with pytest.raises(UnsupportedError, match="void"):
        opened(tmp_path / "new", spark).append(spark.sql("SELECT NULL AS id"))


def test_a_value_that_the_type_of_the_table_cannot_hold_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"at": pa.array([0], pa.timestamp("ns", "UTC"))})
    pq.write_table(rows, tmp_path / "a.parquet")
    table = opened(tmp_path, spark)
    with pytest.raises(UnsupportedError, match="column at: "):
        table.append(spark.sql("SELECT TIMESTAMP'1500-01-01 00:00:00' AS at"))
    assert files_below(tmp_path) == ["a.parquet"]


def test_the_case_rule_of_the_session_counts(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        df = spark.sql("SELECT 1L AS id, 2L AS ID")
        table = opened(tmp_path, spark)
        table.append(df, {"file-index.bitmap.columns": "ID"})
        assert [index.column for index in table.indexes()] == ["ID"]
        assert rows_of(spark.read.parquet(str(tmp_path))) == rows_of(df)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_collations_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT 'a' COLLATE UNICODE_CI AS c, 'b' AS d")
    table = opened(tmp_path, spark)
    report = table.append(df, {"file-index.bitmap.columns": "c, d"})
    assert [(skip.what, "UNICODE_CI" in skip.reason) for skip in report.skipped] == [
        ("bitmap of 'c'", True)
    ]
    back = spark.read.parquet(str(tmp_path))
    assert back.schema.simpleString() == df.schema.simpleString()
    assert "UNICODE_CI" in back.schema.simpleString()
    assert back.where("c = 'A'").count() == 1


# -- what can go wrong ---------------------------------------------------------------------------


def test_no_rows_no_files(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(tmp_path, spark)
    report = table.append(spark.range(10).where("id < 0"))
    assert (report.files, report.rows, report.bundles) == (0, 0, 0)
    assert str(report).startswith("appended nothing")
    assert files_below(tmp_path) == []


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(tmp_path, spark)
    df = spark.range(0, 100, 1, 2).selectExpr("if(id = 99, raise_error('broken'), id) AS id")
    with pytest.raises(Exception, match="broken"):
        table.append(df)
    assert files_below(tmp_path) == []


def test_the_table_itself_can_be_appended(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(tmp_path, spark)
    table.append(spark.range(10).toDF("id"))
    table.append(spark.read.parquet(str(tmp_path)))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted([*range(10)] * 2)


def test_two_appends_at_once(spark: SparkSession, tmp_path: Path) -> None:
    options = {"file-index.bitmap.columns": "id"}

    def work(first: int) -> int:
        df = spark.range(first, first + 50, 1, 2).selectExpr("id", "id % 2 AS p")
        return int(opened(tmp_path, spark).append(df, options, partition_by=["p"]).rows)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [0, 100])) == [50, 50]
    table = opened(tmp_path, spark)
    ids = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert ids == [*range(50), *range(100, 150)]
    assert [(index.fresh, index.absent) for index in table.indexes()] == [(table.files, 0)]


def test_many_appends_do_not_leave_many_bundles(spark: SparkSession, tmp_path: Path) -> None:
    table = opened(tmp_path, spark)
    for number in range(18):
        df = spark.range(number, number + 1, 1, 1).toDF("id")
        table.append(df, {"file-index.bitmap.columns": "id"})
    assert len(table.bundle_folder.load().current) < 10
    assert [(index.fresh, index.absent) for index in table.indexes()] == [(18, 0)]
    assert table.count("id = 11") == 1


def test_files_have_the_size_that_is_wanted(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 600_000, 1, 1).selectExpr("xxhash64(id) AS id")
    table = opened(tmp_path, spark)
    report = table.append(df, {}, target_file_bytes=1_000_000)
    assert (report.files, report.rows) == (5, 600_000)
    rows = [pq.read_metadata(tmp_path / path).num_rows for path in table_files(tmp_path)]
    assert rows == [GROUP_ROWS] * 4 + [600_000 - 4 * GROUP_ROWS]
    assert (tmp_path / table_files(tmp_path)[0]).stat().st_size > 1_000_000


@pytest.mark.parametrize("library", ["arrow", "fsspec"])
def test_append_on_s3(spark: SparkSession, moto_port: int, bucket: str, library: str) -> None:
    endpoint = f"http://127.0.0.1:{moto_port}"
    options = KEYS | {"endpoint_url": endpoint, "library": library}
    storage = alcid.storage.Storage.open(f"s3://{bucket}/table", options)
    storage.put("_SUCCESS", b"")
    table = opened(f"s3://{bucket}/table", spark, storage_options=options)
    df = spark.range(0, 200, 1, 2).selectExpr("id", "concat('d/', id % 2) AS dt")
    report = table.append(df, {"file-index.bitmap.columns": "id"}, partition_by=["dt"])
    assert report.rows == 200
    assert [(index.fresh, index.absent) for index in table.indexes()] == [(report.files, 0)]
    assert len(storage.list("_alcid/staging", hidden=True)) == 0
    assert table.scan("id = 77").to_arrow().to_pydict() == {"id": [77], "dt": ["d/1"]}
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(200)]


@pytest.mark.parametrize("library", ["arrow", "fsspec"])
def test_on_s3_tasks_copy_many_files_and_the_driver_none(
    spark: SparkSession, moto_port: int, bucket: str, library: str
) -> None:
    options = KEYS | {"endpoint_url": f"http://127.0.0.1:{moto_port}", "library": library}
    table = opened(f"s3://{bucket}/table", spark, storage_options=options, create=True)
    df = spark.range(0, 400, 1, 2).selectExpr("id", "id % 20 AS p")
    before = table.storage.traffic
    with jobs_within(spark) as jobs:
        report = table.append(df, {"file-index.bitmap.columns": "id"}, partition_by=["p"])
    traffic = table.storage.traffic - before
    files = 20
    assert (report.files, report.rows) == (files, 400)
    assert (traffic.puts, traffic.bytes_written) == (0, 0)
    assert traffic.stats + traffic.deletes < 5
    assert traffic.lists <= 3 * (files + 1)  # through Arrow one for each folder, none for a copy
    assert list(dict.fromkeys(job.description for job in jobs)) == [
        "alcid: table: writing rows",
        "alcid: table: publishing (20 files)",
    ]
    assert [(one.fresh, one.absent) for one in table.indexes()] == [(20, 0)]
    assert len(table.storage.list("_alcid/staging", hidden=True)) == 0
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(400)]


def test_without_adapted_plans_rows_are_clustered_all_the_same(
    other_session: SparkSession, tmp_path: Path
) -> None:
    other_session.conf.set("spark.sql.adaptive.enabled", "false")
    df = other_session.range(0, 400, 1, 8).selectExpr("id", "id % 5 AS p")
    table = opened(tmp_path, other_session)
    report = table.append(df, {}, partition_by=["p"])
    assert (report.files, report.rows) == (5, 400)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(400)]


SCRIPT = """
df = spark.range(0, 1000, 1, 3).selectExpr("id", "id % 2 AS p")
report = alcid.parquet(folder, spark).append(df, {"file-index.bitmap.columns": "id"})
"""


def test_a_task_that_is_tried_again_doubles_nothing(attempts: LostAttempts, tmp_path: Path) -> None:
    folder, flags = tmp_path / "table", tmp_path / "flags"
    folder.mkdir()
    output, lost = attempts.run(SCRIPT, folder, flags)
    assert len(lost) == 3
    assert output[:2] == ["3", "1000"]
    table = alcid.parquet(folder)
    assert table.files == 3
    assert np.array_equal(np.sort(table.scan().to_arrow()["id"].to_numpy()), np.arange(1000))
    assert [(index.fresh, index.absent) for index in table.indexes()] == [(3, 0)]
    assert [path.name for path in (folder / "_alcid/staging").iterdir()] == []


def test_a_folder_need_not_exist_if_it_is_to_be_made(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(alcid.StorageError, match="no such folder"):
        alcid.parquet(tmp_path / "new", spark)
    table = alcid.parquet(tmp_path / "new", spark, create=True)
    assert (table.files, table.count()) == (0, 0)
    table.append(spark.range(10).coalesce(1))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(10))
