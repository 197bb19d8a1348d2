"""Only what contains the rows is read, in as few requests as possible."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.datafiles.parquet import (
    Coalescing,
    FileRows,
    ReadReport,
    read_layout,
    read_many,
    read_rows,
)
from alcid.errors import FormatError
from alcid.formats.source import Range, read_each
from tests.datafiles.parquet.kit import PAGED, assert_same, counted, plain_read, written

TABLE = pa.table(
    {"id": np.arange(100), "name": [f"name {row}" for row in range(100)], "kind": [1, 2] * 50}
)
OPTIONS = {"row_group_size": 50, "compression": "none", "use_dictionary": ["kind"]}
DATA = written(TABLE, **PAGED, **OPTIONS)
APART = Coalescing(gap=0)


def pages_of(column: int, group: int) -> list[tuple[int, int]]:
    """The pages of a chunk, found by their headers as Arrow's writer leaves them."""
    layout = read_layout(counted(DATA))
    offsets, sizes, rows = layout.columns[column].leaves[0].pieces
    return [
        (int(offset), int(size))
        for offset, size, row in zip(offsets, sizes, rows, strict=True)
        if row // 50 == group
    ]


def dictionary_of(column: int, group: int) -> tuple[int, int]:
    chunk = pq.ParquetFile(io.BytesIO(DATA)).metadata.row_group(group).column(column)
    return chunk.dictionary_page_offset, chunk.data_page_offset - chunk.dictionary_page_offset


def test_pages_fill_the_chunks_that_arrow_reports() -> None:
    metadata = pq.ParquetFile(io.BytesIO(DATA)).metadata
    for group in range(2):
        for column in range(3):
            chunk = metadata.row_group(group).column(column)
            pages = pages_of(column, group)
            assert len(pages) == 5
            assert pages[0][0] == chunk.data_page_offset
            assert sum(size for _, size in pages) == chunk.total_compressed_size - (
                dictionary_of(2, group)[1] if column == 2 else 0
            )


def test_one_row_reads_one_page_of_each_column_and_the_dictionary() -> None:
    source, report = counted(DATA), ReadReport()
    layout = read_layout(source)
    source.take()
    table = read_rows(source, [73], layout=layout, coalescing=APART, report=report)
    assert table.to_pylist() == [{"id": 73, "name": "name 73", "kind": 2}]
    expected = [pages_of(0, 1)[2], pages_of(1, 1)[2], dictionary_of(2, 1), pages_of(2, 1)[2]]
    assert source.take() == expected
    assert report == ReadReport(4, sum(size for _, size in expected), 3, 1)


def test_only_the_columns_asked_for_are_read_and_in_that_order() -> None:
    source = counted(DATA)
    layout = read_layout(source)
    source.take()
    table = read_rows(source, [0], ["name", "id"], layout=layout, coalescing=APART)
    assert table.to_pydict() == {"name": ["name 0"], "id": [0]}
    assert source.take() == [pages_of(0, 0)[0], pages_of(1, 0)[0]]


def test_pages_side_by_side_are_read_at_once() -> None:
    source = counted(DATA)
    layout = read_layout(source)
    source.take()
    read_rows(source, [5, 15, 49], ["id"], layout=layout, coalescing=APART)
    pages = pages_of(0, 0)
    assert source.take() == [(pages[0][0], pages[0][1] + pages[1][1]), pages[4]]


@pytest.mark.parametrize(("more", "requests"), [(-1, 2), (0, 1)])
def test_gap_is_read_along_up_to_its_limit(more: int, requests: int) -> None:
    source = counted(DATA)
    layout = read_layout(source)
    source.take()
    (begin, size), (_, gap), (last, last_size), *_ = pages_of(0, 0)
    how = Coalescing(gap=gap + more)
    read_rows(source, [0, 29], ["id"], layout=layout, coalescing=how)
    apart = [(begin, size), (last, last_size)]
    assert source.take() == (apart if requests == 2 else [(begin, last + last_size - begin)])


def test_requests_end_at_the_largest_size() -> None:
    source = counted(DATA)
    layout = read_layout(source)
    source.take()
    table = read_rows(source, None, ["id"], layout=layout, coalescing=Coalescing(0, largest=1))
    assert table == TABLE.select(["id"])
    assert source.take() == pages_of(0, 0) + pages_of(0, 1)


def test_all_rows_take_one_request_for_each_row_group_side_by_side() -> None:
    source, report = counted(DATA), ReadReport()
    layout = read_layout(source)
    source.take()
    assert read_rows(source, layout=layout, report=report) == TABLE
    (only,) = source.take()
    assert only == (4, sum(pages_of(2, 1)[-1]) - 4)
    assert (report.pages, report.row_groups) == (30, 2)


