"""Repair of folders of Parquet files: wrong parts of bundles are built again."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import OptionError, ParquetTable
from alcid.errors import DamagedIndexWarning
from alcid.formats.puffin import PuffinReader
from alcid.formats.source import BytesSource
from alcid.index.build import index_file
from alcid.tables import build
from alcid.tables.maintenance import findings, parquet
from alcid.tables.maintenance import verify as verifying
from alcid.tables.maintenance.findings import Finding, FindingKind
from alcid.tables.maintenance.repair import NotRepaired, Repaired, RepairReport
from alcid.tables.maintenance.verify import VerifyReport
from tests.tables.maintenance.forging import flip

OPTIONS = {"file-index.bloom-filter.columns": "id", "file-index.bitmap.columns": "name"}
INDEXES = {("id", "bloom-filter"): 3, ("name", "bitmap"): 3}


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    """Three files with indexes, in one bundle."""
    for number in range(3):
        pq.write_table(rows_of(number), tmp_path / f"{number}.parquet")
    made = alcid.parquet(tmp_path)
    made.build_indexes(OPTIONS)
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the data files that builds read."""
    paths: list[str] = []

    def note(*args: Any, **named: Any) -> Any:
        paths.append(named["path"])
        return index_file(*args, **named)

    monkeypatch.setattr(build, "index_file", note)
    return paths


def rows_of(number: int) -> pa.Table:
    ids = range(number * 1000, number * 1000 + 1000)
    return pa.table({"id": ids, "name": [f"n{key % 7}" for key in ids]})


def bundle_of(table: ParquetTable) -> Path:
    (path,) = Path(table.location, "_alcid").glob("*.puffin")
    return path


def indexes(table: ParquetTable) -> dict[tuple[str, str], int]:
    return {(index.column, index.index_type): index.fresh for index in table.indexes()}


def repaired(table: ParquetTable) -> RepairReport:
    """Repair: a dry run says the same and changes nothing, and a second run has nothing to do."""
    files = {path: path.stat().st_mtime_ns for path in Path(table.location).rglob("*")}
    trial = table.repair(dry_run=True)
    assert {path: path.stat().st_mtime_ns for path in Path(table.location).rglob("*")} == files
    report = table.repair()
    assert (trial.repaired, trial.not_repaired, trial.dry_run) == (
        report.repaired,
        report.not_repaired,
        True,
    )
    assert table.repair().repaired == ()
    verified = table.verify()
    assert [(problem.file, problem.what, problem.problem) for problem in verified.problems] == [
        (repair.file, repair.what, repair.problem) for repair in report.not_repaired
    ]
    return report


def test_a_sound_table_is_left_alone(table: ParquetTable, read: list[str]) -> None:
    report = repaired(table)
    assert (report.ok, report.repaired, report.commits, read) == (True, (), 0, [])


def test_a_wrong_index_is_rebuilt_for_its_file_only(table: ParquetTable, read: list[str]) -> None:
    """A file was changed, but neither its time nor its size shows it."""
    path = Path(table.location, "1.parquet")
    before = path.stat()
    names = pa.array([f"n{id_ % 7 + 1}" for id_ in range(1000)])
    pq.write_table(rows_of(1).set_column(1, "name", names), path)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    report = repaired(table)
    assert {repair.file for repair in report.repaired} == {"1.parquet"}
    assert {repair.done for repair in report.repaired} == {"built anew"}
    assert set(read) == {"1.parquet"}
    assert (report.ok, indexes(table)) == (True, INDEXES)
    assert table.count("name = 'n7'") == 142


def test_a_damaged_payload_is_built_again(table: ParquetTable, read: list[str]) -> None:
    flip(bundle_of(table), 10)
    table = alcid.parquet(table.location)
    report = repaired(table)
    assert {(repair.file, repair.done) for repair in report.repaired} == {
        ("0.parquet", "built anew")
    }
    assert set(read) == {"0.parquet"}
    assert str(report).startswith(f"repaired {len(report.repaired)} problem")
    assert (report.ok, indexes(table)) == (True, INDEXES)


@pytest.mark.parametrize("part", ["alcid-directory-v1", "alcid-files-v1"])
def test_a_bundle_that_is_damaged_in_part_is_made_again(table: ParquetTable, part: str) -> None:
    bundle = bundle_of(table)
    blobs = PuffinReader(BytesSource(bundle.read_bytes())).blobs
    blob = next(blob for blob in blobs if blob.type == part)
    flip(bundle, blob.offset + blob.length - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)
        table = alcid.parquet(table.location)
    report = repaired(table)
    assert [(repair.file, repair.done) for repair in report.repaired] == [
        (bundle.name, "its indexes are built anew")
    ]
    assert (report.ok, indexes(table)) == (True, INDEXES)


