"""The 64-bit hashes of Paimon's bloom filter, for whole columns at once.

Integers go through Thomas Wang's mix, with arithmetic right shifts; floats through the same, by
their bits; text and binary through XXH64 with seed 0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import xxhash

from alcid._arrays import IntArray, UInt64Array
from alcid.formats.file_index.keys import KeyColumn
from alcid.formats.hashing import (
    BLOCK,
    ByteValues,
    SameLength,
    hash_values,
    rotate,
)

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


def hash_column(column: KeyColumn) -> UInt64Array:
    """The hash of every key."""
    if column.key_type.is_bytes:
        return hash_bytes(column.keys)
    keys = column.keys
    if column.key_type.floating:  # the bits, not their rank; native order
        keys = column.key_type.to_stored(keys).astype(column.key_type.dtype)
    return hash_integers(keys)


def hash_integers(values: IntArray) -> UInt64Array:
    """Thomas Wang's mix of integers, sign-extended to 64 bits.

    >>> [f"{int(value):016X}" for value in hash_integers(np.array([1, -1]))]
    ['5BCA7C69B794F8CE', '5BCA868437950D03']
    """
    hashes = np.empty(len(values), np.int64)
    for start in range(0, len(values), BLOCK):  # a block stays in the cache for all seven steps
        key = values[start : start + BLOCK].astype(np.int64)
        key = ~key + (key << 21)
        key ^= key >> 24
        key *= 265
        key ^= key >> 14
        key *= 21
        key ^= key >> 28
        key += key << 31
        hashes[start : start + BLOCK] = key
    return hashes.view(np.uint64)


def hash_bytes(keys: pa.LargeBinaryArray) -> UInt64Array:
    """XXH64 with seed 0 of every value of a large_binary array without nulls."""
    return hash_values(ByteValues.of(keys), _xxh64, xxhash.xxh64_intdigest)


def _xxh64(values: SameLength) -> UInt64Array:
    """XXH64 of values of one length."""
    count, length, words = len(values), values.length, values.words
    at = 0
    if length >= _STRIPE:
        lanes = [
            np.full(count, seed, np.uint64)
            for seed in ((int(_P1) + int(_P2)) % 2**64, _P2, 0, 2**64 - int(_P1))
        ]
        while at + _STRIPE <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], words(at + 8 * lane, 8))
            at += _STRIPE
        digest = np.zeros(count, np.uint64)
        for value, by in zip(lanes, (1, 7, 12, 18), strict=True):
            digest += rotate(value, by)
        for value in lanes:
            digest = (digest ^ _round(np.uint64(0), value)) * _P1 + _P4
    else:
        digest = np.full(count, _P5, np.uint64)
    digest += np.uint64(length)
    while at + 8 <= length:
        digest = rotate(digest ^ _round(np.uint64(0), words(at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        digest = rotate(digest ^ words(at, 4) * _P1, 23) * _P2 + _P3
        at += 4
    while at < length:
        digest = rotate(digest ^ words(at, 1) * _P5, 11) * _P1
        at += 1
    digest ^= digest >> np.uint64(33)
    digest *= _P2
    digest ^= digest >> np.uint64(29)
    digest *= _P3
    return digest ^ (digest >> np.uint64(32))


def _round(lane: UInt64Array | np.uint64, word: UInt64Array) -> UInt64Array:
    mixed = rotate(lane + word * _P2, 31)
    mixed *= _P1
    return mixed
