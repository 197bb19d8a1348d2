from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import UnsupportedError
from alcid.formats.theta import sketch as single_values_module
from alcid.formats.theta.sketch import single_values


def bytes_of(array: Any) -> list[bytes]:
    stored: list[bytes] = []
    for values in single_values(array):
        lengths = np.broadcast_to(values.lengths, len(values))
        stored += [
            values.data[start : start + length].tobytes()
            for start, length in zip(values.starts, lengths, strict=True)
        ]
    return stored


MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999999)
UUID = bytes(range(0xF0, 0x100))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, False]), ["01", "00"]),
        (pa.array([-128, 127], pa.int8()), ["80ffffff", "7f000000"]),
        (pa.array([-2], pa.int16()), ["feffffff"]),
        (pa.array([34], pa.int32()), ["22000000"]),
        (pa.array([34], pa.int64()), ["2200000000000000"]),
        (pa.array([255], pa.uint8()), ["ff000000"]),
        (pa.array([65535], pa.uint16()), ["ffff0000"]),
        (pa.array([2**32 - 1], pa.uint32()), ["ffffffff00000000"]),
        (pa.array([0, 2**64 - 1], pa.uint64()), ["00", "00ffffffffffffffff"]),
        (pa.array([np.float16(1.5)]), ["0000c03f"]),
        (pa.array([-0.0, 0.0], pa.float32()), ["00000080", "00000000"]),
        (pa.array([-0.0, 1.0]), ["0000000000000080", "000000000000f03f"]),
        (pa.array([date(1970, 1, 2), date(1969, 12, 31)]), ["01000000", "ffffffff"]),
        (pa.array([date(1969, 12, 31)], pa.date64()), ["ffffffff"]),
        (pa.array([-1, 1], pa.int64()).view(pa.date64()), ["ffffffff", "00000000"]),
        (pa.array([time(0, 0, 1)], pa.time32("s")), ["40420f0000000000"]),
        (pa.array([time(0, 0, 1)], pa.time32("ms")), ["40420f0000000000"]),
        (pa.array([time(0, 0, 0, 1)]), ["0100000000000000"]),
        (pa.array([1999], pa.time64("ns")), ["0100000000000000"]),
        (pa.array([-1], pa.timestamp("s")), ["c0bdf0ffffffffff"]),
        (pa.array([1], pa.timestamp("ms")), ["e803000000000000"]),
        (pa.array([MOMENT]), ["ffffffffffffffff"]),
        (pa.array([1999], pa.timestamp("ns")), ["cf07000000000000"]),
        (pa.array([1], pa.timestamp("ms", "Asia/Tokyo")), ["e803000000000000"]),
        (pa.array([MOMENT.replace(tzinfo=UTC)]), ["ffffffffffffffff"]),
        (pa.array([1], pa.timestamp("ns", "UTC")), ["0100000000000000"]),
        (pa.array([Decimal("14.20"), Decimal("-1.28"), Decimal(0)]), ["058c", "80", "00"]),
        (pa.array([Decimal("1.28"), Decimal("-1.29")]), ["0080", "ff7f"]),
        (pa.array([Decimal("1.28")], pa.decimal32(5, 2)), ["0080"]),
        (pa.array([Decimal("1.28")], pa.decimal64(18, 2)), ["0080"]),
        (pa.array([Decimal("1.28")], pa.decimal256(38, 2)), ["0080"]),
        (pa.array(["é", "a"]), ["c3a9", "61"]),
        (pa.array(["é"], pa.large_string()), ["c3a9"]),
        (pa.array(["é"], pa.string_view()), ["c3a9"]),
        (pa.array([UUID], pa.uuid()), [UUID.hex()]),
        (pa.array([b"\0\xff"], pa.binary(2)), ["00ff"]),
        (pa.array([b"\xff"]), ["ff"]),
        (pa.array([b"\xff"], pa.binary_view()), ["ff"]),
        (
            pa.compute.run_end_encode(pa.array([7, 7, 8], pa.int32())),
            ["07000000"] * 2 + ["08000000"],
        ),
        (pa.compute.run_end_encode(pa.array(["a", "a", "b"]))[1:], ["61", "62"]),
        (pa.array([True, False, True])[1:], ["00", "01"]),
        (pa.array([1, 2, 3], pa.int32())[1:], ["02000000", "03000000"]),
        (pa.array(["a", "b", "c"])[1:2], ["62"]),
        (pa.array([Decimal(1), Decimal(2), Decimal(3)])[1:2], ["02"]),
        (pa.array([b"ab", b"cd", b"ef"], pa.binary(2))[1:2], ["6364"]),
        (pa.chunked_array([[1], [], [2]], pa.int32()), ["01000000", "02000000"]),
    ],
    ids=lambda value: (
        f"{value.type} of {len(value)}" if hasattr(value, "type") else "|".join(value)
    ),
)
def test_values_become_the_bytes_that_iceberg_hashes(array: Any, expected: list[str]) -> None:
    assert [value.hex() for value in bytes_of(array)] == expected


