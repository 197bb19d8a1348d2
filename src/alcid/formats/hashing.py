"""Hashes of byte strings and binary rows, thousands at once.

NumPy takes a step of a hash for 16,384 values at once, if all of them have that step. So values are
taken by length; those of a rare length, or a great one, are hashed one by one by a library in C.

Binary rows are hashed by Murmur3 (x86, 32 bits). Each row has a state of 32 bits. Words are mixed
into it in the order of the row's bytes, and at the end its length in bytes; so a row can be hashed
column by column, and never has to exist as bytes.

    state = 42
    word by word, little-endian:
        word  = rotate(word * 0xcc9e2d51, 15) * 0x1b873593
        state = rotate(state ^ word, 13) * 5 + 0xe6546b64
    state ^= length
    state  = (state ^ state >> 16) * 0x85ebca6b
    state  = (state ^ state >> 13) * 0xc2b2ae35
    hash   = state ^ state >> 16

A binary row is a multiple of 8 bytes long, so words go in by twos, and no bytes are left over.

Theta sketches take the first 64 bits of MurmurHash3 (x64, 128 bits), with the seed 9001. Two lanes
start from the seed. Each takes 8 bytes of every 16, and what is left at the end; the length goes
into both, and then all bits of each into the first. Whole columns are hashed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import mmh3
import numpy as np
import pyarrow as pa

from alcid._arrays import (
    Int32Array,
    Int64Array,
    IntArray,
    UInt8Array,
    UInt32Array,
    UInt64Array,
    byte_offsets,
)

Starts: TypeAlias = IntArray | range

BLOCK = 1 << 14
"""Values that are hashed together: they stay in the cache for all steps."""
_LONGEST_TOGETHER = 128  # of longer values, a call for each is faster


@dataclass(frozen=True, slots=True)
class ByteValues:
    """Byte strings that lie anywhere in `data`."""

    data: UInt8Array
    starts: Starts
    """Where each begins, ascending; a range only if all have one length and lie back to back."""
    lengths: IntArray | int
    """The length of each, or of all."""

    @classmethod
    def of(cls, keys: pa.LargeBinaryArray) -> ByteValues:
        """The values of a large_binary array without nulls."""
        offsets = byte_offsets(keys)
        buffer = keys.buffers()[2]
        data = np.frombuffer(buffer or b"", np.uint8)
        return cls(data, offsets[:-1], np.diff(offsets))

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class SameLength:
    """Byte strings of one length, at `starts` of `data`."""

    data: UInt8Array
    starts: Starts
    length: int

    def __len__(self) -> int:
        return len(self.starts)

    def words(self, at: int, width: int) -> UInt64Array:
        """Little-endian integers of `width` bytes, `at` bytes into each value; a fresh array."""
        if width in (3, 5, 6, 7):
            if at + width >= 8:  # a whole word that ends where they do
                return self.words(at + width - 8, 8) >> np.uint64(8 * (8 - width))
            head = 4 if width > 4 else 2
            rest = self.words(at + head, width - head)
            rest <<= np.uint64(8 * head)
            rest |= self.words(at, head)
            return rest
        first, count = int(self.starts[0]), len(self.starts)
        words: IntArray
        if int(self.starts[-1]) - first == (count - 1) * self.length:  # back to back
            words = np.ndarray(count, f"<u{width}", self.data, first + at, (self.length,))
        else:
            every = np.ndarray(len(self.data) - width + 1, f"<u{width}", self.data, strides=(1,))
            words = every[np.asarray(self.starts) + at]
        return words.astype(np.uint64)


def hash_values(
    values: ByteValues,
    together: Callable[[SameLength], UInt64Array],
    one: Callable[[memoryview], int],
) -> UInt64Array:
    """The hash of every value, by `together` or by `one`, which must agree."""
    hashes = np.empty(len(values), np.uint64)
    view = values.data.data
    for rows, length in _parts(values):
        starts = values.starts[rows]
        if length > _LONGEST_TOGETHER or len(starts) < _fewest_together(length):
            listed = starts if isinstance(starts, range) else starts.tolist()
            single = [one(view[start : start + length]) for start in listed]
            hashes[rows] = np.array(single, np.uint64)
        else:
            hashes[rows] = together(SameLength(values.data, starts, length))
    return hashes


def _fewest_together(length: int) -> int:
    """With fewer values of that length, a call for each is faster."""
    return 64 + 7 * length


def _parts(values: ByteValues) -> Iterator[tuple[Any, int]]:
    """Rows whose values have one length, a block at most, and that length."""
    lengths = values.lengths
    if not len(values):
        return
    if not isinstance(lengths, int) and lengths.min() == lengths.max():
        lengths = int(lengths[0])
    if isinstance(lengths, int):
        for start in range(0, len(values), BLOCK):
            yield slice(start, start + BLOCK), lengths
        return
    narrow = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths
    order = np.argsort(narrow, kind="stable")  # by counting, if narrow
    ordered = lengths[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()
    for begin, end in zip(first, [*first[1:], len(order)], strict=True):
        for start in range(begin, end, BLOCK):
            yield order[start : min(start + BLOCK, end)], int(ordered[begin])


def rotate(values: UInt64Array, by: int) -> UInt64Array:
    """Each value turned left by `by` bits."""
    rotated = values << np.uint64(by)
    rotated |= values >> np.uint64(64 - by)
    return rotated


State: TypeAlias = UInt32Array

_SEED = 42
_MASK = (1 << 32) - 1
_WORD_FACTORS = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_STATE_FACTOR, _STATE_SUMMAND = np.uint32(5), np.uint32(0xE6546B64)
_LAST_FACTORS = 0x85EBCA6B, 0xC2B2AE35
_UNDO_FACTORS = tuple(pow(factor, -1, 1 << 32) for factor in _LAST_FACTORS)


def start(row_count: int) -> State:
    """The states of rows before their first word."""
    return np.full(row_count, _SEED, np.uint32)


def mix(state: State, words: UInt64Array) -> None:
    """Mix the next 8 bytes of each row into its state, in place."""
    _mix_half(state, words.astype(np.uint32))  # the lower half comes first
    _mix_half(state, (words >> np.uint64(32)).astype(np.uint32))


def _mix_half(state: State, word: State) -> None:
    word *= _WORD_FACTORS[0]
    word = _rotate(word, 15)
    word *= _WORD_FACTORS[1]
    state ^= word
    state[:] = _rotate(state, 13)
    state *= _STATE_FACTOR
    state += _STATE_SUMMAND


def _rotate(value: State, by: int) -> State:
    rotated = value << np.uint32(by)
    rotated |= value >> np.uint32(32 - by)
    return rotated


def mix_bytes(state: int, data: bytes | memoryview) -> int:
    """The state of one row after all of `data`, whose length is a multiple of 4.

    A library hashes them, with the state for its seed; its last steps are then undone.
    """
    mixed = mmh3.mmh3_32_uintdigest(data, state)
    mixed ^= mixed >> 16
    mixed = mixed * _UNDO_FACTORS[1] & _MASK
    mixed ^= mixed >> 13 ^ mixed >> 26
    mixed = mixed * _UNDO_FACTORS[0] & _MASK
    return mixed ^ mixed >> 16 ^ len(data)


def finish(state: State, lengths: Int64Array | int) -> Int32Array:
    """The hashes of rows of these lengths in bytes.

    >>> state = start(1)
    >>> mix(state, np.zeros(1, np.uint64))
    >>> finish(state, 8).tolist()  # the row without columns
    [-1670924195]
    """
    return mix_hash(state ^ np.asarray(lengths, np.uint32)).view(np.int32)


def mix_hash(values: State) -> State:
    """The last steps of the hash: each bit of a result depends on every bit of its value."""
    mixed = values ^ values >> np.uint32(16)
    mixed *= np.uint32(_LAST_FACTORS[0])
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(_LAST_FACTORS[1])
    mixed ^= mixed >> np.uint32(16)
    return mixed


SEED = 9001
SEED_HASH = 0x93CC
"""What a sketch stores of the seed: 16 bits of the hash of it."""

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def murmur(values: ByteValues) -> UInt64Array:
    """The first 64 bits of the hash of every value.

    >>> import pyarrow as pa
    >>> values = ByteValues.of(pa.array([b"graz", b"linz"], pa.large_binary()))
    >>> [f"{int(value):016X}" for value in murmur(values)]
    ['0CEBFC270A13170B', 'A4B4F05D8B7EAC93']
    """
    return hash_values(values, _together, _one)


def _one(value: memoryview) -> int:
    return mmh3.mmh3_x64_128_utupledigest(value, SEED)[0]


def _together(values: SameLength) -> UInt64Array:
    """The hash of values of one length."""
    length = values.length
    first = np.full(len(values), SEED, np.uint64)
    second = first.copy()
    at = 0
    while at + 16 <= length:
        first ^= _scramble(values.words(at, 8), _C1, 31, _C2)
        first = _stir(first, 27, second, 0x52DCE729)
        second ^= _scramble(values.words(at + 8, 8), _C2, 33, _C1)
        second = _stir(second, 31, first, 0x38495AB5)
        at += 16
    left = length - at
    if left:
        first ^= _scramble(values.words(at, min(left, 8)), _C1, 31, _C2)
    if left > 8:
        second ^= _scramble(values.words(at + 8, left - 8), _C2, 33, _C1)
    first ^= np.uint64(length)
    second ^= np.uint64(length)
    first += second
    second += first
    _avalanche(first)
    _avalanche(second)
    first += second
    return first


def _scramble(words: UInt64Array, before: np.uint64, by: int, after: np.uint64) -> UInt64Array:
    words *= before
    words = rotate(words, by)
    words *= after
    return words


def _stir(lane: UInt64Array, by: int, other: UInt64Array, constant: int) -> UInt64Array:
    lane = rotate(lane, by)
    lane += other
    lane *= np.uint64(5)
    lane += np.uint64(constant)
    return lane


def _avalanche(lane: UInt64Array) -> None:
    """Let every bit depend on every other, in place."""
    lane ^= lane >> np.uint64(33)
    lane *= _M1
    lane ^= lane >> np.uint64(33)
    lane *= _M2
    lane ^= lane >> np.uint64(33)