def test_a_bundle_that_cannot_be_read_is_removed(table: ParquetTable) -> None:
    bundle = bundle_of(table)
    flip(bundle, -10)
    with pytest.warns(DamagedIndexWarning):
        table = alcid.parquet(table.location)
    report = repaired(table)
    assert [(repair.file, repair.what, repair.done) for repair in report.repaired] == [
        (bundle.name, "bundle", "dropped: build_indexes makes others")
    ]
    assert (report.ok, bundle.exists(), indexes(table)) == (True, False, {})


def test_indexes_of_a_bundle_that_cannot_be_read_are_built_if_others_have_them(
    table: ParquetTable, read: list[str]
) -> None:
    first = bundle_of(table)
    pq.write_table(rows_of(3), Path(table.location, "3.parquet"))
    table.build_indexes(OPTIONS)
    flip(first, -10)
    read.clear()
    with pytest.warns(DamagedIndexWarning):
        table = alcid.parquet(table.location)
    report = repaired(table)
    assert [repair.done for repair in report.repaired] == ["its indexes are built anew"]
    assert sorted(read) == ["0.parquet", "1.parquet", "2.parquet"]
    assert indexes(table) == dict.fromkeys(INDEXES, 4)


def test_a_damaged_data_file_is_reported(table: ParquetTable) -> None:
    path = Path(table.location, "2.parquet")
    before = path.stat()
    flip(path, -1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    report = repaired(table)
    assert [(repair.file, repair.what, repair.advice) for repair in report.not_repaired] == [
        ("2.parquet", "", "restore the file, or write it anew")
    ]
    assert report.repaired == ()


def test_leftovers_are_removed_when_they_are_old_enough(table: ParquetTable) -> None:
    draft = Path(table.location, "_alcid", f".{'0' * 32}.tmp")
    draft.write_bytes(b"")
    assert [file.path for file in table.repair().kept] == [f"_alcid/{draft.name}"]
    assert [file.path for file in table.repair(timedelta(0)).removed] == [f"_alcid/{draft.name}"]
    assert not draft.exists()
    with pytest.raises(OptionError, match="older_than"):
        table.repair(timedelta(-1))


def test_long_lists_are_cut_in_the_text() -> None:
    listed = [
        Finding(FindingKind.INDEX, f"f{number}", "wrong", "id", "bitmap") for number in range(12)
    ]
    report = RepairReport(
        tuple(Repaired(finding, "built anew") for finding in listed),
        tuple(NotRepaired(finding, "restore it") for finding in listed[:1]),
        (),
        (),
        None,
        0,
        0.5,
    )
    first, left, *others, more = str(report).splitlines()
    assert first == "repaired 12 problems; removed 0 leftovers (0 B); 1 NOT repaired; 0.5 s"
    assert left == "not repaired: f0: bitmap of 'id': wrong: restore it"
    assert (len(others), others[0]) == (10, "repaired: f0: bitmap of 'id': wrong: built anew")
    assert more == "and 2 more repaired"


@pytest.fixture
def stale(tmp_path: Path) -> ParquetTable:
    """Six files with 4 indexes, replaced by others of the same size, time and footer."""
    names = "abcd"
    rows = pa.table({name: pa.array(range(4)) for name in names})
    paths = [tmp_path / f"{number}.parquet" for number in range(6)]
    for path in paths:
        pq.write_table(rows, path, compression="none", use_dictionary=False)
    table = alcid.parquet(tmp_path)
    table.build_indexes({"file-index.bitmap.columns": ",".join(names)})
    for path in paths:
        times = path.stat()
        pq.write_table(rows.take([3, 2, 1, 0]), path, compression="none", use_dictionary=False)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return table


@pytest.mark.parametrize("limit", ["_MAX_FINDINGS", "_MAX_TASK_FINDINGS"])
@pytest.mark.parametrize(("kept", "looks"), [(1_000_000, 2), (10, 3)])
def test_all_problems_are_repaired_though_a_report_has_the_first(
    stale: ParquetTable, monkeypatch: pytest.MonkeyPatch, kept: int, looks: int, limit: str
) -> None:
    monkeypatch.setattr(verifying, "_MAX_REPORTED", 5)
    monkeypatch.setattr(findings, limit, kept)
    verified = stale.verify()
    assert (verified.problem_count, len(verified.problems)) == (24, 5)
    looked = []
    verify = parquet.verify

    def look(*args: Any, **named: Any) -> VerifyReport:
        looked.append(verify(*args, **named))
        return looked[-1]

    monkeypatch.setattr(parquet, "verify", look)
    trial = stale.repair(dry_run=True)
    assert (len(trial.repaired), trial.not_repaired) == (min(kept, 24), ())
    looked.clear()
    report = stale.repair()
    assert (report.not_repaired, len(looked)) == ((), looks)
    assert {repair.file for repair in report.repaired} == {
        f"{number}.parquet" for number in range(6)
    }
    assert stale.verify().ok
