"""`spark.read.format("alcid")` compared with plain Spark on the same files."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

from alcid.spark.source import AlcidSource, SourceOptions, source_for

UTC = datetime.UTC
ROWS = 24


def rows_of(start: int) -> pa.Table:
    numbers = range(start, start + ROWS)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(n) for n in numbers]
    moments = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=n) for n in numbers]
    texts = ["", "a", "ab", "b%", "é", "日本", "a_", None]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "a": pa.array([None if n % 7 == 3 else n % 11 for n in numbers], pa.int32()),
            "tiny": pa.array([n - 20 for n in numbers], pa.int8()),
            "f": pa.array([[float("nan"), -0.0, 0.0, None][n % 4] for n in numbers], pa.float32()),
            "g": pa.array([None if n % 5 == 0 else n / 4 - 3 for n in numbers], pa.float64()),
            "x": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(10, 2)),
            "s": pa.array([texts[n % 8] for n in numbers]),
            "b": pa.array([bytes([n % 3, n]) for n in numbers]),
            "flag": pa.array([[True, False, None][n % 3] for n in numbers]),
            "day": pa.array(days),
            "at": pa.array([m.replace(tzinfo=UTC) for m in moments], pa.timestamp("us", "UTC")),
            "wall": pa.array(moments, pa.timestamp("us")),
            "inner": pa.array([{"k": n % 4} for n in numbers]),
            "q.r": pa.array([n % 3 for n in numbers], pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files in partitions of a number and a text, one of them null, with indexes."""
    root = tmp_path_factory.mktemp("source")
    folders = ["y=1/p=u", "y=1/p=v%2F", "y=2/p=u", "y=2/p=__HIVE_DEFAULT_PARTITION__"]
    for number, partition in enumerate(folders):
        (root / partition).mkdir(parents=True)
        pq.write_table(rows_of(number * ROWS), root / partition / "part.parquet")
    options = {
        "file-index.bitmap.columns": "a,s,flag",
        "file-index.range-bitmap.columns": "x,g,at",
        "file-index.bloom-filter.columns": "id",
    }
    alcid.parquet(root).build_indexes(options)
    return root


@pytest.fixture
def plain(spark: SparkSession, folder: Path) -> Iterator[DataFrame]:
    """The same files by Spark's own reader, which skips nothing."""
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    yield spark.read.parquet(str(folder))
    spark.conf.unset("spark.sql.parquet.filterPushdown")


FILTERS = [
    "a = 5",
    "a NOT IN (1, NULL)",
    "a IS NULL",
    "f <=> float('NaN')",
    "s LIKE 'a%' OR x > 20",
    "at > '2020-01-04 12:00:00'",
    "inner.k = 3",
    "`q.r` = 2",
    "y > 1 AND a = 1",
    "p IS NULL",
]


def answers(spark: SparkSession, rows: DataFrame) -> dict[str, list[int]]:
    """The rows for each filter; in one query, as each takes its time."""
    rows.createOrReplaceTempView("asked")
    parts = [f"SELECT {n} AS n, id FROM asked WHERE {f}" for n, f in enumerate(FILTERS)]
    table_rows = spark.sql(" UNION ALL ".join(parts)).toArrow().sort_by("id")
    spark.catalog.dropTempView("asked")
    by_filter: dict[str, list[int]] = {text: [] for text in FILTERS}
    for number, row in zip(*table_rows.to_pydict().values(), strict=True):
        by_filter[FILTERS[number]].append(row)
    return by_filter


PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(params=["false", "true"], ids=["push-down off", "push-down on"])
def push_down(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark's setting for filters of Python data sources, which a user may have turned on."""
    spark.conf.set(PUSH_DOWN, request.param)
    yield
    spark.conf.unset(PUSH_DOWN)


@pytest.mark.usefixtures("push_down")
def test_filters_find_the_rows_that_plain_spark_finds(
    spark: SparkSession, folder: Path, plain: DataFrame
) -> None:
    expected = answers(spark, plain)
    assert [text for text in FILTERS if not expected[text]] == ["a NOT IN (1, NULL)"]
    rows = answers(spark, spark.read.format("alcid").load(str(folder)))
    assert rows == expected


@pytest.mark.usefixtures("push_down")
def test_filter_of_one_use_does_not_reach_another(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.format("alcid").load(str(folder))
    assert rows.where("id = 50").count() == 1
    assert rows.count() == 4 * ROWS
    both = rows.where("id = 50").unionAll(rows.where("id = 7")).select("id").collect()
    assert sorted(row.id for row in both) == [7, 50]


def as_text(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.collect()))  # NaN is not equal to itself


def test_rows_and_schema_are_those_of_plain_spark(
    spark: SparkSession, folder: Path, plain: DataFrame
) -> None:
    frame = spark.read.format("alcid").load(str(folder))
    assert frame.schema == plain.schema
    assert frame.count() == 4 * ROWS
    assert as_text(frame) == as_text(plain)


def test_session_that_is_not_registered_reads_too(
    other_session: SparkSession, folder: Path, plain: DataFrame
) -> None:
    frame = other_session.read.format("alcid").load(str(folder))
    assert frame.schema == plain.schema
    assert as_text(frame.where("a = 5 AND y = 1")) == as_text(plain.where("a = 5 AND y = 1"))
    alcid.register(other_session)
    frame = other_session.read.format("alcid").load(str(folder))
    assert as_text(frame.where("a = 5 AND y = 1")) == as_text(plain.where("a = 5 AND y = 1"))


def test_registering_twice_is_harmless(spark: SparkSession, folder: Path) -> None:
    alcid.register(spark)
    alcid.register(spark)
    assert spark.read.format("alcid").load(str(folder)).where("id = 50").count() == 1


def test_table_of_a_catalog(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TABLE source_table USING alcid OPTIONS (path '{folder}', strict 'true')")
    try:
        query = "SELECT id, p FROM source_table WHERE a = 5 AND y = 2 ORDER BY id"
        rows = [tuple(row) for row in spark.sql(query).collect()]
        assert rows == [(49, "u"), (60, "u"), (71, "u"), (82, None), (93, None)]
        assert spark.table("source_table").count() == 4 * ROWS
    finally:
        spark.sql("DROP TABLE source_table")
    assert len(list(folder.rglob("part.parquet"))) == 4


def test_catalog_is_not_given_storage_options(spark: SparkSession, folder: Path) -> None:
    options = f"path '{folder}', secret_key 's3cr3t-key', region 'eu-west-1'"
    with pytest.raises(AnalysisException, match="region, secret_key: not kept in a catalog") as e:
        spark.sql(f"CREATE TABLE source_table USING alcid OPTIONS ({options})")
    assert "s3cr3t-key" not in str(e.value)
    assert not spark.catalog.tableExists("source_table")


def test_table_of_a_catalog_with_columns_given(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TABLE source_table (id BIGINT) USING alcid OPTIONS (path '{folder}')")
    try:
        with pytest.raises(AnalysisException, match="CREATE TABLE keeps it if no columns are"):
            spark.sql("SELECT * FROM source_table").collect()
    finally:
        spark.sql("DROP TABLE source_table")


def test_temporary_view(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW source_view USING alcid OPTIONS (path '{folder}')")
    try:
        rows = spark.sql("SELECT id FROM source_view WHERE x >= 23 AND s = 'a_'").collect()
        assert [row.id for row in rows] == [94]
    finally:
        spark.catalog.dropTempView("source_view")


def test_schema_of_the_user_chooses_columns(spark: SparkSession, folder: Path) -> None:
    reader = spark.read.format("alcid").schema("p STRING, id BIGINT")
    frame = reader.load(str(folder)).where("id IN (3, 80)")
    assert sorted(map(tuple, frame.collect()), key=str) == [("u", 3), (None, 80)]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("id BIGINT, none INT", "ColumnError: column none: not in "),
        ("id INT", "UnsupportedError: column id: found bigint, expected int"),
        (
            "id BIGINT NOT NULL",
            "UnsupportedError: column id: found bigint, expected bigint NOT NULL",
        ),
    ],
    ids=["unknown", "other type", "not null"],
)
def test_schema_of_the_user_that_does_not_fit(
    spark: SparkSession, folder: Path, schema: str, problem: str
) -> None:
    with pytest.raises(AnalysisException, match=problem):
        spark.read.format("alcid").schema(schema).load(str(folder)).collect()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_writing_is_refused(spark: SparkSession, folder: Path, mode: str) -> None:
    before = sorted(path.stat().st_mtime_ns for path in folder.rglob("*"))
    with pytest.raises(AnalysisException, match=r'format\("alcid"\) only reads: alcid.parquet\('):
        spark.range(3).write.format("alcid").mode(mode).save(str(folder))
    assert sorted(path.stat().st_mtime_ns for path in folder.rglob("*")) == before


def test_storage_options_are_in_no_plan(spark: SparkSession, folder: Path) -> None:
    reader = spark.read.format("alcid").option("secret_key", "s3cr3t-key")
    query = reader.load(str(folder)).where("id = 50")
    assert query.count() == 1
    assert "s3cr3t-key" not in query._jdf.queryExecution().toString()
    assert "s3cr3t-key" not in query.schema.json()


# -- what needs no Spark -----------------------------------------------------------------------


def source(cores: int = 2, /, **options: str) -> AlcidSource:
    from pyspark.sql.datasource import CaseInsensitiveDict

    return source_for(cores)(CaseInsensitiveDict(options))


def read(made: AlcidSource) -> list[list[int]]:
    """The rows of each slice."""
    reader = made.reader(made.schema())
    return [
        [number for batch in reader.read(part) for number in batch["id"].to_pylist()]
        for part in reader.partitions()
    ]


def test_slices_hold_only_their_own_files(folder: Path) -> None:
    made = source(2, path=str(folder))
    slices = made.reader(made.schema()).partitions()
    names = [part.plan.files.paths.to_pylist() for part in slices]
    assert len(names) == 2
    assert [name for some in names for name in some] == [
        "y=1/p=u/part.parquet",
        "y=1/p=v%2F/part.parquet",
        "y=2/p=__HIVE_DEFAULT_PARTITION__/part.parquet",
        "y=2/p=u/part.parquet",
    ]
    numbers = read(made)
    assert [len(some) for some in numbers] == [ROWS * len(some) for some in names]
    assert [n for some in numbers for n in some] == [*range(48), *range(72, 96), *range(48, 72)]


def test_spark_asks_for_a_slice_where_there_is_none(folder: Path) -> None:
    made = source(path=str(folder))
    assert list(made.reader(made.schema()).read(None)) == []


def test_nanoseconds_are_compared_as_spark_sees_them(spark: SparkSession, tmp_path: Path) -> None:
    """Spark truncates to microseconds, so a row that is not equal for us is equal for Spark."""
    moments = pa.array([1_000_000_500, 1_000_001_500], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [0, 1], "t": moments}), tmp_path / "a.parquet")
    frame = spark.read.format("alcid").load(str(tmp_path))
    filtered = frame.where("t = TIMESTAMP_NTZ'1970-01-01 00:00:01.000001'")
    assert [row.id for row in filtered.collect()] == [1]


