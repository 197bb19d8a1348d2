"""A dry run sees its own changes; the files do not change."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from alcid.errors import FileGoneError, NameTakenError, UnsupportedError
from alcid.storage import Storage


@pytest.fixture
def real(tmp_path: Path) -> Storage:
    storage = Storage.open(tmp_path / "table")
    for path in ("a", "inner/b", "_hidden/c"):
        storage.put(path, path.encode())
    return storage


def paths(storage: Storage, under: str = "", *, hidden: bool = False) -> list[str]:
    return sorted(storage.list(under, hidden=hidden).paths.to_pylist())


def test_what_is_written_is_seen_there_and_nowhere_else(real: Storage) -> None:
    dry_run = real.dry_run()
    dry_run.put("inner/d", b"0123456789")
    dry_run.create("_hidden/e", b"e")
    assert paths(dry_run) == ["a", "inner/b", "inner/d"]
    assert paths(dry_run, "inner") == ["inner/b", "inner/d"]
    assert paths(dry_run, hidden=True) == ["_hidden/c", "_hidden/e", "a", "inner/b", "inner/d"]
    assert dry_run.source("inner/d").read_ranges([(8, 2), (0, 3)]) == [b"89", b"012"]
    assert dry_run.source("a").read(0, 1) == b"a"
    assert paths(real, hidden=True) == ["_hidden/c", "a", "inner/b"]
    assert paths(real.dry_run()) == ["a", "inner/b"]


def test_names_are_taken_by_what_is_there_and_what_was_written(real: Storage) -> None:
    dry_run = real.dry_run()
    dry_run.put("a", b"a")  # the same bytes: an answer that was lost
    dry_run.put("new", b"1")
    for path in ("a", "new"):
        with pytest.raises(NameTakenError):
            dry_run.put(path, b"other")
    dry_run.replace("a", b"other")
    assert dry_run.source("a").read(0, 5) == b"other"
    assert real.source("a").read(0, 1) == b"a"


def test_what_is_removed_is_gone_there_only(real: Storage) -> None:
    dry_run = real.dry_run()
    dry_run.delete(["a"])
    dry_run.remove_folder("inner")
    assert paths(dry_run, hidden=True) == ["_hidden/c"]
    with pytest.raises(FileGoneError):
        dry_run.stat("a")
    with pytest.raises(FileGoneError):
        dry_run.source("a").read(0, 1)
    dry_run.put("a", b"again")
    assert dry_run.source("a").read(0, 5) == b"again"
    assert paths(real) == ["a", "inner/b"]


def test_files_are_moved(real: Storage) -> None:
    dry_run = real.dry_run()
    dry_run.move("a", "inner/moved")
    assert paths(dry_run) == ["inner/b", "inner/moved"]
    assert dry_run.source("inner/moved").read(0, 1) == b"a"
    with pytest.raises(NameTakenError):
        dry_run.move("inner/moved", "inner/b")
    assert paths(real) == ["a", "inner/b"]


def test_a_file_that_was_replaced_since_its_listing_is_gone(real: Storage) -> None:
    dry_run = real.dry_run()
    dry_run.put("d", b"1")
    info = dry_run.stat("d")
    dry_run.replace("d", b"2")
    with pytest.raises(FileGoneError):
        dry_run.source("d", info.size, info.version).read(0, 1)


def test_it_never_leaves_its_process(real: Storage) -> None:
    with pytest.raises(UnsupportedError, match="a dry run stays in its process"):
        pickle.dumps(real.dry_run())
    assert pickle.loads(pickle.dumps(real)).location == real.location
