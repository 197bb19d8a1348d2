"""Random upserts from DataFrames, and rows that are difficult for many tasks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.errors import UnsupportedError
from tests.spark.test_paimon_machine import SparkMachine
from tests.tables.paimon.keyed.upsert_machine import UpsertMachine
from tests.tables.paimon.machine_runs import machine_count, seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from alcid import PaimonTable

__all__ = ["seed"]

STEPS = 20
VECTORS = {"deletion-vectors.enabled": "true"}
EACH_LAYOUT = pytest.mark.parametrize(
    "options",
    [
        VECTORS | {"bucket": "3"},
        VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": "500"},
    ],
    ids=["fixed", "dynamic"],
)


class SparkUpsertMachine(UpsertMachine, SparkMachine):
    """Changes come from a DataFrame."""

    def as_input(self, rows: pa.Table) -> Any:
        kinds = self.now.columns | {"change": "STRING"}
        columns = [f"{name} {kinds[name]}" for name in rows.column_names]
        ddl = ", ".join(columns).replace("TIMESTAMP(6)", "TIMESTAMP_NTZ")
        return self.engine.createDataFrame(rows, ddl)


@pytest.mark.filterwarnings("ignore:.*not yet compacted")
@pytest.mark.parametrize("number", range(machine_count(5)))
def test_rows_are_those_of_the_model_after_every_upsert(
    spark: SparkSession, number: int, seed: str, tmp_path: Path
) -> None:
    source = random.Random(f"{seed} spark upsert {number}")
    machine = SparkUpsertMachine(source, tmp_path / "t", is_thorough=True, engine=spark)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    machine.run(STEPS)


def create(spark: SparkSession, path: Path, options: Mapping[str, str]) -> PaimonTable:
    columns = pa.schema([("dt", pa.int32()), ("id", pa.int64()), ("name", pa.string())])
    return alcid.create_table(
        path, columns, spark, primary_key=["dt", "id"], partition_by=["dt"], options=options
    )


def rows(table: PaimonTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@EACH_LAYOUT
def test_of_rows_with_one_key_the_last_of_the_last_task_is_kept(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(spark, tmp_path, options)
    changes = spark.range(0, 12_000, numPartitions=4).selectExpr(
        # Nine of ten rows have the same key.
        "1 AS dt",
        "IF(id % 10 = 0, id, 7) AS id",
        "CONCAT('n', id) AS name",
    )
    table.upsert(changes)
    expected = [(1, 7, "n11999"), *((1, number, f"n{number}") for number in range(0, 12_000, 10))]
    assert rows(table) == sorted(expected)
    table.upsert(changes.where("name < 'n11990'"))
    expected[0] = (1, 7, "n11989")
    assert rows(table) == sorted(expected)
    assert table.verify(progress=False).ok


@EACH_LAYOUT
def test_partitions_of_one_row_and_a_huge_one(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(spark, tmp_path, options)
    changes = spark.range(0, 6_000, numPartitions=4).selectExpr(
        "CAST(IF(id % 200 = 0, id, 1) AS INT) AS dt", "id", "'old' AS name"
    )
    table.upsert(changes)
    table.upsert(changes.where("id % 100 < 25").selectExpr("dt", "id", "'new' AS name"))
    expected = [
        (number if number % 200 == 0 else 1, number, "new" if number % 100 < 25 else "old")
        for number in range(6_000)
    ]
    assert rows(table) == sorted(expected)
    assert table.verify(progress=False).ok


@EACH_LAYOUT
def test_without_rows_there_is_no_snapshot(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(spark, tmp_path, options)
    changes = spark.range(3).selectExpr("1 AS dt", "id", "'a' AS name")
    table.upsert(changes.where("id > 5"))
    assert table.snapshot_id is None
    table.upsert(changes)
    last = table.snapshot_id
    table.upsert(changes.where("id > 5"))
    assert table.snapshot_id == last
    assert rows(table) == [(1, 0, "a"), (1, 1, "a"), (1, 2, "a")]


@EACH_LAYOUT
def test_a_null_in_the_key_of_one_task_is_refused(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(spark, tmp_path, options)
    changes = spark.range(0, 1_000, numPartitions=4).selectExpr(
        "1 AS dt", "IF(id = 600, NULL, id) AS id", "'a' AS name"
    )
    with pytest.raises(UnsupportedError, match="column id: found null, expected NOT NULL"):
        table.upsert(changes)
    table.refresh()
    assert table.snapshot_id is None
    table.upsert(changes.where("id < 500"))
    assert table.count() == 500
