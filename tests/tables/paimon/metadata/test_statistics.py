from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import ColumnError, OptionError, UnsupportedError
from alcid.tables.paimon.metadata.statistics import (
    EMPTY,
    FULL,
    NO_STATS,
    RowStats,
    StatsMode,
    collect,
    unpack_rows,
)
from alcid.types import DataType
from tests.properties.kit import arrow_forms

STRING = DataType.parse("STRING")
LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", StatsMode("none")),
        ("counts", StatsMode("counts")),
        ("FULL", FULL),
        ("truncate(16)", StatsMode("truncate", 16)),
        ("Truncate(2147483647)", StatsMode("truncate", 2**31 - 1)),
    ],
)
def test_modes(text: str, mode: StatsMode) -> None:
    assert StatsMode.parse(text) == mode


@pytest.mark.parametrize(
    "text",
    [
        *("", "truncate", "truncate()", "truncate(0)", "truncate(-1)", "truncate(2147483648)"),
        *("full ", "truncate(16) ", "truncate(٣)", "bounds"),
    ],
)
def test_a_mode_that_does_not_exist(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        StatsMode.parse(text)
    expected = f"found {text!r}, expected none, counts, truncate(<length>) or full"
    assert str(caught.value) == expected


def bounds(stats: RowStats, types: list[DataType]) -> list[list[Any]]:
    """For each column the minimum and the maximum."""
    return [column.to_pylist() for column in unpack_rows([stats.minimum, stats.maximum], types)]


def column_bounds(array: pa.Array, data_type: DataType, mode: StatsMode = FULL) -> list[Any]:
    stats = collect(pa.table({"a": array}), [data_type], [mode])
    return bounds(stats, [data_type])[0]


def test_the_bytes_of_statistics() -> None:
    table = pa.table(
        {
            "a": pa.array([3, None, -1], pa.int32()),
            "b": [[1], None, None],
            "c": [None, "a longer text", "fig"],
        }
    )
    types = [DataType("INT"), DataType.parse("ARRAY<BIGINT>"), STRING]
    stats = collect(table, types, [FULL] * 3)
    head = "00000003 00020000 00000000"
    assert stats == RowStats(
        bytes.fromhex(f"{head} ffffffff00000000 0000000000000000 0d00000020000000")
        + b"a longer text".ljust(16, b"\0"),
        bytes.fromhex(f"{head} 0300000000000000 0000000000000000 6669670000000083"),
        (1, 2, 1),
    )


def test_what_each_mode_keeps() -> None:
    text = pa.array(["pear and fig", None])
    table = pa.table({"none": text, "counts": text, "truncate": text, "full": text})
    modes = [StatsMode.parse(mode) for mode in ("none", "counts", "truncate(4)", "full")]
    stats = collect(table, [STRING] * 4, modes)
    assert stats.null_counts == (None, 1, 1, 1)
    assert bounds(stats, [STRING] * 4) == [
        [None, None],
        [None, None],
        ["pear", "peas"],
        ["pear and fig", "pear and fig"],
    ]


def test_no_columns_and_no_rows() -> None:
    assert collect(pa.table({"a": [1]}).select([]), [], []) == NO_STATS
    assert RowStats(EMPTY, EMPTY, ()) == NO_STATS
    types = [DataType("INT"), STRING, DataType("DOUBLE")]
    empty = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())]).empty_table()
    stats = collect(empty, types, [FULL] * 3)
    assert stats.null_counts == (0, 0, 0)
    assert bounds(stats, types) == [[None, None]] * 3


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("BOOLEAN", [True, False], [False, True]),
        ("TINYINT", [3, -128, 127], [-128, 127]),
        ("BIGINT", [2**63 - 1, -(2**63)], [-(2**63), 2**63 - 1]),
        ("DECIMAL(5, 2)", [Decimal("1.50"), Decimal("-1.50")], [Decimal("-1.50"), Decimal("1.50")]),
        ("DECIMAL(30, 2)", [Decimal("9e20"), Decimal(-8)], [Decimal(-8), Decimal("9e20")]),
        ("STRING", ["Z", "ä", "z", ""], ["", "ä"]),
        ("CHAR(3)", ["abc", "abd"], ["abc", "abd"]),
        ("FLOAT", [math.inf, 1.5, -math.inf], [-math.inf, math.inf]),
        ("BYTES", [b"a"], [None, None]),
        ("BINARY(1)", [b"a"], [None, None]),
        ("INT", [None, None], [None, None]),
    ],
)
def test_bounds_of_types(text: str, values: list[Any], expected: list[Any]) -> None:
    data_type = DataType.parse(text)
    array = pa.array(values, data_type.to_arrow())
    for form in arrow_forms(array):
        assert column_bounds(form, data_type) == expected


