"""What a session's catalog answers: metadata, entries, statistics, appends, Iceberg's own rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

from alcid.errors import (
    ConflictError,
    FileGoneError,
    StorageError,
    UnsupportedError,
)
from alcid.spark.iceberg import SparkCatalogTable
from alcid.spark.jvm.iceberg import java_errors
from alcid.tables.iceberg.catalog import CatalogTable, OwnQuery
from alcid.tables.iceberg.metadata.table_metadata import BlobMetadata, StatisticsFile
from tests.iceberg.saved import SavedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def fixed(lake: SparkSession) -> Iterator[SparkCatalogTable]:
    """A table that no test changes."""
    name = "lake.catalog.fixed"
    yield made(lake, name)
    lake.sql(f"DROP TABLE {name}")


@pytest.fixture
def table(lake: SparkSession, name: str) -> SparkCatalogTable:
    """A table that a test may change."""
    return made(lake, name)


def made(lake: SparkSession, name: str) -> SparkCatalogTable:
    """Three snapshots: two appends, and a delete of whole files."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day)")
    for day, ids in (("2024-01-01", "(1), (2), (3)"), ("2024-01-02", "(4), (5)")):
        lake.sql(f"INSERT INTO {name} SELECT col1, DATE'{day}' FROM VALUES {ids}")
    lake.sql(f"DELETE FROM {name} WHERE day = DATE'2024-01-01'")
    return SparkCatalogTable(lake, name)


def test_metadata_are_those_of_the_newest_file(fixed: SparkCatalogTable) -> None:
    metadata = fixed.load()
    folder = Path(metadata.location) / "metadata"
    newest = json.loads((folder / "v4.metadata.json").read_text("utf-8"))
    assert metadata.current_snapshot_id == newest["current-snapshot-id"]
    assert list(metadata.snapshots) == [snapshot["snapshot-id"] for snapshot in newest["snapshots"]]
    assert metadata.schema.names == ("id", "day")
    assert fixed.load() == metadata


def test_metadata_are_read_again_when_another_has_committed(
    lake: SparkSession, table: SparkCatalogTable, name: str
) -> None:
    before = table.load()
    lake.sql(f"INSERT INTO {name} VALUES (6, DATE'2024-01-03')")
    after = table.load()
    assert len(after.snapshots) == len(before.snapshots) + 1


def test_entries_are_the_live_files_of_each_snapshot(
    lake: SparkSession, fixed: SparkCatalogTable
) -> None:
    counts, sequence_numbers = [], None
    for snapshot in fixed.load().snapshots:
        entries = fixed.entries(snapshot)
        files = lake.sql(f"SELECT file_path FROM {fixed.name}.files VERSION AS OF {snapshot}")
        assert sorted(entries["file_path"].to_pylist()) == sorted(r[0] for r in files.collect())
        counts.append(pc.sum(entries["record_count"]).as_py())
        sequence_numbers = entries["sequence_number"].to_pylist()
    assert counts == [3, 5, 2]
    assert sequence_numbers == [2]


def test_entries_of_a_snapshot_that_is_not_there(fixed: SparkCatalogTable) -> None:
    with pytest.raises(FileGoneError, match=r"^lake\.catalog\.fixed: no snapshot 17 any more$"):
        fixed.entries(17)


def test_entries_of_a_snapshot_without_files(
    lake: SparkSession, table: SparkCatalogTable, name: str
) -> None:
    lake.sql(f"DELETE FROM {name}")
    current = table.load().current_snapshot_id
    assert current is not None
    assert table.entries(current).num_rows == 0


def test_a_table_is_the_same_when_the_current_catalog_changes(
    lake: SparkSession, fixed: SparkCatalogTable
) -> None:
    lake.sql("USE lake.catalog")
    try:
        short = SparkCatalogTable(lake, "fixed")
    finally:
        lake.sql("USE spark_catalog.default")
    assert short.name == fixed.name
    assert short.load() == fixed.load()
    assert short.entries(next(iter(short.load().snapshots)))["record_count"].to_pylist() == [3]


