"""Reading Paimon's bitmap index; its bytes are shown in `alcid.formats.file_index.bitmap`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bitmap import SINGLE_LENGTH, V1, BitmapHead
from alcid.formats.file_index.bitmap_block import BitmapBlock, dictionary_record
from alcid.formats.file_index.column import Keys, key_array
from alcid.formats.file_index.keys import Key, KeyType, are_ascending, is_below
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.roaring import load, parse, to_rows
from alcid.formats.selection import Selection
from alcid.formats.source import Section

__all__ = ["BitmapReader", "open_bitmap"]

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

    def contents(self) -> tuple[npt.NDArray[np.uint32], Keys]:
        """Every row that has a key, and the keys.

        Raises:
            FormatError: Some rows must have several, as all keys have more rows than there are.
        """
        keys: list[Key] = []
        rows, counts, total = [np.zeros(0, np.uint32)], [], 0
        for key, found in self.items():
            total += len(found)
            if total > self.row_count:  # damage could state the same rows for each key
                expected = f"at most {self.row_count}"
                raise self._section.error("too many rows with a key", 0, total, expected)
            keys.append(key)
            rows.append(to_rows(found))
            counts.append(len(found))
        places = np.repeat(np.arange(len(keys)), np.array(counts, np.int64))
        return np.concatenate(rows), key_array(keys, self._key_type).take(places)

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
        used, found = 0, []
        for key in dict.fromkeys(keys):
            if (place := self._find(key)) is not None:
                rows, size = self._bitmap(*place)
                used = self._without_overlap(used + size)
                found.append(rows)
        return BitMap().union(*found)

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
