"""The probes of single predicates."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import LiteralError
from alcid.expressions import (
    AnyRow,
    Constant,
    In,
    InIntervals,
    NonNullRows,
    NotInIntervals,
    NullRows,
    Predicate,
    Probe,
    Unknown,
    col,
    normalize,
    parse,
    points,
    probe_for,
)
from alcid.expressions.probes import merge
from alcid.formats.file_index.keys import Key
from alcid.types import DataType
from tests.expressions.probes import holds, inside
from tests.expressions.strategies import leaves, truth

NONE = InIntervals(())


@pytest.mark.parametrize(
    ("text", "data_type", "probe"),
    [
        ("a = 5", "INT", InIntervals(((5, 6),))),
        ("a <=> 5", "INT", InIntervals(((5, 6),))),
        ("a <=> NULL", "INT", NullRows()),
        ("a = NULL", "INT", NONE),
        ("a <> 5", "INT", NotInIntervals(((5, 6),))),
        ("a < 5", "INT", InIntervals(((None, 5),))),
        ("a <= 5", "INT", InIntervals(((None, 6),))),
        ("a > 5", "INT", InIntervals(((6, None),))),
        ("a >= 5", "INT", InIntervals(((5, None),))),
        ("a = 5.5", "INT", NONE),
        ("a <> 5.5", "INT", NonNullRows()),
        ("a > 5.5", "INT", InIntervals(((6, None),))),
        ("a < 5.5", "INT", InIntervals(((None, 6),))),
        ("a < 3000000000", "INT", NonNullRows()),
        ("a > 3000000000", "INT", NONE),
        ("a = 2147483647", "INT", InIntervals(((2147483647, 2147483648),))),
        ("a >= 2147483647", "INT", InIntervals(((2147483647, 2147483648),))),
        ("a <= -2147483648", "INT", InIntervals(((-2147483648, -2147483647),))),
        ("a IS NULL", "INT", NullRows()),
        ("a IN (9, 3, 4, 4, 5.5)", "INT", InIntervals(((3, 5), (9, 10)))),
        ("a IN (5, NULL)", "INT", InIntervals(((5, 6),))),
        ("a IN (NULL)", "INT", NONE),
        ("a BETWEEN 2 AND 4", "INT", InIntervals(((2, 5),))),
        ("a BETWEEN 4 AND 2", "INT", NONE),
        ("a BETWEEN 2 AND NULL", "INT", NONE),
        ("a BETWEEN -3000000000 AND 3000000000", "INT", NonNullRows()),
        ("a", "BOOLEAN", InIntervals(((1, 2),))),
        ("a > false", "BOOLEAN", InIntervals(((1, 2),))),
        ("a IN (true, false)", "BOOLEAN", NonNullRows()),
        ("a = 0.0", "DOUBLE", InIntervals(((-1, 1),))),
        ("a > CAST('NaN' AS DOUBLE)", "DOUBLE", NONE),
        ("a <= CAST('NaN' AS DOUBLE)", "DOUBLE", NonNullRows()),
        ("a = 9007199254740992e0", "BIGINT", InIntervals(((2**53, 2**53 + 2),), exact=False)),
        ("a <> 9007199254740992e0", "BIGINT", NonNullRows(exact=False)),
        ("a < 9007199254740992e0", "BIGINT", InIntervals(((None, 2**53 + 2),), exact=False)),
        ("a > 9007199254740992e0", "BIGINT", InIntervals(((2**53, None),), exact=False)),
        ("a = 'b'", "STRING", InIntervals(((b"b", b"b\0"),))),
        ("a < 'b'", "STRING", InIntervals(((None, b"b"),))),
        ("a >= ''", "STRING", NonNullRows()),
        ("a = ''", "STRING", InIntervals(((b"", b"\0"),))),
        ("a <> ''", "STRING", NotInIntervals(((b"", b"\0"),))),
        ("a < ''", "STRING", NONE),
        ("a IN ('b', 'a', 'b')", "STRING", InIntervals(((b"a", b"a\0"), (b"b", b"b\0")))),
        (r"a IN ('a', 'a\0')", "STRING", InIntervals(((b"a", b"a\0"), (b"a\0", b"a\0\0")))),
        ("a LIKE 'ab%'", "STRING", InIntervals(((b"ab", b"ac"),))),
        ("a LIKE 'é%'", "STRING", InIntervals(((b"\xc3\xa9", b"\xc3\xaa"),))),
        ("a LIKE 'ab'", "STRING", InIntervals(((b"ab", b"ab\0"),))),
        ("a LIKE '%'", "STRING", NonNullRows()),
        ("a LIKE '5%'", "INT", AnyRow()),
        ("a LIKE '05'", "INT", AnyRow()),
        ("a LIKE 'a%'", "BYTES", AnyRow()),
    ],
)
def test_probe_of_a_leaf(text: str, data_type: str, probe: Probe) -> None:
    assert probe_for(normalize(parse(text)), "a", DataType.parse(data_type)) == probe


@pytest.mark.parametrize(
    ("text", "data_type", "probe"),
    [
        ("NOT a IN (3, 4)", "INT", NotInIntervals(((3, 5),))),
        ("NOT a IN (3, 5.5)", "INT", NotInIntervals(((3, 4),))),
        ("NOT a IN (3000000000)", "INT", NonNullRows()),
        ("NOT a IN (true, false)", "BOOLEAN", NONE),
        ("NOT a IN (5, 9007199254740992e0)", "BIGINT", NotInIntervals(((5, 6),), exact=False)),
        ("NOT a LIKE 'ab%'", "STRING", NotInIntervals(((b"ab", b"ac"),))),
        ("NOT a LIKE '%'", "STRING", NONE),
        ("NOT a LIKE '05'", "INT", AnyRow()),
        ("NOT a IS NULL", "INT", NonNullRows()),
        ("NOT upper(a) = 'X'", "STRING", AnyRow()),
    ],
)
def test_probe_of_a_negation(text: str, data_type: str, probe: Probe) -> None:
    assert probe_for(normalize(parse(text)), "a", DataType.parse(data_type)) == probe


@pytest.mark.parametrize(
    ("leaf", "probe"),
    [
        (Constant(True), AnyRow()),
        (Constant(False), NONE),
        (Constant(None), NONE),
        (Unknown("f(a)"), AnyRow()),
        (In("a", ()), NONE),
        (In("a", (), negated=True), AnyRow()),
        (In("a", (5, None), negated=True), NONE),
    ],
)
def test_probe_of_what_needs_no_key(leaf: Predicate, probe: Probe) -> None:
    assert probe_for(normalize(leaf), "a", DataType("INT")) == probe


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("a < 9223372036854775808", AnyRow()),
        ("a >= -9223372036854775809", AnyRow()),
        ("a <= 9223372036854775807.5", AnyRow()),
        ("a < 9223372036854775807", InIntervals(((None, 2**63 - 1),))),
        ("a > 9223372036854775808", NONE),
        ("a < 1e30", NonNullRows()),
        ("a BETWEEN -9223372036854775809 AND 9223372036854775808", AnyRow()),
        ("a BETWEEN -9223372036854775809 AND 5", InIntervals(((None, 6),))),
    ],
)
def test_null_rows_are_kept_where_spark_answers_true_without_a_look_at_them(
    text: str, probe: Probe
) -> None:
    assert probe_for(normalize(parse(text)), "a", DataType("BIGINT")) == probe


def test_a_double_in_a_list_makes_doubles_of_all_its_numbers() -> None:
    leaf = col("a").isin([2**53 + 1, 1.0])
    assert probe_for(normalize(leaf), "a", DataType("BIGINT")) == InIntervals(
        ((1, 2), (2**53, 2**53 + 2)), exact=False
    )
    text = col("a").isin(["0.1", Decimal("0.10000000000000001")])
    probe = probe_for(normalize(text), "a", DataType("DECIMAL", precision=18, scale=17))
    assert probe == InIntervals(((10000000000000000, 10000000000000002),), exact=False)


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("a = 'ab '", InIntervals(((b"ab", b"ab\0"), (b"ab ", b"ab \0"), (b"ab  ", b"ab  \0")))),
        ("a <> 'ab'", NonNullRows()),
        ("a < 'ab'", InIntervals(((None, b"ab    \0"),))),
        ("a > 'ab'", InIntervals(((b"ab", None),))),
        (r"a > 'a\tb'", InIntervals(((b"a", None),))),
        ("a LIKE 'ab  '", InIntervals(((b"ab", b"ab    \0"),))),
        ("a LIKE 'ab %'", InIntervals(((b"ab", b"ab!"),))),
        ("a NOT LIKE 'ab%'", NonNullRows()),
    ],
)
def test_char_matches_with_and_without_padding(text: str, probe: InIntervals | NonNullRows) -> None:
    result = probe_for(normalize(parse(text)), "a", DataType("CHAR", length=4))
    assert result == replace(probe, exact=False)


def test_long_char_is_one_interval() -> None:
    probe = probe_for(col("a") == "ab", "a", DataType("CHAR", length=100))
    assert probe == InIntervals(((b"ab", b"ab" + b" " * 100 + b"\0"),), exact=False)


@given(st.text(alphabet=" \tab!", max_size=4), st.text(alphabet=" \tab!", max_size=4))
def test_char_question_holds_all_that_spark_matches(literal: str, stored: str) -> None:
    padded, key = literal.ljust(4), stored.encode()
    char = DataType("CHAR", length=4)
    for leaf, matches in (
        (col("a") == literal, stored.ljust(4) == padded),
        (col("a") < literal, stored.ljust(4) < padded),
        (col("a") > literal, stored.ljust(4) > padded),
    ):
        assert not matches or holds(probe_for(normalize(leaf), "a", char), key)


def test_lone_surrogate_in_like_is_an_error() -> None:
    with pytest.raises(LiteralError, match="lone surrogate"):
        probe_for(col("a").starts_with("\ud800"), "a", DataType.parse("STRING"))


def test_literal_of_another_type_names_the_column() -> None:
    with pytest.raises(LiteralError, match="column s of type STRING does not take the int 5"):
        probe_for(col("a") == 5, "s", DataType.parse("STRING"))


@pytest.mark.parametrize(
    ("interval", "keys"),
    [
        ((3, 5), [3, 4]),
        ((3, 19), list(range(3, 19))),
        ((3, 20), None),
        ((3, None), None),
        ((None, 3), None),
        ((b"a", b"a\0"), [b"a"]),
        ((b"", b"\0"), [b""]),
        ((b"a", b"b"), None),
        ((None, None), None),
    ],
)
def test_points(interval: tuple[Key | None, Key | None], keys: list[Key] | None) -> None:
    assert points(interval) == keys


def test_points_take_a_limit() -> None:
    assert points((0, 100), limit=100) == list(range(100))


BYTE = st.one_of(st.integers(-140, 140), st.decimals(-140, 140, places=1), st.none())


@given(leaves(BYTE, st.just("a")))
def test_question_holds_exactly_the_keys_that_match(leaf: Predicate) -> None:
    normal = normalize(leaf)
    for key in (None, *range(-128, 128)):
        matches = truth(leaf, {"a": key}) is True
        if not normal.children:
            assert holds(probe_for(normal, "a", DataType("TINYINT")), key) == matches


@given(st.lists(st.tuples(st.binary(max_size=2), st.one_of(st.none(), st.binary(max_size=2)))))
def test_merged_intervals_of_bytes_hold_the_same_keys(
    intervals: list[tuple[bytes, bytes | None]],
) -> None:
    merged = merge(intervals, DataType.parse("BYTES"))
    for key in [b"", b"\0", *(bound for interval in intervals for bound in interval if bound)]:
        for near in (key, key + b"\0", key[:-1]):
            expected = any(inside(near, interval) for interval in intervals)
            assert any(inside(near, interval) for interval in merged) == expected
    for (_, end), (begin, _) in pairwise(merged):
        assert isinstance(end, bytes)
        assert isinstance(begin, bytes)
        assert end <= begin
