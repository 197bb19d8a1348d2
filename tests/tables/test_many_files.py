"""Many files listed and removed, in this process and by tasks."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid.storage import Storage
from alcid.tables import many_files
from alcid.tables.engine import Task, Threads, take_items
from alcid.tables.many_files import list_all, remove_files


class TasksOfThree(Threads):
    """An engine that has Spark's tasks, each of three items, without Spark."""

    has_spark = True

    def __init__(self) -> None:
        super().__init__()
        self.tasks = 0

    def map(self, function: Any, items: Any, sizes: Any, report: Any = None) -> Any:
        del report
        results = []
        for start in range(0, len(sizes), 3):
            positions = pa.array(range(start, min(start + 3, len(sizes)))).to_numpy()
            task = pickle.loads(pickle.dumps((function, take_items(items, positions))))
            results.append(task[0](Task(task[1])))
            self.tasks += 1
        return results


def fill(storage: Storage) -> list[str]:
    """Files at every depth, hidden ones too."""
    names = ["a.parquet", ".hidden", "_alcid/x.puffin", "é/ü.parquet", "b/.x.tmp", "b-c/y"]
    names += [f"dt={day}/bucket-{bucket}/data" for day in range(6) for bucket in range(3)]
    for name in names:
        storage.put(name, name.encode())
    return sorted(names)


@pytest.mark.parametrize("threshold", [1, 4, 10, 1000])
def test_a_listing_by_tasks_is_that_of_the_storage(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, threshold: int
) -> None:
    names = fill(storage)
    monkeypatch.setattr(many_files, "LISTED_BY_TASKS", threshold)
    engine = TasksOfThree()
    expected, listing = storage.list(hidden=True), list_all(storage, engine)
    assert listing.paths.to_pylist() == expected.paths.to_pylist() == names
    assert listing.sizes.tolist() == expected.sizes.tolist()
    assert listing.versions.to_pylist() == expected.versions.to_pylist()
    assert (engine.tasks > 0) == (threshold < 1000)
    assert list_all(storage, Threads()).paths.equals(expected.paths)


def test_an_empty_storage_has_no_files(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "none")
    assert len(list_all(storage, TasksOfThree())) == 0
    assert len(list_all(storage.dry_run(), TasksOfThree())) == 0


def test_links_are_followed_but_not_to_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_bytes(b"x")
    table = tmp_path / "t"
    (table / "a/b").mkdir(parents=True)
    (table / "a/b/file").write_bytes(b"y")
    (table / "a/up").symlink_to(table)
    (table / "a/self").symlink_to(table / "a")
    (table / "a/out").symlink_to(tmp_path / "elsewhere")
    (table / "a/gone").symlink_to(tmp_path / "nowhere")
    storage = Storage.open(table)
    paths = storage.list(hidden=True).paths.to_pylist()
    assert paths == ["a/b/file", "a/out/file"]
    assert storage.list("a", hidden=True).paths.to_pylist() == paths
    for threshold in (1, 2, 100):
        monkeypatch.setattr(many_files, "LISTED_BY_TASKS", threshold)
        assert list_all(storage, TasksOfThree()).paths.to_pylist() == paths


def test_tasks_remove_what_threads_remove(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fill(storage)
    monkeypatch.setattr(many_files, "REMOVED_AT_ONCE", 2)
    engine = TasksOfThree()
    remove_files(storage, pa.array(names[:7]), engine)
    assert engine.tasks == 0  # too few
    assert storage.list(hidden=True).paths.to_pylist() == names[7:]
    monkeypatch.setattr(many_files, "REMOVED_BY_TASKS", 5)
    remove_files(storage, pa.array([*names[5:14], "not/there"]), engine)
    assert engine.tasks == 4
    assert storage.list(hidden=True).paths.to_pylist() == names[14:]
    remove_files(storage, pa.array(names[14:]), Threads())
    remove_files(storage, pa.array([], pa.string()), Threads())
    assert len(storage.list(hidden=True)) == 0


def test_a_file_that_cannot_be_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    names = fill(storage)

    def refuse(path: Any, **_: Any) -> None:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    monkeypatch.setattr(os, "remove", refuse)
    with pytest.raises(Exception, match="could not be removed"):
        remove_files(storage, pa.array(names), Threads())