def test_unsigned_numbers_come_in_the_next_wider_type(spark: SparkSession, tmp_path: Path) -> None:
    values = pa.table(
        {
            "small": pa.array([1, 2**8 - 1], pa.uint8()),
            "large": pa.array([1, 2**64 - 1], pa.uint64()),
        }
    )
    pq.write_table(values, tmp_path / "a.parquet")
    frame = spark.read.format("alcid").load(str(tmp_path))
    assert frame.schema.simpleString() == "struct<small:smallint,large:decimal(20,0)>"
    filtered = frame.where("small = 255 AND large > 18446744073709551614")
    assert [tuple(row) for row in filtered.collect()] == [(255, Decimal(2**64 - 1))]


def zoned_folder(root: Path) -> Path:
    for hour in ("01", "02"):
        partition = root / f"at=2025-01-01 {hour}%3A00%3A00"
        partition.mkdir()
        pq.write_table(pa.table({"id": [int(hour)]}), partition / "a.parquet")
    return root


def test_timestamps_in_the_paths_need_a_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    zoned_folder(tmp_path)
    with pytest.raises(AnalysisException, match=r'column at: .*option\("timezone", ...\)'):
        spark.read.format("alcid").load(str(tmp_path)).collect()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        reader = spark.read.format("alcid").option("timezone", "Asia/Tokyo")
        frame = reader.load(str(tmp_path)).where("at > '2025-01-01 01:00:00'")
        plain = spark.read.parquet(str(tmp_path)).where("at > '2025-01-01 01:00:00'")
        assert as_text(frame) == as_text(plain)
        assert [row.id for row in frame.collect()] == [2]
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_folder_without_files_has_no_columns(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as raised:
        source(path=str(tmp_path)).schema()
    assert str(raised.value) == f"{tmp_path}: no files, so that no columns are known"


@pytest.mark.parametrize("options", [{}, {"paths": '["a", "b"]'}], ids=["none", "several"])
def test_one_path_is_needed(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="path: found none, or several, expected that of one"):
        source(**options).schema()


def test_unknown_flag_is_an_error(folder: Path) -> None:
    with pytest.raises(OptionError) as raised:
        source(path=str(folder), strict="maybe").schema()
    assert str(raised.value) == "strict: found 'maybe', expected true or false"


def test_index_path_is_an_option(folder: Path) -> None:
    with pytest.raises(OptionError, match=r"index_path: .* is a folder of the data"):
        source(path=str(folder), index_path=str(folder / "y=1")).schema()


def test_catalog_gives_all_options_back(folder: Path, tmp_path: Path) -> None:
    options = {
        "path": str(folder),
        "index_path": str(tmp_path),
        "strict": "true",
        "timezone": "Asia/Tokyo",
    }
    kept = source(**options, provider="alcid", owner="me").schema()
    assert SourceOptions.parse({}, kept) == SourceOptions(
        str(folder), str(tmp_path), True, "Asia/Tokyo"
    )


def test_rows_of_the_option_where(spark: SparkSession, folder: Path, plain: DataFrame) -> None:
    where = "a > 5 AND (g IS NULL OR s LIKE 'a%') AND y = 2"
    frame = spark.read.format("alcid").option("where", where).load(str(folder))
    assert as_text(frame) == as_text(plain.where(where))
    assert as_text(frame.where("flag")) == as_text(plain.where(where).where("flag"))
    assert frame.count() == plain.where(where).count()
    spark.sql(f"CREATE TABLE some_rows USING alcid OPTIONS (path '{folder}', where 'a = 5')")
    try:
        expected = plain.where("a = 5").count()
        assert spark.sql("SELECT count(*) FROM some_rows").collect() == [(expected,)]
    finally:
        spark.sql("DROP TABLE some_rows")


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("upper(s) = 'A'", "has a part that only Spark can evaluate"),
        ("at > '2020-01-02 00:00:00'", "Spark does not tell a data source its time zone"),
        ("nothing = 1", "column nothing: not in the table"),
    ],
)
def test_rows_that_the_option_where_cannot_mean(
    spark: SparkSession, folder: Path, where: str, problem: str
) -> None:
    with pytest.raises(AnalysisException, match=problem):
        spark.read.format("alcid").option("where", where).load(str(folder)).count()


