"""What a bitmap index says about itself, beyond the answers that `FileIndex` takes from it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import FormatError
from alcid.formats.file_index.bitmap import V1, V2, BitmapBlock, BitmapReader, build, open_bitmap
from alcid.formats.file_index.keys import KeyColumn, KeyType, read_column
from alcid.formats.source import BytesSource, Section
from alcid.types import DataType

INT, BYTES = KeyType(4), KeyType(0)
#          0   1   2     3   4   5   6     7
NUMBERS = [9, -3, 9, None, -3, 40, -3, None]
TEXTS = ["b", "a", "b", None, "a", "cc", "a", None]


def column_of(values: Sequence[Any]) -> KeyColumn:
    array = pa.array(values)
    is_text = pa.types.is_string(array.type)
    return read_column(array, DataType.parse("STRING" if is_text else "INT"))


def opened(payload: bytes, key_type: KeyType = INT) -> BitmapReader:
    return open_bitmap(Section(BytesSource(b"..." + payload, "x.index"), 3), key_type)


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("block_size", [1, 1000])
def test_contents_are_the_rows_that_have_a_key(version: int, block_size: int) -> None:
    payload = build(column_of(NUMBERS), version=version, index_block_size=block_size)
    rows, keys = opened(payload).contents()
    assert (rows.dtype, keys.dtype) == (np.dtype("u4"), np.dtype("i4"))
    pairs = sorted(zip(rows.tolist(), keys.tolist(), strict=True))
    assert pairs == [(0, 9), (1, -3), (2, 9), (4, -3), (5, 40), (6, -3)]

    payload = build(column_of(TEXTS), version=version, index_block_size=block_size)
    rows, texts = opened(payload, BYTES).contents()
    assert sorted(zip(rows.tolist(), texts.to_pylist(), strict=True)) == [
        *[(0, b"b"), (1, b"a"), (2, b"b"), (4, b"a"), (5, b"cc"), (6, b"a")]
    ]


def test_nothing_but_nulls_has_no_contents() -> None:
    column = read_column(pa.nulls(3, pa.int32()), DataType("INT"))
    for version in (V1, V2):
        reader = opened(build(column, version=version))
        rows, keys = reader.contents()
        assert (rows.tolist(), keys.tolist(), list(reader.nulls)) == ([], [], [0, 1, 2])
        assert list(reader.items()) == []


@pytest.mark.parametrize(
    ("block_size", "bounds", "said"),
    [
        (1, [0, 16, 32, 48], 1),  # one key per block, which may be larger than it should be
        (28, [0, 28, 44], 28),
        (39, [0, 28, 44], 28),
        (40, [0, 40], 40),
    ],
)
def test_blocks_are_found_and_their_size_makes_them_again(
    block_size: int, bounds: list[int], said: int
) -> None:
    payload = build(column_of(NUMBERS), index_block_size=block_size)
    reader = opened(payload)
    # u8 version, i32 rows, i32 distinct, u8 has null, i32 offset, i32 length: 18; i32 blocks, pairs
    start = 18 + 4 + 8 * (len(bounds) - 1) + 4
    assert reader.blocks == [(start + begin, start + end) for begin, end in pairwise(bounds)]
    assert reader.body_at == start + bounds[-1]
    assert reader.block_size == said
    assert build(column_of(NUMBERS), index_block_size=said) == payload


def test_version_1_has_no_blocks() -> None:
    reader = opened(build(column_of(NUMBERS), version=V1))
    assert (reader.blocks, reader.block_size) == ([], None)
    assert reader.body_at == 14 + 3 * 8
    # Java keeps no order; ours is ascending. 40 is in row 5 only.
    assert list(reader.places()) == [(-3, 20, None), (9, 42, None), (40, -6, None)]
    assert [(key, list(rows)) for key, rows in reader.items()] == [
        *[(-3, [1, 4, 6]), (9, [0, 2]), (40, [5])]
    ]


def test_keys_with_the_same_bitmap_are_seen_by_their_bytes() -> None:
    # 22 bytes for the three rows of 1, 20 for those of 2; a block of (key, offset, length) @26
    payload = bytearray(build(column_of([1, 1, 1, 2, 2])))
    assert struct.unpack_from(">iiiiiii", payload, 26) == (2, 1, 0, 22, 2, 22, 20)
    struct.pack_into(">ii", payload, 46, 0, 22)
    reader = opened(bytes(payload))
    message = "x.index: bitmaps that overlap at offset 57: found 44, expected at most 42"
    for ask in (lambda: reader.is_in([1, 2]), reader.contents, lambda: list(reader.items())):
        with pytest.raises(FormatError) as raised:
            ask()
        assert str(raised.value) == message
    assert list(reader.is_in([2]).rows or ()) == [0, 1, 2]


def test_more_rows_with_a_key_than_there_are_is_seen() -> None:
    # A run of 100 rows takes fewer bytes than the three rows of 2.
    values = [1] * 100 + [2, 3, 2, 3, 2]
    payload = bytearray(build(column_of(values)))
    _, key, offset, length, second, *_ = struct.unpack_from(">iiiiiii", payload, 26)
    assert (key, offset, length, second) == (1, 0, 15, 2)
    struct.pack_into(">ii", payload, 46, offset, length)
    with pytest.raises(FormatError) as raised:
        opened(bytes(payload)).contents()
    assert str(raised.value) == (
        "x.index: too many rows with a key at offset 3: found 200, expected at most 105"
    )


def block_of(data: bytes, key_type: KeyType) -> BitmapBlock:
    return BitmapBlock(Section(BytesSource(data, "x.index")), key_type)


A_AND_B = struct.pack(">i i1sii i1sii", 2, 1, b"a", 7, 8, 1, b"b", 9, 10)


def test_a_block_of_text_is_filled_by_its_entries() -> None:
    block = block_of(A_AND_B, BYTES)
    assert block.ends == (b"a", b"b")
    assert list(block.entries()) == [(b"a", 7, 8), (b"b", 9, 10)]
    entries = [block.find(key) for key in (b"", b"a", b"aa", b"b", b"c")]
    assert entries == [None, (7, 8), None, (9, 10), None]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (A_AND_B + b"\0", "block of another length at offset 0: found 31, expected 30"),
        (bytes(4), "block of another length at offset 0: found 4, expected 4"),
        (A_AND_B[:-1], "truncated block at offset 17"),
        (A_AND_B[:18], "truncated block at offset 17"),
        (b"\0\0\0\1" + A_AND_B[4:], "block of another length at offset 0: found 30, expected 17"),
        (b"\0\0\0\4" + A_AND_B[4:], "bad entry count at offset 0: found 4, expected 0 to 3"),
        (A_AND_B[:21] + b"a" + A_AND_B[22:], "keys of a block not in order at offset 17"),
        (
            A_AND_B[:17] + b"\xff\xff\xff\xff" + A_AND_B[21:],
            "keys of a block not in order at offset 17",
        ),
    ],
    ids=["behind", "empty", "cut", "cut-length", "fewer", "many", "repeated", "negative"],
)
def test_damage_of_a_block_of_text_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as raised:
        block_of(data, BYTES)
    assert str(raised.value) == f"x.index: {message}"


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((2, 5, 7, 8, 9), "block of another length at offset 0: found 20, expected 2 entries of"),
        ((0, 5, 7, 8), "block of another length at offset 0: found 16, expected 0 entries of 12"),
        ((2, 5, 7, 8, 5, 9, 9), "keys of a block not in order at offset 4"),
        ((2, 5, 7, 8, 4, 9, 9), "keys of a block not in order at offset 4"),
    ],
)
def test_damage_of_a_block_of_numbers_is_named(numbers: tuple[int, ...], message: str) -> None:
    with pytest.raises(FormatError) as raised:
        block_of(struct.pack(f">{len(numbers)}i", *numbers), INT)
    assert str(raised.value).startswith(f"x.index: {message}")


def test_a_block_of_numbers_is_searched() -> None:
    block = block_of(struct.pack(">7i", 2, -5, 7, 8, 6, 9, 10), INT)
    assert block.ends == (-5, 6)
    assert list(block.entries()) == [(-5, 7, 8), (6, 9, 10)]
    entries = [block.find(key) for key in (-6, -5, 0, 6, 7)]
    assert entries == [None, (7, 8), None, (9, 10), None]


@pytest.mark.parametrize(("values", "count"), [([1, 2], 0), ([None], 1), ([1, 2], 3)])
def test_a_number_of_blocks_that_does_not_fit_the_keys_is_named(
    values: list[int | None], count: int
) -> None:
    payload = bytearray(build(read_column(pa.array(values, pa.int32()), DataType("INT"))))
    at = 18 if None in values else 10
    struct.pack_into(">i", payload, at, count)
    with pytest.raises(FormatError) as raised:
        opened(bytes(payload))
    distinct = len(values) - values.count(None)
    expected = "as there are keys" if count <= distinct else f"0 to {distinct}"
    assert str(raised.value) == (
        f"x.index: bad block count at offset {3 + at}: found {count}, expected {expected}"
    )
