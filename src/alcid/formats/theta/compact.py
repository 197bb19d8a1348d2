"""The compact form of a theta sketch, which a Puffin blob holds, little-endian.

    version 3
        u8 longs before the hashes | u8 3 | u8 family 3 | u16 0 | u8 flags | u16 seed hash
        then u32 count, f32 p         if there are 2 longs or 3
        then u64 theta                if there are 3
        then u64 hashes
    version 4
        u8 longs before the count | u8 4 | u8 family 3 | u8 bits an entry | u8 bytes of the count
        u8 flags | u16 seed hash
        then u64 theta                if there are 2 longs
        then count | entries, highest bit first, the last byte filled up with zero bits

An entry of version 4 is the difference of a hash and the one before. Flags: 1 big-endian,
2 read-only, 4 empty, 8 compact, 16 ordered, 32 single. Theta is 2^63 - 1, and not stored, while no
hash was left out; p, the share of values that were looked at, is not used by readers.

Java and PyPI's datasketches differ in bytes that neither reads: an empty sketch has the seed hash 0
or 93cc, a single hash the flag 32 or not, and p is 1.0 or 0. All are read; Java's are written, in
version 3, which every reader of Puffin knows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from alcid._arrays import UInt64Array
from alcid.errors import FormatError
from alcid.formats.hashing import SEED_HASH
from alcid.formats.source import Section

MAX_THETA = (1 << 63) - 1

_FAMILY = 3
_BIG_ENDIAN, _READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = (1 << bit for bit in range(6))
_REQUIRED = _READ_ONLY | _COMPACT
_EMPTY_SKETCH = bytes.fromhex("01030300001e0000")
_MOST_HASHES = 1 << 21  # what 16 MiB of version 3 hold; writers keep 2^16, by default 2^12
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class CompactTheta:
    """What a sketch keeps: all hashes that it met below `theta`."""

    theta: int
    hashes: UInt64Array
    """Ascending, each above 0."""


def encode(sketch: CompactTheta) -> bytes:
    """Version 3, as Java writes it.

    >>> encode(CompactTheta(MAX_THETA, np.array([5], np.uint64))).hex(" ", 8)
    '01030300003acc93 0500000000000000'
    """
    count, estimating = len(sketch.hashes), sketch.theta < MAX_THETA
    if not count and not estimating:
        return _EMPTY_SKETCH
    single = count == 1 and not estimating
    flags = _REQUIRED | _ORDERED | (_SINGLE if single else 0)
    longs = 1 if single else 2 + estimating
    head = struct.pack("<BBBHBH", longs, 3, _FAMILY, 0, flags, SEED_HASH)
    if not single:
        head += struct.pack("<If", count, 1.0)
    if estimating:
        head += struct.pack("<Q", sketch.theta)
    return head + sketch.hashes.astype("<u8").tobytes()


@dataclass(frozen=True, slots=True)
class ThetaHead:
    """The first 8 bytes."""

    SIZE: ClassVar[int] = 8

    longs: int
    """Words of 8 bytes before the hashes, or in version 4 before the count."""
    version: int
    family: int
    entry_bits: int
    count_bytes: int
    flags: int
    seed_hash: int

    @classmethod
    def read(cls, section: Section) -> ThetaHead:
        """Read it, without checking what it says."""
        return cls(*struct.unpack("<BBBBBBH", section.read(0, cls.SIZE)))


def decode(section: Section) -> CompactTheta:
    """Read version 3 or 4; the section holds one sketch and nothing else.

    Raises:
        FormatError: Anything that no writer writes: a field out of its range, a length that does
            not fit the count, hashes that are not below theta, distinct and ascending.
    """
    head = ThetaHead.read(section)
    if head.family != _FAMILY:
        raise section.error("not a compact theta sketch", 2, f"family {head.family}", _FAMILY)
    if head.version not in (3, 4):
        raise section.error("unknown theta sketch version", 1, head.version, "3 or 4")
    if head.flags & _BIG_ENDIAN:
        raise section.error("big-endian theta sketch", 5, f"flags {head.flags:#04x}")
    if head.flags & _REQUIRED != _REQUIRED or head.flags >> 6:
        raise section.error(
            "bad theta sketch flags", 5, f"{head.flags:#04x}", "compact, read-only, none unknown"
        )
    empty = bool(head.flags & _EMPTY)
    if head.seed_hash != SEED_HASH and not (empty and head.seed_hash == 0):
        raise section.error(
            "hashes of another seed", 6, f"{head.seed_hash:#06x}", f"{SEED_HASH:#06x}"
        )
    return _version_3(section, head) if head.version == 3 else _version_4(section, head)


def _version_3(section: Section, head: ThetaHead) -> CompactTheta:
    longs, empty = head.longs, bool(head.flags & _EMPTY)
    most = 1 if head.flags & (_EMPTY | _SINGLE) else 3
    if not 1 <= longs <= most:
        raise section.error("bad number of longs", 0, longs, f"1 to {most}" if most > 1 else 1)
    if empty and head.flags & _SINGLE:
        raise section.error("bad theta sketch flags", 5, "empty and single", "one of them")
    count, theta = int(not empty), MAX_THETA
    if longs > 1:
        (count,) = struct.unpack("<I", section.read(8, 4))
    if longs > 2:
        theta = _theta(section, 16)
    start = 8 * longs
    _check_length(section, start + 8 * count)
    hashes = np.frombuffer(section.read(start, 8 * count), "<u8").astype(np.uint64)
    order = None if head.flags & _ORDERED else np.argsort(hashes, kind="stable")
    if order is not None:
        hashes = hashes[order]
    wrong = _first_wrong(hashes, theta, 0)
    if wrong is not None:
        position = wrong if order is None else int(order[wrong])
        raise _bad_hash(section, start + 8 * position, int(hashes[wrong]), theta)
    return CompactTheta(theta, hashes)


def _version_4(section: Section, head: ThetaHead) -> CompactTheta:
    if head.flags != _REQUIRED | _ORDERED:
        raise section.error("bad flags of version 4", 5, f"{head.flags:#04x}", "0x1a")
    if head.longs not in (1, 2):
        raise section.error("bad number of longs", 0, head.longs, "1 or 2")
    if not 1 <= head.entry_bits <= 63:
        raise section.error("bad number of bits", 3, head.entry_bits, "1 to 63")
    if not 1 <= head.count_bytes <= 4:
        raise section.error("bad number of bytes of the count", 4, head.count_bytes, "1 to 4")
    theta = _theta(section, 8) if head.longs == 2 else MAX_THETA
    at = 8 * head.longs
    count = int.from_bytes(section.read(at, head.count_bytes), "little")
    if not 1 <= count <= _MOST_HASHES:
        raise section.error("bad count", at, count, f"1 to {_MOST_HASHES}")
    start, bits = at + head.count_bytes, count * head.entry_bits
    size = (bits + 7) // 8
    _check_length(section, start + size)
    packed = section.read(start, size)
    if packed[-1] & (1 << (-bits & 7)) - 1:
        raise section.error("bits after the last entry", start + size - 1, "not zero", "zero")
    hashes = np.empty(count, np.uint64)
    previous = 0
    for first in range(0, count, _BLOCK):  # a bad one is found before all are unpacked
        block = hashes[first : first + _BLOCK]
        block[:] = _unpack(packed, head.entry_bits, first, len(block))
        block[0] += np.uint64(previous)  # below theta and of 63 bits: no overflow
        np.cumsum(block, out=block)
        wrong = _first_wrong(block, theta, previous)
        if wrong is not None:
            position = start + (first + wrong) * head.entry_bits // 8
            raise _bad_hash(section, position, int(block[wrong]), theta)
        previous = int(block[-1])
    return CompactTheta(theta, hashes)


def _unpack(packed: bytes, bits: int, first: int, count: int) -> UInt64Array:
    """Entries of `bits` bits: eight bytes from where each begins, and what juts into a ninth."""
    begin, end = first * bits // 8, ((first + count) * bits + 7) // 8
    data = np.frombuffer(packed[begin:end] + bytes(8), np.uint8)  # a word begins at every byte
    at = np.arange(first * bits, (first + count) * bits, bits, dtype=np.int64) - 8 * begin
    byte, shift = at >> 3, (at & 7).astype(np.uint64)
    every = np.ndarray(len(data) - 7, ">u8", data, strides=(1,))
    entries: UInt64Array = every[byte].astype(np.uint64) << shift
    entries |= data[byte + 8].astype(np.uint64) >> (np.uint64(8) - shift)
    return entries >> np.uint64(64 - bits)


def _theta(section: Section, offset: int) -> int:
    (theta,) = struct.unpack("<Q", section.read(offset, 8))
    if not 0 < theta <= MAX_THETA:
        raise section.error("bad theta", offset, theta, f"1 to {MAX_THETA}")
    return int(theta)


def _check_length(section: Section, expected: int) -> None:
    if section.length != expected:
        raise section.error(
            "theta sketch of another length", expected, f"{section.length} bytes", expected
        )


def _first_wrong(hashes: UInt64Array, theta: int, previous: int) -> int | None:
    """The first hash that is not above the one before, or not below `theta`."""
    before = np.concatenate((np.array([previous], np.uint64), hashes[:-1]))
    wrong = np.flatnonzero((hashes <= before) | (hashes >= np.uint64(theta)))
    return int(wrong[0]) if len(wrong) else None


def _bad_hash(section: Section, offset: int, found: int, theta: int) -> FormatError:
    return section.error("bad hash", offset, found, f"ascending, above 0 and below {theta}")
