"""Dictionary entries as bytes: keys with numbers before and behind them, thousands at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import LimitError
from alcid.formats.arrays import IntArray, byte_offsets
from alcid.formats.file_index.column import Keys
from alcid.formats.file_index.keys import KeyType

__all__ = ["Entries", "chunk_starts", "encode", "integers_at", "key_sizes"]


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


def integers_at(data: npt.NDArray[np.uint8], starts: IntArray) -> IntArray:
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
