"""Paimon's file index container: the indexes of one data file.

    i64 magic 1493475289347502 | i32 version 1 | i32 head length | i32 columns
      column: utf name | i32 indexes
        index: utf type | i32 start | i32 length      start from the first byte; -1: nothing written
    i32 redundant length | redundant bytes
    the indexes, back to back, in the order of the head

The container has no checksum. What breaks its structure is seen; a flipped bit inside an index is
seen only if it breaks that index.

Most files of a table have the same indexes, so the heads of their containers differ only in where
each index is: `ContainerHeads` parses one head and compares the others with it, all at once.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alcid._arrays import BoolArray, IntArray, UInt8Array
from alcid.errors import FormatError, LimitError
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.source import Section, Source

MAGIC = 1493475289347502
VERSION = 1
_FIXED = 16
_NOT_WRITTEN = -1
_LARGEST = (1 << 31) - 1
_REDUNDANT_LENGTH = 4
_LEAST_COLUMN = 6  # bytes of an empty name and a count
_LEAST_INDEX = 10  # bytes of an empty type, start and length


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an index lies in its container."""

    column: str
    index_type: str
    start: int
    length: int

    @property
    def is_empty(self) -> bool:
        """True when nothing was written: the index of a map key in a file without rows."""
        return self.start == _NOT_WRITTEN


@dataclass(frozen=True, slots=True)
class Container:
    """The head of a container. Opening it reads the head and nothing else."""

    source: Source
    head_length: int
    entries: tuple[Entry, ...]
    """In the order of the head. A type that a column repeats is there once, as it came last."""
    redundant: int
    """Bytes of the head that this version has no use for."""

    @classmethod
    def open(cls, source: Source) -> Container:
        """Read and check the head."""
        head_length, every, end = read_head(source)
        last = {(entry.column, entry.index_type): entry for _, entry in every}
        redundant = max(head_length - end - _REDUNDANT_LENGTH, 0)
        return cls(source, head_length, tuple(last.values()), redundant)

    def section(self, entry: Entry) -> Section:
        """The payload of an entry that is not empty."""
        return Section(self.source, entry.start, entry.length)


