"""Moving files: the bytes stay, the old name goes, and no file is ever replaced."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from alcid.errors import (
    FileGoneError,
    NameTakenError,
    OptionError,
    StorageError,
)
from alcid.storage import Storage
from tests.storage.conftest import Opener
from tests.storage.fault_proxy import Fault, FaultProxy

ODD = "q=a::b %2F/what?#.parquet"


def test_a_file_has_its_new_name_and_no_other(storage: Storage) -> None:
    storage.put("_alcid/staging/job/1.parquet", b"content")
    storage.move("_alcid/staging/job/1.parquet", ODD)
    assert storage.list(hidden=True).paths.to_pylist() == [ODD]
    assert storage.source(ODD).read(0, 7) == b"content"
    size, version = storage.stat(ODD)
    listing = storage.list()
    assert (size, version) == (listing.sizes[0], listing.versions[0].as_py())


def test_a_taken_name_is_refused_and_both_files_stay(storage: Storage) -> None:
    storage.put("a", b"one")
    storage.put("b", b"other")
    with pytest.raises(NameTakenError, match="b: exists already"):
        storage.move("a", "b")
    assert [storage.source(name).read(0, 3) for name in ("a", "b")] == [b"one", b"oth"]


def test_a_file_that_is_gone_is_an_error(storage: Storage) -> None:
    with pytest.raises(FileGoneError, match="a: could not be moved"):
        storage.move("a", "b")
    assert storage.list().paths.to_pylist() == []


def test_a_folder_is_removed_with_all_in_it_and_nothing_else(storage: Storage) -> None:
    for name in ("s/job*/1", "s/job*/.hidden", "s/job*/inner/2", "s/job*2/3", "s/job1/4"):
        storage.put(name, b"x")
    storage.remove_folder("s/job*")
    storage.remove_folder("s/never")
    assert storage.list(hidden=True).paths.to_pylist() == ["s/job*2/3", "s/job1/4"]
    with pytest.raises(OptionError):
        storage.remove_folder("")


# -- on a disk -----------------------------------------------------------------------------------


def test_a_moved_file_keeps_its_version(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"content")
    os.utime(tmp_path / "a", ns=(1, 123_456_789))
    before = storage.stat("a")
    storage.move("a", "folder/b")
    assert storage.stat("folder/b") == before == (7, "123456789")


def test_a_move_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"content")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    storage.move("a", "b")
    assert storage.list().paths.to_pylist() == ["b"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EXDEV])
def test_moves_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"content")
    storage.put("taken", b"other")
    real = Path.hardlink_to

    def refuse(target: Path, first: Path) -> None:
        if code == errno.EXDEV and first.name.endswith(".tmp"):  # within one disk
            return real(target, first)
        if code == errno.EXDEV and target.exists():
            raise FileExistsError(target)
        raise OSError(code, "no links")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(NameTakenError):
        storage.move("a", "taken")
    storage.move("a", "b")
    assert storage.list(hidden=True).paths.to_pylist() == ["b", "taken"]
    assert (tmp_path / "b").read_bytes() == b"content"


def test_other_errors_of_a_disk_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"content")

    def full(_target: Path, _first: Path) -> NoReturn:
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(Path, "hardlink_to", full)
    with pytest.raises(StorageError, match=r"could not be moved.*disk full"):
        storage.move("a", "b")
    assert storage.list(hidden=True).paths.to_pylist() == ["a"]


def test_a_folder_is_no_file_and_is_not_moved(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("folder/a", b"content")
    with pytest.raises(StorageError, match="not a file of bytes"):
        storage.move("folder", "b")


def test_no_folder_is_left(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("s/job/inner/a", b"x")
    storage.remove_folder("s/job")
    assert [path.name for path in tmp_path.rglob("*")] == ["s"]


# -- on S3 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [Fault("status", 503), Fault("reset"), Fault("lost")], ids=lambda fault: fault.kind
)
def test_what_fails_once_is_tried_again(open_s3: Opener, proxy: FaultProxy, fault: Fault) -> None:
    storage = open_s3()
    storage.put("a", b"content")
    for method in ("PUT", "DELETE"):
        proxy.fail(fault, method=method)
    storage.move("a", "folder/b")
    assert storage.list(hidden=True).paths.to_pylist() == ["folder/b"]
    assert storage.source("folder/b").read(0, 7) == b"content"
    assert fault.kind != "status" or storage.traffic.retries == 2


def test_the_bytes_of_a_copy_do_not_come_here(s3: Storage, proxy: FaultProxy) -> None:
    s3.put("a", b"content")
    with proxy.watch() as seen:
        s3.move("a", "b")
    assert [
        request for request in seen if request.startswith("GET") and "list-type" not in request
    ] == []
    assert (
        len(
            [
                request
                for request in seen
                if request.startswith("PUT") and request.endswith("/table/b")
            ]
        )
        == 1
    )
    assert s3.list().paths.to_pylist() == ["b"]
