"""Paimon's bitmap index, versions 1 and 2: the rows of every distinct value.

    u8 version | i32 rows | i32 distinct | u8 has null [| i32 null offset [| i32 null length]]
    version 1: distinct x (key | i32 offset)
    version 2: i32 blocks | blocks x (first key | i32 block offset) | i32 length of all blocks
               block: i32 entries | entries x (key | i32 offset | i32 length)
    bitmaps, back to back; offsets count from here

A value in a single row has no bitmap: its offset is -1 - row and its length, in version 2, is -1.
The keys of version 2 are sorted, so that one block answers for a value; version 1 is read whole.

Answers equality, IN, their negations and null, with rows. Do not use it for ranges, or for columns
in which nearly every value is different: it grows larger than the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from alcid.formats.arrays import IntArray
from alcid.formats.cursor import Cursor, Writer
from alcid.formats.file_index.column import KeyColumn
from alcid.formats.file_index.entries import chunk_starts, encode, key_sizes
from alcid.formats.file_index.groups import Groups, check_size, group
from alcid.formats.roaring import Serialized, serialize_rows

__all__ = ["SINGLE_LENGTH", "V1", "V2", "BitmapHead", "build"]

V1, V2 = 1, 2
SINGLE_LENGTH = -1
_SERIALIZED_SINGLE = 18  # what Paimon states as the length of a null bitmap that it does not write
_ENTRY = 8
_BLOCK_HEAD = 4


@dataclass(frozen=True, slots=True)
class BitmapHead:
    """The head, which is the same for every type of column."""

    version: int
    row_count: int
    distinct: int
    null_offset: int | None
    """-1 - row of a single null; else where the bitmap of the nulls is; None without nulls."""
    null_length: int | None
    """Only in version 2."""

    @classmethod
    def read(cls, cursor: Cursor) -> BitmapHead:
        """Read and check the head."""
        if (version := cursor.u8()) not in (V1, V2):
            raise cursor.section.error(
                "unknown bitmap version", 0, found=version, expected=f"{V1} or {V2}"
            )
        row_count = cursor.count("row count")
        distinct = cursor.count("distinct count", row_count)
        null_offset = null_length = None
        if cursor.flag("null"):
            null_offset = cursor.i32()
            null_length = cursor.i32() if version == V2 else None
        return cls(version, row_count, distinct, null_offset, null_length)


def build(column: KeyColumn, *, version: int = V2, index_block_size: int = 16384) -> bytes:
    """Build the index.

    Raises:
        LimitError: Its keys are too long together.
    """
    check_size(column)
    groups, nulls = group(column), column.null_rows
    bitmaps, offsets, lengths = _bodies(groups, nulls)
    writer = Writer().u8(version).i32(column.row_count, len(groups.keys)).u8(bool(len(nulls)))
    if len(nulls):
        writer.i32(0 if len(nulls) > 1 else -1 - int(nulls[0]))
        if version == V2:
            null_length = int(bitmaps.offsets[1]) if len(nulls) > 1 else _SERIALIZED_SINGLE
            writer.i32(null_length)
    if version == V1:
        entries = encode(column.key_type, groups.keys, (offsets,))
        writer.raw(entries.slice(0, len(groups.keys)))
    else:
        _write_blocks(writer, column, groups, offsets, lengths, index_block_size)
    return writer.raw(bitmaps.data.tobytes()).to_bytes()


def _bodies(groups: Groups, nulls: IntArray) -> tuple[Serialized, IntArray, IntArray]:
    """The bitmaps, that of the nulls first, and offset and length of every key."""
    counts = np.diff(groups.starts)
    several = counts > 1
    first_rows = groups.rows[groups.starts[:-1]].astype(np.int64)
    null_count = len(nulls) if len(nulls) > 1 else 0
    rows = np.concatenate((nulls[:null_count], groups.rows[np.repeat(several, counts)]))
    sizes = np.append([null_count] if null_count else [], counts[several]).astype(np.int64)
    bitmaps = serialize_rows(rows, np.append(0, np.cumsum(sizes)))
    offsets, lengths = -1 - first_rows, np.full(len(counts), SINGLE_LENGTH)
    own = bitmaps.offsets[1 if null_count else 0 :]
    offsets[several], lengths[several] = own[:-1], np.diff(own)
    return bitmaps, offsets, lengths


def _write_blocks(
    writer: Writer,
    column: KeyColumn,
    groups: Groups,
    offsets: IntArray,
    lengths: IntArray,
    block_size: int,
) -> None:
    """The directory of blocks, and the blocks."""
    key_type, keys = column.key_type, groups.keys
    costs = key_sizes(key_type, keys) + _ENTRY
    starts = chunk_starts(costs, block_size - _BLOCK_HEAD, first_is_free=False)
    entries = encode(key_type, keys, (offsets, lengths))
    blocks = [
        Writer().i32(int(end - begin)).raw(entries.slice(begin, end)).to_bytes()
        for begin, end in pairwise(starts)
    ]
    block_offsets = np.append(0, np.cumsum([len(block) for block in blocks])).astype(np.int64)
    directory = encode(key_type, keys.take(starts[:-1]), (block_offsets[:-1],))
    writer.i32(len(blocks)).raw(directory.slice(0, len(blocks))).i32(int(block_offsets[-1]))
    writer.raw(b"".join(blocks))
