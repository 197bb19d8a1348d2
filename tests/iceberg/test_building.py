"""Indexes in statistics files, with Iceberg's own runtime on the same table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.formats.puffin.writer import THETA_SKETCH
from alcid.formats.source import BytesSource
from alcid.index.bundle import Bundle
from alcid.spark.iceberg import SparkCatalogTable
from alcid.storage import Meter
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata
from alcid.tables.iceberg.write.contents import WRITTEN_HERE
from alcid.tables.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {
    "file-index.bloom-filter.columns": "id,tags[k]",
    "file-index.bitmap.columns": "name,`a b`".replace("`", ""),
    "file-index.bsi.columns": "n",
    "file-index.range-bitmap.columns": "id,d",
}
INDEXES = {
    ("a b", "bitmap"),
    ("d", "range-bitmap"),
    ("id", "bloom-filter"),
    ("id", "range-bitmap"),
    ("n", "bsi"),
    ("name", "bitmap"),
    ("tags[k]", "bloom-filter"),
}
QUESTIONS = [
    "id = 17",
    "id IN (3, 500, 99999)",
    "id BETWEEN 95 AND 105",
    "name = 'n3' AND n > 40",
    "`a b` = 'x1'",
    "d = 12.50",
    "tags['k'] = 'v7'",
    "n IS NULL",
]


BOTH = pytest.mark.parametrize("version", [2, 3])
"""Differences between the two versions of the format."""


@pytest.fixture
def version() -> int:
    """The version of the format."""
    return 3


@pytest.fixture
def table(lake: SparkSession, name: str, version: int) -> IcebergTable:
    """Four partitions, 400 rows."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, n INT, d DECIMAL(10, 2), `a b` STRING,"
        " tags MAP<STRING, STRING>) USING iceberg PARTITIONED BY (bucket(4, id)) TBLPROPERTIES"
        f" ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read',"
        " 'write.distribution-mode' = 'hash')"
    )
    insert(lake, name, 0, 400)
    return alcid.iceberg(name, lake)


def insert(lake: SparkSession, name: str, begin: int, end: int) -> None:
    lake.sql(
        f"INSERT INTO {name} SELECT id, concat('n', id % 7), IF(id % 9 = 0, NULL, id % 100),"
        f" id / 8, concat('x', id % 3), map('k', concat('v', id % 20)) FROM range({begin}, {end})"
    )


def assert_rows(lake: SparkSession, table: IcebergTable, name: str) -> None:
    """Counts and rows equal Iceberg's, in one query for all questions."""
    asked = ", ".join(f"coalesce({where}, false)" for where in QUESTIONS)
    own = [tuple(row) for row in lake.sql(f"SELECT id, name, {asked} FROM {name}").collect()]
    for number, where in enumerate(QUESTIONS, 2):
        expected = sorted(row[:2] for row in own if row[number])
        rows = table.scan(where, columns=["id", "name"]).to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == expected, where
        assert table.count(where) == len(expected), where


def state(table: IcebergTable) -> dict[tuple[str, str], tuple[int, int]]:
    return {(i.column, i.index_type): (i.fresh, i.absent) for i in table.indexes()}


def listed(table: IcebergTable) -> dict[int, StatisticsFile]:
    return dict(table.catalog.load().statistics)


@BOTH
def test_indexes_are_built_kept_and_used_through_the_life_of_a_table(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    report = table.build_indexes(OPTIONS)
    assert (report.files, report.indexed, report.rows, report.skipped) == (4, 4, 400, ())
    assert state(table) == dict.fromkeys(INDEXES, (4, 0))
    assert_rows(lake, table, name)

    insert(lake, name, 400, 500)
    table.refresh()
    assert state(table) == dict.fromkeys(INDEXES, (4, 4))
    report = table.build_indexes(OPTIONS)
    assert (report.indexed, report.fresh, report.rows) == (4, 4, 100)
    assert state(table) == dict.fromkeys(INDEXES, (8, 0))

    lake.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    table.refresh()
    assert state(table) == dict.fromkeys(INDEXES, (8, 0))
    assert_rows(lake, table, name)
    before = table.metadata.current_snapshot_id
    report = table.build_indexes(OPTIONS)
    assert (report.indexed, report.bundles) == (0, 0)
    files = listed(table)
    assert before is not None
    assert files[before].path == files[table.metadata.snapshots[before].parent_id or 0].path

    catalog, short = name.split(".", 1)
    lake.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{short}',"
        " options => map('rewrite-all', 'true'))"
    )
    table.refresh()
    assert state(table) == dict.fromkeys(INDEXES, (0, 4))
    assert_rows(lake, table, name)
    report = table.build_indexes(OPTIONS)
    assert (report.files, report.indexed, report.rows) == (4, 4, 450)
    assert state(table) == dict.fromkeys(INDEXES, (4, 0))
    assert_rows(lake, table, name)

    assert table.drop_indexes(["id"]) == 4
    assert {column for column, _ in state(table)} == {"name", "n", "d", "a b", "tags[k]"}
    assert table.drop_indexes() == 4
    assert state(table) == {}


