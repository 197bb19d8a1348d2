"""Stripes of ORC files: the written rows, in few reads, and errors that name the file."""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest

from alcid.datafiles.orc import OrcScan, open_orc_scans
from alcid.datafiles.parquet import Coalescing, ReadReport
from alcid.errors import (
    AlcidError,
    ColumnError,
    FormatError,
    UnsupportedError,
)
from alcid.formats.source import BytesSource, Range, read_each
from alcid.storage import Storage
from alcid.testing import flips, truncations

ROWS = 60_000
CODECS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pyarrow.orc.write_table(table, file, **options)
    return file.getvalue()


def scan_of(data: bytes, report: ReadReport | None = None) -> OrcScan:
    (scan,) = open_orc_scans([BytesSource(data, "a.orc")], report=report)
    return scan


def rows(begin: int = 0, end: int = ROWS) -> pa.Table:
    numbers = np.random.default_rng(1).integers(0, 1 << 62, ROWS)
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "number": numbers,
            "text": [f"text {number % 1000}" for number in numbers.tolist()],
            "nested": [
                {"a": row, "b": [row] * (row % 3)} if row % 5 else None for row in range(ROWS)
            ],
        }
    )
    return table.slice(begin, end - begin)


TABLE = rows()
STRIPED = written(TABLE, stripe_size=200_000, compression="zstd", bloom_filter_columns=[0])


@pytest.mark.parametrize("codec", CODECS)
def test_all_rows_come_back_whatever_the_codec(codec: str) -> None:
    data = written(TABLE, stripe_size=200_000, compression=codec)
    scan = scan_of(data)
    assert len(scan.group_rows) == pyarrow.orc.ORCFile(pa.BufferReader(data)).nstripes > 2
    assert sum(scan.group_rows) == ROWS
    assert scan.read().equals(TABLE)


def test_stripes_and_columns_come_in_the_order_that_is_asked_for() -> None:
    scan = scan_of(STRIPED)
    assert scan.names == ["id", "number", "text", "nested"]
    starts = np.cumsum([0, *scan.group_rows])
    expected = pa.concat_tables([rows(starts[2], starts[3]), rows(0, starts[1])])
    columns = ["nested", "id"]
    assert scan.read([2, 0], columns).equals(expected.select(columns))


def test_no_column_leaves_the_number_of_rows() -> None:
    scan = scan_of(STRIPED)
    table = scan.read([1, 2], [])
    assert table.shape == (scan.group_rows[1] + scan.group_rows[2], 0)


def test_no_stripe_leaves_the_schema() -> None:
    assert scan_of(STRIPED).read([], ["text"]).equals(TABLE.select(["text"]).slice(0, 0))


def test_a_file_without_rows_has_no_stripes() -> None:
    scan = scan_of(written(TABLE.slice(0, 0)))
    assert scan.group_rows == ()
    assert scan.column_sizes(["id"]).tolist() == []
    assert scan.read(None, ["id"]).equals(TABLE.select(["id"]).slice(0, 0))


def test_only_the_streams_of_the_columns_are_read_and_in_one_round() -> None:
    rounds: list[list[tuple[int, int]]] = []

    def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append([(offset, length) for _, offset, length in ranges])
        return read_each(ranges)

    source = BytesSource(STRIPED, "a.orc")
    (scan,) = open_orc_scans([source], read_ranges=read_ranges)
    tail, footers = rounds
    assert tail == [(len(STRIPED) - (64 << 10), 64 << 10)]
    # The last stripe ends within the tail.
    assert len(footers) == len(scan.group_rows) - 1
    rounds.clear()
    report = ReadReport()
    # With nothing read along, all of it is counted in the size.
    exactly = Coalescing(gap=0)
    scan.read([0, 1], ["number"], coalescing=exactly, read_ranges=read_ranges, report=report)
    assert len(rounds) == 1
    assert report.bytes_read == sum(length for _, length in rounds[0])
    assert report.bytes_read == scan.column_sizes(["number"])[:2].sum()
    assert report.row_groups == 2


def test_the_sizes_of_columns_add_up() -> None:
    scan = scan_of(STRIPED)
    each = sum(scan.column_sizes([name]) for name in TABLE.schema.names)
    assert scan.column_sizes(TABLE.schema.names).tolist() == np.asarray(each).tolist()
    assert all(
        size * 4 == scan.group_bytes(group)
        for group, size in enumerate(scan.column_sizes(TABLE.schema.names).tolist())
    )


def test_a_small_file_is_read_once() -> None:
    report = ReadReport()
    data = written(TABLE.slice(0, 100))
    scan = scan_of(data, report)
    table = scan.read(None, ["text"], report=report)
    assert table.equals(TABLE.select(["text"]).slice(0, 100))
    assert (report.requests, report.bytes_read) == (1, len(data))


def test_a_footer_longer_than_the_first_read_takes_another() -> None:
    names = [f"{'name' * 20} {column}" for column in range(1500)]
    table = pa.table([pa.array([column, None]) for column in range(1500)], names)
    data = written(table, compression="uncompressed")
    report = ReadReport()
    scan = scan_of(data, report)
    assert report.requests == 3  # the end of the file, all of the footer, that of the stripe
    chosen = [names[1400], names[3]]
    assert scan.read(None, chosen).equals(table.select(chosen))


