"""Murmur3 (x86, 32 bits) of binary rows, for many rows at once.

Each row has a state of 32 bits. Words are mixed into it in the order of the row's bytes, and at the
end its length in bytes; so a row can be hashed column by column, and never has to exist as bytes.

    state = 42
    word by word, little-endian:
        word  = rotate(word * 0xcc9e2d51, 15) * 0x1b873593
        state = rotate(state ^ word, 13) * 5 + 0xe6546b64
    state ^= length
    state  = (state ^ state >> 16) * 0x85ebca6b
    state  = (state ^ state >> 13) * 0xc2b2ae35
    hash   = state ^ state >> 16

A binary row is a multiple of 8 bytes long, so words go in by twos, and no bytes are left over.
"""

from __future__ import annotations

from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt

__all__ = ["State", "Words", "finish", "mix", "mix_bytes", "mix_hash", "start"]

State: TypeAlias = npt.NDArray[np.uint32]
Words: TypeAlias = npt.NDArray[np.uint64]

_SEED = 42
_MASK = (1 << 32) - 1
_WORD_FACTORS = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_STATE_FACTOR, _STATE_SUMMAND = np.uint32(5), np.uint32(0xE6546B64)
_LAST_FACTORS = 0x85EBCA6B, 0xC2B2AE35
_UNDO_FACTORS = tuple(pow(factor, -1, 1 << 32) for factor in _LAST_FACTORS)


def start(row_count: int) -> State:
    """The states of rows before their first word."""
    return np.full(row_count, _SEED, np.uint32)


def mix(state: State, words: Words) -> None:
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


def finish(state: State, lengths: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int32]:
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
