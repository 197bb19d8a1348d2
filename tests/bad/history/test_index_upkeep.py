"""Indexes that were stale, missing, in conflict without a reason, or outlived their files."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import alcid
from alcid import OptionError
from alcid.tables.base import Table
from tests.bad.history.asking import files_read, fill, ids, outcomes
from tests.tables.iceberg.vector_catalog import VectorCatalog
from tests.tables.paimon.index_contents import entries, filled, kinds, set_table_options
from tests.tables.paimon.small_tables import append, create, rows_of

EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
BESIDE = {"file-index.in-manifest-threshold": "1 b"}
BLOOM = {"file-index.bloom-filter.columns": "id"}
BITMAP = {"file-index.bitmap.columns": "id"}


def coverage(table: Table[Any]) -> list[tuple[str, str, int, int, int]]:
    """How many files have a current index, an old one, or none, for each index."""
    return [
        (index.column, index.index_type, index.fresh, index.stale, index.absent)
        for index in table.indexes()
    ]


@pytest.mark.parametrize("first", [EMBEDDED, BESIDE], ids=["embedded", "beside"])
@pytest.mark.parametrize("second", [EMBEDDED, BESIDE], ids=["embedded", "beside"])
def test_paimon_9085_another_type_takes_the_place_of_the_old(
    tmp_path: Path, first: dict[str, str], second: dict[str, str]
) -> None:
    """The old index stayed next to the new one, in the manifest or in a file, and was asked."""
    table = filled(create(tmp_path / "t"))
    set_table_options(table, {**BLOOM, **first})
    table.build_indexes()
    set_table_options(table, {**BITMAP, **second})
    table.build_indexes()
    assert kinds(table) == [[("id", "bitmap")]] * 2
    for entry in entries(table):
        names = [name for name in entry.file.extra_files if name.endswith(".index")]
        assert (entry.file.embedded_index is None) == (len(names) == 1)
    opened = alcid.paimon(tmp_path / "t")
    scan = opened.scan("id = 33")
    assert (ids(scan), outcomes(scan)) == ([33], [("bitmap", "answered", 1)])
    set_table_options(opened, {})  # RESET
    assert opened.drop_indexes() == 2
    assert not any(kinds(opened))
    scan = opened.scan("id = 33")
    assert (ids(scan), outcomes(scan)) == ([33], [("", "absent", 1)])


def test_paimon_8596_a_build_that_changes_nothing_commits_nothing(tmp_path: Path) -> None:
    """Files were removed and added again unchanged: a conflict for others, and for itself."""
    table = filled(create(tmp_path / "t"))
    with pytest.raises(OptionError, match="its options ask for no index"):
        table.build_indexes()
    assert table.build_indexes(BITMAP).snapshot_id == 3
    before = entries(table)
    other = alcid.paimon(tmp_path / "t")
    for rebuild in (False, True):
        report = other.build_indexes(BITMAP, rebuild=rebuild)
        assert (report.indexed, report.fresh, report.failed) == (0, 2, 0)
        assert report.snapshot_id is None
    assert other.drop_indexes(types=["bsi"]) == 0
    assert (other.snapshot_id, entries(other)) == (3, before)
    table.delete("id = 7")  # planned on the previous files
    assert table.snapshot_id == 4


def test_hudi_13996_indexes_of_rewritten_files_go_and_are_built_again(tmp_path: Path) -> None:
    """An index of rewritten files stayed and slowed down all queries."""
    table = fill(tmp_path, {f"{part}.parquet": {"id": [part, part + 10]} for part in range(4)})
    table.build_indexes(BITMAP)
    for part in range(4):
        (tmp_path / f"{part}.parquet").unlink()
    fill(
        tmp_path, {"all.parquet": {"id": [part + 10 * row for row in (0, 1) for part in range(4)]}}
    )
    table.refresh()
    assert coverage(table) == [("id", "bitmap", 0, 0, 1)]
    scan = table.scan("id = 12")
    assert (ids(scan), files_read(scan)) == ([12], ["all.parquet"])
    report = table.verify()
    assert (report.ok, report.gone, report.unindexed) == (True, 4, 1)
    table.clean(timedelta(0))
    assert table.verify().gone == 0
    assert table.build_indexes(BITMAP).indexed == 1
    assert coverage(table) == [("id", "bitmap", 1, 0, 0)]
    scan = table.scan("id = 12")
    assert (ids(scan), outcomes(scan)) == ([12], [("bitmap", "answered", 1)])


def test_hudi_13996_the_same_in_an_iceberg_table_whose_snapshots_expire(tmp_path: Path) -> None:
    """Cleaning removed the index too: here a snapshot expires whose statistics file has indexes."""
    catalog = VectorCatalog(tmp_path / "table")
    files = {f"{part}.parquet": rows_of([part, part + 10]).to_pydict() for part in range(3)}
    first = catalog.add(files)
    catalog.open().build_indexes(BITMAP)
    merged = rows_of([0, 10, 1, 11]).to_pydict()
    second = catalog.add({"all.parquet": merged}, drop=["0.parquet", "1.parquet"])
    table = catalog.open()
    assert coverage(table) == [("id", "bitmap", 1, 0, 1)]
    scan = table.scan("id = 11")
    assert (ids(scan), files_read(scan)) == ([11], ["data/all.parquet"])
    report = table.build_indexes(BITMAP)
    assert (report.indexed, report.fresh) == (1, 1)
    catalog.expire(first)
    table = catalog.open()
    assert coverage(table) == [("id", "bitmap", 2, 0, 0)]
    scan = table.scan("id = 12")
    assert (ids(scan), files_read(scan)) == ([12], ["data/2.parquet"])
    assert outcomes(scan) == [("bitmap", "answered", 1)]
    assert [path.name for path in catalog.puffins()] == [catalog.listed()[second]]
    assert table.verify().ok


def test_hudi_19716_each_index_that_is_claimed_was_built(tmp_path: Path) -> None:
    """Of two indexes to rebuild, one was called complete although nothing had been built."""
    files = {f"{part}.parquet": {"id": [part, part + 10], "a": [part, 7]} for part in range(3)}
    table = fill(tmp_path, files)
    both = {**BITMAP, "file-index.range-bitmap.columns": "a"}
    every = [("a", "range-bitmap", 3, 0, 0), ("id", "bitmap", 3, 0, 0)]
    assert table.build_indexes(both).indexed == 3
    assert coverage(table) == every
    shutil.rmtree(tmp_path / "_alcid")
    table = alcid.parquet(tmp_path)
    assert coverage(table) == []
    assert table.build_indexes(BITMAP).indexed == 3
    assert coverage(table) == [("id", "bitmap", 3, 0, 0)]
    assert outcomes(table.scan("a = 1")) == [("", "absent", 2)]
    assert ids(table.scan("a = 7")) == [10, 11, 12]
    assert table.build_indexes(both).indexed == 3
    assert coverage(table) == every
    scan = table.scan("a = 7")
    assert (ids(scan), outcomes(scan)) == ([10, 11, 12], [("range-bitmap", "answered", 3)])
    assert table.verify().ok


def test_hudi_19716_files_that_cannot_be_read_are_not_called_indexed(tmp_path: Path) -> None:
    """A build of nothing does not count as a successful build."""
    table = fill(tmp_path, {f"{part}.parquet": {"id": [part, part + 10]} for part in range(3)})
    good = {part: (tmp_path / f"{part}.parquet").read_bytes() for part in (1, 2)}
    for part, data in good.items():
        (tmp_path / f"{part}.parquet").write_bytes(data[:4] + b"\xff" * 16 + data[20:])
    report = table.build_indexes(BITMAP)
    assert (report.files, report.indexed, report.fresh, report.failed) == (3, 1, 0, 2)
    assert [skip.files for skip in report.skipped] == [1, 1]
    assert coverage(table) == [("id", "bitmap", 1, 0, 2)]
    for part, data in good.items():
        (tmp_path / f"{part}.parquet").write_bytes(data)
    report = table.build_indexes(BITMAP)
    assert (report.indexed, report.fresh, report.failed) == (2, 1, 0)
    assert coverage(table) == [("id", "bitmap", 3, 0, 0)]
    assert ids(table.scan("id IN (0, 11, 12)")) == [0, 11, 12]


def test_paimon_3391_files_that_were_there_before_get_indexes(tmp_path: Path) -> None:
    """Only files written after the options were set got an index, and older ones never did."""
    table = filled(create(tmp_path / "t"))
    data = [path for path in (tmp_path / "t" / "bucket-0").iterdir() if path.suffix == ".parquet"]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in data}
    set_table_options(table, BITMAP)
    append(table, range(50, 60))
    assert coverage(table) == []
    report = table.build_indexes()
    assert (report.files, report.indexed, report.rows) == (3, 3, 60)
    assert coverage(table) == [("id", "bitmap", 3, 0, 0)]
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in data} == before
    scan = table.scan("id = 33")
    assert (ids(scan), outcomes(scan)) == ([33], [("bitmap", "answered", 1)])
