"""Expressions that are evaluated in process, beside Spark: values, types, errors and refusals."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.errors import EvaluationError, SparkNeededError
from alcid.options import Settings, using
from alcid.predicate.row_table import RowTable
from alcid.predicate.scalar_nodes import Batch
from alcid.predicate.scalar_values import Values, from_arrow
from alcid.predicate.scalars import bind_scalar
from alcid.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 24


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([values[row % len(values)] for row in range(ROWS)], kind)


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


MOMENTS = [
    _moment("2024-03-31T00:59:59.999999"),
    _moment("2024-03-31T01:30:00"),
    _moment("2024-10-27T00:30:00"),
    _moment("2024-10-27T01:30:15.5"),
    None,
    _moment("1969-12-31T23:59:59.123456"),
    _moment("2000-02-29T12:00:00"),
    _moment("2023-01-01T00:00:00"),
    _moment("1883-11-18T12:03:57"),
    _moment("0001-01-05T00:00:00"),
    _moment("9998-12-31T23:59:59"),
]
TABLE = pa.table(
    {
        "t": _column([1, -128, None, 127, 0, 5], pa.int8()),
        "h": _column([7, -32768, 32767, None, 3], pa.int16()),
        "i": _column([1, 2**31 - 1, -(2**31), None, 0, -7, 12], pa.int32()),
        "j": _column([3, None, 2, -1, 5, 2**31 - 1, 100], pa.int32()),
        "b": _column([2**63 - 1, -(2**63), 3, None, 0, -1, 3_037_000_500, 7], pa.int64()),
        "c": _column([1, -1, 2, 2**62, None, 0, 3_037_000_500], pa.int64()),
        "f": _column([1.5, float("nan"), None, -0.0, 3.4e38, float("inf"), 0.1], pa.float32()),
        "d": _column(
            [0.1, math.nan, -0.0, None, 1e300, math.inf, -2.5, 127.9, 2147483647.5, 9.3e18],
            pa.float64(),
        ),
        "e": _column([0.2, 0.0, math.nan, 5.5, -1e300, None, 3.0], pa.float64()),
        "m": _column(
            [Decimal("1.25"), Decimal("-99999999.99"), None, Decimal("0.00"), Decimal("2.50")],
            pa.decimal128(10, 2),
        ),
        "n": _column(
            [Decimal("0.3333"), None, Decimal("-12.5000"), Decimal("7.0000"), Decimal("0.0000")],
            pa.decimal128(7, 4),
        ),
        "w": _column(
            [Decimal(10) ** 24, Decimal("-3"), None, Decimal(9007199254740993)],
            pa.decimal128(25, 0),
        ),
        "s": _column(
            ["abc", " Wien ", None, "", "Straße", "ΑΣ ΟΔΟΣ", "ǆ", "a\t", "x" * 9, "😀é", "İ"],
            pa.string(),
        ),
        "u": _column(
            ["12", " -7 ", "2.6", "x", None, "1e3", "99999999999", "+5", "", "true"], pa.string()
        ),
        "v": _column(["1", "20", None, "-300"], pa.string()),
        "y": _column(
            ["2024-02-30", "2024-2-9", None, "2024-03-31 02:30:00", "1582-10-10"], pa.string()
        ),
        "k": _column([True, False, None], pa.bool_()),
        "q": _column([None if m is None else m.date() for m in MOMENTS], pa.date32()),
        "x": _column(MOMENTS, pa.timestamp("us")),
        "z": _column(MOMENTS, pa.timestamp("us", "UTC")),
        "g": _column(
            [
                {"country": "AT", "at": {"lat": 1.5, "n": 3}},
                None,
                {"country": None, "at": None},
                {"country": "de", "at": {"lat": None, "n": None}},
            ],
            pa.struct(
                [
                    ("country", pa.string()),
                    ("at", pa.struct([("lat", pa.float64()), ("n", pa.int32())])),
                ]
            ),
        ),
    }
)

NUMBERS = ["t", "h", "i", "b", "f", "d", "m", "n", "w", "1", "2.5", "1e0"]
EXPRESSIONS = [
    *(f"{a} {sign} {b}" for sign in "+-*/%" for a in NUMBERS for b in NUMBERS if a != b),
    *(f"{a} {sign} {b}" for sign in "+-*/%" for a, b in ("ij", "bc", "de", "ii", "bb", "mm")),
    *(f"-{name}" for name in "tibfdmw"),
    *(
        f"{a} {sign} {b}"
        for sign in ("=", "<", ">=", "<=>")
        for a, b in (
            "ij",
            "bc",
            "de",
            "fd",
            "mn",
            "mi",
            "wb",
            "fi",
            "bd",
            "md",
            "su",
            "qx",
            "xz",
            "qz",
            "kk",
        )
    ),
    *(
        f"CAST({a} AS {kind})"
        for a in "thibfdmnwk"
        for kind in (
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(5,1)",
            "DECIMAL(38,10)",
            "DECIMAL(20)",
            "STRING",
        )
    ),
    *(
        f"{word}({a} AS {kind})"
        for word in ("CAST", "TRY_CAST")
        for a in "uvy"
        for kind in (
            "BOOLEAN",
            "TINYINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(5,1)",
            "DECIMAL(30,3)",
            "DATE",
            "TIMESTAMP",
            "TIMESTAMP_NTZ",
        )
    ),
    *(
        f"CAST({a} AS {kind})"
        for a in "qxz"
        for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING", "INT")
    ),
    *(
        f"{name}({a})"
        for name in ("year", "quarter", "month", "day", "dayofmonth", "hour", "minute", "second")
        for a in "qxz"
    ),
    *(
        f"date_trunc('{unit}', {a})"
        for unit in (
            "YEAR",
            "quarter",
            "MON",
            "week",
            "DD",
            "hour",
            "minute",
            "second",
            "millisecond",
            "microsecond",
            "nonsense",
        )
        for a in "qxz"
    ),
    *(
        f"{name}(s)"
        for name in (
            "upper",
            "lower",
            "ucase",
            "lcase",
            "length",
            "char_length",
            "trim",
            "ltrim",
            "rtrim",
        )
    ),
    *(f"substr(s, {start})" for start in (0, 1, 3, -1, -4, -20, 20)),
    *(
        f"substring(s, {start}, {length})"
        for start in (0, 1, 2, -1, -3, -20)
        for length in (0, 1, 2, 18, -1)
    ),
    "concat(s, u)",
    "concat(s, '-', i)",
    "s || u",
    "concat(i, j)",
    "concat(s, NULL)",
    "coalesce(i, j)",
    "coalesce(i, b, 0)",
    "coalesce(s, u, 'none')",
    "coalesce(m, n)",
    "coalesce(d, i)",
    "coalesce(f, i)",
    "coalesce(q, x)",
    "coalesce(s, i)",
    "coalesce(NULL, i)",
    "coalesce(t, CAST(u AS INT))",
    "coalesce(m, 1)",
    "coalesce(i, 2.5)",
    "g.country",
    "g.at.lat",
    "g.at.n + i",
    "G.Country",
    "g.COUNTRY = 'AT'",
    "upper(g.country)",
    "g.at.n IS NULL",
    "g.at.n BETWEEN 1 AND 5",
    "g.country IN ('AT', 'DE')",
    "g.country NOT IN ('AT', NULL)",
    "g.country LIKE 'A%'",
    "g.country NOT LIKE '_e'",
    "i + 1 IN (2, 3.0, NULL)",
    "i % 2 = 0 OR NOT k",
    "k AND i > j",
    "(i > j) IS NULL",
    "(i > j) IS TRUE",
    "NOT (i > j AND s = u)",
    "i + 1 > 2.5",
    "i * 2 = 2e0",
    "length(s) = 3",
    "m * 2 > 2.5",
    "m + 1L > 0",
    "m / 3 = 0.416667",
    "year(z) = 2024",
    "year(z) = '2024'",
    "date_trunc('month', z) = '2024-03-01'",
    "date_trunc('day', x) >= DATE '2024-03-31'",
    "CAST(z AS DATE) = '2024-03-31'",
    "CAST(z AS DATE) = DATE '2024-10-27'",
    "x + 0 = 1",
    "date_trunc('day', z) = TIMESTAMP '2024-10-27 00:00:00'",
    "i + 1 < 99999999999999999999",
    "coalesce(q, q) < TIMESTAMP '2024-03-31 00:00:00'",
    "extract(year FROM q)",
    "extract(hour FROM z)",
    "i DIV 2",
    "abs(i)",
    "if(k, i, j)",
    "trim(BOTH 'a' FROM s)",
    "trim(LEADING FROM s)",
    "CAST(d AS STRING)",
    "CAST(s AS BINARY)",
    "CAST(CAST(u AS DOUBLE) AS INT)",
    "CAST('5' AS INT) + i",
    "w * w",
    "w + 0.5",
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = Path(tmp_path_factory.mktemp("scalars")) / "rows.parquet"
    pq.write_table(TABLE, path)
    spark.read.parquet(str(path)).coalesce(1).createOrReplaceTempView("scalar_rows")
    yield "scalar_rows"
    spark.catalog.dropTempView("scalar_rows")


@contextmanager
def _session(spark: SparkSession, zone: str, ansi: bool) -> Iterator[None]:
    names = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": str(ansi).lower()}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        with using(Settings(zone, case_sensitive=False, ansi=ansi)):
            yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def _ours(text: str) -> Values | EvaluationError | SparkNeededError:
    table = RowTable(TABLE, None)
    try:
        bound = bind_scalar(text, table)
        return bound.values(Batch(table))
    except (EvaluationError, SparkNeededError) as error:
        return error


def _same(ours: Values, theirs: pa.ChunkedArray) -> bool:
    expected_type = ours.type.to_spark()
    if DataType.from_arrow(theirs.type).to_spark() != expected_type:
        return False
    expected = from_arrow(theirs, ours.type)
    if not np.array_equal(ours.valid, expected.valid):
        return False
    if ours.type.root == "VARCHAR":
        mine = [v for v, ok in zip(ours.data.to_pylist(), ours.valid, strict=True) if ok]
        return mine == [v for v in theirs.to_pylist() if v is not None]
    mine, wanted = ours.data[ours.valid], expected.data[ours.valid]
    if ours.type.root in ("FLOAT", "DOUBLE"):
        return mine.tobytes() == wanted.tobytes() or bool(
            np.array_equal(mine, wanted, equal_nan=True)
        )
    return bool(mine.tolist() == wanted.tolist())


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna"])
def test_values_are_those_of_spark(spark: SparkSession, rows: str, zone: str, ansi: bool) -> None:
    from pyspark.errors import PySparkException

    texts = list(dict.fromkeys(EXPRESSIONS))
    if zone != "UTC":  # which only times depend on
        texts = [text for text in texts if any(f"{c}" in text for c in "qxzy")]
    with _session(spark, zone, ansi):
        ours = {text: _ours(text) for text in texts}
        failing = [text for text, found in ours.items() if isinstance(found, EvaluationError)]
        valued = [text for text, found in ours.items() if isinstance(found, Values)]
        selected = ", ".join(f"{text} AS c{place}" for place, text in enumerate(valued))
        problems: list[tuple[str, object, object]] = []
        try:
            theirs = spark.sql(f"SELECT {selected} FROM {rows}").toArrow()
            for place, text in enumerate(valued):
                found = ours[text]
                assert isinstance(found, Values)
                if not _same(found, theirs.column(place)):
                    problems.append((text, found, theirs.column(place)))
        except PySparkException:
            for text in valued:
                try:
                    one = spark.sql(f"SELECT {text} AS c FROM {rows}").toArrow()
                except PySparkException as error:
                    problems.append((text, ours[text], str(error)[:300]))
                else:
                    found = ours[text]
                    assert isinstance(found, Values)
                    if not _same(found, one.column(0)):
                        problems.append((text, found, one.column(0)))
        for text in failing:
            try:
                spark.sql(f"SELECT {text} AS c FROM {rows}").toArrow()
                problems.append((text, ours[text], "Spark does not fail"))
            except PySparkException:
                pass
    for text, mine, spark_value in problems:
        print("----", text, mine, spark_value)
    assert [text for text, *_ in problems] == []
