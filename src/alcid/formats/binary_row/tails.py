"""The variable part of binary rows: what a column keeps outside of its slot, word by word.

A tail gives 8 bytes of many rows at a time, in the order of the bytes of each row. Whoever hashes
mixes them into the states of those rows; whoever makes rows puts them in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from alcid.formats.binary_row.row_hash import Words

__all__ = [
    "LONGEST_INLINE",
    "NO_TAIL",
    "ByteTail",
    "Lengths",
    "Rows",
    "Tail",
    "WordTail",
    "words_at",
]

Rows: TypeAlias = npt.NDArray[np.intp] | slice
Lengths: TypeAlias = npt.NDArray[np.int64]

LONGEST_INLINE = 7
"""Bytes of text or binary that fit into the slot itself."""

# Of fewer rows, or longer strings, each is faster on its own than in NumPy's steps together.
_FEWEST_TOGETHER = 64
_MOST_WORDS_TOGETHER = 96
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


class Tail(Protocol):
    """What a column keeps in the variable part of each row."""

    @property
    def reserved(self) -> Lengths | int:
        """The bytes it takes in each row, or in all: a multiple of 8."""

    def words(self) -> Iterator[tuple[Rows, int, Words]]:
        """Rows, the number of a word within their tails, and that word of each of these rows."""

    def rest(self) -> Iterator[tuple[int, int, bytes | memoryview]]:
        """For a row with words left after `words`: it, their first number, and their bytes."""


class WordTail:
    """The same number of words in every row."""

    def __init__(self, *columns: Words) -> None:
        """Take the words by their number, each for all rows."""
        self._columns = columns
        self.reserved = 8 * len(columns)

    def words(self) -> Iterator[tuple[Rows, int, Words]]:
        """Each word, of all rows."""
        for index, column in enumerate(self._columns):
            yield slice(None), index, column

    def rest(self) -> Iterator[tuple[int, int, bytes | memoryview]]:
        """Nothing: `words` gives them all."""
        return iter(())


class ByteTail:
    """Byte strings, padded with zeros to whole words; those that fit into the slot have no tail."""

    def __init__(self, data: npt.NDArray[np.uint8], starts: Lengths, lengths: Lengths) -> None:
        """Take strings that lie anywhere in `data`."""
        self._data = data
        counts = lengths + 7 >> 3
        counts[lengths <= LONGEST_INLINE] = 0
        self.reserved: Lengths = counts << 3
        # Rows with the most words first, so that those that have another are always in front.
        capped = np.minimum(counts, _MOST_WORDS_TOGETHER + 1).astype(np.uint8)
        self._order = np.argsort(capped, kind="stable")[::-1]  # by counting, for narrow numbers
        self._starts, self._lengths = starts[self._order], lengths[self._order]
        at_most = np.cumsum(np.bincount(capped, minlength=_MOST_WORDS_TOGETHER + 1))
        # How many rows have a word 0, 1, 2 ...: at the end the very long ones, which stay apart.
        self._having: list[int] = (len(counts) - at_most[: _MOST_WORDS_TOGETHER + 1]).tolist()
        self._apart = self._having[-1]
        self._together = next(
            index
            for index, count in enumerate(self._having)
            if count - self._apart < _FEWEST_TOGETHER
        )

    def words(self) -> Iterator[tuple[Rows, int, Words]]:
        """Word by word, the rows that have it."""
        for index in range(self._together):
            end, last = self._having[index], self._having[index + 1]
            words = words_at(self._data, self._starts[self._apart : end] + 8 * index)
            words[last - self._apart :] &= _KEEP[self._lengths[last:end] - 8 * index]
            yield self._order[self._apart : end], index, words

    def rest(self) -> Iterator[tuple[int, int, bytes | memoryview]]:
        """Very long strings, and those that are longer than most others."""
        view = self._data.data
        for place in range(self._having[self._together]):
            index = 0 if place < self._apart else self._together
            begin, length = int(self._starts[place]), int(self._lengths[place])
            data = view[begin + 8 * index : begin + length]
            missing = -len(data) % 8
            padded = bytes(data) + bytes(missing) if missing else data
            yield int(self._order[place]), index, padded


def words_at(data: npt.NDArray[np.uint8], positions: Lengths) -> Words:
    """The 8 bytes at each position, little-endian; zeros stand beyond the end of the data."""
    if len(data) < 8:
        data = np.concatenate((data, np.zeros(8, np.uint8)))
    last = len(data) - 8
    every = np.ndarray(last + 1, "<u8", data, strides=(1,))
    if not len(positions) or positions.max() <= last:
        return every[positions].astype(np.uint64, copy=False)
    within = np.minimum(positions, last)
    words: Words = every[within].astype(np.uint64, copy=False)
    words >>= (positions - within << 3).astype(np.uint64)
    return words


NO_TAIL = WordTail()
"""Of a column that is all in its slot."""
