"""Thrift's compact protocol: values, and input that must be refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.datafiles.parquet.layout import parse_offset_indexes
from alcid.datafiles.parquet.pages import values_of_pages
from alcid.datafiles.parquet.thrift import StructReader, get, read_varints, unzigzag
from alcid.errors import FormatError


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63) if value < 0 else value << 1)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("00", {}),
        ("11 12 00", {1: True, 2: False}),
        ("13 ff 00", {1: 255}),
        ("14 02 15 03 16 04 00", {1: 1, 2: -2, 3: 2}),
        ("16 ffffffffffffffffff01 00", {1: -(1 << 63)}),
        ("16 feffffffffffffffff01 00", {1: (1 << 63) - 1}),
        ("17" + struct.pack("<d", 1.5).hex() + "00", {1: 1.5}),
        ("18 03 616263 00", {1: b"abc"}),
        ("19 35 02 04 06 00", {1: [1, 2, 3]}),
        ("1a 21 01 02 00", {1: [True, False]}),
        ("19 f5 0f" + "02" * 15 + "00", {1: [1] * 15}),
        ("1b 01 85 01 61 02 00", {1: [(b"a", 1)]}),
        ("1b 00 00", {1: []}),
        ("1c 15 02 00 00", {1: {1: 1}}),
        ("19 2c 15 02 00 00 00", {1: [{1: 1}, {}]}),
        ("05 c801 02 15 04 00", {100: 1, 101: 2}),
    ],
)
def test_values(data: str, expected: object) -> None:
    reader = StructReader(bytes.fromhex(data) + b"rest")
    assert reader.struct() == expected
    assert reader.position == len(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "truncated metadata at offset 100"),
        ("15", "truncated metadata at offset 101"),
        ("15 80", "truncated metadata at offset 102"),
        ("18 05 6162", "truncated metadata at offset 102: found 2 bytes, expected 5"),
        ("17 00", "truncated metadata at offset 101: found 1 bytes, expected 8"),
        ("1d 00", "unknown kind of field at offset 100: found 13, expected 1 to 12"),
        ("16 ffffffffffffffffffff01 00", "number of more than 64 bits at offset 101"),
        ("16 ffffffffffffffffff02 00", "number of more than 64 bits at offset 101"),
        ("19 fc ffffffff0f", "more elements than bytes at offset 101: found 4294967295, expected"),
        ("1b ffffffff0f 11", "more elements than bytes at offset 101: found 4294967295, expected"),
        ("1c" * 40, "metadata nested too deep at offset 133"),
        ("19" + "19" * 40, "metadata nested too deep at offset"),
    ],
)
def test_not_a_struct_is_refused(data: str, problem: str) -> None:
    with pytest.raises(FormatError) as raised:
        StructReader(bytes.fromhex(data), name="a", offset=100).struct()
    assert str(raised.value).startswith(f"a: {problem}")


def test_spans_are_the_bytes_of_each_struct() -> None:
    data = bytes.fromhex("15 02 19 2c 15 02 00 00 19 1c 00 00")
    reader = StructReader(data)
    assert reader.spans(2) == [b"\x15\x02\x00", b"\x00"]
    assert reader.spans(3) == [b"\x00"]
    assert reader.spans(1) == reader.spans(4) == []
    assert reader.struct() == {1: 1, 2: [{1: 1}, {}], 3: [{}]}


def test_a_field_must_be_of_its_kind() -> None:
    with pytest.raises(FormatError, match=r"a: bad field 3 in the metadata: found nothing, "):
        get({}, 3, int, file="a")
    with pytest.raises(FormatError, match=r"a: bad field 3 .*: found bytes, expected int"):
        get({3: b""}, 3, int, file="a")
    with pytest.raises(FormatError, match=r"a: bad field 3 .*: found bool, expected int"):
        get({3: True}, 3, int, 5, file="a")


@given(st.lists(st.lists(st.integers(0, (1 << 63) - 1), max_size=5), max_size=5), st.binary())
def test_varints_are_read_from_any_offsets(groups: list[list[int]], before: bytes) -> None:
    data, starts = bytearray(before), []
    for group in groups:
        starts.append(len(data))
        data.extend(b"".join(map(varint, group)))
    values = read_varints(
        np.frombuffer(bytes(data), np.uint8),
        np.array(starts, np.int64),
        np.array([len(group) for group in groups], np.int64),
    )
    assert values.tolist() == [value for group in groups for value in group]


@pytest.mark.parametrize(
    ("data", "count", "expected"),
    [
        ("", 2, [-1, -1]),
        ("80", 1, [-1]),
        ("05 80", 2, [5, -1]),
        ("05", 3, [5, -1, -1]),
        ("ffffffffffffffffff01", 1, [-1]),
        ("ffffffffffffffff7f", 1, [(1 << 63) - 1]),
    ],
)
def test_an_invalid_varint_is_minus_one(data: str, count: int, expected: list[int]) -> None:
    bytes_ = np.frombuffer(bytes.fromhex(data), np.uint8)
    assert read_varints(bytes_, np.array([0]), np.array([count])).tolist() == expected


@given(st.integers(-(1 << 62), (1 << 62) - 1))
def test_zigzag(value: int) -> None:
    assert unzigzag(np.array([(value << 1) ^ (value >> 63)])) == [value]


locations = st.lists(
    st.tuples(st.integers(0, 1 << 61), st.integers(0, (1 << 31) - 1), st.integers(0, 1 << 61)),
    max_size=20,
)


def offset_index(
    pages: list[tuple[int, int, int]], *, odd: bool = False, more: bytes = b""
) -> bytes:
    """An offset index; `odd` ones have long field headers, which no writer writes."""
    first, two, three = (
        (b"\x06\x02", b"\x05\x04", b"\x06\x06") if odd else (b"\x16", b"\x15", b"\x16")
    )
    head = bytes((len(pages) << 4 | 12,)) if len(pages) < 15 else b"\xfc" + varint(len(pages))
    body = b"".join(
        first + zigzag(offset) + two + zigzag(size) + three + zigzag(row) + b"\x00"
        for offset, size, row in pages
    )
    return b"\x19" + head + body + more + b"\x00"


@given(st.lists(st.tuples(locations, st.booleans(), st.sampled_from((b"", b"\x19\x26\x02\x04")))))
def test_offset_indexes_side_by_side(
    indexes: list[tuple[list[tuple[int, int, int]], bool, bytes]],
) -> None:
    data = [offset_index(pages, odd=odd, more=more) for pages, odd, more in indexes]
    columns = parse_offset_indexes(data, "a")
    assert [numbers.T.tolist() for numbers in columns] == [
        [list(page) for page in pages] for pages, _, _ in indexes
    ]


@pytest.mark.parametrize(
    "data", ["", "00", "19", "19 1c", "19 fc", "19 fc ff", "15 02 00", "19 15 02 00", "19 1c 00 00"]
)
def test_not_an_offset_index_is_refused(data: str) -> None:
    with pytest.raises(FormatError, match=r"^a: "):
        parse_offset_indexes([bytes.fromhex(data)], "a")


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("15 00 15 10 15 10 2c 15 04 15 00 15 06 15 06 00 00", 2),
        ("15 00 15 10 15 10 15 ffffffff0f 1c 15 8402 15 00 15 06 15 06 00 00", 130),
        ("15 06 15 10 15 10 5c 15 04 15 00 15 04 15 00 15 00 15 00 11 00 00", 2),
        ("15 06 15 10 15 10 15 02 4c 15 04 15 00 15 04 15 00 15 00 15 00 11 00 00", 2),
        ("05 02 00 15 10 15 10 2c 15 04 15 00 15 06 15 06 00 00", 2),
        ("15 04 15 10 15 10 4c 15 04 15 00 00 00", -1),  # a dictionary page
        ("15 00 15 10 15 10 5c 15 04 15 00 00 00", -1),  # version 2 instead of 1
        ("15 06 15 10 15 10 2c 15 04 15 00 00 00", -1),
        ("ff" * 40, -1),
        ("00", -1),
    ],
)
def test_values_of_pages(header: str, values: int) -> None:
    page = bytes.fromhex(header)
    data = b"PAR1" + page + page + bytes(40)
    starts = np.array([4, 4 + len(page)])
    assert values_of_pages(data, starts, np.full(2, len(page))).tolist() == [values, values]
    assert values_of_pages(b"PAR1" + page, starts[:1], np.full(1, len(page))).tolist() == [values]
