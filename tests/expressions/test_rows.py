"""A predicate applied to rows: what keys cannot decide, and what only Spark can."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from alcid import (
    DataType,
    FileIndex,
    col,
    config,
)
from alcid.errors import (
    ColumnError,
    EvaluationError,
    LiteralError,
    PredicateError,
    SparkNeededError,
    UnsupportedError,
)
from alcid.expressions import (
    In,
    Like,
    Predicate,
    SessionTimestamp,
    matching,
)

NTZ = pa.timestamp("us")
BIG = 2**53


def rows(
    predicate: str | Predicate,
    values: Sequence[Any] | npt.NDArray[Any],
    arrow_type: Any = None,
    as_type: str = "",
) -> list[int]:
    """The matching rows of a column `c`."""
    types = {"c": DataType.parse(as_type)} if as_type else None
    mask = matching(predicate, pa.table({"c": pa.array(values, arrow_type)}), types)
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize("arrow_type", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("c = 0", [2, 3]),
        ("c <> 0", [0, 1, 4, 5, 6]),
        ("c > 1", [5, 6]),
        ("c <= CAST('Infinity' AS DOUBLE)", [0, 1, 2, 3, 4, 5]),
        ("c >= CAST('NaN' AS DOUBLE)", [6]),
        ("c < CAST('NaN' AS DOUBLE)", [0, 1, 2, 3, 4, 5]),
        ("c IN (0, -1.5, CAST('NaN' AS DOUBLE))", [1, 2, 3, 6]),
        ("c NOT IN (0, -1.5, CAST('NaN' AS DOUBLE))", [0, 4, 5]),
        ("c BETWEEN -1.5 AND 0", [1, 2, 3]),
        ("NOT isnan(c)", [0, 1, 2, 3, 4, 5, 7]),
        ("NOT (c < 1)", [4, 5, 6]),
        ("c IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)", [2, 3, 4]),
        ("c IN (9, 8, 7, 6, 5, 4, 3, 2, 1, CAST('NaN' AS DOUBLE))", [4, 6]),
    ],
)
def test_floats_are_ordered_as_spark_orders_them(
    arrow_type: Any, predicate: str, expected: list[int]
) -> None:
    values = np.array([-math.inf, -1.5, -0.0, 0.0, 1.0, math.inf, math.nan])
    column = pa.concat_arrays([pa.array(values).cast(arrow_type), pa.nulls(1, arrow_type)])
    assert np.flatnonzero(matching(predicate, pa.table({"c": column}))).tolist() == expected


def test_every_nan_is_the_same() -> None:
    bits = np.array([0x7FF8000000000000, -1, 0x7FF0000000000001, 0], np.int64)
    column = pa.array(bits.view(np.float64))
    assert matching("isnan(c)", pa.table({"c": column})).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("c") == 2.0**53, [0, 1]),
        (col("c") > 2.0**53, [2]),
        (col("c") < 2.0**53 + 2, [0, 1]),
        (col("c") != 2.0**53, [2]),
        (col("c").isin([BIG + 1, 0.5]), [0, 1]),
        (col("c").isin([BIG + 1, Decimal("0.5")]), [1]),
        (col("c").isin([BIG + 1, "7"]), [1]),
        (col("c").isin(["7", BIG + 1, Decimal("0.5")]), [1]),
        (col("c").isin([BIG + 1, Decimal("0.5"), "7"]), [0, 1]),
        (~col("c").isin([BIG + 1, 2**70, "7"]), [2]),
    ],
    ids=str,
)
def test_a_double_equals_every_integer_that_spark_rounds_to_it(
    predicate: Predicate, expected: list[int]
) -> None:
    assert rows(predicate, [BIG, BIG + 1, BIG + 2, None], pa.int64()) == expected


def test_text_in_a_list_makes_doubles_of_decimals() -> None:
    values = [Decimal(BIG), Decimal(BIG + 1), Decimal(BIG + 2)]
    assert rows(col("c").isin([BIG + 1, 5]), values, pa.decimal128(18, 0)) == [1]
    assert rows(col("c").isin([BIG + 1, "5"]), values, pa.decimal128(18, 0)) == [0, 1]


def test_a_comparison_that_spark_takes_for_true_matches_null_rows() -> None:
    assert rows("c < 9223372036854775808", [1, None], pa.int64()) == [0, 1]
    assert rows("NOT (c >= 9223372036854775808)", [1, None], pa.int64()) == [0, 1]
    assert rows("c <= 9223372036854775807", [1, None], pa.int64()) == [0]
    encoded = pa.table({"c": pa.array([1, None]).dictionary_encode()})
    assert matching("c < 9223372036854775808", encoded).tolist() == [True, True]


@pytest.mark.parametrize("width", [5, 18, 19, 38])
def test_decimals_of_any_width(width: int) -> None:
    most = 10**width - 1
    values = [Decimal(n) for n in (-most, -1, 0, 1, most)]
    kind = pa.decimal128(width, 0)
    assert rows(col("c") < 0, values, kind) == [0, 1]
    assert rows(col("c") >= most, values, kind) == [4]
    assert rows(col("c").isin([-most, 1, *range(100, 120)]), values, kind) == [0, 3]
    assert rows(col("c") > Decimal("-0.5"), values, kind) == [2, 3, 4]
    assert rows(col("c") < 2**200, values, pa.decimal256(width, 0)) == [0, 1, 2, 3, 4]


def test_unsigned_integers_keep_their_upper_half() -> None:
    values = [0, 2**63, 2**64 - 1, None]
    assert rows(col("c") >= 2**63, values, pa.uint64()) == [1, 2]
    assert rows(col("c") < 2**64, values, pa.uint64()) == [0, 1, 2]
    assert rows(col("c") > -1, [0, 255], pa.uint8()) == [0, 1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64()])
def test_long_lists(kind: Any) -> None:
    values = np.arange(128)
    listed = [*range(0, 128, 3), 127, 2**40, -(2**40), *range(1000, 9000, 7)]
    expected = np.flatnonzero(np.isin(values, listed)).tolist()
    assert rows(col("c").isin(listed), values, kind) == expected
    others = np.setdiff1d(values, expected).tolist()
    assert rows(~col("c").isin(listed), values, kind) == others


def test_values_on_either_side_of_a_dense_list() -> None:
    values = [-(2**63), -1, 0, 19, 20, 21, 2**63 - 1]
    assert rows(col("c").isin(range(0, 21, 2)), values, pa.int64()) == [2, 4]


def test_a_long_list_of_doubles_that_each_equal_many_integers() -> None:
    listed = [float(n) for n in range(2**60, 2**60 + 256 * 20, 512)]
    values = np.arange(2**60 - 300, 2**60 + 6000, 50)
    expected = np.flatnonzero(np.isin(values.astype(float), listed)).tolist()
    assert rows(col("c").isin(listed), values, pa.int64()) == expected


CHARS = ["", "a", "a ", "ab", "a\t", "a \t", "abcde", "a\0", None]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("c") == "a", [1, 2]),
        (col("c") == "a   ", [1, 2]),
        (col("c") != "a", [0, 3, 4, 5, 6, 7]),
        (col("c") < "a", [0, 4, 5, 7]),
        (col("c") >= "a", [1, 2, 3, 6]),
        (col("c") < "a\tb", [0, 4, 7]),
        (col("c") > "a\tb", [1, 2, 3, 5, 6]),
        (col("c") <= "abcde ", [0, 1, 2, 3, 4, 5, 6, 7]),
        (col("c").isin(["", "ab  "]), [0, 3]),
        (~col("c").isin(["", "ab  "]), [1, 2, 4, 5, 6, 7]),
        (col("c").between("a", "ab"), [1, 2, 3]),
        (col("c").starts_with("a "), [1, 2, 5]),
        (col("c").starts_with("a    "), []),
        (~col("c").starts_with("a "), [0, 3, 4, 6, 7]),
        (Like("c", "a   ", prefix=False), [1, 2]),
        (Like("c", "a", prefix=False), []),
        (Like("c", "abcde", prefix=False), [6]),
        (Like("c", "a", prefix=False, negated=True), [0, 1, 2, 3, 4, 5, 6, 7]),
        ("c LIKE 'a___'", [1, 2, 3, 4, 5, 7]),
        ("c NOT LIKE '%  '", [5, 6]),
    ],
    ids=repr,
)
def test_char_is_compared_padded(predicate: str | Predicate, expected: list[int]) -> None:
    assert rows(predicate, CHARS, pa.string(), "CHAR(4)") == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("c LIKE '%b'", [0, 3]),
        ("c LIKE 'a_b'", [3]),
        ("c LIKE '_'", [1, 2]),
        ("c LIKE '%.%'", [5]),
        (r"c LIKE '%\\%%'", [4]),
        (r"c LIKE '%\\\\%'", [6]),
        ("c LIKE '%x%%' ESCAPE 'x'", [4]),
        ("c LIKE '_%_'", [0, 3, 4, 5, 6]),
        ("c NOT LIKE '%b%'", [1, 2, 5, 6]),
        ("NOT (c NOT LIKE '%a%b%')", [0, 3, 4]),
        ("c LIKE '%' || 'b'", None),
        ("c LIKE 'a/b%_' ESCAPE '/'", None),
    ],
)
def test_like_with_any_pattern(predicate: str, expected: list[int] | None) -> None:
    values = ["ab", "a", "\U0001f427", "a\nb", "ab%", "c.", "c\\", None]
    if expected is None:
        with pytest.raises(PredicateError, match="only Spark can evaluate c LIKE"):
            rows(predicate, values)
    else:
        assert rows(predicate, values) == expected
        encoded = pa.table({"c": pa.array(values, pa.large_string()).dictionary_encode()})
        assert np.flatnonzero(matching(predicate, encoded)).tolist() == expected


def test_nanoseconds_count() -> None:
    moments = np.array([0, 1, 999, 1000], "M8[ns]")
    assert rows(col("c") == np.datetime64(1, "ns"), moments) == [1]
    assert rows(col("c") > np.datetime64(0, "us"), moments) == [1, 2, 3]
    assert rows("c <= '1970-01-01 00:00:00.000000999'", moments) == [0, 1, 2]
    # The values count, even if the type promises less.
    table = pa.table({"c": moments})
    finer = matching("c > '1970-01-01 00:00:00.000000001'", table, {"c": "TIMESTAMP(6)"})
    assert finer.tolist() == [False, False, True, True]
    times = pa.array([0, 1, 1_000_000], pa.int64()).view(pa.time64("ns"))
    table = pa.table({"c": times})
    assert matching("c = TIME '00:00:00'", table).tolist() == [True, False, False]
    assert matching(col("c") < "00:00:00.000000001", table).tolist() == [True, False, False]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_literal_between_two_ticks_keeps_its_place(unit: str) -> None:
    between = datetime.datetime(1969, 12, 31, 23, 59, 59, 500_001)
    values = np.array([-1, 0, 1], "M8[s]").astype(f"M8[{unit}]")
    assert rows(col("c") < between, values) == [0]
    assert rows(col("c") >= between, values) == [1, 2]
    assert rows(col("c") == between, values) == []
    far = np.datetime64(2**62, "s")
    assert rows(col("c") < far, values) == [0, 1, 2]


def test_moments_beyond_the_keys_of_an_index() -> None:
    far = np.datetime64(2**62, "s")
    assert rows(col("c") == far, np.array([far, far - 1])) == [0]


def test_a_wall_clock_against_instants_where_a_zone_skips_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "timezone", "Europe/Vienna")
    clocks = [datetime.datetime(2024, 3, 31, *at) for at in ((2, 15), (2, 30), (3, 0), (3, 30))]
    # A single instant becomes a wall clock.
    assert rows("c = TIMESTAMP '2024-03-31 02:30:00'", clocks, NTZ) == [3]
    assert rows("c < TIMESTAMP '2024-03-31 03:30:00'", clocks, NTZ) == [0, 1, 2]
    assert rows("c IN (TIMESTAMP '2024-03-31 03:30:00')", clocks, NTZ) == [3]
    # Next to other literals, wall clocks become instants.
    listed = "c IN (TIMESTAMP '2024-03-31 03:30:00', TIMESTAMP '2024-03-31 03:00:00')"
    assert rows(listed, clocks, NTZ) == [1, 2, 3]
    mixed = [SessionTimestamp("2024-03-31 02:30:00"), clocks[0], datetime.date(2024, 3, 31)]
    assert rows(In("c", tuple(mixed)), clocks, NTZ) == [0, 1, 3]
    assert rows(col("c").isin([clocks[1], clocks[2]]), clocks, NTZ) == [1, 2]
    # Two hours later nothing is skipped any more.
    late = SessionTimestamp("2024-03-31 04:30:00")
    assert rows(In("c", (late, clocks[2])), clocks, NTZ) == [2]


def test_text_among_dates_has_a_time_only_next_to_a_timestamp() -> None:
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    noon = datetime.datetime(2024, 1, 3, 12)
    assert rows(col("c").isin(["2024-01-01 12:00:00", days[1]]), days) == [0, 1]
    assert rows(col("c").isin(["2024-01-01 12:00:00", "2024-01-02", noon]), days) == [1]
    zoned = SessionTimestamp("2024-01-03 00:00:00")
    assert rows(In("c", ("2024-01-01 12:00:00", "2024-01-02", zoned)), days) == [1, 2]
    with pytest.raises(LiteralError, match="a list with timestamps does not take the text"):
        rows(col("c").isin(["2024-01-01 noon", noon]), days)


def test_a_day_that_a_zone_skipped_is_the_next_one_among_instants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "timezone", "Pacific/Apia")
    days = [datetime.date(2011, 12, day) for day in (29, 30, 31)]
    assert rows("c IN (DATE '2011-12-30', TIMESTAMP '2000-01-01 00:00:00')", days) == [1, 2]


def test_what_only_spark_can_evaluate_is_refused_whatever_the_rows() -> None:
    table = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"]})
    unknown = "soundex(b) = 'X000'"
    for where in (f"a > 5 AND {unknown}", f"a IS NULL OR a > 0 OR {unknown}", unknown):
        for rows in (table, table[:0]):
            with pytest.raises(SparkNeededError, match=r"^only Spark can evaluate soundex\(b\)$"):
                matching(where, rows)
    with pytest.raises(SparkNeededError, match="a < b: BIGINT beside STRING: write the CAST"):
        matching(col("a") < col("b"), table)
    with pytest.raises(SparkNeededError, match="only Spark can evaluate a LIKE '1%'"):
        matching("a LIKE '1%'", table)
    with pytest.raises(SparkNeededError, match="only Spark can evaluate a LIKE '%1'"):
        matching("a LIKE '%1'", table)


def test_expressions_fail_only_for_rows_that_depend_on_them() -> None:
    table = pa.table({"a": [1, 2, None], "b": ["1", "y", "z"]})
    assert matching("CAST(b AS INT) = 1 AND a = 1", table).tolist() == [True, False, False]
    assert matching("CAST(b AS INT) > 1 OR a > 0 OR a IS NULL", table).all()
    assert matching("a < 2 AND (a = 2 OR CAST(b AS INT) = 1)", table).tolist() == [
        True,
        False,
        False,
    ]
    assert matching("coalesce(a, CAST(b AS INT)) = 1", table[:2]).tolist() == [True, False]
    with pytest.raises(EvaluationError, match="the text 'z' is no INT"):
        matching("coalesce(a, CAST(b AS INT)) = 1", table)
    with pytest.raises(EvaluationError, match="the text 'y' is no INT"):
        matching("a > 0 AND NOT CAST(b AS INT) = 1", table)


def test_a_literal_is_checked_though_no_row_depends_on_it() -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(LiteralError, match="column a of type BIGINT does not take the str 'x'"):
        matching("FALSE AND a = 'x'", table)


def test_names_resolve_as_spark_resolves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table([[1], [2], [3]], names=["id", "Twice", "TWICE"])
    assert matching("ID = 1", table).tolist() == [True]
    with pytest.raises(ColumnError, match="fits more than one column: Twice, TWICE"):
        matching("twice = 1", table)
    with pytest.raises(ColumnError, match="column ident: not in the table"):
        matching("ident = 1 OR id = 1", table)
    monkeypatch.setattr(config, "case_sensitive", True)
    assert matching("TWICE = 3", table).tolist() == [True]
    with pytest.raises(ColumnError, match="column ID: not in the table"):
        matching("ID = 1", table)


def test_keys_of_a_map() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    maps = pa.array([[("k", 1), ("j", 2)], [("j", 1)], None, []], kind)
    for table in (pa.table({"m": maps}), pa.RecordBatch.from_arrays([maps], ["m"])):
        assert matching("m['k'] = 1", table).tolist() == [True, False, False, False]
        assert matching(col("M[j]") >= 1, table).tolist() == [True, True, False, False]
        assert matching("m['k'] IS NULL", table).tolist() == [False, True, True, True]
        assert matching("m IS NULL", table).tolist() == [False, False, True, False]
    assert matching("m['k'] = 1", pa.table({"m": maps[:0]})).tolist() == []
    with pytest.raises(UnsupportedError, match=r"column a\[k\]: found int64, expected a map"):
        matching("a['k'] = 1", pa.table({"a": [1]}))


def test_types_that_are_not_compared_are_asked_for_null() -> None:
    lists = pa.array([[1], None, []], pa.list_(pa.int8()))
    table = pa.table({"c": lists, "v": pa.nulls(3), "d": pa.array([1, None, 2], pa.duration("s"))})
    assert matching("c IS NOT NULL", table).tolist() == [True, False, True]
    assert matching("d IS NULL", table).tolist() == [False, True, False]
    assert matching("v IS NULL", table).all()
    assert not matching("v = 1 OR v <> 1 OR v LIKE '_x'", table).any()
    with pytest.raises(LiteralError, match="no literal can be compared with this type"):
        matching("c = 1", table)
    with pytest.raises(UnsupportedError, match=r"column d: Arrow type duration\[s\]"):
        matching("d = 1", table)


def test_a_type_that_is_not_what_the_column_holds_is_an_error() -> None:
    table = pa.table({"c": ["1"]})
    with pytest.raises(UnsupportedError, match="column c: found string, expected INT"):
        matching("c = 1", table, {"C": "INT"})
    with pytest.raises(UnsupportedError, match="rows: found dict, expected a pyarrow Table"):
        matching("c = 1", {"c": [1]})


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["b", None, "a"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), ["a", "b"]),
        pa.DictionaryArray.from_arrays(pa.array([1, 2, 0], pa.int8()), ["a", "b", None]),
        pa.DictionaryArray.from_arrays(pa.array([1, 2, 0], pa.int64()), ["a", "b", None, "c"]),
        pa.array(["b", None, "a"], pa.string_view()),
        pa.array(["x", "b", None, "a"])[1:],
        pa.chunked_array([["b"], [], [None, "a"]], pa.large_string()),
        pa.compute.run_end_encode(pa.array(["b", None, "a"])),
    ],
    ids=lambda array: str(array.type),
)
def test_however_arrow_holds_a_column(array: Any) -> None:
    table = pa.table({"c": array})
    assert matching("c > 'a'", table).tolist() == [True, False, False]
    assert matching("c <> 'b'", table).tolist() == [False, False, True]
    assert matching("c IS NULL", table).tolist() == [False, True, False]
    assert matching("c <=> NULL OR c = 'a'", table).tolist() == [False, True, True]
    assert matching("c IN ('a', 'c', 'd', 'e', 'f')", table).tolist() == [False, False, True]


def test_tables_without_rows_chunks_or_values() -> None:
    table = pa.table({"c": pa.chunked_array([], pa.int64())})
    assert matching("c = 1", table).tolist() == []
    assert (
        matching("c = 1", pa.table({"c": pa.nulls(2, pa.decimal128(30))})).tolist() == [False] * 2
    )
    assert matching("TRUE", pa.table({"c": [1, 2]})).tolist() == [True, True]
    assert matching("NULL OR FALSE", pa.table({"c": [1, 2]})).tolist() == [False, False]
    empty = pa.DictionaryArray.from_arrays(pa.nulls(2, pa.int32()), pa.array([], pa.int64()))
    assert matching("c = 1", pa.table({"c": empty})).tolist() == [False, False]


def test_rows_that_an_index_found_are_narrowed_to_those_that_match() -> None:
    table = pa.table({"c": pa.array([0, 1, 999, 1000, None], pa.timestamp("ns"))})
    index = FileIndex.build(table, {"file-index.bitmap.columns": "c"})
    predicate = col("c") == np.datetime64(1, "ns")
    kept = index.evaluate(predicate)
    assert kept.rows is not None
    positions = kept.rows.to_array()
    assert list(positions) == [0, 1, 2]
    assert not kept.exact
    assert matching(predicate, table.take(pa.array(positions))).tolist() == [False, True, False]


def test_a_predicate_nested_too_deeply_is_an_error() -> None:
    predicate = col("c") == 1
    for level in range(5000):
        other = col("c") > level
        predicate = (predicate & other) if level % 2 else (predicate | other)
    with pytest.raises(PredicateError, match="nested too deeply"):
        matching(predicate, pa.table({"c": [1]}))
