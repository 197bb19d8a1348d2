"""Roaring bitmaps, 32 bit, in the portable serialisation that Java writes after `runOptimize`.

    without runs   u32 12346 | u32 n             | n x key | n x u32 offset | n x data
    with runs      u16 12347 | u16 n - 1 | flags | n x key | n x u32 offset | n x data
                   (a flag bit a container; offsets only if n >= 4)
    key                u16 key, u16 cardinality - 1
    array container    u16 values, at most 4096
    bitset container   8192 bytes, one bit a row
    run container      u16 run count, then (u16 start, u16 length - 1) each

All integers are little-endian. Thousands of bitmaps are written at once, either from sorted rows or
from packed bits: making an object of each would cost microseconds a bitmap. To read rows, use
`load` or `parse`; the layout of the containers is only for showing bytes, and is checked less.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from pyroaring import BitMap

from alcid._arrays import BoolArray, IntArray, UInt8Array, UInt32Array
from alcid.formats.source import Section

CONTAINER_BYTES = 8192
_CONTAINER_ROWS = 1 << 16
LARGEST_ARRAY = 4096
COOKIE, RUN_COOKIE = 12346, 12347
FEWEST_WITH_OFFSETS = 4
_ARRAY, _BITSET, _RUN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Serialized:
    """Many bitmaps, back to back: bitmap `i` is `data[offsets[i]:offsets[i + 1]]`."""

    data: UInt8Array
    offsets: IntArray

    def __getitem__(self, index: int) -> bytes:
        """The bytes of one bitmap."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()


def load(section: Section, offset: int, length: int, row_count: int) -> BitMap:
    """The bitmap of exactly `length` bytes at `offset`, all of its rows below `row_count`."""
    bitmap, used = parse(section, offset, memoryview(section.read(offset, length)), row_count)
    if used != length:
        raise section.error("bitmap of another length", offset, found=used, expected=length)
    return bitmap


def parse(section: Section, offset: int, data: memoryview, row_count: int) -> tuple[BitMap, int]:
    """The bitmap at the start of `data`, which was read from `offset`, and its length.

    A bitmap has no checksum: it is accepted only if it serialises to the very bytes it was read
    from.
    """
    try:
        bitmap = BitMap.deserialize(data)  # type: ignore[arg-type]  # any buffer serves
    except (ValueError, IndexError) as error:
        raise section.error(f"bad roaring bitmap ({error})", offset) from None
    again = bitmap.serialize()
    if again != data[: len(again)].tobytes():  # comparing a view would go byte by byte
        raise section.error(
            "bad roaring bitmap", offset, found="offsets or counts that do not fit the containers"
        )
    if bitmap and bitmap.max() >= row_count:
        raise section.error(
            "row outside of the file", offset, found=bitmap.max(), expected=f"below {row_count}"
        )
    return bitmap, len(again)


def to_rows(bitmap: BitMap) -> UInt32Array:
    """The rows of a bitmap, ascending.

    >>> to_rows(BitMap([7, 3])).tolist()
    [3, 7]
    """
    return np.asarray(bitmap.to_array(), np.uint32)


def serialize_rows(rows: UInt32Array, starts: IntArray) -> Serialized:
    """Serialise the bitmaps of `rows[starts[i]:starts[i + 1]]`, each ascending.

    >>> serialize_rows(np.array([5], np.uint32), np.array([0, 1]))[0].hex(" ", 4)
    '3a30 00000100 00000000 00001000 00000500'
    """
    low, high = rows.astype(np.uint16), rows >> 16
    begins = np.zeros(len(rows), bool)  # where a container begins
    begins[starts[:-1][np.diff(starts) > 0]] = True
    begins[1:] |= high[1:] != high[:-1]
    run_begins = begins.copy()
    run_begins[1:] |= rows[1:] != rows[:-1] + 1
    first = np.flatnonzero(begins)
    cardinality = np.diff(first, append=len(rows))
    runs = np.add.reduceat(run_begins, first, dtype=np.int64) if len(first) else first
    frame = _frame(np.searchsorted(first, starts), high[first], cardinality, runs)
    container = np.repeat(np.arange(len(first)), cardinality)
    frame.put_arrays_and_runs(low, container, first, run_begins)
    in_bitset = frame.kind[container] == _BITSET
    if in_bitset.any():
        frame.put_bitset_rows(low[in_bitset], container[in_bitset])
    return Serialized(frame.data, frame.offsets)


