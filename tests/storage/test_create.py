"""Names that several writers try to take, and files that are replaced."""

from __future__ import annotations

import ctypes
import errno
import importlib
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from alcid.errors import NameTakenError, UnsupportedError
from alcid.storage import Storage, fsspec_files, local
from tests.storage.conftest import Opener
from tests.tables.paimon.small_tables import append, create, ids


def _take(storage: Storage, name: str, who: int) -> bool:
    try:
        storage.create(name, f"written by {who}".encode())
    except NameTakenError:
        return False
    return True


def test_one_of_several_gets_a_name(storage: Storage) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(5 if storage.remote else 50):
            name = f"snapshot/snapshot-{number}"
            won = list(pool.map(lambda who, name=name: _take(storage, name, who), range(4)))
            assert sum(won) == 1
            assert storage.source(name).read(0, 12) == f"written by {won.index(True)}".encode()


# -- a disk without hard links -------------------------------------------------------------------


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_target: Path, _first: Path) -> NoReturn:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(Path, "hardlink_to", refuse)


@pytest.mark.usefixtures("no_links")
def test_one_of_several_gets_a_name_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that looks for the name first, and then takes it, does not pass this."""
    look, barrier = Path.exists, threading.Barrier(2)

    def slow(path: Path) -> bool:
        result = look(path)
        with suppress(threading.BrokenBarrierError):
            barrier.wait(1)
        return result

    monkeypatch.setattr(Path, "exists", slow)
    storage = Storage.open(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(lambda who: _take(storage, "snapshot/snapshot-1", who), range(2)))
    assert sum(won) == 1
    content = (tmp_path / "snapshot/snapshot-1").read_text()
    assert content == f"written by {won.index(True)}"
    assert [path.name for path in (tmp_path / "snapshot").iterdir()] == ["snapshot-1"]


@pytest.mark.usefixtures("no_links")
def test_a_disk_that_cannot_give_a_name_to_one_is_not_committed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path / "t")
    append(table, [1])
    monkeypatch.setattr(local, "_rename_if_free", lambda _draft, _final: False)
    before = [path.name for path in sorted((tmp_path / "t").rglob("manifest/*"))]
    with pytest.raises(UnsupportedError, match=r"snapshot-2: its disk has neither hard links nor"):
        append(table, [2])
    assert [path.name for path in sorted((tmp_path / "t").rglob("manifest/*"))] == before
    assert ids(table) == [1]
    storage = Storage.open(tmp_path)
    storage.put("unique", b"1")  # which has only one writer
    with pytest.raises(NameTakenError):
        storage.put("unique", b"2")
    assert (tmp_path / "unique").read_bytes() == b"1"


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EIO])
def test_what_a_disk_says_of_exclusive_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    class Libc:
        def renameat2(self, *_arguments: object) -> int:
            ctypes.set_errno(code)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            local._rename_if_free(tmp_path / "a", tmp_path / "b")
    else:
        assert not local._rename_if_free(tmp_path / "a", tmp_path / "b")


# -- file systems of fsspec ----------------------------------------------------------------------


def test_a_file_system_that_looks_first_is_not_committed_to() -> None:
    """Most file systems of fsspec check for the name, and then write."""
    fsspec: Any = importlib.import_module("fsspec")
    memory: Any = importlib.import_module("fsspec.implementations.memory")
    plain = {"protocol": "plain", "pipe_file": fsspec.AbstractFileSystem.pipe_file}
    kind = type("Plain", (memory.MemoryFileSystem,), plain)
    fsspec.register_implementation("plain", kind, clobber=True)
    storage = Storage.open(f"plain://{uuid.uuid4().hex}/table")
    with pytest.raises(UnsupportedError, match="plain:// cannot give a name to one of several"):
        storage.create("snapshot/snapshot-1", b"1")
    assert storage.list(hidden=True).paths.to_pylist() == []
    storage.put("unique", b"1")


def test_an_s3fs_that_writes_over_what_there_is_is_not_committed_with(
    open_s3: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fsspec_files, "_has_mode", lambda _kind: False)
    with pytest.raises(UnsupportedError, match="s3:// cannot give a name to one of several"):
        open_s3().create("snapshot/snapshot-1", b"1")


def test_a_file_is_replaced(storage: Storage) -> None:
    for text in (b"1", b"22", b"3"):
        storage.replace("snapshot/LATEST", text)
        source = storage.source("snapshot/LATEST")
        assert source.read(0, source.size) == text
    assert storage.list("snapshot", hidden=True).paths.to_pylist() == ["snapshot/LATEST"]


def test_nothing_is_left_next_to_a_replaced_file(tmp_path: Path) -> None:
    Storage.open(tmp_path).replace("LATEST", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["LATEST"]
