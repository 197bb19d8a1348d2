"""The dictionary of a range-bitmap: sorted keys in chunks; the rank of a key is its code.

i32 13 | u8 version 1 | i32 chunks | i32 4 * chunks | i32 length of the chunk heads
chunks x i32 offset of the chunk head
chunk head, keys of one width:  u8 1 | first key | i32 code | i32 offset | i32 further keys
                                | i32 bytes of the block | i32 width
chunk head, keys of any length: u8 1 | first key | i32 code | i32 offset | i32 further keys
                                | i32 4 * further keys | i32 bytes of the keys
key blocks, back to back: the further keys; of any length, after an i32 offset for each
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from alcid.formats.column import Keys
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.entries import chunk_starts, encode, key_sizes
from alcid.formats.keys import Key, KeyType, are_ascending
from alcid.formats.source import Section

__all__ = ["KeyDictionary", "write_dictionary"]

_VERSION = 1
_HEAD_LENGTH = 13


def write_dictionary(key_type: KeyType, keys: Keys, chunk_size: int) -> bytes:
    """Write the dictionary of distinct ascending keys.

    The first key of a chunk lies in its head; further ones follow as long as they fit `chunk_size`.
    """
    sizes = key_sizes(key_type, keys)
    starts = chunk_starts(sizes, chunk_size, first_is_free=True)
    firsts, further = starts[:-1], np.diff(starts) - 1
    ends = np.append(0, np.cumsum(sizes))
    key_bytes = ends[starts[1:]] - ends[firsts + 1]
    block_sizes = key_bytes + 4 * further if key_type.is_bytes else key_bytes
    block_offsets = np.append(0, np.cumsum(block_sizes))[:-1]
    last = (
        (4 * further, key_bytes)
        if key_type.is_bytes
        else (key_bytes, np.full(len(firsts), key_type.width))
    )
    heads = encode(
        key_type, keys.take(firsts), (firsts, block_offsets, further, *last), bytes((_VERSION,))
    )
    every_head = heads.slice(0, len(firsts))
    stored = encode(key_type, keys)
    writer = Writer().i32(_HEAD_LENGTH).u8(_VERSION)
    writer.i32(len(firsts), 4 * len(firsts), len(every_head))
    writer.raw(heads.offsets[:-1].astype(">i4").tobytes()).raw(every_head)
    for begin, end in zip(firsts[further > 0] + 1, starts[1:][further > 0], strict=True):
        if key_type.is_bytes:
            writer.raw((ends[begin:end] - ends[begin]).astype(">i4").tobytes())
        writer.raw(stored.slice(begin, end))
    return writer.to_bytes()


class _Chunk(NamedTuple):
    """The head of a chunk."""

    first: Key
    code: int
    offset: int
    further: int
    length: int
    """Bytes of the key block."""


class KeyDictionary:
    """Reads the chunk heads once, and a key block when it is needed."""

    def __init__(self, section: Section, key_type: KeyType, cardinality: int) -> None:
        """Open the dictionary of `cardinality` keys in `section`."""
        self._section, self._key_type, self._cardinality = section, key_type, cardinality
        self._blocks: dict[int, list[Key]] = {}

    @cached_property
    def _chunks(self) -> list[_Chunk]:
        section = self._section
        cursor = Cursor(section, window=_HEAD_LENGTH + 4)
        if (found := cursor.i32()) != _HEAD_LENGTH:
            raise section.error("bad dictionary head", 0, found=found, expected=_HEAD_LENGTH)
        cursor.version("dictionary", _VERSION)
        count = cursor.count("chunk count", self._cardinality)
        offsets_length = cursor.i32()
        if offsets_length != 4 * count:
            raise section.error("bad offsets length", 9, found=offsets_length, expected=4 * count)
        heads_length = cursor.count("length of chunk heads", section.length)
        cursor.window = offsets_length + heads_length
        offsets = np.frombuffer(cursor.take(offsets_length), ">i4").tolist()
        base = cursor.position
        chunks = []
        for offset in offsets:
            if cursor.position - base != offset:
                raise section.error(
                    "chunk head out of place",
                    cursor.position,
                    found=offset,
                    expected=cursor.position - base,
                )
            chunks.append(self._chunk(cursor))
        if cursor.position - base != heads_length:
            raise section.error(
                "chunk heads of another length",
                base,
                found=cursor.position - base,
                expected=heads_length,
            )
        self._keys_base = cursor.position
        self._check(chunks)
        return chunks

    def _chunk(self, cursor: Cursor) -> _Chunk:
        at = cursor.position
        cursor.version("chunk", _VERSION)
        first = self._key_type.read(cursor)
        code, offset, further, length, last = (cursor.count("number of a chunk") for _ in range(5))
        if self._key_type.is_bytes:
            fits, total = length == 4 * further, length + last
        else:
            fits, total = last == self._key_type.width and length == last * further, length
        if not fits:
            raise cursor.section.error("bad lengths in a chunk head", at)
        return _Chunk(first, code, offset, further, total)

    def _check(self, chunks: list[_Chunk]) -> None:
        """Codes and key blocks must follow each other without a gap, and keys ascend."""
        code = offset = 0
        for chunk in chunks:
            if (chunk.code, chunk.offset) != (code, offset):
                raise self._section.error(
                    "chunk out of place",
                    0,
                    found=f"code {chunk.code} at {chunk.offset}",
                    expected=f"code {code} at {offset}",
                )
            code, offset = code + 1 + chunk.further, offset + chunk.length
        available = self._section.length - self._keys_base
        if code != self._cardinality or offset != available:
            raise self._section.error(
                "dictionary of another size",
                0,
                found=f"{code} keys, {offset} bytes",
                expected=f"{self._cardinality} keys, {available} bytes",
            )
        if not are_ascending([chunk.first for chunk in chunks]):
            raise self._section.error("chunks of the dictionary not in order", self._keys_base)

    def _block(self, index: int) -> list[Key]:
        """All keys of a chunk, the first one too."""
        if index not in self._blocks:
            chunk = self._chunks[index]
            part = self._section.section(self._keys_base + chunk.offset, chunk.length)
            keys = [chunk.first, *self._further(part, chunk.further)]
            ahead = self._chunks[index + 1].first if index + 1 < len(self._chunks) else None
            if not are_ascending(keys if ahead is None else [*keys, ahead]):
                raise part.error("keys of a chunk not in order", 0)
            self._blocks[index] = keys
        return self._blocks[index]

    def _further(self, part: Section, count: int) -> list[Key]:
        data = part.read(0, part.length)
        if not self._key_type.is_bytes:
            keys: list[Key] = self._key_type.from_stored(
                np.frombuffer(data, self._key_type.stored)
            ).tolist()
            return keys
        starts = np.frombuffer(data, ">i4", count).astype(np.int64)
        cursor = Cursor(part, 4 * count, window=part.length)
        found = []
        for start in starts.tolist():
            if cursor.position != 4 * count + start:
                raise part.error("key out of place", cursor.position, found=start)
            found.append(self._key_type.read(cursor))
        if cursor.position != part.length:
            raise part.error(
                "keys of another length", 0, found=cursor.position, expected=part.length
            )
        return found

    def rank(self, key: Key) -> tuple[int, bool]:
        """How many keys are below `key`, and whether `key` itself is there."""
        index = bisect_right(self._chunks, key, key=lambda chunk: chunk.first) - 1
        if index < 0:
            return 0, False
        chunk = self._chunks[index]
        if chunk.first == key:
            return chunk.code, True
        keys = self._block(index) if chunk.further else [chunk.first]
        place = bisect_right(keys, key)
        if keys[place - 1] == key:
            return chunk.code + place - 1, True
        return chunk.code + place, False

    def __iter__(self) -> Iterator[Key]:
        """Every key, ascending."""
        for index in range(len(self._chunks)):
            yield from self._block(index)