@pytest.mark.parametrize(
    "text",
    ["DATE", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(9)"],
)
def test_bounds_of_moments(text: str) -> None:
    data_type = DataType.parse(text)
    kind = data_type.to_arrow()
    ticks = pa.int32() if kind.bit_width == 32 else pa.int64()
    array = pa.array([50, 7, None, 90], ticks).view(kind)
    expected = pa.array([7, 90], ticks).view(kind)
    stats = collect(pa.table({"a": array}), [data_type], [FULL])
    assert unpack_rows([stats.minimum, stats.maximum], [data_type])[0] == expected


@pytest.mark.parametrize(
    ("text", "kind", "tick"),
    [
        ("TIME(6)", pa.time64("us"), 1_000),
        ("TIME(9)", pa.time64("ns"), 1_000_000),
        ("TIMESTAMP(0)", pa.timestamp("ms"), 1_000),
        ("TIMESTAMP(3)", pa.timestamp("us"), 1_000),
        ("TIMESTAMP_LTZ(6)", pa.timestamp("ns", "UTC"), 1_000),
    ],
)
def test_moments_are_not_bounded_by_less_than_they_are(text: str, kind: Any, tick: int) -> None:
    data_type = DataType.parse(text)
    whole = pa.array([0, 7 * tick, 3 * tick + 1]).view(kind)  # what is in between does not matter
    stored = data_type.to_arrow() if data_type.root != "TIME" else kind
    expected = whole[:2].cast(stored)
    stats = collect(pa.table({"a": whole}), [data_type], [FULL])
    assert unpack_rows([stats.minimum, stats.maximum], [data_type])[0] == expected
    finer = pa.array([0, 7 * tick + 1]).view(kind)
    problem = f"column 0: a bound is finer than {data_type} is stored, or beyond it"
    with pytest.raises(UnsupportedError) as caught:
        collect(pa.table({"a": finer}), [data_type], [FULL])
    assert str(caught.value) == problem


@pytest.mark.parametrize("text", ["FLOAT", "DOUBLE"])
def test_a_column_with_a_nan_has_no_bounds(text: str) -> None:
    data_type = DataType(text)
    array = pa.array([1.0, math.nan, None], data_type.to_arrow())
    stats = collect(pa.table({"a": array}), [data_type], [FULL])
    assert bounds(stats, [data_type]) == [[None, None]]
    assert stats.null_counts == (1,)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_bound_of_zero_is_the_outer_one(zero: float) -> None:
    for kind, data_type in ((pa.float32(), "FLOAT"), (pa.float64(), "DOUBLE")):
        least, most = column_bounds(pa.array([zero], kind), DataType(data_type))
        assert (math.copysign(1, least), math.copysign(1, most)) == (-1, 1)
        assert column_bounds(pa.array([zero, 2.5], kind), DataType(data_type)) == [0.0, 2.5]


# -- text that is cut --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "length", "expected"),
    [
        ("pear", 4, ["pear", "pear"]),
        ("pear", 5, ["pear", "pear"]),
        ("pears", 4, ["pear", "peas"]),
        ("größer", 3, ["grö", "gr÷"]),
        ("a😀b", 2, ["a😀", "a😁"]),  # characters, neither bytes nor halves of them
        (f"a{LAST}{LAST}z", 3, [f"a{LAST}{LAST}", "b"]),
        (f"{LAST}{LAST}z", 2, [None, None]),
        (f"{LAST}{LAST}", 2, [f"{LAST}{LAST}"] * 2),
        ("\ud7ffz", 1, ["\ud7ff", "\ue000"]),  # what is in between is not text
        ("\0\0", 1, ["\0", "\x01"]),
    ],
)
def test_text_is_cut(value: str, length: int, expected: list[str | None]) -> None:
    mode = StatsMode("truncate", length)
    assert column_bounds(pa.array([value, None]), STRING, mode) == expected
    assert column_bounds(pa.array([value]), DataType.parse("CHAR(9)"), mode) == expected


@given(
    st.lists(st.text(st.sampled_from(f"ab\x7f\x80\u07ff\ud7ff\ue000\uffff\U00010000{LAST}"))),
    st.integers(1, 4),
)
def test_no_text_is_beyond_its_bounds(values: list[str], length: int) -> None:
    least, most = column_bounds(
        pa.array(values, pa.string()), STRING, StatsMode("truncate", length)
    )
    if not values:
        assert (least, most) == (None, None)
    elif most is None:
        assert least is None
        assert max(values, key=str.encode).startswith(LAST * length)
    else:
        assert least == min(values, key=str.encode)[:length]
        assert len(most) <= length
        greatest = max(value.encode() for value in values)
        assert greatest <= most.encode()
        assert (greatest == most.encode()) == (len(greatest.decode()) <= length)


def test_bytes_that_are_no_text_have_no_bounds_that_are_cut() -> None:
    array = pa.array([b"\xff\xfe\xfd", b"a"])
    assert column_bounds(array, STRING, StatsMode("truncate", 2)) == [None, None]


# -- what cannot be done -----------------------------------------------------------------------


def test_columns_types_and_modes_must_be_as_many() -> None:
    table = pa.table({"a": [1], "b": [2]})
    problem = "found 2 columns, 1 types, 2 modes, expected as many of each"
    with pytest.raises(ColumnError, match=problem):
        collect(table, [DataType("BIGINT")], [FULL, FULL])


@pytest.mark.parametrize(
    ("array", "data_type", "problem"),
    [
        (pa.array(["1"]), DataType("INT"), "column 0: Arrow's string cannot be read as INT"),
        (pa.array([1]), STRING, "column 0: Arrow's int64 cannot be read as STRING"),
        (pa.array([1.5]), DataType("FLOAT"), "column 0: Arrow's double cannot be read as FLOAT"),
        (pa.array([300]), DataType("TINYINT"), "column 0: the value of row 0 does not fit TINYINT"),
    ],
)
def test_a_column_that_is_not_of_its_type(
    array: pa.Array, data_type: DataType, problem: str
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        collect(pa.table({"a": array}), [data_type], [FULL])
    assert str(caught.value) == problem
