"""Written files: small pages, the types that Spark writes, indexes of their rows."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.datafiles.parquet import read_layout
from alcid.errors import ColumnError
from alcid.formats.source import BytesSource
from alcid.index.build import IndexedFile, index_file
from alcid.options import parse_options
from alcid.tables.parquet_writer import (
    GROUP_ROWS,
    PAGE_ROWS,
    FileWriter,
    WrittenFile,
    write_file,
    written_type,
)

OPTIONS = parse_options(
    {
        "file-index.bloom-filter.columns": "id, name",
        "file-index.bitmap.columns": "class_id, tags[color]",
        "file-index.range-bitmap.columns": "score, amount, at, day",
        "file-index.bsi.columns": "class_id",
    }
)
ROWS = GROUP_ROWS + 5000


def rows_of(count: int) -> pa.Table:
    rng = np.random.default_rng(count)
    score = rng.random(count)
    score[::7] = math.nan
    mask = rng.random(count) < 0.1
    tags = [[("color", ("red", "blue")[row % 2])] if row % 3 else None for row in range(count)]
    moments = rng.integers(-(10**15), 10**15, count)
    return pa.table(
        {
            "id": rng.integers(0, 2**60, count),
            "class_id": pa.array(rng.integers(0, 50, count), pa.int32(), mask=mask),
            "score": pa.array(score, mask=mask),
            "name": pa.array([f"name {number}" for number in rng.integers(0, 10**6, count)]),
            "flag": pa.array(rng.random(count) < 0.5, mask=mask),
            "amount": pa.array(
                [Decimal(int(integer)) / 100 for integer in rng.integers(0, 999, count)]
            ).cast(pa.decimal128(12, 2)),
            "wide": pa.array([Decimal(10**30)] * count, pa.decimal128(38, 2)),
            "day": pa.array(rng.integers(-(10**5), 10**5, count), pa.int32()).cast(pa.date32()),
            "at": pa.array(moments).cast(pa.timestamp("us", "UTC")),
            "clock": pa.array(moments).cast(pa.timestamp("us")),
            "raw": pa.array([bytes([number % 251]) for number in range(count)]),
            "nothing": pa.nulls(count, pa.int64()),
            "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
            "list": pa.array(
                [[row, None] if row % 2 else [] for row in range(count)],
                pa.list_(pa.field("element", pa.int32())),
            ),
            "point": pa.array(
                [{"x": row, "y": None} if row % 5 else None for row in range(count)],
                pa.struct([("x", pa.int8() if count < 128 else pa.int32()), ("y", pa.float32())]),
            ),
        }
    )


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return rows_of(ROWS)


@pytest.fixture(scope="module")
def written(rows: pa.Table) -> WrittenFile:
    return write_file(rows, OPTIONS, path="dt=1/a.parquet", metadata={"key": "value"})


def source_of(file: WrittenFile) -> BytesSource:
    return BytesSource(file.data.to_pybytes(), "dt=1/a.parquet")


def test_every_page_has_few_rows(written: WrittenFile) -> None:
    layout = read_layout(source_of(written))
    assert layout.starts.tolist() == [0, GROUP_ROWS, ROWS]
    pages = [*range(0, ROWS, PAGE_ROWS)]
    limited = "max_rows_per_page" in signature(pq.ParquetWriter).parameters
    for column in layout.columns:
        name, (leaf, *_) = column.field.name, column.leaves
        if name in ("tags", "list", "point"):  # such columns are read by row groups
            assert column.whole == "nested", name
        elif name == "nothing" and not limited:  # nulls take no space
            assert (column.whole, leaf.pieces[2].tolist()) == ("", [0, GROUP_ROWS])
        else:
            assert (column.whole, leaf.pieces[2].tolist()) == ("", pages), name


@pytest.mark.parametrize("count", [1, 2, PAGE_ROWS, PAGE_ROWS + 1])
@pytest.mark.parametrize("value", [None, [], [1], [None, 2]], ids=str)
def test_lists_are_whole_where_pages_end(count: int, value: list[int | None] | None) -> None:
    lists = pa.array([[3]] * (count - 1) + [value], pa.list_(pa.field("element", pa.int32())))
    rows = pa.table({"a": lists, "b": pa.array(lists.to_pylist()[::-1], lists.type)})
    data = write_file(rows, [], path="a").data
    assert pq.read_table(pa.BufferReader(data)).equals(rows)


def test_dictionaries_are_small(written: WrittenFile) -> None:
    layout = read_layout(source_of(written))
    for column in layout.columns:
        for leaf in column.leaves:
            firsts = np.searchsorted(leaf.pieces[2], layout.starts[:-1])
            dictionary = leaf.pieces[0][firsts] - leaf.groups[2]
            assert dictionary.max() <= 100 << 10, column.field.name  # detected one batch too late


def test_the_rows_are_read_again_with_their_types(rows: pa.Table, written: WrittenFile) -> None:
    read = pq.read_table(pa.BufferReader(written.data))
    assert read.schema.equals(rows.schema)  # without metadata
    for name in rows.schema.names:
        written_values, other = read[name].combine_chunks(), rows[name].combine_chunks()
        assert written_values.equals(other) or name == "score", name
    written_values, other = (np.asarray(table["score"].fill_null(-1)) for table in (read, rows))
    np.testing.assert_array_equal(written_values, other)
    assert read["score"].null_count == rows["score"].null_count


def test_parquet_types_are_those_that_spark_writes(written: WrittenFile) -> None:
    metadata = pq.read_metadata(pa.BufferReader(written.data))
    columns = {
        metadata.schema.column(number).path: metadata.schema.column(number)
        for number in range(metadata.num_columns)
    }
    assert columns["amount"].physical_type == "INT64"
    assert columns["wide"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert '"isAdjustedToUTC":true,"timeUnit":"microseconds"' in _bare(columns["at"])
    assert '"isAdjustedToUTC":false,"timeUnit":"microseconds"' in _bare(columns["clock"])
    assert {column for column in columns if column.startswith(("list", "tags"))} == {
        "list.list.element",
        "tags.key_value.key",
        "tags.key_value.value",
    }
    assert metadata.metadata == {b"key": b"value"}
    assert metadata.row_group(0).column(0).compression == "SNAPPY"


def _bare(column: Any) -> str:
    return str(column.logical_type.to_json()).replace(" ", "")


def same(first: IndexedFile, other: IndexedFile) -> bool:
    return (
        first.entry == other.entry
        and dict(first.entry.statistics) == dict(other.entry.statistics)
        and dict(first.payloads) == dict(other.payloads)
        and (first.types, first.skipped, first.read) == (other.types, other.skipped, other.read)
    )


def test_what_is_kept_is_what_a_build_would_make_of_the_file(written: WrittenFile) -> None:
    source = source_of(written)
    built = index_file(source, OPTIONS, path="dt=1/a.parquet", size=source.size, version="")
    assert same(written.indexed, built)
    assert len([kind for kind in built.payloads if kind.index_type]) == len(OPTIONS)
    assert built.skipped == {}


def test_rows_of_other_types_are_not_taken_for_those_of_the_file(rows: pa.Table) -> None:
    few = rows.slice(0, 100)
    source = source_of(write_file(few, OPTIONS, path="a"))
    other = few.set_column(0, "id", few["id"].cast(pa.string()))
    for other_rows in (few, other):
        made = index_file(source, OPTIONS, path="a", size=source.size, version="", rows=other_rows)
        assert same(made, index_file(source, OPTIONS, path="a", size=source.size, version=""))


def test_rows_that_come_in_small_pieces_make_the_same_file(
    rows: pa.Table, written: WrittenFile
) -> None:
    writer = FileWriter(rows.schema, {"key": "value"})
    for start in range(0, ROWS, 9999):
        writer.add(rows.slice(start, 9999))
    assert (writer.rows, writer.written_bytes > 1 << 20) == (ROWS, True)
    assert writer.buffered_bytes >= rows.nbytes * 0.9
    file = writer.finish(OPTIONS, path="dt=1/a.parquet")
    assert file.data.equals(written.data)
    assert same(file.indexed, written.indexed)


def test_rows_that_wait_can_be_taken_back_for_the_next_file(rows: pa.Table) -> None:
    writer = FileWriter(rows.schema)
    writer.add(rows.slice(0, 100))
    assert writer.cut() is None  # there is no full row group yet
    writer.add(rows.slice(100))
    rest = writer.cut()
    assert rest is not None
    assert rest.drop_columns(["score"]).equals(
        rows.slice(GROUP_ROWS).drop_columns(["score"])
    )  # NaN
    assert writer.cut() is None
    assert (writer.rows, writer.buffered_bytes < rows.nbytes) == (GROUP_ROWS, True)
    file = writer.finish([], path="a")
    assert file.data.equals(write_file(rows.slice(0, GROUP_ROWS), [], path="a").data)


def test_the_version_is_reported_when_the_file_has_its_name(written: WrittenFile) -> None:
    placed = written.placed("123")
    assert placed.entry == replace(written.indexed.entry, version="123")
    assert (placed.entry.path, placed.entry.size) == ("dt=1/a.parquet", written.data.size)
    assert placed.payloads is written.indexed.payloads


def test_an_index_that_cannot_be_built_is_reported_and_the_file_is_written() -> None:
    specs = parse_options({"file-index.bsi.columns": "s"})
    file = write_file(pa.table({"s": [0.5]}), specs, path="a")
    assert [str(kind) for kind in file.indexed.skipped] == ["bsi of 's'"]
    assert pq.read_table(pa.BufferReader(file.data)).to_pydict() == {"s": [0.5]}


def test_a_file_without_rows_and_one_of_a_single_row() -> None:
    for count in (0, 1):
        rows = rows_of(max(count, 1)).slice(0, count)
        file = write_file(rows, OPTIONS, path="a")
        assert (file.indexed.entry.rows, file.indexed.skipped) == (count, {})
        assert pq.read_table(pa.BufferReader(file.data)).num_rows == count


def test_a_file_without_columns_is_refused() -> None:
    with pytest.raises(ColumnError, match="without columns"):
        FileWriter(pa.schema([]))


@pytest.mark.parametrize(
    ("arrow_type", "expected"),
    [
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.large_binary()), pa.binary()),
        (pa.timestamp("s"), pa.timestamp("ms")),
        (pa.timestamp("ns", "Europe/Vienna"), pa.timestamp("ns", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.time32("s"), pa.time32("ms")),
        (pa.list_(pa.field("x", pa.int8(), nullable=False)), pa.list_(pa.int8())),
        (pa.large_list(pa.int8()), pa.list_(pa.int8())),
        (pa.list_(pa.int8(), 3), pa.list_(pa.int8())),
        (
            pa.map_(pa.large_string(), pa.field("v", pa.date64(), nullable=False)),
            pa.map_(pa.string(), pa.date32()),
        ),
        (
            pa.struct([pa.field("a", pa.large_string(), nullable=False)]),
            pa.struct([("a", pa.string())]),
        ),
        (pa.decimal128(5, 2), pa.decimal128(5, 2)),
        (pa.uint64(), pa.uint64()),
    ],
    ids=str,
)
def test_types_are_written_as_they_are_read_again(arrow_type: Any, expected: Any) -> None:
    assert written_type(arrow_type) == expected
    data = write_file(pa.schema([("c", expected)]).empty_table(), [], path="a").data
    assert pq.read_schema(pa.BufferReader(data)).field("c").type == expected


def test_values_at_the_edges_stay() -> None:
    values = {
        "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None], pa.date32()),
        "at": pa.array(
            [datetime(1, 1, 1), None, datetime(9999, 12, 31)], pa.timestamp("us", "UTC")
        ),
        "zero": pa.array([0.0, -0.0, math.inf]),
        "text": pa.array(["", None, "\U0001f600"]),
        "raw": pa.array([b"", b"\0", None]),
    }
    data = write_file(pa.table(values), [], path="a").data
    assert pq.read_table(pa.BufferReader(data)).equals(pa.table(values))


def test_a_column_with_nan_has_no_bounds_in_the_footer() -> None:
    """For Spark, NaN is the greatest number; it would skip files by Arrow's maximum."""
    nan = float("nan")
    inner = pa.struct([("x", pa.float64()), ("y", pa.float32())])
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "some": [1.0, nan, 2.0],
            "none": [1.0, 2.0, None],
            "pair": pa.array([{"x": nan, "y": 1.5}, None, {"x": 1.0, "y": 2.0}], inner),
            "list": pa.array([[1.0, nan], None, []], pa.list_(pa.field("element", pa.float64()))),
            "map": pa.array([[("k", nan)], None, []], pa.map_(pa.string(), pa.float32())),
        }
    )
    file = pq.ParquetFile(pa.BufferReader(write_file(rows, [], path="a.parquet").data))
    columns = [file.metadata.row_group(0).column(number) for number in range(8)]
    assert {column.path_in_schema: column.is_stats_set for column in columns} == {
        "id": True,
        "some": False,
        "none": True,
        "pair.x": False,
        "pair.y": True,
        "list.list.element": False,
        "map.key_value.key": True,
        "map.key_value.value": False,
    }
    assert all(column.has_offset_index for column in columns)
    assert repr(file.read().to_pylist()) == repr(rows.to_pylist())
