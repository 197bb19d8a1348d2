"""Text as Spark 4.1 casts it: the expected values were seen there, in ANSI mode, in UTC.

One differs on purpose: a time alone is a timestamp of today in Spark, and no timestamp here.
"""

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.expressions.casts_from_text import (
    NANOS_PER_DAY,
    days_of,
    find_zone,
    instant_of,
    moved_forward,
    to_boolean,
    to_date,
    to_double,
    to_integer,
    to_time,
    to_timestamp,
    wall_of,
)

HOUR = 3_600_000_000_000


@pytest.mark.parametrize("text", [" true ", "T", "yes", "Y", "1", "TRUE", "\x01true\x7f"])
def test_true(text: str) -> None:
    assert to_boolean(text) is True


@pytest.mark.parametrize("text", ["f", "No", "0", "FALSE", "n"])
def test_false(text: str) -> None:
    assert to_boolean(text) is False


@pytest.mark.parametrize("text", ["on", "off", "2", "tru", "\u00a0true", "tr ue", ""])
def test_no_boolean(text: str) -> None:
    assert to_boolean(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("+5", 5),
        (" -5 ", -5),
        ("05", 5),
        ("\t7\n", 7),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_integer(text: str, number: int) -> None:
    assert to_integer(text) == number


@pytest.mark.parametrize(
    "text",
    ["5.0", "5.", "--5", "9223372036854775808", "5L", "1e3", "+", "", "٣", "1_000", "9" * 5000],
)
def test_no_integer(text: str) -> None:
    assert to_integer(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        ("1.5d", 1.5),
        ("1.5F", 1.5),
        (" .5 ", 0.5),
        ("5.e3", 5000.0),
        ("inf", math.inf),
        ("+Infinity", math.inf),
        ("-INFINITY", -math.inf),
        ("0x1p3", 8.0),
        ("0x1.8p1d", 3.0),
        ("1e400", math.inf),
        ("-0x1p9999", -math.inf),
        ("1e-400", 0.0),
    ],
)
def test_double(text: str, number: float) -> None:
    assert to_double(text) == number


@pytest.mark.parametrize("text", ["NaN", "nan", "+NaN", "-NaN"])
def test_nan(text: str) -> None:
    number = to_double(text)
    assert number is not None
    assert math.isnan(number)


@pytest.mark.parametrize(
    "text", ["-nan", "infinit", "1_000", "1 d", "NaNd", "e5", ".", "", "\x7f1.5", "+-inf", "--1"]
)
def test_no_double(text: str) -> None:
    assert to_double(text) is None


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2020", 18262),
        ("2020-1", 18262),
        ("2020-1-2", 18263),
        ("2020-01-02 anything", 18263),
        ("2020-01-02T", 18263),
        (" 2020-01-02\n", 18263),
        ("+2020-01-01", 18262),
        ("0000-01-01", -719528),
        ("-0001-01-01", -719893),
        ("12345-01-01", 3789391),
        ("5881580-07-11", 2**31 - 1),
        ("-5877641-06-23", -(2**31)),
    ],
)
def test_date(text: str, days: int) -> None:
    assert to_date(text) == days


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2020-01-",
            "2020-01-02x",
            "2020-13-01",
            "2020-02-30",
            "2019-02-29",
            "123-01-01",
            "today",
        ),
        *(
            "12345678-01-01",
            "5881580-07-12",
            "-5877641-06-22",
            "2020-01 x",
            "2020/01/02",
            "20-01-01",
        ),
        *("2020-001-01", "--2020-01-01", "", "20200102x"),
    ],
)
def test_no_date(text: str) -> None:
    assert to_date(text) is None


@pytest.mark.parametrize(
    ("text", "micros", "zone"),
    [
        ("2020", 1577836800000000, None),
        ("2020-01-02 3", 1577934000000000, None),
        ("2020-01-02 3:4", 1577934240000000, None),
        ("2020-01-02T03:04:05.", 1577934245000000, None),
        ("2020-01-02 03:04:05.1", 1577934245100000, None),
        ("2020-01-02 03:04:05.123456789", 1577934245123456, None),
        ("2020-01-02 03:04:05Z", 1577934245000000, "Z"),
        ("2020-01-02 03:04:05.5 Europe/Paris", 1577934245500000, "Europe/Paris"),
        ("2020-01-02 03:04:05+1:0", 1577934245000000, "+1:0"),
        ("294247-01-10 04:00:54.775807", 2**63 - 1, None),
        ("-290308-12-21 19:59:05.224192", -(2**63), None),
    ],
)
def test_timestamp(text: str, micros: int, zone: str | None) -> None:
    clock = to_timestamp(text)
    assert clock is not None
    assert (clock.nanos, clock.zone) == (micros * 1000, zone)


