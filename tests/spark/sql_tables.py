"""Tables of all types for the tests of SQL, as ours and as plain Spark reads them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from alcid import ParquetTable
from alcid.opening import parquet
from alcid.spark.sql import SqlExplanation, explain_sql, sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOT_UTC = "America/New_York"
"""Where the clock was put back on 2 November 2025 at 2:00: 1:30 occurred twice."""
NAN, INFINITE = float("nan"), float("inf")
START = datetime.datetime(2025, 11, 2, 3, 0, tzinfo=datetime.UTC)
OLD = datetime.datetime(1500, 1, 1, tzinfo=datetime.UTC)

FLOATS = [0.0, -0.0, NAN, INFINITE, -INFINITE, 0.1, -2.5, 3.0, 60.0, 80.0, None]
TEXTS = ["", "a", "ab", "abc", "b%", "b_d", "ß", "日本", "A", "null", None]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int32()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("f", pa.float32()),
        ("g", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("huge", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("flag", pa.bool_()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
OPTIONS = {
    "file-index.bloom-filter.columns": "id,s",
    "file-index.bitmap.columns": "k,flag,s",
    "file-index.range-bitmap.columns": "g,amount,ts,d",
}


def rows_of(first: int, count: int) -> pa.Table:
    """Rows that differ in all columns, with nulls in each except the id."""

    def spread(values: list[Any], step: int) -> list[Any]:
        return [values[(row * step + row // 5) % len(values)] for row in numbers]

    def some(make: Callable[[int], Any], every: int) -> list[Any]:
        return [None if row % every == 3 else make(row) for row in numbers]

    numbers = range(first, first + count)
    columns = [
        list(numbers),
        some(lambda row: row % 7, 11),
        some(lambda row: row % 200 - 100, 13),
        some(lambda row: row * 37 % 30_000, 8),
        spread(FLOATS, 4),
        spread(FLOATS, 7),
        some(lambda row: Decimal(row * 25 - 500) / 100, 9),
        some(lambda row: Decimal(f"{row}{'0' * 20}.0000000001"), 10),
        spread(TEXTS, 3),
        some(lambda row: bytes([row % 256, 0, 255 - row % 256]), 6),
        some(lambda row: row % 3 == 0, 5),
        some(lambda row: datetime.date(2025, 7, 31) + datetime.timedelta(days=row % 60), 12),
        some(lambda row: OLD if row % 50 == 0 else START + datetime.timedelta(minutes=2 * row), 14),
        some(lambda row: (START + datetime.timedelta(minutes=2 * row)).replace(tzinfo=None), 15),
        some(lambda row: ["x", None, "y"][: row % 4], 16),
        some(lambda row: {"x": row % 4, "y": "q" if row % 2 else None}, 17),
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def write_folder(folder: Path, files: int = 4, rows: int = 40) -> Path:
    """A folder with a separate partition for each file, one of them null."""
    partitions = ["20250731", "20250801", "20250802", "__HIVE_DEFAULT_PARTITION__"]
    for number in range(files):
        inside = folder / f"dt={partitions[number % 4]}"
        inside.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows_of(number * rows, rows), inside / f"part-{number}.parquet")
    return folder


@contextmanager
def settings(spark: SparkSession, **changed: str) -> Iterator[None]:
    """Change settings of a session for a while; `_` stands for a dot."""
    keys = {f"spark.sql.{name.replace('_', '.')}": value for name, value in changed.items()}
    before = {key: spark.conf.get(key) for key in keys}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old_value in before.items():
            spark.conf.set(key, old_value)


class Beside:
    """Tables that `alcid.sql` queries, and Spark on the same files without our code."""

    def __init__(self, spark: SparkSession, tables: dict[str, ParquetTable]) -> None:
        self.spark, self.tables = spark, tables

    def __getitem__(self, name: str) -> ParquetTable:
        return self.tables[name]

    def ours(self, query: str) -> DataFrame:
        return sql(query, **self.tables)

    def plain(self, query: str) -> DataFrame:
        return self.spark.sql(query)

    def explain(self, query: str) -> SqlExplanation:
        return explain_sql(query, **self.tables)

    def check(self, query: str, *, ordered: bool = False) -> int:
        """Compare the rows and the schemas; returns the number of rows."""
        ours, plain = self.ours(query), self.plain(query)
        assert ours.schema == plain.schema
        rows, expected = shown(ours), shown(plain)
        if not ordered:
            rows, expected = sorted(rows), sorted(expected)
        assert rows == expected, query
        return len(rows)


@contextmanager
def beside(spark: SparkSession, **folders: Path) -> Iterator[Beside]:
    """The folders as tables with indexes; the session has plain views with the same names."""
    tables = {}
    for name, folder in folders.items():
        parquet(folder).build_indexes(OPTIONS)
        tables[name] = parquet(folder, spark)
        spark.read.parquet(str(folder)).createOrReplaceTempView(name)
    try:
        yield Beside(spark, tables)
    finally:
        for name in folders:
            spark.catalog.dropTempView(name)


def shown(rows: DataFrame) -> list[str]:
    """Rows as text, in which NaN equals NaN and the zeros differ."""
    table = rows.toArrow()
    names = [f"{number}" for number in range(table.num_columns)]  # which need not be unique
    return [repr(row) for row in table.rename_columns(names).to_pylist()]
