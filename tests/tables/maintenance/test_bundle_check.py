"""What a task of `verify` gets of bundles: its own files, and where their payloads are."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alcid
from alcid.errors import FileGoneError
from alcid.index.bundle import PayloadKind, open_bundles
from alcid.storage import Storage
from alcid.tables import bundle_folder
from alcid.tables.bundle_folder import BundleFolder, bundle_name
from alcid.tables.engine import Task, Threads, take_items
from alcid.tables.maintenance.bundle_check import StoredFiles
from alcid.tables.maintenance.parquet import verify
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.indexes import FolderIndexes
from tests.tables.folders import OPTIONS, bundle_names, fill, path_of
from tests.tables.maintenance.kit import Files, forge, problems, with_payload


def stored_of(storage: Storage) -> StoredFiles:
    bundles = FolderIndexes(storage).open(list_data_files(storage))
    names = [bundle_name(bundle) for bundle in bundles.bundles]
    return StoredFiles.of(bundles, names, np.arange(len(bundles.paths)))


def build_one_by_one(storage: Storage, count: int) -> None:
    for number in range(count):
        fill(storage, 1, first=number)
        FolderIndexes(storage).build(OPTIONS)


def test_a_part_has_the_places_of_its_own_payloads_and_its_own_bundles(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    build_one_by_one(storage, 6)
    every = stored_of(storage)
    assert [name for name, _ in every.bundles] == bundle_names(storage)
    part = pickle.loads(pickle.dumps(every.part(np.array([1, 4]))))
    assert part.paths.to_pylist() == [path_of(1), path_of(4)]
    assert [name for name, _ in part.bundles] == [bundle_names(storage)[n] for n in (1, 4)]
    folder = BundleFolder(storage, "_alcid")
    sources = [storage.source(folder.path(name), size) for name, size in part.bundles]
    bundles = folder.load().bundles
    assert {str(extents.kind) for extents in part.extents} > {"bloom-filter of 'id'"}
    for extents in part.extents:
        assert extents.rows.tolist() == [0, 1]
        for entry, number in enumerate((1, 4)):
            payload = extents.payload(entry, sources)
            assert payload.read(0, payload.size) == bundles[number].read(extents.kind, 0)
    for ours, theirs in zip(part.statistics, every.statistics, strict=True):
        assert ours.values.to_pylist() == theirs.values.take([1, 4]).to_pylist()
    assert part.schemas.to_pylist() == every.schemas.take([1, 4]).to_pylist()


def test_what_a_task_is_sent_does_not_grow_with_the_other_files(tmp_path: Path) -> None:
    sizes = []
    for count in (4, 40):
        storage = Storage.open(tmp_path / str(count))
        fill(storage, count)
        FolderIndexes(storage).build(OPTIONS)
        sizes.append(len(pickle.dumps(stored_of(storage).part(np.array([0, 1])))))
    assert abs(sizes[1] - sizes[0]) < 64  # names of other lengths


class Tasks(Threads):
    """Two tasks, each of which gets its own items pickled."""

    def map(
        self,
        function: Any,
        items: Any,
        sizes: Any,
        report: Any = None,  # noqa: ARG002
    ) -> list[Any]:
        results = []
        for positions in np.array_split(np.arange(len(sizes)), 2):
            sent = pickle.dumps((function, take_items(items, positions)))
            called, own = pickle.loads(sent)
            results.append(called(Task(own)))
        return results


def test_tasks_open_no_bundle_and_find_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    build_one_by_one(storage, 4)
    kind = PayloadKind.index("id", "bloom-filter")

    def swap(files: Files) -> None:
        files[path_of(1)] = with_payload(files[path_of(1)], kind, files[path_of(2)].payloads[kind])

    forge(storage, OPTIONS, swap)
    expected = alcid.parquet(tmp_path).verify(progress=False)
    assert problems(expected) == [(path_of(1), "bloom-filter of 'id'")]
    opened: list[int] = []

    def counting(sources: Any, **options: Any) -> Any:
        sources = list(sources)
        opened.append(len(sources))
        return open_bundles(sources, **options)

    monkeypatch.setattr(bundle_folder, "open_bundles", counting)
    report = verify(storage, BundleFolder(storage, "_alcid"), Tasks())
    assert problems(report) == problems(expected)
    assert (report.checked, report.indexes) == (expected.checked, expected.indexes)
    assert len(opened) == 1


def test_a_bundle_that_vanishes_before_its_task_lets_verify_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    build_one_by_one(storage, 2)
    (first, _) = bundle_names(storage)
    real, left = StoredFiles.of, [1]

    def vanishing(*arguments: Any) -> StoredFiles:
        stored = real(*arguments)
        if left:
            left.pop()
            storage.delete([f"_alcid/{first}"])
        return stored

    monkeypatch.setattr(StoredFiles, "of", vanishing)
    report = alcid.parquet(tmp_path).verify(progress=False)
    assert (report.ok, report.checked, report.changed, report.unindexed) == (True, 1, 0, 1)


def test_bundles_that_vanish_again_and_again_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    build_one_by_one(storage, 2)
    real = StoredFiles.of

    def gone(*arguments: Any) -> StoredFiles:
        stored = real(*arguments)
        return replace(stored, bundles=tuple((f"x{name}", size) for name, size in stored.bundles))

    monkeypatch.setattr(StoredFiles, "of", gone)
    with pytest.raises(FileGoneError, match=r"_alcid/x.*\.puffin"):
        alcid.parquet(tmp_path).verify(progress=False)
