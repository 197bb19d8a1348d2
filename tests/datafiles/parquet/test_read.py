"""Odd files, odd names, odd positions, and several files at once."""

from __future__ import annotations

import datetime
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from alcid.datafiles.parquet import (
    FileRows,
    ReadReport,
    read_layout,
    read_many,
    read_rows,
)
from alcid.datafiles.parquet import pages as run_module
from alcid.errors import ColumnError, FormatError, UnsupportedError
from tests.datafiles.parquet.kit import (
    NESTED,
    PAGED,
    ROWS,
    assert_same,
    counted,
    plain_read,
    table_of,
    written,
)

SMALL = pa.table({"id": pa.array(range(100)), "name": [f"name {row}" for row in range(100)]})
INSTANTS = [
    datetime.datetime(1, 1, 1),
    datetime.datetime(1582, 10, 15),  # at midnight: pyarrow 19 writes hours before 1970 wrong
    datetime.datetime(1970, 1, 1, microsecond=1),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
]


def small(**options: Any) -> bytes:
    return written(SMALL, **PAGED, **options)


@pytest.mark.parametrize(
    "positions",
    [[3, 98], np.array([3, 98]), np.array([3, 98], np.uint8), BitMap([3, 98]), range(3, 99, 95)],
    ids=["list", "int64", "uint8", "bitmap", "range"],
)
def test_positions_come_in_several_forms(positions: Any) -> None:
    table = read_rows(counted(small()), positions)
    assert table == SMALL.take([3, 98])


@pytest.mark.parametrize("positions", [[], BitMap(), np.zeros(0, np.int64)])
def test_no_position_gives_no_row_of_the_same_types(positions: Any) -> None:
    assert read_rows(counted(small()), positions) == SMALL.slice(0, 0)


@pytest.mark.parametrize(
    ("positions", "error", "problem"),
    [
        ([100], FormatError, "position outside of the file: found 100, expected 0 to 99"),
        ([-1, 4], FormatError, "position outside of the file: found -1, expected 0 to 99"),
        ([4, 4], FormatError, "positions do not ascend"),
        ([5, 4], FormatError, "positions do not ascend"),
        ([0.5], UnsupportedError, "positions: found 1 dimensions of float64, expected integers"),
        ([[1]], UnsupportedError, "positions: found 2 dimensions of int64, expected integers"),
        ([True], UnsupportedError, "positions: found 1 dimensions of bool, expected integers"),
    ],
)
def test_bad_positions_are_refused(positions: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error) as raised:
        read_rows(counted(small()), positions)
    assert str(raised.value) == f"a.parquet: {problem}"


def test_a_file_without_rows() -> None:
    data = small()
    empty = written(plain_read(data).slice(0, 0), **PAGED)
    assert read_rows(counted(empty)) == SMALL.slice(0, 0)
    with pytest.raises(FormatError, match="outside of the file: found 0, expected none"):
        read_rows(counted(empty), [0])


def test_every_type_of_a_file_without_rows() -> None:
    data = written(table_of(nested=True).slice(0, 0), **PAGED)
    assert_same(read_rows(counted(data)), plain_read(data))


def test_a_file_without_columns() -> None:
    data = written(pa.table({}), **PAGED)
    assert read_rows(counted(data)).shape == (0, 0)


def test_no_columns_still_count_rows() -> None:
    assert read_rows(counted(small()), [1, 2, 5], []).shape == (3, 0)


def test_empty_row_groups_are_passed_over() -> None:
    file = io.BytesIO()
    with pq.ParquetWriter(file, SMALL.schema, write_page_index=True) as writer:
        for begin, length in ((0, 0), (0, 10), (10, 0), (10, 0), (10, 90), (0, 0)):
            writer.write_table(SMALL.slice(begin, length))
    data = file.getvalue()
    assert pq.ParquetFile(file).metadata.num_row_groups > 2
    layout = read_layout(counted(data))
    assert layout.starts.tolist() == [0, 10, 100]
    assert read_rows(counted(data), [9, 10, 99], layout=layout) == SMALL.take([9, 10, 99])
    assert read_rows(counted(data)) == SMALL


