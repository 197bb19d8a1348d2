from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from alcid import UnsupportedError
from alcid.index.bundle.statistics import ColumnStatistics, statistics_array, statistics_type
from alcid.tables.paimon.files import bounds_of
from alcid.tables.paimon.metadata.statistics import (
    EMPTY,
    FULL,
    NO_STATS,
    RowStats,
    StatsMode,
    collect,
    pack_rows,
)
from alcid.testing.strategies import columns
from alcid.types import DataType
from tests.properties.kit import TYPES

INT, BIGINT, STRING = DataType("INT"), DataType("BIGINT"), DataType.parse("STRING")
DOUBLE = DataType("DOUBLE")
LAST = 2**63 - 1
CUT = {"min_exact": False, "max_exact": False}


def is_kept_whole(data_type: DataType) -> bool:
    """Whether bounds are read unchanged: not if a row stores less, or may have stored less."""
    most = {"TIME": 3, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}
    return data_type.precision <= most.get(data_type.root, data_type.precision)


def stats_of(least: Any, most: Any, data_type: DataType, nulls: int | None = 0) -> RowStats:
    return packed(pa.array([least, most], data_type.to_arrow()), data_type, nulls)


def packed(bounds: pa.Array, data_type: DataType, nulls: int | None = 0) -> RowStats:
    minimum, maximum = pack_rows([bounds], [data_type])
    return RowStats(minimum, maximum, (nulls,))


def stats_row(least: Any, most: Any, nulls: int | None = 0, **changes: Any) -> dict[str, Any]:
    exact = {"min_exact": True, "max_exact": True, "has_nan": False}
    return {"min": least, "max": most, "nulls": nulls, **exact, **changes}


def ask(stats: list[RowStats | None], data_type: DataType, rows: int = 10) -> list[Any]:
    values = bounds_of(stats, 0, [data_type], np.full(len(stats), rows))
    values.validate(full=True)
    assert values.type == statistics_type(data_type)
    return values.to_pylist()  # type: ignore[no-any-return]


def test_bounds_of_many_files() -> None:
    stats = [
        stats_of(-3, 7, INT, 2),
        None,
        stats_of(None, None, INT, 10),
        stats_of(5, 5, INT, None),
    ]
    assert ask(stats, INT) == [
        stats_row(-3, 7, 2),
        None,
        stats_row(None, None, 10),
        stats_row(5, 5, None),
    ]
    assert ask([], INT) == []


@pytest.mark.parametrize("text", ["STRING", "CHAR(3)", "BYTES", "BINARY(3)"])
def test_bounds_of_text_and_bytes_may_have_been_cut(text: str) -> None:
    data_type = DataType.parse(text)
    stats = stats_of(b"abc", b"abd", data_type)
    assert ask([stats], data_type) == [stats_row(b"abc", b"abd", min_exact=False, max_exact=False)]


def test_bounds_that_are_no_text_are_bytes_all_the_same() -> None:
    stats = replace(
        stats_of("a", "b", STRING), maximum=pack_rows([pa.array([b"\xff"])], [STRING])[0]
    )
    assert ask([stats], STRING) == [stats_row(b"a", b"\xff", min_exact=False, max_exact=False)]


def test_other_columns_do_not_matter() -> None:
    types = [INT, DataType.parse("ARRAY<INT>"), STRING, DataType.parse("BINARY(2)")]
    table = pa.table({"a": [1], "b": [[1]], "c": ["x"], "d": [b"12"]})
    table = table.set_column(0, "a", pa.array([1], pa.int32()))
    stats = collect(table, types, [FULL] * 4)
    rows = np.array([1])
    assert bounds_of([stats], 0, types, rows).to_pylist() == [stats_row(1, 1)]
    assert bounds_of([stats], 1, types, rows).to_pylist() == [stats_row(None, None)]
    assert bounds_of([stats], 1, types, rows).type == statistics_type(types[1])
    assert bounds_of([stats], 2, types, rows).to_pylist() == [stats_row(b"x", b"x", **CUT)]


# -- floats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["FLOAT", "DOUBLE"])
def test_zeros_are_put_on_the_outer_side(text: str) -> None:
    data_type = DataType(text)
    (bounds,) = ask([stats_of(0.0, -0.0, data_type)], data_type)
    assert bounds == stats_row(0.0, 0.0, has_nan=None)
    assert (math.copysign(1, bounds["min"]), math.copysign(1, bounds["max"])) == (-1, 1)


@pytest.mark.parametrize(
    ("least", "most"), [(1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan), (None, math.nan)]
)
def test_nan_is_no_bound(least: float | None, most: float) -> None:
    assert ask([stats_of(least, most, DOUBLE, 3)], DOUBLE) == [
        stats_row(None, None, 3, has_nan=None)
    ]


def test_whether_there_is_a_nan_is_not_known() -> None:
    assert ask([stats_of(1.0, math.inf, DOUBLE)], DOUBLE) == [
        stats_row(1.0, math.inf, has_nan=None)
    ]


# -- what is not known -------------------------------------------------------------------------

GOOD = stats_of(3, 7, BIGINT)


