from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from alcid import (
    ColumnError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.binary_row import binary_rows, reader
from alcid.formats.binary_row.reader import read_column, read_rows, salvage_column
from alcid.testing.strategies import SampleColumn, columns
from alcid.types import DataType
from tests.golden_files import Golden, arrow_array, golden_files, golden_id
from tests.properties.kit import TYPES

INT, STRING = DataType("INT"), DataType.parse("STRING")


def bits(array: pa.Array) -> pa.Array:
    """The same array, with bits instead of floats: NaN equals itself, and -0.0 is not 0.0."""
    integers = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    return array.view(integers[array.type]) if array.type in integers else array


def stored(array: pa.Array, data_type: DataType) -> pa.Array:
    """The values as a row stores them: milliseconds of a TIME."""
    if data_type.root != "TIME" or array.type.bit_width == 32:
        return array
    per_milli = {"us": 10**3, "ns": 10**6}[array.type.unit]
    ticks = array.view(pa.int64())
    floored = ticks.fill_null(0).to_numpy() // per_milli * per_milli
    return pa.array(floored, mask=ticks.is_null().to_numpy(zero_copy_only=False)).view(array.type)


def check_same(decoded: Sequence[pa.Array], expected: Sequence[pa.Array]) -> None:
    assert [array.type for array in decoded] == [array.type for array in expected]
    for array, other in zip(decoded, expected, strict=True):
        array.validate(full=True)
        assert bits(array).equals(bits(other))


@given(
    st.data(),
    st.lists(st.sampled_from([*TYPES, DataType.parse("BINARY(9)")]), min_size=1),
    st.data(),
)
def test_rows_are_read_as_they_were_written(
    data: st.DataObject, types: list[DataType], more: st.DataObject
) -> None:
    samples = [data.draw(columns(data_type, large=False)) for data_type in types]
    count = more.draw(st.integers(0, 40))
    arrays = [
        SampleColumn(sample.data_type, sample.pattern, count, sample.layout).to_arrow()
        for sample in samples
    ]
    try:
        rows = list(binary_rows(arrays, types))
    except UnsupportedError:  # seconds with too many milliseconds
        reject()
    expected = [stored(array, kind) for array, kind in zip(arrays, types, strict=True)]
    check_same(read_rows(rows, types), expected)
    packed = pa.array([b"before", *rows, None], pa.binary())[1:]
    column = more.draw(st.integers(0, len(types) - 1))
    whole = pa.concat_arrays([expected[column], pa.nulls(1, expected[column].type)])
    check_same([read_column(packed, column, types)], [whole])
    values, damaged = salvage_column(packed, column, types)
    check_same([values], [whole])
    assert not damaged.any()


@pytest.mark.parametrize("golden", golden_files("binary_rows"), ids=golden_id)
def test_rows_that_java_wrote(golden: Golden) -> None:
    types = [DataType.parse(text) for text in golden.json["types"]]
    listed = golden.json["rows"]
    expected = [
        arrow_array([row["values"][number] for row in listed], data_type).cast(data_type.to_arrow())
        for number, data_type in enumerate(types)
    ]
    if "bytes" in listed[0]:
        rows = [bytes.fromhex(row["bytes"]) for row in listed]
    else:  # only their checksum is stored
        rows = list(binary_rows(expected, types))
    assert hashlib.sha256(b"".join(rows)).hexdigest() == golden.json["sha256"]
    check_same(read_rows(rows, types), expected)


# -- columns that are passed over ----------------------------------------------------------------


def test_columns_without_an_order_are_passed_over() -> None:
    row = binary_rows([pa.array([7], pa.int32()), pa.array(["a long text"]), pa.array(["fig"])])[0]
    types = [INT, DataType.parse("ARRAY<INT>"), STRING]
    first, second, third = read_rows([row], types)
    assert (first.to_pylist(), third.to_pylist()) == ([7], ["fig"])
    assert second.equals(pa.nulls(1))
    assert read_column([row], 2, types).to_pylist() == ["fig"]
    with pytest.raises(
        UnsupportedError, match=r"column 1: ARRAY<INT> has no order and is not read"
    ):
        read_column([row], 1, types)
    with pytest.raises(UnsupportedError, match="has no order"):
        salvage_column([row], 1, types)


@pytest.mark.parametrize("column", [-1, 1])
def test_a_column_that_the_rows_do_not_have(column: int) -> None:
    with pytest.raises(ColumnError, match=f"column {column}: the rows have 1"):
        read_column([bytes(16)], column, [INT])


@pytest.mark.parametrize(
    "rows", [[], [None], pa.array([], pa.binary()), pa.chunked_array([], pa.binary())]
)
def test_no_rows(rows: Any) -> None:
    types = [INT, STRING, DataType.parse("BINARY(3)"), DataType.parse("DECIMAL(38, 0)")]
    expected = [pa.nulls(len(rows), data_type.to_arrow()) for data_type in types]
    check_same(read_rows(rows, types), expected)
    assert read_rows(rows, []) == []


def test_the_kind_of_the_row_and_unused_bytes_do_not_count() -> None:
    row = bytes.fromhex("03000000000000ff fbffffffaaaaaaaa 0300000018000000 666967ffffffffff")
    assert [column.to_pylist() for column in read_rows([row], [INT, STRING])] == [[-5], ["fig"]]


# -- damage ------------------------------------------------------------------------------------


def slot(text: str, low: int, high: int = 0, tail: bytes = b"") -> tuple[DataType, bytes]:
    """A row of one column."""
    return DataType.parse(text), bytes(8) + (high << 32 | low).to_bytes(8, "little") + tail


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ((INT, bytes(15)), "a row too short at offset 8: found 15, expected at least 16"),
        ((INT, b""), "a row too short at offset 8: found 0, expected at least 16"),
        (
            slot("STRING", 9, 16, b"12345678"),
            "the end of its bytes ...: found 25, expected at most 24",
        ),
        (
            slot("STRING", 8, 17, b"12345678"),
            "the end of its bytes ...: found 25, expected at most 24",
        ),
        (
            slot("BYTES", 0, 2**31 - 1),
            "the end of its bytes ...: found 2147483647, expected at most 16",
        ),
        (slot("STRING", 0, 0x88 << 24), "bytes in a slot ...: found 8, expected at most 7"),
        (slot("STRING", 0xFF, 0x81 << 24), r"text ...: found b'\xff', expected UTF-8"),
        (slot("BINARY(3)", 0, 0x82 << 24), "bytes ...: found 2, expected 3"),
        (
            slot("DECIMAL(19, 0)", 0, 16, bytes(16)),
            "bytes of a number ...: found 0, expected 1 to 16",
        ),
        (
            slot("DECIMAL(19, 0)", 17, 16, bytes(32)),
            "bytes of a number ...: found 17, expected 1 to 16",
        ),
        (
            slot("DECIMAL(19, 0)", 9, 16, bytes(8)),
            "the end of its bytes ...: found 25, expected at most 24",
        ),
        (
            slot("DECIMAL(19, 1)", 9, 16, (10**19).to_bytes(9, "big") + bytes(7)),
            "a number ...: found 1000000000000000000.0, expected at most 19 digits",
        ),
        (slot("DECIMAL(2, 0)", 100), "a number ...: found 100, expected at most 2 digits"),
        (
            slot("TIME(3)", 86_400_000),
            "a time of no day ...: found 86400000, expected 0 to 86399999",
        ),
        (slot("TIME(6)", 2**32 - 1), "a time of no day ...: found -1, expected 0 to 86399999"),
        (
            slot("TIMESTAMP(6)", 10**6, 16, bytes(8)),
            "nanoseconds ...: found 1000000, expected 0 to 999999",
        ),
        (
            slot("TIMESTAMP(6)", 0, 17, bytes(8)),
            "the end of its bytes ...: found 25, expected at most 24",
        ),
        (
            slot("TIMESTAMP(9)", 775_808, 16, (9223372036854).to_bytes(8, "little")),
            "milliseconds ...: found 9223372036854, expected 64 bits of ticks",
        ),
        (
            slot("TIMESTAMP(6)", 0, 16, (2**62).to_bytes(8, "little")),
            "milliseconds ...: found 4611686018427387904, expected 64 bits of ticks",
        ),
        (slot("TIMESTAMP(0)", 1001), "milliseconds ...: found 1001, expected whole seconds"),
    ],
)
def test_mistakes_are_named(row: tuple[DataType, bytes], problem: str) -> None:
    data_type, damaged = row
    sound = bytes([0, 1]) + bytes(14)
    expected = f"key.bin: row 1, column 0, {data_type}: {problem.replace('...', 'at offset 8')}"
    with pytest.raises(FormatError) as caught:
        read_rows([sound, damaged], [data_type], file="key.bin")
    assert str(caught.value) == expected
    values, where = salvage_column([sound, damaged, None], 0, [data_type])
    assert values.equals(pa.nulls(3, data_type.to_arrow()))
    assert where.tolist() == [False, True, False]


