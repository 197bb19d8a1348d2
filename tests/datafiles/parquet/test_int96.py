"""INT96 is read exactly, or refused with the column's name."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.datafiles.parquet import (
    FileRows,
    open_scan,
    read_many,
    read_rows,
)
from alcid.datafiles.parquet.decoding import Int96Unit, int96_as
from alcid.errors import UnsupportedError
from tests.datafiles.parquet.kit import PAGED, counted, encrypted, int96, int96_written, java_int96

DAY = 86_400 * 10**9
MOST = (1 << 63) - 1
NEGATIVE = [-1744877000, -1, -999, -1000, -DAY, -DAY - 1, -3 * DAY - 86_399_999_999_999, 0, 1, MOST]
"""Nanoseconds around 1970, which Java writes with a negative time of day."""

Read = Callable[[bytes], pa.Table]


def whole(data: bytes) -> pa.Table:
    return open_scan(counted(data)).read()


def by_pages(data: bytes) -> pa.Table:
    return read_rows(counted(data), np.arange(pq.read_metadata(io.BytesIO(data)).num_rows))


def ticks(table: pa.Table, name: str = "at") -> list[Any]:
    return table[name].cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def values(*raw: bytes | None) -> pa.Table:
    return pa.table({"at": pa.array(raw, pa.binary(12))})


READS = pytest.mark.parametrize("read", [whole, by_pages])
PAGES = pytest.mark.parametrize("use_dictionary", [True, False])


@READS
@PAGES
def test_a_negative_time_of_day_is_that_much_before(read: Read, use_dictionary: bool) -> None:
    table = values(*map(java_int96, NEGATIVE), None)
    data = int96_written(table, use_dictionary=use_dictionary, **PAGED)
    arrow = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="us")
    assert arrow.schema.column(0).physical_type == "INT96"
    assert arrow.read()["at"][0].as_py() == datetime(
        2554, 7, 21, 23, 34, 31, 964674
    )  # Arrow is wrong here
    with int96_as("ns"):
        read_table = read(data)
    assert read_table.schema.field("at").type == pa.timestamp("ns")
    assert ticks(read_table) == [*NEGATIVE, None]
    microseconds = [int(nanos / 1000) for nanos in NEGATIVE[:-1]]  # truncated as in Spark
    assert microseconds[:4] == [-1744877, 0, 0, -1]
    assert ticks(read(data)) == [*microseconds, MOST // 1000, None]


@READS
@pytest.mark.parametrize(
    ("day", "nanos", "expected"),
    [
        (106_751, MOST - 106_751 * DAY, MOST),
        (106_752, MOST - 106_752 * DAY, MOST),
        (-106_752, 106_752 * DAY - (1 << 63), -(1 << 63)),
        (-106_751, 106_751 * DAY - (1 << 63), -(1 << 63)),
        (106_751, MOST - 106_751 * DAY + 1, "2262-04-11"),
        (-106_752, 106_752 * DAY - (1 << 63) - 1, "1677-09-21"),
        (-106_751, 106_751 * DAY - (1 << 63) - 1, "1677-09-21"),
        (2_932_896, 0, "9999-12-31"),
        (-719_162, 0, "0001-01-01"),
        (-719_162, -1, "0000-12-31"),
    ],
)
def test_nanoseconds_end_where_an_int64_ends(
    read: Read, day: int, nanos: int, expected: int | str
) -> None:
    data = int96_written(values(int96(0, 5), None, int96(day, nanos)), **PAGED)
    with int96_as("ns"):
        if isinstance(expected, int):
            assert ticks(read(data)) == [5, None, expected]
            return
        with pytest.raises(UnsupportedError) as caught:
            read(data)
    assert str(caught.value) == (
        f"a.parquet: column at: found INT96 of {expected}, "
        "expected the years 1677 to 2262, which timestamp[ns] reaches"
    )


@READS
def test_microseconds_reach_all_years_of_spark_and_are_never_turned_over(read: Read) -> None:
    first, last = -719_162, 2_932_896  # of the years 1 and 9999
    data = int96_written(values(int96(first, 0), int96(last, DAY - 1)))
    assert [str(at) for at in read(data)["at"].to_pylist()] == [
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999999",
    ]
    with pytest.raises(
        UnsupportedError, match=r"^a.parquet: column at: found INT96 of 294247-01-10"
    ):
        read(int96_written(values(int96(106_751_991, DAY - 1))))


def test_only_rows_that_are_asked_for_must_fit() -> None:
    data = int96_written(values(int96(0, 5), int96(2_932_896, 0), int96(0, 7)), **PAGED)
    with int96_as("ns"):
        assert ticks(read_rows(counted(data), [0, 2])) == [5, 7]
        with pytest.raises(UnsupportedError, match="column at: found INT96 of 9999-12-31"):
            read_rows(counted(data), [1])


def test_the_file_that_does_not_fit_is_named() -> None:
    fits, does_not = (int96_written(values(int96(day, 0))) for day in (0, 2_932_896))
    files = [FileRows(counted(fits, "a.parquet")), FileRows(counted(does_not, "b.parquet"))]
    with (
        int96_as("ns"),
        pytest.raises(UnsupportedError, match=r"^b.parquet: column at: found INT96"),
    ):
        read_many(files, ["at"])


NESTED = pa.table(
    {
        "id": pa.array([1, 2, 3, 4]),
        "list": pa.array(
            [[java_int96(-7), None], None, [], [java_int96(8)]], pa.list_(pa.binary(12))
        ),
        "struct": pa.array(
            [
                {"a": 1, "at": java_int96(-7)},
                None,
                {"a": 2, "at": None},
                {"a": 3, "at": java_int96(9)},
            ],
            pa.struct([("a", pa.int64()), ("at", pa.binary(12))]),
        ),
        "map": pa.array(
            [[(b"k", [java_int96(-1)])], None, [], [(b"l", None), (b"m", [java_int96(3), None])]],
            pa.map_(pa.binary(), pa.list_(pa.binary(12))),
        ),
        "key": pa.array(
            [[(java_int96(-5), 1)], [], None, [(java_int96(6), None)]],
            pa.map_(pa.binary(12), pa.int8()),
        ),
        "at": pa.array([java_int96(-7), None, None, java_int96(8)], pa.binary(12)),
    }
)
NANOS = pa.timestamp("ns")
EXPECTED = pa.table(
    {
        "id": pa.array([1, 2, 3, 4]),
        "list": pa.array([[-7, None], None, [], [8]], pa.list_(NANOS)),
        "struct": pa.array(
            [{"a": 1, "at": -7}, None, {"a": 2, "at": None}, {"a": 3, "at": 9}],
            pa.struct([("a", pa.int64()), ("at", NANOS)]),
        ),
        "map": pa.array(
            [[(b"k", [-1])], None, [], [(b"l", None), (b"m", [3, None])]],
            pa.map_(pa.binary(), pa.list_(NANOS)),
        ),
        "key": pa.array([[(-5, 1)], [], None, [(6, None)]], pa.map_(NANOS, pa.int8())),
        "at": pa.array([-7, None, None, 8], NANOS),
    }
)


@READS
@pytest.mark.parametrize("row_group_size", [1, 3, 4])
def test_int96_within_other_columns(read: Read, row_group_size: int) -> None:
    data = int96_written(NESTED, row_group_size=row_group_size)
    with int96_as("ns"):
        table = read(data)
        arrow = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="ns").read()
    table.validate(full=True)
    assert table.equals(arrow)  # whose nanoseconds are right here
    for name in EXPECTED.column_names:
        assert (
            table[name]
            .combine_chunks()
            .cast(EXPECTED.schema.field(name).type)
            .equals(EXPECTED[name].combine_chunks())
        )
    with int96_as("ns"):
        some = read_rows(counted(data), [1, 3], ["struct", "map", "list"])
    assert some.equals(arrow.take(pa.array([1, 3])).select(["struct", "map", "list"]))


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("store_schema", [True, False])
def test_types_of_arrow_around_int96_are_kept(unit: Int96Unit, store_schema: bool) -> None:
    at = pa.array(
        [datetime(1999, 12, 31, 23, 59, 58), None, datetime(2020, 1, 1)], pa.timestamp("us", "UTC")
    )
    table = pa.table(
        {
            "large": pa.array([[1], None, [2, 3]], pa.large_list(pa.timestamp("ns"))),
            "two": pa.array([[1, 2], [3, None], [5, 6]], pa.list_(pa.timestamp("ns"), 2)),
            "at": at,
            "again": at.cast(pa.timestamp("ns", "Asia/Tokyo")),
            "text": pa.array(["x", None, "y"], pa.large_string()),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, use_deprecated_int96_timestamps=True, store_schema=store_schema)
    data = file.getvalue()
    arrow = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit=unit).read()
    with int96_as(unit):
        for read in (whole(data), by_pages(data)):
            assert read.schema.equals(arrow.schema.remove_metadata(), check_metadata=True)
            assert read.equals(arrow)


def test_int96_next_to_an_encrypted_column() -> None:
    at = pa.array([datetime(2020, 1, 1), None], pa.timestamp("us"))
    table = pa.table({"at": at, "secret": [1, 2], "id": [3, 4]})
    data = encrypted(table, column_keys={"key": ["secret"]}, int96=True)
    assert open_scan(counted(data)).read(None, ["at", "id"]).to_pydict() == {
        "at": [datetime(2020, 1, 1), None],
        "id": [3, 4],
    }
