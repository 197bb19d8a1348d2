"""Whole row groups: the same rows, types and errors as by position, in one round of reads."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.datafiles.parquet import (
    Coalescing,
    ReadReport,
    ScanField,
    open_scan,
    open_scans,
    read_layout,
    read_rows,
)
from alcid.errors import (
    AlcidError,
    ColumnError,
    FileGoneError,
    FormatError,
    UnsupportedError,
)
from alcid.formats.source import (
    BytesSource,
    Range,
    Source,
    read_each,
)
from alcid.storage import Storage
from alcid.testing import flips, truncations
from tests.datafiles.parquet.kit import (
    NESTED,
    NULLS,
    PAGED,
    assert_same,
    counted,
    encrypted,
    plain_read,
    table_of,
    written,
)
from tests.datafiles.parquet.test_read import INSTANTS
from tests.datafiles.parquet.test_types import WRITERS

TABLE = pa.table(
    {"id": np.arange(100), "name": [f"name {row}" for row in range(100)], "kind": [1, 2] * 50}
)
DATA = written(TABLE, row_group_size=30, compression="none")


def by_pages(source: Source, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows as `read_rows` reads them by their pages."""
    layout = read_layout(source)
    return read_rows(source, range(layout.rows), columns, layout=layout)


def chunk_of(group: int, leaf: int) -> tuple[int, int]:
    chunk = pq.ParquetFile(io.BytesIO(DATA)).metadata.row_group(group).column(leaf)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    return begin, chunk.total_compressed_size


def old_writer(data: bytes) -> bytes:
    """The file as if parquet-mr 1.2.8 had written it."""
    created = pq.ParquetFile(io.BytesIO(data)).metadata.created_by.encode()
    return data.replace(created, b"parquet-mr version 1.2.8".ljust(len(created)))


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_type_is_as_read_by_pages(writer: str, nulls: str) -> None:
    table = table_of(nulls, nested=True)
    source = counted(written(table, **PAGED, row_group_size=300, **WRITERS[writer]))
    rows = open_scan(source).read()
    assert_same(rows, by_pages(source))
    assert_same(rows, plain_read(written(table, **WRITERS[writer])))
    assert_same(read_rows(source), rows)


@pytest.mark.parametrize("name", NESTED)
def test_a_nested_column_is_read_with_all_its_leaves(name: str) -> None:
    source = counted(written(table_of(nested=True), row_group_size=300))
    table = open_scan(source).read(None, ["int8", name])
    assert_same(table, by_pages(source, ["int8", name]))


def test_int96_is_read_as_microseconds_of_all_years() -> None:
    table = pa.table({"at": pa.array(INSTANTS * 30, pa.timestamp("us"))})
    data = written(table, use_deprecated_int96_timestamps=True, store_schema=False)
    rows = open_scan(counted(data)).read()
    assert rows.schema.field("at").type == pa.timestamp("us")
    assert rows["at"].to_pylist() == INSTANTS * 30
    assert_same(rows, by_pages(counted(data)))


def test_columns_come_in_the_order_asked_for_and_may_repeat() -> None:
    table = open_scan(counted(DATA)).read(None, ["name", "id", "name"])
    assert table.column_names == ["name", "id", "name"]
    assert_same(table, by_pages(counted(DATA), ["name", "id", "name"]))


def test_row_groups_come_in_the_order_asked_for() -> None:
    scan, report = open_scan(counted(DATA)), ReadReport()
    table = scan.read([3, 0], ["id"], report=report)
    assert table["id"].to_pylist() == [*range(90, 100), *range(30)]
    assert report.row_groups == 2
    assert scan.read([], ["id"]) == TABLE.select(["id"]).slice(0, 0)


def test_no_columns_still_count_rows() -> None:
    source = counted(DATA)
    scan = open_scan(source)
    source.take()
    assert scan.read(None, []).shape == (100, 0)
    assert scan.read([3], []).shape == (10, 0)
    assert read_rows(source, None, []).shape == (100, 0)


def test_files_without_rows_or_columns() -> None:
    source = counted(written(table_of(nested=True).slice(0, 0)))
    assert open_scan(source).metadata.num_rows == 0
    assert_same(open_scan(source).read(), by_pages(source))
    assert open_scan(counted(written(pa.table({})))).read().shape == (0, 0)


