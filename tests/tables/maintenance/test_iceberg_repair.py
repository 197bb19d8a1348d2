"""Repair of indexes and statistics of Iceberg tables, with a catalog in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alcid.formats.puffin import THETA_SKETCH
from alcid.formats.puffin.reader import PuffinReader
from alcid.formats.source import BytesSource
from alcid.index.build import index_file
from alcid.index.bundle.writer import amend
from alcid.tables import build as folder_building
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.maintenance.repair import ROLL_BACK, RepairReport
from tests.tables.iceberg.memory_catalog import MemoryCatalog
from tests.tables.maintenance.forging import flip

OPTIONS = {"file-index.bloom-filter.columns": "id", "file-index.bitmap.columns": "name"}
INDEXES = {("id", "bloom-filter"): 2, ("name", "bitmap"): 2}
SNAPSHOT = 1000


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    made = MemoryCatalog(tmp_path / "t")
    made.add({f"{name}.parquet": rows(number) for number, name in enumerate("ab")})
    return made


def rows(number: int) -> dict[str, list[Any]]:
    ids = range(number, 2000 + number, 2)
    return {"id": list(ids), "name": [f"n{key % 7}" for key in ids]}


@pytest.fixture
def table(catalog: MemoryCatalog) -> IcebergTable:
    """Two files with indexes and sketches."""
    made = IcebergTable(catalog)
    made.build_indexes(OPTIONS)
    made.compute_stats(["name"])
    assert made.verify().ok
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the data files that builds read, in order."""
    names: list[str] = []

    def note(*args: Any, **named: Any) -> Any:
        names.append(Path(named["path"]).name)
        return index_file(*args, **named)

    monkeypatch.setattr(folder_building, "index_file", note)
    return names


def indexes(table: IcebergTable) -> dict[tuple[str, str], int]:
    return {(index.column, index.index_type): index.fresh for index in table.indexes()}


def ndv(catalog: MemoryCatalog) -> dict[int, str]:
    """The distinct values in the metadata, by field."""
    (file,) = (file for file in catalog.metadata["statistics"] if file["snapshot-id"] == SNAPSHOT)
    blobs = file["blob-metadata"]
    return {blob["fields"][0]: blob["properties"]["ndv"] for blob in blobs}


def repaired(table: IcebergTable, catalog: MemoryCatalog, commits: int) -> RepairReport:
    """Repair: a dry run says the same and changes nothing, and a second run has nothing to do."""
    before, listed = catalog.commits, catalog.listed()
    trial = table.repair(dry_run=True)
    assert (catalog.commits, catalog.listed()) == (before, listed)
    report = table.repair()
    assert (trial.repaired, trial.not_repaired, trial.commits, trial.dry_run) == (
        report.repaired,
        report.not_repaired,
        commits,
        True,
    )
    assert (report.commits, report.snapshot_id, catalog.commits) == (
        commits,
        None,
        before + commits,
    )
    verified = table.verify()
    assert [(problem.file, problem.what, problem.problem) for problem in verified.problems] == [
        (repair.file, repair.what, repair.problem) for repair in report.not_repaired
    ]
    again = table.repair()
    assert (again.repaired, again.commits) == ((), 0)
    return report


def test_a_sound_table_is_left_alone(table: IcebergTable, catalog: MemoryCatalog) -> None:
    report = repaired(table, catalog, 0)
    assert (report.ok, report.repaired, report.removed, report.kept) == (True, (), (), ())


def test_an_index_that_is_damaged_is_built_again_of_its_file_only(
    table: IcebergTable, catalog: MemoryCatalog, read: list[str]
) -> None:
    (path,) = catalog.puffins()
    bundle = PuffinReader(BytesSource(path.read_bytes()))
    blob = next(blob for blob in bundle.blobs if blob.type != THETA_SKETCH)
    flip(path, blob.offset + 10)
    wrong = table.verify().problems
    assert {Path(problem.file).name for problem in wrong} == {"a.parquet"}
    report = repaired(table, catalog, 1)
    assert [str(repair) for repair in report.repaired] == [
        f"{problem}: built anew" for problem in wrong
    ]
    assert set(read) == {"a.parquet"}
    assert indexes(table) == INDEXES
    assert ndv(catalog) == {2: "7"}  # the sketches are still there
    assert table.count("id IN (7, 8)") == 2


def test_an_index_of_a_damaged_data_file_is_reported(
    table: IcebergTable, catalog: MemoryCatalog
) -> None:
    (path,) = catalog.puffins()
    bundle = PuffinReader(BytesSource(path.read_bytes()))
    flip(path, next(blob for blob in bundle.blobs if blob.type != THETA_SKETCH).offset + 10)
    data = catalog.folder / "data" / "a.parquet"
    data.unlink()
    report = table.repair()
    assert [
        (Path(repair.file).name, repair.problem, repair.advice) for repair in report.not_repaired
    ] == [("a.parquet", "is not there", ROLL_BACK)]
    assert (report.repaired, report.commits) == ((), 0)


@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: flip(path, -10)], ids=["gone", "footer"]
)
@pytest.mark.usefixtures("table")
def test_a_statistics_file_that_cannot_be_read_is_dropped_and_counted_again(
    catalog: MemoryCatalog, damage: Callable[[Path], None]
) -> None:
    (path,) = catalog.puffins()
    damage(path)
    table = IcebergTable(catalog)
    report = repaired(table, catalog, 3)
    assert {repair.done for repair in report.repaired} == {
        "dropped; indexes built again; name counted again"
    }
    assert (indexes(table), ndv(catalog)) == (INDEXES, {2: "7"})
    assert table.build_indexes(OPTIONS).indexed == 0


