"""Repair of Iceberg tables: Iceberg's own runtime reads them again, and no row comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import alcid
from alcid import FormatError, UnsupportedError
from alcid.spark.iceberg import SparkCatalogTable, scan_tasks
from alcid.tables.iceberg.catalog import VectorFile
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.maintenance import iceberg_repair
from alcid.tables.maintenance.iceberg_repair_vectors import VectorRepair, plan_vectors
from alcid.tables.maintenance.repair import ROLL_BACK, RepairReport
from tests.iceberg.vectors import commit_of, data_entries, local_path, vector_files
from tests.tables.maintenance.forging import flip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(lake: SparkSession, name: str) -> IcebergTable:
    """Two files, with ids 0 to 9 and 10 to 19, in two partitions."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, part INT) USING iceberg"
        " PARTITIONED BY (part)"
        " TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    for part in range(2):
        lake.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('n', id % 5), {part}"
            f" FROM range({part * 10}, {part * 10 + 10})"
        )
    return alcid.iceberg(name, lake)


def catalog_of(table: IcebergTable) -> SparkCatalogTable:
    assert isinstance(table.catalog, SparkCatalogTable)
    return table.catalog


def theirs(table: IcebergTable) -> list[int]:
    """The ids that Iceberg's runtime reads."""
    session = catalog_of(table).session
    rows = session.sql(f"SELECT id FROM {table.name} ORDER BY id").collect()
    return [row[0] for row in rows]


def ours(table: IcebergTable) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def without(*gone: int) -> list[int]:
    return [number for number in range(20) if number not in gone]


def delete_positions(table: IcebergTable, deleted: Mapping[int, Sequence[int]]) -> None:
    """Add vectors next to the existing ones, as a writer that ignores them does."""
    catalog = catalog_of(table)
    catalog.commit_vectors(commit_of(catalog, deleted))
    table.refresh()


def repair_lines(report: RepairReport) -> set[tuple[str, str]]:
    return {(repair.what, repair.done) for repair in report.repaired}


def repaired(table: IcebergTable) -> RepairReport:
    """Repair: a dry run says the same and changes nothing, and a second run has nothing to do."""
    before, files = table.snapshot_id, puffins(table)
    trial = table.repair(dry_run=True)
    table.refresh()
    assert (table.snapshot_id, puffins(table)) == (before, files)
    report = table.repair()
    assert (trial.repaired, trial.not_repaired, trial.commits) == (
        report.repaired,
        report.not_repaired,
        report.commits,
    )
    assert (trial.dry_run, trial.snapshot_id, report.dry_run) == (True, None, False)
    assert table.snapshot_id == (report.snapshot_id or before)
    verified = table.verify()
    assert [(problem.file, problem.what, problem.problem) for problem in verified.problems] == [
        (repair.file, repair.what, repair.problem) for repair in report.not_repaired
    ]
    again = table.repair()
    assert (again.repaired, again.commits, again.snapshot_id) == ((), 0, None)
    return report


def puffins(table: IcebergTable) -> set[Path]:
    return set(Path(local_path(table.metadata.location)).rglob("*.puffin"))


def test_two_vectors_of_a_file_become_one(table: IcebergTable) -> None:
    delete_positions(table, {0: [1], 1: [1]})
    delete_positions(table, {0: [3, 5]})
    with pytest.raises(Exception, match="Can't index multiple DVs"):
        theirs(table)
    with pytest.raises(FormatError, match=r"two deletion vectors of .*, which repair merges"):
        ours(table)
    report = repaired(table)
    (merged,) = report.repaired
    assert merged.file == data_entries(catalog_of(table))[0]["file_path"]
    assert (merged.what, merged.done) == ("deletion vectors", "merged to one, of 3 rows")
    assert (report.ok, report.commits) == (True, 1)
    assert theirs(table) == ours(table) == without(1, 3, 5, 11)
    vectors = data_entries(catalog_of(table), content=1)
    assert sorted(vector["record_count"] for vector in vectors) == [1, 3]
    assert table.delete("id = 7").rows == 1
    catalog_of(table).session.sql(f"DELETE FROM {table.name} WHERE id = 8")
    table.refresh()
    assert theirs(table) == ours(table) == without(1, 3, 5, 7, 8, 11)


def test_a_vector_that_is_listed_twice_becomes_one(table: IcebergTable) -> None:
    catalog = catalog_of(table)
    first, _ = data_entries(catalog)
    (vector,) = vector_files(catalog, [(first, [1, 2])])
    add_unchecked(table, [vector])
    add_unchecked(table, [vector])
    with pytest.raises(Exception, match="Can't index multiple DVs"):
        theirs(table)
    assert repair_lines(table.repair()) == {("deletion vectors", "merged to one, of 2 rows")}
    assert theirs(table) == ours(table) == without(1, 2)
    assert len(data_entries(catalog, content=1)) == 1


