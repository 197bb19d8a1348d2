"""A dry run: what is written stays in memory, and the files stay as they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from itertools import count
from threading import Lock

from alcid.storage.backend import (
    Backend,
    Entry,
    FileStat,
    Request,
    below,
    check_unchanged,
)


class DryRunFiles:
    """The files of another backend, with changes that nobody else sees."""

    exclusive = True

    def __init__(self, files: Backend) -> None:
        """Begin without changes."""
        self._files = files
        self.gap, self.largest, self.remote = files.gap, files.largest, files.remote
        self._written: dict[str, tuple[bytes, str]] = {}
        self._deleted: set[str] = set()
        self._numbers, self._lock = count(1), Lock()

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder, as they would be."""
        with self._lock:
            written = [
                (f"/{path}", len(data), version) for path, (data, version) in self._written.items()
            ]
            changed = self._deleted | self._written.keys()
        unchanged = [
            entry for entry in self._files.entries(under, hidden=hidden) if entry[0] not in changed
        ]
        folder = f"/{under}" if under else ""
        return [*unchanged, *below(written, "", folder, hidden=hidden)]

    def folder(self, under: str) -> tuple[list[Entry], list[str]]:
        """All files below a folder; nothing is gained here by looking into folders one by one."""
        return self.entries(under, hidden=True), []

    def stat(self, path: str) -> FileStat:
        """Size and version of a file."""
        with self._lock:
            written = self._find(path)
        if written is None:
            return self._files.stat(path)
        data, version = written
        return FileStat(len(data), version)

    def read(self, path: str, pieces: Sequence[tuple[int, int]], expected: FileStat) -> list[bytes]:
        """The bytes of each (offset, length)."""
        with self._lock:
            written = self._find(path)
        if written is None:
            return self._files.read(path, pieces, expected)
        data, version = written
        check_unchanged(path, expected, FileStat(len(data), version))
        return [data[offset : offset + length] for offset, length in pieces]

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:  # noqa: ARG002
        """Write a file under a name that is not taken."""
        try:
            self.stat(path)
        except OSError:
            self.replace(path, data)
        else:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, whether there is one of that name or not."""
        with self._lock:
            self._deleted.discard(path)
            self._written[path] = data, f"dry-run-{next(self._numbers)}"

    def draft(self, path: str, _request: Request) -> _Draft:
        """Begin a file."""
        return _Draft(self, path)

    def link(self, path: str, target: str) -> None:
        """Write a copy."""
        size = self.stat(path).size
        self.put(target, self.read(path, [(0, size or 0)], FileStat())[0])

    def delete(self, path: str) -> None:
        """Let a file count as deleted."""
        with self._lock:
            self._written.pop(path, None)
            self._deleted.add(path)

    def remove_folder(self, path: str) -> None:
        """Do nothing: there are no folders in memory."""

    def _find(self, path: str) -> tuple[bytes, str] | None:
        """The bytes and the version of a file that was written; None: it is as it was."""
        if path in self._deleted:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._written.get(path)


class _Draft:
    """A file in memory that is written in parts."""

    copies = False
    least_part = 0

    def __init__(self, files: DryRunFiles, path: str) -> None:
        self._files, self._path = files, path
        self._data = bytearray()

    def write(self, data: bytes, /) -> None:
        self._data += data

    def copy(self, _path: str, _offset: int, _length: int, /) -> bool:
        return False

    def publish(self) -> None:
        self._files.put(self._path, bytes(self._data))

    def discard(self) -> None:
        self._data.clear()
