"""The directory of a kind of payloads, and the blocks that payloads are stored in.

A directory says which files have a payload, and where it is:

    u32 x n   the file, as its row in the table of files; ascending
    u32 x n   the length of its payload
    4 bytes x n   the first bytes of the payload, zeros behind its end
    u32       CRC-32 of all that

Integers are little-endian. The payloads stand back to back in the blob of their kind, in this
order, each in blocks, so the lengths say where each begins. The first bytes
are here because a bloom filter begins with the number of its hash functions: with it the bits to
read are known, and a probe needs one round of reads, not two.

Payloads are in small blocks, each with its checksum, so that any part is checked before it is used:

    1020 bytes of the payload | u32 CRC-32 | 1020 bytes | u32 CRC-32 | ... | the rest | u32 CRC-32

The CRC is little-endian and follows what it covers, so a block is checked with one read and one
call. Blocks are small because a probe of a bloom filter needs few bits far apart, each of which
costs a block; below 1 KiB the calls cost more than the bytes (see docs/reference/bundle-format.md).
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from alcid._arrays import Int64Array, UInt8Array
from alcid.errors import ChecksumError, LimitError, UnsupportedError
from alcid.formats.source import Section

CONTENT = 1020
"""Bytes of the payload in a block; the last block may hold fewer."""
CRC_SIZE = 4
BLOCK = CONTENT + CRC_SIZE
"""Bytes of a block as it is stored."""
RESIDUE = 0x2144DF1C
"""The CRC-32 of any bytes that end with their own CRC-32."""

_CRCS = [0]
"""The CRC of so many whole blocks that are right; filled as far as it was needed."""

Length = TypeVar("Length", int, Int64Array)


def block_count(length: Length) -> Length:
    """How many blocks hold a payload of `length` bytes."""
    return -(-length // CONTENT)


def stored(length: Length) -> Length:
    """How many bytes a payload of `length` bytes takes in its blocks.

    >>> stored(0), stored(1), stored(1020), stored(1021)
    (0, 5, 1024, 1029)
    """
    return length + CRC_SIZE * block_count(length)


def seal(payload: bytes | memoryview) -> Iterator[bytes | memoryview]:
    """A payload in its blocks, piece by piece.

    >>> b"".join(seal(b"123456789")).hex(" ", 4)
    '31 32333435 36373839 2639f4cb'
    """
    view = memoryview(payload)
    for start in range(0, len(view), CONTENT):
        content = view[start : start + CONTENT]
        yield content
        yield zlib.crc32(content).to_bytes(CRC_SIZE, "little")


def damaged_block(data: memoryview) -> int | None:
    """The number of the first block that is not what its CRC says, if there is one.

    One CRC over all blocks tells whether there is one: over blocks that are right it depends on
    their lengths alone, as that over one of them does. A flipped byte it notices always, and other
    damage but for one in 2^32.
    """
    if len(data) > CRC_SIZE and zlib.crc32(data) == _crc_of_sealed(*divmod(len(data), BLOCK)):
        return None
    crc = zlib.crc32
    for number, start in enumerate(range(0, len(data), BLOCK)):
        if crc(data[start : start + BLOCK]) != RESIDUE:
            return number
    return None


_ZEROS = b"".join(seal(bytes(CONTENT)))


@lru_cache(maxsize=4096)
def _crc_of_sealed(whole: int, rest: int) -> int:
    """The CRC of any blocks that are right: so many whole ones, and `rest` bytes of a last one."""
    while len(_CRCS) <= whole:
        _CRCS.append(zlib.crc32(_ZEROS, _CRCS[-1]))
    crc = _CRCS[whole]
    return zlib.crc32(b"".join(seal(bytes(rest - CRC_SIZE))), crc) if rest > CRC_SIZE else crc


def unseal(data: memoryview) -> bytes:
    """The payload of blocks that were checked; only the last may be short.

    >>> unseal(memoryview(b"".join(seal(bytes(3000))))) == bytes(3000)
    True
    """
    whole = len(data) // BLOCK
    blocks = np.frombuffer(data, np.uint8, whole * BLOCK).reshape(whole, BLOCK)
    rest = data[whole * BLOCK :]
    return blocks[:, :CONTENT].tobytes() + bytes(rest[:-CRC_SIZE])


HEAD = 4
"""How many bytes of each payload stand in the directory."""


_ENTRY = 8 + HEAD
_CRC = 4
_LARGEST = (1 << 31) - 1  # as in Paimon's container


@dataclass(frozen=True, eq=False)
class Directory:
    """The entries of a kind, in columns."""

    rows: Int64Array
    """The file of each entry, as its row in the table of files; ascending."""
    lengths: Int64Array
    """The length of each payload; 0: nothing was written, see `Bundle.index`."""
    heads: UInt8Array
    """The first four bytes of each payload: an array of n rows."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def starts(self) -> Int64Array:
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
        if (actual := zlib.crc32(body)) != crc:
            raise ChecksumError(
                "damaged directory",
                file=section.source.name,
                offset=section.start,
                found=f"{actual:08x}",
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


class DirectoryBuilder:
    """The directory of payloads of one kind that are being written."""

    __slots__ = ("_heads", "_lengths", "_rows")

    def __init__(self) -> None:
        """Begin without any."""
        self._rows, self._lengths = array("q"), array("q")
        self._heads = bytearray()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, payload: memoryview) -> None:
        """Add the payload of a file; files must come in the order of their rows."""
        if len(payload) > _LARGEST:
            raise LimitError(f"a payload holds at most {_LARGEST} bytes, found {len(payload)}")
        self._check(row)
        self._rows.append(row)
        self._lengths.append(len(payload))
        self._heads += bytes(payload[:HEAD]).ljust(HEAD, b"\0")

    def extend(self, rows: Int64Array, lengths: Int64Array, heads: UInt8Array) -> None:
        """Add payloads of other directories, under the rows that their files have here."""
        if len(rows):
            self._check(int(rows[0]))
            self._rows.frombytes(rows.astype(np.int64).tobytes())
            self._lengths.frombytes(lengths.astype(np.int64).tobytes())
            self._heads += heads.tobytes()

    def _check(self, row: int) -> None:
        if self._rows and row <= self._rows[-1]:
            last = self._rows[-1]
            raise UnsupportedError(f"payload of file {row} after that of file {last}")

    def build(self) -> Directory:
        """The directory of what was added."""
        heads = np.frombuffer(bytes(self._heads), np.uint8).reshape(-1, HEAD)
        rows, lengths = (
            np.frombuffer(column.tobytes(), np.int64) for column in (self._rows, self._lengths)
        )
        return Directory(rows, lengths, heads)
