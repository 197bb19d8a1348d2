"""Bit slices: slice `i` holds the rows whose code has bit `i`. Codes are not negative.

Comparing all rows with one code takes a pass over the slices (O'Neil and Quass), top-n another.
A range-bitmap stores them so:

    i32 head length | u8 version 1 | u8 slices | i32 length of the existence bitmap | i32 8 * slices
      | slices x (i32 offset | i32 length)        offsets from the end of the existence bitmap
    existence bitmap | slices

There are as many slices as the highest code has bits, at least one; 64 empty ones without a value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pyroaring import BitMap

from alcid._arrays import IntArray, UInt32Array, UInt64Array
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.roaring import CONTAINER_BYTES, load, serialize_bits, serialize_rows, to_rows
from alcid.formats.source import Section

_BATCH_BYTES = 1 << 24
_FEW_ROWS = 4096


def serialize_slices(codes: IntArray, count: int) -> list[bytes]:
    """The first `count` slices of unsigned `codes`, one a row, as roaring bitmaps.

    Bytes of the codes are taken apart and packed bit by bit: no rows are ever listed.
    """
    if len(codes) <= _FEW_ROWS:
        return _serialize_few(codes, count)
    planes = codes.astype(f"<u{codes.dtype.itemsize}", copy=False).view(np.uint8)
    planes = planes.reshape(len(codes), codes.dtype.itemsize)
    padded = -(-len(codes) // (8 * CONTAINER_BYTES)) * CONTAINER_BYTES
    at_once = max(1, _BATCH_BYTES // max(padded, 1))
    slices: list[bytes] = []
    plane = np.zeros(0, np.uint8)
    for start in range(0, count, at_once):
        chosen = range(start, min(start + at_once, count))
        packed = np.zeros((len(chosen), padded), np.uint8)
        for row, bit in enumerate(chosen):
            if bit % 8 == 0:
                plane = np.ascontiguousarray(planes[:, bit // 8])
            bits = np.packbits(plane & np.uint8(1 << bit % 8), bitorder="little")
            packed[row, : len(bits)] = bits
        serialized = serialize_bits(packed)
        slices.extend(serialized[row] for row in range(len(chosen)))
    return slices


def _serialize_few(codes: IntArray, count: int) -> list[bytes]:
    """The same for few rows, which are listed: a container of 65,536 bits would be mostly empty."""
    unsigned = codes.astype(f"u{codes.dtype.itemsize}", copy=False)
    bits = unsigned[None, :] >> np.arange(count, dtype=unsigned.dtype)[
        :, None
    ] & unsigned.dtype.type(1)
    numbers, rows = np.nonzero(bits)
    starts = np.searchsorted(numbers, np.arange(count + 1))
    serialized = serialize_rows(rows.astype(np.uint32), starts)
    return [serialized[number] for number in range(count)]


def serialize_presence(present: IntArray) -> bytes:
    """One roaring bitmap of the rows where the array of booleans is true."""
    return serialize_slices(present.view(np.uint8), 1)[0]


class BitSlices:
    """Slices that are loaded when they are needed, and kept."""

    def __init__(
        self, count: int, existing: Callable[[], BitMap], load: Callable[[int], BitMap]
    ) -> None:
        """Use `count` slices, given by `load`, of the rows that `existing` gives."""
        self.count = count
        self._load_existing, self._load = existing, load
        self._slices: dict[int, BitMap] = {}

    @cached_property
    def existing(self) -> BitMap:
        """Rows that have a code."""
        return self._load_existing()

    def slice(self, index: int) -> BitMap:
        """Rows whose code has bit `index`."""
        if index not in self._slices:
            self._slices[index] = self._load(index)
        return self._slices[index]

    def codes(self) -> tuple[UInt32Array, UInt64Array]:
        """All rows that have a code, ascending, and their codes."""
        rows = to_rows(self.existing)
        codes = np.zeros(len(rows), np.uint64)
        for index in range(self.count):
            with_bit = to_rows(self.slice(index) & self.existing)
            codes[np.searchsorted(rows, with_bit)] |= np.uint64(1 << index)
        return rows, codes

    def equal(self, code: int) -> BitMap:
        """Rows with this code."""
        return self.one_of([code])

    def one_of(self, codes: Sequence[int]) -> BitMap:
        """Rows with one of these ascending codes.

        One way down the slices serves all of them: what codes share of their higher bits is
        intersected once.
        """
        first = bisect_left(codes, 0)
        fitting = codes[first : bisect_left(codes, 1 << self.count)]
        return self._one_of(self.existing, fitting, self.count) if fitting else BitMap()

    def _one_of(self, rows: BitMap, codes: Sequence[int], bits: int) -> BitMap:
        """Of `rows`, which agree in all higher bits, those with one of the codes."""
        if len(codes) == 1 << bits:
            return rows.copy()
        if len(codes) == 1:
            return self._equal(rows.copy(), codes[0], bits)
        bit = 1 << bits - 1
        middle = bisect_left(codes, bit, key=lambda code: code & (2 * bit - 1))
        matching = BitMap()
        if (without := codes[:middle]) and (left := rows - self.slice(bits - 1)):
            matching |= self._one_of(left, without, bits - 1)
        if (with_bit := codes[middle:]) and (left := rows & self.slice(bits - 1)):
            matching |= self._one_of(left, with_bit, bits - 1)
        return matching

    def _equal(self, rows: BitMap, code: int, bits: int) -> BitMap:
        """Leave those of `rows` that have the lower `bits` of a code."""
        for index in reversed(range(bits)):
            if code >> index & 1:
                rows &= self.slice(index)
            else:
                rows -= self.slice(index)
            if not rows:
                break
        return rows

    def at_least(self, code: int) -> BitMap:
        """Rows with this code or a higher one."""
        below = code - 1
        if below < 0:
            return self.existing.copy()
        if below.bit_length() > self.count:
            return BitMap()
        lowest_zero = (~below & (below + 1)).bit_length() - 1
        if lowest_zero >= self.count:
            return BitMap()
        rows = self.slice(lowest_zero).copy()
        for index in range(lowest_zero + 1, self.count):
            if below >> index & 1:
                rows &= self.slice(index)
            else:
                rows |= self.slice(index)
        rows &= self.existing
        return rows

    def between(self, begin: int, end: int | None) -> BitMap:
        """Rows with `begin <= code < end`; None is no bound."""
        if end is None:
            return self.at_least(begin)
        if begin >= end:
            return BitMap()
        if end - begin == 1:
            return self.equal(begin)
        rows = self.at_least(begin)
        rows -= self.at_least(end)
        return rows

    def best(self, k: int, *, descending: bool, among: BitMap | None, ties: bool) -> BitMap:
        """The `k` rows with the highest (else lowest) codes, `among` those given.

        With `ties`, all rows that share the last code are kept; without, those with the highest
        positions, as Paimon does.
        """
        open_rows = self.existing.copy() if among is None else self.existing & among
        chosen = BitMap()
        for index in reversed(range(self.count)):
            if len(chosen) + len(open_rows) <= k:
                break
            with_bit = self.slice(index)
            better = open_rows & with_bit if descending else open_rows - with_bit
            if len(chosen) + len(better) >= k:
                open_rows = better
            else:
                chosen |= better
                open_rows -= better
        surplus = len(chosen) + len(open_rows) - k
        if surplus > 0 and not ties:
            open_rows = open_rows[surplus:]
        return chosen | open_rows


_VERSION = 1
_HEAD = 10
_COUNT_WITHOUT_VALUES = 64


def _slice_count(cardinality: int) -> int:
    if not cardinality:
        return _COUNT_WITHOUT_VALUES
    return max(1, (cardinality - 1).bit_length())


def write_slices(codes: IntArray, present: IntArray, cardinality: int) -> bytes:
    """Write the slices of `codes`, one a row, and the rows that are `present`."""
    count = _slice_count(cardinality)
    existing = serialize_presence(present)
    slices = serialize_slices(codes, count) if cardinality else [BitMap().serialize()] * count
    writer = Writer().i32(_HEAD + 8 * count).u8(_VERSION).u8(count).i32(len(existing), 8 * count)
    offset = 0
    for piece in slices:
        writer.i32(offset, len(piece))
        offset += len(piece)
    return writer.raw(existing).raw(b"".join(slices)).to_bytes()


@dataclass(frozen=True, slots=True)
class SliceTable:
    """The head: offset and length of every bitmap, within the slices."""

    existing: tuple[int, int]
    slices: tuple[tuple[int, int], ...]

    @classmethod
    def read(cls, section: Section, cardinality: int) -> SliceTable:
        """Read and check the head: bitmaps must fill the section, in their order."""
        cursor = Cursor(section, window=_HEAD + 4)
        head_length = cursor.i32()
        cursor.version("slices", _VERSION)
        count, existing_length, table_length = cursor.u8(), cursor.i32(), cursor.i32()
        expected = _slice_count(cardinality)
        if count != expected:
            raise section.error("bad slice count", 5, found=count, expected=expected)
        if (head_length, table_length) != (_HEAD + 8 * count, 8 * count):
            raise section.error(
                "bad lengths of head and table of the slices",
                0,
                found=f"{head_length} and {table_length}",
                expected=f"{_HEAD + 8 * count} and {8 * count}",
            )
        table = np.frombuffer(cursor.take(table_length), ">i4").reshape(-1, 2).tolist()
        at = cursor.position
        base = end = at + existing_length
        for offset, length in table:
            if existing_length < 0 or length < 0 or base + offset != end:
                raise section.error("slice out of place", at, found=offset, expected=end - base)
            end += length
        if end != section.length:
            raise section.error("slices of another length", at, found=section.length, expected=end)
        slices = tuple((base + offset, length) for offset, length in table)
        return cls((at, existing_length), slices)


def read_slices(section: Section, row_count: int, cardinality: int) -> BitSlices:
    """Read the head; bitmaps are loaded when they are needed."""
    table = SliceTable.read(section, cardinality)
    return BitSlices(
        len(table.slices),
        lambda: load(section, *table.existing, row_count),
        lambda index: load(section, *table.slices[index], row_count),
    )
