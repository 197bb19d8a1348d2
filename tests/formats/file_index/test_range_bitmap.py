"""What a range-bitmap says about itself, beyond the answers that `FileIndex` takes from it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import FormatError
from alcid.formats.file_index.keys import KeyColumn, KeyType, read_column
from alcid.formats.file_index.range_bitmap import RangeBitmapReader, build
from alcid.formats.source import BytesSource, Section
from alcid.types import DataType

INT, BYTES = KeyType(4), KeyType(0)
#           0    1     2   3    4    5  6
NUMBERS = [256, 10, None, 10, 256, -5, 10]
BAD_LENGTHS = "bad lengths of head and table of the slices at offset {0}"


def column_of(values: Sequence[Any]) -> KeyColumn:
    array = pa.array(values)
    is_text = pa.types.is_string(array.type)
    return read_column(array, DataType.parse("STRING" if is_text else "INT"))


def opened(payload: bytes, key_type: KeyType = INT) -> RangeBitmapReader:
    return RangeBitmapReader(Section(BytesSource(b"." + payload, "x.index"), 1), key_type)


@pytest.mark.parametrize("chunk_size", [0, 4, 100])
def test_contents_items_extremes_and_chunks(chunk_size: int) -> None:
    column = column_of(NUMBERS)
    payload = build(column, chunk_size=chunk_size)
    reader = opened(payload)
    assert (reader.row_count, reader.cardinality, reader.min, reader.max) == (7, 3, -5, 256)
    rows, keys = reader.contents()
    assert (rows.dtype, keys.dtype) == (np.dtype("u4"), np.dtype("i4"))
    assert rows.tolist() == [0, 1, 3, 4, 5, 6]
    assert keys.tolist() == [256, 10, 10, 256, -5, 10]
    assert [(key, list(positions)) for key, positions in reader.items()] == [
        *[(-5, [5]), (10, [1, 3, 6]), (256, [0, 4])]
    ]
    assert reader.extremes(2, descending=True) == [256, 10]
    assert reader.extremes(2, descending=False) == [-5, 10]
    assert reader.chunk_size == min(chunk_size, 8)
    assert build(column, chunk_size=reader.chunk_size) == payload


def test_contents_of_text() -> None:
    rows, keys = opened(build(column_of(["b", None, "a", "b"])), BYTES).contents()
    assert rows.tolist() == [0, 2, 3]
    assert keys.to_pylist() == [b"b", b"a", b"b"]


def test_a_column_of_nulls_has_no_contents() -> None:
    reader = opened(build(read_column(pa.nulls(3, pa.int32()), DataType("INT"))))
    rows, keys = reader.contents()
    assert (rows.tolist(), keys.tolist()) == ([], [])
    assert reader.extremes(2, descending=True) == []
    assert reader.chunk_size == 0
    assert list(reader.is_null().rows or ()) == [0, 1, 2]
    assert reader.between(None, None).skip
    assert reader.is_in([1]).skip
    last = reader.top_n(2, descending=False, nulls="last", ties=False)
    assert list(last.rows or ()) == [0, 1]


def test_small_keys_have_a_chunk_each() -> None:
    narrow = read_column(pa.array([3, 1, 2], pa.int16()), DataType("SMALLINT"))
    assert build(narrow) == build(narrow, chunk_size=0) != build(narrow, chunk_size=2)
    wide = column_of([3, 1, 2])
    assert build(wide) == build(wide, chunk_size=16384) != build(wide, chunk_size=0)
    text = column_of(["c", "a", "b"])
    assert build(text) == build(text, chunk_size=16384) != build(text, chunk_size=0)


def put(offset: int, layout: str, *values: int) -> bytes:
    """The index of `NUMBERS`: i32 head, u8 version, i32 rows @5, i32 cardinality @9, min @13..."""
    payload = build(column_of(NUMBERS))
    new = struct.pack(f">{layout}", *values)
    assert payload[offset : offset + len(new)] != new, "no damage"
    return payload[:offset] + new + payload[offset + len(new) :]


def test_a_head_that_ends_elsewhere_is_seen() -> None:
    # One byte earlier, the length of the dictionary reads as 0, as the maximum ends with a zero.
    with pytest.raises(FormatError) as raised:
        opened(put(0, "i", 20))
    assert str(raised.value) == "x.index: bad head length at offset 1: found 20, expected 21"


@pytest.mark.parametrize(
    ("damage", "is_seen"),
    [
        ((13, "i", 257), True),
        ((13, "i", 256), True),  # equal, with three keys
        ((13, "ii", -5, -6), True),
        ((13, "i", -6), False),
    ],
)
def test_minimum_and_maximum_are_in_order(damage: Any, is_seen: bool) -> None:
    payload = put(*damage)
    if not is_seen:
        assert opened(payload).min == -6
        return
    with pytest.raises(FormatError) as raised:
        opened(payload)
    assert str(raised.value) == "x.index: minimum and maximum not in order at offset 14"


def test_one_key_is_minimum_and_maximum() -> None:
    payload = bytearray(build(column_of([4, None, 4])))
    assert (opened(bytes(payload)).min, opened(bytes(payload)).max) == (4, 4)
    payload[13:17] = struct.pack(">i", 3)
    with pytest.raises(FormatError, match="minimum and maximum not in order"):
        opened(bytes(payload))


def test_bounds_that_the_dictionary_contradicts_are_seen() -> None:
    reader = opened(put(13, "i", -6))
    with pytest.raises(FormatError) as raised:
        reader.is_in([10])
    assert str(raised.value) == ("x.index: minimum that the dictionary contradicts at offset 14")
    for payload in (put(13, "i", -6), put(17, "i", 257)):
        with pytest.raises(FormatError) as raised:
            opened(payload).contents()
        assert str(raised.value) == (
            "x.index: minimum or maximum that the dictionary contradicts at offset 14"
        )


def test_a_code_beyond_the_keys_is_seen() -> None:
    payload = build(column_of(NUMBERS))
    slices = opened(payload).head.slices_at
    # i32 head, u8 version, u8 2 slices, i32 existence @6, i32 table, 2 x (offset, length) @14
    existing, first, second = (
        struct.unpack_from(">i", payload, slices + at)[0] for at in (6, 18, 26)
    )
    begin = slices + 30 + existing
    # Slice 0 has the rows of 10, slice 1 those of 256: with each of them in both, codes are 3.
    rows = payload[begin : begin + first]
    table = struct.pack(">iiii", 0, first, first, first)
    damaged = payload[: slices + 14] + table + payload[slices + 30 : begin] + rows + rows
    assert len(damaged) == len(payload) + first - second
    with pytest.raises(FormatError) as raised:
        opened(damaged).contents()
    assert str(raised.value) == (
        "x.index: code beyond the keys at offset 1: found 3, expected below 3"
    )


def test_a_dictionary_beyond_the_payload_is_named() -> None:
    left = len(build(column_of(NUMBERS))) - 25
    with pytest.raises(FormatError) as raised:
        opened(put(21, "i", left + 1))
    assert str(raised.value) == (
        f"x.index: bad dictionary length at offset 22: found {left + 1}, expected 0 to {left}"
    )
    assert opened(put(21, "i", left)).head.dictionary_length == left


@pytest.mark.parametrize(
    ("at", "layout", "value", "message"),
    [
        (4, "B", 2, "unknown slices version at offset {4}: found 2, expected 1"),
        (5, "B", 3, "bad slice count at offset {5}: found 3, expected 2"),
        (0, "i", 25, f"{BAD_LENGTHS}: found 25 and 16, expected 26 and 16"),
        (10, "i", 17, f"{BAD_LENGTHS}: found 26 and 17, expected 26 and 16"),
        (14, "i", 1, "slice out of place at offset {30}: found 1, expected 0"),
        (22, "i", 1, "slice out of place at offset {30}: found 1, expected 22"),
        (18, "i", -1, "slice out of place at offset {30}: found 0, expected 0"),
        (26, "i", 21, "slices of another length at offset {30}: found {-1}, expected {-2}"),
    ],
)
def test_a_table_of_slices_that_does_not_fit_is_named(
    at: int, layout: str, value: int, message: str
) -> None:
    payload = build(column_of(NUMBERS))
    slices = opened(payload).head.slices_at
    length = len(payload) - slices
    reader = opened(put(slices + at, layout, value))
    with pytest.raises(FormatError) as raised:
        reader.slices  # noqa: B018
    for distance in (0, 4, 5, 30):
        message = message.replace(f"{{{distance}}}", str(1 + slices + distance))
    message = message.replace("{-1}", str(length)).replace("{-2}", str(length + 1))
    assert str(raised.value) == f"x.index: {message}"
