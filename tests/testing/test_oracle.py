"""The oracle itself: small tables of answers that can be checked by hand."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import DataType, Predicate, col
from alcid.expressions import Comparison, Constant, Unknown
from alcid.testing import matching_rows, top_rows, values_of

it = col("a")
NAN, INF = math.nan, math.inf


def rows(type_text: str, values: list[Any], predicate: Predicate) -> list[int]:
    return matching_rows({"a": values}, {"a": DataType.parse(type_text)}, predicate)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (it == 1, [0]),
        (~(it == 1), [1]),
        (it != 1, [1]),
        (it == None, []),  # noqa: E711
        (~(it == None), []),  # noqa: E711
        (Comparison("a", "<=>", None), [2]),
        (~Comparison("a", "<=>", None), [0, 1]),
        (~Comparison("a", "<=>", 1), [1, 2]),
        (it.isin([1, None]), [0]),
        (~it.isin([1, None]), []),
        (~it.isin([1]), [1]),
        (it.between(1, None), []),
        (~it.between(2, None), [0]),
        (it.is_null() | (it == 5), [2]),
        ((it == 1) & Constant(None), []),
        (~((it == 5) & Constant(None)), [0, 1]),
        ((it == 1) | Constant(None), [0]),
        (it.is_not_null(), [0, 1]),
    ],
    ids=str,
)
def test_three_valued_logic(predicate: Predicate, expected: list[int]) -> None:
    assert rows("INT", [1, 2, None], predicate) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (it == NAN, [3]),
        (it > INF, [3]),
        (it <= NAN, [0, 1, 2, 3, 4]),
        (it == 0, [1, 2]),
        (it < 0.0, [0]),
        (it >= -0.0, [1, 2, 3, 4]),
        (it < 10**400, [0, 1, 2]),
        (it > 10**400, [3, 4]),
        (it == Decimal("-1.5"), [0]),
    ],
    ids=str,
)
def test_nan_is_above_all_and_zeros_are_equal(predicate: Predicate, expected: list[int]) -> None:
    assert rows("DOUBLE", [-1.5, -0.0, 0.0, NAN, INF], predicate) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (it > 5.5, [1, 2, 3]),
        (it == 5.5, []),
        (it > Decimal("5.5"), [1, 2, 3]),
        (it == 2**53, [2]),
        (it == Decimal(2**53 + 1), [3]),
        (it == 2.0**53, [2, 3]),  # as doubles the two are equal
        (it.isin([2**53 + 1]), [3]),
        (it.isin([2**53 + 1, 0.5]), [2, 3]),
        (it < INF, [0, 1, 2, 3]),
        (it > NAN, []),
        (it < 2**200, [0, 1, 2, 3]),
        (it > Decimal("1E-5000"), [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_integers_are_compared_exactly_or_as_doubles(
    predicate: Predicate, expected: list[int]
) -> None:
    assert rows("BIGINT", [5, 6, 2**53, 2**53 + 1], predicate) == expected


def test_decimals() -> None:
    values = [Decimal("0.10"), Decimal("-9.99"), None]
    assert rows("DECIMAL(3,2)", values, it == Decimal("0.1")) == [0]
    assert rows("DECIMAL(3,2)", values, it == 0.1) == [0]
    assert rows("DECIMAL(3,2)", values, it < Decimal("0.1000001")) == [0, 1]


def test_floats_of_four_bytes_are_compared_as_doubles() -> None:
    tenth = float(np.float32(0.1))
    assert rows("FLOAT", [tenth], it == 0.1) == []
    assert rows("FLOAT", [tenth], it > 0.1) == [0]


def test_text_is_compared_by_utf8_bytes() -> None:
    values = ["\uffff", "\U0001f427", "a", "a\0"]
    assert rows("STRING", values, it > "\uffff") == [1]
    assert rows("STRING", values, it > "a") == [0, 1, 3]
    assert rows("STRING", values, it.starts_with("a")) == [2, 3]
    assert rows("BYTES", [b"\xff", b"a"], it >= b"b") == [0]


def test_char_is_compared_with_its_padding() -> None:
    values = ["a", "a ", "a\t"]
    assert rows("CHAR(4)", values, it == "a") == [0, 1]
    assert rows("CHAR(4)", values, it == "a     ") == [0, 1]
    assert rows("CHAR(4)", values, it < "a") == [2]
    assert rows("CHAR(4)", values, it.starts_with("a ")) == [0, 1]
    assert top_rows(values, DataType.parse("CHAR(4)"), 1) == {0, 1}


def test_moments() -> None:
    nanos = values_of(pa.array([-1, 0, 1_500, None], pa.timestamp("ns")))
    assert nanos == [-1, 0, 1_500, None]
    assert rows("TIMESTAMP(9)", nanos, it < datetime.datetime(1970, 1, 1)) == [0]
    assert rows("TIMESTAMP(9)", nanos, it == np.datetime64(1_500, "ns")) == [2]
    plus_one = datetime.timezone(datetime.timedelta(hours=1))
    moment = datetime.datetime(1970, 1, 1, 1, tzinfo=plus_one)
    assert rows("TIMESTAMP_LTZ(9)", nanos, it == moment) == [1]
    days = values_of(pa.array([0, 1], pa.date32()))
    assert rows("DATE", days, it == datetime.date(1970, 1, 2)) == [1]
    assert rows("DATE", days, it > datetime.datetime(1970, 1, 1, 12)) == [1]
    times = values_of(pa.array([1, 2_000_000], pa.time64("us")))
    assert rows("TIME(6)", times, it >= datetime.time(0, 0, 2)) == [1]


def test_values_of_any_arrow_form() -> None:
    array = pa.array([None, 7, None], pa.timestamp("ms"))
    assert values_of(array) == [None, 7_000_000, None]
    assert values_of(pa.chunked_array([array, array[1:2]])) == [None, 7_000_000, None, 7_000_000]
    assert values_of(pa.array(["b", None, "b"]).dictionary_encode()) == ["b", None, "b"]
    assert values_of(pa.array([1, None], pa.time32("s"))) == [10**9, None]


def test_top_rows() -> None:
    integer, double = DataType("INT"), DataType("DOUBLE")
    values = [3, None, 9, 9, 1, None]
    assert top_rows(values, integer, 0) == set()
    assert top_rows(values, integer, 1) == {2, 3}
    assert top_rows(values, integer, 3) == {0, 2, 3}
    assert top_rows(values, integer, 1, descending=False) == {4}
    assert top_rows(values, integer, 1, nulls="first") == {1, 5}
    assert top_rows(values, integer, 3, nulls="first") == {1, 2, 3, 5}
    assert top_rows(values, integer, 5) == {0, 1, 2, 3, 4, 5}
    assert top_rows(values, integer, 1, among=[0, 4]) == {0}
    assert top_rows([0.0, NAN, -0.0], double, 1) == {1}
    assert top_rows([0.0, NAN, -0.0], double, 1, descending=False) == {0, 2}


def test_what_the_oracle_does_not_know_is_an_error() -> None:
    with pytest.raises(TypeError, match="does not compare INT with '5'"):
        rows("INT", [5], it == "5")
    with pytest.raises(TypeError, match="does not know"):
        rows("INT", [5], it.starts_with("5"))
    with pytest.raises((TypeError, KeyError)):
        rows("INT", [5], Unknown("abs(a) = 5", ("a",)))