def test_names_that_have_to_be_quoted(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE lake.`or der`.`select-``1` (`a b` INT) USING iceberg")
    try:
        table = SparkCatalogTable(lake, "lake.`or der`.`select-``1`")
        assert table.name == "lake.`or der`.`select-``1`"
        table.append(lake.createDataFrame([(7,)], "`a b` INT"))
        current = table.load().current_snapshot_id
        assert current is not None
        assert table.entries(current)["record_count"].to_pylist() == [1]
        assert table.rows(OwnQuery(current, "`a b` > 6", ["a b"])).collect() == [(7,)]
    finally:
        lake.sql("DROP TABLE lake.`or der`.`select-``1`")


def statistics_of(snapshot: int, path: str) -> StatisticsFile:
    blob = BlobMetadata("apache-datasketches-theta-v1", snapshot, 1, (1,), {"ndv": "5"})
    return StatisticsFile(snapshot, path, 100, 50, (blob,))


def test_statistics_are_set_replaced_and_removed(table: SparkCatalogTable) -> None:
    first, second, _ = table.load().snapshots
    first_file, other = statistics_of(first, "/a.stats"), statistics_of(second, "/b.stats")
    table.set_statistics(table.load(), first_file)
    table.set_statistics(table.load(), other)
    assert table.load().statistics == {first: first_file, second: other}
    table.set_statistics(table.load(), statistics_of(first, "/c.stats"))
    assert table.load().statistics[first].path == "/c.stats"
    table.remove_statistics(table.load(), first)
    assert table.load().statistics == {second: other}


def test_statistics_of_metadata_that_are_not_the_newest_conflict(
    lake: SparkSession, table: SparkCatalogTable, name: str
) -> None:
    base = table.load()
    first = next(iter(base.snapshots))
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    with pytest.raises(ConflictError, match=r"lake\.db\.t\d+: another has committed since .*v4"):
        table.set_statistics(base, statistics_of(first, "/a.stats"))
    with pytest.raises(ConflictError, match="another has committed"):
        table.remove_statistics(base, first)
    assert table.load().statistics == {}


def test_statistics_of_metadata_that_another_loaded_conflict(
    lake: SparkSession, fixed: SparkCatalogTable
) -> None:
    base = SparkCatalogTable(lake, fixed.name).load()
    with pytest.raises(ConflictError, match="load them again"):
        fixed.set_statistics(base, statistics_of(next(iter(base.snapshots)), "/a.stats"))


def test_statistics_go_by_what_was_loaded_and_not_by_the_last_load(
    table: SparkCatalogTable,
) -> None:
    base = table.load()
    first, second, _ = base.snapshots
    table.load()
    table.set_statistics(base, statistics_of(first, "/a.stats"))
    with pytest.raises(ConflictError):
        table.set_statistics(base, statistics_of(second, "/b.stats"))


def test_what_was_loaded_is_forgotten_with_it(fixed: SparkCatalogTable) -> None:
    kept = fixed.load()
    for _ in range(5):
        fixed.load()
    assert len(fixed._files) == 1
    del kept
    assert not fixed._files


def test_statistics_of_a_snapshot_that_is_not_there(table: SparkCatalogTable) -> None:
    # Iceberg accepts them, and those of expired snapshots.
    table.set_statistics(table.load(), statistics_of(17, "/a.stats"))
    assert list(table.load().statistics) == [17]


def test_locations_are_those_of_the_table(
    lake: SparkSession, table: SparkCatalogTable, name: str
) -> None:
    location = table.load().location
    assert table.data_location("a.puffin") == f"{location}/data/a.puffin"
    assert table.metadata_location("b.stats") == f"{location}/metadata/b.stats"
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.data.path' = '{location}/other')")
    assert table.data_location("a.puffin") == f"{location}/other/a.puffin"


def test_append_goes_by_names_and_fills_what_is_missing(
    lake: SparkSession, table: SparkCatalogTable
) -> None:
    table.append(lake.createDataFrame([(7,), (None,)], "ID BIGINT"))
    current = table.load().current_snapshot_id
    rows = table.rows(OwnQuery(current, "day IS NULL", ["day", "id"], ["id"])).collect()
    assert rows == [(None, None), (None, 7)]


def test_append_of_rows_that_do_not_fit(
    lake: SparkSession, table: SparkCatalogTable, name: str
) -> None:
    before = table.load()
    extra = lake.createDataFrame([(7, 8)], "id BIGINT, other INT")
    with pytest.raises(UnsupportedError, match=r"lake\.db\.t\d+: .*other"):
        table.append(extra)
    lake.sql(f"CREATE OR REPLACE TABLE {name} (id BIGINT NOT NULL, n INT) USING iceberg")
    with pytest.raises(UnsupportedError, match=r"lake\.db\.t\d+: .*id"):
        table.append(lake.createDataFrame([(8,)], "n INT"))
    assert len(table.load().snapshots) == len(before.snapshots)


def test_rows_of_a_query(fixed: SparkCatalogTable) -> None:
    first, second, _ = fixed.load().snapshots
    assert [r.id for r in fixed.rows(OwnQuery(None, None, ["id"], ["id DESC"])).collect()] == [5, 4]
    query = OwnQuery(second, "id BETWEEN 2 AND 4", ["id"], ["day DESC", "id"], 2)
    assert [r.id for r in fixed.rows(query).collect()] == [4, 2]
    assert fixed.rows(OwnQuery(first, None, [])).count() == 3


def test_a_table_that_is_dropped(lake: SparkSession, table: SparkCatalogTable, name: str) -> None:
    base = table.load()
    lake.sql(f"DROP TABLE {name}")
    with pytest.raises(StorageError, match=r"^lake\.db\.t\d+: no such table"):
        table.load()
    with pytest.raises(StorageError, match=r"^lake\.db\.t\d+: no such table"):
        table.entries(1)
    with pytest.raises(StorageError, match=r"^lake\.db\.t\d+: no such table"):
        table.set_statistics(base, statistics_of(1, "/a.stats"))


def throw(spark: SparkSession, kind: str, said: str) -> None:
    """Let Java throw an exception of Iceberg."""
    java, jvm = spark._jvm.java, spark._jvm
    exception: Any = getattr(jvm.org.apache.iceberg.exceptions, kind)
    made = exception(java.lang.RuntimeException(said)) if "Unknown" in kind else None
    if made is None:
        made = exception("%s", spark.sparkContext._gateway.new_array(java.lang.Object, 1))
    thrower = java.lang.invoke.MethodHandles.throwException(
        java.lang.Class.forName("java.lang.Object"), made.getClass()
    )
    arguments = java.util.ArrayList()
    arguments.add(made)
    thrower.invokeWithArguments(arguments)


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("CommitFailedException", ConflictError, "lake.db.t: null"),
        ("ValidationException", ConflictError, "lake.db.t: null"),
        (
            "CommitStateUnknownException",
            StorageError,
            "lake.db.t: the commit may have happened or not, so that no file of it is removed: cut",
        ),
        ("NoSuchTableException", StorageError, "lake.db.t: no such table"),
        ("ForbiddenException", StorageError, "lake.db.t: ForbiddenException: null"),
    ],
)
def test_exceptions_of_iceberg_are_errors_of_one_line(
    lake: SparkSession, kind: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised, java_errors("lake.db.t"):
        throw(lake, kind, "cut")
    assert str(raised.value) == text


def test_a_saved_table_answers_without_spark(fixed: SparkCatalogTable) -> None:
    saved: CatalogTable = SavedTable.save(fixed)
    loaded = fixed.load()
    own = {key: replace(snapshot, manifest_list=None) for key, snapshot in loaded.snapshots.items()}
    assert saved.load() == replace(loaded, snapshots=own)
    for snapshot in fixed.load().snapshots:
        assert saved.entries(snapshot) == fixed.entries(snapshot)
    assert saved.data_location("a") == fixed.data_location("a")
    assert saved.metadata_location("a") == fixed.metadata_location("a")
