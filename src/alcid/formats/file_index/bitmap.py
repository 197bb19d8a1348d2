"""Paimon's bitmap index, versions 1 and 2: the rows of every distinct value.

    u8 version | i32 rows | i32 distinct | u8 has null [| i32 null offset [| i32 null length]]
    version 1: distinct x (key | i32 offset)
    version 2: i32 blocks | blocks x (first key | i32 block offset) | i32 length of all blocks
               block: i32 entries | entries x (key | i32 offset | i32 length)
    bitmaps, back to back; offsets count from here

A value in a single row has no bitmap: its offset is -1 - row and its length, in version 2, is -1.
The keys of version 2 are sorted, so that one block answers for a value; version 1 is read whole.

Answers equality, IN, their negations and null, with rows. Do not use it for ranges, or for columns
in which nearly every value is different: it grows larger than the column.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from pyroaring import BitMap

from alcid._arrays import IntArray, UInt32Array
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.dictionary import chunk_starts, encode, key_sizes
from alcid.formats.file_index.distinct import Groups, check_size, group
from alcid.formats.file_index.keys import (
    Key,
    KeyColumn,
    Keys,
    KeyType,
    are_ascending,
    is_below,
    key_array,
)
from alcid.formats.file_index.reader import IndexReader, Selection
from alcid.formats.roaring import Serialized, load, parse, serialize_rows, to_rows
from alcid.formats.source import Section

V1, V2 = 1, 2
SINGLE_LENGTH = -1
_SERIALIZED_SINGLE = 18  # what Paimon states as the length of a null bitmap that it does not write
_ENTRY = 8
_BLOCK_HEAD = 4


@dataclass(frozen=True, slots=True)
class BitmapHead:
    """The head, which is the same for every type of column."""

    version: int
    row_count: int
    distinct: int
    null_offset: int | None
    """-1 - row of a single null; else where the bitmap of the nulls is; None without nulls."""
    null_length: int | None
    """Only in version 2."""

    @classmethod
    def read(cls, cursor: Cursor) -> BitmapHead:
        """Read and check the head."""
        if (version := cursor.u8()) not in (V1, V2):
            raise cursor.section.error(
                "unknown bitmap version", 0, found=version, expected=f"{V1} or {V2}"
            )
        row_count = cursor.count("row count")
        distinct = cursor.count("distinct count", row_count)
        null_offset = null_length = None
        if cursor.flag("null"):
            null_offset = cursor.i32()
            null_length = cursor.i32() if version == V2 else None
        return cls(version, row_count, distinct, null_offset, null_length)


def build(column: KeyColumn, *, version: int = V2, index_block_size: int = 16384) -> bytes:
    """Build the index.

    Raises:
        LimitError: Its keys are too long together.
    """
    check_size(column)
    groups, nulls = group(column), column.null_rows
    bitmaps, offsets, lengths = _bodies(groups, nulls)
    writer = Writer().u8(version).i32(column.row_count, len(groups.keys)).u8(bool(len(nulls)))
    if len(nulls):
        writer.i32(0 if len(nulls) > 1 else -1 - int(nulls[0]))
        if version == V2:
            null_length = int(bitmaps.offsets[1]) if len(nulls) > 1 else _SERIALIZED_SINGLE
            writer.i32(null_length)
    if version == V1:
        entries = encode(column.key_type, groups.keys, (offsets,))
        writer.raw(entries.slice(0, len(groups.keys)))
    else:
        _write_blocks(writer, column, groups, offsets, lengths, index_block_size)
    return writer.raw(bitmaps.data.tobytes()).to_bytes()


def _bodies(groups: Groups, nulls: IntArray) -> tuple[Serialized, IntArray, IntArray]:
    """The bitmaps, that of the nulls first, and offset and length of every key."""
    counts = np.diff(groups.starts)
    several = counts > 1
    first_rows = groups.rows[groups.starts[:-1]].astype(np.int64)
    null_count = len(nulls) if len(nulls) > 1 else 0
    rows = np.concatenate((nulls[:null_count], groups.rows[np.repeat(several, counts)]))
    sizes = np.append([null_count] if null_count else [], counts[several]).astype(np.int64)
    bitmaps = serialize_rows(rows, np.append(0, np.cumsum(sizes)))
    offsets, lengths = -1 - first_rows, np.full(len(counts), SINGLE_LENGTH)
    own = bitmaps.offsets[1 if null_count else 0 :]
    offsets[several], lengths[several] = own[:-1], np.diff(own)
    return bitmaps, offsets, lengths


def _write_blocks(
    writer: Writer,
    column: KeyColumn,
    groups: Groups,
    offsets: IntArray,
    lengths: IntArray,
    block_size: int,
) -> None:
    """The directory of blocks, and the blocks."""
    key_type, keys = column.key_type, groups.keys
    costs = key_sizes(key_type, keys) + _ENTRY
    starts = chunk_starts(costs, block_size - _BLOCK_HEAD, first_is_free=False)
    entries = encode(key_type, keys, (offsets, lengths))
    blocks = [
        Writer().i32(int(end - begin)).raw(entries.slice(begin, end)).to_bytes()
        for begin, end in pairwise(starts)
    ]
    block_offsets = np.append(0, np.cumsum([len(block) for block in blocks])).astype(np.int64)
    directory = encode(key_type, keys.take(starts[:-1]), (block_offsets[:-1],))
    writer.i32(len(blocks)).raw(directory.slice(0, len(blocks))).i32(int(block_offsets[-1]))
    writer.raw(b"".join(blocks))


_I32 = struct.Struct(">i")


def dictionary_record(key_type: KeyType, *numbers: str) -> np.dtype[Any]:
    """The layout of an entry with a key of one width and these numbers."""
    return np.dtype([("key", key_type.stored), *((number, ">i4") for number in numbers)])


class BitmapBlock:
    """One sorted block of keys."""

    def __init__(self, section: Section, key_type: KeyType) -> None:
        """Read the block, which must be filled by its entries and in order."""
        cursor = Cursor(section, window=section.length)
        count = cursor.count("entry count", section.length // 9)
        cursor.position = 0
        data = cursor.take(section.length)
        if key_type.is_bytes:
            self._keys_from(section, data, count)
        else:
            record = dictionary_record(key_type, "offset", "length")
            if count == 0 or section.length != 4 + count * record.itemsize:
                raise section.error(
                    "block of another length",
                    0,
                    found=section.length,
                    expected=f"{count} entries of {record.itemsize} bytes",
                )
            stored = np.frombuffer(data, record, count, 4)
            keys = key_type.from_stored(stored["key"])
            if (keys[1:] <= keys[:-1]).any():
                raise section.error("keys of a block not in order", 4)
            # Arrays, as one key is looked for and lists of all would cost more than that.
            self._keys: Any = keys
            self._offsets: Any = stored["offset"]
            self._lengths: Any = stored["length"]

    def _keys_from(self, section: Section, data: bytes, count: int) -> None:
        keys: list[Key] = []
        offsets, lengths = [], []
        at, previous, unpack = 4, None, struct.Struct(">ii").unpack_from
        try:
            for _ in range(count):
                (size,) = _I32.unpack_from(data, at)
                key = data[at + 4 : at + 4 + size]
                if size < 0 or (previous is not None and key <= previous):
                    raise section.error("keys of a block not in order", at)
                offset, length = unpack(data, at + 4 + size)
                keys.append(key)
                offsets.append(offset)
                lengths.append(length)
                previous, at = key, at + 12 + size
        except struct.error:
            raise section.error("truncated block", at) from None
        if not count or at != section.length:
            raise section.error("block of another length", 0, found=section.length, expected=at)
        self._keys, self._offsets, self._lengths = keys, offsets, lengths

    @property
    def ends(self) -> tuple[Key, Key]:
        """The least and the greatest key."""
        first, last = self._keys[0], self._keys[-1]
        return (first, last) if isinstance(first, bytes) else (int(first), int(last))

    def find(self, key: Key) -> tuple[int, int] | None:
        """Offset and length of the rows of `key`, if it is there."""
        index = bisect_right(self._keys, key) - 1
        if index < 0 or self._keys[index] != key:
            return None
        return int(self._offsets[index]), int(self._lengths[index])

    def entries(self) -> Iterator[tuple[Key, int, int]]:
        """Key, offset and length of every entry."""
        columns = (np.asarray(c).tolist() for c in (self._offsets, self._lengths))
        keys = self._keys if isinstance(self._keys, list) else self._keys.tolist()
        yield from zip(keys, *columns, strict=True)


_HEAD_WINDOW = 64
_DIRECTORY_WINDOW = 4096


def open_bitmap(section: Section, key_type: KeyType) -> BitmapReader:
    """Open a payload of either version."""
    cursor = Cursor(section, window=_HEAD_WINDOW)
    head = BitmapHead.read(cursor)
    return (_ReaderV1 if head.version == V1 else _ReaderV2)(cursor, key_type, head)


class BitmapReader(IndexReader, ABC):
    """What both versions share: the head, null rows, sets of keys."""

    def __init__(self, cursor: Cursor, key_type: KeyType, head: BitmapHead) -> None:
        """Use the payload under the cursor, which stands behind the `head`."""
        self._section, self._key_type, self.head = cursor.section, key_type, head
        self.dictionary_at = cursor.position
        """Where the dictionary begins, or in version 2 the directory of its blocks."""
        self.row_count = head.row_count

    @abstractmethod
    def places(self) -> Iterator[tuple[Key, int, int | None]]:
        """Every key with offset and length of its rows, in the order of the file."""

    def items(self) -> Iterator[tuple[Key, BitMap]]:
        """Every key with its rows, in the order of the file; version 2 has them ascending."""
        used = 0
        for key, offset, length in self.places():
            rows, size = self._bitmap(offset, length)
            used = self._without_overlap(used + size)
            yield key, rows

    @abstractmethod
    def _find(self, key: Key) -> tuple[int, int | None] | None:
        """Offset and length of the rows of `key`, if it is there."""

    @property
    @abstractmethod
    def body_at(self) -> int:
        """Where the bitmaps begin."""

    @property
    @abstractmethod
    def blocks(self) -> list[tuple[int, int]]:
        """Where each block of the dictionary begins and ends; none in version 1."""

    @property
    @abstractmethod
    def block_size(self) -> int | None:
        """A block size by which the same keys come to the same blocks; None if there are none."""

    def contents(self) -> tuple[UInt32Array, Keys]:
        """Every row that has a key, and the keys.

        Raises:
            FormatError: Some rows must have several, as all keys have more rows than there are.
        """
        keys: list[Key] = []
        rows, counts, total = [np.zeros(0, np.uint32)], [], 0
        for key, bitmap in self.items():
            total += len(bitmap)
            if total > self.row_count:  # damage could state the same rows for each key
                expected = f"at most {self.row_count}"
                raise self._section.error("too many rows with a key", 0, total, expected)
            keys.append(key)
            rows.append(to_rows(bitmap))
            counts.append(len(bitmap))
        positions = np.repeat(np.arange(len(keys)), np.array(counts, np.int64))
        return np.concatenate(rows), key_array(keys, self._key_type).take(positions)

    @cached_property
    def nulls(self) -> BitMap:
        """Rows without a value."""
        if self.head.null_offset is None:
            return BitMap()
        length = SINGLE_LENGTH if self.head.null_offset < 0 else self.head.null_length
        return self._rows(self.head.null_offset, length)

    @cached_property
    def _not_null(self) -> BitMap:
        return self.nulls.flip(0, self.row_count)

    def is_null(self) -> Selection:
        """Rows without a value."""
        return Selection(self.nulls.copy())

    def is_not_null(self) -> Selection:
        """Rows with a value."""
        return Selection(self._not_null.copy())

    def is_in(self, keys: Sequence[Key]) -> Selection:
        """Rows with one of these keys."""
        return Selection(self._with(keys))

    def is_not_in(self, keys: Sequence[Key]) -> Selection:
        """Rows with a key that is none of these."""
        return Selection(self._not_null - self._with(keys))

    def _with(self, keys: Sequence[Key]) -> BitMap:
        used, bitmaps = 0, []
        for key in dict.fromkeys(keys):
            if (place := self._find(key)) is not None:
                rows, size = self._bitmap(*place)
                used = self._without_overlap(used + size)
                bitmaps.append(rows)
        return BitMap().union(*bitmaps)

    def _without_overlap(self, used: int) -> int:
        """The bytes of the bitmaps of some keys, if the body has as many.

        Damage could give each key the same large bitmap, and an answer would take the square of
        the file in time.
        """
        if used > (most := self._section.length - self.body_at):
            raise self._section.error("bitmaps that overlap", self.body_at, used, f"at most {most}")
        return used

    def _rows(self, offset: int, length: int | None) -> BitMap:
        return self._bitmap(offset, length)[0]

    def _bitmap(self, offset: int, length: int | None) -> tuple[BitMap, int]:
        """The rows at `offset` of the body, and their bytes; without a length they tell it."""
        section = self._section
        if offset < 0:
            row = -1 - offset
            if length not in (None, SINGLE_LENGTH) or row >= self.row_count:
                raise section.error(
                    "bad single row", self.body_at, found=row, expected=f"below {self.row_count}"
                )
            return BitMap((row,)), 0
        if length is not None:
            return load(section, self.body_at + offset, length, self.row_count), length
        data = memoryview(self._payload)[self.body_at + offset :]
        return parse(section, self.body_at + offset, data, self.row_count)

    @cached_property
    def _payload(self) -> bytes:
        return self._section.read(0, self._section.length)


class _ReaderV1(BitmapReader):
    """Version 1 states no lengths, so the payload is read whole, once, when a key is asked for."""

    @cached_property
    def _dictionary_and_body(self) -> tuple[dict[Key, int], int]:
        cursor = Cursor.over(self._section, self._payload, self.dictionary_at)
        if self._key_type.is_bytes:
            entries = {self._key_type.read(cursor): cursor.i32() for _ in range(self.head.distinct)}
        else:
            record = dictionary_record(self._key_type, "offset")
            stored = np.frombuffer(cursor.take(self.head.distinct * record.itemsize), record)
            keys = self._key_type.from_stored(stored["key"])
            entries = dict(zip(keys.tolist(), stored["offset"].tolist(), strict=True))
        if len(entries) != self.head.distinct:
            raise self._section.error(
                "repeated key in the dictionary",
                self.dictionary_at,
                found=f"{len(entries)} keys",
                expected=self.head.distinct,
            )
        return entries, cursor.position

    @property
    def body_at(self) -> int:
        return self._dictionary_and_body[1]

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """It has no blocks."""
        return []

    @property
    def block_size(self) -> int | None:
        """It has no blocks."""
        return None

    def _find(self, key: Key) -> tuple[int, int | None] | None:
        offset = self._dictionary_and_body[0].get(key)
        return None if offset is None else (offset, None)

    def places(self) -> Iterator[tuple[Key, int, int | None]]:
        """Every key with offset of its rows, in the order of the file."""
        for key, offset in self._dictionary_and_body[0].items():
            yield key, offset, None


class _ReaderV2(BitmapReader):
    """Version 2 reads the directory of its blocks, then one block and one bitmap for a key."""

    def __init__(self, cursor: Cursor, key_type: KeyType, head: BitmapHead) -> None:
        """Read the directory, which must be in order."""
        super().__init__(cursor, key_type, head)
        section = cursor.section
        count = cursor.count("block count", self.head.distinct)
        if bool(count) != bool(self.head.distinct):
            raise section.error(
                "bad block count", cursor.position - 4, found=count, expected="as there are keys"
            )
        at = cursor.position
        if key_type.is_bytes:
            cursor.window = _DIRECTORY_WINDOW
            pairs = [(key_type.read(cursor), cursor.i32()) for _ in range(count)]
            self._firsts: list[Key] = [key for key, _ in pairs]
            offsets = [offset for _, offset in pairs]
        else:
            record = dictionary_record(key_type, "offset")
            cursor.window = count * record.itemsize + 4  # the directory and the number behind it
            stored = np.frombuffer(cursor.take(count * record.itemsize), record)
            self._firsts = key_type.from_stored(stored["key"]).tolist()
            offsets = stored["offset"].tolist()
        blocks_length = cursor.count("length of all blocks", section.length - cursor.position - 4)
        self._blocks = cursor.position
        self._bounds = [*offsets, blocks_length]
        ascending = all(a < b for a, b in pairwise(self._bounds)) and self._bounds[0] == 0
        if not ascending or not are_ascending(self._firsts):
            raise section.error("directory of blocks not in order", at)
        self._cache: dict[int, BitmapBlock] = {}

    @property
    def body_at(self) -> int:
        return self._blocks + self._bounds[-1]

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Where each block begins and ends."""
        return [(self._blocks + begin, self._blocks + end) for begin, end in pairwise(self._bounds)]

    @property
    def block_size(self) -> int | None:
        """The bytes of the largest block; one with a single key may be larger than it should."""
        sizes = [
            end - begin
            for begin, end in self.blocks
            if Cursor(self._section.section(begin, 4), window=4).i32() > 1
        ]
        return max(sizes, default=1)

    def _block(self, index: int) -> BitmapBlock:
        if index not in self._cache:
            begin, end = self._bounds[index : index + 2]
            block = BitmapBlock(
                self._section.section(self._blocks + begin, end - begin), self._key_type
            )
            limit = self._firsts[index + 1] if index + 1 < len(self._firsts) else None
            first, last = block.ends
            if first != self._firsts[index] or (limit is not None and not is_below(last, limit)):
                raise self._section.error(
                    "block that the directory contradicts", self._blocks + begin
                )
            self._cache[index] = block
        return self._cache[index]

    def _find(self, key: Key) -> tuple[int, int | None] | None:
        index = bisect_right(self._firsts, key) - 1
        return None if index < 0 else self._block(index).find(key)

    def places(self) -> Iterator[tuple[Key, int, int | None]]:
        """Every key with offset and length of its rows, ascending."""
        for index in range(len(self._firsts)):
            yield from self._block(index).entries()
