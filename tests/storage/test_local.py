"""Files on a disk: names that appear complete, links, and files of other programs."""

from __future__ import annotations

import multiprocessing
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from alcid.errors import FileGoneError, NameTakenError, StorageError
from alcid.formats.source import Range
from alcid.storage import Storage
from alcid.storage.local import LocalFiles


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage.open("table")
    monkeypatch.chdir("/")
    storage.put("a", b"x")
    assert (tmp_path / "table" / "a").read_bytes() == b"x"
    assert storage.location == f"{tmp_path}/table"


def test_a_file_that_was_replaced_since_its_listing_is_gone(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"0123")
    listing = storage.list()
    source = storage.source("a", 4, listing.versions[0].as_py())
    assert source.read(0, 4) == b"0123"
    (tmp_path / "a").write_bytes(b"4567")
    os.utime(tmp_path / "a", ns=(1, 1))
    with pytest.raises(
        FileGoneError, match="replaced since it was listed: size 4, version 1; expected 4, "
    ):
        source.read(0, 4)
    with pytest.raises(FileGoneError, match="size 4, version 1; expected 5, None"):
        storage.source("a", 5).read(0, 4)


def test_a_round_opens_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage.open(tmp_path)
    sources = []
    for name in "ab":
        storage.put(name, bytes(range(100)))
        sources.append(storage.source(name, 100))
    opened: list[str] = []
    real_open = os.open

    def counting_open(path: str, flags: int) -> int:
        opened.append(Path(path).name)
        return real_open(path, flags)

    monkeypatch.setattr(os, "open", counting_open)
    ranges = [Range(sources[number % 2], 5 * number, 3) for number in range(12)]
    assert storage.read_ranges(ranges) == [
        bytes(range(5 * number, 5 * number + 3)) for number in range(12)
    ]
    assert opened == ["a", "b"]


def test_a_put_leaves_only_its_file_with_the_rights_of_any_new_file(tmp_path: Path) -> None:
    Storage.open(tmp_path).put("x/a", b"data")
    (tmp_path / "plain").write_bytes(b"")
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["a"]
    mode = stat.S_IMODE((tmp_path / "x" / "a").stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_a_put_without_hard_links_does_not_replace_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    storage = Storage.open(tmp_path)
    storage.put("a", b"one")
    with pytest.raises(NameTakenError):
        storage.put("a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_of_many_writers_of_one_name_one_wins_and_readers_see_it_whole(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    taken: list[bytes] = []
    seen: set[bytes] = set()
    barrier = threading.Barrier(8)

    def write(data: bytes) -> None:
        barrier.wait()
        try:
            storage.put("a", data)
        except NameTakenError:
            taken.append(data)
        seen.add((tmp_path / "a").read_bytes())

    payloads = [bytes([number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=write, args=(data,)) for data in payloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 7
    assert seen == set(payloads) - set(taken)


def test_a_put_into_a_file_as_a_folder_is_an_error(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"x")
    with pytest.raises(StorageError, match="could not be written"):
        storage.put("a/b", b"x")


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "table")
    storage.put("day/a", b"x")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "b").write_bytes(b"yy")
    root = tmp_path / "table"
    (root / "linked").symlink_to(tmp_path / "else")
    (root / "c").symlink_to(tmp_path / "else" / "b")
    (root / "nowhere").symlink_to(tmp_path / "nothing")
    (tmp_path / "else" / "back").symlink_to(tmp_path / "else")
    listing = storage.list()
    assert listing.paths.to_pylist() == ["c", "day/a", "linked/b"]
    assert listing.sizes.tolist() == [2, 1, 2]


def test_a_link_to_the_root_ends(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"x")
    (tmp_path / "self").symlink_to(tmp_path)
    assert storage.list().paths.to_pylist() == ["a"]


def test_only_files_of_bytes_are_listed_and_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    storage = Storage.open(tmp_path)
    assert len(storage.list()) == 0
    for name in ("pipe", ""):
        with pytest.raises(StorageError, match="not a file of bytes"):
            storage.source(name, 10).read(0, 1)


def test_a_name_that_is_not_text_is_an_error_that_shows_it(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.parquet")).write_bytes(b"")
    with pytest.raises(StorageError, match=r"a file name that is not UTF-8: .*udcff"):
        Storage.open(tmp_path).list()


def test_a_file_that_shrank_is_a_short_read(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"0123")
    with pytest.raises(StorageError, match="short read: 2 bytes at offset 2, expected 9"):
        storage.read_many([("a", 2, 9)])


def read_in_child(storage: Storage, queue: multiprocessing.Queue[bytes]) -> None:
    queue.put(storage.source("a").read(1, 2))


def test_a_storage_goes_to_another_process(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"0123")
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[bytes] = context.Queue()
    process = context.Process(target=read_in_child, args=(storage, queue))
    process.start()
    assert queue.get(timeout=60) == b"12"
    process.join()


def test_a_start_takes_one_call_to_open_and_is_the_same_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    paths = [f"{size}" for size in (0, 7, 64, 65, 1000)]
    for path in paths:
        storage.put(path, bytes(int(path)))
    before = storage.traffic
    quick = storage.read_heads(paths, 64, {})
    spent = storage.traffic - before
    assert (spent.stats, spent.reads, spent.bytes_read) == (0, 5, 7 + 3 * 64)
    monkeypatch.setattr(LocalFiles, "remote", True)
    before = storage.traffic
    assert storage.read_heads(paths, 64, {}) == quick
    spent = storage.traffic - before
    assert (spent.stats, spent.reads, spent.bytes_read) == (5, 4, 7 + 3 * 64)


def test_not_a_file_has_no_start(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in ("folder", "pipe"):
        with pytest.raises(StorageError, match="not a file of bytes"):
            storage.read_heads(["a", path], 10, {})


def test_a_start_that_is_cut_short_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", b"0123456789")
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda file, length, at: real(file, length, at)[: 4 - at])
    with pytest.raises(StorageError, match="short read: 4 bytes at offset 0, expected 10"):
        storage.read_heads(["a"], 20, {})


def test_folders_are_listed_in_parallel_and_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"day={day}/hour={hour}/{name}" for day in range(5) for hour in "ba" for name in "yx"]
    for name in [*names, "_alcid/1", "day=3/.crc"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "day=0" / "up").symlink_to(tmp_path)
    (tmp_path / "day=9").symlink_to(tmp_path / "day=4")
    together = threading.Barrier(5)  # breaks unless as many folders are listed at a time
    scandir = os.scandir

    def waiting(folder: str) -> Iterator[os.DirEntry[str]]:
        if "hour=b" in folder and "day=9" not in folder:
            together.wait(timeout=20)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", waiting)
    storage = Storage.open(tmp_path)
    linked = [name.replace("day=4", "day=9") for name in names if name.startswith("day=4")]
    listing = storage.list()
    assert listing.paths.to_pylist() == sorted([*names, *linked])
    assert listing.sizes.tolist() == [len(path) for path in listing.paths.to_pylist()]
    assert storage.traffic.lists == 1 + 6 + 12
