from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.tables.iceberg.metadata.entries import decoded_bounds, value_of
from alcid.types import DataType

TYPES = {
    "boolean": DataType("BOOLEAN"),
    "int": DataType("INT"),
    "long": DataType("BIGINT"),
    "float": DataType("FLOAT"),
    "double": DataType("DOUBLE"),
    "date": DataType("DATE"),
    "timestamp": DataType("TIMESTAMP", precision=6),
    "timestamptz": DataType("TIMESTAMP_LTZ", precision=6),
    "decimal": DataType("DECIMAL", 9, 2),
    "string": DataType.parse("STRING"),
    "binary": DataType.parse("BYTES"),
}
VALUES: dict[str, Any] = {
    "boolean": True,
    "int": -5,
    "long": 2**40,
    "float": 1.5,
    "double": -2.5,
    "date": date(1969, 12, 30),
    "timestamp": datetime(2024, 2, 29, 1, 2, 3, 4),
    "decimal": Decimal("-14.20"),
    "string": "Graz",
    "binary": b"\xff\x00",
}


def decode(stored: list[bytes | None], data_type: DataType) -> list[Any]:
    bounds = decoded_bounds(pa.array(stored, pa.binary()), data_type)
    bounds.validate(full=True)
    return bounds.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", VALUES)
def test_what_pyiceberg_writes_is_read(kind: str) -> None:
    from pyiceberg import types
    from pyiceberg.conversions import to_bytes

    peers = {
        "boolean": types.BooleanType(),
        "int": types.IntegerType(),
        "long": types.LongType(),
        "float": types.FloatType(),
        "double": types.DoubleType(),
        "date": types.DateType(),
        "timestamp": types.TimestampType(),
        "decimal": types.DecimalType(9, 2),
        "string": types.StringType(),
        "binary": types.BinaryType(),
    }
    stored = [to_bytes(peers[kind], VALUES[kind]), None]
    expected = VALUES[kind].encode() if kind == "string" else VALUES[kind]
    assert decode(stored, TYPES[kind]) == [expected, None]


@pytest.mark.parametrize("kind", TYPES)
def test_the_arrow_type_is_that_of_bounds(kind: str) -> None:
    text = pa.binary() if kind in ("string", "binary") else TYPES[kind].to_arrow()
    for stored in ([], [None], [b"?"], [b""]):
        bounds = decoded_bounds(pa.array(stored, pa.binary()), TYPES[kind])
        assert bounds.type == text
        assert len(bounds) == len(stored)


@pytest.mark.parametrize("text", ["ARRAY<INT>", "MAP<INT, INT>", "ROW<a INT>"])
def test_types_without_order_have_no_bounds(text: str) -> None:
    bounds = decoded_bounds(pa.array([bytes(4)]), DataType.parse(text))
    assert bounds.equals(pa.nulls(1))


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("boolean", [b"", b"\x02", b"\x01\x00"]),
        ("int", [b"", bytes(3), bytes(5), bytes(8)]),
        ("long", [b"", bytes(3), bytes(7), bytes(9)]),
        ("float", [b"", bytes(3), bytes(8)]),
        ("double", [b"", bytes(5), bytes(16)]),
        ("date", [b"", bytes(8)]),
        ("timestamp", [b"", bytes(4)]),
        ("decimal", [b"", bytes(17), (10**9).to_bytes(5), b"\x80" + bytes(15)]),
    ],
)
def test_bytes_that_are_no_value_are_not_known(kind: str, stored: list[bytes]) -> None:
    assert decode([*stored, None], TYPES[kind]) == [None] * (len(stored) + 1)


def test_bounds_of_before_a_column_was_widened() -> None:
    stored = [struct.pack("<i", -3), struct.pack("<q", -(2**40)), None, struct.pack("<i", 9)]
    assert decode(stored, TYPES["long"]) == [-3, -(2**40), None, 9]
    stored = [struct.pack("<f", -1.5), struct.pack("<d", 0.1), None]
    assert decode(stored, TYPES["double"]) == [-1.5, 0.1, None]


def test_a_nan_that_signals_is_widened_without_a_warning() -> None:
    (bound,) = decode([bytes.fromhex("0100807f")], TYPES["double"])
    assert math.isnan(bound)


def test_the_digits_of_a_decimal_end_where_its_type_says() -> None:
    last = 10**9 - 1
    stored = [number.to_bytes(5, signed=True) for number in (last, -last, last + 1, -last - 1)]
    most = Decimal(last) / 100
    assert decode([*stored], TYPES["decimal"]) == [most, -most, None, None]


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 16))
def test_decimals_of_any_length(values: list[int | None], size: int) -> None:
    def stored(number: int) -> bytes:
        least = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(max(least, size), signed=True)

    data = [None if value is None else stored(value) for value in values]
    assert decode(data, DataType("DECIMAL", 38)) == values


@given(
    st.lists(st.none() | st.dictionaries(st.integers(0, 4), st.integers(0, 9))),
    st.integers(0, 4),
    st.data(),
)
def test_a_key_of_any_part_of_many_maps(
    maps: list[dict[int, int] | None], key: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(maps)))
    stop = data.draw(st.integers(start, len(maps)))
    given_maps = [None if each_map is None else list(each_map.items()) for each_map in maps]
    array = pa.array(given_maps, pa.map_(pa.int32(), pa.int64())).slice(start, stop - start)
    assert value_of(array, key).to_pylist() == [
        (each_map or {}).get(key) for each_map in maps[start:stop]
    ]


def test_entries_under_a_null_map_do_not_exist() -> None:
    offsets = pa.array(np.array([0, 1, 2], np.int32))
    keys, items = pa.array([7, 7], pa.int32()), pa.array([1, 2])
    whole = pa.MapArray.from_arrays(offsets, keys, items)
    buffers = [pa.py_buffer(b"\x02"), whole.buffers()[1]]
    entries = pa.StructArray.from_arrays([keys, items], fields=list(whole.type.field(0).type))
    array = pa.Array.from_buffers(whole.type, 2, buffers, children=[entries])
    assert value_of(array, 7).to_pylist() == [None, 2]
