"""MurmurHash3 x64 of 128 bits, of which theta sketches take the first 64, with their seed 9001.

Two lanes start from the seed. Each takes 8 bytes of every 16, and what is left at the end; the
length goes into both, and then all bits of each into the first. Whole columns are hashed at once.
"""

from __future__ import annotations

import mmh3
import numpy as np

from alcid.formats.same_length import ByteValues, Hashes, SameLength, hash_values, rotate

__all__ = ["SEED", "SEED_HASH", "murmur"]

SEED = 9001
SEED_HASH = 0x93CC
"""What a sketch stores of the seed: 16 bits of the hash of it."""

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def murmur(values: ByteValues) -> Hashes:
    """The first 64 bits of the hash of every value.

    >>> import pyarrow as pa
    >>> values = ByteValues.of(pa.array([b"graz", b"linz"], pa.large_binary()))
    >>> [f"{int(value):016X}" for value in murmur(values)]
    ['0CEBFC270A13170B', 'A4B4F05D8B7EAC93']
    """
    return hash_values(values, _together, _one)


def _one(value: memoryview) -> int:
    return mmh3.mmh3_x64_128_utupledigest(value, SEED)[0]


def _together(values: SameLength) -> Hashes:
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


def _scramble(words: Hashes, before: np.uint64, by: int, after: np.uint64) -> Hashes:
    words *= before
    words = rotate(words, by)
    words *= after
    return words


def _stir(lane: Hashes, by: int, other: Hashes, constant: int) -> Hashes:
    lane = rotate(lane, by)
    lane += other
    lane *= np.uint64(5)
    lane += np.uint64(constant)
    return lane


def _avalanche(lane: Hashes) -> None:
    """Let every bit depend on every other, in place."""
    lane ^= lane >> np.uint64(33)
    lane *= _M1
    lane ^= lane >> np.uint64(33)
    lane *= _M2
    lane ^= lane >> np.uint64(33)