def test_empty_row_groups_are_passed_over() -> None:
    file = io.BytesIO()
    with pq.ParquetWriter(file, TABLE.schema) as writer:
        for begin, length in ((0, 0), (0, 10), (10, 0), (10, 90), (0, 0)):
            writer.write_table(TABLE.slice(begin, length))
    scan, report = open_scan(counted(file.getvalue())), ReadReport()
    assert 0 in scan.group_rows
    assert scan.read(report=report) == TABLE
    assert report.row_groups == 2
    empty = scan.group_rows.index(0)
    assert scan.read([empty]) == TABLE.slice(0, 0)


def test_names_of_any_letters_are_distinguished() -> None:
    inner = pa.array([{"b": 1, "c": [2]}])
    names = ["a", "a.b", "", "a.c.list.element", "zażółć 🐧"]
    arrays = [inner, pa.array([3]), pa.array([4]), pa.array([5]), pa.array([6])]
    source = counted(written(pa.table(arrays, names)))
    scan = open_scan(source)
    assert scan.fields == tuple(
        ScanField(name, leaves)
        for name, leaves in zip(
            names, (range(2), range(2, 3), range(3, 4), range(4, 5), range(5, 6)), strict=True
        )
    )
    for name, array in zip(names, arrays, strict=True):
        assert scan.read(None, [name]).to_pydict() == {name: array.to_pylist()}


def test_a_name_that_appears_twice_is_read_with_all_columns_but_not_by_name() -> None:
    table = pa.table([pa.array(range(30)), pa.array(["x"] * 30)], ["same", "same"])
    source = counted(written(table))
    assert read_rows(source) == open_scan(source).read() == table
    for read in (open_scan(source).read, lambda *arguments: read_rows(source, *arguments)):
        with pytest.raises(ColumnError) as raised:
            read(None, ["same"])
        assert str(raised.value) == "a.parquet: column same: found 2 columns of this name"
        with pytest.raises(ColumnError) as raised:
            read(None, ["other"])
        assert str(raised.value) == "a.parquet: column other: found no such column"


@pytest.mark.parametrize("group", [-1, 4])
def test_a_row_group_that_is_not_there_is_refused(group: int) -> None:
    with pytest.raises(FormatError) as raised:
        open_scan(counted(DATA)).read([0, group])
    assert str(raised.value) == f"a.parquet: no such row group: found {group}, expected 0 to 3"


def test_only_the_chunks_that_are_needed_are_read_and_in_one_round() -> None:
    source, report = counted(DATA), ReadReport()
    scan = open_scan(source, report=report)
    assert source.take() == [(0, len(DATA))]
    rounds: list[list[tuple[int, int]]] = []

    def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append([(offset, length) for _, offset, length in ranges])
        return read_each(ranges)

    options: dict[str, Any] = {"read_ranges": read_ranges, "report": report}
    scan.read([0, 2], ["kind", "id"], coalescing=Coalescing(gap=0), **options)
    expected = [chunk_of(0, 0), chunk_of(0, 2), chunk_of(2, 0), chunk_of(2, 2)]
    assert source.take() == expected
    assert rounds == [expected]
    read = sum(length for _, length in expected)
    assert report == ReadReport(5, len(DATA) + read, 0, 2)
    scan.read([0, 1], ["id"], **options)
    assert source.take() == [(4, sum(chunk_of(1, 0)) - 4)]


def test_footers_of_many_files_are_read_in_one_round_and_the_long_ones_in_a_second() -> None:
    wide = written(pa.table({f"column {number}": [number] for number in range(2000)}))
    sources = [counted(DATA, "a"), counted(wide, "b"), counted(DATA, "c")]
    rounds: list[list[str]] = []

    def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append([source.name for source, _, _ in ranges])
        return read_each(ranges)

    report = ReadReport()
    scans = open_scans(sources, read_ranges=read_ranges, report=report)
    assert rounds == [["a", "b", "c"], ["b"]]
    assert [scan.metadata.num_columns for scan in scans] == [3, 2000, 3]
    footer = int.from_bytes(wide[-8:-4], "little")
    assert sources[1].take() == [
        (len(wide) - (64 << 10), 64 << 10),
        (len(wide) - 8 - footer, footer + 8),
    ]
    assert report == ReadReport(4, 2 * len(DATA) + (64 << 10) + footer + 8)
    assert open_scans([]) == []


