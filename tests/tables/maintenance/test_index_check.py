"""Indexes compared with columns: the options found in them, and their answer for each row."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError
from alcid.formats.file_index import BUILDERS, READERS
from alcid.formats.file_index.bloom_filter import fill, hash_column
from alcid.formats.file_index.keys import KeyColumn, read_column
from alcid.formats.source import BytesSource, Section
from alcid.tables.maintenance.index_check import Difference, compare_index, stored_options
from alcid.testing.faults import flips
from alcid.types import DataType

ROWS = ("bitmap", "range-bitmap", "bsi")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(2**63) + 1, 2**63 - 1),
    "DOUBLE": st.floats(),
    "STRING": st.text(max_size=40),
}


def column_of(values: list[Any], kind: str) -> KeyColumn:
    data_type = DataType.parse(kind)
    return read_column(pa.array(values, data_type.to_arrow()), data_type)


def columns(kind: str) -> st.SearchStrategy[list[Any]]:
    few = st.lists(VALUES[kind], min_size=1, max_size=4).flatmap(st.sampled_from)
    return st.lists(st.none() | VALUES[kind] | few, max_size=60)


kinds = st.sampled_from(sorted(VALUES))


def keys_by_row(column: KeyColumn) -> list[object]:
    """The key of each row, or None."""
    row_keys: list[object] = [None] * column.row_count
    keys = column.keys.to_pylist() if isinstance(column.keys, pa.Array) else column.keys.tolist()
    for row, key in zip(column.key_rows.tolist(), keys, strict=True):
        row_keys[row] = key
    return row_keys


@given(st.data())
def test_with_the_options_found_in_it_an_index_comes_out_the_same(data: st.DataObject) -> None:
    kind = data.draw(kinds)
    column = column_of(data.draw(columns(kind)), kind)
    size = data.draw(st.integers(1, 300))
    built = [
        ("bitmap", {"version": 1}),
        ("bitmap", {"version": 2, "index_block_size": size}),
        ("range-bitmap", {"chunk_size": size - 1}),
        ("range-bitmap", {}),
        ("bloom-filter", {}),
    ]
    for index_type, options in built:
        payload = BUILDERS[index_type](column, **options)
        stored = stored_options(index_type, payload, column.key_type)
        assert BUILDERS[index_type](column, **asdict(stored)) == payload, (index_type, options)


@pytest.mark.parametrize("items", [1, 7, 100, 12_345])
@pytest.mark.parametrize("fpp", [0.5, 0.1, 0.003])
def test_bloom_filters_of_any_size_are_compared(items: int, fpp: float) -> None:
    column = column_of(list(range(300)), "BIGINT")
    payload = BUILDERS["bloom-filter"](column, items=items, fpp=fpp)
    options = asdict(stored_options("bloom-filter", payload, column.key_type))
    if items >= 100:
        assert BUILDERS["bloom-filter"](column, **options) == payload
    assert compare_index("bloom-filter", payload, column, name="x") is None


@pytest.mark.parametrize("index_type", sorted(BUILDERS))
def test_options_of_what_is_damaged_are_the_default_ones(index_type: str) -> None:
    column = column_of([1, 2, 2], "BIGINT")
    for payload in (b"", b"\xff" * 40):
        options = stored_options(index_type, payload, column.key_type)
        assert options == stored_options(index_type, b"anything", None)


@given(st.data(), st.sampled_from(ROWS))
def test_an_index_gives_every_row_with_its_key(data: st.DataObject, index_type: str) -> None:
    kind = data.draw(st.sampled_from(["TINYINT", "BIGINT"]) if index_type == "bsi" else kinds)
    column = column_of(data.draw(columns(kind)), kind)
    payload = BUILDERS[index_type](column)
    reader: Any = READERS[index_type](Section(BytesSource(payload)), column.key_type)
    rows, keys = reader.contents()
    pairs = zip(rows.tolist(), keys.to_pylist() if kind == "STRING" else keys.tolist(), strict=True)
    expected = [(row, key) for row, key in enumerate(keys_by_row(column)) if key is not None]
    assert sorted(pairs) == expected
    assert compare_index(index_type, payload, column, name="x") is None


@given(st.data(), st.sampled_from(ROWS))
def test_rows_that_an_index_is_wrong_about_are_counted(
    data: st.DataObject, index_type: str
) -> None:
    kind = data.draw(st.sampled_from(["TINYINT", "BIGINT"]) if index_type == "bsi" else kinds)
    values = data.draw(columns(kind))
    others = list(values)
    for row in data.draw(st.lists(st.integers(0, max(len(values) - 1, 0)), max_size=3)):
        if values:
            others[row] = data.draw(st.none() | VALUES[kind])
    column, other = column_of(values, kind), column_of(others, kind)
    difference = compare_index(index_type, BUILDERS[index_type](other), column, name="x")
    pairs = zip(keys_by_row(column), keys_by_row(other), strict=True)
    wrong = [row for row, (first, second) in enumerate(pairs) if first != second]
    count = len(wrong)
    assert difference == (Difference(count, count, wrong[0]) if wrong else None)


@given(st.data(), st.sampled_from(ROWS), st.integers(1, 5))
def test_an_index_of_more_or_fewer_rows_is_wrong_about_them(
    data: st.DataObject, index_type: str, more: int
) -> None:
    values = data.draw(columns("TINYINT"))
    short, long = column_of(values, "TINYINT"), column_of([*values, *[5] * more], "TINYINT")
    build = BUILDERS[index_type]
    assert compare_index(index_type, build(short), long, name="x") == Difference(
        more, 0, len(values)
    )
    assert compare_index(index_type, build(long), short, name="x") == Difference(
        0, more, len(values)
    )


def test_a_bitmap_that_states_more_rows_gives_rows_that_do_not_exist() -> None:
    column = column_of([1, 1, 2], "BIGINT")
    payload = bytearray(BUILDERS["bitmap"](column))
    assert payload[1:5] == (3).to_bytes(4, "big")
    payload[1:5] = (5).to_bytes(4, "big")
    difference = compare_index("bitmap", bytes(payload), column, name="x")
    assert difference == Difference(0, 2, 3)


@pytest.mark.parametrize("index_type", ROWS)
def test_rows_beyond_all_measure_are_damage_and_take_no_memory(index_type: str) -> None:
    column = column_of([1, 1, 2], "BIGINT")
    payload = bytearray(BUILDERS[index_type](column))
    at = payload.index((3).to_bytes(4, "big"))
    payload[at : at + 4] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(FormatError, match=r"x: too many rows: found 2147483647, expected 3"):
        compare_index(index_type, bytes(payload), column, name="x")


def test_keys_of_a_bitmap_that_share_their_rows_are_counted_or_damage() -> None:
    """Damage could give all rows to each of thousands of keys."""

    def sharing(column: KeyColumn) -> bytes:
        payload = bytearray(BUILDERS["bitmap"](column, version=1))
        assert payload[18:22] == bytes(4)  # where the rows of the first key are
        payload[30:34] = bytes(4)
        return bytes(payload)

    column = column_of([1, 1, 2, 2], "BIGINT")
    assert compare_index("bitmap", sharing(column), column, name="x") == Difference(2, 2, 2)
    longer = column_of([1, 1, 1, 2, 2], "BIGINT")
    with pytest.raises(FormatError, match=r"x: bitmaps that overlap at offset 34: found 44, expec"):
        compare_index("bitmap", sharing(longer), longer, name="x")

    payload = bytearray(BUILDERS["bitmap"](column, version=1))
    size = (len(payload) - 34) // 2
    payload[-size:] = payload[-2 * size : -size]  # the rows of the first key once more
    assert compare_index("bitmap", bytes(payload), column, name="x") == Difference(2, 2, 2)
    payload[1:5] = (3).to_bytes(4, "big")
    with pytest.raises(FormatError, match=r"x: too many rows with a key .* found 4, expected at"):
        compare_index("bitmap", bytes(payload), column, name="x")


def test_the_same_keys_in_another_order_are_the_same_index() -> None:
    """Like Paimon's own bitmap of version 1, whose keys are in the order of a hash table."""
    column = column_of([7, 3, 7, 3], "INT")
    payload = BUILDERS["bitmap"](column, version=1)
    head, body = payload[:10], payload[26:]
    first, second = payload[10:18], payload[18:26]
    assert compare_index("bitmap", head + second + first + body, column, name="x") is None


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_values_that_a_bloom_filter_denies_are_counted_by_rows(kind: str) -> None:
    samples: dict[str, list[Any]] = {
        "TINYINT": [1, 2, 3],
        "BIGINT": [2**40, -5, 0],
        "DOUBLE": [1.5, float("nan"), -0.0],
        "STRING": ["", "fig", "pear"],
    }
    first, second, third = samples[kind]
    column = column_of([first, None, second, third, second, first], kind)
    partial = column_of([first, third], kind)
    payload = fill(hash_column(partial), 3, 4096)
    assert compare_index("bloom-filter", payload, column, name="x") == Difference(2, 0, 2)
    assert compare_index("bloom-filter", payload, partial, name="x") is None
    whole = fill(hash_column(column), 3, 4096)
    assert compare_index("bloom-filter", whole, partial, name="x") == Difference(0, 0, None)