def test_the_bits_of_a_nan_are_kept() -> None:
    bits = [0x7FF8000000000000, 0xFFF8000000000001]
    assert bytes_of(pa.array(bits, pa.uint64()).view(pa.float64())) == [
        struct.pack("<Q", number) for number in bits
    ]


@pytest.mark.parametrize(
    "array",
    [
        pa.nulls(3),
        pa.nulls(3, pa.int64()),
        pa.nulls(3, pa.string()),
        pa.nulls(3, pa.decimal128(5)),
        pa.nulls(3, pa.dictionary(pa.int8(), pa.string())),
        pa.array([], pa.int32()),
        pa.chunked_array([], pa.string()),
        pa.array(["", None, "", ""]),
        pa.array([b"", None], pa.binary_view()),
    ],
    ids=lambda array: f"{type(array).__name__} {array.type} of {len(array)}",
)
def test_nulls_and_empty_values_are_left_out(array: Any) -> None:
    assert bytes_of(array) == []


def test_bytes_between_nulls_and_empty_values() -> None:
    assert bytes_of(pa.array([None, "a", "", None, "bc", ""])) == [b"a", b"bc"]
    assert bytes_of(pa.array([None, True, None, False])) == [b"\1", b"\0"]
    assert bytes_of(pa.array([None, Decimal(1), None, Decimal(300)])) == [b"\1", b"\1\x2c"]


def test_of_a_dictionary_only_what_occurs_counts_and_in_its_order() -> None:
    values = pa.array(["unused", "b", None, "a", "b", ""])
    indices = pa.array([3, 4, None, 3, 2, 1, 5], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, values)
    assert bytes_of(column) == [b"a", b"b", b"b"]
    assert bytes_of(column[4:]) == [b"b"]


def test_dictionaries_differ_from_chunk_to_chunk() -> None:
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    assert bytes_of(pa.chunked_array(chunks)) == [b"a", b"b", b"c", b"a"]


def test_a_long_column_is_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_values_module, "_PIECE", 3)
    assert [len(values) for values in single_values(pa.array(range(8)))] == [3, 3, 2]
    assert bytes_of(pa.array(list("abcdefgh"))) == [letter.encode() for letter in "abcdefgh"]


@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 3))
def test_decimals_have_as_few_bytes_as_hold_them(numbers: list[int], skipped: int) -> None:
    array = pa.array([Decimal(number) for number in numbers], pa.decimal128(38, 0))[skipped:]
    assert bytes_of(array) == [minimal(number) for number in numbers[skipped:]]


def test_decimals_at_the_edge_of_every_length() -> None:
    edges = [1 << bits for bits in range(126)]
    numbers = [sign * edge + off for edge in edges for sign in (1, -1) for off in (-1, 0, 1)]
    array = pa.array([Decimal(number) for number in numbers], pa.decimal128(38, 0))
    assert bytes_of(array) == [minimal(number) for number in numbers]


def minimal(number: int) -> bytes:
    """Two's complement as Java's BigInteger gives it."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([[1]]), r"distinct values of ARRAY<BIGINT> cannot be counted"),
        (pa.array([{"a": 1}]), r"distinct values of ROW<`a` BIGINT> cannot be counted"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), r"MAP<STRING, INT> cannot"),
        (pa.array([1], pa.duration("s")), r"Arrow type duration\[s\] has no counterpart"),
        (pa.array([Decimal(1)], pa.decimal256(39)), r"precision must be 1 to 38"),
        (pa.array([2**62], pa.timestamp("s")), r"does not fit its type .* 4611686018427387904"),
        (pa.array([2**62], pa.int64()).view(pa.date64()), r"does not fit its type in Iceberg"),
        ([1, 2], r"expected an Arrow array, found list"),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else None,
)
def test_what_iceberg_cannot_hold_is_refused(array: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        bytes_of(array)
