from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import LimitError, UnsupportedError
from alcid.formats.file_index.keys import (
    KeyColumn,
    KeyType,
    float_order,
    map_key_column,
    order_float,
    read_column,
)
from alcid.types import DataType


def keys_of(array: pa.Array | pa.ChunkedArray) -> KeyColumn:
    return read_column(array, DataType.from_arrow(array.type))


MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999999)


@pytest.mark.parametrize(
    ("array", "keys"),
    [
        (pa.array([True, False]), [1, 0]),
        (pa.array([-128, 127], pa.int8()), [-128, 127]),
        (pa.array([255], pa.uint8()), [255]),
        (pa.array([65535], pa.uint16()), [65535]),
        (pa.array([2**32 - 1], pa.uint32()), [2**32 - 1]),
        (pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
        (pa.array([-(2**63)], pa.int64()), [-(2**63)]),
        (pa.array([date(1969, 12, 31)], pa.date32()), [-1]),
        (pa.array([date(1969, 12, 31)], pa.date64()), [-1]),
        (pa.array([time(0, 0, 1)], pa.time32("s")), [1000]),
        (pa.array([time(0, 0, 1, 1999)], pa.time64("us")), [1001]),
        (pa.array([1_999_999], pa.time64("ns")), [1]),
        (pa.array([-1], pa.timestamp("s")), [-1000]),
        (pa.array([-1], pa.timestamp("ms")), [-1]),
        (pa.array([MOMENT], pa.timestamp("us")), [-1]),
        (pa.array([-1], pa.timestamp("ns")), [-1]),
        (pa.array([-1001], pa.timestamp("ns")), [-2]),
        (pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo")), [-1]),
        (pa.array([Decimal("-1.50")], pa.decimal128(10, 2)), [-150]),
        (pa.array([Decimal("1.5")], pa.decimal256(20, 3)), [1500]),
        (pa.array(["é", ""]), [b"\xc3\xa9", b""]),
        (pa.array(["é"], pa.large_string()), [b"\xc3\xa9"]),
        (pa.array(["é"], pa.string_view()), [b"\xc3\xa9"]),
        (pa.array([b"\0\xff"], pa.binary(2)), [b"\0\xff"]),
        (pa.array([b"\xff"], pa.binary_view()), [b"\xff"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [b"b", b"a", b"b"]),
        (pa.array([1, 1, 2]).dictionary_encode(), [1, 1, 2]),
        (pa.compute.run_end_encode(pa.array([7, 7, 8])), [7, 7, 8]),
        (pa.chunked_array([[1], [], [2]], pa.int32()), [1, 2]),
        (pa.chunked_array([], pa.string()), []),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else str(value),
)
def test_values_become_keys(array: Any, keys: list[int | bytes]) -> None:
    column = keys_of(array)
    assert column.keys.tolist() == keys
    assert column.rows is None
    assert column.row_count == len(array)


def test_floats_become_their_rank_in_the_total_order() -> None:
    values = [float("-inf"), -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, float("inf"), float("nan")]
    ranks = keys_of(pa.array(values, pa.float64())).keys.tolist()
    assert ranks == sorted(set(ranks))
    assert ranks[2:6] == [-2, -1, 0, 1]
    assert [float_order(rank) for rank in ranks[:-1]] == values[:-1]
    kind = KeyType(8, floating=True)
    assert (kind.minimum, kind.maximum) == (ranks[0], ranks[-1])


def test_every_nan_has_one_key_and_the_first_keeps_its_bits() -> None:
    bits = np.array([0x3F800000, 0xFFC00001, 0x7FC00000], np.uint32)
    column = keys_of(pa.array(bits).view(pa.float32()))
    assert column.keys.tolist() == [order_float(1.0, 4), *[order_float(float("nan"), 4)] * 2]
    assert column.first_nan is not None
    assert column.first_nan & 0xFFFFFFFF == 0xFFC00001


def test_half_floats_are_read_as_floats() -> None:
    assert keys_of(pa.array(np.array([1.5], np.float16))).keys.tolist() == [order_float(1.5, 4)]


def test_nulls_leave_no_key() -> None:
    column = keys_of(pa.array([None, 5, None, 6]))
    assert column.keys.tolist() == [5, 6]
    assert column.key_rows.tolist() == [1, 3]
    assert column.null_rows.tolist() == [0, 2]
    assert column.spread(np.array([7, 8])).tolist() == [0, 7, 0, 8]


def test_nulls_of_a_dictionary_are_nulls() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array(["a", None]))
    column = keys_of(array)
    assert column.keys.to_pylist() == [b"a"]
    assert column.null_rows.tolist() == [1, 2]


@pytest.mark.parametrize("arrow_type", [pa.string_view(), pa.binary_view()], ids=str)
def test_nulls_of_a_view_are_nulls(arrow_type: pa.DataType) -> None:
    column = keys_of(pa.array([None, b"a", None, b"bc"], pa.binary()).cast(arrow_type))
    assert column.keys.to_pylist() == [b"a", b"bc"]
    assert column.null_rows.tolist() == [0, 2]


def test_the_values_of_a_map_key() -> None:
    maps = pa.array(
        [[("a", 1)], None, [], [("b", 2), ("a", 3)], [("a", None)]],
        pa.map_(pa.string(), pa.int32()),
    )
    column = keys_of(map_key_column(maps, "a"))
    assert column.keys.tolist() == [1, 3]
    assert column.null_rows.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    "key_type",
    [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_a_map_with_keys_of_any_kind_of_text(key_type: pa.DataType) -> None:
    keys = pa.array(["a", "b", "a"]).cast(key_type)
    maps = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, pa.array([1, 2, 3]))
    assert keys_of(map_key_column(maps, "a")).keys.tolist() == [1, 3]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([0, 86_400_000 * 2**31], pa.int64()).view(pa.date64()),
        pa.array([0, 10**16], pa.int64()).view(pa.time64("us")),
    ],
    ids=["date", "time"],
)
def test_a_date_or_time_beyond_its_key_is_refused_and_does_not_wrap(array: pa.Array) -> None:
    with pytest.raises(UnsupportedError, match="in row 1 does not fit a key"):
        keys_of(array)


def test_more_rows_than_an_index_can_hold_are_refused_before_they_are_read() -> None:
    chunk = pa.array(np.zeros(1 << 20, np.int8))
    rows = pa.chunked_array([chunk] * (1 << 11))  # the same memory again and again
    with pytest.raises(LimitError, match="at most 2147483647 rows, found 2147483648"):
        keys_of(rows)


def test_a_decimal_beyond_64_bits_is_refused() -> None:
    fits, not_fits = Decimal(2**63 - 1), Decimal(2**63)
    assert keys_of(pa.array([fits], pa.decimal128(20, 0))).keys.tolist() == [2**63 - 1]
    with pytest.raises(UnsupportedError, match="9223372036854775808 in row 1 does not fit a key"):
        keys_of(pa.array([fits, not_fits], pa.decimal128(20, 0)))


def test_a_decimal_of_more_digits_than_its_type_is_refused() -> None:
    """As a file may contain it, whatever its schema says."""
    stored = pa.py_buffer((10**20).to_bytes(16, "little"))
    array = pa.Array.from_buffers(pa.decimal128(3, 0), 1, [None, stored])
    with pytest.raises(UnsupportedError, match=r"^DECIMAL\(3, 0\): Decimal value does not fit"):
        keys_of(array)


def test_a_timestamp_in_seconds_beyond_64_bits_of_milliseconds_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="4611686018427387904 in row 0 does not fit"):
        keys_of(pa.array([2**62], pa.timestamp("s")))


@pytest.mark.parametrize(("precision", "ticks"), [(0, 1000), (6, 1_000_000)])
def test_seconds_fit_a_key_up_to_the_last_that_64_bits_hold(precision: int, ticks: int) -> None:
    most = (2**63 - 1) // ticks
    kind = DataType.parse(f"TIMESTAMP({precision})")
    column = read_column(pa.array([most, -most], pa.timestamp("s")), kind)
    assert column.keys.tolist() == [most * ticks, -most * ticks]
    for value in (most + 1, -most - 1):
        with pytest.raises(UnsupportedError, match=rf"^{value} in row 2 does not fit a key$"):
            read_column(pa.array([0, None, value], pa.timestamp("s")), kind)
