"""Deletion vectors: the positions of the deleted rows of one data file."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from alcid.errors import LimitError, OptionError, UnsupportedError, require
from alcid.formats.deletion_vector.encoding import LARGEST_POSITIONS, Bits, decode, encode
from alcid.formats.deletion_vector.positions import (
    LARGEST_POSITION,
    Bitmaps,
    Positions,
    between,
    contains,
    group,
    largest,
)
from alcid.formats.source import BytesSource, Section
from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text

if TYPE_CHECKING:
    from alcid.pictures.page import Markup

__all__ = ["DeletionVector"]

_MOST_ROWS = 1 << 32
_MOST_DRAWN = 1 << 23


class DeletionVector(Shown):
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
        found = vector.cardinality
        if cardinality is not None and found != cardinality:
            raise section.error("deletion vector of another cardinality", 0, found, cardinality)
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
    ) -> npt.NDArray[np.bool_]:
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

    def to_numpy(self) -> npt.NDArray[np.int64]:
        """The positions, ascending."""
        return between(self._bitmaps, 0, LARGEST_POSITION)

    def union(self, other: DeletionVector) -> DeletionVector:
        """The positions of both, with 64 bits if either has."""
        if not isinstance(other, DeletionVector):
            found = type(other).__name__
            raise UnsupportedError(f"union: found {found}, expected a DeletionVector")
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

    def picture(self) -> tuple[str, list[Markup]]:
        """How many rows are deleted, and where they are dense."""
        from alcid.pictures.bytes import distribution
        from alcid.pictures.page import element

        title = f"Deletion vector of {self._bits} bits"
        first, last = self.first, self.last
        if first is None or last is None:
            return title, [element("p", f"{title}: no row is deleted.")]
        said = f"{title}: {count_text(self.cardinality, 'row')} from {first:,} to {last:,}."
        if self.cardinality > _MOST_DRAWN:  # few bytes can state billions
            return title, [element("p", said)]
        spread = distribution(self.to_numpy(), 0, last, what="deleted rows")
        return title, [element("p", said), spread]

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
