"""Indexes of a folder: built if they are missing, kept while they are fresh, dropped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import OptionError
from alcid.errors import StorageError
from alcid.formats.source import FileSource, Source
from alcid.index.build import IndexedFile, index_file
from alcid.index.bundle import Bundle, PayloadKind
from alcid.index.bundle.format import PAGES
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.storage.local import LocalFiles
from alcid.tables import build
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.indexes import FolderIndexes
from alcid.tables.reports import IndexInfo, Skipped
from tests.tables.folders import (
    KINDS,
    OPTIONS,
    bundle_names,
    check_indexes,
    fill,
    opened,
    path_of,
    put_table,
    rows_of,
    states,
)


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return Storage.open(tmp_path / "table")


def test_the_indexes_are_those_that_file_index_builds(storage: Storage) -> None:
    tables = fill(storage, 5)
    indexes = FolderIndexes(storage)
    calls: list[tuple[int, int, int]] = []
    report = indexes.build(OPTIONS, progress=lambda *state: calls.append(state))
    assert (report.files, report.indexed, report.fresh, report.failed) == (5, 5, 0, 0)
    assert (report.rows, report.bundles, report.skipped) == (300, 1, ())
    assert calls == [(done, 5, 60 * done) for done in range(1, 6)]
    (name,) = bundle_names(storage)
    assert storage.stat(f"_alcid/{name}").size == report.bytes_written
    check_indexes(opened(indexes, storage), tables)
    again = indexes.build(OPTIONS)
    assert (again.indexed, again.fresh, again.bundles, again.bytes_written) == (0, 5, 0, 0)
    assert bundle_names(storage) == [name]


def test_a_changed_file_is_stale_until_it_is_built_again(storage: Storage) -> None:
    tables = fill(storage, 3)
    indexes = FolderIndexes(storage)
    indexes.build(OPTIONS)
    put_table(storage, path_of(1), rows_of(77, 61))
    tables[path_of(1)] = rows_of(77, 61)
    for kind in KINDS:
        assert states(opened(indexes, storage), kind) == ["FRESH", "STALE", "FRESH"]
    report = indexes.build(OPTIONS)
    assert (report.indexed, report.fresh, report.rows) == (1, 2, 61)
    check_indexes(opened(indexes, storage), tables)
    assert indexes.indexes()[0].fresh == 3


def test_a_new_file_is_built_and_a_removed_one_forgotten(local: Storage) -> None:
    tables = fill(local, 3)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    tables |= fill(local, 2, first=3)
    local.delete([path_of(0)])
    del tables[path_of(0)]
    report = indexes.build(OPTIONS)
    assert (report.files, report.indexed, report.fresh) == (4, 2, 2)
    check_indexes(opened(indexes, local), tables)


def test_a_further_index_is_added_and_what_there_was_stays(local: Storage) -> None:
    tables = fill(local, 3)
    indexes = FolderIndexes(local)
    first = {"file-index.range-bitmap.columns": "score"}
    indexes.build(first)
    (old,) = bundle_names(local)
    both = first | {"file-index.bsi.columns": "id"}
    report = indexes.build(both)
    assert (report.indexed, report.fresh) == (3, 0)
    bundles = opened(indexes, local)
    check_indexes(bundles, tables, both)
    new = bundles.bundles[1]
    assert [bundle.name.endswith(old) for bundle in bundles.bundles] == [True, False]
    assert new.kinds == (PayloadKind.index("id", "bsi"),)  # and no pages again
    # Exact statistics of the first build stay, though the second read only the footer.
    (score,) = bundles.statistics("score")
    assert score.values.field("has_nan").to_pylist() == [True] * 3
    (ids,) = bundles.statistics("id")
    assert ids.values.field("max").to_pylist() == [
        max(t["id"].to_pylist()) for t in tables.values()
    ]
    pages = {kind.column for kind in bundles.kinds if kind.type == PAGES}
    assert pages == set(rows_of(0).column_names)


def test_what_cannot_be_built_is_said_and_not_tried_again(tmp_path: Path, local: Storage) -> None:
    fill(local, 2)
    put_table(local, "x.parquet", pa.table({"id": ["text"]}))
    options = {
        "file-index.bitmap.columns": "id,absent",
        "file-index.bsi.columns": "name,id",
        "file-index.range-bitmap.columns": "tags[color]",
    }
    expected = (
        Skipped("bitmap of 'absent'", "column absent: not in the table", 3, path_of(0)),
        Skipped("bsi of 'id'", "column id: bsi does not take STRING; use", 1, "x.parquet"),
        Skipped("bsi of 'name'", "column name: bsi does not take STRING; use", 2, path_of(0)),
        Skipped("bsi of 'name'", "column name: not in the table", 1, "x.parquet"),
        Skipped("range-bitmap of 'tags[color]'", "column tags: not in the table", 1, "x.parquet"),
    )
    indexes = FolderIndexes(local, index_storage=Storage.open(tmp_path / "elsewhere"))
    for run in range(2):
        before = local.traffic
        report = indexes.build(options)
        assert (report.indexed, report.fresh) == ((3, 0) if run == 0 else (0, 3))
        if run:
            assert (local.traffic - before).reads == 0
        assert [(s.what, s.files, s.example) for s in report.skipped] == [
            (s.what, s.files, s.example) for s in expected
        ]
        for skip, expectation in zip(report.skipped, expected, strict=True):
            assert skip.reason.startswith(expectation.reason)
    assert len(bundle_names(Storage.open(tmp_path / "elsewhere"), "")) == 1


def test_an_index_that_a_value_forbids_is_tried_again_but_nothing_is_written(
    local: Storage,
) -> None:
    put_table(local, "a.parquet", pa.table({"id": [-(2**63), 5]}))
    indexes = FolderIndexes(local)
    options = {"file-index.bsi.columns": "id"}
    first, second = indexes.build(options), indexes.build(options)
    assert (first.indexed, first.bundles, second.indexed, second.bundles) == (1, 1, 0, 0)
    assert second.fresh == 1
    assert first.skipped == second.skipped
    assert "-9223372036854775808" in first.skipped[0].reason


def test_columns_of_other_spelling_are_found_in_each_file(local: Storage) -> None:
    put_table(local, "a.parquet", pa.table({"ID": [1, 2]}))
    put_table(local, "b.parquet", pa.table({"id": [3, 4]}))
    indexes = FolderIndexes(local)
    assert indexes.build({"file-index.bitmap.columns": "Id"}).indexed == 2
    assert indexes.build({"file-index.bitmap.columns": "iD"}).fresh == 2
    bundles = opened(indexes, local)
    assert states(bundles, PayloadKind.index("ID", "bitmap")) == ["FRESH", "ABSENT"]
    assert states(bundles, PayloadKind.index("id", "bitmap")) == ["ABSENT", "FRESH"]


def test_files_that_cannot_be_read_are_skipped_with_the_reason(local: Storage) -> None:
    tables = fill(local, 2)
    local.put("bad.parquet", b"PAR1 and then nothing")
    local.put("short.parquet", b"x")
    indexes = FolderIndexes(local)
    report = indexes.build(OPTIONS)
    assert (report.files, report.indexed, report.failed) == (4, 2, 2)
    assert [(skip.what, skip.files, skip.example) for skip in report.skipped] == [
        ("", 1, "bad.parquet"),
        ("", 1, "short.parquet"),
    ]
    assert (
        report.skipped[1].reason
        == f"{local.location}/short.parquet: no Parquet file: found 1 bytes"
    )
    local.delete(["bad.parquet", "short.parquet"])
    check_indexes(opened(indexes, local), tables)


def test_files_that_change_while_a_build_runs_get_no_entry(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    tables = fill(local, 9)

    def interfere(done: int, *_: int) -> None:
        if done == 1:
            local.delete([path_of(7)])
            put_table(local, path_of(8), rows_of(80))

    indexes = FolderIndexes(local)
    report = indexes.build(OPTIONS, progress=interfere)
    assert (report.indexed, report.failed) == (7, 2)
    assert [(skip.reason, skip.example) for skip in report.skipped] == [
        (f"{local.location}/{path_of(n)}: changed or removed while it was read", path_of(n))
        for n in (7, 8)
    ]
    tables[path_of(8)] = rows_of(80)
    del tables[path_of(7)]
    assert states(opened(indexes, local), KINDS[0]) == ["FRESH"] * 7 + ["ABSENT"]
    indexes.build(OPTIONS)
    check_indexes(opened(indexes, local), tables)


def test_a_file_that_changes_after_it_was_read_gets_no_entry(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(local, 1)

    def and_then_changed(source: Source, specs: Sequence[IndexSpec], **options: Any) -> IndexedFile:
        indexed = index_file(source, specs, **options)
        put_table(local, path_of(0), rows_of(50))
        return indexed

    indexes = FolderIndexes(local)
    with monkeypatch.context() as patch:
        patch.setattr(build, "index_file", and_then_changed)
        report = indexes.build(OPTIONS)
    assert (report.indexed, report.failed, report.bundles) == (0, 1, 0)
    indexes.build(OPTIONS)
    check_indexes(opened(indexes, local), {path_of(0): rows_of(50)})


def test_a_storage_that_fails_ends_the_build_and_what_was_published_stays(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(build, "BATCH_BYTES", 1)
    tables = fill(local, 3)

    def failing(source: Source, specs: Sequence[IndexSpec], **options: Any) -> IndexedFile:
        if options["path"] == path_of(2):
            raise StorageError("could not be read: timed out", file=source.name)
        return index_file(source, specs, **options)

    indexes = FolderIndexes(local)
    with monkeypatch.context() as patch:
        patch.setattr(build, "index_file", failing)
        with pytest.raises(StorageError, match=r"part-2\.parquet: could not be read: timed out"):
            indexes.build(OPTIONS)
    assert states(opened(indexes, local), KINDS[0]) == ["FRESH", "FRESH", "ABSENT"]
    assert indexes.build(OPTIONS).fresh == 2
    check_indexes(opened(indexes, local), tables)


KILLED = """
import os, sys
from alcid.storage import Storage
from alcid.tables import build
from alcid.tables.parquet.indexes import FolderIndexes
from tests.tables.folders import OPTIONS

