"""`alcid.iceberg`: tables by name, old snapshots, and the advice where that is impossible."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

import alcid
from alcid.errors import OptionError, StorageError, UnsupportedError
from alcid.spark import jvm
from tests.iceberg.saved import SavedTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from alcid.tables.iceberg_table import IcebergTable

TABLE = "lake.opening.t"


@pytest.fixture(scope="module")
def snapshots(lake: SparkSession) -> Iterator[list[int]]:
    """A table of three appends, with a tag on the first, and a branch with one more."""
    lake.sql(f"CREATE TABLE {TABLE} (id BIGINT) USING iceberg")
    for number in (1, 2, 3):
        lake.sql(f"INSERT INTO {TABLE} VALUES ({number})")
    snapshot_ids = list(alcid.iceberg(TABLE, lake).metadata.snapshots)
    lake.sql(f"ALTER TABLE {TABLE} CREATE TAG first AS OF VERSION {snapshot_ids[0]}")
    lake.sql(f"ALTER TABLE {TABLE} CREATE BRANCH side")
    lake.sql(f"INSERT INTO {TABLE}.branch_side VALUES (4)")
    yield snapshot_ids
    lake.sql(f"DROP TABLE {TABLE}")


def ids(table: IcebergTable) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_the_current_snapshot(lake: SparkSession, snapshots: list[int]) -> None:
    table = alcid.iceberg(TABLE, lake)
    assert (table.name, table.snapshot_id) == (TABLE, snapshots[2])
    assert ids(table) == [1, 2, 3]


def test_in_a_thread_in_which_the_session_was_not_used(
    lake: SparkSession, snapshots: list[int]
) -> None:
    """No session is active there, so the settings of its catalogs are unknown."""
    session = lake.newSession()
    kept = "spark.sql.catalog.lake"
    for key in ("", ".type", ".warehouse"):
        session.conf.set(f"spark.sql.catalog.same{key}", str(lake.conf.get(kept + key)))
    with ThreadPoolExecutor(1) as pool:
        table = pool.submit(alcid.iceberg, "same.opening.t", session).result()
    assert (table.name, table.snapshot_id) == ("same.opening.t", snapshots[2])
    assert ids(table) == [1, 2, 3]


def test_snapshots_of_the_past(lake: SparkSession, snapshots: list[int]) -> None:
    assert ids(alcid.iceberg(TABLE, lake, snapshot_id=snapshots[1])) == [1, 2]
    assert ids(alcid.iceberg(TABLE, lake, ref="first")) == [1]
    assert ids(alcid.iceberg(TABLE, lake, ref="side")) == [1, 2, 3, 4]
    assert ids(alcid.iceberg(TABLE, lake, ref="main")) == [1, 2, 3]


def test_a_moment_of_the_past(lake: SparkSession, snapshots: list[int]) -> None:
    when = alcid.iceberg(TABLE, lake).metadata.snapshots[snapshots[1]].timestamp_ms
    exact = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=when)
    assert ids(alcid.iceberg(TABLE, lake, as_of=exact)) == [1, 2]
    before = exact - timedelta(milliseconds=1)
    assert ids(alcid.iceberg(TABLE, lake, as_of=before)) == [1]
    zone = lake.conf.get("spark.sql.session.timeZone")
    lake.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        local = exact.astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None)
        assert ids(alcid.iceberg(TABLE, lake, as_of=local)) == [1, 2]
    finally:
        lake.conf.set("spark.sql.session.timeZone", zone)


def test_a_saved_table_is_read_without_spark(lake: SparkSession, snapshots: list[int]) -> None:
    from alcid.spark.iceberg import SparkCatalogTable
    from alcid.tables.iceberg_table import IcebergTable

    saved = SavedTable.save(SparkCatalogTable(lake, TABLE))
    assert ids(IcebergTable(saved)) == [1, 2, 3]
    assert ids(IcebergTable(saved, snapshot_id=snapshots[1])) == [1, 2]


@pytest.mark.parametrize(
    "choice",
    [
        {"snapshot_id": 17},
        {"ref": "nope"},
        {"as_of": datetime(2000, 1, 1, tzinfo=UTC)},
        {"ref": "first", "snapshot_id": 17},
    ],
    ids=str,
)
@pytest.mark.usefixtures("snapshots")
def test_a_snapshot_that_is_not_there(lake: SparkSession, choice: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"^[^\n]+$"):
        alcid.iceberg(TABLE, lake, **choice)


@pytest.mark.parametrize(
    "name", ["lake.opening.nope", "lake.nope.t", "nope.opening.t", "nope", "lake.opening.t t"]
)
@pytest.mark.usefixtures("snapshots")
def test_a_table_that_is_not_there(lake: SparkSession, name: str) -> None:
    with pytest.raises(
        StorageError, match=r"^[^\n]*: no such table in the catalogs of the session"
    ):
        alcid.iceberg(name, lake)


def test_a_table_that_is_not_of_iceberg(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE plain_parquet (a INT) USING parquet")
    try:
        with pytest.raises(UnsupportedError) as raised:
            alcid.iceberg("plain_parquet", lake)
    finally:
        lake.sql("DROP TABLE plain_parquet")
    assert str(raised.value) == (
        "spark_catalog.default.plain_parquet: not an Iceberg table: alcid.parquet and alcid.paimon "
        "open others"
    )


@pytest.mark.parametrize("name", [f"{TABLE}.files", f"{TABLE}.branch_side", f"{TABLE}.tag_first"])
@pytest.mark.usefixtures("snapshots")
def test_a_name_for_a_part_of_a_table(lake: SparkSession, name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"expected .*a table"):
        alcid.iceberg(name, lake)


def test_no_session() -> None:
    with pytest.raises(UnsupportedError, match=r"expected a session.*: alcid.session\(\)$"):
        alcid.iceberg(TABLE, None)


def test_a_session_without_a_jvm() -> None:
    class Connected:
        conf: dict[str, str]

        def __init__(self) -> None:
            self.conf = {}

    with pytest.raises(UnsupportedError, match=r"found Spark Connect: .* starts one$"):
        alcid.iceberg(TABLE, Connected())


def test_a_catalog_in_place_of_a_session() -> None:
    from pyiceberg.catalog.noop import NoopCatalog

    with pytest.raises(UnsupportedError, match=r"^spark: found pyiceberg.*NoopCatalog, expected"):
        alcid.iceberg(TABLE, NoopCatalog("mine"))


@pytest.mark.usefixtures("snapshots")
def test_a_view_is_named_as_one(lake: SparkSession) -> None:
    lake.sql(f"CREATE TEMPORARY VIEW seen AS SELECT * FROM {TABLE}")
    try:
        with pytest.raises(UnsupportedError, match=r"^seen: a view, expected an Iceberg table"):
            alcid.iceberg("seen", lake)
    finally:
        lake.catalog.dropTempView("seen")


def test_a_session_without_iceberg(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    has_class = jvm.has_class
    monkeypatch.setattr("alcid.spark.iceberg.RUNTIME_CLASS", "org.apache.iceberg.NoSuchClass")
    assert not has_class(spark, "org.apache.iceberg.NoSuchClass")
    with pytest.raises(UnsupportedError) as raised:
        alcid.iceberg(TABLE, spark)
    assert str(raised.value) == (
        "the session has no Iceberg: start it with spark.jars.packages set to "
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0, or the build for your Spark"
    )


def test_the_folder_of_a_table_is_not_taken_for_one_of_parquet_files(
    lake: SparkSession, name: str
) -> None:
    """Rows that the table has deleted or rewritten would be read too."""
    lake.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id FROM range(3)")
    location = alcid.iceberg(name, lake).location
    with pytest.raises(
        UnsupportedError, match=r"an Iceberg table, which alcid\.iceberg opens by its name$"
    ):
        alcid.parquet(location)
