from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import ColumnError, LimitError, UnsupportedError
from alcid.formats.binary_row import EMPTY_ROW_HASH, binary_rows, hash_rows
from alcid.formats.binary_row import rows as binary_row_module
from alcid.formats.binary_row import slots as tails_module
from alcid.testing.strategies import SampleColumn
from alcid.types import DataType
from tests.properties.kit import TYPES, arrow_forms

EXACT = Context(prec=60)


def encode(values: Sequence[Any], types: Sequence[DataType]) -> bytes:
    """A row built value by value, in the form of `alcid.testing.oracle`."""
    nulls = bytearray((len(types) + 63 + 8) // 64 * 8)
    slots, tail = b"", b""
    for column, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            nulls[(column + 8) // 8] |= 1 << column % 8
        offset = len(nulls) + 8 * len(types) + len(tail)
        slot, more = encode_value(value, data_type, offset)
        assert len(more) % 8 == 0
        slots, tail = slots + slot.ljust(8, b"\0"), tail + more
    return bytes(nulls) + slots + tail


def encode_value(value: Any, data_type: DataType, offset: int) -> tuple[bytes, bytes]:
    match data_type.root:
        case "DECIMAL" if data_type.precision > 18:
            if value is None:
                return struct.pack("<ii", 0, offset), bytes(16)
            number = int(value.scaleb(data_type.scale, EXACT))
            size = (number if number >= 0 else ~number).bit_length() // 8 + 1
            data = number.to_bytes(size, "big", signed=True)
            return struct.pack("<ii", len(data), offset), data.ljust(16, b"\0")
        case "TIMESTAMP" | "TIMESTAMP_LTZ" if data_type.precision > 3:
            if value is None:
                return struct.pack("<ii", 0, offset), bytes(8)
            millis, nanos = divmod(value, 10**6)
            return struct.pack("<ii", nanos, offset), struct.pack("<q", millis)
    if value is None:
        return b"", b""
    match data_type.root:
        case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
            data = value.encode() if isinstance(value, str) else value
            if len(data) <= 7:
                return data.ljust(7, b"\0") + bytes((0x80 | len(data),)), b""
            return struct.pack("<ii", len(data), offset), data + bytes(-len(data) % 8)
        case "DECIMAL":
            return struct.pack("<q", int(value.scaleb(data_type.scale, EXACT))), b""
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return struct.pack("<q", value // 10**6), b""
        case "TIME":
            return struct.pack("<i", value // 10**6), b""
    letters = {"BOOLEAN": "?", "TINYINT": "b", "SMALLINT": "h", "INT": "i", "DATE": "i"}
    letters |= {"BIGINT": "q", "FLOAT": "f", "DOUBLE": "d"}
    return struct.pack("<" + letters[data_type.root], value), b""


def check(arrays: Any, types: Sequence[DataType], expected: Sequence[bytes]) -> None:
    rows = binary_rows(arrays, types)
    assert list(rows) == list(expected)
    hashes = [mmh3.hash(row, 42) for row in expected]
    assert hash_rows(arrays, types).tolist() == hashes
    assert rows.hashes().tolist() == hashes


# -- against Paimon's own ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("INT", 1, 1465514398),
        ("BIGINT", 1, 1465514398),
        ("BOOLEAN", True, 1465514398),
        ("INT", -1, 1133687267),
        ("BIGINT", 2**63 - 1, -1566569095),
        ("STRING", "", 302122119),
        ("STRING", "hello", 243722546),
        ("STRING", "abcdefg", -1431907323),
        ("STRING", "abcdefgh", -843760178),
        ("STRING", "hello world", 161593394),
        ("DOUBLE", 1.5, 1860889473),
        ("DECIMAL(10, 2)", Decimal("123.45"), 767607022),
        ("DECIMAL(20, 2)", Decimal("123.45"), -118192725),
        ("DECIMAL(20, 2)", Decimal("-123.45"), -605613085),
        ("TIMESTAMP(3)", 1_700_000_000_123, -1285420957),
        ("TIMESTAMP(6)", 1_700_000_000_123_456, 1196670069),
        ("INT", None, -1748325344),
    ],
)
def test_hashes_that_paimon_gives(text: str, value: Any, expected: int) -> None:
    data_type = DataType.parse(text)
    array = pa.array([value], data_type.to_arrow())
    assert hash_rows([array]).tolist() == [expected]
    assert binary_rows([array]).hashes().tolist() == [expected]


def test_hash_of_several_columns_that_paimon_gives() -> None:
    arrays = [pa.array([1234567890123]), pa.array(["k-é-longer"]), pa.array([-5], pa.int32())]
    hashes = hash_rows(arrays)
    assert hashes.tolist() == [-1484504613]
    assert hashes.dtype == np.int32


def test_a_row_without_columns_is_that_of_an_unpartitioned_table() -> None:
    table = pa.table({"a": [1, 2]}).select([])
    assert hash_rows(table).tolist() == [EMPTY_ROW_HASH, EMPTY_ROW_HASH] == [-1670924195] * 2
    check(table, [], [bytes(8)] * 2)


# -- against rows made value by value ----------------------------------------------------------


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """Values in the form of `alcid.testing.oracle`, and None."""
    bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "DATE": 32, "BIGINT": 64}
    tick = 10 ** (9 - data_type.precision)
    strategy: st.SearchStrategy[Any]
    match data_type.root:
        case "BOOLEAN":
            strategy = st.booleans()
        case "FLOAT" | "DOUBLE":
            numbers = st.floats(width=32 if data_type.root == "FLOAT" else 64, allow_nan=False)
            strategy = numbers | st.just(float("nan"))
        case "DECIMAL":
            most = 10**data_type.precision - 1
            strategy = st.integers(-most, most).map(
                lambda number: Decimal(number).scaleb(-data_type.scale, EXACT)
            )
        case "CHAR" | "VARCHAR":
            strategy = st.text(max_size=30) | st.integers(0, 1000).map(lambda size: "y" * size)
        case "BINARY":
            strategy = st.binary(min_size=data_type.length, max_size=data_type.length)
        case "VARBINARY":
            strategy = st.binary(max_size=30) | st.integers(0, 1000).map(
                lambda size: b"\xff" * size
            )
        case "TIME":
            strategy = st.integers(0, 86_400 * 10**9 // tick - 1).map(lambda ticks: ticks * tick)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            most = min(2**63 - 1, 2**73 // tick)  # milliseconds of 2^53, about 285,000 years
            strategy = st.integers(-most, most).map(lambda ticks: ticks * tick)
        case root:
            strategy = st.integers(-(2 ** (bits[root] - 1)), 2 ** (bits[root] - 1) - 1)
    return st.none() | strategy


@given(
    st.data(),
    st.lists(st.sampled_from([*TYPES, DataType.parse("BINARY(9)")]), min_size=1, max_size=5),
    st.integers(0, 30),
    st.sampled_from((3, 1 << 14)),
    st.sampled_from((1, 3, 64)),
    st.sampled_from((1, 3, 96)),
)
def test_rows_of_any_types(
    data: st.DataObject,
    types: list[DataType],
    row_count: int,
    block: int,
    fewest_together: int,
    most_words_together: int,
) -> None:
    columns = [
        data.draw(st.lists(values(data_type), min_size=row_count, max_size=row_count))
        for data_type in types
    ]
    arrays = []
    for data_type, column in zip(types, columns, strict=True):
        forms = list(
            arrow_forms(SampleColumn(data_type, tuple(column) or (None,), row_count).to_arrow())
        )
        arrays.append(forms[data.draw(st.integers(0, len(forms) - 1))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binary_row_module, "_BLOCK", block)
        patch.setattr(tails_module, "_FEWEST_TOGETHER", fewest_together)
        patch.setattr(tails_module, "_MOST_WORDS_TOGETHER", most_words_together)
        check(arrays, types, [encode(row, types) for row in zip(*columns, strict=True)])


@pytest.mark.parametrize("count", [1, 55, 56, 57, 119, 120, 121])
def test_null_bits_grow_with_the_columns(count: int) -> None:
    types = [DataType("INT")] * count
    rows = [[None] * count, [*range(count)], [*range(count - 1), None], [None, *range(count - 1)]]
    arrays = [pa.array(column, pa.int32()) for column in zip(*rows, strict=True)]
    check(arrays, types, [encode(row, types) for row in rows])
    assert len(binary_rows(arrays)[0]) == 8 * count + (
        8 if count <= 56 else 16 if count <= 120 else 24
    )


def test_strings_of_every_length_together_and_the_long_ones_apart() -> None:
    chance = np.random.default_rng(1)
    lengths = [*range(200), *[764, 765, 768, 769, 776, 5000]] * 3
    strings = [chance.bytes(length) for length in chance.permutation(lengths)]
    types = [DataType.parse("BYTES"), DataType("INT"), DataType.parse("BYTES")]
    rows = [*zip(strings, range(len(strings)), reversed(strings), strict=True)]
    arrays = [pa.array(strings), pa.array(range(len(strings)), pa.int32()), pa.array(strings[::-1])]
    check(arrays, types, [encode(row, types) for row in rows])


def test_a_string_of_megabytes() -> None:
    long = b"0123456789" * 300_000
    types = [DataType.parse("BYTES")]
    check(
        [pa.array([b"short", long, long[:-3]])],
        types,
        [encode([value], types) for value in (b"short", long, long[:-3])],
    )


@pytest.mark.parametrize("value", [b"", b"1234567", b"12345678", b"123456789"])
def test_a_string_at_the_end_of_its_buffer(value: bytes) -> None:
    offsets = np.array([0, 0, len(value), len(value)], np.int32)
    array = pa.Array.from_buffers(
        pa.binary(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(value)]
    )
    types = [DataType.parse("BYTES")]
    check([array], types, [encode([data], types) for data in (b"", value, b"")])


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("BIGINT", np.array([1, -2, 3])),
        ("DECIMAL(10, 0)", np.array([1, 0, -1, -1, 3, 0])),
        ("DECIMAL(30, 0)", np.array([1, 0, -1, -1, 3, 0])),
        ("TIMESTAMP(0)", np.array([1, 2**62, 3])),
        ("TIMESTAMP(6)", np.array([1, -2, 3])),
        ("DOUBLE", np.array([1.5, 2.5, 3.5])),
    ],
)
def test_what_stands_under_a_null_does_not_count(text: str, stored: np.ndarray[Any, Any]) -> None:
    data_type = DataType.parse(text)
    arrow_type = data_type.to_arrow()
    valid = pa.py_buffer(b"\x05")  # the second is null
    array = pa.Array.from_buffers(arrow_type, 3, [valid, pa.py_buffer(stored)])
    assert list(binary_rows([array])) == list(
        binary_rows([pa.array(array.to_pylist(), arrow_type)])
    )
    clean = hash_rows([pa.array(array.to_pylist(), arrow_type)])
    assert hash_rows([array]).tolist() == clean.tolist()


def test_bytes_under_a_null_do_not_count() -> None:
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 2, 30, 33], np.int32))]
    array = pa.Array.from_buffers(pa.string(), 3, [*buffers, pa.py_buffer(b"z" * 33)])
    types = [DataType.parse("STRING")]
    check([array], types, [encode([value], types) for value in ("zz", None, "zzz")])


