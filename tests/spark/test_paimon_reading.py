"""Paimon tables through Spark: the same rows in every strategy of reading, and in SQL."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.errors import AlcidWarning
from alcid.spark import reading
from alcid.spark.engine import SparkEngine
from alcid.spark.reading import ReadStrategy, choose_strategy
from alcid.spark.schema import arrow_for_spark, conform_batches
from tests.golden.paimon_tables import table_names, unpack_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [name for name in table_names() if name != "avro"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name in NAMES:
        unpack_table(name, folder)
    return folder


@pytest.fixture(autouse=True)
def _level_0_is_left_out() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        yield


def as_text(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("strategy", ["tasks", "Spark", "tasks that find deleted rows"])
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_the_same_in_every_way(
    spark: SparkSession, tables: Path, name: str, strategy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(plan: Any, *, has_s3a: bool, in_driver: bool = True) -> ReadStrategy:
        chosen = choose_strategy(plan, has_s3a=has_s3a, in_driver=in_driver)
        obstacle = reading._obstacle(plan, has_s3a)
        if strategy == "Spark":
            return chosen if obstacle else ReadStrategy("Spark", "is tested")
        return ReadStrategy("tasks", "is tested")

    monkeypatch.setattr(reading, "choose_strategy", choose)
    if strategy == "tasks that find deleted rows":
        monkeypatch.setattr(SparkEngine, "delete_bytes", 0)
    plain, table = alcid.paimon(tables / name), alcid.paimon(tables / name, spark)
    columns = [name for name in plain.schema.names if name != "c_time"]  # Spark has none
    expected = plain.scan(columns=columns).to_arrow()
    as_spark = arrow_for_spark(expected.schema)
    expected = pa.Table.from_batches(conform_batches(expected, as_spark), as_spark)
    rows = table.read(columns=columns)
    assert rows.columns == expected.column_names
    assert as_text(rows.toArrow()) == as_text(expected)
    assert table.count() == expected.num_rows


@pytest.mark.parametrize("name", ["append", "sidecars", "vectors_64", "key_vectors", "evolution"])
def test_sql_is_answered(spark: SparkSession, tables: Path, name: str) -> None:
    table = alcid.paimon(tables / name, spark)
    table.read().createOrReplaceTempView("plain")
    column, every = table.schema.names[0], ", ".join(table.schema.names)
    for query in (
        "SELECT count(*) FROM {0}",
        f"SELECT * FROM {{0}} WHERE {column} IS NOT NULL ORDER BY {every} LIMIT 3",
        f"SELECT a.{column}, count(*) FROM {{0}} a JOIN {{0}} b USING ({column}) GROUP BY 1",
    ):
        rows = alcid.sql(query.format("t"), t=table)
        expected = spark.sql(query.format("plain"))
        assert sorted(map(str, rows.collect())) == sorted(map(str, expected.collect()))


def test_dense_rows_without_vectors_are_read_by_spark_itself(
    spark: SparkSession, tables: Path
) -> None:
    for name, expected in (
        ("append", ""),
        ("sidecars", ""),
        ("vectors_32", "some rows are deleted"),
        ("orc", "some files are not Parquet"),
        ("evolution", "in some files"),
    ):
        plan, _ = alcid.paimon(tables / name, spark).scan().plan()
        obstacle = reading._obstacle(plan, False)
        assert (expected in obstacle) if expected else not obstacle, (name, obstacle)
