"""Bounds from partition values, compared with pyiceberg's transforms."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.tables.iceberg.metadata.transforms import transform_bounds
from alcid.types import DataType
from tests.tables.iceberg.metadata.peer import pyiceberg_transform

INT, BIGINT, DATE = DataType("INT"), DataType("BIGINT"), DataType("DATE")
STRING, BYTES = DataType.parse("STRING"), DataType.parse("BYTES")
TIMESTAMP = DataType("TIMESTAMP", precision=6)
TIMESTAMPTZ = DataType("TIMESTAMP_LTZ", precision=6)
MICROS = {"hour": 3_600_000_000, "day": 86_400_000_000}

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
widths = st.integers(1, 2**31 - 1) | st.integers(1, 20)
dates = st.integers(-710_000, 2_930_000)  # Python has only the years 1 to 9999
micros = dates.flatmap(
    lambda day: st.integers(day * MICROS["day"], (day + 1) * MICROS["day"] - 1)
) | st.integers(-5 * MICROS["day"], 5 * MICROS["day"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def bounds(transform: str, values: Any, data_type: DataType) -> list[tuple[Any, Any]]:
    """How Python reads them; days and microseconds as numbers."""
    transformed = transform_bounds(transform, values, data_type)
    assert transformed is not None
    assert transformed.lower.type == transformed.upper.type
    for array in (transformed.lower, transformed.upper):
        array.validate(full=True)
    return list(zip(plain(transformed.lower), plain(transformed.upper), strict=True))


def plain(values: pa.Array) -> list[Any]:
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    return values.to_pylist()  # type: ignore[no-any-return]


# -- identity ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "data_type", "expected"),
    [
        (pa.array([3, None]), INT, [3, None]),
        (pa.array([3, None], pa.int32()), BIGINT, [3, None]),
        (pa.array(["ä", None]), STRING, ["ä".encode(), None]),
        (pa.array([b"\xff"]), BYTES, [b"\xff"]),
        (pa.array([True, False]), DataType("BOOLEAN"), [True, False]),
        (pa.array([Decimal("1.20")]), DataType("DECIMAL", 10, 4), [Decimal("1.2000")]),
        (pa.array([5], pa.timestamp("us", "Europe/Vienna")), TIMESTAMPTZ, [5]),
        (pa.array(["x", "x"]).dictionary_encode(), STRING, [b"x", b"x"]),
    ],
    ids=str,
)
def test_identity(values: pa.Array, data_type: DataType, expected: list[Any]) -> None:
    assert bounds("identity", values, data_type) == [(value, value) for value in expected]


def test_identity_of_floats_has_zeros_on_the_outer_side_and_no_nan() -> None:
    values = pa.array([0.0, -0.0, 1.5, float("nan"), None])
    transformed = transform_bounds("identity", values, DataType("DOUBLE"))
    assert transformed is not None
    assert str(transformed.lower.to_pylist()) == "[-0.0, -0.0, 1.5, None, None]"
    assert str(transformed.upper.to_pylist()) == "[0.0, 0.0, 1.5, None, None]"
    assert transformed.all_null.tolist() == [False, False, False, False, True]


# -- truncate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "width", "data_type", "expected"),
    [
        (20, 10, INT, (20, 29)),
        (-10, 10, INT, (-10, -1)),
        (2_147_483_640, 10, INT, (2_147_483_640, 2_147_483_647)),
        (9_223_372_036_854_775_800, 100, BIGINT, (9_223_372_036_854_775_800, 2**63 - 1)),
        (2_147_483_646, 10, INT, (None, None)),  # as Java rounds -2147483648
        (Decimal("10.60"), 10, DataType("DECIMAL", 4, 2), (Decimal("10.60"), Decimal("10.69"))),
        (Decimal("-1.30"), 10, DataType("DECIMAL", 3, 2), (Decimal("-1.30"), Decimal("-1.21"))),
        (Decimal("9.90"), 50, DataType("DECIMAL", 3, 2), (Decimal("9.90"), Decimal("9.99"))),
        (Decimal("0"), 2**31 - 1, DataType("DECIMAL", 38), (0, 2**31 - 2)),
        (Decimal(10**38 - 10), 2**31 - 1, DataType("DECIMAL", 38), (10**38 - 10, 10**38 - 1)),
        ("cat", 3, STRING, (b"cat", b"cau")),
        ("cat", 4, STRING, (b"cat", b"cat")),
        ("a😀", 2, STRING, ("a😀".encode(), "a😁".encode())),
        ("aé", 3, STRING, ("aé".encode(), "aé".encode())),
        ("", 1, STRING, (b"", b"")),
        (b"\x01\x02", 2, BYTES, (b"\x01\x02", b"\x01\x03")),
        (b"\x01\xff", 2, BYTES, (b"\x01\xff", None)),
        (b"\xff", 2, BYTES, (b"\xff", b"\xff")),
    ],
    ids=str,
)
def test_truncate(value: Any, width: int, data_type: DataType, expected: Any) -> None:
    values = pa.array([value, None], data_type.to_arrow())
    assert bounds(f"truncate[{width}]", values, data_type) == [expected, (None, None)]


def test_truncate_of_a_part_of_an_array() -> None:
    values = pa.array(["no", "cat", None, "do", "dog"]).slice(1)
    expected = [(b"cat", b"cau"), (None, None), (b"do", b"do"), (b"dog", b"doh")]
    assert bounds("truncate[3]", values, STRING) == expected
    assert bounds("truncate[3]", values.slice(4), STRING) == []


@given(longs, widths)
def test_truncated_integers_lie_within_bounds_that_are_as_narrow_as_can_be(
    value: int, width: int
) -> None:
    for kind, data_type, least in (("long", BIGINT, -(2**63)), ("int", INT, -(2**31))):
        end = -least - 1
        number = value if kind == "long" else value >> 32
        cut = pyiceberg_transform(f"truncate[{width}]", kind, number)
        if cut < least:
            continue
        array = pa.array([cut], data_type.to_arrow())
        assert bounds(f"truncate[{width}]", array, data_type) == [(cut, min(cut + width - 1, end))]
        assert cut <= number <= min(cut + width - 1, end)


@given(ints, widths)
def test_what_java_rounds_beyond_the_least_number_is_never_bounded_wrongly(
    value: int, width: int
) -> None:
    with np.errstate(over="ignore"):
        cut = int(np.int32(value) - np.int32(value % width))
    ((least, most),) = bounds(f"truncate[{width}]", pa.array([cut], pa.int32()), INT)
    assert least is None or least <= value <= most


@given(st.decimals(Decimal(-(10**20)), Decimal(10**20), places=4), widths)
def test_truncated_decimals_lie_within_bounds(value: Decimal, width: int) -> None:
    data_type = DataType("DECIMAL", 38, 4)
    cut = pyiceberg_transform(f"truncate[{width}]", "decimal", value)
    values = pa.array([cut], data_type.to_arrow())
    assert bounds(f"truncate[{width}]", values, data_type) == [
        (cut, cut + Decimal(width - 1).scaleb(-4))
    ]
    assert cut <= value <= cut + Decimal(width - 1).scaleb(-4)


@given(st.lists(texts), st.integers(1, 4))
def test_truncated_text_lies_within_bounds(values: list[str], width: int) -> None:
    cut = [pyiceberg_transform(f"truncate[{width}]", "string", value) for value in values]
    cut_bounds = bounds(f"truncate[{width}]", pa.array(cut, pa.string()), STRING)
    for whole, (least, most) in zip(values, cut_bounds, strict=True):
        assert least <= whole.encode() <= most


@given(st.lists(st.binary(max_size=5)), st.integers(1, 4))
def test_truncated_bytes_lie_within_bounds(values: list[bytes], width: int) -> None:
    cut = [pyiceberg_transform(f"truncate[{width}]", "binary", value) for value in values]
    cut_bounds = bounds(f"truncate[{width}]", pa.array(cut, pa.binary()), BYTES)
    for whole, (least, most) in zip(values, cut_bounds, strict=True):
        assert least <= whole
        assert most is None or whole <= most


def test_null_of_a_truncated_decimal_may_be_a_number_with_a_digit_too_many() -> None:
    for data_type, expected in ((DataType("DECIMAL", 2), [False]), (INT, [True])):
        transformed = transform_bounds("truncate[10]", pa.nulls(1, data_type.to_arrow()), data_type)
        assert transformed is not None
        assert transformed.all_null.tolist() == expected


# -- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "value", "least", "most"),
    [
        ("year", 54, "2024-01-01", "2024-12-31T23:59:59.999999"),
        ("month", 649, "2024-02-01", "2024-02-29T23:59:59.999999"),
        ("day", 1, "1970-01-02", "1970-01-02T23:59:59.999999"),
        ("hour", 25, "1970-01-02T01:00:00", "1970-01-02T01:59:59.999999"),
        # Zero and below: early writers rounded up.
        ("year", 0, "1969-01-01", "1970-12-31T23:59:59.999999"),
        ("month", -1, "1969-11-01", "1969-12-31T23:59:59.999999"),
        ("day", 0, "1969-12-31", "1970-01-01T23:59:59.999999"),
        ("hour", -1, "1969-12-31T22:00:00", "1969-12-31T23:59:59.999999"),
    ],
)
@pytest.mark.parametrize("data_type", [TIMESTAMP, TIMESTAMPTZ], ids=str)
def test_moments(transform: str, value: int, least: str, most: str, data_type: DataType) -> None:
    origin, micro = datetime(1970, 1, 1), timedelta(microseconds=1)
    expected = tuple((datetime.fromisoformat(moment) - origin) // micro for moment in (least, most))
    values = pa.array([value, None], pa.int32())
    assert bounds(transform, values, data_type) == [expected, (None, None)]
    transformed = transform_bounds(transform, values, data_type)
    assert transformed is not None
    assert transformed.lower.type == data_type.to_arrow()
    assert transformed.all_null.tolist() == [False, True]


@pytest.mark.parametrize(
    ("transform", "value", "least", "most"),
    [
        ("year", 54, "2024-01-01", "2024-12-31"),
        ("year", -1, "1968-01-01", "1969-12-31"),
        ("month", 0, "1969-12-01", "1970-01-31"),
        ("month", 649, "2024-02-01", "2024-02-29"),
        ("day", -3, "1969-12-29", "1969-12-29"),
    ],
)
def test_dates(transform: str, value: int, least: str, most: str) -> None:
    expected = tuple((date.fromisoformat(day) - date(1970, 1, 1)).days for day in (least, most))
    assert bounds(transform, pa.array([value]), DATE) == [expected]


def test_days_may_be_given_as_dates() -> None:
    values = pa.array([date(2024, 2, 29)])
    (pair,) = bounds("day", values, TIMESTAMP)
    assert pair == (19_782 * MICROS["day"], 19_783 * MICROS["day"] - 1)


@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1])
@pytest.mark.parametrize("transform", ["year", "month", "day"])
def test_the_farthest_years_are_bounded_by_what_the_type_holds(transform: str, value: int) -> None:
    ((least, most),) = bounds(transform, pa.array([value]), TIMESTAMP)
    assert (least, most)[value > 0] == (-(2**63), 2**63 - 1)[value > 0]
    assert least <= most
    ((least, most),) = bounds(transform, pa.array([value]), DATE)
    assert -(2**31) <= least <= most < 2**31


@given(micros, st.sampled_from(["year", "month", "day", "hour"]))
def test_moments_lie_within_bounds_that_are_as_narrow_as_can_be(value: int, transform: str) -> None:
    part = pyiceberg_transform(transform, "timestamp", value)
    ((least, most),) = bounds(transform, pa.array([part]), TIMESTAMP)
    assert least <= value <= most
    assert pyiceberg_transform(transform, "timestamp", most) == part
    assert pyiceberg_transform(transform, "timestamp", most + 1) == part + 1
    assert pyiceberg_transform(transform, "timestamp", least) == part - (part <= 0)
    assert pyiceberg_transform(transform, "timestamp", least - 1) == part - (part <= 0) - 1


@given(dates, st.sampled_from(["year", "month", "day"]))
def test_dates_lie_within_bounds_that_are_as_narrow_as_can_be(value: int, transform: str) -> None:
    part = pyiceberg_transform(transform, "date", value)
    ((least, most),) = bounds(transform, pa.array([part]), DATE)
    assert least <= value <= most
    assert pyiceberg_transform(transform, "date", most) == part
    assert pyiceberg_transform(transform, "date", most + 1) == part + 1
    below = part - (part <= 0 and transform != "day")
    assert pyiceberg_transform(transform, "date", least) == below
    assert pyiceberg_transform(transform, "date", least - 1) == below - 1


@given(micros, st.sampled_from(["day", "hour"]))
def test_moments_that_were_rounded_towards_1970_lie_within_bounds(
    value: int, transform: str
) -> None:
    part = abs(value) // MICROS[transform] * (1 if value >= 0 else -1)
    ((least, most),) = bounds(transform, pa.array([part]), TIMESTAMP)
    assert least <= value <= most


# -- nothing to say ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "data_type"),
    [
        ("void", INT),
        ("zorder", INT),
        ("truncate[0]", INT),
        ("bucket[0]", INT),
        ("bucket[4] of 2 columns", INT),
        ("truncate", INT),
        ("truncate[2]", DATE),
        ("hour", DATE),
        ("year", INT),
        ("day", DataType("TIMESTAMP", precision=9)),
        ("identity", DataType.parse("ARRAY<INT>")),
    ],
    ids=str,
)
def test_predicates_without_any_effect(transform: str, data_type: DataType) -> None:
    assert transform_bounds(transform, pa.array([1, None]), data_type) is None


@pytest.mark.parametrize("transform", ["identity", "truncate[3]", "day"])
def test_values_of_a_type_that_the_transform_never_gives(transform: str) -> None:
    assert transform_bounds(transform, pa.array(["x"]), INT if transform != "day" else DATE) is None


def test_a_bucket_says_where_all_is_null() -> None:
    transformed = transform_bounds("bucket[16]", pa.array([3, None], pa.int32()), STRING)
    assert transformed is not None
    assert transformed.lower.equals(pa.nulls(2, pa.binary()))
    assert transformed.upper.equals(pa.nulls(2, pa.binary()))
    assert transformed.all_null.tolist() == [False, True]