def serialize_bits(bits: UInt8Array) -> Serialized:
    """Serialise each row of `bits`: packed, lowest bit first, padded to whole containers."""
    containers_each = bits.shape[1] // CONTAINER_BYTES
    words = bits.reshape(-1, CONTAINER_BYTES).view(np.uint64)
    cardinality = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    below = words << np.uint64(1)  # a run begins at a set bit whose lower neighbour is clear
    below[:, 1:] |= words[:, :-1] >> np.uint64(63)
    runs = np.bitwise_count(words & ~below).sum(axis=1, dtype=np.int64)
    present = np.flatnonzero(cardinality)
    starts = np.searchsorted(present, np.arange(bits.shape[0] + 1) * containers_each)
    keys = present % max(containers_each, 1)
    frame = _frame(starts, keys, cardinality[present], runs[present])
    for index in np.flatnonzero(frame.kind == _BITSET):
        at = frame.data_at[index]
        frame.data[at : at + CONTAINER_BYTES] = words[present[index]].view(np.uint8)
    sparse = np.flatnonzero(frame.kind != _BITSET)
    for part in np.array_split(sparse, len(sparse) // 64 + 1):  # unpacked, a container is 64 KiB
        chosen = words[present[part]].view(np.uint8)
        local, low = np.nonzero(np.unpackbits(chosen, axis=1, bitorder="little"))
        run_begins = np.ones(len(low), bool)
        run_begins[1:] = (low[1:] != low[:-1] + 1) | (local[1:] != local[:-1])
        first = np.searchsorted(local, np.arange(len(part)))
        frame.put_arrays_and_runs(low.astype(np.uint16), part[local], first, run_begins, local)
    return Serialized(frame.data, frame.offsets)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Bitmaps with their headers written and room for the data of each container."""

    data: UInt8Array
    offsets: IntArray
    data_at: IntArray
    kind: IntArray

    def put_arrays_and_runs(
        self,
        low: IntArray,
        container: IntArray,
        first: IntArray,
        run_begins: BoolArray,
        local: IntArray | None = None,
    ) -> None:
        """Write the rows of array and run containers.

        `first` holds where the rows of each container begin, by `local`, the number of the
        container among those given; by default the containers given are all.
        """
        local = container if local is None else local
        kind = self.kind[container]
        chosen = np.flatnonzero(kind == _ARRAY)
        rank = chosen - first[local[chosen]]
        _put(self.data, self.data_at[container[chosen]] + 2 * rank, low[chosen], 2)
        begin = np.flatnonzero(run_begins & (kind == _RUN))
        if not len(begin):
            return
        # The last row of a run is the one before the next beginning, in whatever container.
        following = np.append(np.flatnonzero(run_begins), len(low))
        end = following[np.searchsorted(following, begin, side="right")] - 1
        owner, rank = container[begin], np.arange(len(begin))
        new = np.flatnonzero(np.diff(owner, prepend=-1))
        count = np.diff(new, append=len(begin))
        rank -= np.repeat(new, count)
        _put(self.data, self.data_at[owner[new]], count, 2)
        at = self.data_at[owner] + 2 + 4 * rank
        _put(self.data, at, low[begin], 2)
        _put(self.data, at + 2, low[end] - low[begin], 2)

    def put_bitset_rows(self, low: IntArray, container: IntArray) -> None:
        """Write the rows of bitset containers."""
        at = self.data_at[container] + (low >> 3)
        new = np.flatnonzero(np.diff(at, prepend=-1))
        bit = np.left_shift(1, low & 7).astype(np.uint8)
        self.data[at[new]] = np.bitwise_or.reduceat(bit, new)


def _frame(starts: IntArray, keys: IntArray, cardinality: IntArray, runs: IntArray) -> _Frame:
    """Lay out bitmaps; those of bitmap `i` are the containers `starts[i]` to `starts[i + 1]`."""
    plain = np.where(cardinality > LARGEST_ARRAY, CONTAINER_BYTES, 2 * cardinality)
    as_runs = 2 + 4 * runs
    is_run = as_runs < plain
    kind = np.where(is_run, _RUN, np.where(cardinality > LARGEST_ARRAY, _BITSET, _ARRAY))
    size = np.where(is_run, as_runs, plain)

    count = np.diff(starts)
    has_run = np.diff(np.append(0, np.cumsum(is_run))[starts]) > 0
    with_offsets = ~has_run | (count >= FEWEST_WITH_OFFSETS)
    fixed = np.where(has_run, 4 + (count + 7) // 8, 8)
    header = fixed + 4 * count * (1 + with_offsets)
    body_end = np.append(0, np.cumsum(size))
    offsets = np.append(0, np.cumsum(header + np.diff(body_end[starts])))
    data = np.zeros(int(offsets[-1]), np.uint8)

    bitmap = np.repeat(np.arange(len(count)), count)
    rank = np.arange(len(keys)) - starts[bitmap]
    data_at = offsets[bitmap] + header[bitmap] + body_end[:-1] - body_end[starts[bitmap]]

    at = offsets[:-1]
    _put(data, at[~has_run], np.full(np.count_nonzero(~has_run), COOKIE), 4)
    _put(data, at[~has_run] + 4, count[~has_run], 4)
    _put(data, at[has_run], RUN_COOKIE | (count[has_run] - 1) << 16, 4)
    flagged = np.flatnonzero(is_run)
    flags_at = offsets[bitmap[flagged]] + 4 + (rank[flagged] >> 3)
    np.bitwise_or.at(data, flags_at, np.left_shift(1, rank[flagged] & 7).astype(np.uint8))

    described_at = offsets[bitmap] + fixed[bitmap] + 4 * rank
    _put(data, described_at, keys, 2)
    _put(data, described_at + 2, cardinality - 1, 2)
    located = with_offsets[bitmap]
    offset_at = (described_at + 4 * count[bitmap])[located]
    _put(data, offset_at, (data_at - offsets[bitmap])[located], 4)
    return _Frame(data, offsets, data_at, kind)


def _put(data: UInt8Array, at: IntArray, values: IntArray, width: int) -> None:
    """Write little-endian integers of `width` bytes; bitmaps are not aligned."""
    for byte in range(width):
        data[at + byte] = (values >> 8 * byte).astype(np.uint8)


ContainerKind: TypeAlias = Literal["array", "bitset", "runs"]


@dataclass(frozen=True, slots=True)
class RoaringContainer:
    """The rows that share their upper 16 bits."""

    key: int
    cardinality: int
    kind: ContainerKind
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class RoaringLayout:
    """The parts of a bitmap that was found right; offsets count from its first byte."""

    has_runs: bool
    containers: tuple[RoaringContainer, ...]
    flags_at: int
    """Where the flags of run containers begin, or would."""
    keys_at: int
    offsets_at: int | None
    """None if there are none: with runs and fewer than four containers."""

    @classmethod
    def of(cls, data: bytes) -> RoaringLayout:
        """The layout of exactly the bytes of one bitmap, which `parse` has accepted.

        >>> from pyroaring import BitMap
        >>> RoaringLayout.of(BitMap([1, 5]).serialize()).containers
        (RoaringContainer(key=0, cardinality=2, kind='array', offset=16, length=4),)
        """
        cookie, less_one = struct.unpack_from("<HH", data)
        has_runs = cookie == RUN_COOKIE
        count = less_one + 1 if has_runs else struct.unpack_from("<I", data, 4)[0]
        keys_at = 4 + (count + 7) // 8 if has_runs else 8
        flags = np.unpackbits(np.frombuffer(data, np.uint8, keys_at - 4, 4), bitorder="little")
        described = np.frombuffer(data, "<u2", 2 * count, keys_at).reshape(count, 2).tolist()
        at = keys_at + 4 * count
        with_offsets = not has_runs or count >= FEWEST_WITH_OFFSETS
        offsets_at = at if with_offsets else None
        at += 4 * count * with_offsets
        containers = []
        for number, (key, fewer) in enumerate(described):
            kind: ContainerKind = "array" if fewer < LARGEST_ARRAY else "bitset"
            length = 2 * (fewer + 1) if kind == "array" else CONTAINER_BYTES
            if has_runs and flags[number]:
                kind, length = "runs", 2 + 4 * int.from_bytes(data[at : at + 2], "little")
            containers.append(RoaringContainer(key, fewer + 1, kind, at, length))
            at += length
        return cls(has_runs, tuple(containers), 4, keys_at, offsets_at)