def test_a_chunk_that_an_old_writer_gave_too_small_a_length_is_read_further() -> None:
    # Arrow does not trust lengths of parquet-mr before 1.2.9, and reads 100 bytes more.
    source = counted(old_writer(DATA))
    scan, report = open_scan(source), ReadReport()
    assert scan.metadata.created_by.startswith("parquet-mr version 1.2.8")
    source.take()
    assert scan.read([0], ["id"], report=report) == TABLE.select(["id"]).slice(0, 30)
    begin, length = chunk_of(0, 0)
    assert source.take() == [(begin, length), (begin, length + 100)]
    assert (report.requests, report.bytes_read) == (2, 2 * length + 100)


def test_errors_of_a_source_are_not_those_of_a_damaged_file(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    storage.put("a", old_writer(DATA))
    scan = open_scan(storage.source("a"))

    def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
        parts = storage.read_ranges(ranges)
        storage.delete(["a"])  # before Arrow reads the 100 bytes more
        return parts

    with pytest.raises(FileGoneError):
        scan.read([0], ["id"], read_ranges=read_ranges)


def test_every_byte_flipped_gives_rows_or_an_error_of_ours() -> None:
    table = pa.table({"id": range(20), "word": ["a", None, "ccc", "dd"] * 5})
    data = written(table, compression="none", store_schema=False)
    problems: list[str] = []
    for damage in flips(data):
        try:
            rows = open_scan(BytesSource(damage.data, "damaged")).read()
        except AlcidError as error:
            problems.append(str(error))
        else:
            assert rows.num_rows == 20, damage.what
    assert len(problems) > len(data) // 4
    assert [problem for problem in problems if not problem.startswith("damaged: ")] == []


def test_every_truncation_is_refused() -> None:
    for damage in truncations(DATA[-2000:]):
        with pytest.raises(FormatError):
            open_scan(BytesSource(damage.data, damage.what)).read()


def test_checksums_are_verified() -> None:
    data = bytearray(written(TABLE, compression="none", write_page_checksum=True))
    begin = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).data_page_offset
    data[begin + 200] ^= 1
    with pytest.raises(FormatError, match=r"^a.parquet: damaged pages: .*[Cc][Rr][Cc]"):
        open_scan(counted(bytes(data))).read()


def test_an_encrypted_footer_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"^a.parquet: its footer is encrypted"):
        open_scan(counted(DATA[:-4] + b"PARE"))


def test_encrypted_columns_are_refused_and_the_others_read() -> None:
    source = counted(encrypted(TABLE, column_keys={"key": ["name"]}))
    scan = open_scan(source)
    for columns in (None, ["kind", "name"]):
        for read in (scan.read, lambda _, columns: read_rows(source, [3], columns)):
            with pytest.raises(UnsupportedError) as raised:
                read(None, columns)
            assert str(raised.value) == "a.parquet: column name: encrypted"
    assert scan.read(None, ["kind", "id"]) == TABLE.select(["kind", "id"])


def test_a_file_that_only_says_that_it_is_encrypted_does_not_end_the_process() -> None:
    data = encrypted(TABLE, column_keys={"key": ["name"]})
    length = int.from_bytes(data[-8:-4], "little") - 28  # the signature
    forged = data[: -8 - 28] + length.to_bytes(4, "little") + b"PAR1"
    scan = open_scan(counted(forged))
    assert scan.metadata.serialized_size == length
    with pytest.raises(UnsupportedError) as raised:
        scan.read()
    assert str(raised.value) == "a.parquet: column name: encrypted"
    assert scan.read(None, ["id"]) == TABLE.select(["id"])


def test_chunks_are_checked_before_arrow_is_asked_for_them() -> None:
    scan = open_scan(counted(encrypted(TABLE, column_keys={"key": ["name"]})))
    scan.check([0], [0, 2])
    assert scan.metadata.row_group(0).column(2).path_in_schema == "kind"
    with pytest.raises(UnsupportedError, match=r"^a.parquet: column name: encrypted$"):
        scan.check([0], [0, 1])
    with pytest.raises(FormatError, match=r"^a.parquet: no such row group: found 1, expected 0 to"):
        scan.check([1], [0])
