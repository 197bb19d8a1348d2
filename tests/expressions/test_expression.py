"""The expression tree, `col`, and SQL text that parses back."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import PredicateError
from alcid.expressions import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Unknown,
    col,
    parse,
)
from tests.expressions.strategies import predicates

NAN = math.nan


@pytest.mark.parametrize(
    "nan",
    [NAN, float("nan"), np.float32("nan"), Decimal("NaN")],
    ids=["same", "another", "numpy", "decimal"],
)
def test_nan_equals_nan_as_a_literal(nan: Any) -> None:
    """Dataclasses of Python 3.13 compare field by field, where NaN is not equal to itself."""
    for first, other in [
        (col("x") == nan, col("x") == NAN),
        (col("x").isin([1.5, nan]), col("x").isin([1.5, NAN])),
        (col("x").between(nan, 1.5), Between("x", float("nan"), 1.5)),
        ((col("x") == nan) & (col("y") > 1), (col("x") == NAN) & (col("y") > 1)),
        (~(col("x") == nan), ~(col("x") == NAN)),
    ]:
        assert first == other
        assert hash(first) == hash(other)
        assert {first: 1}[other] == 1


def test_predicates_of_another_kind_or_value_differ() -> None:
    assert (col("x") == 1.5) != (col("x") == NAN)
    assert (col("x") == 1.5) != (col("y") == 1.5)
    assert Comparison("x", "=", None) != IsNull("x")
    assert (col("x") == 1) != "x = 1"


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("a") == 5, Comparison("a", "=", 5)),
        (col("a") != 5, Comparison("a", "<>", 5)),
        (col("a") < 5, Comparison("a", "<", 5)),
        (col("a") <= 5, Comparison("a", "<=", 5)),
        (col("a") > 5, Comparison("a", ">", 5)),
        (col("a") >= 5, Comparison("a", ">=", 5)),
        (5 < col("a"), Comparison("a", ">", 5)),  # noqa: SIM300 - turned over on purpose
        (col("a").isin([1, None]), In("a", (1, None))),
        (col("a").isin([]), Constant(False)),
        (col("a").between(1, 2), Between("a", 1, 2)),
        (col("a").is_null(), IsNull("a")),
        (col("a").is_not_null(), IsNull("a", negated=True)),
        (col("a").starts_with("x"), Like("a", "x", prefix=True)),
        (col("a") == col("b"), Unknown("a = b", ("a", "b"))),
    ],
)
def test_column_builds_leaf(predicate: Predicate, expected: Predicate) -> None:
    assert predicate == expected


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (Decimal("Infinity"), math.inf),
    ],
)
def test_numpy_scalars_and_buffers_become_python_values(given_: object, kept: object) -> None:
    comparison = col("a") == given_
    assert comparison == Comparison("a", "=", kept)
    assert isinstance(comparison, Comparison)
    assert type(comparison.literal) is type(kept)


def test_chains_are_flat_and_keep_their_order() -> None:
    a, b, c = (col(name) == 1 for name in "abc")
    assert (a & b) & c == a & (b & c) == And((a, b, c))
    assert (a | b) | c == a | (b | c) == Or((a, b, c))
    assert a & (b | c) == And((a, Or((b, c))))


def test_double_negation_is_the_predicate_itself() -> None:
    predicate = col("a") == 1
    assert ~predicate == Not(predicate)
    assert ~~predicate is predicate


def test_columns_are_named_once_in_order() -> None:
    predicate = parse("b = 1 OR NOT (a < 2 AND b IS NULL) OR upper(c) = 'X' AND m['k'] = 1")
    assert predicate.columns() == ("b", "a", "c", "m[k]")


def test_python_and_or_chained_comparison_raise() -> None:
    with pytest.raises(PredicateError, match=r"neither true nor false.*a = 1.*& \| ~"):
        (col("a") == 1) and (col("b") == 2)
    with pytest.raises(PredicateError, match="between"):
        assert 1 < col("a") < 5


def test_isin_of_one_text_and_starts_with_of_a_number_raise() -> None:
    with pytest.raises(PredicateError, match="isin takes a list of values, found one str"):
        col("a").isin("abc")
    number: Any = 5
    with pytest.raises(PredicateError, match="starts_with takes text, found int"):
        col("a").starts_with(number)


def test_column_can_be_hashed() -> None:
    assert hash(col("a")) == hash(col("a"))


def test_and_with_anything_but_a_predicate_is_a_type_error() -> None:
    number: Any = 5
    with pytest.raises(TypeError):
        (col("a") == 1) & number


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (col("a b") == 1, "`a b` = 1"),
        (col("select") == 1, "`select` = 1"),
        (col("a`b") == 1, "`a``b` = 1"),
        (col("a.b") == 1, "`a.b` = 1"),
        (col("m[it's]") == 1, r"m['it\'s'] = 1"),
        (col("a") == 5.0, "a = 5.0D"),
        (col("a") == Decimal("5.50"), "a = 5.50"),
        (col("a") == Decimal(5), "a = 5BD"),
        (col("a").isin([math.nan]), "a IN (CAST('NaN' AS DOUBLE))"),
        (col("a") == -math.inf, "a = CAST('-Infinity' AS DOUBLE)"),
        (col("a") == "it's\n\\", r"a = 'it\'s\n\\'"),
        (col("a") == b"\x00\xff", "a = X'00FF'"),
        (col("a") == datetime.date(20, 1, 2), "a = DATE '0020-01-02'"),
        (col("a") == datetime.time(1, 2, 3, 4), "a = TIME '01:02:03.000004'"),
        (col("a") == datetime.datetime(2020, 1, 2, 3), "a = TIMESTAMP_NTZ '2020-01-02 03:00:00'"),
        (
            col("a") == datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.UTC),
            "a = TIMESTAMP '2020-01-02 03:00:00+00:00'",
        ),
        (col("a") == np.datetime64("12345-01-02"), "a = DATE '+12345-01-02'"),
        (col("a").starts_with("5%_\\"), r"a LIKE '5\\%\\_\\\\%'"),
        (Like("a", "x", prefix=False, negated=True), "a NOT LIKE 'x'"),
        (In("a", (), negated=True), "TRUE"),
        (~((col("a") == 1) | (col("b") == 2)), "NOT (a = 1 OR b = 2)"),
        (~(col("a") == 1) & ~(col("b") == 2), "NOT a = 1 AND NOT b = 2"),
    ],
)
def test_text_of_predicate(predicate: Predicate, text: str) -> None:
    assert str(predicate) == text


def test_truth_of_a_long_predicate_shows_its_beginning() -> None:
    with pytest.raises(PredicateError) as caught:
        bool(col("a").isin(range(1000)))
    beginning = str(col("a").isin(range(1000)))[:80]
    assert f"before it meets a row: {beginning}...; combine" in str(caught.value)


@pytest.mark.parametrize("text", ["Infinity", "-Infinity"])
def test_infinite_decimal_parses_back(text: str) -> None:
    predicate = Comparison("c", "<=>", Decimal(text))
    assert str(predicate) == f"c <=> CAST('{text}' AS DOUBLE)"
    assert parse(str(predicate)) == predicate


@pytest.mark.parametrize("text", ["NaN", "sNaN"])
def test_decimal_that_is_no_number_is_written_as_the_double(text: str) -> None:
    assert str(Comparison("c", "=", Decimal(text))) == "c = CAST('NaN' AS DOUBLE)"


@pytest.mark.parametrize(
    "word", ["and", "null", "true", "case", "x", "interval", "if", "current_date"]
)
def test_words_of_sql_as_column_names_parse_back(word: str) -> None:
    predicate = And((IsNull(word), Comparison(word, "=", True), Comparison(f"s.{word}", "<", 5)))
    assert parse(str(predicate)) == predicate


@given(predicates())
def test_text_parses_back_to_the_same_tree(predicate: Predicate) -> None:
    assert parse(str(predicate)) == predicate


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_literal_parses_back(text: str) -> None:
    assert parse(str(col("a") == text)) == Comparison("a", "=", text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_prefix_parses_back(prefix: str) -> None:
    assert parse(str(col("a").starts_with(prefix))) == Like("a", prefix, prefix=True)


@pytest.mark.parametrize(
    "text", ["upper(a) = 'X'", "a IN (SELECT 1)", r"regexp_like(a, '\\d\n')", "a = b + 1"]
)
def test_unknown_parses_back_with_its_strings_as_written(text: str) -> None:
    assert parse(text) == Unknown(text, parse(text).columns())
    assert parse(str(parse(text))) == parse(text)