def test_names_of_any_letters() -> None:
    names = ["a.b", "a", "x=1/y%20", "zażółć 🐧", "", "a.b.c", " ", "`tick`"]
    table = pa.table({name: np.arange(20) + number for number, name in enumerate(names)})
    data = written(table, **PAGED)
    assert read_rows(counted(data), [0, 19]) == table.take([0, 19])
    for name in names:
        assert read_rows(counted(data), [7], [name]) == table.select([name]).slice(7, 1)


def test_a_name_that_appears_twice_is_read_with_all_columns_but_not_by_name() -> None:
    table = pa.table([pa.array(range(30)), pa.array(["x"] * 30)], ["same", "same"])
    data = written(table, **PAGED)
    assert read_rows(counted(data), [3, 28]) == table.take([3, 28])
    with pytest.raises(ColumnError, match=r"a.parquet: column same: found 2 columns of this name"):
        read_rows(counted(data), [3], ["same"])


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ColumnError, match=r"a.parquet: column nam: found no such column"):
        read_rows(counted(small()), [3], ["id", "nam"])


def test_a_column_may_be_asked_for_twice() -> None:
    table = read_rows(counted(small()), [5], ["id", "name", "id"])
    assert table.column_names == ["id", "name", "id"]
    assert [column.to_pylist() for column in table.columns] == [[5], ["name 5"], [5]]


@pytest.mark.parametrize("paged", [True, False])
def test_nested_columns_are_read_whole_next_to_flat_ones(paged: bool) -> None:
    options = {**PAGED, "row_group_size": 300, "write_page_index": paged}
    data = written(table_of("nulls at page borders", nested=True), **options)
    report = ReadReport()
    positions = [0, 5, 299, 300, 999]
    table = read_rows(counted(data), positions, report=report)
    assert_same(table, plain_read(data, positions))
    reasons = dict.fromkeys(NESTED, "nested")
    if not paged:
        reasons |= {name: "no offset index" for name in table.column_names if name not in NESTED}
    assert report.whole == reasons


def test_a_repeated_field_is_nested() -> None:
    # Lists of the oldest form have no group around them: a leaf that is repeated.
    data = written(pa.table({"a": [1, 2, 3]}), write_page_index=True, store_schema=False)
    element = read_layout(counted(data)).columns[0].field.elements[0]
    assert element[:4] == b"\x15\x04\x25\x02"  # INT64, optional
    forged = data.replace(element, b"\x15\x04\x25\x04" + element[4:])
    column = read_layout(counted(forged)).columns[0]
    assert (column.field.nested, column.whole) == (True, "nested")


@pytest.mark.parametrize("dictionary", [True, False])
def test_int96_is_read_as_microseconds_of_all_years(dictionary: bool) -> None:
    # Arrow writes INT96 from nanoseconds as well as from microseconds, which reach further.
    table = pa.table({"at": pa.array(INSTANTS * 30, pa.timestamp("us"))})
    data = written(
        table,
        **PAGED,
        use_deprecated_int96_timestamps=True,
        use_dictionary=dictionary,
        store_schema=False,
    )
    assert pq.ParquetFile(io.BytesIO(data)).schema.column(0).physical_type == "INT96"
    report = ReadReport()
    rows = read_rows(counted(data), [0, 1, 2, 3, 118, 119], report=report)
    assert rows.schema.field("at").type == pa.timestamp("us")
    assert rows["at"].to_pylist() == [*INSTANTS, *INSTANTS[2:]]
    assert report.whole == {}
    assert_same(rows, plain_read(data, [0, 1, 2, 3, 118, 119]))


@pytest.mark.parametrize("key", ["org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"])
def test_files_in_the_old_calendar_are_read_whole(key: str) -> None:
    table = SMALL.replace_schema_metadata({key: ""})
    data = written(table, **PAGED)
    report = ReadReport()
    assert read_rows(counted(data), [4], report=report) == SMALL.slice(4, 1)
    reason = f"dates of the old calendar ({key})"
    assert report.whole == {"id": reason, "name": reason}
    assert report.pages == 0