def test_the_last_nanosecond_and_the_longest_number() -> None:
    data_type, row = slot("TIMESTAMP(9)", 775_807, 16, (9223372036854).to_bytes(8, "little"))
    assert read_column([row], 0, [data_type]).view(pa.int64()).to_pylist() == [2**63 - 1]
    least = -(10**38) + 1
    data_type, row = slot("DECIMAL(38, 0)", 16, 16, least.to_bytes(16, "big", signed=True))
    assert read_column([row], 0, [data_type]).to_pylist() == [Decimal(least)]
    padded = (-1).to_bytes(16, "big", signed=True)  # more bytes than needed
    data_type, row = slot("DECIMAL(38, 0)", 13, 16, padded)
    assert read_column([row], 0, [data_type]).to_pylist() == [Decimal(-1)]


def mutants(row: bytes) -> Iterator[bytes]:
    yield from (row[:length] for length in range(len(row)))
    for bit in range(8 * len(row)):
        flipped = bytearray(row)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


def one_value(data_type: DataType) -> pa.Array:
    kind = data_type.to_arrow()
    match data_type.root:
        case "CHAR" | "VARCHAR" | "VARBINARY":
            return pa.array(["größer als 7"]).cast(kind)
        case "BINARY":
            return pa.array([b"fig"], kind)
        case "DECIMAL":
            return pa.array([Decimal((1, (9,) * data_type.precision, -data_type.scale))], kind)
        case "DATE" | "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            return pa.array([1], pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    return pa.array([1]).cast(kind)


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_a_damaged_row_is_read_within_its_bytes_or_refused(data_type: DataType) -> None:
    types = [DataType("BIGINT"), data_type, STRING]
    sound = binary_rows(
        [pa.array([5]), one_value(data_type), pa.array(["the last column"])], types
    )[0]
    rows = [*mutants(sound), sound]
    chance = np.random.default_rng(1)
    # Between other bytes, so that reading beyond the row would give another value.
    mixed = [part for row in rows for part in (row, chance.bytes(20))]
    for column in range(3):
        every, broken = salvage_column(mixed, column, types)
        values, damaged = every.take(pa.array(range(0, len(mixed), 2))), broken[::2]
        values.validate(full=True)
        assert not damaged[-1]
        assert damaged[:32].all()  # the fixed part is not whole
        for number, row in enumerate(rows):
            if damaged[number]:
                with pytest.raises(FormatError):
                    read_column([row], column, types)
            else:
                check_same([read_column([row], column, types)], [values.slice(number, 1)])


def test_text_that_is_damaged_in_one_row_is_kept_in_the_others() -> None:
    good = binary_rows([pa.array(["fig", "a longer pear", None])])
    data_type, bad = slot("STRING", 8, 16, b"\xed\xa0\x80 half")
    values, damaged = salvage_column([good[0], bad, good[1], good[2]], 0, [data_type])
    assert values.to_pylist() == ["fig", None, "a longer pear", None]
    assert damaged.tolist() == [False, True, False, False]


def test_an_array_is_not_made_beyond_two_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    null = bytes([0, 1]) + bytes(14)
    problem = (
        "column 0, BINARY.2147483647.: found 4294967294 bytes, an array has at most 2147483647"
    )
    with pytest.raises(LimitError, match=problem):
        read_column([null, null], 0, [DataType.parse("BINARY(2147483647)")])
    monkeypatch.setattr(reader, "_MOST_BYTES", 10)
    rows = binary_rows([pa.array(["12345678", "12", "1"])])
    assert read_column(list(rows)[:2], 0, [STRING]).to_pylist() == ["12345678", "12"]
    with pytest.raises(LimitError, match="column 0, STRING: found 11 bytes"):
        read_column(list(rows), 0, [STRING])
