"""Where indexes are stored, what others may do meanwhile, and that no row is ever lost by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alcid import PaimonTable
from alcid._arrays import Int64Array
from alcid.errors import ConflictError
from alcid.storage import Storage
from alcid.tables.engine import Task, Threads
from alcid.tables.paimon.delete import delete
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.write.build import build, drop, indexes
from alcid.tables.progress import ReportProgress, no_progress
from tests.tables.paimon.index_contents import (
    BESIDE,
    BITMAP,
    BLOOM,
    entries,
    filled,
    hides,
    kinds,
    set_table_options,
    sidecars,
)
from tests.tables.paimon.small_tables import append, commit, create, ids


@pytest.fixture
def table(tmp_path: Path) -> PaimonTable:
    """Two files, with 20 and 30 rows."""
    return filled(create(tmp_path / "t"))


# -- placement ---------------------------------------------------------------------------------


def test_index_files_get_names_that_were_never_used(tmp_path: Path) -> None:
    table = create(tmp_path / "t", options=BESIDE)
    name = append(table, range(20)).file.name
    build(table, BITMAP)
    assert sidecars(table) == [".index"]
    build(table, BLOOM)
    assert sidecars(table) == ["-1.index"]
    (tmp_path / "t" / "bucket-0" / f"{name}-2.index").write_bytes(b"of a build that was killed")
    build(table, {"file-index.bsi.columns": "id"})
    assert sidecars(table) == ["-3.index"]
    drop(table, types=["bsi"])
    assert sidecars(table) == ["-4.index"]
    assert ids(table) == list(range(20))


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"])
def test_none_and_some_in_turn_keeps_every_row(tmp_path: Path, threshold: str) -> None:
    options = {"file-index.in-manifest-threshold": threshold}
    table = filled(create(tmp_path / "t", options=options))
    for _ in range(3):
        assert build(table, BITMAP).indexed == 2
        assert kinds(table) == [[("name", "bitmap")]] * 2
        assert ids(table) == list(range(50))
        assert drop(table) == 2
        assert indexes(table) == []
        assert ids(table) == list(range(50))
        assert drop(table) == 0
    assert len(table.snapshot.state.deleted) == 12  # each of them once


def test_a_file_whose_index_in_the_manifest_was_replaced_is_another_for_good(
    tmp_path: Path,
) -> None:
    """Otherwise Paimon would build the same index once more, and the file would be gone."""
    table = create(tmp_path / "t", options={"file-index.in-manifest-threshold": "1 mb"})
    data_file = append(table, range(20)).file.name
    build(table, BITMAP)
    assert entries(table)[0].file.extra_files == ()
    names: list[str] = []
    for options in (BLOOM, BITMAP, BLOOM):
        build(table, options)
        names += entries(table)[0].file.extra_files
        assert names[-1].startswith(f"{data_file}-")
        assert names[-1].endswith(".replaced")
        assert (tmp_path / "t" / "bucket-0" / names[-1]).is_file()
    assert len(set(names)) == 3
    for number in range(1, 5):  # the snapshots before the last one expire
        (tmp_path / "t" / "snapshot" / f"snapshot-{number}").unlink()
    gone = [file.path for file in table.clean(timedelta(0)).removed if file.reason == "file index"]
    assert gone == sorted(f"bucket-0/{name}" for name in names[:2])
    assert table.verify().ok
    assert ids(table) == list(range(20))


def test_a_file_that_had_an_index_file_always_has_one(tmp_path: Path) -> None:
    """Otherwise Paimon would give the next one the first one's name, and the file would be gone."""
    table = create(tmp_path / "t", options={**BITMAP, **BESIDE})
    entry = append(table, range(20))
    had = entry.with_file(replace(entry.file, extra_files=(f"{entry.file.name}.index",)))
    commit(table, Change(kind="OVERWRITE", deleted=[entry], added=[had]))
    assert drop(table) == 1
    assert sidecars(table) == ["-1.index"]
    assert kinds(table) == [[]]
    set_table_options(table, BITMAP)
    build(table)
    assert sidecars(table) == ["-2.index"]
    assert entries(table)[0].file.embedded_index is None


def test_one_and_another_in_turn_keeps_every_row(table: PaimonTable) -> None:
    for _ in range(2):
        for types, options in ((["bitmap"], BLOOM), (["bloom-filter"], BITMAP)):
            build(table, options)
            drop(table, types=types)
            assert ids(table) == list(range(50))
    assert kinds(table) == [[("name", "bitmap")]] * 2


def test_other_extra_files_stay(table: PaimonTable) -> None:
    (first, _) = entries(table)
    new = first.with_file(replace(first.file, extra_files=("a.changelog",)))
    commit(table, Change(kind="COMPACT", deleted=[first], added=[new]))
    build(table, {**BITMAP, **BESIDE})
    extra_files = {entry.file.rows: entry.file.extra_files for entry in entries(table)}
    assert extra_files[20] == ("a.changelog", f"{first.file.name}.index")
    drop(table)
    extra_files = {entry.file.rows: entry.file.extra_files for entry in entries(table)}
    assert extra_files[20] == ("a.changelog", f"{first.file.name}-1.index")


