"""The bytes of a deletion vector.

    i32 BE S | body of S bytes | u32 BE CRC-32 of the body

    body, 32 bits      i32 BE 1581511376 | bitmap
    body, 64 bits      i32 LE 1681511377 | i64 LE n | n x (i32 LE key | bitmap)     keys ascending

A bitmap is a Roaring bitmap (see `alcid.formats.roaring`); its key is the upper half of its
positions. Paimon writes both kinds into index files, Iceberg the second as a blob of Puffin. Both
write an empty bitmap for each key below the last that has no positions, and can read without it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from pyroaring import BitMap

from alcid.errors import ChecksumError, LimitError
from alcid.formats import roaring
from alcid.formats.deletion_vector.positions import LARGEST_KEY, LARGEST_POSITION, Bitmaps, largest
from alcid.formats.source import Section

__all__ = [
    "AROUND",
    "LARGEST_POSITIONS",
    "LEAST_BODY",
    "MAGICS",
    "Bits",
    "StoredBitmap",
    "decode",
    "encode",
    "stored_bitmaps",
]

Bits: TypeAlias = Literal[32, 64]

AROUND = 8
"""Bytes around a body: the length before it and the checksum behind it."""
LEAST_BODY = 12
"""Bytes of the body of an empty vector, of either kind."""
MAGICS: dict[bytes, Bits] = {bytes.fromhex("5e43f2d0"): 32, bytes.fromhex("d1d33964"): 64}
"""What each kind begins with, behind its length."""
LARGEST_POSITIONS: dict[Bits, int] = {32: (1 << 31) - 1, 64: LARGEST_POSITION}
"""The last position that each kind can hold."""

_MAGIC_OF = {bits: magic for magic, bits in MAGICS.items()}
_LARGEST_BYTES = (1 << 31) - 1
_LEAST_BITMAP = 12  # a key and an empty bitmap
_HEAD_64 = 12  # the magic and the count
_ANY_LOW = 1 << 32
_EMPTY_BITMAP = BitMap().serialize()


class StoredBitmap(NamedTuple):
    """A bitmap, and where it lies in its vector."""

    key: int
    """The upper half of its positions; before a bitmap of 64 bits its key is stored."""
    rows: BitMap
    offset: int
    length: int


def stored_bitmaps(section: Section, data: bytes) -> tuple[Bits, Iterator[StoredBitmap]]:
    """The kind and the bitmaps of the vector `data`, which was read from the whole of `section`."""
    bits, body = _open_frame(section, data)
    return bits, _read_32(section, body) if bits == 32 else _read_64(section, body)


def decode(section: Section, data: bytes) -> tuple[Bits, Bitmaps]:
    """The kind of a vector, and its bitmaps as far as they have positions."""
    bits, stored = stored_bitmaps(section, data)
    bitmaps = {bitmap.key: bitmap.rows for bitmap in stored if bitmap.rows}
    last, most = largest(bitmaps), LARGEST_POSITIONS[bits]
    if last is not None and last > most:
        raise section.error(f"position beyond {bits} bits", 8, last, f"{most} at most")
    return bits, bitmaps


def encode(bits: Bits, bitmaps: Bitmaps) -> bytes:
    """The bytes of a vector, which must be within the limits of the kind."""
    body = [_MAGIC_OF[bits], *(_write_32(bitmaps) if bits == 32 else _write_64(bitmaps))]
    size, checksum = sum(map(len, body)), 0
    _check_size(AROUND + size)
    for part in body:
        checksum = zlib.crc32(part, checksum)
    return b"".join((size.to_bytes(4, "big"), *body, checksum.to_bytes(4, "big")))


def _open_frame(section: Section, data: bytes) -> tuple[Bits, memoryview]:
    """The kind and the body of a vector whose length, magic and checksum are right."""
    size, expected = int.from_bytes(data[:4], "big", signed=True), len(data) - AROUND
    if expected < LEAST_BODY:
        found = f"{len(data)} bytes"
        raise section.error(
            "truncated deletion vector", 0, found, f"{LEAST_BODY + AROUND} at least"
        )
    if size != expected:
        raise section.error("bad length of a deletion vector", 0, size, expected)
    bits = MAGICS.get(data[4:8])
    if bits is None:
        known = " or ".join(magic.hex() for magic in MAGICS)
        raise section.error("not a deletion vector: bad magic", 4, data[4:8].hex(), known)
    body = memoryview(data)[4:-4]
    stored, computed = int.from_bytes(data[-4:], "big"), zlib.crc32(body)
    if stored != computed:  # before anything behind the magic is believed
        raise ChecksumError(
            "bad checksum of a deletion vector",
            file=section.source.name,
            offset=section.start + len(data) - 4,
            found=f"{stored:08x} stored",
            expected=f"{computed:08x} of the bytes",
        )
    return bits, body


def _read_32(section: Section, body: memoryview) -> Iterator[StoredBitmap]:
    bitmap, length = roaring.parse(section, 8, body[4:], _ANY_LOW)
    yield StoredBitmap(0, bitmap, 8, length)


def _read_64(section: Section, body: memoryview) -> Iterator[StoredBitmap]:
    (count,) = struct.unpack_from("<q", body, 4)
    at, most = _HEAD_64, (len(body) - _HEAD_64) // _LEAST_BITMAP
    if not 0 <= count <= most:
        raise section.error("bad count of bitmaps", 8, count, f"0 to {most}")
    previous = -1
    for _ in range(count):
        if len(body) < at + _LEAST_BITMAP:
            found = f"{len(body) - at} bytes"
            raise section.error("truncated bitmap", at + 4, found, f"{_LEAST_BITMAP} at least")
        (key,) = struct.unpack_from("<i", body, at)
        if not previous < key <= LARGEST_KEY:
            expected = f"{previous + 1} to {LARGEST_KEY}"
            raise section.error("bad key of a bitmap", at + 4, key, expected)
        previous, at = key, at + 4
        bitmap, length = roaring.parse(section, at + 4, body[at:], _ANY_LOW)
        yield StoredBitmap(key, bitmap, at + 4, length)
        at += length


def _write_32(bitmaps: Bitmaps) -> Iterator[bytes]:
    yield _serialize(bitmaps[0]) if bitmaps else _EMPTY_BITMAP


def _write_64(bitmaps: Bitmaps) -> Iterator[bytes]:
    count = max(bitmaps, default=-1) + 1
    _check_size(AROUND + _HEAD_64 + _LEAST_BITMAP * count)
    yield struct.pack("<q", count)
    following = 0
    for key, bitmap in bitmaps.items():
        absent = np.zeros((key - following, 3), "<u4")
        absent[:, 0] = np.arange(following, key)
        absent[:, 1:] = np.frombuffer(_EMPTY_BITMAP, "<u4")
        yield absent.tobytes()
        yield struct.pack("<i", key) + _serialize(bitmap)
        following = key + 1


def _serialize(bitmap: BitMap) -> bytes:
    return BitMap(bitmap, optimize=True).serialize()  # of a copy, in which runs are found


def _check_size(size: int) -> None:
    """Stop before the bytes are made: a position far up needs gigabytes for the keys below it."""
    if size > _LARGEST_BYTES:
        raise LimitError(
            f"a deletion vector holds at most {_LARGEST_BYTES} bytes, these positions need {size}"
        )
