"""Decimals that need more than 38 digits with their column: Spark rounds both sides.

The expected rows were observed in Spark 4.1.4, in ANSI mode, which is its default.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import (
    DataType,
    FileIndex,
    Predicate,
    col,
)
from alcid.expressions import (
    KeyRange,
    key_range,
    matching,
    normalize,
    parse,
    probe_for,
)
from alcid.expressions.literals import Digits, common_digits, digits_of
from alcid.testing import matching_rows
from alcid.testing.strategies import comparisons
from tests.expressions.probes import holds

EXACT = Context(prec=100)
JUST_ABOVE, JUST_BELOW = "5.0000000000000000001", "5.9999999999999999999"
DEEP = "5.0000000000000000000000001"
HUGE = "100000000000000000000"
WIDEST = "10000000000000000000000000000000000000"
BIGINT = DataType("BIGINT")
FINE = DataType("DECIMAL", precision=18, scale=18)

WHOLE = ("DECIMAL(38,0)", ("5", "6", "7", "-6", None))
LONGS = ("BIGINT", ("5", "6", "4", None))
LONG_EDGE = ("BIGINT", ("5", "9223372036854775807"))
INTS = ("INT", ("5", "6", None))
BYTES = ("TINYINT", ("5", "6", None))
TENTHS = ("DECIMAL(38,10)", ("0.5", "0.05", "0.4999999999", "-0.5", "-0.4999999999", "1E27", None))
SMALL = (
    "DECIMAL(18,18)",
    (
        *("0.500000000000000001", "0.5", "0.500000000000000005", "-0.5"),
        *("-0.500000000000000005", None),
    ),
)
DIGITS_37 = (
    "DECIMAL(38,37)",
    (
        *("5.0000000000000000000000000000000000004", "5"),
        *("5.0000000000000000000000000000000000005", None),
    ),
)


def compare(
    predicate: str | Predicate, data_type: DataType, values: Sequence[Decimal | None]
) -> tuple[list[int], list[int], list[int], bool]:
    """Rows by brute force, by the filter and by an index, and whether the index is exact."""
    parsed = parse(predicate)
    integers = data_type.root != "DECIMAL"
    column = [int(value) if integers and value is not None else value for value in values]
    table = pa.table({"c": pa.array(column, data_type.to_arrow())})
    probe = probe_for(normalize(parsed), "c", data_type)
    keys = [
        None if value is None else int(value.scaleb(data_type.scale, EXACT)) for value in values
    ]
    kept = [row for row, key in enumerate(keys) if holds(probe, key)]
    positions = np.flatnonzero(matching(parsed, table, {"c": data_type})).tolist()
    expected = matching_rows({"c": column}, {"c": data_type}, parsed)
    return expected, positions, kept, bool(getattr(probe, "exact", True))


@pytest.mark.parametrize(
    ("column", "predicate", "rows"),
    [
        (WHOLE, "c = 5.5", [1]),
        (WHOLE, "c <=> 5.5", [1]),
        (WHOLE, "c <> 5.5", [0, 2, 3]),
        (WHOLE, "c < 5.5", [0, 3]),
        (WHOLE, "c <= 5.5", [0, 1, 3]),
        (WHOLE, "c > 5.5", [2]),
        (WHOLE, "c >= 5.5", [1, 2]),
        (WHOLE, "c = -5.5", [3]),
        (WHOLE, "c <> -5.5", [0, 1, 2]),
        (WHOLE, "c IN (5.5)", [1]),
        (WHOLE, "c IN (5.5, -5.5)", [1, 3]),
        (WHOLE, "c NOT IN (5.5)", [0, 2, 3]),
        (WHOLE, "c BETWEEN 5.5 AND 6.4", [1]),
        (WHOLE, "c BETWEEN 6.4 AND 6.6", [1, 2]),
        (DIGITS_37, "c = 5", [1]),
        (DIGITS_37, "c <> 5", [0, 2]),
        (DIGITS_37, "c < 5", []),
        (DIGITS_37, "c <= 5", [1]),
        (DIGITS_37, "c > 5", [0, 2]),
        (DIGITS_37, "c < 12", [0, 1, 2]),
        (DIGITS_37, "c BETWEEN 5 AND 12", [0, 1, 2]),
        (DIGITS_37, "c IN (5)", [0, 1, 2]),
        (DIGITS_37, "c IN (5, 6.5)", [0, 1, 2]),
        (DIGITS_37, "c IN (12345678901)", []),
        (SMALL, f"c IN (0.5, {HUGE})", [0, 1]),
        (SMALL, f"c IN (0.500000000000000001, {HUGE})", [0, 1]),
        (SMALL, f"c IN (-0.5, {HUGE})", [3]),
        (SMALL, f"c NOT IN (-0.5, {HUGE})", [0, 1, 2, 4]),
        (SMALL, f"c < {HUGE}", [0, 1, 2, 3, 4]),
        (SMALL, f"c IN ({HUGE}, 0.5, 5e0)", [0, 1, 2]),
        (TENTHS, f"c IN (0, {WIDEST})", [1, 2, 4]),
        (TENTHS, f"c IN (1, {WIDEST})", [0]),
        (TENTHS, f"c IN (-1, {WIDEST})", [3]),
        (TENTHS, "c = 1000000000000000000000000000", [5]),
        (TENTHS, "c < 99999999999999999999999999999999999999", [0, 1, 2, 3, 4, 5]),
        (TENTHS, "c IN (0.5, 0.50000000000)", [0]),
        (TENTHS, "c IN (10000000000000000000000000000, 0.050000000004)", [1]),
    ],
)
def test_decimals_match_the_rows_of_spark(
    column: tuple[str, tuple[str | None, ...]], predicate: str, rows: list[int]
) -> None:
    values = [None if text is None else Decimal(text) for text in column[1]]
    expected, matched, kept, exact = compare(predicate, DataType.parse(column[0]), values)
    assert (expected, matched) == (rows, rows)
    assert kept == rows if exact else set(kept) >= set(rows)
    assert exact == ("e0" not in predicate)


@pytest.mark.parametrize(
    ("column", "predicate", "rows"),
    [
        (LONGS, f"c = {JUST_ABOVE}", [0]),
        (LONGS, f"c <=> {JUST_ABOVE}", [0]),
        (LONGS, f"c <> {JUST_ABOVE}", [1, 2]),
        (LONGS, f"c < {JUST_ABOVE}", [0, 2]),
        (LONGS, f"c <= {JUST_ABOVE}", [0, 2]),
        (LONGS, f"c > {JUST_ABOVE}", [1]),
        (LONGS, f"c >= {JUST_ABOVE}", [1]),
        (LONGS, f"c = {JUST_BELOW}", [1]),
        (LONGS, f"c <> {JUST_BELOW}", [0, 2]),
        (LONGS, f"c < {JUST_BELOW}", [0, 2]),
        (LONGS, f"c <= {JUST_BELOW}", [0, 2]),
        (LONGS, f"c > {JUST_BELOW}", [1]),
        (LONGS, f"c >= {JUST_BELOW}", [1]),
        (LONGS, f"c BETWEEN {JUST_ABOVE} AND {JUST_BELOW}", []),
        (LONGS, f"NOT (c > {JUST_ABOVE})", [0, 2]),
        (LONG_EDGE, "c = 9223372036854775807.0000000000000000001", [1]),
        (LONG_EDGE, "c < 9223372036854775807.0000000000000000001", [0, 1]),
        (LONG_EDGE, "c > 9223372036854775807.0000000000000000001", []),
        (LONG_EDGE, "c >= 9223372036854775807.0000000000000000001", []),
        (LONG_EDGE, "c = 9223372036854775807.5", []),
        (LONG_EDGE, "c = 9223372036854775806.9999999999999999999", [1]),
        (INTS, "c = 5.000000000000000000000000001", []),
        (INTS, "c = 5.00000000000000000000000000001", [0]),
        (BYTES, "c = 5.00000000000000000000000000000000001", []),
        (BYTES, "c = 5.000000000000000000000000000000000001", [0]),
        (LONGS, f"c IN ({JUST_ABOVE})", [0]),
        (LONGS, f"c IN ({JUST_ABOVE}, 7)", [0]),
        (LONGS, f"c NOT IN ({JUST_ABOVE})", [1, 2]),
        (INTS, f"c IN (7, {DEEP})", []),
        (INTS, f"c IN (3000000000, {DEEP})", [0]),
        (INTS, f"c IN ({DEEP}, 3000000000)", [0]),
        (INTS, f"c IN ({DEEP}, 12345678901234567890)", [0]),
        (BYTES, "c IN (5.0000000000000000000000000000000001)", []),
        (BYTES, "c IN (5.0000000000000000000000000000000000001)", [0]),
        (BYTES, "c IN (1, 5.00000000000000000000000000001)", [0]),
    ],
)
def test_integers_and_decimals_match_the_rows_of_spark(
    column: tuple[str, tuple[str | None, ...]], predicate: str, rows: list[int]
) -> None:
    values = [None if text is None else Decimal(text) for text in column[1]]
    expected, matched, kept, exact = compare(predicate, DataType.parse(column[0]), values)
    assert (expected, matched) == (rows, rows)
    assert kept == rows if exact else set(kept) >= set(rows)
    assert exact or " IN " not in predicate


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (f"c IN ('7', {DEEP})", [0]),
        (f"c IN ({DEEP}, '7')", [0]),
    ],
)
def test_text_in_a_list_is_a_bigint_for_an_integer_column(predicate: str, rows: list[int]) -> None:
    table = pa.table({"c": pa.array([5, 6, None], pa.int32())})
    assert np.flatnonzero(matching(predicate, table)).tolist() == rows
    index = FileIndex.build(table, {"file-index.bitmap.columns": "c"})
    kept = index.evaluate(predicate).rows
    assert kept is not None
    assert set(kept) >= set(rows)


def test_an_index_finds_the_row_that_spark_rounds_to() -> None:
    wide = pa.table({"c": pa.array([5, 6, 7], pa.decimal128(38, 0))})
    index = FileIndex.build(wide, {"file-index.bsi.columns": "c"})
    assert index.evaluate("c = 5.5").rows == BitMap([1])
    longs = pa.table({"c": pa.array([4, 5, 6], pa.int64())})
    for kind in ("bloom-filter", "bitmap", "range-bitmap", "bsi"):
        index = FileIndex.build(longs, {f"file-index.{kind}.columns": "c"})
        kept = index.evaluate(f"c = {JUST_ABOVE}")
        assert not kept.skip
        assert kept.rows in (None, BitMap([1]))


def test_place_of_a_number_that_is_rounded() -> None:
    whole = DataType("DECIMAL", precision=38)
    assert key_range(Decimal("5.5"), "c", whole) == KeyRange(6, 7)
    assert key_range(Decimal("-5.5"), "c", whole) == KeyRange(-6, -5)
    assert key_range(Decimal("5.4"), "c", whole) == KeyRange(5, 6)
    assert key_range(Decimal(JUST_ABOVE), "c", BIGINT) == KeyRange(5, 6, exact=False)
    assert key_range(Decimal(JUST_BELOW), "c", BIGINT) == KeyRange(6, 7, exact=False)
    assert key_range(Decimal("5.5"), "c", BIGINT) == KeyRange(6, 6)


def test_place_of_a_number_in_a_list_that_rounds_the_column() -> None:
    digits = common_digits([Decimal("0.5"), int(HUGE)], FINE)
    half = 5 * 10**17
    assert digits == Digits(38, 17)
    assert key_range(Decimal("0.5"), "c", FINE, digits=digits) == KeyRange(half - 5, half + 5)
    assert key_range(Decimal("-0.5"), "c", FINE, digits=digits) == KeyRange(-half - 4, -half + 6)
    assert key_range(0, "c", FINE, digits=digits) == KeyRange(-4, 5)
    listed = common_digits([Decimal(JUST_ABOVE)], BIGINT)
    assert key_range(Decimal(JUST_ABOVE), "c", BIGINT, digits=listed) == KeyRange(5, 6)


@pytest.mark.parametrize(
    ("literals", "data_type", "digits"),
    [
        ([5], "DECIMAL(38,30)", Digits(38, 28)),
        ([3 * 10**9], "DECIMAL(38,30)", Digits(38, 18)),
        ([10**20], "DECIMAL(38,30)", Digits(38, 17)),
        (["7"], "INT", Digits(20, 0)),
        ([Decimal("0.05"), 1.5, None, True], "DECIMAL(3,1)", Digits(4, 2)),
        ([Decimal("1E-5000"), 10**38], "DECIMAL(3,1)", Digits(3, 1)),
        ([5], "DOUBLE", None),
    ],
)
def test_common_type_of_a_list(
    literals: list[object], data_type: str, digits: Digits | None
) -> None:
    assert common_digits(literals, DataType.parse(data_type)) == digits


@pytest.mark.parametrize(
    ("number", "digits"),
    [
        (0, Digits(1, 0)),
        (-12, Digits(2, 0)),
        (10**38 - 1, Digits(38, 0)),
        (10**38, None),
        (10**400, None),
        (Decimal("5.50"), Digits(3, 2)),
        (Decimal("0.00"), Digits(2, 2)),
        (Decimal("1E+3"), Digits(4, 0)),
        (Decimal("0E+3"), Digits(1, 0)),
        (Decimal("1E-38"), Digits(38, 38)),
        (Decimal("1E-39"), None),
        (Decimal("1E+999999"), None),
        (Decimal("NaN"), None),
    ],
)
def test_type_of_a_literal(number: int | Decimal, digits: Digits | None) -> None:
    assert digits_of(number) == digits


SCALES = st.integers(0, 38)
TYPES = st.one_of(
    st.sampled_from([DataType(root) for root in ("TINYINT", "SMALLINT", "INT", "BIGINT")]),
    SCALES.map(lambda scale: DataType("DECIMAL", precision=38, scale=scale)),
    st.integers(0, 18).map(lambda scale: DataType("DECIMAL", precision=18, scale=scale)),
)
LITERALS = st.one_of(
    st.integers(-20, 20),
    st.integers(-(10**39), 10**39),
    st.builds(lambda number, scale: Decimal(f"{number}E-{scale}"), st.integers(-60, 60), SCALES),
    st.builds(
        lambda number, scale: Decimal(f"{number}E-{scale}"),
        st.integers(-(10**38) + 1, 10**38 - 1),
        SCALES,
    ),
)


@given(TYPES, st.lists(LITERALS, min_size=1, max_size=3), st.data())
def test_rows_and_questions_agree_with_brute_force(
    data_type: DataType, literals: list[int | Decimal], data: st.DataObject
) -> None:
    # Spark: an integer compared with a bound beyond all integers is TRUE, also for null rows.
    assume(data_type.root == "DECIMAL" or all(-(2**62) < literal < 2**62 for literal in literals))
    bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
    top = 2 ** bits[data_type.root] if data_type.root in bits else 10**data_type.precision
    near = [_near(literal, data_type.scale, top) for literal in literals]
    unscaled = data.draw(st.lists(st.sampled_from(near) | st.integers(1 - top, top - 1)))
    steps = [number + step for number in (*unscaled, *near) for step in (-6, -5, -1, 0, 1, 4, 5)]
    values = [Decimal(f"{number}E-{data_type.scale}") for number in steps if abs(number) < top]
    for leaf in comparisons("c", literals):
        expected, matched, kept, exact = compare(leaf, data_type, [*values, None])
        assert matched == expected, leaf
        assert kept == expected if exact else set(kept) >= set(expected), leaf


def _near(literal: int | Decimal, scale: int, top: int) -> int:
    """The unscaled number closest to a literal that the column can hold."""
    scaled = Decimal(literal).scaleb(scale, EXACT)
    return max(1 - top, min(top - 1, int(scaled)))


def test_brute_force_of_a_literal_that_no_decimal_holds_is_exact() -> None:
    data_type = DataType("DECIMAL", precision=38)
    values = [Decimal(0), Decimal(1)]
    assert matching_rows({"c": values}, {"c": data_type}, col("c") > Decimal("1E-5000")) == [1]
