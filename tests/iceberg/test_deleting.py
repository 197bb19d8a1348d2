"""`t.delete`: rows deleted for us and for Iceberg, its commits, and concurrent commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.errors import ConflictError, PredicateError, UnsupportedError
from alcid.spark.iceberg import SparkCatalogTable
from alcid.tables.iceberg.catalog import VectorCommit
from alcid.tables.iceberg.deletes.plan import with_vectors
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.reports import DeleteReport
from tests.iceberg.deleted import delete_equal, deleted_by_iceberg, insert
from tests.iceberg.test_deletes_reading import COLUMNS, check, create, kinds
from tests.iceberg.vectors import data_entries, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ids(lake: SparkSession, name: str) -> list[int]:
    """The rows that Iceberg reads, which must equal those that we read."""
    theirs = [row.id for row in lake.sql(f"SELECT id FROM {name} ORDER BY id").collect()]
    ours = alcid.iceberg(name, lake).scan(columns=["id"], order_by="id").to_arrow()
    assert ours["id"].to_pylist() == theirs
    return theirs


def summary(lake: SparkSession, name: str) -> dict[str, str]:
    """The summary of the newest snapshot."""
    rows = lake.sql(
        f"SELECT operation, summary FROM {name}.snapshots ORDER BY committed_at"
    ).collect()
    return {"operation": rows[-1].operation, **rows[-1].summary}


def puffin_files(lake: SparkSession, name: str) -> set[str]:
    """All files in the folder of the table."""
    location = local_path(SparkCatalogTable(lake, name).load().location)
    return {str(path) for path in Path(location).rglob("*.puffin")}


def live_puffin_files(lake: SparkSession, name: str) -> set[str]:
    entries = data_entries(SparkCatalogTable(lake, name), 1)
    return {local_path(entry["file_path"]) for entry in entries if entry["file_format"] == "PUFFIN"}


def ordered(entries: Entries) -> list[pa.Table]:
    keys = [("file_path", "ascending"), ("content_offset", "ascending")]
    return [entries.data, entries.deletes.sort_by(keys)]


class Racing(SparkCatalogTable):
    """A catalog in which something happens before each commit, as long as there is something."""

    def __init__(self, lake: SparkSession, name: str, *happenings: Callable[[], Any]) -> None:
        super().__init__(lake, name)
        self.happenings, self.commits = list(happenings), 0
        self.changes: list[VectorCommit] = []

    def commit_vectors(self, change: VectorCommit) -> int:
        self.commits += 1
        self.changes.append(change)
        if self.happenings:
            self.happenings.pop(0)()
        return super().commit_vectors(change)


def test_ours_then_icebergs_then_ours(lake: SparkSession, name: str) -> None:
    create(lake, name, 3, by="p")
    insert(lake, name, 0, 60, COLUMNS)
    insert(lake, name, 60, 120, COLUMNS)
    table = alcid.iceberg(name, lake)
    first = table.delete("id IN (1, 4, 61, 2)")
    assert (first.rows, first.files, first.snapshot_id) == (4, 3, table.snapshot_id)
    expected = {"operation": "delete", "added-dvs": "3", "added-position-deletes": "4"}
    assert summary(lake, name).items() >= expected.items()
    assert "added-position-delete-files" not in summary(lake, name)
    assert table.count() == 116
    lake.sql(f"DELETE FROM {name} WHERE id IN (7, 62)")  # 7 beside 1 and 4
    assert table.delete(alcid.col("id").isin([1, 7, 10, 8])) == DeleteReport(
        2, 2, table.snapshot_id
    )
    expected = {"added-dvs": "2", "removed-dvs": "2", "added-position-deletes": "6"}
    assert summary(lake, name).items() >= expected.items()
    gone = {1, 4, 61, 2, 7, 62, 10, 8}
    assert ids(lake, name) == [number for number in range(120) if number not in gone]
    rows = check(lake, name)
    assert kinds(lake, name) == [
        ("PUFFIN", len(some)) for some in sorted(rows.values(), key=len) if some
    ]


def test_the_bytes_of_a_vector_are_those_of_iceberg(lake: SparkSession, name: str) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 5000, COLUMNS)
    where = "p = 0 OR id BETWEEN 300 AND 900"
    catalog = SparkCatalogTable(lake, name)
    before = catalog.load().current_snapshot_id

    def vector() -> bytes:
        (entry,) = data_entries(catalog, 1)
        data = Path(local_path(entry["file_path"])).read_bytes()
        assert len(data) == entry["file_size_in_bytes"]
        with alcid.puffin.open(local_path(entry["file_path"])) as reader:
            (blob,) = reader.blobs
        assert (blob.offset, blob.length) == (
            entry["content_offset"],
            entry["content_size_in_bytes"],
        )
        assert blob.properties["referenced-data-file"] == entry["referenced_data_file"]
        return data[blob.offset : blob.offset + blob.length]

    assert alcid.iceberg(name, lake).delete(where).rows == 2067
    ours = vector()
    lake.sql(f"CALL lake.system.rollback_to_snapshot('{name.removeprefix('lake.')}', {before})")
    lake.sql(f"DELETE FROM {name} WHERE {where}")
    assert vector() == ours


def test_nothing_that_matches_makes_no_snapshot(lake: SparkSession, name: str) -> None:
    create(lake, name, 3)
    table = alcid.iceberg(name, lake)
    assert table.delete("true") == DeleteReport(0, 0, None)
    insert(lake, name, 0, 10, COLUMNS)
    assert table.delete("id > 100") == DeleteReport(0, 0, None)
    before = table.snapshot_id
    everything = table.delete("true")
    assert (everything.rows, everything.files) == (10, 1)
    assert table.snapshot_id != before
    assert table.delete("true") == DeleteReport(0, 0, None)
    assert ids(lake, name) == []
    assert len(puffin_files(lake, name)) == 1


def test_partitions_of_several_specs(lake: SparkSession, name: str) -> None:
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP, d DECIMAL(9, 2), s STRING) USING iceberg"
        " PARTITIONED BY (days(at), d, s) TBLPROPERTIES ('format-version'='3')"
    )
    columns = (
        "id, timestamp'2024-02-29 23:00:00' + make_dt_interval(0, id) as at,"
        " cast(id % 2 + 0.5 as decimal(9, 2)) as d, if(id = 3, NULL, 'a/b=ü') as s"
    )
    insert(lake, name, 0, 6, columns)
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD days(at)")
    insert(lake, name, 6, 12, columns)
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD d")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD s")
    insert(lake, name, 12, 18, columns)
    table = alcid.iceberg(name, lake)
    assert table.delete("id IN (1, 3, 4, 7, 8, 13)").rows == 6
    assert ids(lake, name) == [0, 2, 5, 6, 9, 10, 11, 12, 14, 15, 16, 17]
    assert table.delete("s IS NULL OR id < 3").rows == 2
    assert table.delete("at >= timestamp'2024-03-01 09:00:00'").rows == 7
    assert ids(lake, name) == [5, 6, 9]
    check(lake, name)
    lake.sql(f"ALTER TABLE {name} DROP COLUMN s")
    files = puffin_files(lake, name)
    with pytest.raises(UnsupportedError, match="partition field s: its column is dropped"):
        table.delete("id = 5")
    assert puffin_files(lake, name) == files


def test_what_format_2_deleted_goes_into_the_vector(lake: SparkSession, name: str) -> None:
    create(lake, name, 2, by="p", more=", 'write.delete.granularity'='partition'")
    insert(lake, name, 0, 30, COLUMNS)
    insert(lake, name, 30, 60, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (0, 30)")  # one file of the partition p = 0
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.granularity'='file')")
    lake.sql(f"DELETE FROM {name} WHERE id IN (1, 31)")
    table = alcid.iceberg(name, lake)
    message = rf"{name}: format version 2 has no deletion vectors: ALTER TABLE {name} SET TBLPROP"
    with pytest.raises(UnsupportedError, match=message):
        table.delete("id = 3")
    assert {kind for kind, _ in kinds(lake, name)} == {"PARQUET"}
    scoped = len(kinds(lake, name))
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    assert table.delete("id IN (0, 3, 4)").rows == 2
    added = summary(lake, name)
    assert added["added-dvs"] == "2"
    assert added["removed-position-delete-files"] == "1"  # that of one file, not that of p = 0
    assert len(kinds(lake, name)) == scoped - 1 + 2
    assert ids(lake, name) == [number for number in range(60) if number not in (0, 30, 1, 31, 3, 4)]
    check(lake, name)


def test_the_entries_after_a_commit_are_known_without_asking(lake: SparkSession, name: str) -> None:
    create(lake, name, 3, by="p")
    insert(lake, name, 0, 60, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id IN (1, 2)")
    catalog = Racing(lake, name)
    table = IcebergTable(catalog)
    before = table.snapshot.entries
    table.delete("id IN (1, 2, 3, 4, 5)")
    made = table.metadata.snapshots[table.snapshot_id or 0]
    entries = with_vectors(before, catalog.changes[0], made.sequence_number)
    assert len(entries.deletes) == 3
    assert ordered(entries) == ordered(Entries.of(catalog.entries(made.id)))


def test_rows_that_equality_deletes_took_are_not_deleted_again(
    lake: SparkSession, name: str
) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    delete_equal(lake, name, {"id": (1, pa.array([3, 5]))})
    table = alcid.iceberg(name, lake)
    assert table.delete("id BETWEEN 3 AND 6").rows == 2
    assert kinds(lake, name) == [("PUFFIN", 2)]
    assert ids(lake, name) == [0, 1, 2, *range(7, 20)]


def test_a_table_of_the_past_and_predicates_that_cannot_be(lake: SparkSession, name: str) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    table = alcid.iceberg(name, lake)
    with pytest.raises(UnsupportedError, match="for reading, so no delete"):
        alcid.iceberg(name, lake, snapshot_id=table.snapshot_id).delete("true")
    with pytest.raises(PredicateError, match="only Spark can evaluate"):
        table.delete("soundex(name) = 'N000'")
    with pytest.raises(UnsupportedError, match="where: found int, expected str"):
        table.delete(7)  # type: ignore[arg-type]
    assert table.count() == 20
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='avro')")
    insert(lake, name, 20, 40, COLUMNS)
    with pytest.raises(
        UnsupportedError, match="data files in AVRO: only Iceberg can find these rows"
    ):
        table.delete("id = 1")
    assert puffin_files(lake, name) == set()


def test_a_concurrent_delete_is_planned_again(lake: SparkSession, name: str) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    catalog = Racing(lake, name, lambda: lake.sql(f"DELETE FROM {name} WHERE id IN (3, 4)"))
    report = IcebergTable(catalog).delete("id IN (4, 5)")
    assert (report.rows, report.files, catalog.commits) == (1, 1, 2)
    assert ids(lake, name) == [0, 1, 2, *range(6, 20)]
    assert len(live_puffin_files(lake, name)) == 1
    assert len(puffin_files(lake, name)) == 2  # that of the lost commit is removed
    check(lake, name)


def test_a_concurrent_delete_of_other_files_and_an_insert_do_no_harm(
    lake: SparkSession, name: str
) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    insert(lake, name, 20, 40, COLUMNS)

    def happen() -> None:
        insert(lake, name, 0, 10, COLUMNS)
        alcid.iceberg(name, lake).delete("id = 21")

    catalog = Racing(lake, name, happen)
    assert IcebergTable(catalog).delete("id = 5").rows == 1
    assert catalog.commits == 1
    assert ids(lake, name) == sorted([*(set(range(40)) - {5, 21}), *range(10)])


def test_concurrent_rewriting_is_planned_again(lake: SparkSession, name: str) -> None:
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    insert(lake, name, 20, 40, COLUMNS)
    lake.sql(f"DELETE FROM {name} WHERE id = 7")
    every = "map('rewrite-all', 'true')"
    call = f"CALL lake.system.rewrite_data_files(table => '{name}', options => {every})"
    catalog = Racing(lake, name, lambda: lake.sql(call))
    report = IcebergTable(catalog).delete("id IN (5, 7, 25)")
    assert (report.rows, report.files, catalog.commits) == (2, 1, 2)
    assert ids(lake, name) == [number for number in range(40) if number not in (5, 7, 25)]
    assert puffin_files(lake, name) >= live_puffin_files(lake, name)
    check(lake, name)
    lake.sql(call)
    assert kinds(lake, name) == []
    assert ids(lake, name) == [number for number in range(40) if number not in (5, 7, 25)]


def test_others_that_are_always_faster_end_in_an_error(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alcid.tables.iceberg.delete._ATTEMPTS", 2)
    create(lake, name, 3)
    insert(lake, name, 0, 20, COLUMNS)
    other = alcid.iceberg(name, lake)
    happenings = [lambda row=row: other.delete(f"id = {row}") for row in (1, 2)]
    with pytest.raises(ConflictError):
        IcebergTable(Racing(lake, name, *happenings)).delete("id = 5")
    assert ids(lake, name) == [0, *range(3, 20)]
    assert len(puffin_files(lake, name)) == 2
    assert list(deleted_by_iceberg(lake, name).values()) == [alcid.DeletionVector([1, 2])]
