"""The position of a literal among the keys of a column."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import config
from alcid.errors import LiteralError
from alcid.expressions import (
    KeyRange,
    SessionTimestamp,
    col,
    key_range,
    matching,
    normalize,
    parse,
    probe_for,
)
from alcid.expressions.literals import bounds_of
from alcid.formats.file_index.keys import float_order, order_float
from alcid.types import DataType

INT, BIGINT, TINYINT = DataType("INT"), DataType("BIGINT"), DataType("TINYINT")
FLOAT, DOUBLE, BOOLEAN, DATE = (DataType(root) for root in ("FLOAT", "DOUBLE", "BOOLEAN", "DATE"))
MONEY = DataType("DECIMAL", precision=10, scale=2)
FINE = DataType("DECIMAL", precision=18, scale=17)
TEXT, BYTES = DataType.parse("STRING"), DataType.parse("BYTES")
MILLIS, MICROS, NANOS = (DataType("TIMESTAMP", precision=digits) for digits in (3, 6, 9))
LOCAL = DataType("TIMESTAMP_LTZ", precision=6)
TIME0, TIME3, TIME6 = (DataType("TIME", precision=digits) for digits in (0, 3, 6))

NOON = datetime.datetime(1970, 1, 2, 12)
HOUR = 3_600_000_000
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("data_type", "literal", "begin", "end"),
    [
        (BOOLEAN, True, 1, 2),
        (BOOLEAN, " No ", 0, 1),
        (INT, 5, 5, 6),
        (INT, 5.5, 6, 6),
        (INT, Decimal("-5.5"), -5, -5),
        (INT, Decimal("5.0"), 5, 6),
        (INT, " +5 ", 5, 6),
        (INT, np.int64(5), 5, 6),
        (INT, 2**31 - 1, 2**31 - 1, 2**31),
        (INT, 2**31, 2**31, 2**31),
        (INT, -(2**31) - 1, -(2**31), -(2**31)),
        (INT, 10**400, 2**31, 2**31),
        (INT, -(10**400), -(2**31), -(2**31)),
        (INT, math.nan, 2**31, 2**31),
        (INT, math.inf, 2**31, 2**31),
        (INT, -math.inf, -(2**31), -(2**31)),
        (INT, Decimal("1e999999"), 2**31, 2**31),
        (INT, Decimal("-1e999999"), -(2**31), -(2**31)),
        (INT, Decimal("1e-999999"), 1, 1),
        (INT, Decimal("-1e-999999"), 0, 0),
        (INT, Decimal("0e999999"), 0, 1),
        (TINYINT, 128, 128, 128),
        (BIGINT, 2.0**53 - 1, 2**53 - 1, 2**53),
        (BIGINT, 2**53 + 1, 2**53 + 1, 2**53 + 2),
        (MONEY, 5, 500, 501),
        (MONEY, Decimal("5.505"), 551, 551),
        (MONEY, 0.1, 10, 11),
        (MONEY, "0.3", 30, 31),
        (MONEY, 0.30000000000000004, 31, 31),
        (DOUBLE, 0, -1, 1),
        (DOUBLE, -0.0, -1, 1),
        (DOUBLE, Decimal("0.1"), order_float(0.1), order_float(0.1) + 1),
        (DOUBLE, 2**53 + 1, order_float(2.0**53), order_float(2.0**53) + 1),
        (DOUBLE, "1e3", order_float(1e3), order_float(1e3) + 1),
        (DOUBLE, math.nan, order_float(math.nan), order_float(math.nan) + 1),
        (DOUBLE, "-inf", order_float(-math.inf), order_float(-math.inf) + 1),
        (DOUBLE, 10**400, order_float(math.inf), order_float(math.inf)),
        (DOUBLE, -(10**400), order_float(-math.inf) + 1, order_float(-math.inf) + 1),
        (DOUBLE, Decimal("1E+400"), order_float(math.inf), order_float(math.inf)),
        (DOUBLE, Decimal("-1E+5000"), order_float(-math.inf) + 1, order_float(-math.inf) + 1),
        (DOUBLE, Decimal("-Infinity"), order_float(-math.inf), order_float(-math.inf) + 1),
        (FLOAT, 0.5, order_float(0.5, 4), order_float(0.5, 4) + 1),
        (FLOAT, 0.1, order_float(0.1, 4), order_float(0.1, 4)),
        (FLOAT, np.float32(0.1), order_float(0.1, 4), order_float(0.1, 4) + 1),
        (FLOAT, 1e300, order_float(math.inf, 4), order_float(math.inf, 4)),
        (FLOAT, -1e300, order_float(-math.inf, 4) + 1, order_float(-math.inf, 4) + 1),
        (FLOAT, 1e-50, 1, 1),
        (FLOAT, -1e-50, -1, -1),
        (TEXT, "é", b"\xc3\xa9", b"\xc3\xa9\0"),
        (BYTES, "é", b"\xc3\xa9", b"\xc3\xa9\0"),
        (BYTES, bytearray(b"a"), b"a", b"a\0"),
        (DATE, datetime.date(1970, 1, 2), 1, 2),
        (DATE, "1970-01-02 23:00", 1, 2),
        (DATE, NOON, 2, 2),
        (DATE, NOON.replace(hour=0), 1, 2),
        (DATE, np.datetime64("1970-01-02"), 1, 2),
        (DATE, np.datetime64("1970-01-02T00:00:00.000000001"), 2, 2),
        (DATE, np.datetime64("12345-01-01"), 3789391, 3789392),
        (MICROS, NOON, DAY + 12 * HOUR, DAY + 12 * HOUR + 1),
        (MICROS, datetime.date(1970, 1, 2), DAY, DAY + 1),
        (MICROS, "1970-01-01 00:00:00.1234567", 123456, 123457),
        (MICROS, np.datetime64(123456700, "ns"), 123457, 123457),
        (MICROS, np.datetime64(-1, "ns"), 0, 0),
        (MICROS, np.datetime64(2, "h"), 2 * HOUR, 2 * HOUR + 1),
        (MILLIS, "1970-01-01 00:00:00.0015", 2, 2),
        (MILLIS, "1970-01-01 00:00:00.002", 2, 3),
        (LOCAL, datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC), HOUR, HOUR + 1),
        (LOCAL, "1970-01-01 01:00:00+01:00", 0, 1),
        (LOCAL, NOON, DAY + 12 * HOUR, DAY + 12 * HOUR + 1),
        (LOCAL, SessionTimestamp("1970-01-02"), DAY, DAY + 1),
        (MICROS, SessionTimestamp("1970-01-02"), DAY, DAY + 1),
        (TIME0, datetime.time(0, 0, 1), 1000, 1001),
        (TIME3, datetime.time(0, 0, 0, 1500), 2, 2),
        (TIME3, "00:00:01", 1000, 1001),
    ],
)
def test_certain_position(data_type: DataType, literal: object, begin: object, end: object) -> None:
    keys = key_range(literal, "c", data_type)
    assert (keys.begin, keys.end, keys.exact) == (begin, end, True)


@pytest.mark.parametrize(
    ("data_type", "literal", "begin", "end"),
    [
        (BIGINT, 2.0**53, 2**53, 2**53 + 2),
        (BIGINT, 2.0**53 + 4, 2**53 + 3, 2**53 + 6),
        (BIGINT, -(2.0**53), -(2**53) - 1, -(2**53) + 1),
        (BIGINT, 2.0**63, 2**63 - 512, 2**63),
        (FINE, 1.0, 99999999999999995, 100000000000000012),
        (NANOS, "1970-01-01 00:00:00.0000015", 1, 2),
        (NANOS, np.datetime64(-1, "ns"), -1, 0),
        (TIME6, datetime.time(0, 0, 0, 1500), 1, 2),
    ],
)
def test_uncertain_place(data_type: DataType, literal: object, begin: int, end: int) -> None:
    assert key_range(literal, "c", data_type) == KeyRange(begin, end, exact=False)


@pytest.mark.parametrize(
    ("data_type", "literal"),
    [
        (BOOLEAN, 1),
        (BOOLEAN, "on"),
        (INT, True),
        (INT, np.bool_(True)),
        (INT, "5.5"),
        (INT, "9223372036854775808"),
        (INT, b"5"),
        (DOUBLE, "x"),
        (DOUBLE, True),
        (MONEY, "x"),
        (MONEY, datetime.date(1970, 1, 1)),
        (TEXT, 5),
        (TEXT, b"a"),
        (TEXT, "\ud800"),
        (BYTES, 5),
        (DATE, 5),
        (DATE, "today"),
        (DATE, datetime.time(1)),
        (DATE, np.datetime64("NaT")),
        (DATE, np.timedelta64(5, "D")),
        (MICROS, "1970-01-01 00:00:00Z"),
        (MICROS, datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)),
        (MICROS, "10:11:12"),
        (LOCAL, "1970-01-01 00:00:00 Nowhere/Land"),
        (LOCAL, np.datetime64(1, "ps")),
        (TIME3, datetime.time(1, tzinfo=datetime.UTC)),
        (TIME3, datetime.date(1970, 1, 1)),
        (TIME3, "25:00"),
        (DataType.parse("ARRAY<INT>"), 5),
        (INT, object()),
    ],
)
def test_literal_without_a_meaning_is_an_error(data_type: DataType, literal: object) -> None:
    with pytest.raises(LiteralError) as caught:
        key_range(literal, "c", data_type)
    assert str(caught.value).startswith(f"column c of type {data_type} does not take the ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["c", "c = TRUE", "NOT c", "c IS TRUE"])
def test_error_of_a_lone_column_says_that_it_must_be_boolean(text: str) -> None:
    with pytest.raises(LiteralError) as caught:
        probe_for(normalize(parse(text)), "c", DataType("BIGINT"))
    assert str(caught.value) == (
        "column c of type BIGINT does not take the bool True: "
        "only a BOOLEAN column equals TRUE or FALSE, or stands on its own"
    )


def test_error_shows_an_integer_as_it_was_written() -> None:
    with pytest.raises(LiteralError, match=r"^column c of type BOOLEAN does not take the int 60$"):
        key_range(60, "c", DataType("BOOLEAN"))


def test_error_names_a_short_value_and_hides_a_long_one() -> None:
    with pytest.raises(LiteralError, match=r"^column c of type INT does not take the str 'x'$"):
        key_range("x", "c", INT)
    with pytest.raises(LiteralError, match=r"^column c of type INT does not take the str$"):
        key_range("secret" * 10, "c", INT)
    with pytest.raises(LiteralError, match=r"^column c of type STRING does not take the int$"):
        key_range(10**5000, "c", TEXT)


class Nanosecond(datetime.datetime):
    """What pandas.Timestamp adds to datetime."""

    nanosecond = 7


def test_nanoseconds_of_pandas_count() -> None:
    assert key_range(Nanosecond(1970, 1, 1), "c", MICROS) == KeyRange(1, 1)


def test_session_zone_reads_what_names_no_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "timezone", "Europe/Paris")
    expected = KeyRange(11 * HOUR + DAY, 11 * HOUR + DAY + 1)
    assert key_range(NOON, "c", LOCAL) == expected
    assert key_range("1970-01-02 12:00", "c", LOCAL) == expected
    assert key_range(SessionTimestamp("1970-01-02 12:00"), "c", LOCAL) == expected
    assert key_range(np.datetime64("1970-01-02T12"), "c", LOCAL) == expected
    assert key_range(datetime.date(1970, 1, 2), "c", LOCAL) == KeyRange(23 * HOUR, 23 * HOUR + 1)
    assert key_range(NOON, "c", MICROS) == KeyRange(12 * HOUR + DAY, 12 * HOUR + DAY + 1)


def test_aware_datetime_is_compared_with_midnights_of_the_session_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "timezone", "Europe/Paris")
    midnight = datetime.datetime(1970, 1, 1, 23, tzinfo=datetime.UTC)
    assert key_range(midnight, "c", DATE) == KeyRange(1, 2)
    assert key_range(midnight + datetime.timedelta(seconds=1), "c", DATE) == KeyRange(2, 2)
    assert key_range(midnight - datetime.timedelta(seconds=1), "c", DATE) == KeyRange(1, 1)


def test_midnight_that_a_zone_skipped_is_one_oclock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "timezone", "America/Sao_Paulo")
    assert key_range(SessionTimestamp("2018-11-04 01:00:00"), "c", DATE) == KeyRange(17839, 17840)


def test_sql_timestamp_on_wall_clocks_reaches_back_over_a_skipped_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "timezone", "Europe/Paris")
    wall = 1616902200000000  # 2021-03-28 03:30, which 02:30 moves to
    expected = KeyRange(wall - HOUR, wall + 1, exact=False)
    assert key_range(SessionTimestamp("2021-03-28 03:30:00"), "c", MICROS) == expected
    assert key_range(SessionTimestamp("2021-03-28 02:30:00"), "c", MICROS) == expected


def test_unknown_session_zone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "timezone", "Nowhere/Land")
    with pytest.raises(LiteralError, match=r"alcid.config.timezone 'Nowhere/Land' is no zone"):
        key_range(NOON, "c", LOCAL)


def test_in_a_mixed_list_numbers_may_be_compared_as_doubles() -> None:
    assert key_range(2**53 + 1, "c", BIGINT, mixed=True) == KeyRange(2**53, 2**53 + 2, exact=False)
    assert key_range(5, "c", BIGINT, mixed=True) == KeyRange(5, 6)
    assert key_range("1970-01-02 12:00", "c", DATE, mixed=True) == KeyRange(1, 2, exact=False)


def value_of(key: int, data_type: DataType) -> Fraction:
    return Fraction(key, 10**data_type.scale)


@given(
    st.sampled_from([TINYINT, INT, BIGINT, MONEY, FINE]),
    st.one_of(
        st.integers(), st.integers(-(2**64), 2**64), st.decimals(-(10**20), 10**20, places=5)
    ),
    st.integers(-3, 3),
)
def test_exact_numbers_are_ranked_as_fractions(
    data_type: DataType, literal: int | Decimal, step: int
) -> None:
    keys = key_range(literal, "c", data_type)
    least, greatest = bounds_of(data_type)
    assert isinstance(keys.begin, int)
    assert isinstance(keys.end, int)
    for key in (keys.begin + step, keys.end + step):
        if least <= key <= greatest:
            assert (key >= keys.begin) == (value_of(key, data_type) >= Fraction(literal))
            assert (key >= keys.end) == (value_of(key, data_type) > Fraction(literal))


@given(
    st.sampled_from([TINYINT, INT, BIGINT, MONEY, FINE]),
    st.one_of(st.floats(allow_nan=False), st.floats(-20, 20), st.floats(2.0**52, 2.0**64)),
    st.integers(-3, 3),
)
def test_floats_are_ranked_as_doubles(data_type: DataType, literal: float, step: int) -> None:
    keys = key_range(literal, "c", data_type)
    least, greatest = bounds_of(data_type)
    assert isinstance(keys.begin, int)
    assert isinstance(keys.end, int)
    for key in (keys.begin + step, keys.end + step):
        if least <= key <= greatest:
            rounded = key / 10**data_type.scale  # the nearest double: Python divides exactly
            assert (key >= keys.begin) == (rounded >= literal)
            assert (key >= keys.end) == (rounded > literal)


@given(
    st.sampled_from([(FLOAT, 4), (DOUBLE, 8)]),
    st.one_of(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False)),
    st.integers(-3, 3),
)
def test_floats_are_ranked_among_floats_by_value(
    kind: tuple[DataType, int], literal: float, step: int
) -> None:
    data_type, width = kind
    keys = key_range(literal, "c", data_type)
    least, greatest = order_float(-math.inf, width), order_float(math.inf, width)
    assert isinstance(keys.begin, int)
    assert isinstance(keys.end, int)
    for key in (keys.begin + step, keys.end + step):
        if least <= key <= greatest:
            assert (key >= keys.begin) == (float_order(key, width) >= literal)
            assert (key >= keys.end) == (float_order(key, width) > literal)


@given(st.sampled_from([TEXT, BYTES]), st.text(max_size=4), st.binary(max_size=5))
def test_text_is_ranked_by_its_bytes(data_type: DataType, literal: str, key: bytes) -> None:
    keys = key_range(literal, "c", data_type)
    assert isinstance(keys.begin, bytes)
    assert isinstance(keys.end, bytes)
    assert (key >= keys.begin) == (key >= literal.encode())
    assert (key >= keys.end) == (key > literal.encode())


@given(st.sampled_from([(DATE, DAY), (MILLIS, 1000), (MICROS, 1), (LOCAL, 1)]), st.datetimes())
def test_datetimes_are_ranked_by_their_microseconds(
    kind: tuple[DataType, int], literal: datetime.datetime
) -> None:
    data_type, unit = kind
    micros = (literal - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    keys = key_range(literal, "c", data_type)
    assert isinstance(keys.begin, int)
    assert isinstance(keys.end, int)
    for key in range(micros // unit - 1, micros // unit + 3):
        assert (key >= keys.begin) == (key * unit >= micros)
        assert (key >= keys.end) == (key * unit > micros)


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_nat_is_shown_and_refused(unit: str) -> None:
    for nat in (np.array(["NaT"], f"M8[{unit}]")[0], np.datetime64("NaT")):
        predicate = col("a") == nat
        assert "'NaT'" in str(predicate)
        assert "'NaT'" in str(predicate & col("a").isin([nat]))
        rows = pa.table({"a": pa.array([0], pa.timestamp("us"))})
        with pytest.raises(LiteralError, match="it is not a time"):
            matching(predicate, rows)