def test_files_of_a_storage_are_opened_together(tmp_path: Path) -> None:
    for file in range(3):
        (tmp_path / f"{file}.orc").write_bytes(written(rows(file * 10, file * 10 + 10)))
    storage = Storage.open(str(tmp_path))
    sizes = [(tmp_path / f"{file}.orc").stat().st_size for file in range(3)]
    sources = [storage.source(f"{file}.orc", sizes[file]) for file in range(3)]
    scans = open_orc_scans(sources, read_ranges=storage.read_ranges)
    tables = [scan.read(None, ["id"], read_ranges=storage.read_ranges) for scan in scans]
    assert pa.concat_tables(tables).column(0).to_pylist() == list(range(30))


@pytest.mark.parametrize(
    ("arrow_type", "expected"),
    [
        (pa.timestamp("us"), pa.timestamp("ns")),
        (pa.timestamp("us", "Europe/Warsaw"), pa.timestamp("ns", "UTC")),
        (pa.date32(), pa.date32()),
        (pa.int8(), pa.int8()),
        (pa.bool_(), pa.bool_()),
        (pa.decimal128(38, 10), pa.decimal128(38, 10)),
        (pa.binary(4), pa.binary()),
        (pa.large_string(), pa.string()),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_types_are_those_of_arrow(arrow_type: Any, expected: Any) -> None:
    values = pa.array([None, None], arrow_type)
    table = scan_of(written(pa.table({"a": values}))).read()
    assert table.schema.field("a").type == expected
    assert table.column("a").null_count == 2


@pytest.mark.parametrize("year", [1, 1677, 2263, 9999])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_moments_that_nanoseconds_do_not_reach_are_refused(year: int, zone: str | None) -> None:
    zoned = datetime.UTC if zone else None
    moment = datetime.datetime(year, 1, 1, tzinfo=zoned)
    table = pa.table({"id": [1], "at": pa.array([[moment]], pa.list_(pa.timestamp("us", zone)))})
    scan = scan_of(written(table))
    with pytest.raises(
        UnsupportedError, match=r"a\.orc: column at: timestamps outside of the years"
    ):
        scan.read()
    assert scan.read(None, ["id"]).to_pydict() == {"id": [1]}


@pytest.mark.parametrize("year", [1678, 1969, 2024, 2261])
def test_moments_that_nanoseconds_reach_are_read(year: int) -> None:
    moment = datetime.datetime(year, 3, 4, 5, 6, 7, 89)
    table = pa.table({"at": pa.array([moment], pa.timestamp("us"))})
    moments = scan_of(written(table)).read().column("at")
    assert moments.cast(pa.timestamp("us")).to_pylist() == [moment]


def test_names_with_dots_are_no_paths() -> None:
    table = pa.table({"s": [{"x": 1}], "s.x": [2], "a`b": [3]})
    scan = scan_of(written(table))
    assert scan.read(None, ["a`b", "s.x"]).to_pydict() == {"a`b": [3], "s.x": [2]}
    with pytest.raises(ColumnError, match=r"a\.orc: column s\.y: found no such column"):
        scan.read(None, ["s.y"])


def test_two_columns_of_one_name_are_an_error() -> None:
    scan = scan_of(written(pa.table([pa.array([1]), pa.array([2]), pa.array([3])], list("aba"))))
    with pytest.raises(ColumnError, match="column a: found 2 columns of this name"):
        scan.read(None, ["a"])
    assert scan.read(None, ["b"]).to_pydict() == {"b": [2]}


@pytest.mark.parametrize("group", [-1, 99])
def test_a_stripe_that_is_not_there_is_an_error(group: int) -> None:
    with pytest.raises(FormatError, match=rf"a\.orc: no such stripe: found {group}, expected"):
        scan_of(STRIPED).read([group])


def test_the_checksum_of_the_footer_tells_files_apart() -> None:
    first, other = written(rows(0, 10)), written(rows(10, 20))
    assert scan_of(first).footer_crc == scan_of(first).footer_crc != scan_of(other).footer_crc


@pytest.mark.parametrize("data", [b"", b"ORC", b"PAR1" * 100, b"ORC" + bytes(100)])
def test_not_an_orc_file_is_an_error(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"^a\.orc: "):
        scan_of(data)


SMALL = pa.table(
    {
        "id": range(20),
        "text": [f"text {row}" for row in range(20)],
        "at": pa.array(range(20), pa.timestamp("us")),
        "price": pa.array([row if row % 2 else None for row in range(20)]).cast(
            pa.decimal128(20, 1)
        ),
    }
)


@pytest.mark.parametrize("codec", CODECS)
def test_a_truncated_file_is_an_error(codec: str) -> None:
    for damage in truncations(written(SMALL, compression=codec)):
        with pytest.raises(AlcidError, match=r"^a\.orc: "):
            scan_of(damage.data).read()


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_footer_is_an_error_or_does_no_harm(codec: str) -> None:
    data = written(SMALL, compression=codec)
    (stripe,) = scan_of(data)._footer.stripes
    errors: list[str] = []
    for damage in flips(data[stripe.footer_offset :]):
        try:
            table = scan_of(data[: stripe.footer_offset] + damage.data).read()
        except AlcidError as error:
            errors.append(str(error))
        else:
            assert table.num_rows == 20
    assert len(errors) > 100
    assert all(error.startswith("a.orc: ") for error in errors)


def test_a_decimal_with_too_many_digits_is_an_error() -> None:
    data = written(SMALL, compression="uncompressed")
    # The type of the last column: kind 14, no length, 20 digits, scale 1.
    digits = bytes.fromhex("08 0e 20 00 28 14 30 01")
    assert data.count(digits) == 1
    with pytest.raises(FormatError, match=r"a\.orc: bad ORC decimal: found 39 digits, scale 1"):
        scan_of(data.replace(digits, bytes.fromhex("08 0e 20 00 28 27 30 01")))
