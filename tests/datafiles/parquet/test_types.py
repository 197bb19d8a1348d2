"""Every type that Arrow writes: reading by pages equals Arrow's reading of the whole file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alcid.datafiles.parquet import ReadReport, read_rows
from tests.datafiles.parquet.kit import (
    COLUMNS,
    NULLS,
    PAGED,
    ROWS,
    assert_same,
    counted,
    plain_read,
    table_of,
    with_nulls,
    written,
)

POSITIONS = [0, 9, 10, 11, 255, 256, 299, 500, 501, 990, 999]
SIZES = {"row_group_size": 300}

WRITERS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "version 2 pages": {"data_page_version": "2.0"},
    "version 2 pages, plain": {"data_page_version": "2.0", "use_dictionary": False},
    "dictionary given up": {"dictionary_pagesize_limit": 200},
    "dictionary given up, version 2": {
        "dictionary_pagesize_limit": 200,
        "data_page_version": "2.0",
    },
    "checksums": {"write_page_checksum": True},
    "checksums, version 2": {"write_page_checksum": True, "data_page_version": "2.0"},
    "without Arrow's schema": {"store_schema": False},
    "decimals as integers": {"store_decimal_as_integer": True},
    **{
        codec: {"compression": codec}
        for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
    },
}


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("writer", WRITERS)
def test_rows_equal_those_of_arrow(writer: str, nulls: str) -> None:
    data = written(table_of(nulls), **PAGED, **SIZES, **WRITERS[writer])
    report = ReadReport()
    table = read_rows(counted(data), POSITIONS, report=report)
    assert_same(table, plain_read(data, POSITIONS))
    assert report.whole == {}
    assert report.row_groups == 3  # no row of 600 to 899


@pytest.mark.parametrize("name", COLUMNS)
def test_single_rows_of_a_column_equal_those_of_arrow(name: str) -> None:
    table = pa.table({name: with_nulls(COLUMNS[name], "nulls at page borders")})
    data = written(table, **PAGED, **SIZES)
    whole = plain_read(data)
    source = counted(data)
    for position in (0, 8, 9, 10, 299, 300, ROWS - 1):
        assert_same(read_rows(source, [position]), whole.slice(position, 1))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("DELTA_BINARY_PACKED", ["int32", "int64"]),
        ("DELTA_LENGTH_BYTE_ARRAY", ["string", "binary"]),
        ("DELTA_BYTE_ARRAY", ["string", "fixed_binary"]),
        ("BYTE_STREAM_SPLIT", ["int32", "int64", "float", "double", "fixed_binary"]),
        ("RLE", ["bool"]),
    ],
)
def test_encodings(encoding: str, names: list[str], version: str) -> None:
    columns = {name: COLUMNS.get(name, COLUMNS["float64"]) for name in names}
    table = pa.table(
        {name: with_nulls(array, "nulls at page borders") for name, array in columns.items()}
    )
    data = written(
        table,
        **PAGED,
        **SIZES,
        use_dictionary=False,
        column_encoding=dict.fromkeys(names, encoding),
        data_page_version=version,
    )
    assert_same(read_rows(counted(data), POSITIONS), plain_read(data, POSITIONS))


def test_required_columns_stay_required() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    table = pa.table([COLUMNS["int64"], COLUMNS["string"]], schema)
    data = written(table, **PAGED)
    rows = read_rows(counted(data), POSITIONS)
    assert_same(rows, plain_read(data, POSITIONS))
    assert not rows.schema.field("a").nullable
