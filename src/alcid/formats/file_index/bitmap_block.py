"""One block of the dictionary of a bitmap index, version 2.

i32 entries | entries x (key | i32 offset | i32 length)        keys ascending
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np

from alcid.formats.cursor import Cursor
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.source import Section

__all__ = ["BitmapBlock", "dictionary_record"]

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