def test_indexes_that_are_still_known_are_built_again(
    table: IcebergTable, catalog: MemoryCatalog
) -> None:
    (path,) = catalog.puffins()
    flip(path, -10)
    assert {repair.done for repair in repaired(table, catalog, 3).repaired} == {
        "dropped; indexes built again; name counted again"
    }
    assert (indexes(table), ndv(catalog)) == (INDEXES, {2: "7"})


def test_numbers_that_metadata_make_up_are_put_right(
    table: IcebergTable, catalog: MemoryCatalog, read: list[str]
) -> None:
    (file,) = catalog.metadata["statistics"]
    file["blob-metadata"][0]["properties"]["ndv"] = "70"
    file["file-footer-size-in-bytes"] += 1
    catalog.put_statistics(SNAPSHOT, file)
    report = repaired(table, catalog, 1)
    assert {(repair.what, repair.done) for repair in report.repaired} == {
        ("footer", "written anew, as far as it is sound"),
        (f"{THETA_SKETCH} of fields [2]", "written anew, as far as it is sound"),
    }
    assert ndv(catalog) == {2: "7"}
    assert (indexes(table), read) == (INDEXES, [])  # they were copied


def test_a_sketch_that_does_not_count_what_it_says_is_counted_again(
    table: IcebergTable, catalog: MemoryCatalog, read: list[str]
) -> None:
    table.compute_stats(["id"])
    (path,) = catalog.puffins()
    blobs = PuffinReader(BytesSource(path.read_bytes())).blobs
    (sketch,) = (blob for blob in blobs if blob.type == THETA_SKETCH and blob.fields == (1,))
    flip(path, sketch.offset + 10)
    report = repaired(table, catalog, 2)
    assert [(repair.what, repair.done) for repair in report.repaired] == [
        ("distinct values of field 1", "written anew, as far as it is sound; id counted again")
    ]
    assert ndv(catalog) == {1: "2000", 2: "7"}
    assert (indexes(table), read) == (INDEXES, [])


def test_a_sketch_with_a_wrong_number_is_counted_again(
    table: IcebergTable, catalog: MemoryCatalog
) -> None:
    """The file and the metadata agree, and both are wrong."""
    (path,) = catalog.puffins()
    reader = PuffinReader(BytesSource(path.read_bytes()))
    (sketch,) = (blob for blob in reader.blobs if blob.type == THETA_SKETCH)
    wrong = replace(sketch, properties={"ndv": "70"}), reader.read(sketch)
    with path.with_name("other-alcid.stats").open("wb") as file:
        amend(BytesSource(path.read_bytes()), file, keep=lambda _: False, add=[wrong])
    other = path.with_name("other-alcid.stats")
    (listed,) = catalog.metadata["statistics"]
    listed |= {
        "statistics-path": str(other),
        "file-size-in-bytes": other.stat().st_size,
        "file-footer-size-in-bytes": PuffinReader(BytesSource(other.read_bytes())).footer_size,
    }
    listed["blob-metadata"][0]["properties"]["ndv"] = "70"
    catalog.put_statistics(SNAPSHOT, listed)
    table.refresh()
    report = repaired(table, catalog, 2)
    assert [(repair.what, repair.problem) for repair in report.repaired] == [
        ("distinct values of field 2", "found 70, the sketch says 7")
    ]
    assert (ndv(catalog), indexes(table)) == ({2: "7"}, INDEXES)


def test_statistics_of_the_past_are_not_counted_again(
    table: IcebergTable, catalog: MemoryCatalog
) -> None:
    (path,) = catalog.puffins()
    catalog.add({"c.parquet": rows(5)})
    blobs = PuffinReader(BytesSource(path.read_bytes())).blobs
    flip(path, next(blob for blob in blobs if blob.type == THETA_SKETCH).offset + 10)
    report = repaired(table, catalog, 1)
    assert [repair.done for repair in report.repaired] == ["written anew, as far as it is sound"]
    assert ndv(catalog) == {}
    assert indexes(table) == INDEXES


def test_what_no_snapshot_lists_is_removed_when_it_is_old_enough(
    table: IcebergTable, catalog: MemoryCatalog
) -> None:
    draft = catalog.folder / "metadata" / f".{'0' * 32}.tmp"
    draft.write_bytes(b"")
    report = table.repair()
    assert (report.removed, [Path(file.path).name for file in report.kept]) == ((), [draft.name])
    os.utime(draft, (0, 0))
    assert [file.reason for file in table.repair(dry_run=True).removed] == ["unfinished"]
    assert draft.exists()
    assert [file.reason for file in table.repair().removed] == ["unfinished"]
    assert not draft.exists()


def test_a_commit_of_another_meanwhile_is_looked_at_again(
    table: IcebergTable, catalog: MemoryCatalog
) -> None:
    (path,) = catalog.puffins()
    path.unlink()
    catalog.between.append(lambda: catalog.expire(SNAPSHOT))
    catalog.add({"c.parquet": rows(5)})
    report = table.repair()
    assert (report.ok, report.repaired, catalog.listed()) == (True, (), {})