def test_the_bundle_names_files_and_columns_as_iceberg_does(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    table.build_indexes(OPTIONS)
    (file,) = listed(table).values()
    bundle = Bundle.open(BytesSource(Path(file.path).read_bytes(), file.path))
    paths = lake.sql(f"SELECT file_path FROM {name}.files ORDER BY file_path").collect()
    assert bundle.files.paths.to_pylist() == [row[0] for row in paths]
    assert bundle.files.versions.to_pylist() == [""] * 4
    # Parquet files spell `a b` otherwise; the ids are those of the table.
    assert bundle.field_ids == {
        "id": 1,
        "name": 2,
        "n": 3,
        "d": 4,
        "a_x20b": 5,
        "tags": 6,
        "tags[k]": 6,
    }
    assert file.blobs == ()
    assert {blob.snapshot_id for blob in _blobs(file)} == {table.snapshot_id}


def test_iceberg_expires_and_cleans_without_harm(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    table.build_indexes(OPTIONS)
    (old,) = listed(table).values()
    insert(lake, name, 400, 500)
    table.build_indexes(OPTIONS)
    catalog, short = name.split(".", 1)
    lake.sql(
        f"CALL {catalog}.system.expire_snapshots(table => '{short}', retain_last => 1,"
        " older_than => now())"
    )
    table.refresh()
    (new,) = listed(table).values()
    assert not Path(old.path).exists()
    assert state(table) == dict.fromkeys(INDEXES, (8, 0))
    leftover = Path(new.path).with_name("1-0-alcid.stats")
    leftover.write_bytes(Path(new.path).read_bytes())
    for path in Path(table.metadata.location).rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    removed = lake.sql(
        f"CALL {catalog}.system.remove_orphan_files(table => '{short}',"
        " older_than => TIMESTAMP '2024-01-01 00:00:00')"
    ).collect()
    names = {Path(row[0]).name for row in removed}
    assert leftover.name in names
    assert Path(new.path).name not in names
    assert Path(new.path).exists()
    table.refresh()
    assert state(table) == dict.fromkeys(INDEXES, (8, 0))
    assert_rows(lake, table, name)


def test_statistics_of_iceberg_take_the_file_and_the_next_build_keeps_them(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    table.build_indexes(OPTIONS)
    catalog, short = name.split(".", 1)
    call = f"CALL {catalog}.system.compute_table_stats(table => '{short}', columns => array('id'))"
    lake.sql(call)
    table.refresh()
    assert state(table) == dict.fromkeys(INDEXES, (0, 4))
    assert_rows(lake, table, name)
    problem = (
        f"no indexes in the statistics file of snapshot {table.snapshot_id}, which another tool"
    )
    assert any(note.startswith(problem) for note in table.explain("id = 1").notes)
    (theirs,) = listed(table).values()
    (sketch,) = _contents(theirs)
    report = table.build_indexes(OPTIONS)
    assert (report.indexed, report.bundles) == (4, 1)
    (ours,) = listed(table).values()
    assert ours.blobs == theirs.blobs
    assert [(b.type, b.properties) for b in ours.blobs] == [(THETA_SKETCH, {"ndv": "400"})]
    assert _contents(ours) == [sketch]
    assert state(table) == dict.fromkeys(INDEXES, (4, 0))

    insert(lake, name, 400, 500)  # the sketch does not describe that snapshot
    table.build_indexes(OPTIONS)
    assert table.snapshot_id is not None
    assert listed(table)[table.snapshot_id].blobs == ()
    assert _contents(listed(table)[table.snapshot_id]) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_statistics_of_iceberg_at_the_moment_of_the_commit(
    lake: SparkSession,
    table: IcebergTable,
    name: str,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog, short = name.split(".", 1)
    own = SparkCatalogTable.set_statistics
    calls: list[object] = []

    def interrupted(self: Any, base: TableMetadata, statistics: StatisticsFile) -> None:
        def compute() -> None:
            if not calls:
                calls.append(lake.sql(f"CALL {catalog}.system.compute_table_stats('{short}')"))

        if moment == "before":
            compute()
        own(self, base, statistics)
        compute()

    monkeypatch.setattr(SparkCatalogTable, "set_statistics", interrupted)
    table.build_indexes(OPTIONS)
    assert len(calls) == 1
    assert state(table) == dict.fromkeys(INDEXES, (4, 0))
    (file,) = listed(table).values()
    assert {blob.type for blob in file.blobs} == {THETA_SKETCH}
    assert len(file.blobs) == 5  # all columns but the map
    assert_rows(lake, table, name)


def test_renamed_and_promoted_columns_keep_their_indexes(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    table.build_indexes(OPTIONS)
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN name TO called")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN name STRING")
    lake.sql(f"INSERT INTO {name} VALUES (900, 'n3', 50, 1, 'x1', NULL, 'new')")
    table.refresh()
    assert state(table)["called", "bitmap"] == (4, 1)
    assert state(table)["n", "bsi"] == (4, 1)
    options = {"file-index.bitmap.columns": "called,name", "file-index.bsi.columns": "n"}
    report = table.build_indexes(options)
    assert (report.indexed, report.fresh) == (1, 4)
    assert [str(skip) for skip in report.skipped] == [
        "skipped bitmap of 'name' in 4 files: column name: not in the file"
    ]
    assert state(table)["called", "bitmap"] == (5, 0)
    assert state(table)["name", "bitmap"] == (1, 4)
    for where in ("called = 'n3' AND n > 40", "name = 'new'", "name IS NULL", "n = 50"):
        expected = lake.sql(f"SELECT count(*) FROM {name} WHERE {where}").first()
        assert expected is not None
        assert table.count(where) == expected[0], where


@BOTH
def test_pyiceberg_reads_the_table_and_its_statistics(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    static = pytest.importorskip("pyiceberg.table").StaticTable
    table.build_indexes(OPTIONS)
    table.compute_stats(["id"])
    folder = Path(table.metadata.location) / "metadata"
    newest = max(folder.glob("v*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    theirs = static.from_metadata(str(newest))
    (file,) = theirs.metadata.statistics
    assert file.statistics_path == next(iter(listed(table).values())).path
    assert [blob.properties for blob in file.blob_metadata] == [{"ndv": "400"}]
    rows: pa.Table = theirs.scan(row_filter="id < 50", selected_fields=("id", "name")).to_arrow()
    own = table.scan("id < 50", columns=["id", "name"]).to_arrow()
    assert rows.sort_by("id").to_pylist() == own.sort_by("id").to_pylist()
    assert state(table) == dict.fromkeys(INDEXES, (4, 0))
    assert_rows(lake, table, name)


def test_appended_rows_get_the_indexes_that_the_table_has(
    lake: SparkSession, table: IcebergTable
) -> None:
    table.build_indexes({"file-index.bitmap.columns": "name"})
    table.append(lake.sql("SELECT 1000L AS id, 'z' AS name"))
    assert state(table) == {("name", "bitmap"): (5, 0)}
    assert table.scan("name = 'z'", columns=["id"]).to_arrow().to_pylist() == [{"id": 1000}]


def _blobs(file: StatisticsFile) -> list[Any]:
    with alcid.puffin.open(file.path) as reader:
        return list(reader.blobs)


def _contents(file: StatisticsFile) -> list[bytes]:
    with alcid.puffin.open(file.path) as reader:
        return [reader.read(blob) for blob in reader.blobs if blob.type == THETA_SKETCH]


def test_indexes_are_built_again_after_a_full_compaction(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, s STRING) USING iceberg")
    for first in (0, 10):
        lake.sql(f"INSERT INTO {name} SELECT id, 'x' FROM range({first}, {first + 10}, 1, 1)")
    table = alcid.iceberg(name, lake)
    table.build_indexes({"file-index.bloom-filter.columns": "id"}, progress=False)
    lake.sql(
        f"CALL lake.system.rewrite_data_files('{name}', options => map('rewrite-all', 'true'))"
    )
    lake.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', "
        "older_than => TIMESTAMP'2100-01-01 00:00:00', retain_last => 1)"
    )
    table = alcid.iceberg(name, lake)
    assert [(index.column, index.fresh, index.absent) for index in table.indexes()] == [
        ("id", 0, 1)
    ]
    assert table.build_indexes(progress=False).indexed == 1
    table.append(lake.sql("SELECT 99L AS id, 'y' AS s"))
    assert [(index.column, index.fresh, index.absent) for index in table.indexes()] == [
        ("id", 2, 0)
    ]
    assert table.scan("id = 99").to_arrow().to_pylist() == [{"id": 99, "s": "y"}]
    assert not table.verify().problems


TAIL = 256 << 10
"""What is read of a bundle when it is opened."""


def test_a_task_writes_the_statistics_file_and_the_driver_no_payload(
    lake: SparkSession, table: IcebergTable, name: str
) -> None:
    options: dict[str, str | int | float] = {
        "file-index.bloom-filter.columns": "id",
        "file-index.bloom-filter.id.items": 8_000_000,
    }
    with Meter() as meter:
        table.build_indexes(options, progress=False)
    (file,) = listed(table).values()
    assert file.size > 4 * WRITTEN_HERE
    traffic = meter.snapshot()
    assert traffic.bytes_read < 8 * TAIL
    assert traffic.bytes_written < TAIL
    with Meter() as meter:
        table.compute_stats(progress=False)
    (counted,) = listed(table).values()
    assert (counted.path != file.path, counted.size > file.size) == (True, True)
    traffic = meter.snapshot()
    assert traffic.bytes_read < 8 * TAIL
    assert traffic.bytes_written < TAIL
    assert state(table) == {("id", "bloom-filter"): (4, 0)}
    assert table.verify(progress=False).ok
    insert(lake, name, 400, 500)  # merged with what there is
    with Meter() as meter:
        table.refresh()
        table.build_indexes(options, progress=False)
    assert state(table) == {("id", "bloom-filter"): (8, 0)}
    assert meter.snapshot().bytes_written < TAIL
    assert table.count("id = 17") == 1