@pytest.mark.parametrize(
    "stats",
    [
        replace(GOOD, minimum=GOOD.maximum, maximum=GOOD.minimum),
        replace(GOOD, minimum=b""),
        replace(GOOD, maximum=GOOD.maximum[:-1]),
        replace(GOOD, maximum=EMPTY),
        replace(GOOD, null_counts=()),
        replace(GOOD, null_counts=(0, 0)),
        replace(GOOD, null_counts=(11,)),
        replace(GOOD, null_counts=(10,)),
        NO_STATS,
    ],
    ids=[
        *(
            "crossed",
            "no minimum",
            "cut off",
            "no columns",
            "no null counts",
            "too many null counts",
        ),
        *("more nulls than rows", "a value in no row", "of no columns"),
    ],
)
def test_statistics_that_contradict_themselves_are_not_used(stats: RowStats) -> None:
    assert ask([GOOD, stats, GOOD], BIGINT) == [stats_row(3, 7), None, stats_row(3, 7)]


@pytest.mark.parametrize("counts", [None, (None,), (-1,)])
def test_null_counts_that_are_not_known(counts: tuple[int | None, ...] | None) -> None:
    assert ask([replace(GOOD, null_counts=counts)], BIGINT) == [stats_row(3, 7, None)]


def test_a_moment_beyond_arrows_is_not_known() -> None:
    data_type, coarse = DataType.parse("TIMESTAMP(9)"), DataType.parse("TIMESTAMP(6)")
    far = pa.array([0, 10**17], pa.int64()).view(coarse.to_arrow())  # the year 5138
    stats = packed(far, coarse)
    assert ask([stats], data_type) == [None]
    assert ask([stats], coarse)[0]["max"] is not None


def test_any_flipped_bit_is_an_answer() -> None:
    types = [BIGINT, STRING, DataType.parse("DECIMAL(30, 2)"), DataType.parse("TIMESTAMP(6)")]
    arrays = [
        pa.array([3, 7]),
        pa.array(["text of some length", "text of some width"]),
        pa.array([3, 7]).cast(pa.decimal128(21, 0)).cast(pa.decimal128(30, 2)),
        pa.array([3, 7]).cast(pa.timestamp("us")),
    ]
    low, high = pack_rows(arrays, types)
    damaged = []
    for bit in range(8 * len(low)):
        flipped = bytearray(low)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(RowStats(bytes(flipped), high, (0,) * 4))
    damaged += [RowStats(low[:length], high, (0,) * 4) for length in range(len(low))]
    for column in range(4):
        values = bounds_of(damaged, column, types, np.full(len(damaged), 10))
        values.validate(full=True)
        assert (
            pa.compute.is_null(values)[:32].to_pylist() == [True] * 32
        )  # another number of columns


# -- moments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["TIMESTAMP(7)", "TIMESTAMP_LTZ(9)"])
def test_nanoseconds_may_be_missing_from_the_greatest_value(text: str) -> None:
    data_type = DataType.parse(text)
    for most, expected in ((5_000, 5_999), (5_001, 5_001), (-1_000, -1), (LAST - 807, LAST)):
        ticks = pa.array([-2_000, most], pa.int64()).view(data_type.to_arrow())
        stats = packed(ticks, data_type)
        values = bounds_of([stats, None], 0, [data_type], np.array([10, 10]))
        assert values.field("min").view(pa.int64()).to_pylist() == [-2_000, None]
        assert values.field("max").view(pa.int64()).to_pylist() == [expected, None]
        assert values.field("min_exact")[0].as_py() is True
        assert values.field("max_exact")[0].as_py() is False


# -- as our own statistics ---------------------------------------------------------------------


@given(st.data(), st.sampled_from([kind for kind in TYPES if is_kept_whole(kind)]))
def test_what_is_collected_is_what_is_read(data: st.DataObject, data_type: DataType) -> None:
    samples = data.draw(st.lists(columns(data_type, large=False), max_size=4))
    tables = [pa.table({"a": sample.to_arrow()}) for sample in samples]
    try:
        stats = [collect(table, [data_type], [FULL]) for table in tables]
    except UnsupportedError:  # seconds with too many milliseconds
        reject()
    bounds = bounds_of(stats, 0, [data_type], np.array([len(table) for table in tables], np.int64))
    expected = [as_in_manifests(ColumnStatistics.of(table["a"], data_type)) for table in tables]
    if data_type.root in ("CHAR", "VARCHAR"):  # whole, whereas a bundle truncates them
        whole = [stats_row(each.minimum, each.maximum, each.nulls, **CUT) for each in expected]
        assert bounds.to_pylist() == whole
    else:
        assert bounds.equals(statistics_array("a", data_type, expected))


@pytest.mark.parametrize("text", ["x" * 200, "\U0001f427" * 30, "\0" * 65])
def test_long_text_is_read_whole(text: str) -> None:
    stats = collect(pa.table({"a": [text, text + "y"]}), [STRING], [FULL])
    assert ask([stats], STRING) == [stats_row(text.encode(), f"{text}y".encode(), **CUT)]


def as_in_manifests(statistics: ColumnStatistics) -> ColumnStatistics:
    match statistics.data_type.root:
        case "BINARY" | "VARBINARY":
            statistics = replace(statistics, minimum=None, maximum=None)
        case "FLOAT" | "DOUBLE" if statistics.has_nan:
            return replace(statistics, minimum=None, maximum=None, has_nan=None)
        case "FLOAT" | "DOUBLE":
            return replace(statistics, has_nan=None)
    exact = statistics.data_type.root not in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
    return replace(statistics, minimum_exact=exact, maximum_exact=exact)


def test_the_default_of_java_is_read_as_bounds() -> None:
    table = pa.table({"a": ["a text of more than 16 characters", "and another"]})
    stats = collect(table, [STRING], [StatsMode.parse("truncate(16)")])
    assert ask([stats], STRING) == [stats_row(b"a text of more t", b"and another", **CUT)]