def read_head(source: Source) -> tuple[int, list[tuple[int, Entry]], int]:
    """The length of the head, its entries with the places of their numbers, and where they end.

    Raises:
        FormatError: It is damaged.
    """
    whole = Section(source)
    cursor = Cursor(whole, window=_FIXED)
    if (magic := cursor.i64()) != MAGIC:
        raise whole.error("not a file index: bad magic", 0, found=magic, expected=MAGIC)
    if (version := cursor.i32()) != VERSION:
        raise whole.error("unknown container version", 8, found=version, expected=VERSION)
    head_length = cursor.count("head length", source.size)
    cursor = Cursor(whole.section(0, head_length), _FIXED, window=head_length)
    every: list[tuple[int, Entry]] = []
    for _ in range(cursor.count("column count", head_length // _LEAST_COLUMN)):
        column = cursor.utf()
        for _ in range(cursor.count("index count", head_length // _LEAST_INDEX)):
            index_type, at = cursor.utf(), cursor.position
            every.append((at, Entry(column, index_type, cursor.i32(), cursor.i32())))
    _check(whole, head_length, every)
    return head_length, every, cursor.position


def _check(whole: Section, head_length: int, entries: list[tuple[int, Entry]]) -> None:
    """Indexes must fill the file behind the head without gaps, in whatever order.

    Writers keep to it, and a wrong length would let a bloom filter lose rows unseen.
    """
    end = head_length
    for at, entry in sorted(entries, key=lambda pair: (pair[1].start, pair[1].length)):
        in_place = entry.length == 0 if entry.is_empty else entry.start == end
        if not in_place or entry.length < 0:
            raise whole.error(
                f"index {entry.index_type} of {entry.column!r} out of place",
                at,
                found=f"{entry.length} bytes from {entry.start}",
                expected=f"from {end}",
            )
        end += entry.length
    if end != whole.length:
        raise whole.error("indexes do not fill the file", end, found=whole.length, expected=end)


def write_container(payloads: Mapping[tuple[str, str], bytes | None]) -> bytes:
    """Write the payloads by (column, index type), sorted; None is written as an empty entry.

    >>> write_container({}).hex(" ", -4)
    '00054e4e d01a35ae 00000001 00000018 00000000 00000000'
    """
    columns: dict[str, list[tuple[str, bytes | None]]] = {}
    for (column, index_type), payload in sorted(payloads.items(), key=lambda item: item[0]):
        columns.setdefault(column, []).append((index_type, payload))
    head_length = _head(columns, 0).length
    head = _head(columns, head_length)
    body = [payload for indexes in columns.values() for _, payload in indexes if payload]
    return b"".join((head.to_bytes(), *body))


def _head(columns: Mapping[str, list[tuple[str, bytes | None]]], head_length: int) -> Writer:
    writer = Writer().i64(MAGIC).i32(VERSION, head_length, len(columns))
    start = head_length
    for column, indexes in columns.items():
        writer.utf(column).i32(len(indexes))
        for index_type, payload in indexes:
            length = len(payload or b"")
            if start + length > _LARGEST:
                raise LimitError(
                    f"a file index holds at most {_LARGEST} bytes: "
                    f"{index_type} of {column!r} does not fit"
                )
            writer.utf(index_type).i32(_NOT_WRITTEN if payload is None else start, length)
            start += length
    return writer.i32(0)


_NUMBERS = 8  # bytes of a start and a length
_HEAD_LENGTH = struct.Struct(">12xi")  # the length of the head, behind magic and version
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
    head: UInt8Array
    places: IntArray
    """Where the bytes of the numbers are."""
    is_text: BoolArray
    """Which bytes are not those of numbers."""

    @classmethod
    def of(cls, head: bytes, entries: list[tuple[int, Entry]]) -> _Shape:
        ends = [0, *(at + _NUMBERS for at, _ in entries)]
        starts = [*(at for at, _ in entries), len(head)]
        lengths = [start - end for start, end in zip(starts, ends, strict=True)]
        numbers = struct.Struct(">" + "ii".join(f"{length}s" for length in lengths))
        positions = np.add.outer(np.array([at for at, _ in entries], np.int64), np.arange(_NUMBERS))
        is_text = np.ones(len(head), bool)
        is_text[positions] = False
        return cls(
            tuple(entry for _, entry in entries),
            numbers,
            numbers.unpack(head)[::3],
            np.frombuffer(head, np.uint8),
            positions.ravel(),
            is_text,
        )

    def read(self, data: bytes, size: int) -> list[Entry] | None:
        """The entries of a container of `size` bytes; None if its head is another, or is wrong."""
        numbers = self.numbers.unpack_from(data)
        if numbers[::3] != self.texts:
            return None
        ranges = list(zip(numbers[1::3], numbers[2::3], strict=True))
        end = self.numbers.size
        for start, length in sorted(ranges):
            if start != end or length < 0:
                return None
            end += length
        if end != size:
            return None
        return [
            Entry(entry.column, entry.index_type, *place)
            for entry, place in zip(self.entries, ranges, strict=True)
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
        names = tuple((entry.column, entry.index_type) for entry in self.entries)
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
        length = _HEAD_LENGTH.unpack_from(begin)[0] if len(begin) >= _HEAD_LENGTH.size else 0
        shape = self._shapes.get(length) if length <= len(begin) else None
        entries = None if shape is None else shape.read(begin, source.size)
        if entries is not None:
            return entries
        length, every, _ = read_head(source)
        if length <= min(len(begin), _LONGEST):
            self._shapes[length] = _Shape.of(begin[:length], every)
        return [index for _, index in every]

    def read_like(self, begins: Sequence[bytes], sizes: Sequence[int]) -> list[LikeHeads]:
        """The entries of those containers whose heads are alike.

        Others are to be read one by one; so are those that are damaged, as `read` says how.

        Args:
            begins: What is at hand of the first bytes of each container.
            sizes: Their bytes.
        """
        at_hand = np.fromiter(map(len, begins), np.int64, len(begins))
        fixed = b"".join(
            [begin[: _HEAD_LENGTH.size].ljust(_HEAD_LENGTH.size, b"\0") for begin in begins]
        )
        lengths = np.frombuffer(fixed, ">i4").reshape(-1, _HEAD_LENGTH.size // 4)[:, -1]
        every = np.array(sizes, np.int64)
        heads = []
        for length in np.unique(lengths).tolist():
            members = np.flatnonzero((lengths == length) & (at_hand >= length))
            if not _HEAD_LENGTH.size <= length <= _LONGEST or not len(members):
                continue
            chosen = [begins[member] for member in members.tolist()]
            shape = self._shapes.get(length) or self._learn(chosen[0], int(every[members[0]]))
            if shape is not None:
                heads.append(shape.read_like(chosen, every[members], members))
        return heads

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