def test_timestamp_keeps_nanoseconds_where_the_column_has_them() -> None:
    clock = to_timestamp("1970-01-01 00:00:00.1234567891", digits=9)
    assert clock is not None
    assert clock.nanos == 123456789


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2020-01-02T",
            "2020-01-02  03:04",
            "2020-01-02t03:04",
            "2020-01-02 24:00:00",
            "10:11:12",
        ),
        *("2020-01-02 23:59:60", "2020-01-02 03:04Z", "2020 03:04:05", "1234567-01-01 00:00:00"),
        *("294247-01-10 04:00:54.775808", "-290308-12-21 19:59:05.224191", "T10:11", ""),
    ],
)
def test_no_timestamp(text: str) -> None:
    assert to_timestamp(text) is None


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("10:11", 36660 * 10**9),
        ("T10:11:12", 36672 * 10**9),
        ("1:2:3", 3723 * 10**9),
        ("10:11:12.1234567", 36672123456000),
        ("10:11:12  PM", 79872 * 10**9),
        ("12:00 am", 0),
    ],
)
def test_time(text: str, nanos: int) -> None:
    assert to_time(text) == nanos


@pytest.mark.parametrize(
    "text", ["24:00", "10:60", "10", "t10:11", "0:30 AM", "13:00 PM", "10:11:12Z", "10:11:", ""]
)
def test_no_time(text: str) -> None:
    assert to_time(text) is None


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        *(("Z", 0), ("UTC", 0), ("GMT", 0), ("UT", 0), ("+01:00", 1), ("+1:0", 1), ("+01", 1)),
        *(("+1", 1), ("-18:00", -18), ("GMT+2", 2), ("UTC+03:15", 3.25), ("UT-1", -1)),
        *(("+0130", 1.5), ("+01:5", 65 / 60), ("Etc/GMT+3", -3), ("Asia/Kolkata", 5.5)),
    ],
)
def test_zone(name: str, hours: float) -> None:
    zone = find_zone(name)
    assert zone is not None
    assert instant_of(0, zone) == -round(hours * 3600) * 10**9


@pytest.mark.parametrize(
    "name",
    [
        "z",
        "xyz",
        "+25:00",
        "+01:60",
        "-18:01",
        "europe/paris",
        "posix/UTC",
        "Factory",
        "UTC +1",
        "",
    ],
)
def test_no_zone(name: str) -> None:
    assert find_zone(name) is None


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2021-03-28 02:30:00", 1616895000000000),  # skipped: one hour later
        ("2021-10-31 02:30:00", 1635640200000000),  # twice: the earlier
        ("1800-01-01 00:00:00", -5364662961000000),  # local mean time
        ("-0001-01-01 00:00:00", -62198755761000000),  # before the years of datetime
        ("12345-07-01 00:00:00", 327419013600000000),  # behind them, in summer
    ],
)
def test_instant_in_paris(text: str, micros: int) -> None:
    clock, zone = to_timestamp(text), find_zone("Europe/Paris")
    assert clock is not None
    assert zone is not None
    assert instant_of(clock.nanos, zone) == micros * 1000


def test_clock_put_forward_is_seen_for_a_day() -> None:
    zone = find_zone("Europe/Paris")
    spring, autumn = (to_timestamp(day) for day in ("2021-03-28 03:00", "2021-10-31 03:00"))
    assert zone is not None
    assert spring is not None
    assert autumn is not None
    assert moved_forward(spring.nanos, zone) == HOUR
    assert moved_forward(spring.nanos + NANOS_PER_DAY, zone) == 0
    assert moved_forward(autumn.nanos, zone) == 0


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["UTC", "Europe/Paris", "+05:30"]))
def test_wall_of_an_instant_shows_that_instant_or_the_one_before_the_clock_was_put_back(
    micros: int, name: str
) -> None:
    zone = find_zone(name)
    assert zone is not None
    instant = micros * 1000
    assert instant - instant_of(wall_of(instant, zone), zone) in (0, HOUR)


@given(st.dates())
def test_days_agree_with_datetime(date: datetime.date) -> None:
    expected = (date - datetime.date(1970, 1, 1)).days
    assert days_of(date.year, date.month, date.day) == expected
    assert days_of(date.year + 400_000, date.month, date.day) == expected + 1000 * 146_097