def test_a_filter_of_many_functions_is_asked_in_small_blocks() -> None:
    column = column_of(list(range(2000)), "BIGINT")
    payload = fill(hash_column(column), 500, 8 << 20)
    assert compare_index("bloom-filter", payload, column, name="x") is None


def test_no_payload_is_right_only_without_rows() -> None:
    assert compare_index("bitmap", b"", column_of([], "INT"), name="x") is None
    difference = compare_index("bitmap", b"", column_of([4, None], "INT"), name="x")
    assert difference == Difference(2, 0, 0)


def test_a_maximum_that_the_dictionary_contradicts_is_damage() -> None:
    column = column_of([1, 2, 3], "INT")
    payload = bytearray(BUILDERS["range-bitmap"](column))
    assert payload[13:21] == np.array([1, 3], ">i4").tobytes()
    payload[20] = 9
    with pytest.raises(FormatError, match=r"a.index: minimum or maximum that .* contradicts"):
        compare_index("range-bitmap", bytes(payload), column, name="a.index")


def test_a_value_above_the_greatest_of_a_bsi_is_damage() -> None:
    column = column_of([1, 2, 3], "INT")
    payload = bytearray(BUILDERS["bsi"](column))
    at = payload.index((3).to_bytes(8, "big"))
    payload[at : at + 8] = (2).to_bytes(8, "big")
    with pytest.raises(FormatError, match=r"a.index: value above the greatest .*found 3, expect"):
        compare_index("bsi", bytes(payload), column, name="a.index")


