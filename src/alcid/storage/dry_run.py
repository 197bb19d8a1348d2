"""Changes that are only tried: what is written stays in memory, and the files stay as they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from itertools import count
from threading import Lock

from alcid.storage.backend import (
    Backend,
    Entry,
    Known,
    below,
    check_unchanged,
)

__all__ = ["RehearsedFiles"]


class RehearsedFiles:
    """The files of another backend, with changes that nobody else sees."""

    exclusive = True

    def __init__(self, files: Backend) -> None:
        """Begin without changes."""
        self._files = files
        self.gap, self.largest, self.remote = files.gap, files.largest, files.remote
        self._held: dict[str, tuple[bytes, str]] = {}
        self._removed: set[str] = set()
        self._numbers, self._lock = count(1), Lock()

    def entries(self, under: str, *, hidden: bool) -> list[Entry]:
        """All files below a folder, as they would be."""
        with self._lock:
            every = self._held.items()
            held = [(f"/{path}", len(data), version) for path, (data, version) in every]
            gone = self._removed | self._held.keys()
        found = [one for one in self._files.entries(under, hidden=hidden) if one[0] not in gone]
        folder = f"/{under}" if under else ""
        return [*found, *below(held, "", folder, hidden=hidden)]

    def stat(self, path: str) -> Known:
        """Size and version of a file."""
        with self._lock:
            held = self._find(path)
        return self._files.stat(path) if held is None else Known(len(held[0]), held[1])

    def read(self, path: str, pieces: Sequence[tuple[int, int]], known: Known) -> list[bytes]:
        """The bytes of each (offset, length)."""
        with self._lock:
            held = self._find(path)
        if held is None:
            return self._files.read(path, pieces, known)
        data, version = held
        check_unchanged(path, known, Known(len(data), version))
        return [data[offset : offset + length] for offset, length in pieces]

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:  # noqa: ARG002
        """Hold a file under a name that is not taken."""
        try:
            self.stat(path)
        except OSError:
            self.replace(path, data)
        else:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def replace(self, path: str, data: bytes) -> None:
        """Hold a file, whatever has that name."""
        with self._lock:
            self._removed.discard(path)
            self._held[path] = data, f"rehearsed-{next(self._numbers)}"

    def link(self, path: str, target: str) -> None:
        """Hold a copy."""
        size = self.stat(path).size
        self.put(target, self.read(path, [(0, size or 0)], Known())[0])

    def delete(self, path: str) -> None:
        """Let a file count as removed."""
        with self._lock:
            self._held.pop(path, None)
            self._removed.add(path)

    def remove_folder(self, path: str) -> None:
        """There are no folders in memory."""

    def _find(self, path: str) -> tuple[bytes, str] | None:
        """What is held of a file; None: it is as it was."""
        if path in self._removed:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._held.get(path)