def test_floats_keep_their_bits() -> None:
    bits = np.array([0x7FC00001, 0xFFC00000, 0x80000000, 0], np.uint32)
    rows = binary_rows([pa.array(bits).view(pa.float32())])
    assert [row[8:].hex() for row in rows] == [
        struct.pack("<q", number).hex() for number in bits.tolist()
    ]


# -- what Arrow may bring ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "text", "value"),
    [
        (pa.array([200], pa.uint8()), "SMALLINT", 200),
        (pa.array([2**32 - 1], pa.uint32()), "BIGINT", 2**32 - 1),
        (pa.array([7], pa.int64()), "TINYINT", 7),
        (pa.array([2**64 - 1], pa.uint64()), "DECIMAL(20, 0)", Decimal(2**64 - 1)),
        (pa.array([-3], pa.int16()), "DECIMAL(20, 0)", Decimal(-3)),
        (pa.array([-3], pa.int8()), "DECIMAL(5, 0)", Decimal(-3)),
        (pa.array(np.array([1.5], np.float16)), "FLOAT", 1.5),
        (pa.array([1.5], pa.float32()), "DOUBLE", 1.5),
        (pa.array([-86_400_001], pa.int64()).view(pa.date64()), "DATE", -2),
        (pa.array([5], pa.int32()).view(pa.time32("s")), "TIME(0)", 5 * 10**9),
        (pa.array([5_999], pa.int64()).view(pa.time64("us")), "TIME(6)", 5 * 10**6),
        (pa.array([5_999_999], pa.int64()).view(pa.time64("ns")), "TIME(9)", 5 * 10**6),
        (pa.array([-1], pa.timestamp("s")), "TIMESTAMP(0)", -(10**9)),
        (pa.array([-1], pa.timestamp("s")), "TIMESTAMP(6)", -(10**9)),
        (pa.array([-1], pa.timestamp("ms")), "TIMESTAMP(9)", -(10**6)),
        (pa.array([-1], pa.timestamp("us")), "TIMESTAMP(3)", -(10**6)),
        (pa.array([-1], pa.timestamp("us")), "TIMESTAMP(4)", -(10**3)),
        (pa.array([-1], pa.timestamp("ns")), "TIMESTAMP(9)", -1),
        (pa.array([-1], pa.timestamp("ns")), "TIMESTAMP(6)", -(10**3)),
        (pa.array([-1], pa.timestamp("ns")), "TIMESTAMP(3)", -(10**6)),
        (pa.array([-1], pa.timestamp("us", "Asia/Tokyo")), "TIMESTAMP_LTZ(6)", -(10**3)),
        (pa.array([Decimal("-1.5")], pa.decimal32(5, 1)), "DECIMAL(5, 1)", Decimal("-1.5")),
        (pa.array([Decimal("-1.5")], pa.decimal64(15, 1)), "DECIMAL(20, 1)", Decimal("-1.5")),
        (pa.array([Decimal("-1.5")], pa.decimal256(50, 1)), "DECIMAL(38, 1)", Decimal("-1.5")),
        (pa.array([Decimal("-1.5")], pa.decimal256(50, 1)), "DECIMAL(9, 1)", Decimal("-1.5")),
        (pa.array([b"ab"], pa.binary(2)), "STRING", "ab"),
        (pa.array(["ab"]), "BYTES", b"ab"),
        (pa.nulls(1), "DECIMAL(20, 1)", None),
        (pa.nulls(1), "STRING", None),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else str(value),
)
def test_types_of_arrow(array: pa.Array, text: str, value: Any) -> None:
    types = [DataType.parse(text)]
    check([array], types, [encode([value], types)])


