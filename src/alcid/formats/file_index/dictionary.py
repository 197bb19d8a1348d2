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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import IntArray, UInt8Array, byte_offsets
from alcid.errors import LimitError
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.keys import Key, Keys, KeyType, are_ascending
from alcid.formats.source import Section


class Entries:
    """Encoded entries, back to back: entry `i` is bytes `offsets[i]` to `offsets[i + 1]`."""

    __slots__ = ("_data", "offsets")

    def __init__(self, data: memoryview, offsets: IntArray) -> None:
        """Hold `data`, cut at `offsets`."""
        self._data, self.offsets = data, offsets

    def slice(self, begin: int, end: int) -> bytes:
        """The bytes of the entries `begin` to `end`."""
        return bytes(self._data[self.offsets[begin] : self.offsets[end]])


def encode(
    key_type: KeyType,
    keys: Keys,
    suffix: Sequence[IntArray] = (),
    prefix: bytes = b"",
) -> Entries:
    """`prefix`, key and the `suffix` numbers, big-endian 32 bit, for every key."""
    count = len(keys)
    for number in suffix:
        if count and number.max() > np.iinfo(np.int32).max:
            raise LimitError(f"{number.max()} does not fit the 32 bits that the format has for it")
    if key_type.is_bytes:
        numbers = [np.diff(byte_offsets(keys)), *suffix]
        length, *tail = (_binary(number.astype(">i4")) for number in numbers)
        nothing = pa.scalar(b"", pa.large_binary())
        head = [pa.scalar(prefix, pa.large_binary())] if prefix else []
        joined = pc.binary_join_element_wise(*head, length, keys, *tail, nothing) if count else keys
        offsets = byte_offsets(joined)
        data = memoryview(joined.buffers()[2] or b"")[offsets[0] : offsets[-1]]
        return Entries(data, offsets - offsets[0])
    fields = [("prefix", f"V{len(prefix)}")] if prefix else []
    names = [f"suffix{index}" for index in range(len(suffix))]
    record = np.zeros(
        count, [*fields, ("key", key_type.stored), *((name, ">i4") for name in names)]
    )
    if prefix:
        record["prefix"] = np.void(prefix)
    record["key"] = key_type.to_stored(keys)
    for name, number in zip(names, suffix, strict=True):
        record[name] = number
    offsets = np.arange(count + 1) * record.dtype.itemsize
    return Entries(memoryview(record.tobytes()), offsets)


def _binary(numbers: IntArray) -> pa.LargeBinaryArray:
    """Every number as binary of its own."""
    offsets = np.arange(len(numbers) + 1, dtype=np.int64) * numbers.dtype.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(numbers.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(numbers), buffers)


def integers_at(data: UInt8Array, starts: IntArray) -> IntArray:
    """Big-endian 32-bit integers at any byte of `data`."""
    if not len(starts):
        return np.zeros(0, np.int64)
    every = np.ndarray((len(data) - 3,), ">i4", data, strides=(1,))
    return every[starts].astype(np.int64)


def key_sizes(key_type: KeyType, keys: Keys) -> IntArray:
    """Bytes that each key takes when stored."""
    if key_type.is_bytes:
        return 4 + np.diff(byte_offsets(keys))
    return np.full(len(keys), key_type.width)


def chunk_starts(costs: IntArray, capacity: int, *, first_is_free: bool) -> IntArray:
    """Where chunks start when each takes entries up to `capacity`, and at least one.

    With `first_is_free` the first entry of a chunk does not count.
    """
    total = np.append(0, np.cumsum(costs))
    count = len(costs)
    if first_is_free and count and capacity < costs.min():
        return np.arange(count + 1)
    starts, at = [], 0
    while at < count:
        starts.append(at)
        base = total[at + 1] if first_is_free else total[at]
        at = max(at + 1, int(np.searchsorted(total, base + capacity, side="right")) - 1)
    return np.array([*starts, count])