build.BATCH_BYTES = 1  # a bundle for each file

def progress(done, to_do, rows):
    if done == 4:
        os._exit(9)

FolderIndexes(Storage.open(sys.argv[1])).build(OPTIONS, progress=progress)
"""


def test_a_build_that_is_killed_leaves_what_it_has_done(local: Storage) -> None:
    tables = fill(local, 9)
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", KILLED, local.location]
    assert subprocess.run(command, cwd=root, check=False).returncode == 9
    indexes = FolderIndexes(local)
    assert states(opened(indexes, local), KINDS[0]) == ["FRESH"] * 4 + ["ABSENT"] * 5
    report = indexes.build(OPTIONS)
    assert (report.indexed, report.fresh) == (5, 4)
    check_indexes(opened(indexes, local), tables)


def test_a_bundle_is_published_after_some_time_though_it_is_small(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(local, 3)
    monkeypatch.setattr(build, "BATCH_SECONDS", 0.0)
    assert FolderIndexes(local).build(OPTIONS).bundles == 3


def test_two_builders_at_the_same_time_do_not_disturb_each_other(storage: Storage) -> None:
    tables = fill(storage, 4)
    barrier = threading.Barrier(2)
    failures: list[BaseException] = []

    def build() -> None:
        try:
            FolderIndexes(storage).build(OPTIONS, progress=lambda done, *_: wait(done))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    def wait(done: int) -> None:
        if done == 1:
            barrier.wait(60)

    builders = [threading.Thread(target=build) for _ in range(2)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert failures == []
    assert len(bundle_names(storage)) == 2
    indexes = FolderIndexes(storage)
    check_indexes(opened(indexes, storage), tables)
    assert indexes.build(OPTIONS).fresh == 4


def test_with_an_index_path_nothing_is_written_next_to_the_data(
    tmp_path: Path, local: Storage
) -> None:
    tables = fill(local, 2)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "table").rglob("*")}
    elsewhere = Storage.open(tmp_path / "indexes" / "of-table")
    indexes = FolderIndexes(local, index_storage=elsewhere)
    indexes.build(OPTIONS)
    indexes.build(OPTIONS, rebuild=True)
    check_indexes(opened(indexes, local), tables)
    assert indexes.drop(types=["bitmap"]) == 2
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "table").rglob("*")}
    assert after == before
    assert opened(FolderIndexes(local), local).bundles == ()
    assert len(bundle_names(elsewhere, "")) == 1


def test_a_rebuild_takes_the_new_options_and_replaces_the_old_bundles(local: Storage) -> None:
    tables = fill(local, 3)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (old,) = bundle_names(local)
    options = OPTIONS | {"file-index.bloom-filter.id.items": 5000}
    assert indexes.build(options).fresh == 3
    check_indexes(opened(indexes, local), tables)
    report = indexes.build(options, rebuild=True)
    assert (report.indexed, report.fresh, report.bundles) == (3, 0, 1)
    bundles = opened(indexes, local)
    check_indexes(bundles, tables, options)
    new, mark = bundles.bundles
    assert (new.replaces, mark.replaces, len(mark.files)) == ((), (old,), 0)
    names = [bundle.name.rpartition("/")[2] for bundle in (new, mark)]
    assert sorted([old, *names]) == bundle_names(local)


def test_a_rebuild_of_some_indexes_keeps_the_others(local: Storage) -> None:
    tables = fill(local, 3)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    indexes.build({"file-index.bitmap.columns": "class_id"}, rebuild=True)
    bundles = opened(indexes, local)
    assert [bundle.replaces for bundle in bundles.bundles] == [(), ()]
    check_indexes(bundles, tables)


def test_dropped_indexes_are_gone_and_the_others_stay(storage: Storage) -> None:
    tables = fill(storage, 3)
    indexes = FolderIndexes(storage)
    indexes.build(OPTIONS)
    statistics = opened(indexes, storage).statistics("id")[0].values
    put_table(storage, path_of(0), rows_of(90))
    tables[path_of(0)] = rows_of(90)
    assert indexes.drop(columns=["nothing"]) == 0
    assert indexes.drop(columns=["TAGS"]) == 2
    assert [info.column for info in indexes.indexes()] == ["class_id", "id"]
    assert len(bundle_names(storage)) == 1
    assert opened(indexes, storage).statistics("id")[0].values[1:] == statistics[1:]
    left = {key: OPTIONS[key] for key in OPTIONS if "bitmap" not in key}
    assert indexes.drop(types=["bitmap"]) == 2
    indexes.build(left)
    check_indexes(opened(indexes, storage), tables, left)
    assert indexes.drop(["id"], ["bitmap"]) == 0
    assert indexes.drop(["id"], ["bloom-filter"]) == 3
    assert bundle_names(storage) == []
    assert indexes.indexes() == []
    assert indexes.drop() == 0


def test_an_unknown_type_is_no_index_to_drop(local: Storage) -> None:
    with pytest.raises(OptionError, match="no such index: btree"):
        FolderIndexes(local).drop(types=["btree"])


def test_removing_the_folder_of_the_indexes_is_safe(local: Storage) -> None:
    tables = fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    local.delete(f"_alcid/{name}" for name in bundle_names(local))
    assert opened(indexes, local).bundles == ()
    indexes.build(OPTIONS)
    check_indexes(opened(indexes, local), tables)


def test_indexes_says_what_there_is(local: Storage) -> None:
    fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    put_table(local, path_of(0), rows_of(5))
    fill(local, 1, first=2)
    bundles = opened(indexes, local)
    expected = []
    for kind in KINDS:
        payload = bundles.coverage(kind).payload(1)
        assert payload is not None
        expected.append(IndexInfo(kind.column, kind.index_type, 1, 1, 1, 0, payload.size, 60))
    assert indexes.indexes() == indexes.indexes(list_data_files(local)) == expected
    assert (
        str(expected[0])
        == f"bitmap of 'class_id': 1 file fresh, 1 stale, 1 absent, {expected[0].bytes} B"
    )
    assert json.loads(json.dumps(expected[0].to_dict()))["stale"] == 1


def test_a_report_is_text_and_json(local: Storage) -> None:
    fill(local, 1)
    local.put("bad.parquet", b"PAR1 and then nothing")
    report = FolderIndexes(local).build({"file-index.bsi.columns": "name"})
    first, second, third = str(report).splitlines()
    assert first.startswith("indexed 1 of 2 files (60 rows) in ")
    assert first.endswith("in 1 bundle; 1 failed")
    assert second.startswith("skipped 1 file: ")
    assert third.startswith(
        "skipped bsi of 'name' in 1 file: column name: bsi does not take STRING"
    )
    assert json.loads(json.dumps(report.to_dict()))["skipped"][1]["what"] == "bsi of 'name'"


def test_options_are_checked_before_anything_is_read(local: Storage) -> None:
    fill(local, 1)
    before = local.traffic
    with pytest.raises(OptionError):
        FolderIndexes(local).build({"file-index.btree.columns": "id"})
    assert (local.traffic - before).lists == 0


def test_an_empty_folder_has_nothing_to_build(local: Storage) -> None:
    report = FolderIndexes(local).build(OPTIONS)
    assert (report.files, report.indexed, report.bundles) == (0, 0, 0)
    assert str(report).endswith("0 B in 0 bundles")
    assert bundle_names(local) == []


def test_the_schema_of_each_file_is_in_the_bundle_once(tmp_path: Path, local: Storage) -> None:
    fill(local, 3)
    put_table(local, "x.parquet", pa.table({"id": ["text"]}))
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    schemas = opened(indexes, local).schemas
    assert schemas.null_count == 0
    assert schemas.indices.to_pylist() == [0, 0, 0, 1]
    (name,) = bundle_names(local)
    bundle = Bundle.open(FileSource(tmp_path / "table" / "_alcid" / name))
    assert len(bundle.files.schemas.dictionary) == 2
    names = pa.ipc.read_schema(pa.py_buffer(schemas[0].as_py())).names
    assert names == pq.read_schema(tmp_path / "table" / path_of(0)).names


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(30, "read-only")])
def test_a_folder_that_may_not_be_written_is_answered_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "a.parquet")
    put = LocalFiles.put

    def refuse(files: LocalFiles, path: str, data: bytes, *, exclusive: bool = False) -> None:
        if path.startswith("_alcid/"):
            raise error
        put(files, path, data, exclusive=exclusive)

    monkeypatch.setattr(LocalFiles, "put", refuse)
    table = alcid.parquet(tmp_path)
    hint = r"could not be written: .*; where nothing may be written beside the data.*--index-path"
    with pytest.raises(StorageError, match=hint):
        table.build_indexes({"file-index.bitmap.columns": "id"})
    with pytest.raises(StorageError, match=hint):
        table.compute_stats()
    elsewhere = alcid.parquet(tmp_path, index_path=tmp_path.parent / f"{tmp_path.name}-indexes")
    assert elsewhere.build_indexes({"file-index.bitmap.columns": "id"}).indexed == 1
