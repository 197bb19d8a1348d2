"""Files that are written in parts: whole or not at all, in bounded memory, copied by servers."""

from __future__ import annotations

import importlib
import random
import sys
import tracemalloc
import uuid
from pathlib import Path
from typing import Any

import pytest

from alcid.errors import NameTakenError, StorageError, UnsupportedError
from alcid.formats.source import BytesSource, Source
from alcid.storage import Meter, Storage, fsspec_files, new_file, s3_upload
from alcid.storage.new_file import COPY_LEAST, PART_BYTES, NewFile
from alcid.storage.s3_upload import IN_FLIGHT, LEAST_PART
from alcid.testing.faults import Fault, Faults, once
from tests.storage.conftest import KEYS, QUICK

MB = 1 << 20


def content(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def copy_range(source: Source, offset: int, length: int, file: NewFile) -> None:
    if not file.copy_from(source, offset, length):
        file.write(source.read(offset, length))


def read(storage: Storage, path: str) -> bytes:
    source = storage.source(path)
    return source.read(0, source.size)


def give_up(storage: Storage, data: bytes) -> None:
    with storage.new_file("a.bin") as file:
        file.write(data)
        raise ZeroDivisionError


def names(storage: Storage) -> list[str]:
    listed: list[str] = storage.list(hidden=True).paths.to_pylist()
    return listed


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some megabytes consist of parts."""
    monkeypatch.setattr(new_file, "PART_BYTES", LEAST_PART)


@pytest.mark.parametrize("size", [0, 1, 11 * MB])
@pytest.mark.usefixtures("small_parts")
def test_a_file_is_what_was_written_and_appears_when_it_is_whole(
    storage: Storage, size: int
) -> None:
    data = content(size)
    with storage.new_file("folder/a.bin") as file:
        for start in range(0, size, 3_000_001):
            file.write(data[start : start + 3_000_001])
        assert storage.list(suffix=".bin").paths.to_pylist() == []
    assert (file.size, file.copied) == (size, 0)
    assert read(storage, "folder/a.bin") == data
    assert names(storage) == ["folder/a.bin"]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("size", [5, 11 * MB])
def test_an_exception_leaves_nothing(storage: Storage, size: int) -> None:
    with pytest.raises(ZeroDivisionError):
        give_up(storage, content(size))
    assert names(storage) == []


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("size", [5, 11 * MB])
def test_a_name_that_is_taken_is_an_error_and_keeps_its_file(storage: Storage, size: int) -> None:
    storage.put("a.bin", b"first")
    with pytest.raises(NameTakenError), storage.new_file("a.bin") as file:
        file.write(content(size))
    assert read(storage, "a.bin") == b"first"
    assert names(storage) == ["a.bin"]


@pytest.mark.usefixtures("small_parts")
def test_ranges_of_other_files_are_copied_where_the_file_system_can(storage: Storage) -> None:
    data = content(30 * MB)
    storage.put("folder/source.bin", data)
    source = storage.source("folder/source.bin", len(data))
    pieces = [(4, 12 * MB), (0, 3), (9 * MB, 20 * MB), (17, MB), (MB, 9 * MB)]
    with Meter() as meter, storage.new_file("copy.bin") as file:
        file.write(b"head")
        for offset, length in pieces:
            copy_range(source, offset, length, file)
    expected = b"head" + b"".join(data[offset : offset + length] for offset, length in pieces)
    assert read(storage, "copy.bin") == expected
    assert file.size == len(expected)
    if storage.location.startswith("memory"):
        assert file.copied == 0
    elif storage.remote:  # but what fills a part that was begun
        short = sum(length for _, length in pieces if length < COPY_LEAST)
        read_here = len(expected) - file.copied - 4
        assert short < read_here <= short + 3 * LEAST_PART
        assert meter.snapshot().bytes_read == read_here
        assert meter.snapshot().bytes_written == len(expected) - file.copied
    else:
        assert file.copied == sum(length for _, length in pieces if length >= COPY_LEAST)


def test_a_copy_of_many_parts_is_divided_evenly(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_upload, "LARGEST_COPY", 7 * MB)
    data = content(30 * MB)
    storage.put("source.bin", data)
    with storage.new_file("copy.bin") as file:
        copy_range(storage.source("source.bin", len(data)), 1, len(data) - 1, file)
        file.write(b"tail")
    assert read(storage, "copy.bin") == data[1:] + b"tail"


def test_a_range_of_another_storage_is_read_and_written(tmp_path: Path) -> None:
    data = content(9 * MB)
    Storage.open(tmp_path / "one").put("a", data)
    with Storage.open(tmp_path / "two").new_file("b") as file:
        copy_range(Storage.open(tmp_path / "one").source("a"), 0, len(data), file)
        assert not file.copy_from(BytesSource(data), 0, len(data))
    assert (file.copied, (tmp_path / "two/b").read_bytes()) == (0, data)


@pytest.mark.skipif(sys.platform != "linux", reason="copy_file_range is Linux's")
def test_a_disk_that_cannot_copy_reads_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, storage = content(9 * MB), Storage.open(tmp_path)
    storage.put("a", data)

    def refuse(*_arguments: Any) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.copy_file_range", refuse)
    with storage.new_file("b") as file:
        copy_range(storage.source("a"), 0, len(data), file)
    assert (file.copied, (tmp_path / "b").read_bytes()) == (0, data)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.REFUSED])
def test_every_call_of_a_large_file_may_fail(tmp_path: Path, fault: Fault) -> None:
    data, faults = content(22 * MB), Faults()
    Storage.open(tmp_path).put("source", data)
    storage = Storage.open(tmp_path, retry=QUICK).through(faults.around)
    number = 0
    while True:
        faults.plan(once(number, fault))
        try:
            with storage.new_file("new") as file:
                file.write(data[: 7 * MB])
                copy_range(storage.source("source", len(data)), 7 * MB, 15 * MB, file)
        except StorageError:
            assert fault is Fault.REFUSED
            assert names(Storage.open(tmp_path)) == ["source"]
        else:
            assert (tmp_path / "new").read_bytes() == data
            (tmp_path / "new").unlink()
        number += 1
        if number > len(faults.calls):
            break
    assert {call.kind for call in faults.calls} == {"draft", "write", "copy", "publish"}


@pytest.mark.parametrize("storage", ["local", "s3-arrow", "s3-fsspec"], indirect=True)
def test_memory_is_that_of_a_few_parts(storage: Storage) -> None:
    """On a file of many parts; the client of S3 holds each part on its way once more."""
    piece, count = content(MB), 20 * PART_BYTES // MB
    with storage.new_file("warm") as file:
        file.write(bytes(PART_BYTES))
    tracemalloc.start()
    with storage.new_file("a.bin") as file:
        for _ in range(count):
            file.write(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert file.size == 20 * PART_BYTES
    parts = 3 + (3 * IN_FLIGHT if storage.remote else 0)
    assert peak < parts * PART_BYTES
    assert storage.source("a.bin").size == file.size


# -- S3 ------------------------------------------------------------------------------------------


@pytest.fixture
def s3_location(moto_port: int, bucket: str) -> tuple[str, dict[str, str]]:
    options = KEYS | {"endpoint_url": f"http://127.0.0.1:{moto_port}"}
    return f"s3://{bucket}/table", options


def write_parts(storage: Storage, data: bytes) -> NewFile:
    with storage.new_file("a.bin") as file:
        file.write(data)
    return file


def test_arrow_alone_uploads_a_temporary_file(
    s3_location: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_scheme: str) -> Any:
        raise UnsupportedError("s3fs is not installed")

    monkeypatch.setattr(fsspec_files, "_file_system_class", missing)
    storage = Storage.open(*s3_location, retry=QUICK)
    data = content(PART_BYTES + 12 * MB)
    with pytest.raises(ZeroDivisionError):
        give_up(storage, data)
    assert names(storage) == []
    write_parts(storage, data)
    assert read(storage, "a.bin") == data
    with pytest.raises(NameTakenError):
        write_parts(storage, data[::-1])
    assert read(storage, "a.bin") == data


def test_an_upload_whose_last_answer_is_lost_has_succeeded(
    s3_location: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    s3fs: Any = importlib.import_module("s3fs")
    real, lost = s3fs.S3FileSystem.call_s3, [1]

    def losing(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        answer = real(self, method, *arguments, **options)
        if method == "complete_multipart_upload" and lost:
            lost.pop()
            raise TimeoutError
        return answer

    monkeypatch.setattr(s3fs.S3FileSystem, "call_s3", losing)
    storage = Storage.open(s3_location[0], {**s3_location[1], "library": "fsspec"}, retry=QUICK)
    data = content(PART_BYTES + MB)
    write_parts(storage, data)
    assert (lost, read(storage, "a.bin")) == ([], data)


def test_an_upload_that_fails_leaves_no_parts(
    s3_location: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    s3fs: Any = importlib.import_module("s3fs")
    real = s3fs.S3FileSystem.call_s3

    def failing(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        if method == "upload_part" and options["PartNumber"] == 2:
            raise PermissionError
        return real(self, method, *arguments, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "call_s3", failing)
    storage = Storage.open(s3_location[0], {**s3_location[1], "library": "fsspec"}, retry=QUICK)
    with pytest.raises(StorageError, match=r"a\.bin: could not be written: PermissionError"):
        write_parts(storage, content(2 * PART_BYTES))
    assert names(storage) == []
    files = storage._backend._files  # type: ignore[attr-defined]
    assert "Uploads" not in real(files, "list_multipart_uploads", Bucket=_bucket(storage))


def _bucket(storage: Storage) -> str:
    return storage.location.split("/")[2]


def test_a_file_system_that_shows_parts_gets_the_whole_file_under_another_name() -> None:
    fsspec: Any = importlib.import_module("fsspec")
    memory: Any = importlib.import_module("fsspec.implementations.memory")
    calls: list[str] = []

    class Plain(memory.MemoryFileSystem):  # type: ignore[misc]
        protocol = "shown"

        def mv(self, first: str, second: str, **options: Any) -> None:
            calls.append(first.rpartition("/")[2])
            super().mv(first, second, **options)

    fsspec.register_implementation("shown", Plain, clobber=True)
    storage = Storage.open(f"shown://{uuid.uuid4().hex}/table")
    data = content(PART_BYTES + MB)
    write_parts(storage, data)
    assert (read(storage, "a.bin"), names(storage)) == (data, ["a.bin"])
    (temporary,) = calls
    assert temporary.startswith(".")
    assert temporary.endswith(".tmp")