_VERSION = 1
_HEAD_LENGTH = 13
_NUMBERS = 20  # bytes of the five numbers behind the first key


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


@dataclass(frozen=True, slots=True)
class Chunks:
    """The heads of all chunks, member by member."""

    firsts: list[Key]
    codes: list[int]
    offsets: list[int]
    further: list[int]
    lengths: list[int]
    """Bytes of the key blocks."""
    keys_base: int
    """Where the key blocks begin."""
    heads: IntArray
    """Where each chunk head begins; they stand back to back before the key blocks."""


class KeyDictionary:
    """Reads the chunk heads once, and a key block when it is needed."""

    def __init__(self, section: Section, key_type: KeyType, cardinality: int) -> None:
        """Open the dictionary of `cardinality` keys in `section`."""
        self._section, self._key_type, self._cardinality = section, key_type, cardinality
        self._blocks: dict[int, list[Key]] = {}

    @property
    def first(self) -> Key:
        """The least key; there must be one."""
        return self.chunks.firsts[0]

    @property
    def chunk_size(self) -> int:
        """The bytes of the further keys of the fullest chunk.

        With that as the chunk size, keys come to the same chunks: it holds what each of them holds,
        and is not above the one that was too small for one key more.
        """
        chunks = self.chunks
        offsets = 4 if self._key_type.is_bytes else 0
        pairs = zip(chunks.lengths, chunks.further, strict=True)
        return max((length - offsets * further for length, further in pairs), default=0)

    @cached_property
    def chunks(self) -> Chunks:
        """The chunk heads, read when they are first needed."""
        section = self._section
        cursor = Cursor(section, window=_HEAD_LENGTH + 4)
        if (length := cursor.i32()) != _HEAD_LENGTH:
            raise section.error("bad dictionary head", 0, found=length, expected=_HEAD_LENGTH)
        cursor.version("dictionary", _VERSION)
        count = cursor.count("chunk count", self._cardinality)
        offsets_length = cursor.i32()
        if offsets_length != 4 * count:
            raise section.error("bad offsets length", 9, found=offsets_length, expected=4 * count)
        heads_length = cursor.count("length of chunk heads", section.length)
        cursor.window = offsets_length + heads_length
        starts = np.frombuffer(cursor.take(offsets_length), ">i4").astype(np.int64)
        at = cursor.position
        heads = np.frombuffer(cursor.take(heads_length), np.uint8)
        chunks = self._parse(section.section(at, heads_length), starts, heads, cursor.position)
        self._check(chunks)
        return chunks

    def _parse(self, part: Section, starts: IntArray, heads: UInt8Array, keys_base: int) -> Chunks:
        """Chunk heads back to back, each where its offset says."""
        ends = np.append(starts[1:], len(heads))
        keys_at = starts + 1
        least = _NUMBERS + 1 + (4 if self._key_type.is_bytes else self._key_type.width)
        if len(starts) and (starts[0] != 0 or (ends - starts < least).any()):
            raise part.error("chunk head out of place", 0)
        if self._key_type.is_bytes:
            key_sizes = 4 + integers_at(heads, keys_at)
        else:
            key_sizes = np.full(len(starts), self._key_type.width)
        versions = heads[starts]
        if (ends - starts != 1 + key_sizes + _NUMBERS).any() or (versions != _VERSION).any():
            raise part.error("chunk head of another version or length", 0)
        code, offset, further, length, last = (
            integers_at(heads, keys_at + key_sizes + 4 * index) for index in range(5)
        )
        if self._key_type.is_bytes:
            fits, total = length == 4 * further, length + last
        else:
            fits, total = (last == self._key_type.width) & (length == last * further), length
        if not fits.all() or (np.minimum.reduce([further, total, last]) < 0).any():
            raise part.error("bad lengths in a chunk head", 0)
        firsts = self._keys(heads, keys_at, key_sizes)
        return Chunks(
            firsts,
            code.tolist(),
            offset.tolist(),
            further.tolist(),
            total.tolist(),
            keys_base,
            keys_base - len(heads) + starts,
        )

    def _keys(self, data: UInt8Array, starts: IntArray, sizes: IntArray) -> list[Key]:
        """The keys that take `sizes` bytes each from `starts`."""
        if not self._key_type.is_bytes:
            stored = data[starts[:, None] + np.arange(self._key_type.width)].view(
                self._key_type.stored
            )
            keys: list[Key] = self._key_type.from_stored(stored[:, 0]).tolist()
            return keys
        raw = data.tobytes()
        bounds = zip((starts + 4).tolist(), (starts + sizes).tolist(), strict=True)
        return [raw[begin:end] for begin, end in bounds]

    def _check(self, chunks: Chunks) -> None:
        """Codes and key blocks must follow each other without a gap, and keys ascend."""
        keys = np.cumsum([0, *(count + 1 for count in chunks.further)]).tolist()
        ends = np.cumsum([0, *chunks.lengths]).tolist()
        if chunks.codes != keys[:-1] or chunks.offsets != ends[:-1]:
            raise self._section.error("chunks do not follow each other", 0)
        available = self._section.length - chunks.keys_base
        if keys[-1] != self._cardinality or ends[-1] != available:
            raise self._section.error(
                "dictionary of another size",
                0,
                found=f"{keys[-1]} keys, {ends[-1]} bytes",
                expected=f"{self._cardinality} keys, {available} bytes",
            )
        if not are_ascending(chunks.firsts):
            raise self._section.error("chunks of the dictionary not in order", chunks.keys_base)

    def _block(self, index: int) -> list[Key]:
        """All keys of a chunk, the first one too."""
        if index not in self._blocks:
            chunks = self.chunks
            at = chunks.keys_base + chunks.offsets[index]
            part = self._section.section(at, chunks.lengths[index])
            keys = [chunks.firsts[index], *self._further(part, chunks.further[index])]
            if not are_ascending(keys + chunks.firsts[index + 1 : index + 2]):
                raise part.error("keys of a chunk not in order", 0)
            self._blocks[index] = keys
        return self._blocks[index]

    def _further(self, part: Section, count: int) -> list[Key]:
        data = np.frombuffer(part.read(0, part.length), np.uint8)
        if not self._key_type.is_bytes:
            width = self._key_type.width
            return self._keys(data, np.arange(count) * width, np.full(count, width))
        starts = 4 * count + integers_at(data, 4 * np.arange(count))
        ends = np.append(starts[1:], part.length)
        if count and (starts[0] != 4 * count or (ends - starts < 4).any()):
            raise part.error("key out of place", 0)
        sizes = 4 + integers_at(data, starts)
        if (ends - starts != sizes).any():
            raise part.error("key of another length", 0)
        return self._keys(data, starts, sizes)

    def rank(self, key: Key) -> tuple[int, bool]:
        """How many keys are below `key`, and whether `key` itself is there."""
        chunks = self.chunks
        index = bisect_right(chunks.firsts, key) - 1
        if index < 0:
            return 0, False
        code, first = chunks.codes[index], chunks.firsts[index]
        if first == key:
            return code, True
        keys = self._block(index) if chunks.further[index] else [first]
        position = bisect_right(keys, key)
        if keys[position - 1] == key:
            return code + position - 1, True
        return code + position, False

    def extremes(self, k: int, *, descending: bool) -> list[Key]:
        """The `k` highest (else lowest) keys, the outermost first."""
        extreme_keys: list[Key] = []
        blocks = range(len(self.chunks.firsts))
        for index in reversed(blocks) if descending else blocks:
            keys = self._block(index)
            extreme_keys += (
                keys[: -(k - len(extreme_keys)) - 1 : -1]
                if descending
                else keys[: k - len(extreme_keys)]
            )
            if len(extreme_keys) >= k:
                break
        return extreme_keys

    def __iter__(self) -> Iterator[Key]:
        """Every key, ascending."""
        for index in range(len(self.chunks.firsts)):
            yield from self._block(index)