def test_tables_and_batches() -> None:
    table = pa.table({"a": pa.chunked_array([[1], [2, 3]]), "b": ["x", None, "z"]})
    hashes = hash_rows([table["a"], table["b"]]).tolist()
    assert hash_rows(table).tolist() == hashes
    assert hash_rows(table.combine_chunks().to_batches()[0]).tolist() == hashes
    assert hash_rows(table[1:]).tolist() == hashes[1:]
    assert hash_rows(table[:0]).tolist() == []
    assert len(binary_rows(table[:0])) == 0


def test_rows_by_number() -> None:
    rows = binary_rows([pa.array([1, 2])])
    assert rows[-1] == rows[1] == struct.pack("<qq", 0, 2)
    with pytest.raises(IndexError):
        rows[2]


# -- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "text", "message"),
    [
        (pa.array([[1]]), None, "column 1: a key cannot be of type ARRAY<BIGINT>"),
        (pa.array([{"a": 1}]), None, "column 1: a key cannot be of type ROW<`a` BIGINT>"),
        (pa.array([1]), "MAP<INT, INT>", "column 1: a key cannot be of type MAP<INT, INT>"),
        (pa.nulls(1), None, "column 1: Arrow type null has no counterpart"),
        (pa.array([1]), "STRING", "column 1: Arrow's int64 cannot be read as STRING"),
        (pa.array(["a"]), "INT", "column 1: Arrow's string cannot be read as INT"),
        (pa.array([1.5]), "FLOAT", "column 1: Arrow's double cannot be read as FLOAT"),
        (pa.array([1], pa.int32()), "DATE", "column 1: Arrow's int32 cannot be read as DATE"),
        (
            pa.array([Decimal("1.5")]),
            "DECIMAL(9, 2)",
            r"column 1: Arrow's decimal128\(2, 1\) cannot be read as DECIMAL\(9, 2\)",
        ),
        (pa.array([1]), "DECIMAL(9, 2)", r"column 1: .*int64 cannot be read as DECIMAL\(9, 2\)"),
    ],
)
def test_types_that_a_key_cannot_have(array: pa.Array, text: str | None, message: str) -> None:
    first = pa.array([1])
    types = None if text is None else [DataType("BIGINT"), DataType.parse(text)]
    with pytest.raises(UnsupportedError, match=message):
        hash_rows([first, array], types)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([0, 0, 0, 128]), "TINYINT"),
        (pa.array([0, 0, 0, -(2**31) - 1]), "INT"),
        (pa.array([0, 0, 0, 2**63], pa.uint64()), "BIGINT"),
        (pa.array([0, 0, 0, 2**63], pa.uint64()), "DECIMAL(18, 0)"),
        (pa.array([*[Decimal(0)] * 3, Decimal(2**63)], pa.decimal128(20, 0)), "DECIMAL(18, 0)"),
        (pa.array([*[Decimal(0)] * 3, Decimal(2**127)], pa.decimal256(40, 0)), "DECIMAL(38, 0)"),
        (pa.array([0, 0, 0, 86_400_000 * 2**31]).view(pa.date64()), "DATE"),
        (pa.array([0, 0, 0, 10**16]).view(pa.time64("us")), "TIME(6)"),
        (pa.array([0, 0, 0, 2**62]).view(pa.timestamp("s")), "TIMESTAMP(0)"),
        (pa.array([0, 0, 0, -9_223_372_036_854_776]).view(pa.timestamp("s")), "TIMESTAMP(3)"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else str(value),
)
def test_values_that_do_not_fit_are_named_by_row(
    array: pa.Array, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary_row_module, "_BLOCK", 2)
    data_type = DataType.parse(text)
    with pytest.raises(UnsupportedError) as raised:
        hash_rows([array], [data_type])
    assert str(raised.value) == f"column 0: the value of row 3 does not fit {data_type}"
    assert len(hash_rows([array[:3]], [data_type])) == 3