# -- others, meanwhile -------------------------------------------------------------------------


class Meddling(Threads):
    """Another writer does something after the build and before its commit."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._meddle = meddle

    def map(
        self,
        function: Callable[[Task[Any]], Any],
        items: Any,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[Any]:
        results = super().map(function, items, sizes, report)
        self._meddle()
        return results


def meddled(table: PaimonTable, meddle: Callable[[PaimonTable], object]) -> PaimonTable:
    other = PaimonTable(table.storage)
    return PaimonTable(table.storage, engine=Meddling(lambda: meddle(other)))


def index_files(table: PaimonTable) -> list[str]:
    return sorted(path.name for path in Path(table.location).rglob("*.index"))


def test_files_that_another_took_away_are_left_out_and_the_rest_is_committed(
    table: PaimonTable,
) -> None:
    first, second = entries(table)
    mine = meddled(
        table, lambda other: commit(other, Change(kind="OVERWRITE", deleted=[first], added=[]))
    )
    report = build(mine, {**BITMAP, **BESIDE})
    assert (report.indexed, report.failed, report.rows, report.snapshot_id) == (1, 1, 30, 4)
    (skipped,) = report.skipped
    assert skipped.reason == "changed or removed by another while it was indexed"
    assert skipped.example == f"bucket-0/{first.file.name}"
    assert index_files(mine) == [f"{second.file.name}.index"]
    assert ids(mine) == list(range(20, 50))


def test_of_two_builds_of_the_same_the_second_changes_nothing(table: PaimonTable) -> None:
    mine = meddled(table, lambda other: build(other, {**BITMAP, **BESIDE}))
    report = build(mine, {**BITMAP, **BESIDE})
    assert (report.indexed, report.failed, report.snapshot_id) == (0, 2, None)
    assert sidecars(mine) == ["-1.index", "-1.index"]
    assert index_files(mine) == sorted(entry.file.extra_files[0] for entry in entries(mine))
    assert kinds(mine) == [[("name", "bitmap")]] * 2


def test_index_files_that_two_builds_wrote_at_the_same_moment_stay(
    table: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        exists = Storage.exists
        patch.setattr(
            Storage,
            "exists",
            lambda self, path: not path.endswith(".index") and exists(self, path),
        )
        mine = meddled(table, lambda other: build(other, {**BITMAP, **BESIDE}))
        assert build(mine, {**BITMAP, **BESIDE}).failed == 2
    assert sidecars(mine) == [".index", ".index"]
    assert index_files(mine) == sorted(entry.file.extra_files[0] for entry in entries(mine))
    assert kinds(mine) == [[("name", "bitmap")]] * 2


def test_of_two_builds_of_others_the_second_removes_its_files(table: PaimonTable) -> None:
    mine = meddled(table, lambda other: build(other, {**BLOOM, **BESIDE}))
    report = build(mine, {**BITMAP, **BESIDE})
    assert (report.indexed, report.failed, report.snapshot_id) == (0, 2, None)
    assert kinds(mine) == [[("id", "bloom-filter")]] * 2
    assert index_files(mine) == sorted(entry.file.extra_files[0] for entry in entries(mine))
    assert build(mine, BITMAP).indexed == 2


def test_rows_that_came_meanwhile_stay_and_are_indexed_next_time(table: PaimonTable) -> None:
    mine = meddled(table, lambda other: append(other, range(50, 60)))
    report = build(mine, BITMAP)
    assert (report.files, report.indexed, report.snapshot_id) == (2, 2, 4)
    assert ids(mine) == list(range(60))
    assert build(PaimonTable(table.storage), BITMAP).indexed == 1


def test_a_new_schema_meanwhile_does_no_harm(table: PaimonTable) -> None:
    mine = meddled(table, lambda other: set_table_options(other, BLOOM))
    assert build(mine, BITMAP).indexed == 2
    snapshot = mine.snapshot.state.snapshot
    assert snapshot is not None
    assert snapshot.schema_id == 1


def test_other_conflicts_are_raised(table: PaimonTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConflictError("no")

    monkeypatch.setattr("alcid.tables.paimon.metadata.commit.check", refuse)
    with pytest.raises(ConflictError, match="no"):
        build(table, BITMAP)


def test_deletion_vectors_stay_as_they_are(
    table: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete(table, "name = 'n2'")
    before, left = table.snapshot.state.indexes, [number for number in range(50) if number % 5 != 2]
    snapshot = table.snapshot.state.snapshot
    build(table, {**BITMAP, **BLOOM})
    after = table.snapshot.state.snapshot
    assert snapshot is not None
    assert after is not None
    assert after.index_manifest == snapshot.index_manifest
    assert table.snapshot.state.indexes == before
    assert ids(table) == left
    assert hides(table, "name = 'n2'", monkeypatch) == []
    assert hides(table, "name = 'n3'", monkeypatch) == [
        number for number in left if number % 5 == 3
    ]
    delete(table, "name = 'n3'")
    assert ids(table) == [number for number in left if number % 5 != 3]
