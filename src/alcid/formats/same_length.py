"""What the hashes of byte strings share: values of one length are hashed together.

NumPy takes a step of a hash for 16,384 values at once, if all of them have that step. So values are
taken by length; those of a rare length, or a great one, are hashed one by one by a library in C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.formats.arrays import IntArray, byte_offsets

__all__ = ["BLOCK", "ByteValues", "Bytes", "Hashes", "SameLength", "hash_values", "rotate"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Starts: TypeAlias = IntArray | range

BLOCK = 1 << 14
"""Values that are hashed together: they stay in the cache for all steps."""
_LONGEST_TOGETHER = 128  # of longer values, a call for each is faster


@dataclass(frozen=True, slots=True)
class ByteValues:
    """Byte strings that lie anywhere in `data`."""

    data: Bytes
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

    data: Bytes
    starts: Starts
    length: int

    def __len__(self) -> int:
        return len(self.starts)

    def words(self, at: int, width: int) -> Hashes:
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
        found: IntArray
        if int(self.starts[-1]) - first == (count - 1) * self.length:  # back to back
            found = np.ndarray(count, f"<u{width}", self.data, first + at, (self.length,))
        else:
            every = np.ndarray(len(self.data) - width + 1, f"<u{width}", self.data, strides=(1,))
            found = every[np.asarray(self.starts) + at]
        return found.astype(np.uint64)


def hash_values(
    values: ByteValues,
    together: Callable[[SameLength], Hashes],
    one: Callable[[memoryview], int],
) -> Hashes:
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


def rotate(values: Hashes, by: int) -> Hashes:
    """Each value turned left by `by` bits."""
    rotated = values << np.uint64(by)
    rotated |= values >> np.uint64(64 - by)
    return rotated
