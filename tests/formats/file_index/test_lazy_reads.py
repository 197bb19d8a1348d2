"""How little of an index is read: offset and length of every read, relative to the file's start."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from alcid import FileIndex, col
from alcid.formats.source import BytesSource
from alcid.testing import CountingSource

DISTINCT = 5_000
ROWS = 4 * DISTINCT  # every number in four rows
NUMBERS = pa.table({"c": pa.array([row * 7 % DISTINCT for row in range(ROWS)], pa.int32())})
C = col("c")


class Opened:
    """An index of `c`, opened from a source that counts reads."""

    def __init__(self, index_type: str, table: pa.Table = NUMBERS, **options: str | int) -> None:
        settings = {
            f"file-index.{index_type}.c.{k.replace('_', '-')}": v for k, v in options.items()
        }
        built = FileIndex.build(table, {f"file-index.{index_type}.columns": "c", **settings})
        self.data = built.to_bytes()
        self.source = CountingSource(BytesSource(self.data))
        self.index = FileIndex.open(self.source, {"c": "INT"}, strict=True)
        self.opening = self.source.take()
        self.start = self.index.entries[0].start

    def numbers(self, offset: int, layout: str) -> tuple[int, ...]:
        """Big-endian numbers at `offset` of the payload."""
        return struct.unpack_from(f">{layout}", self.data, self.start + offset)


@pytest.mark.parametrize("index_type", ["bloom-filter", "bitmap", "range-bitmap", "bsi"])
def test_opening_reads_the_head_of_the_container_only(index_type: str) -> None:
    opened = Opened(index_type)
    # magic, version, head length; then columns, name, indexes, type, start, length, redundant
    assert opened.opening == [(0, 16), (16, 4 + 3 + 4 + 2 + len(index_type) + 4 + 4 + 4)]
    assert opened.start == sum(opened.opening[1])


def test_a_bloom_filter_is_probed_byte_by_byte() -> None:
    opened = Opened("bloom-filter")
    (functions,) = opened.numbers(0, "i")
    assert functions == 5
    assert not opened.index.evaluate(C == 5).skip
    reads = opened.source.take()
    assert reads[0] == (opened.start, 4)
    assert [length for _, length in reads[1:]] == [1] * functions
    assert not opened.index.evaluate(C == 7).skip
    assert [length for _, length in opened.source.take()] == [1] * functions  # the head is cached


def test_a_bloom_filter_is_read_up_to_the_first_zero() -> None:
    empty = pa.table({"c": pa.nulls(10, pa.int32())})
    opened = Opened("bloom-filter", empty, items=100_000, fpp="0.001")
    assert opened.index.evaluate(C == 5).skip
    (head, probe) = opened.source.take()
    assert (head, probe[1]) == ((opened.start, 4), 1)


def test_a_small_bloom_filter_is_read_at_once() -> None:
    opened = Opened("bloom-filter", items=1)
    opened.index.evaluate(C == 5)
    assert len(opened.source.take()) == 2


def test_equality_of_a_bitmap_reads_the_directory_a_block_and_a_bitmap() -> None:
    opened = Opened("bitmap", index_block_size="1kb")
    per_block = (1024 - 4) // 12  # entries of a key, an offset and a length
    count = -(-DISTINCT // per_block)
    directory_end = opened.start + 10 + 4 + 8 * count + 4
    body = directory_end + 1024 * (count - 1) + 4 + 12 * (DISTINCT - per_block * (count - 1))
    block = directory_end + 1024 * (4000 // per_block)
    bitmap_length = 8 + 4 + 4 + 2 * 4  # an array container of four rows

    assert opened.index.evaluate(C == 4000).rows is not None
    reads = opened.source.take()
    before = [read for read in reads if sum(read) <= directory_end]
    assert {position for at, length in before for position in range(at, at + length)} == set(
        range(opened.start, directory_end)
    )
    assert [read for read in reads if read not in before] == [
        (block, 1024),
        (body + 4000 * bitmap_length, bitmap_length),
    ]

    opened.index.evaluate(C == 4001)  # in the same block, which is cached
    assert opened.source.take() == [(body + 4001 * bitmap_length, bitmap_length)]
    opened.index.evaluate(C == -1)  # below the first key
    assert opened.source.take() == []
    opened.index.evaluate(C.is_null())  # the head says that there is none
    assert opened.source.take() == []


class OpenedRange(Opened):
    """A range-bitmap of 20 chunks, and the offsets of its parts."""

    HEAD = 64  # at once: more than the 25 bytes of a head with keys of four bytes

    def __init__(self) -> None:
        super().__init__("range-bitmap", chunk_size="1kb")
        chunks = -(-DISTINCT // 257)
        self.heads = [(self.start, self.HEAD)]
        dictionary = self.start + 25
        self.chunk_heads = [(dictionary, 17), (dictionary + 17, chunks * (4 + 25))]
        self.keys = dictionary + 17 + chunks * (4 + 25)
        slices = self.keys + 4 * (DISTINCT - chunks)
        self.table = [(slices, 14), (slices + 14, 8 * 13)]
        (existing,) = self.numbers(slices - self.start + 6, "i")
        at = slices + 14 + 8 * 13
        self.existing = (at, existing)
        table = self.numbers(slices - self.start + 14, "26i")
        self.slices = [
            (at + existing + table[2 * index], table[2 * index + 1]) for index in range(13)
        ]

    def chunk(self, key: int) -> tuple[int, int]:
        """The block of keys of the chunk with `key`."""
        return self.keys + key // 257 * 1024, 1024


def test_a_key_outside_of_a_range_bitmap_reads_its_head_only() -> None:
    for predicate in (C == -1, C == DISTINCT, C < 0, C > DISTINCT, C.isin([-5, 70_000])):
        opened = OpenedRange()
        assert opened.index.evaluate(predicate).skip
        assert opened.source.take() == opened.heads


def test_equality_of_a_range_bitmap_reads_one_chunk_and_the_slices() -> None:
    opened = OpenedRange()
    assert opened.index.evaluate(C == 4000).rows is not None
    assert opened.source.take() == [
        *opened.heads,
        *opened.chunk_heads,
        opened.chunk(4000),
        *opened.table,
        opened.existing,
        *reversed(opened.slices),
    ]


def test_the_first_key_of_a_chunk_needs_no_chunk() -> None:
    opened = OpenedRange()
    opened.index.evaluate(C == 257)
    read = opened.source.take()
    assert read[: 1 + 2 + 2] == [*opened.heads, *opened.chunk_heads, *opened.table]


def test_a_range_reads_at_most_one_chunk_for_each_bound() -> None:
    opened = OpenedRange()
    opened.index.evaluate(C.between(100, 4000))
    chunks = [read for read in opened.source.take() if opened.keys <= read[0] < opened.table[0][0]]
    assert chunks == [opened.chunk(100), opened.chunk(4001)]


def test_a_range_reads_only_the_slices_that_it_needs() -> None:
    opened = OpenedRange()
    rows = opened.index.evaluate(C >= 4096).rows  # its code is a power of two: one bit decides
    assert rows is not None
    assert len(rows) == 4 * (DISTINCT - 4096)
    read = opened.source.take()
    assert read[:3] == [*opened.heads, *opened.chunk_heads]
    assert [part for part in read if part in opened.slices] == [opened.slices[12]]
    assert read[-1] == opened.existing


@pytest.mark.parametrize("predicate", [C.is_null(), C.is_not_null(), C >= 0, C < DISTINCT])
def test_what_needs_no_key_reads_no_dictionary(predicate: object) -> None:
    opened = OpenedRange()
    opened.index.evaluate(predicate)  # type: ignore[arg-type]
    assert opened.source.take() == [*opened.heads, *opened.table, opened.existing]


def test_bsi_and_bitmap_v1_are_read_once() -> None:
    for opened in (Opened("bsi"), Opened("bitmap", version=1)):
        opened.index.evaluate(C == 5)
        first = opened.source.take()
        assert max(length for _, length in first) >= (len(opened.data) - opened.start) // 4
        opened.index.evaluate(C == 6)
        opened.index.evaluate(C.is_null())
        assert opened.source.take() == []
