from __future__ import annotations

import math
import struct
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.index.bundle.statistics import statistics_type
from alcid.tables.iceberg.bounds import column_metrics
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Field
from alcid.types import DataType

INT, BIGINT, DOUBLE = DataType("INT"), DataType("BIGINT"), DataType("DOUBLE")
STRING = DataType.parse("STRING")
NAN = float("nan")
ID = 7
LAST = 2**31 - 1


def metrics(data_type: DataType, *files: dict[str, Any]) -> list[Any]:
    """The statistics of column 7 for files with these metrics; there are others around it."""

    def around(file: dict[str, Any], name: str, other: Any) -> Any:
        if name not in file:
            return [(ID - 1, other), (ID + 1, other)]
        return None if file[name] is None else [(ID - 1, other), (ID, file[name]), (ID + 1, other)]

    counts = pa.map_(pa.int32(), pa.int64())
    bounds = pa.map_(pa.int32(), pa.binary())
    count = len(files)
    table = pa.table(
        {
            "sequence_number": pa.array([1] * count, pa.int64()),
            "content": pa.array([0] * count, pa.int32()),
            "file_path": pa.array([f"{number:05}" for number in range(count)], pa.string()),
            "file_format": pa.array(["PARQUET"] * count, pa.string()),
            "spec_id": pa.array([0] * count, pa.int32()),
            "record_count": pa.array([file.get("rows", 10) for file in files], pa.int64()),
            "file_size_in_bytes": pa.array([1] * count, pa.int64()),
            **{
                name: pa.array([around(file, short, 5) for file in files], counts)
                for short, name in (
                    ("values", "value_counts"),
                    ("nulls", "null_value_counts"),
                    ("nans", "nan_value_counts"),
                )
            },
            "lower_bounds": pa.array([around(file, "least", b"x") for file in files], bounds),
            "upper_bounds": pa.array([around(file, "most", b"x") for file in files], bounds),
        }
    )
    statistics = column_metrics(Entries.of(table).data, Field(ID, "a", "", data_type), data_type)
    statistics.validate(full=True)
    assert statistics.type == statistics_type(data_type)
    return statistics.to_pylist()  # type: ignore[no-any-return]


def stats_row(least: Any, most: Any, nulls: int | None = 0, **changes: Any) -> dict[str, Any]:
    exact = {"min_exact": True, "max_exact": True, "has_nan": False}
    return {"min": least, "max": most, "nulls": nulls, **exact, **changes}


def longs(least: int, most: int) -> dict[str, bytes]:
    return {"least": struct.pack("<q", least), "most": struct.pack("<q", most)}


def doubles(least: float, most: float) -> dict[str, bytes]:
    return {"least": struct.pack("<d", least), "most": struct.pack("<d", most)}


WHOLE = {"values": 10, "nulls": 0}


def test_bounds_and_nulls_of_many_files() -> None:
    assert metrics(
        BIGINT,
        WHOLE | longs(-3, 7),
        WHOLE | longs(5, 5) | {"nulls": 4},
        WHOLE | {"nulls": 10},
        {},
        dict.fromkeys(("values", "nulls", "nans", "least", "most")),
        {"values": 10, "nulls": 3},
        {"least": struct.pack("<q", 2)},
    ) == [
        stats_row(-3, 7),
        stats_row(5, 5, 4),
        stats_row(None, None, 10),
        stats_row(None, None, None),
        stats_row(None, None, None),
        stats_row(None, None, 3),
        stats_row(2, None, None),
    ]


def test_no_files() -> None:
    assert metrics(BIGINT) == []


def test_a_field_is_whatever_has_an_id() -> None:
    table = pa.table({"record_count": pa.array([1])})
    for name in ("value_counts", "null_value_counts", "nan_value_counts"):
        table = table.append_column(name, pa.array([[(3, 1)]], pa.map_(pa.int32(), pa.int64())))
    for name in ("lower_bounds", "upper_bounds"):
        table = table.append_column(name, pa.nulls(1, pa.map_(pa.int32(), pa.binary())))
    statistics = column_metrics(table, SimpleNamespace(id=3), INT)
    assert statistics.to_pylist() == [stats_row(None, None, 1)]


def test_bounds_of_before_an_int_became_a_long() -> None:
    narrow = {"least": struct.pack("<i", -3), "most": struct.pack("<i", 7)}
    assert metrics(BIGINT, WHOLE | narrow, WHOLE | longs(1, 2)) == [
        stats_row(-3, 7),
        stats_row(1, 2),
    ]


