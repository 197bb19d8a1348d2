"""Deletion vectors: the positions of the deleted rows of one data file.

    i32 BE S | body of S bytes | u32 BE CRC-32 of the body

    body, 32 bits      i32 BE 1581511376 | bitmap
    body, 64 bits      i32 LE 1681511377 | i64 LE n | n x (i32 LE key | bitmap)     keys ascending

A bitmap is a Roaring bitmap (see `alcid.formats.roaring`); its key is the upper half of its
positions. Paimon writes both kinds into index files, Iceberg the second as a blob of Puffin. Both
write an empty bitmap for each key below the last that has no positions, and can read without it.
"""

from __future__ import annotations

import operator
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from alcid._arrays import BoolArray, Int64Array
from alcid.errors import ChecksumError, LimitError, OptionError, UnsupportedError, require
from alcid.formats import roaring
from alcid.formats.deletion_vector.positions import (
    LARGEST_KEY,
    LARGEST_POSITION,
    Bitmaps,
    Positions,
    between,
    contains,
    group,
    largest,
)
from alcid.formats.source import BytesSource, Section

if TYPE_CHECKING:
    pass

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
        length = f"{len(data)} bytes"
        raise section.error(
            "truncated deletion vector", 0, length, f"{LEAST_BODY + AROUND} at least"
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
            left = f"{len(body) - at} bytes"
            raise section.error("truncated bitmap", at + 4, left, f"{_LEAST_BITMAP} at least")
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


_MOST_ROWS = 1 << 32


class DeletionVector:
    """The positions of the rows of a data file that are deleted. It never changes.

    Do not use it for rows that are to be found again after the file was rewritten: a position means
    nothing without the very file it was counted in.

    >>> vector = DeletionVector([2, 3])
    >>> vector | DeletionVector([1])
    DeletionVector([1, 2, 3], bits=32)
    >>> 2 in vector, vector.contains(np.arange(5)).tolist()
    (True, [False, False, True, True, False])
    >>> vector.to_bytes().hex(" ", -4)
    '00000018 5e43f2d0 3a300000 01000000 00000100 10000000 02000300 c898f63d'
    >>> DeletionVector.from_bytes(vector.to_bytes(bits=64)) == vector
    True
    """

    __slots__ = ("_bitmaps", "_bits")

    _bitmaps: Bitmaps  # never handed out: who has a BitMap can change it
    _bits: Bits

    def __init__(
        self, positions: Positions | DeletionVector = (), *, bits: Bits | None = None
    ) -> None:
        """Hold `positions`, in any order and repeated or not.

        Args:
            positions: Integers: an iterable, a NumPy or Arrow array, a BitMap, another vector.
            bits: The kind that `to_bytes` writes. 32 goes up to position 2147483647, and is the
                default where that is enough.

        Raises:
            LimitError: A position is negative or beyond the kind.
            UnsupportedError: A position is not an integer, or null.
            OptionError: There is no such kind.
        """
        if isinstance(positions, DeletionVector):
            self._bitmaps = positions._bitmaps
        else:
            self._bitmaps = group(positions)
        fits = (self.last or 0) <= LARGEST_POSITIONS[32]
        self._bits = self._checked((32 if fits else 64) if bits is None else bits)

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        cardinality: int | None = None,
        *,
        name: str = "<bytes>",
    ) -> DeletionVector:
        """Read a vector of either kind from the whole of `data`.

        Args:
            data: The length, the body and its checksum, and nothing else.
            cardinality: How many positions there must be, as a manifest tells.
            name: What errors call the bytes.

        Raises:
            FormatError: The bytes are damaged, or hold another number of positions.
        """
        return cls.read(Section(BytesSource(data, name)), cardinality)

    @classmethod
    def read(
        cls, section: Section, cardinality: int | None = None, *, data: bytes | None = None
    ) -> DeletionVector:
        """Read a vector from the whole of `section`, whose bytes are `data` if read already."""
        bits, bitmaps = decode(section, section.read(0, section.length) if data is None else data)
        vector = cls._of(bits, bitmaps)
        count = vector.cardinality
        if cardinality is not None and count != cardinality:
            raise section.error("deletion vector of another cardinality", 0, count, cardinality)
        return vector

    def to_bytes(self, bits: Bits | None = None) -> bytes:
        """The bytes that Paimon and Iceberg write for these positions.

        Args:
            bits: The kind, by default that of the vector.

        Raises:
            LimitError: A position is beyond the kind, or there would be more than 2 GiB.
            OptionError: There is no such kind.
        """
        return encode(self._bits if bits is None else self._checked(bits), self._bitmaps)

    @property
    def bits(self) -> Bits:
        """The kind: 32 or 64."""
        return self._bits

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return sum(map(len, self._bitmaps.values()))

    @property
    def first(self) -> int | None:
        """The lowest position, None if there is none."""
        return next(iter(self), None)

    @property
    def last(self) -> int | None:
        """The highest position, None if there is none."""
        return largest(self._bitmaps)

    def contains(
        self, positions: npt.NDArray[Any] | pa.Array | pa.ChunkedArray | Iterable[int]
    ) -> BoolArray:
        """Whether the row at each of these positions is deleted; no row is, beyond the limits."""
        return contains(self._bitmaps, positions)

    def live_rows(self, row_count: int, rows: AbstractBitMap | None = None) -> BitMap:
        """The rows that are not deleted.

        Args:
            row_count: How many rows the data file has.
            rows: Of these only, as a file index gives them: None for any row.

        Raises:
            LimitError: More rows than a bitmap holds, or a negative number.

        >>> list(DeletionVector([1, 3]).live_rows(5))
        [0, 2, 4]
        """
        count = operator.index(row_count)
        if not 0 <= count <= _MOST_ROWS:
            raise LimitError(f"row_count: found {count}, expected 0 to {_MOST_ROWS}")
        live = BitMap(range(count))
        if rows is not None:
            live &= BitMap(require(rows, AbstractBitMap, "rows"))
        deleted = self._bitmaps.get(0)  # a bitmap has 32 bits, so that no other key matters
        return live if deleted is None else live - deleted

    def to_numpy(self) -> Int64Array:
        """The positions, ascending."""
        return between(self._bitmaps, 0, LARGEST_POSITION)

    def union(self, other: DeletionVector) -> DeletionVector:
        """The positions of both, with 64 bits if either has."""
        if not isinstance(other, DeletionVector):
            kind = type(other).__name__
            raise UnsupportedError(f"union: found {kind}, expected a DeletionVector")
        bitmaps = dict(self._bitmaps)
        for key, bitmap in other._bitmaps.items():
            bitmaps[key] = bitmaps[key] | bitmap if key in bitmaps else bitmap
        return self._of(max(self._bits, other._bits), dict(sorted(bitmaps.items())))

    def __or__(self, other: object) -> DeletionVector:
        return self.union(other) if isinstance(other, DeletionVector) else NotImplemented

    def __contains__(self, position: object) -> bool:
        if not isinstance(position, int | np.integer) or isinstance(position, bool):
            return False
        bitmap = self._bitmaps.get(int(position) >> 32)
        return bitmap is not None and int(position) & 0xFFFFFFFF in bitmap

    def __iter__(self) -> Iterator[int]:
        for key, bitmap in self._bitmaps.items():
            for low in bitmap:
                yield key << 32 | low

    def __len__(self) -> int:
        return self.cardinality

    def __bool__(self) -> bool:
        return bool(self._bitmaps)

    def __eq__(self, other: object) -> bool:
        """Whether the positions are the same, whatever the kinds."""
        if not isinstance(other, DeletionVector):
            return NotImplemented
        return self._bitmaps == other._bitmaps

    def __hash__(self) -> int:
        return hash((self.cardinality, self.first, self.last))

    def __repr__(self) -> str:
        few = self.cardinality <= 8
        shown = list(self) if few else f"<{self.cardinality} from {self.first} to {self.last}>"
        return f"DeletionVector({shown}, bits={self._bits})"

    @classmethod
    def _of(cls, bits: Bits, bitmaps: Bitmaps) -> DeletionVector:
        vector = cls.__new__(cls)
        vector._bits, vector._bitmaps = bits, bitmaps
        return vector

    def _checked(self, bits: Bits) -> Bits:
        """A kind that exists and holds the positions."""
        if bits not in tuple(LARGEST_POSITIONS):
            raise OptionError(f"bits: found {bits!r}, expected 32 or 64")
        if (self.last or 0) > LARGEST_POSITIONS[bits]:
            most = LARGEST_POSITIONS[bits]
            raise LimitError(f"position {self.last} is beyond {bits} bits: at most {most}")
        return bits
