"""Which files have a payload of some kind, and where it is.

    u32 x n   the file, as its row in the table of files; ascending
    u32 x n   the length of its payload
    4 bytes x n   the first bytes of the payload, zeros behind its end
    u32       CRC-32 of all that

Integers are little-endian. The payloads stand back to back in the blob of their kind, in this
order, each in blocks (`alcid.bundle.blocks`), so the lengths say where each begins. The first bytes
are here because a bloom filter begins with the number of its hash functions: with it the bits to
read are known, and a probe needs one round of reads, not two.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from alcid.bundle.blocks import seal, stored
from alcid.errors import ChecksumError, LimitError, UnsupportedError
from alcid.formats.source import Section

__all__ = ["HEAD", "Directory", "Payloads"]

HEAD = 4
"""How many bytes of each payload stand in the directory."""

Integers = npt.NDArray[np.int64]

_ENTRY = 8 + HEAD
_CRC = 4
_LARGEST = (1 << 31) - 1  # as in Paimon's container


@dataclass(frozen=True, eq=False)
class Directory:
    """The entries of a kind, in columns."""

    rows: Integers
    """The file of each entry, as its row in the table of files; ascending."""
    lengths: Integers
    """The length of each payload; 0: nothing was written, see `Bundle.index`."""
    heads: npt.NDArray[np.uint8]
    """The first four bytes of each payload: an array of n rows."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def starts(self) -> Integers:
        """Where each payload begins in its blob as it is stored, then where the last ends."""
        starts = np.zeros(len(self) + 1, np.int64)
        np.cumsum(stored(self.lengths), out=starts[1:])
        return starts

    @staticmethod
    def size(entries: int) -> int:
        """The bytes of a directory of so many entries."""
        return entries * _ENTRY + _CRC

    def to_bytes(self) -> bytes:
        """The directory with its CRC."""
        columns = (self.rows.astype("<u4"), self.lengths.astype("<u4"), self.heads)
        data = b"".join(column.tobytes() for column in columns)
        return data + zlib.crc32(data).to_bytes(_CRC, "little")

    @classmethod
    def read(cls, section: Section, *, files: int, stored_size: int) -> Directory:
        """Read and check the directory that `section` is.

        Args:
            section: All of its bytes and no more.
            files: How many files the bundle has.
            stored_size: The bytes of the blob that its payloads must fill.

        Raises:
            FormatError: It is damaged.
        """
        data = section.read(0, section.length)
        if len(data) < _CRC or (len(data) - _CRC) % _ENTRY:
            whole = f"a multiple of {_ENTRY}, and {_CRC}"
            raise section.error("bad length of a directory", 0, found=len(data), expected=whole)
        body, crc = data[:-_CRC], int.from_bytes(data[-_CRC:], "little")
        if (found := zlib.crc32(body)) != crc:
            raise ChecksumError(
                "damaged directory",
                file=section.source.name,
                offset=section.start,
                found=f"{found:08x}",
                expected=f"{crc:08x}",
            )
        entries = len(body) // _ENTRY
        numbers = np.frombuffer(body, "<u4", 2 * entries).astype(np.int64).reshape(2, entries)
        heads = np.frombuffer(body, np.uint8, offset=8 * entries).reshape(entries, HEAD)
        directory = cls(numbers[0], numbers[1], heads)
        if (np.diff(directory.rows) <= 0).any() or (directory.rows >= files).any():
            expected = f"ascending, below {files}"
            raise section.error("bad files of a directory", 0, expected=expected)
        if (directory.lengths > _LARGEST).any() or directory.starts[-1] != stored_size:
            raise section.error(
                "payloads do not fill their blob",
                4 * entries,
                found=int(directory.starts[-1]),
                expected=stored_size,
            )
        return directory


class Payloads:
    """The payloads of one kind that are to be written: in blocks, back to back.

    They are copied when they are added, so the caller need not keep them.
    """

    __slots__ = ("_heads", "_lengths", "_rows", "stored")

    def __init__(self) -> None:
        """Begin without any."""
        self._rows: list[int] = []
        self._lengths: list[int] = []
        self._heads: list[bytes] = []
        self.stored = bytearray()
        """The content of the blob."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, payload: bytes | memoryview) -> None:
        """Take the payload of a file; files must come in the order of their rows."""
        view = memoryview(payload).cast("B")
        if len(view) > _LARGEST:
            raise LimitError(f"a payload holds at most {_LARGEST} bytes, found {len(view)}")
        self._enter(row, len(view), bytes(view[:HEAD]))
        for piece in seal(view):
            self.stored += piece

    def copy(self, row: int, length: int, head: bytes, blocks: memoryview) -> None:
        """Take a payload of `length` bytes in blocks that were checked."""
        self._enter(row, length, head)
        self.stored += blocks

    def _enter(self, row: int, length: int, head: bytes) -> None:
        if self._rows and row <= self._rows[-1]:
            last = self._rows[-1]
            raise UnsupportedError(f"payload of file {row} after that of file {last}")
        self._rows.append(row)
        self._lengths.append(length)
        self._heads.append(head.ljust(HEAD, b"\0"))

    def directory(self) -> Directory:
        """Where they are."""
        heads = np.frombuffer(b"".join(self._heads), np.uint8).reshape(-1, HEAD)
        rows, lengths = np.array(self._rows, np.int64), np.array(self._lengths, np.int64)
        return Directory(rows, lengths, heads)
