"""The ten queries from Paimon's document on file indexes, on a partitioned folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid import ParquetTable
from alcid.opening import parquet
from alcid.spark.sql import explain_sql, sql
from tests.spark.sql_tables import settings, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2000
DAYS = ("20250731", "20250801", "20250802")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files a day; a score occurs at most once, so the first ten are unambiguous."""
    root = tmp_path_factory.mktemp("document")
    rng = np.random.default_rng(5)
    scores = rng.permutation(ROWS * 6) / (ROWS * 6 / 100)
    for number in range(6):
        inside = root / f"dt={DAYS[number // 2]}"
        inside.mkdir(exist_ok=True)
        rows = pa.table(
            {
                "class_id": pa.array(rng.integers(0, 20, ROWS), pa.int32()),
                "score": scores[number * ROWS : (number + 1) * ROWS],
                "col": rng.integers(0, 10**6, ROWS),
            }
        )
        pq.write_table(rows, inside / f"{number}.parquet")
    return root


@pytest.fixture(scope="module")
def table(spark: SparkSession, folder: Path) -> Iterator[ParquetTable]:
    parquet(folder).build_indexes({"file-index.range-bitmap.columns": "class_id,score"})
    with settings(spark, parquet_filterPushdown="false"):
        spark.read.parquet(str(folder)).createOrReplaceTempView("TABLE")
        yield parquet(folder, spark)
        spark.catalog.dropTempView("TABLE")


DAY = "dt = 20250801"
QUERIES = {
    "SELECT * FROM TABLE WHERE dt = '20250801' AND score = 100": (f"{DAY} AND score = 100.0D", ""),
    "SELECT * FROM TABLE WHERE dt = '20250801' AND score IN (60, 80)": (
        f"{DAY} AND score IN (60.0D, 80.0D)",
        "",
    ),
    "SELECT * FROM TABLE WHERE dt = '20250801' AND score > 60": (f"{DAY} AND score > 60.0D", ""),
    "SELECT * FROM TABLE WHERE dt = '20250801' AND score < 60": (f"{DAY} AND score < 60.0D", ""),
    "SELECT * FROM TABLE WHERE dt = '20250801' AND class_id = 1 AND score < 60": (
        f"{DAY} AND class_id = 1 AND score < 60.0D",
        "",
    ),
    "SELECT * FROM TABLE WHERE dt = '20250801' AND class_id = 1 AND score < 60 OR score > 80": (
        f"{DAY} AND class_id = 1 AND score < 60.0D OR score > 80.0D",
        "",
    ),
    "SELECT * FROM TABLE WHERE dt = '20250801' ORDER BY score ASC LIMIT 10": (
        DAY,
        "score ASC NULLS FIRST",
    ),
    "SELECT * FROM TABLE WHERE dt = '20250801' ORDER BY score DESC LIMIT 10": (
        DAY,
        "score DESC NULLS LAST",
    ),
    "SELECT * FROM TABLE WHERE dt = '20250801' ORDER BY score ASC, col DESC LIMIT 10": (
        DAY,
        "score ASC NULLS FIRST, col DESC NULLS LAST",
    ),
    "SELECT * FROM TABLE WHERE dt = '20250801' ORDER BY score DESC, col ASC LIMIT 10": (
        DAY,
        "score DESC NULLS LAST, col ASC NULLS FIRST",
    ),
}


@pytest.mark.parametrize("query", QUERIES)
def test_query_of_the_document(spark: SparkSession, table: ParquetTable, query: str) -> None:
    where, order_by = QUERIES[query]
    (use,) = explain_sql(query, TABLE=table).tables
    assert (use.where, use.order_by, use.exact) == (where, order_by, True)
    assert use.limit == (10 if order_by else None)
    assert use.explanation is not None
    files = use.explanation.stages[0]
    assert (files.name, files.before.files) == ("partitions", 6)
    assert files.after.files == (6 if " OR " in query else 2)
    rows, expected = shown(sql(query, TABLE=table)), shown(spark.sql(query))
    if not order_by:
        rows, expected = sorted(rows), sorted(expected)
    assert rows == expected
    assert len(rows) > 0 or "= 100" in query


def test_leg_that_no_day_bounds_keeps_rows_of_every_day(
    spark: SparkSession, table: ParquetTable
) -> None:
    """AND binds tighter than OR: this asks for high scores of all days."""
    query = (
        "SELECT * FROM TABLE WHERE dt = '20250801' AND class_id = 1 AND score < 60 OR score > 80"
    )
    by_day = f"SELECT dt, score > 80 AS high, count(*) AS n FROM ({query}) GROUP BY ALL"
    counts = {(row.dt, row.high): row.n for row in sql(by_day, TABLE=table).collect()}
    assert sorted(counts) == [
        (20250731, True),
        (20250801, False),
        (20250801, True),
        (20250802, True),
    ]
    plain = spark.read.parquet(table.location)
    for (day, is_high), count in counts.items():
        rows = plain.where(f"dt = {day}")
        low = "class_id = 1 AND score < 60"
        assert count == rows.where("score > 80" if is_high else low).count()
