"""Payloads that wait until all of their kind are there: in memory, or in a temporary file.

A bundle has the payloads of one kind together, but they are made file by file.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from typing import IO

from alcid.index.bundle.directory import DirectoryBuilder, seal, stored
from alcid.index.bundle.format import PayloadKind

SPOOLED_BYTES = 32 << 20
"""Bytes of payloads in memory; more are in a temporary file of the machine."""
PIECE_BYTES = 8 << 20
"""Bytes that are read from it at a time."""


class Spool:
    """The payloads of all kinds of a bundle, in blocks, in the order in which they are made."""

    def __init__(self) -> None:
        """Begin without any."""
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._starts: dict[PayloadKind, array[int]] = {}
        self._directories: dict[PayloadKind, DirectoryBuilder] = {}

    @property
    def kinds(self) -> list[PayloadKind]:
        """The kinds of payloads that are there, sorted."""
        return sorted(self._directories)

    def add(self, kind: PayloadKind, row: int, payload: bytes | memoryview) -> None:
        """Add the payload of a file; those of one kind in the order of their files."""
        view = memoryview(payload).cast("B")
        if kind not in self._directories:
            self._directories[kind], self._starts[kind] = DirectoryBuilder(), array("q")
        self._directories[kind].add(row, view)
        self._starts[kind].append(self._end)
        size = stored(len(view))
        if self._file is None and self._end + size > SPOOLED_BYTES:
            self._file = tempfile.TemporaryFile(prefix="alcid-")  # noqa: SIM115 - see `close`
            self._file.write(self._memory)
            self._memory = bytearray()
        if self._file is None:
            for piece in seal(view):
                self._memory += piece
        else:
            self._file.writelines(seal(view))
        self._end += size

    def directory(self, kind: PayloadKind) -> DirectoryBuilder:
        """The directory of the payloads of a kind."""
        return self._directories[kind]

    def read(self, kind: PayloadKind) -> Iterator[bytes]:
        """The blocks of all payloads of a kind, in order; nothing can be added afterwards."""
        directory = self._directories[kind].build()
        sizes = stored(directory.lengths).tolist()
        begin = end = 0
        for start, size in zip(self._starts[kind], sizes, strict=True):
            if start != end:  # what lies together is read together
                yield from self._pieces(begin, end)
                begin = start
            end = start + size
        yield from self._pieces(begin, end)

    def _pieces(self, begin: int, end: int) -> Iterator[bytes]:
        if self._file is not None:
            self._file.seek(begin)
        for start in range(begin, end, PIECE_BYTES):
            size = min(PIECE_BYTES, end - start)
            if self._file is None:
                yield bytes(self._memory[start : start + size])
            else:
                yield self._file.read(size)

    def close(self) -> None:
        """Remove the temporary file."""
        self._memory.clear()
        if self._file is not None:
            self._file.close()