def test_the_option_where_goes_by_the_time_zone_that_is_given(
    spark: SparkSession, folder: Path, plain: DataFrame
) -> None:
    reader = spark.read.format("alcid").option("timezone", "Asia/Tokyo")
    frame = reader.option("where", "at > '2020-01-02 09:00:00'").load(str(folder))
    assert as_text(frame) == as_text(plain.where("at > '2020-01-02 00:00:00Z'"))


def test_spark_mixes_up_filters_that_a_source_takes(spark: SparkSession) -> None:
    """Why our source takes no filters. When this fails, Spark has fixed it, and ours can."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo

    class Reader(DataSourceReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.wanted: list[int] = []

        def pushFilters(self, filters: list[object]) -> list[object]:  # noqa: N802
            self.wanted = [
                each_filter.value for each_filter in filters if isinstance(each_filter, EqualTo)
            ]
            return filters

        def read(self, _partition: object) -> Iterator[tuple[int]]:
            yield from ((n,) for n in range(9) if not self.wanted or n % 3 in self.wanted)

    class Source(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "takes_filters"

        def schema(self) -> str:
            return "n long"

        def reader(self, schema: object) -> Reader:
            del schema
            return Reader()

    spark.dataSource.register(Source)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = spark.read.format("takes_filters").load()
        assert rows.count() == 9
        assert rows.where("n = 1").count() == 1
        assert rows.count() == 3
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_an_option_that_is_misspelt_is_named(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(AnalysisException, match="option were: not known, did you mean where"):
        spark.read.format("alcid").option("were", "a = 5").load(str(folder))