def test_no_row_reads_nothing() -> None:
    source, report = counted(DATA), ReadReport()
    layout = read_layout(source)
    source.take()
    assert read_rows(source, [], layout=layout, report=report) == TABLE.slice(0, 0)
    assert source.take() == []
    assert report == ReadReport()


def test_layout_takes_one_read_of_the_end_of_a_file() -> None:
    source, report = counted(DATA), ReadReport()
    read_layout(source, report=report)
    assert source.take() == [(0, len(DATA))]
    assert report == ReadReport(1, len(DATA))


def test_a_long_footer_and_its_offset_indexes_take_three_reads() -> None:
    table = pa.table({f"column {number}": [number] for number in range(2000)})
    data = written(table, write_page_index=True, compression="none")
    source = counted(data)
    layout = read_layout(source)
    footer = int.from_bytes(data[-8:-4], "little")
    assert footer > 64 << 10
    first, second, third = source.take()
    assert first == (len(data) - (64 << 10), 64 << 10)
    assert second == (len(data) - 8 - footer, footer + 8)
    assert sum(third) <= second[0]
    assert third[1] < footer
    source.take()
    assert_same(read_rows(source, [0], layout=layout), plain_read(data))
    assert len(source.take()) == 1


def test_a_dictionary_that_was_given_up_is_read_for_the_pages_before_only() -> None:
    table = pa.table({"id": np.arange(1000)})
    data = written(
        table, **PAGED, row_group_size=500, dictionary_pagesize_limit=800, compression="none"
    )
    source = counted(data)
    layout = read_layout(source)
    leaf = layout.columns[0].leaves[0]
    assert leaf.groups[3].tolist() == [100, 100]  # 100 numbers of 8 bytes
    offsets, sizes, rows = leaf.pieces
    source.take()
    for position in (99, 100, 499, 500, 599, 600, 999):
        assert read_rows(source, [position], layout=layout, coalescing=APART) == table.slice(
            position, 1
        )
        page = int(np.searchsorted(rows, position, side="right")) - 1
        expected = [(int(offsets[page]), int(sizes[page]))]
        if position % 500 < 100:
            begin = int(leaf.groups[2][position // 500])
            first = int(offsets[np.searchsorted(rows, position // 500 * 500)])
            expected.insert(0, (begin, first - begin))
            if expected[0][0] + expected[0][1] == expected[1][0]:
                expected = [(begin, first - begin + expected[1][1])]
        assert source.take() == expected


def test_a_dictionary_is_fetched_after_all_if_the_pages_need_it() -> None:
    source = counted(DATA)
    layout = read_layout(source)
    kind = layout.column("kind").leaves[0]
    kind.groups[3] = 0  # as if the writer had stated that no page uses it
    source.take()
    table = read_rows(source, [73], ["kind"], layout=layout, coalescing=APART)
    assert table.to_pydict() == {"kind": [2]}
    page = pages_of(2, 1)[2]
    assert source.take() == [page, dictionary_of(2, 1), page]


def test_many_files_are_read_each_in_its_own_requests() -> None:
    sources = [counted(DATA, f"{number}.parquet") for number in range(3)]
    layouts = [read_layout(source) for source in sources]
    for source in sources:
        source.take()
    report = ReadReport()
    table = read_many(
        [
            FileRows(source, layout, positions)
            for source, layout, positions in zip(sources, layouts, ([3], [], [99]), strict=True)
        ],
        ["id"],
        report=report,
    )
    assert table.to_pydict() == {"id": [3, 99]}
    assert [source.take() for source in sources] == [[pages_of(0, 0)[0]], [], [pages_of(0, 1)[4]]]
    assert (report.requests, report.pages, report.row_groups) == (2, 2, 2)


def test_all_ranges_are_read_in_one_round() -> None:
    source = counted(DATA)
    layout = read_layout(source)
    source.take()
    alone = read_rows(source, range(0, 100, 7), layout=layout, coalescing=APART)
    expected = source.take()
    rounds: list[list[tuple[int, int]]] = []

    def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append([(offset, length) for _, offset, length in ranges])
        return read_each(ranges)

    table = read_rows(
        source, range(0, 100, 7), layout=layout, coalescing=APART, read_ranges=read_ranges
    )
    assert table == alone == TABLE.take(list(range(0, 100, 7)))
    assert rounds == [expected]


def test_a_round_that_gives_too_few_bytes_is_refused() -> None:
    source = counted(DATA)
    with pytest.raises(FormatError, match=r"^a.parquet: short read at offset 0: found \d+"):
        read_layout(source, read_ranges=lambda ranges: [part[1:] for part in read_each(ranges)])
