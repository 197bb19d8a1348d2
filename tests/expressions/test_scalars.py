"""Expressions on rows, with the values from Spark (`tests/spark/test_scalars.py`)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.config import Settings, using
from alcid.errors import ColumnError, EvaluationError, SparkNeededError
from alcid.expressions import col, matching
from alcid.expressions.columns import RowSchema, RowTable
from alcid.expressions.scalar_types import Batch
from alcid.expressions.scalars import bind_scalar

MOMENT = datetime.datetime(2024, 3, 31, 1, 30, 15, 250_000)
TABLE = pa.table(
    {
        "i": pa.array([2**31 - 1, -7, None], pa.int32()),
        "t": pa.array([127, 2, 3], pa.int8()),
        "d": pa.array([0.5, float("nan"), -0.0]),
        "m": pa.array([Decimal("1.25"), None, Decimal("-0.05")], pa.decimal128(10, 2)),
        "s": pa.array(["Straße", " b ", None]),
        "code": pa.array(["12", "2.6", "x"]),
        "day": pa.array([MOMENT.date(), None, datetime.date(1969, 12, 31)]),
        "wall": pa.array([MOMENT, None, MOMENT], pa.timestamp("ms")),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
        "nanos": pa.array([1, 2, 3], pa.timestamp("ns")),
        "list": pa.array([[1], [], None], pa.list_(pa.int32())),
        "geo": pa.array([{"at": {"n": 1}}, {"at": None}, None]),
    }
)


def values(text: str, *, zone: str = "UTC", ansi: bool = True) -> tuple[str, list[Any]]:
    """The type of an expression and its values: text, or the integers that store them."""
    schema = RowSchema(TABLE.schema)
    with using(Settings(zone, case_sensitive=False, ansi=ansi)):
        bound = bind_scalar(text, schema)
        result = bound.values(Batch(RowTable(TABLE, schema)))
    data = result.data.to_pylist() if isinstance(result.data, pa.Array) else result.data.tolist()
    listed = [value if ok else None for value, ok in zip(data, result.valid.tolist(), strict=True)]
    return str(bound.type), listed


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("t * 2", "INT", [254, 4, 6]),
        ("t % 2 + i * 1L", "BIGINT", [2**31, -7, None]),
        ("i / 2", "DOUBLE", [(2**31 - 1) / 2, -3.5, None]),
        ("i % 4", "INT", [3, -3, None]),
        ("m * 2", "DECIMAL(12, 2)", [250, None, -10]),
        ("m / 3", "DECIMAL(14, 6)", [416_667, None, -16_667]),
        ("m % 0.2", "DECIMAL(2, 2)", [5, None, -5]),
        ("-m", "DECIMAL(10, 2)", [-125, None, 5]),
        ("upper(s)", "STRING", ["STRASSE", " B ", None]),
        ("length(s)", "INT", [6, 3, None]),
        ("substr(s, -2)", "STRING", ["ße", "b ", None]),
        ("substring(s, 0, 2)", "STRING", ["St", " b", None]),
        ("trim(s) || '!'", "STRING", ["Straße!", "b!", None]),
        ("concat(s, t)", "STRING", ["Straße127", " b 2", None]),
        ("coalesce(s, code)", "STRING", ["Straße", " b ", "x"]),
        ("coalesce(i, t)", "INT", [2**31 - 1, -7, 3]),
        ("year(day)", "INT", [2024, None, 1969]),
        ("month(at) * 100 + day(wall)", "INT", [331, None, 331]),
        ("hour(at)", "INT", [1, None, 1]),
        ("CAST(m AS INT)", "INT", [1, None, 0]),
        ("CAST(m AS STRING)", "STRING", ["1.25", None, "-0.05"]),
        (
            "CAST(wall AS STRING)",
            "STRING",
            ["2024-03-31 01:30:15.25", None, "2024-03-31 01:30:15.25"],
        ),
        ("CAST(at AS DATE)", "DATE", [19_813, None, 19_813]),
        ("try_cast(code AS INT)", "INT", [12, None, None]),
        ("geo.at.n", "BIGINT", [1, None, None]),
    ],
)
def test_values(text: str, kind: str, expected: list[Any]) -> None:
    assert values(text) == (kind, expected)


@pytest.mark.parametrize(
    ("text", "problem", "legacy"),
    [
        ("i + 1", r"INT overflows in \+", [-(2**31), -6, None]),
        ("-(i - 1 + 1 - 2147483647 - 1 - 2147483647) - 3", "INT overflows in -", None),
        ("CAST(i AS TINYINT)", "does not fit into TINYINT", [-1, -7, None]),
        ("i / (t - 2)", "division by zero", [(2**31 - 1) / 125, None, None]),
        ("i % (t - 2)", "remainder by zero", [2147483647 % 125, None, None]),
        ("CAST(code AS INT)", "the text '2.6' is no INT", [12, 2, None]),
        ("CAST(m AS DECIMAL(2, 2))", r"does not fit into DECIMAL\(2, 2\)", [None, None, -5]),
        ("CAST(d AS INT)", "does not fit into INT", [0, 0, 0]),
    ],
)
def test_ansi_fails_where_the_legacy_rules_wrap_or_give_null(
    text: str, problem: str, legacy: list[Any] | None
) -> None:
    with pytest.raises(EvaluationError, match=problem):
        values(text)
    if legacy is not None:
        assert values(text, ansi=False)[1] == legacy


def test_times_are_those_of_the_zone_of_the_session() -> None:
    vienna = "Europe/Vienna"  # where it was 3:30 in the first hour of summer time
    assert values("hour(at)", zone=vienna)[1] == [3, None, 3]
    assert values("hour(wall)", zone=vienna)[1] == [1, None, 1]
    text = "date_trunc('DAY', at)"
    begins = datetime.datetime(2024, 3, 30, 23, tzinfo=datetime.UTC)
    assert values(text, zone=vienna)[1][0] == int(begins.timestamp()) * 1_000_000
    assert values("CAST(at AS STRING)", zone=vienna)[1][0] == "2024-03-31 03:30:15.25"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("soundex(s) = 'x'", r"only Spark can evaluate soundex\(s\)$"),
        ("nanos > wall", r"only Spark can evaluate nanos: expressions do not take TIMESTAMP\(9\)$"),
        ("list = list", "expressions do not take ARRAY<INT>"),
        ("s > t", "STRING beside TINYINT: write the CAST that is meant"),
        ("CAST(d AS STRING) = '0.5'", "DOUBLE as STRING"),
        ("substr(s, t) = 'x'", "positions and lengths are literals"),
        ("geo.at.x = 1", "geo has no field x"),
        ("s.t = 1", "s has no field t: it is string"),
        ("length(s)", "length.s. is of type INT, expected BOOLEAN"),
        ("t + 1 > 99999999999999999999", "a literal beyond BIGINT"),
        ("day = DATE 'today'", "only Spark can evaluate CAST.'today' AS DATE"),
        ("at < TIMESTAMP 'now'", "only Spark can evaluate CAST.'now' AS TIMESTAMP"),
        ("date_trunc('day', at) > wall AND day + 1 > day", "it takes numbers"),
    ],
)
def test_what_is_left_to_spark_is_named(text: str, problem: str) -> None:
    for rows in (TABLE, TABLE[:0]):
        with pytest.raises(SparkNeededError, match=problem):
            matching(text, rows)


def test_columns_that_do_not_exist_are_named() -> None:
    with pytest.raises(ColumnError, match="column nothing"):
        matching("upper(nothing) = 'x'", TABLE)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("t > i", [False, True, False]),
        ("d = d", [True, True, True]),
        ("d >= 0.0 AND d <= d", [True, True, True]),
        ("i + 0 <=> NULL", [False, False, True]),
        ("i + 0 IN (1, NULL, -7)", [False, True, False]),
        ("i + 0 NOT IN (1, NULL)", [False, False, False]),
        ("NOT (upper(s) LIKE 'STR%')", [False, True, False]),
        ("length(s) BETWEEN 4 AND 9", [True, False, False]),
        ("upper(s) IS NULL OR m * 2 = 2.5", [True, False, True]),
        ("(i > t) IS NOT TRUE", [False, True, True]),
    ],
)
def test_conditions(where: str, expected: list[bool]) -> None:
    assert matching(where, TABLE).tolist() == expected


def test_two_columns_in_python() -> None:
    assert matching(col("t") < col("i"), TABLE).tolist() == [True, False, False]
    assert matching(~(col("t") < col("i")), TABLE).tolist() == [False, True, False]


@given(st.lists(st.text(max_size=8), max_size=6), st.integers(-10, 10), st.integers(-2, 12))
def test_substr_of_any_text(texts: list[str], position: int, length: int) -> None:
    rows = pa.table({"s": pa.array(texts, pa.string())})
    schema = RowSchema(rows.schema)
    bound = bind_scalar(f"substr(s, {position}, {length})", schema)
    result = bound.values(Batch(RowTable(rows, schema)))

    def expected(text: str) -> str:
        start = position - 1 if position > 0 else len(text) + position if position else 0
        return text[max(start, 0) : max(start + length, 0)] if length > 0 else ""

    assert result.data.to_pylist() == [expected(text) for text in texts]