def answers(reader: Any, keys: list[Any]) -> list[object]:
    """An index's answers to every question that it supports about some keys."""
    asked = [reader.is_null(), reader.is_not_null(), reader.is_not_in(keys[:1])]
    for key in keys:
        asked += (reader.is_in([key]), reader.between(None, key), reader.between(key, None))
    asked += (reader.top_n(k, descending=True, nulls="last") for k in (1, 2))
    return [None if answer.rows is None else answer.rows.to_array().tolist() for answer in asked]


@pytest.mark.parametrize("kind", ["TINYINT", "DOUBLE", "STRING"])
@pytest.mark.parametrize("index_type", sorted(BUILDERS))
def test_no_damage_that_changes_an_answer_is_overlooked(index_type: str, kind: str) -> None:
    if (index_type, kind) in (("bsi", "DOUBLE"), ("bsi", "STRING")):
        return
    samples: dict[str, list[Any]] = {
        "TINYINT": [3, -7, None, 3, 100],
        "DOUBLE": [0.5, -0.0, None, 0.5, float("nan")],
        "STRING": ["fig", "", None, "fig", "pear"],
    }
    column = column_of(samples[kind], kind)
    keys = sorted(set(keys_by_row(column)) - {None}, key=lambda key: (str(type(key)), key))
    versions: list[dict[str, Any]] = [{"version": 1}, {}] if index_type == "bitmap" else [{}]
    for options in versions:
        payload = BUILDERS[index_type](column, **options)
        right = answers(READERS[index_type](Section(BytesSource(payload)), column.key_type), keys)
        noticed = 0
        for damage in flips(payload):
            try:
                difference = compare_index(index_type, damage.data, column, name="x")
            except FormatError:
                noticed += 1
                continue
            noticed += difference is not None
            if difference is None:
                reader = READERS[index_type](Section(BytesSource(damage.data)), column.key_type)
                assert answers(reader, keys) == right, damage.what
        assert noticed > len(payload)