def test_text_is_never_exact() -> None:
    statistics = metrics(STRING, WHOLE | {"least": b"a text of more t", "most": b"b"})
    assert statistics == [stats_row(b"a text of more t", b"b", min_exact=False, max_exact=False)]


@pytest.mark.parametrize(
    ("data_type", "stored", "expected"),
    [
        (DataType("BOOLEAN"), (b"\x00", b"\x01"), (False, True)),
        (INT, (struct.pack("<i", 1), struct.pack("<i", LAST)), (1, LAST)),
        (DataType("FLOAT"), (struct.pack("<f", 0.5), struct.pack("<f", 1.5)), (0.5, 1.5)),
        (DataType("DECIMAL", 5, 2), (b"\xff", b"\x05\x8c"), (Decimal("-0.01"), Decimal("14.20"))),
    ],
    ids=str,
)
def test_types(data_type: DataType, stored: tuple[bytes, bytes], expected: Any) -> None:
    file = WHOLE | {"least": stored[0], "most": stored[1], "nans": 0}
    assert metrics(data_type, file) == [stats_row(*expected)]


def test_a_nested_column_has_no_bounds() -> None:
    file = WHOLE | {"least": b"x", "most": b"y"}
    assert metrics(DataType.parse("ARRAY<INT>"), file) == [
        stats_row(None, None, min_exact=True, max_exact=True)
    ]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (longs(3, 2), None),  # crossed
        (longs(1, 2) | {"nulls": 10}, None),  # a bound that is not a value
        (longs(1, 2) | {"nulls": 11}, None),  # more nulls than rows
        (longs(1, 2) | {"nulls": -1}, stats_row(1, 2, None)),
        (longs(1, 2) | {"values": 9}, stats_row(1, 2, None)),
        (longs(1, 2) | {"values": 9, "nulls": 10}, stats_row(1, 2, None)),
        (longs(1, 2) | {"least": b"\x01"}, stats_row(None, 2)),
        (longs(1, 2) | {"rows": 0, "values": 0}, None),  # a bound for no rows
    ],
    ids=str,
)
def test_contradictions_are_unknown(file: dict[str, Any], expected: Any) -> None:
    assert metrics(BIGINT, WHOLE | file) == [expected]


def test_floats_have_zeros_on_the_outer_side() -> None:
    (statistics,) = metrics(DOUBLE, WHOLE | {"nans": 0} | doubles(0.0, -0.0))
    assert math.copysign(1, statistics["min"]) == -1
    assert math.copysign(1, statistics["max"]) == 1


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (doubles(1.0, 2.0) | {"nans": 0}, stats_row(1.0, 2.0)),
        (doubles(1.0, 2.0) | {"nans": 3}, stats_row(1.0, 2.0, has_nan=True)),
        (doubles(1.0, 2.0), stats_row(1.0, 2.0, has_nan=None)),
        (doubles(1.0, 2.0) | {"nans": -1}, stats_row(1.0, 2.0, has_nan=None)),
        (doubles(1.0, NAN) | {"nans": 0}, stats_row(None, None, has_nan=None)),
        (doubles(NAN, NAN) | {"nans": 10}, stats_row(None, None, has_nan=None)),
        ({"nans": 10}, stats_row(None, None, has_nan=True)),
    ],
    ids=str,
)
def test_nan(file: dict[str, Any], expected: Any) -> None:
    assert metrics(DOUBLE, WHOLE | file) == [expected]


@given(st.lists(st.lists(st.none() | st.floats(width=32), min_size=1), max_size=5))
def test_what_is_counted_is_what_is_found(
    files: list[list[float | None]],
) -> None:
    described, expected = [], []
    for rows in files:
        numbers = [row for row in rows if row is not None and not math.isnan(row)]
        nans = sum(row is not None and math.isnan(row) for row in rows)
        nulls = rows.count(None)
        file = {"rows": len(rows), "values": len(rows), "nulls": nulls, "nans": nans}
        least, most = min(numbers, default=None), max(numbers, default=None)
        bounds = {} if least is None or most is None else doubles(least, most)
        described.append(file | bounds)
        expected.append(stats_row(least, most, nulls, has_nan=nans > 0))
    assert metrics(DOUBLE, *described) == expected