def test_wrong_numbers_are_put_right_and_vectors_of_no_file_dropped(table: IcebergTable) -> None:
    catalog = catalog_of(table)
    delete_positions(table, {0: [1]})
    second = data_entries(catalog)[1]
    wrong, orphan = vector_files(
        catalog, [(second, [1, 2]), (second | {"file_path": "/gone.parquet"}, [0])]
    )
    add_unchecked(table, [replace(wrong, cardinality=7), orphan])
    with pytest.raises(Exception, match="Invalid cardinality"):
        theirs(table)
    report = repaired(table)
    assert repair_lines(report) == {
        (f"deletion vector of {second['file_path']}", "written anew, of 2 rows"),
        ("deletion vector of /gone.parquet", "dropped"),
    }
    assert (report.ok, report.commits) == (True, 1)
    assert theirs(table) == ours(table) == without(1, 11, 12)
    assert table.verify().warnings == ()


def add_unchecked(table: IcebergTable, added: Sequence[VectorFile]) -> None:
    """Commit vectors, whatever they contain."""
    catalog = catalog_of(table)
    metadata = json.loads(catalog._java.metadata()[1])
    current = metadata["current-snapshot-id"]
    catalog._java.commit_deletes(current, [], scan_tasks(metadata, added), [])
    table.refresh()


def test_a_damaged_vector_stays_and_the_rest_is_repaired(table: IcebergTable) -> None:
    delete_positions(table, {0: [1]})
    delete_positions(table, {1: [1]})
    delete_positions(table, {1: [2]})
    first, _ = data_entries(catalog_of(table))
    (entry,) = (
        entry
        for entry in data_entries(catalog_of(table), content=1)
        if entry["referenced_data_file"] == first["file_path"]
    )
    puffin = Path(local_path(entry["file_path"]))
    before = puffin.read_bytes()
    flip(puffin, entry["content_offset"] + 14)
    report = repaired(table)
    (left,) = report.not_repaired
    what = f"deletion vector of {first['file_path']}"
    assert (left.file, left.what, left.advice) == (entry["file_path"], what, ROLL_BACK)
    assert "bad checksum of a deletion vector" in left.problem
    assert repair_lines(report) == {("deletion vectors", "merged to one, of 2 rows")}
    with pytest.raises(FormatError, match="bad checksum"):
        ours(table)
    assert sorted(table.scan("part = 1").to_arrow()["id"].to_pylist()) == without(
        *range(10), 11, 12
    )
    session = catalog_of(table).session
    assert session.sql(f"SELECT id FROM {table.name} WHERE part = 1").count() == 8
    puffin.unlink()
    (left,) = table.repair().not_repaired
    assert (left.what, left.problem) == ("deletion vectors", "is not there")
    puffin.write_bytes(before)
    assert theirs(table) == ours(table) == without(1, 11, 12)


def test_a_vector_that_the_footer_gives_to_another_file_stays(table: IcebergTable) -> None:
    """Nobody knows whose rows they are."""
    catalog = catalog_of(table)
    first, second = data_entries(catalog)
    (vector,) = vector_files(catalog, [(first, [1])])
    add_unchecked(table, [replace(vector, data_file=second["file_path"])])
    report = table.repair()
    (left,) = report.not_repaired
    says = f"the footer says {first['file_path']}, the manifest {second['file_path']}"
    assert (left.problem, report.commits) == (f"referenced-data-file: {says}", 0)


def test_what_another_deletes_meanwhile_is_looked_at_again(
    table: IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_positions(table, {0: [1]})
    delete_positions(table, {0: [3]})
    plans = []

    def plan(*arguments: Any) -> VectorRepair:
        vectors = plan_vectors(*arguments)
        plans.append(len(vectors.removed))
        if len(plans) == 1:  # another writer that ignores vectors
            delete_positions(alcid.iceberg(table.name, catalog_of(table).session), {0: [5]})
        return vectors

    monkeypatch.setattr(iceberg_repair, "plan_vectors", plan)
    report = table.repair()
    assert (plans, report.commits, report.ok) == ([2, 3, 0], 1, True)
    assert theirs(table) == ours(table) == without(1, 3, 5)


def test_a_table_of_the_past_is_not_repaired(table: IcebergTable) -> None:
    assert table.snapshot_id is not None
    with pytest.raises(UnsupportedError, match="which are for reading, so no repair"):
        table.at(table.snapshot_id).repair()
