"""The bit slices of a range-bitmap, as they are stored.

    i32 head length | u8 version 1 | u8 slices | i32 length of the existence bitmap | i32 8 * slices
      | slices x (i32 offset | i32 length)        offsets from the end of the existence bitmap
    existence bitmap | slices

There are as many slices as the highest code has bits, at least one; 64 empty ones without a value.
"""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from alcid.formats.arrays import IntArray
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.bit_slices import BitSlices, serialize_presence, serialize_slices
from alcid.formats.roaring import load
from alcid.formats.source import Section

__all__ = ["read_slices", "write_slices"]

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


def read_slices(section: Section, row_count: int, cardinality: int) -> BitSlices:
    """Read the head; bitmaps are loaded when they are needed."""
    cursor = Cursor(section, window=_HEAD + 4)
    head_length = cursor.i32()
    cursor.version("slices", _VERSION)
    count, existing_length, table_length = cursor.u8(), cursor.i32(), cursor.i32()
    if count != _slice_count(cardinality):
        raise section.error("bad slice count", 5, found=count, expected=_slice_count(cardinality))
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
    return BitSlices(
        count,
        lambda: load(section, at, existing_length, row_count),
        lambda index: load(section, base + table[index][0], table[index][1], row_count),
    )