def test_five_thousand_columns() -> None:
    table = pa.table({f"column {number}": [number, -number] for number in range(5000)})
    data = written(table, write_page_index=True)
    source = counted(data)
    assert read_rows(source, [1]) == table.slice(1, 1)
    assert read_rows(source, [0], ["column 4321"]).to_pydict() == {"column 4321": [4321]}


def test_columns_with_pages_of_different_rows() -> None:
    table = pa.table({"small": np.arange(3000), "large": [f"{row:0100d}" for row in range(3000)]})
    data = written(
        table, write_page_index=True, data_page_size=2000, write_batch_size=1, use_dictionary=False
    )
    layout = read_layout(counted(data))
    pages = [column.leaves[0].pieces.shape[1] for column in layout.columns]
    assert pages[0] != pages[1]
    assert min(pages) > 10
    positions = [0, 19, 20, 1500, 2999]
    assert read_rows(counted(data), positions, layout=layout) == table.take(positions)


def test_many_files_in_their_order_in_batches_of_some_row_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of("nulls at page borders")
    sources = [
        counted(written(table.slice(begin, 250), **PAGED, row_group_size=100), f"{begin}.parquet")
        for begin in range(0, ROWS, 250)
    ]
    expected = plain_read(written(table), range(3, ROWS, 41))
    files = [
        FileRows(
            source, None, [row - 250 * number for row in range(3, ROWS, 41) if row // 250 == number]
        )
        for number, source in enumerate(sources)
    ]
    assert_same(read_many(files), expected)
    monkeypatch.setattr(run_module, "_BATCH", 5000)
    assert_same(read_many(files), expected)


def test_files_of_other_writers_follow_each_other() -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    files = [
        counted(small(), "optional.parquet"),
        counted(written(SMALL.cast(required), **PAGED), "required.parquet"),
        counted(written(SMALL, compression="zstd"), "whole.parquet"),
        counted(small(compression="gzip"), "gzip.parquet"),
    ]
    report = ReadReport()
    table = read_many([FileRows(file, None, [50]) for file in files], report=report)
    assert table == pa.concat_tables([SMALL.slice(50, 1)] * 4)
    assert report.whole == {"id": "no offset index", "name": "no offset index"}
    assert report.pages == 6


def test_files_of_other_types_are_refused() -> None:
    other = pa.table({"id": pa.array(range(100), pa.int32()), "name": SMALL["name"]})
    files = [counted(small(), "long.parquet"), counted(written(other), "int.parquet")]
    with pytest.raises(
        UnsupportedError,
        match=r"int.parquet: column id: found int32, expected int64 as in the files before",
    ):
        read_many([FileRows(file, None, [1]) for file in files])


def test_files_of_other_columns_are_refused_unless_named() -> None:
    files = [counted(small(), "a.parquet"), counted(written(SMALL.select(["id"])), "b.parquet")]
    rows = [FileRows(file, None, [1]) for file in files]
    with pytest.raises(ColumnError, match=r"b.parquet: found other columns than in a.parquet"):
        read_many(rows)
    assert read_many(rows, ["id"]).to_pydict() == {"id": [1, 1]}


def test_no_file_has_no_types() -> None:
    with pytest.raises(UnsupportedError, match="no file"):
        read_many([], ["id"])


def test_a_layout_that_does_not_fit_the_file_is_refused() -> None:
    layout = read_layout(counted(small(compression="none")))
    with pytest.raises(FormatError, match=r"b.parquet: pages outside of the file"):
        read_rows(counted(small()[:500], "b.parquet"), [1], layout=layout)


def test_a_damaged_file_is_named_among_many() -> None:
    data = small(compression="none", write_page_checksum=True)
    layout = read_layout(counted(data))
    offset, size, _ = layout.column("name").leaves[0].pieces[:, 5].tolist()
    damaged = bytearray(data)
    damaged[offset + size - 1] ^= 1
    files = [counted(data, "good.parquet"), counted(bytes(damaged), "bad.parquet")]
    with pytest.raises(FormatError, match=r"^bad.parquet: damaged pages: .*[Cc][Rr][Cc]"):
        read_many([FileRows(file, layout, [3, 55]) for file in files])
    assert read_many([FileRows(file, layout, [3, 65]) for file in files]).num_rows == 4
