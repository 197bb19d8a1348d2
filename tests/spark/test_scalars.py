"""Expressions evaluated in process, compared with Spark: values, types, errors and refusals."""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.config import Settings, using
from alcid.errors import EvaluationError, SparkNeededError
from alcid.expressions.columns import RowSchema, RowTable
from alcid.expressions.scalar_types import Batch
from alcid.expressions.scalar_values import Values, from_arrow
from alcid.expressions.scalars import bind_scalar
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

NUMBERS = ["t", "i", "b", "f", "d", "m", "w", "1", "2.5"]
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


# Rows on which little fails under ANSI rules.
TAME: dict[str, Any] = {
    "t": [1, 2, None, -3],
    "h": [7, -9, None],
    "i": [1, 12, None, -7],
    "j": [3, None, 2, -1, 100],
    "b": [3, None, -1, 7],
    "c": [1, -1, 2, None, 30],
    "f": [1.5, None, -0.25, 0.1],
    "d": [0.1, None, -2.5, 12.9],
    "e": [0.2, 5.5, None, 3.0],
    "m": [Decimal("1.25"), None, Decimal("-2.50")],
    "n": [Decimal("0.3333"), None, Decimal("-12.5000")],
    "w": [Decimal(11), Decimal("-3"), None],
    "u": ["12", " -7 ", None, "+5"],
    "y": ["2024-2-9", None, "2024-03-31 02:30:00", "1582-10-10"],
}
for _name, _values in TAME.items():
    TAME[_name] = _column(_values, TABLE.schema.field(_name).type)
TABLES = {
    "wild_rows": TABLE,
    "tame_rows": pa.table([TAME.get(n, TABLE[n]) for n in TABLE.column_names], TABLE.column_names),
}
FAILURES = 16
"""Spark is asked about one of this many failures, with a query each."""


@pytest.fixture(scope="module")
def asked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with a view of each table."""
    folder = tmp_path_factory.mktemp("scalars")
    for name, table in TABLES.items():
        pq.write_table(table, folder / f"{name}.parquet")
        rows = spark.read.parquet(str(folder / f"{name}.parquet"))
        rows.coalesce(1).createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


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


def _evaluated(name: str, texts: Sequence[str]) -> tuple[dict[str, Values], list[str], list[str]]:
    """The values of expressions, the ones that fail for a row, and the ones left to Spark."""
    schema = RowSchema(TABLES[name].schema)
    table = RowTable(TABLES[name], schema)
    values, failing, refused = dict[str, Values](), list[str](), list[str]()
    for text in texts:
        try:
            values[text] = bind_scalar(text, schema).values(Batch(table))
        except EvaluationError:
            failing.append(text)
        except SparkNeededError:
            refused.append(text)
    return values, failing, refused


def _is_same(ours: Values, theirs: pa.ChunkedArray) -> bool:
    if DataType.from_arrow(theirs.type).to_spark() != ours.type.to_spark():
        return False
    expected, root = from_arrow(theirs, ours.type), ours.type.root
    if not np.array_equal(ours.valid, expected.valid):
        return False
    if root == "VARCHAR":
        return bool(ours.data.filter(pa.array(ours.valid)) == expected.data.drop_null())
    left, right = ours.data[ours.valid], expected.data[ours.valid]
    if root in ("FLOAT", "DOUBLE"):
        return bool(np.array_equal(left, right, equal_nan=True)) and bool(
            np.array_equal(np.signbit(left[left == 0]), np.signbit(right[right == 0]))
        )
    return bool(left.tolist() == right.tolist())


@pytest.mark.parametrize(
    ("name", "ansi"), [("wild_rows", True), ("tame_rows", True), ("wild_rows", False)]
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna"])
def test_values_are_those_of_spark(asked: SparkSession, name: str, ansi: bool, zone: str) -> None:
    texts = list(dict.fromkeys(EXPRESSIONS))
    if zone != "UTC":  # which only times depend on
        texts = [text for text in texts if re.search(r"\b[qxyz]\b", text)]
    with _session(asked, zone, ansi):
        ours, failing, refused = _evaluated(name, texts)
        selected = ", ".join(f"{text} AS c{number}" for number, text in enumerate(ours))
        theirs = asked.sql(f"SELECT {selected} FROM {name}").toArrow()
    for number, (text, values) in enumerate(ours.items()):
        assert _is_same(values, theirs.column(number)), (text, values, theirs.column(number))
    assert len(refused) < len(texts) / 8
    assert failing == [] or ansi


def test_what_fails_under_ansi_rules_fails_in_spark(asked: SparkSession) -> None:
    from pyspark.errors import PySparkException

    first = int(os.environ.get("ALCID_SEED", "1")) % FAILURES
    with _session(asked, "UTC", ansi=True):
        _, failing, _ = _evaluated("wild_rows", list(dict.fromkeys(EXPRESSIONS)))
        for text in failing[first::FAILURES]:
            with pytest.raises(
                PySparkException, match=r"OVERFLOW|BY_ZERO|CAST_INVALID|OUT_OF_RANGE"
            ):
                asked.sql(f"SELECT {text} AS c FROM wild_rows").toArrow()
