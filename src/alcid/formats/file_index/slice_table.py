"""The bit slices of a range-bitmap, as they are stored.

    i32 head length | u8 version 1 | u8 slices | i32 length of the existence bitmap | i32 8 * slices
      | slices x (i32 offset | i32 length)        offsets from the end of the existence bitmap
    existence bitmap | slices

There are as many slices as the highest code has bits, at least one; 64 empty ones without a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from alcid.formats.arrays import IntArray
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.bit_slices import BitSlices, serialize_presence, serialize_slices
from alcid.formats.roaring import load
from alcid.formats.source import Section

__all__ = ["SliceTable", "read_slices", "write_slices"]

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