def test_columns_that_do_not_go_together() -> None:
    with pytest.raises(ColumnError, match="column 1: found 1 rows, expected 2"):
        hash_rows([pa.array([1, 2]), pa.array([1])])
    with pytest.raises(ColumnError, match="types: found 2, expected 1"):
        hash_rows([pa.array([1])], [DataType("INT")] * 2)
    with pytest.raises(ColumnError, match="no columns: give a table"):
        hash_rows([])
    with pytest.raises(UnsupportedError, match="column 0: found ndarray, expected an Arrow array"):
        hash_rows([np.array([1])])


def test_one_column_and_types_as_text_will_do() -> None:
    keys = pa.array([1, 2])
    assert hash_rows(keys).tolist() == hash_rows([keys]).tolist()
    assert hash_rows(keys, ["BIGINT"]).tolist() == hash_rows([keys]).tolist()


def test_a_row_beyond_two_gigabytes_is_refused_before_it_is_read() -> None:
    size = 1_200_000_000
    nothing = pa.py_buffer(np.zeros(size, np.uint8))  # not in memory until it is used
    offsets = pa.py_buffer(np.array([0, size], np.int64))
    half = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, nothing])
    with pytest.raises(LimitError, match="at most 2147483647 bytes, found 2400000024"):
        hash_rows([half, half])


def test_rows_say_how_many_they_are() -> None:
    rows = binary_rows([pa.array([1, 2, 3]), pa.array(["a", "longer than a slot", None])])
    assert repr(rows) == f"<BinaryRows: 3, bytes: {3 * 24 + 24}>"


@pytest.mark.parametrize(
    ("precision", "nanos"), [(4, 456_000), (6, 456_000), (7, 456_789), (9, 456_789)]
)
def test_of_a_timestamp_as_much_goes_in_as_a_data_file_keeps(precision: int, nanos: int) -> None:
    column = pa.array([123_456_789], pa.timestamp("ns"))
    (row,) = binary_rows([column], [f"TIMESTAMP({precision})"])
    assert struct.unpack("<8xiiq", row) == (nanos, 16, 123)
