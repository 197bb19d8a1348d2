"""The backend for S3 through Arrow, which every installation has.

Arrow requests a file's size before it reads from it, so opened files are cached: they hold no
connection, and the next read is one request. Arrow lists no ETag, and it cannot put an object only
if there is none. s3fs can do all of that (`library=fsspec`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO

from alcid.storage.backend import (
    Entry,
    FileStat,
    Location,
    Request,
    below,
    check_unchanged,
    is_hidden,
    is_unchanged,
    join,
)
from alcid.storage.new_file import SPOOL_READ, SpooledDraft
from alcid.storage.options import arrow_s3_options
from alcid.storage.retries import Lister, ShortReadError
from alcid.storage.threads import run_in_threads
from alcid.storage.traffic import TrafficCounter

_PAGE = 1000
_MOST_PARALLEL = 32  # folders that are listed at the same time
_MOST_OPEN = 1024
_PAGE_TRIES = 5
_NOT_SHOWN = "flush response stream"
_MARKS = (0xA7, 0x58)


class ArrowS3Files:
    """The objects below a prefix of a bucket."""

    gap = 128 << 10  # about what a connection carries in the time that one of 32 requests takes
    largest = 8 << 20
    remote = True
    exclusive = False

    def __init__(
        self, location: Location, options: Mapping[str, Any], traffic: TrafficCounter
    ) -> None:
        from pyarrow import fs

        self._root, self._traffic = location.text.removeprefix("s3://"), traffic
        settings = arrow_s3_options(options)

        def connect(tries: int, **how: bool) -> Any:
            strategy = fs.AwsStandardS3RetryStrategy(max_attempts=tries)
            more = {**settings, **how, "retry_strategy": strategy}
            try:  # a small file is then one request, not three
                return fs.S3FileSystem(**more, allow_delayed_open=True)
            except TypeError:  # Arrow 19 does not know it
                return fs.S3FileSystem(**more)

        # One layer of retries, ours; but not all pages of a listing again because one of them
        # failed.
        self._files, self._connect = connect(1), connect
        bucket = self._root.partition("/")[0]
        self._lister = Lister(
            self._files, connect(_PAGE_TRIES), lambda files: files.get_file_info(bucket)
        )
        self._opened: OrderedDict[str, Any] = OrderedDict()
        self._turns: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All objects below a prefix.

        A server gives a page of a thousand objects at a time, and each page waits for the one
        before. So folders directly below the prefix are listed in parallel, if they are no more
        than one round of requests.
        """
        from pyarrow import fs

        folder = join(self._root, under)
        infos = self._infos(folder, recursive=False)
        folders = [
            info.path
            for info in infos
            if info.type == fs.FileType.Directory and (hidden or not is_hidden(info.base_name))
        ]
        if len(folders) > _MOST_PARALLEL:
            infos = self._infos(folder, recursive=True)
        else:
            for inner in run_in_threads(
                lambda path: self._infos(path, recursive=True), folders, waiting=True
            ):
                infos += inner
        files = (
            (info.path, info.size, str(info.mtime_ns))
            for info in infos
            if info.type == fs.FileType.File
        )
        return list(below(files, self._root, folder, hidden=hidden))

    def folder(self, under: str) -> tuple[list[Entry], list[str]]:
        """The objects of a prefix itself, and the prefixes below it."""
        from pyarrow import fs

        folder = join(self._root, under)
        infos = self._infos(folder, recursive=False)
        files = (
            (info.path, info.size, str(info.mtime_ns))
            for info in infos
            if info.type == fs.FileType.File
        )
        start = len(self._root) + 1
        folders = [info.path[start:] for info in infos if info.type == fs.FileType.Directory]
        return list(below(files, self._root, folder, hidden=True)), folders

    def _infos(self, folder: str, *, recursive: bool) -> list[Any]:
        """What is in a folder."""
        from pyarrow import fs

        selector = fs.FileSelector(folder, recursive=recursive, allow_not_found=True)
        infos: list[Any] = self._lister.run(lambda files: files.get_file_info(selector))
        self._traffic.add(lists=max(1, -(-len(infos) // _PAGE)))
        return infos

    def stat(self, path: str) -> FileStat:
        """Size and version of an object; the answer serves the next read too."""
        return _stat(self._open(join(self._root, path)))

    def read(self, path: str, pieces: Sequence[tuple[int, int]], expected: FileStat) -> list[bytes]:
        """The bytes of each (offset, length)."""
        key = join(self._root, path)
        file = self._opened_once(key, expected)
        check_unchanged(f"s3://{key}", expected, _stat(file))
        try:
            return [self._read_at(file, offset, length) for offset, length in pieces]
        except OSError as error:
            with self._lock:
                self._opened.pop(key, None)
            if _NOT_SHOWN in str(error):
                # The server's answer did not fit into the few bytes that were requested, and is
                # lost: request the size, which fails for the same reason if the reason lasts.
                self._open(key)
            raise

    def _read_at(self, file: Any, offset: int, length: int) -> bytes:
        """Bytes of an opened file, as many as the server gave.

        Arrow takes it that an object is as long as when it was opened. From one that has become
        shorter it returns the full length, and what lies in memory after the last byte received. So
        the last byte gets a value beforehand; if it comes back, another one shows whether it was
        written or left.
        """
        for mark in _MARKS:
            self._traffic.add(reads=1)
            data = bytearray(length)
            data[-1] = mark
            count = file.get_stream(offset, length).readinto(data)
            if count != length:
                break
            if data[-1] != mark:
                return bytes(data)
        raise ShortReadError(f"too few bytes at offset {offset}, expected {length}")

    def _opened_once(self, key: str, expected: FileStat) -> Any:
        """The opened file; of many threads that need it, one opens it and the others wait."""
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        try:
            with turn:
                with self._lock:
                    file = self._opened.get(key)
                if file is None or not is_unchanged(expected, _stat(file)):
                    file = self._open(key)
                return file
        finally:
            with self._lock:
                self._turns.pop(key, None)

    def _open(self, key: str) -> Any:
        self._traffic.add(stats=1)
        file = self._files.open_input_file(key)
        with self._lock:
            self._opened[key] = file
            if len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)
        return file

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:  # noqa: ARG002
        """Write an object that does not exist: Arrow cannot do that, so it is looked up first.

        Names are unique, so that nobody is expected to come between.
        """
        key = join(self._root, path)
        try:
            self._open(key)
        except FileNotFoundError:
            pass
        else:
            raise FileExistsError(key)
        self.replace(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Write an object, over what there is."""
        key = join(self._root, path)
        with self._lock:
            self._opened.pop(key, None)
        self._traffic.add(puts=1)
        with self._files.open_output_stream(key) as stream:
            stream.write(data)

    def draft(self, path: str, request: Request) -> SpooledDraft:
        """Begin a temporary file: Arrow completes an upload even if it is given up."""
        key = join(self._root, path)

        def upload(file: BinaryIO) -> None:
            try:
                self._open(key)
            except FileNotFoundError:
                pass
            else:
                raise FileExistsError(key)
            # One part at a time: in the background Arrow buffers as many as it is given.
            files = self._connect(1, background_writes=False)
            with files.open_output_stream(key) as stream:
                while data := file.read(SPOOL_READ):
                    self._traffic.add(puts=1)
                    stream.write(data)

        return SpooledDraft(upload, request)

    def link(self, path: str, target: str) -> None:
        """Let the server copy an object; its time of change is then another."""
        first, second = join(self._root, path), join(self._root, target)
        with self._lock:
            self._opened.pop(second, None)
        self._traffic.add(puts=1)
        self._files.copy_file(first, second)

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if it is not there."""
        key = join(self._root, path)
        with self._lock:
            self._opened.pop(key, None)
        self._traffic.add(deletes=1)
        try:
            self._files.delete_file(key)
        except FileNotFoundError:
            return

    def remove_folder(self, path: str) -> None:
        """Remove the marker that Arrow leaves where it has removed the last object."""
        self._traffic.add(deletes=1)
        self._files.delete_dir(join(self._root, path))


def _stat(file: Any) -> FileStat:
    """Size and version as a listing gives them: S3 counts time in seconds in both."""
    changed = (file.metadata() or {}).get("Last-Modified")
    if changed is None:
        return FileStat(file.size())
    seconds = int(datetime.fromisoformat(changed.decode()).timestamp())
    return FileStat(file.size(), f"{seconds}000000000")
