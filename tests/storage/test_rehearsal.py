"""A rehearsal sees its own changes; the files stay as they are."""

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
    rehearsal = real.rehearsal()
    rehearsal.put("inner/d", b"0123456789")
    rehearsal.create("_hidden/e", b"e")
    assert paths(rehearsal) == ["a", "inner/b", "inner/d"]
    assert paths(rehearsal, "inner") == ["inner/b", "inner/d"]
    assert paths(rehearsal, hidden=True) == ["_hidden/c", "_hidden/e", "a", "inner/b", "inner/d"]
    assert rehearsal.source("inner/d").read_ranges([(8, 2), (0, 3)]) == [b"89", b"012"]
    assert rehearsal.source("a").read(0, 1) == b"a"
    assert paths(real, hidden=True) == ["_hidden/c", "a", "inner/b"]
    assert paths(real.rehearsal()) == ["a", "inner/b"]


def test_names_are_taken_by_what_is_there_and_what_was_written(real: Storage) -> None:
    rehearsal = real.rehearsal()
    rehearsal.put("a", b"a")  # the same bytes: an answer that got lost
    rehearsal.put("new", b"1")
    for path in ("a", "new"):
        with pytest.raises(NameTakenError):
            rehearsal.put(path, b"other")
    rehearsal.replace("a", b"other")
    assert rehearsal.source("a").read(0, 5) == b"other"
    assert real.source("a").read(0, 1) == b"a"


def test_what_is_removed_is_gone_there_only(real: Storage) -> None:
    rehearsal = real.rehearsal()
    rehearsal.delete(["a"])
    rehearsal.remove_folder("inner")
    assert paths(rehearsal, hidden=True) == ["_hidden/c"]
    with pytest.raises(FileGoneError):
        rehearsal.stat("a")
    with pytest.raises(FileGoneError):
        rehearsal.source("a").read(0, 1)
    rehearsal.put("a", b"again")
    assert rehearsal.source("a").read(0, 5) == b"again"
    assert paths(real) == ["a", "inner/b"]


def test_files_are_moved(real: Storage) -> None:
    rehearsal = real.rehearsal()
    rehearsal.move("a", "inner/moved")
    assert paths(rehearsal) == ["inner/b", "inner/moved"]
    assert rehearsal.source("inner/moved").read(0, 1) == b"a"
    with pytest.raises(NameTakenError):
        rehearsal.move("inner/moved", "inner/b")
    assert paths(real) == ["a", "inner/b"]


def test_a_file_that_was_replaced_since_its_listing_is_gone(real: Storage) -> None:
    rehearsal = real.rehearsal()
    rehearsal.put("d", b"1")
    known = rehearsal.stat("d")
    rehearsal.replace("d", b"2")
    with pytest.raises(FileGoneError):
        rehearsal.source("d", known.size, known.version).read(0, 1)


def test_it_never_leaves_its_process(real: Storage) -> None:
    with pytest.raises(UnsupportedError, match="a rehearsal stays in its process"):
        pickle.dumps(real.rehearsal())
    assert pickle.loads(pickle.dumps(real)).location == real.location
