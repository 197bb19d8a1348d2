"""Packed pages: the layout is the same after unpacking, and damage never gives another one."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alcid import FormatError, UnsupportedError
from alcid.datafiles.parquet import (
    ColumnLayout,
    FileLayout,
    LeafLayout,
    read_layout,
    read_rows,
    restore_field,
)
from alcid.formats.puffin.compression import compress, decompress
from alcid.formats.source import BytesSource
from alcid.index.bundle import columns as page_columns
from alcid.index.bundle.columns import pack_pages, unpack_pages
from alcid.testing import flips, truncations
from tests.datafiles.parquet.kit import PAGED, assert_same, plain_read, table_of, written
from tests.datafiles.parquet.test_properties import WRITER, options_for, tables

REFUSED = FormatError, UnsupportedError


def packed(layout: FileLayout) -> dict[str, bytes]:
    return {column.field.name: pack_pages(layout, column) for column in layout.columns}


def content(layout: FileLayout) -> tuple[Any, ...]:
    """Everything in a layout, as plain values."""
    return layout.starts.tolist(), [
        (
            column.field,
            column.whole,
            [(leaf.groups.tolist(), leaf.pieces.tolist()) for leaf in column.leaves],
        )
        for column in layout.columns
    ]


@given(tables(), WRITER, st.booleans())
@settings(max_examples=50)
def test_layouts_come_back_as_they_were(
    table: pa.Table, writer: Mapping[str, Any], encoded: bool
) -> None:
    data = written(table, **options_for(table, dict(writer), encoded))
    layout = read_layout(BytesSource(data, "a.parquet"))
    unpacked_layout = unpack_pages(packed(layout), file="a.parquet")
    assert content(unpacked_layout) == content(layout)
    for column in unpacked_layout.columns:
        for leaf in column.leaves:
            assert (
                leaf.groups.dtype == leaf.pieces.dtype == unpacked_layout.starts.dtype == np.int64
            )


@st.composite
def layouts(draw: st.DrawFn) -> FileLayout:
    """Layouts with gaps before pages, chunks in any order, and numbers of any size."""
    numbers = st.integers(1, 300) | st.integers(1, 2**34)
    groups = [
        draw(st.lists(numbers, min_size=1, max_size=4)) for _ in range(draw(st.integers(0, 4)))
    ]
    starts = np.cumsum([0, *map(sum, groups)], dtype=np.int64)
    page_rows = np.array([rows for group in groups for rows in group], np.int64)
    pieces, chunks = [], []
    for group in groups:
        begin = draw(st.integers(4, 2**45))
        codec, coded = draw(st.integers(0, 63)), draw(st.integers(0, 2**40))
        chunks.append((codec, sum(group), begin, coded))
        for _ in group:
            begin += draw(st.sampled_from((0, 0, 1, 255, 2**33)))
            size = draw(numbers)
            pieces.append((begin, size))
            begin += size
    offsets, sizes = np.array(pieces, np.int64).reshape(-1, 2).T
    leaf = LeafLayout(
        np.array(chunks, np.int64).reshape(-1, 4).T,
        np.stack((offsets, sizes, np.cumsum(page_rows) - page_rows)),
    )
    field = restore_field(
        [bytes.fromhex("15 04 25 02 18 01 61 00")],
        draw(st.sampled_from((b"", pa.schema({"a": pa.date64()}).serialize().to_pybytes()))),
        draw(st.binary(max_size=5)),
        file="a",
    )
    return FileLayout(starts, (ColumnLayout(field, (leaf,), draw(st.text(max_size=5))),))


@given(layouts())
def test_any_possible_layout_comes_back(layout: FileLayout) -> None:
    assert content(unpack_pages(packed(layout), file="a")) == content(layout)


def test_a_column_is_unpacked_alone_and_columns_in_any_order_make_a_layout() -> None:
    table = table_of("nulls at page borders", nested=True)
    data = written(table, row_group_size=300, **PAGED)
    source = BytesSource(data, "a.parquet")
    payloads = packed(read_layout(source))
    for columns in (["uint16"], ["string", "date32", "bool"], ["map", "int64"]):
        layout = unpack_pages({name: payloads[name] for name in columns}, file="a.parquet")
        rows = read_rows(source, [5, 299, 300, 999], layout=layout)
        assert_same(rows, plain_read(data, [5, 299, 300, 999]).select(columns))


def test_pages_take_about_a_byte_each() -> None:
    rng = np.random.default_rng(7)
    table = pa.table({"id": rng.integers(0, 10**9, 500_000)})
    options = {"data_page_size": 1000, "write_batch_size": 333, "compression": "zstd"}
    data = written(table, write_page_index=True, use_dictionary=False, **options)
    layout = read_layout(BytesSource(data))
    (payload,) = packed(layout).values()
    assert layout.columns[0].leaves[0].pieces.shape == (3, 1502)
    assert len(payload) < 2500


SMALL = written(pa.table({"id": range(60)}), row_group_size=30, **PAGED)


def small_layout() -> FileLayout:
    return read_layout(BytesSource(SMALL, "a.parquet"))


def unpacked(payload: bytes) -> FileLayout | str:
    """A layout, or the error that was raised instead."""
    try:
        return unpack_pages({"id": payload}, file="a.parquet")
    except REFUSED as error:
        return str(error)


def read(layout: FileLayout) -> pa.Table | str:
    try:
        return read_rows(BytesSource(SMALL, "a.parquet"), [0, 59], layout=layout)
    except REFUSED as error:
        return str(error)


def test_every_truncation_of_the_content_is_refused() -> None:
    data = decompress("zstd", packed(small_layout())["id"][1:], 1 << 20)
    for damage in truncations(data):
        result = unpacked(b"\1" + compress("zstd", damage.data))
        assert isinstance(result, str), damage.what
        assert result.startswith("a.parquet: pages of 'id': "), damage.what


def test_damaged_content_is_refused_at_the_latest_when_rows_are_read_by_it() -> None:
    data = decompress("zstd", packed(small_layout())["id"][1:], 1 << 20)
    seen = 0
    for damage in flips(data):
        result = unpacked(b"\1" + compress("zstd", damage.data))
        if isinstance(result, str):
            assert result.startswith("a.parquet: "), damage.what
            seen += 1
            continue
        assert content(result) != content(small_layout()), damage.what
        table = read(result)  # any error other than ours would end the test
        if isinstance(table, str):
            assert table.startswith("a.parquet: "), damage.what
        elif table.schema.field(0).type == pa.int64():
            assert table.num_rows == 2, damage.what
    assert seen > len(data)  # more than half; texts and the writer's name are not checked


def test_every_flip_and_truncation_of_the_payload_is_noticed() -> None:
    payload = packed(small_layout())["id"]
    for damage in (*flips(payload), *truncations(payload)):
        result = unpacked(damage.data)
        if isinstance(result, str):
            assert "a.parquet: pages of 'id'" in result, damage.what
        else:  # zstd has bits without a meaning
            assert content(result) == content(small_layout()), damage.what


@given(st.binary(max_size=200))
def test_any_bytes_give_an_error_of_ours(data: bytes) -> None:
    for payload in (data, b"\1" + data, b"\1" + compress("zstd", data)):
        with pytest.raises(REFUSED):
            unpack_pages({"id": payload}, file="a.parquet")


def test_numbers_whose_sums_overflow_are_refused() -> None:
    leaf = small_layout().columns[0].leaves[0]
    content = decompress("zstd", packed(small_layout())["id"][1:], 1 << 20)
    sizes = page_columns._numbers(leaf.pieces[1])
    huge = page_columns._numbers(np.full(len(leaf.pieces[1]), 2**62))
    assert content.count(sizes) == 1
    payload = b"\1" + compress("zstd", content.replace(sizes, huge))
    with pytest.raises(FormatError, match=r"a\.parquet: pages of 'id': numbers beyond 2\^61"):
        unpack_pages({"id": payload}, file="a.parquet")


@pytest.mark.parametrize("rows", [(10, 10, 10, 10, 20, 0), (10, 10, 11, 9, 10, 10), (10,) * 5])
def test_pages_that_do_not_fill_their_row_groups_are_refused(rows: tuple[int, ...]) -> None:
    data = decompress("zstd", packed(small_layout())["id"][1:], 1 << 20)
    right = page_columns._numbers(np.full(6, 10))
    assert data.endswith(right)
    wrong = data.removesuffix(right) + page_columns._numbers(np.array(rows))
    expected = "bad numbers" if len(rows) == 5 else "pages do not fill the row groups"
    with pytest.raises(FormatError, match=expected):
        unpack_pages({"id": b"\1" + compress("zstd", wrong)}, file="a.parquet")


def test_a_frame_that_states_a_huge_content_is_refused_before_it_is_read() -> None:
    payload = b"\1" + compress("zstd", bytes((64 << 20) + 1))
    with pytest.raises(FormatError, match="67108865 bytes, and 67108864 are allowed"):
        unpack_pages({"id": payload}, file="a.parquet")


def test_a_later_version_is_left_alone() -> None:
    payload = packed(small_layout())["id"]
    with pytest.raises(UnsupportedError, match="found version 2, expected 1"):
        unpack_pages({"id": b"\2" + payload[1:]}, file="a.parquet")


def test_pages_of_another_column_or_file_are_refused() -> None:
    payload = packed(small_layout())["id"]
    with pytest.raises(FormatError, match="another column: found id, expected name"):
        unpack_pages({"name": payload}, file="a.parquet")
    other = written(pa.table({"b": range(60)}), row_group_size=20)
    payloads = {"id": payload, **packed(read_layout(BytesSource(other)))}
    with pytest.raises(FormatError, match=r"a\.parquet: pages of 'b': other row groups"):
        unpack_pages(payloads, file="a.parquet")
    with pytest.raises(UnsupportedError, match="no column"):
        unpack_pages({}, file="a.parquet")


def test_a_column_that_cannot_be_read_is_not_packed() -> None:
    layout = small_layout()
    column = ColumnLayout(layout.columns[0].field, (), "encrypted")
    with pytest.raises(UnsupportedError, match=r"a\.parquet: column id: encrypted"):
        pack_pages(layout, column)


def test_a_file_without_rows_has_its_columns() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), file)
    layout = read_layout(BytesSource(file.getvalue()))
    unpacked_layout = unpack_pages(packed(layout), file="a.parquet")
    assert content(unpacked_layout) == content(layout)
    assert unpacked_layout.rows == 0
