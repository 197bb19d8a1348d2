"""The 64-bit hashes of Paimon's bloom filter, for whole columns at once.

Integers go through Thomas Wang's mix, with arithmetic right shifts; floats through the same, by
their bits; text and binary through XXH64 with seed 0.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from alcid.formats.column import KeyColumn, byte_offsets
from alcid.formats.keys import IntArray

__all__ = ["hash_bytes", "hash_column", "hash_integers"]

Hashes: TypeAlias = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32
_FEWEST_TOGETHER = 1024  # with fewer values, or longer ones, a call for each is faster
_LONGEST_TOGETHER = 128
_BLOCK = 1 << 14


def hash_column(column: KeyColumn) -> Hashes:
    """The hash of every key."""
    if column.key_type.is_bytes:
        return hash_bytes(column.keys)
    keys = column.keys
    if column.key_type.floating:  # the bits, not their rank; native order
        keys = column.key_type.to_stored(keys).astype(column.key_type.dtype)
    return hash_integers(keys)


def hash_integers(values: IntArray) -> Hashes:
    """Thomas Wang's mix of integers, sign-extended to 64 bits.

    >>> [f"{int(value):016X}" for value in hash_integers(np.array([1, -1]))]
    ['5BCA7C69B794F8CE', '5BCA868437950D03']
    """
    hashes = np.empty(len(values), np.int64)
    for start in range(0, len(values), _BLOCK):  # a block stays in the cache for all seven steps
        key = values[start : start + _BLOCK].astype(np.int64)
        key = ~key + (key << 21)
        key ^= key >> 24
        key *= 265
        key ^= key >> 14
        key *= 21
        key ^= key >> 28
        key += key << 31
        hashes[start : start + _BLOCK] = key
    return hashes.view(np.uint64)


def hash_bytes(keys: pa.LargeBinaryArray) -> Hashes:
    """XXH64 with seed 0 of every value of a large_binary array without nulls.

    Short values of one length are hashed together, others one by one.
    """
    offsets = byte_offsets(keys)
    lengths = np.diff(offsets)
    hashes = np.empty(len(keys), np.uint64)
    if not len(keys):
        return hashes
    buffer = keys.buffers()[2]
    data = (
        np.frombuffer(buffer, np.uint8)
        if buffer is not None and buffer.size
        else np.zeros(0, np.uint8)
    )
    narrow = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths
    order = np.argsort(narrow, kind="stable")  # by counting, if narrow
    ordered = lengths[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    view = data.data
    for begin, end in zip(first, np.append(first[1:], len(order)), strict=True):
        length, chosen = int(ordered[begin]), order[begin:end]
        if length > _LONGEST_TOGETHER or len(chosen) < _FEWEST_TOGETHER:
            hashes[chosen] = [
                xxhash.xxh64_intdigest(view[start : start + length])
                for start in offsets[chosen].tolist()
            ]
            continue
        for block in range(0, len(chosen), _BLOCK):
            part = chosen[block : block + _BLOCK]
            hashes[part] = _xxh64(data, offsets[part], length)
    return hashes


def _xxh64(data: npt.NDArray[np.uint8], starts: IntArray, length: int) -> Hashes:
    """XXH64 of values of one length, at `starts` of `data`."""
    lies_together = starts[-1] - starts[0] == (len(starts) - 1) * length

    def words(at: int, width: int) -> Hashes:
        """Little-endian integers of `width` bytes, `at` bytes into each value."""
        found: IntArray
        if lies_together:
            found = np.ndarray(len(starts), f"<u{width}", data, starts[0] + at, (length,))
        else:
            every = np.ndarray(len(data) - width + 1, f"<u{width}", data, strides=(1,))
            found = every[starts + at]
        return found.astype(np.uint64)

    at = 0
    if length >= _STRIPE:
        lanes = [
            np.full(len(starts), seed, np.uint64)
            for seed in ((int(_P1) + int(_P2)) % 2**64, _P2, 0, 2**64 - int(_P1))
        ]
        while at + _STRIPE <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], words(at + 8 * lane, 8))
            at += _STRIPE
        digest = np.zeros(len(starts), np.uint64)
        for value, by in zip(lanes, (1, 7, 12, 18), strict=True):
            digest += _rotate(value, by)
        for value in lanes:
            digest = (digest ^ _round(np.uint64(0), value)) * _P1 + _P4
    else:
        digest = np.full(len(starts), _P5, np.uint64)
    digest += np.uint64(length)
    while at + 8 <= length:
        digest = _rotate(digest ^ _round(np.uint64(0), words(at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        digest = _rotate(digest ^ words(at, 4) * _P1, 23) * _P2 + _P3
        at += 4
    while at < length:
        digest = _rotate(digest ^ words(at, 1) * _P5, 11) * _P1
        at += 1
    digest ^= digest >> np.uint64(33)
    digest *= _P2
    digest ^= digest >> np.uint64(29)
    digest *= _P3
    return digest ^ (digest >> np.uint64(32))


def _rotate(value: Hashes, by: int) -> Hashes:
    rotated = value << np.uint64(by)
    rotated |= value >> np.uint64(64 - by)
    return rotated


def _round(lane: Hashes | np.uint64, word: Hashes) -> Hashes:
    mixed = _rotate(lane + word * _P2, 31)
    mixed *= _P1
    return mixed
