"""The heads of many containers: most files of a table have the same indexes.

Their heads then differ in nothing but where each index is, so one is parsed, and of the others it
is seen whether all else is the same: of all together, where these are at hand.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.formats.arrays import IntArray
from alcid.formats.file_index.container import Entry, read_head
from alcid.formats.source import Source

__all__ = ["ContainerHeads", "LikeHeads"]

_NUMBERS = 8  # bytes of a start and a length
_FIXED = struct.Struct(">12xi")  # the length of the head, behind magic and version
_LONGEST = 4 << 10  # of heads that are compared


@dataclass(frozen=True, slots=True, eq=False)
class LikeHeads:
    """Containers that have indexes of the same names."""

    members: IntArray
    """Which of all that were given."""
    names: tuple[tuple[str, str], ...]
    """Column and type of each index; of one that is there twice the last counts."""
    starts: IntArray
    """A row for each container, and a column for each index."""
    lengths: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """What a head says, but for where its indexes are."""

    entries: tuple[Entry, ...]
    numbers: struct.Struct
    """The bytes before the first pair of numbers, that pair, the bytes behind it, and so on."""
    texts: tuple[bytes, ...]
    head: npt.NDArray[np.uint8]
    places: IntArray
    """Where the bytes of the numbers are."""
    is_text: npt.NDArray[np.bool_]
    """Which bytes are not those of numbers."""

    @classmethod
    def of(cls, head: bytes, entries: list[tuple[int, Entry]]) -> _Shape:
        ends = [0, *(at + _NUMBERS for at, _ in entries)]
        starts = [*(at for at, _ in entries), len(head)]
        lengths = [start - end for start, end in zip(starts, ends, strict=True)]
        numbers = struct.Struct(">" + "ii".join(f"{length}s" for length in lengths))
        places = np.add.outer(np.array([at for at, _ in entries], np.int64), np.arange(_NUMBERS))
        is_text = np.ones(len(head), bool)
        is_text[places] = False
        return cls(
            tuple(one for _, one in entries),
            numbers,
            numbers.unpack(head)[::3],
            np.frombuffer(head, np.uint8),
            places.ravel(),
            is_text,
        )

    def read(self, data: bytes, size: int) -> list[Entry] | None:
        """The entries of a container of `size` bytes; None if its head is another, or is wrong."""
        found = self.numbers.unpack_from(data)
        if found[::3] != self.texts:
            return None
        places = list(zip(found[1::3], found[2::3], strict=True))
        end = self.numbers.size
        for start, length in sorted(places):
            if start != end or length < 0:
                return None
            end += length
        if end != size:
            return None
        return [
            Entry(one.column, one.index_type, *place)
            for one, place in zip(self.entries, places, strict=True)
        ]

    def read_like(self, begins: Sequence[bytes], sizes: IntArray, members: IntArray) -> LikeHeads:
        """The same of many, each at least as long as the head; those of which it is None are out.

        Args:
            begins: What is at hand of each.
            sizes: Their bytes.
            members: What to call each of them.
        """
        length = len(self.head)
        joined = b"".join([begin[:length] for begin in begins])
        heads = np.frombuffer(joined, np.uint8).reshape(-1, length)
        is_like = (heads[:, self.is_text] == self.head[self.is_text]).all(axis=1)
        numbers = np.ascontiguousarray(heads[:, self.places]).view(">i4").astype(np.int64)
        starts, lengths = numbers[:, ::2], numbers[:, 1::2]
        order = np.argsort((starts << 32) + lengths, axis=1)  # as pairs are sorted
        sorted_lengths = np.take_along_axis(lengths, order, axis=1)
        ends = length + np.cumsum(sorted_lengths, axis=1)
        expected = ends - sorted_lengths
        is_like &= (np.take_along_axis(starts, order, axis=1) == expected).all(axis=1)
        is_like &= (lengths >= 0).all(axis=1)
        is_like &= length + lengths.sum(axis=1) == sizes
        names = tuple((one.column, one.index_type) for one in self.entries)
        return LikeHeads(members[is_like], names, starts[is_like], lengths[is_like])


class ContainerHeads:
    """Reads heads, and keeps what is the same in them."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._shapes: dict[int, _Shape] = {}

    def read(self, source: Source, begin: bytes) -> list[Entry]:
        """The entries of a container; `begin` is what is at hand of its first bytes.

        Raises:
            FormatError: It is damaged.
        """
        length = _FIXED.unpack_from(begin)[0] if len(begin) >= _FIXED.size else 0
        shape = self._shapes.get(length) if length <= len(begin) else None
        entries = None if shape is None else shape.read(begin, source.size)
        if entries is not None:
            return entries
        length, every, _ = read_head(source)
        if length <= min(len(begin), _LONGEST):
            self._shapes[length] = _Shape.of(begin[:length], every)
        return [one for _, one in every]

    def read_like(self, begins: Sequence[bytes], sizes: Sequence[int]) -> list[LikeHeads]:
        """The entries of those containers whose heads are alike.

        Others are to be read one by one; so are those that are damaged, as `read` says how.

        Args:
            begins: What is at hand of the first bytes of each container.
            sizes: Their bytes.
        """
        at_hand = np.fromiter(map(len, begins), np.int64, len(begins))
        fixed = b"".join([begin[: _FIXED.size].ljust(_FIXED.size, b"\0") for begin in begins])
        lengths = np.frombuffer(fixed, ">i4").reshape(-1, _FIXED.size // 4)[:, -1]
        every = np.array(sizes, np.int64)
        found = []
        for length in np.unique(lengths).tolist():
            members = np.flatnonzero((lengths == length) & (at_hand >= length))
            if not _FIXED.size <= length <= _LONGEST or not len(members):
                continue
            chosen = [begins[member] for member in members.tolist()]
            shape = self._shapes.get(length) or self._learn(chosen[0], int(every[members[0]]))
            if shape is not None:
                found.append(shape.read_like(chosen, every[members], members))
        return found

    def _learn(self, begin: bytes, size: int) -> _Shape | None:
        """The shape of a container of which the whole head is at hand; None if it is damaged."""
        try:
            length, every, _ = read_head(_Beginning(begin, size))
        except FormatError:
            return None
        self._shapes[length] = _Shape.of(begin[:length], every)
        return self._shapes[length]


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first bytes of a container, as if they were all of it."""

    data: bytes
    size: int
    name: str = ""

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]
