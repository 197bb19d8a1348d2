"""Statistics: bounds that hold in Spark's order, for every type."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError, UnsupportedError
from alcid.index.bundle import ColumnStatistics, FileEntry, FileTable
from alcid.index.bundle.files import CORE
from alcid.index.bundle.statistics import LONGEST_BOUND, statistics_array
from alcid.types import DataType
from tests.index.bundle.bundles import BIGINT, DOUBLE, STRING, stored_statistics


def stored(statistics: ColumnStatistics) -> dict[str, Any]:
    fields: dict[str, Any] = statistics_array("c", statistics.data_type, [statistics])[0].as_py()
    return fields


@given(st.lists(st.none() | st.floats()))
def test_bounds_of_floats_leave_nan_out_and_widen_zero(values: list[float | None]) -> None:
    bounds = stored(ColumnStatistics.of(pa.array(values, pa.float64())))
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    low, high = min(numbers, default=None), max(numbers, default=None)
    assert (bounds["min"], bounds["max"]) == (low, high)
    if low == 0:
        assert math.copysign(1, bounds["min"]) == -1
    if high == 0:
        assert math.copysign(1, bounds["max"]) == 1
    assert bounds["nulls"] == values.count(None)
    assert bounds["has_nan"] == any(value is not None and math.isnan(value) for value in values)


@given(st.lists(st.text(max_size=100) | st.binary(max_size=100).map(bytes.hex), min_size=1))
def test_bounds_of_text_hold_all_of_it(values: list[str]) -> None:
    statistics = ColumnStatistics.of(pa.array(values, pa.large_string()))
    bounds = stored(statistics)
    keys = sorted(value.encode() for value in values)
    assert len(bounds["min"]) <= LONGEST_BOUND
    assert bounds["min"] <= keys[0]
    assert bounds["max"] >= keys[-1]
    assert bounds["min_exact"] == (len(keys[0]) <= LONGEST_BOUND)
    assert bounds["max_exact"] == (len(keys[-1]) <= LONGEST_BOUND)
    assert repr(statistics_array("c", STRING, [statistics])[0]) == repr(
        stored_statistics(statistics)
    )


def test_long_text_is_cut_to_the_tightest_bounds() -> None:
    bytes_type = DataType.parse("BYTES")
    assert stored(ColumnStatistics(bytes_type, b"a" * 65, b"b" * 63 + b"\xff\xff"))["max"] == (
        b"b" * 62 + b"c"
    )
    bounds = stored(ColumnStatistics(bytes_type, b"\xff" * 64, b"\xff" * 65))
    assert (bounds["min"], bounds["min_exact"]) == (b"\xff" * 64, True)
    assert (bounds["max"], bounds["max_exact"]) == (None, False)


@pytest.mark.parametrize(
    ("array", "least", "greatest"),
    [
        (pa.array([True, False, None]), False, True),
        (pa.array([3, -3], pa.int8()), -3, 3),
        (pa.array([2**64 - 1, 0], pa.uint64()), Decimal(0), Decimal(2**64 - 1)),
        (pa.array([1.5, -2.0], pa.float32()), -2.0, 1.5),
        (pa.array(np.array([1.5, -2.0], np.float16)), -2.0, 1.5),
        (pa.array([date(2000, 1, 1)], pa.date64()), date(2000, 1, 1), date(2000, 1, 1)),
        (pa.array([Decimal("1.25"), Decimal("-7.50")]), Decimal("-7.50"), Decimal("1.25")),
        (pa.array([date(9999, 12, 31), date(1, 1, 1)]), date(1, 1, 1), date(9999, 12, 31)),
        (pa.array([time(1, 2), time(0)], pa.time32("s")), time(0), time(1, 2)),
        (pa.array([datetime(2000, 1, 1), None]), datetime(2000, 1, 1), datetime(2000, 1, 1)),
        (pa.array([b"abc", b"abd"], pa.binary(3)), b"abc", b"abd"),
        (pa.array(["é", "z"]).dictionary_encode(), b"z", "é".encode()),
        (pa.chunked_array([["b"], ["a"]], pa.string_view()), b"a", b"b"),
        (pa.array([None, None], pa.int32()), None, None),
        (pa.array([], pa.string()), None, None),
        (pa.array([[1], None]), None, None),
    ],
    ids=range(16),
)
def test_bounds_of_every_type(array: pa.Array, least: object, greatest: object) -> None:
    statistics = ColumnStatistics.of(array)
    bounds = stored(statistics)
    assert (bounds["min"], bounds["max"]) == (least, greatest)
    assert (bounds["min_exact"], bounds["max_exact"], bounds["has_nan"]) == (True, True, False)
    assert bounds["nulls"] == array.null_count


@pytest.mark.parametrize(
    "array",
    [
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None]), pa.array([7, None])),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 4]), pa.array([7, None])),
    ],
    ids=["dictionary", "runs"],
)
def test_nulls_of_encoded_columns_are_counted(array: pa.Array) -> None:
    bounds = stored(ColumnStatistics.of(array))
    assert (bounds["min"], bounds["max"], bounds["nulls"]) == (7, 7, 3)


def test_nanoseconds_are_kept() -> None:
    moments = pa.array([1_700_000_000_000_000_001, 5], pa.timestamp("ns", "Europe/Berlin"))
    statistics = ColumnStatistics.of(moments)
    (bounds,) = statistics_array("c", statistics.data_type, [statistics])
    assert (bounds["min"].value, bounds["max"].value) == (5, 1_700_000_000_000_000_001)
    assert str(bounds["max"].type) == "timestamp[ns, tz=UTC]"


@pytest.mark.parametrize(
    ("statistics", "problem"),
    [
        (ColumnStatistics(DOUBLE, math.nan, 1.0), "nan is no bound"),
        (ColumnStatistics(DataType("FLOAT"), 0.1, 1.0), "0.1 is no bound"),
        (ColumnStatistics(BIGINT, 5, 4), "a least value above the greatest"),
        (ColumnStatistics(BIGINT, 2**63, None), "statistics of column 'c', BIGINT: "),
        (ColumnStatistics(BIGINT, "x", None), "statistics of column 'c', BIGINT: "),
        (ColumnStatistics(STRING, 5, None), "statistics of column 'c', STRING: "),
    ],
    ids=range(6),
)
def test_impossible_bounds_are_refused(statistics: ColumnStatistics, problem: str) -> None:
    with pytest.raises(UnsupportedError, match=problem):
        stored(statistics)


def test_a_column_of_two_types_has_two_groups() -> None:
    entries = [
        FileEntry("a", 1, "1", 9, statistics={"c": ColumnStatistics(BIGINT, 1, 2, 0)}),
        FileEntry("b", 1, "1", 9, statistics={"c": ColumnStatistics(STRING, "x", "y", 3)}),
        FileEntry("c", 1, "1", 9),
    ]
    table = FileTable.from_bytes(FileTable.of(entries).to_bytes())
    columns = [(s.column, s.data_type, s.values.is_valid().to_pylist()) for s in table.statistics]
    assert columns == [("c", BIGINT, [True, False, False]), ("c", STRING, [False, True, False])]


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([FileEntry("a", 1, "1", 1), FileEntry("a", 2, "2", 2)], "a path twice"),
        ([FileEntry("a", -1, "1", 1)], "a negative size"),
        ([FileEntry("a", 1, "1", -1)], "a negative size or number of rows"),
        (
            [FileEntry("a", 1, "1", 1, statistics={"c": ColumnStatistics(BIGINT, nulls=2)})],
            "a: column 'c': 2 nulls in 1 rows",
        ),
    ],
    ids=range(4),
)
def test_files_that_cannot_be_are_refused(entries: list[FileEntry], problem: str) -> None:
    with pytest.raises(UnsupportedError, match=problem):
        FileTable.of(entries)


def stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


ONE = FileTable.of([FileEntry("a", 1, "1", 9, 5, {"c": ColumnStatistics(BIGINT, 1, 2, 0)})]).table


def test_columns_and_types_of_a_later_version_are_left_out() -> None:
    later = pa.field("later", pa.int8())
    unknown = pa.field("d", pa.int8(), metadata={"column": "d", "type": "GEOMETRY"})
    table = ONE.append_column(later, [pa.array([1], pa.int8())]).append_column(
        unknown, [pa.array([1], pa.int8())]
    )
    file_table = FileTable.from_bytes(stream(table))
    assert file_table.table.equals(ONE)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (ONE.drop_columns(["size"]), "other columns at offset 0: found path string, version"),
        (
            ONE.rename_columns(["p", *ONE.column_names[1:]]),
            "other columns at offset 0: found p string",
        ),
        (
            ONE.set_column(1, "size", [pa.array([1], pa.int32())]),
            "other columns at .*, size int32,",
        ),
        (ONE.set_column(1, CORE.field(1), [pa.array([-1], pa.int64())]), "a negative size"),
        (
            ONE.set_column(2, pa.field("version", pa.string()), [pa.array([None], pa.string())]),
            "a file without path, size, version or rows",
        ),
        (pa.concat_tables([ONE, ONE]), "a path twice"),
        (
            ONE.set_column(
                5,
                pa.field("c", pa.int8(), metadata={"column": "c", "type": "INT"}),
                [pa.array([1], pa.int8())],
            ),
            "statistics of 'c' at offset 0: found int8",
        ),
    ],
    ids=range(7),
)
def test_another_table_is_refused(table: pa.Table, problem: str) -> None:
    with pytest.raises(FormatError, match=f"x: table of files: {problem}"):
        FileTable.from_bytes(stream(table), name="x")


def test_arrays_of_an_empty_table() -> None:
    table = FileTable.from_bytes(FileTable.of([]).to_bytes())
    assert len(table) == len(table.statistics) == 0
    assert table.sizes.dtype == np.int64
