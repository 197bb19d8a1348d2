"""No operation changes a setting of the user's session, a local property, or a view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.spark import jvm, reading
from alcid.spark.jvm.iceberg import RUNTIME_CLASS
from alcid.spark.reading import ReadStrategy
from tests.iceberg.lake import LAKE
from tests.spark import streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INDEXES = {"file-index.bloom-filter.columns": "id"}
FILES = 40  # Spark would start a job to list more than 32


class State:
    """All that a session shows of itself, and the thread that uses it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def now(self) -> dict[str, object]:
        spark = self._spark
        context = spark.sparkContext
        properties = context._jsc.sc().getLocalProperties()
        return {
            "settings": sorted(map(tuple, spark.sql("SET").collect())),
            "properties": sorted(str(properties).strip("{}").split(", ")),
            "tags": spark.getTags(),
            "catalog": (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()),
            "tables": sorted(map(str, spark.catalog.listTables())),
            "cached": str(spark._jsparkSession.sharedState().cacheManager().isEmpty()),
            "persisted": context._jsc.getPersistentRDDs().size(),
        }


def _operations(spark: SparkSession, folder: Path) -> dict[str, Callable[[], object]]:
    """What can be done with a folder, a Paimon table with a key, and SQL."""
    events = alcid.parquet(folder / "events", spark, create=True)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    users = alcid.create_table(
        folder / "users", schema, spark, primary_key=["id"], options={"bucket": "2"}
    )
    rows = spark.range(0, 400, 1, FILES).selectExpr("id", "id % 7 AS kind")
    named = spark.range(50).selectExpr("id", "concat('n', id) AS name")
    query = "SELECT id FROM t WHERE id = 7 OR kind = 3 ORDER BY id LIMIT 3"
    return {
        "append": lambda: events.append(rows, {}),
        "build": lambda: events.build_indexes(INDEXES),
        "verify": events.verify,
        "stats": lambda: events.compute_stats(["kind"]),
        "count": lambda: events.count("kind + 0 = 3"),
        "explain": lambda: events.explain("id = 7"),
        "advise": lambda: events.advise(["id = 7"]),
        "sql": lambda: alcid.sql(query, t=events).collect(),
        "explain sql": lambda: alcid.explain_sql(query, t=events),
        "upsert": lambda: users.upsert(named),
        "delete": lambda: users.delete("id < 10"),
        "compact": users.compact,
        "repair": users.repair,
        "clean": events.clean,
    }


@pytest.fixture
def state(spark: SparkSession) -> State:
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
    return State(spark)


def test_every_operation_leaves_the_session_as_it_was(
    spark: SparkSession, state: State, tmp_path: Path
) -> None:
    operations = _operations(spark, tmp_path)
    before = state.now()
    for name, operation in operations.items():
        operation()
        assert state.now() == before, name


@pytest.mark.parametrize("strategy", ["driver", "tasks", "Spark"])
def test_every_read_leaves_the_session_as_it_was(
    spark: SparkSession,
    state: State,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    strategy: Any,
) -> None:
    table = alcid.parquet(tmp_path / "events", spark, create=True)
    table.append(spark.range(0, 400, 1, FILES).selectExpr("id", "id % 7 AS kind"), {})
    monkeypatch.setattr(
        reading, "choose_strategy", lambda *_, **__: ReadStrategy(strategy, "so it is tested")
    )
    before = state.now()
    rows = table.read("kind = 3")
    assert state.now() == before
    assert rows.count() == 57
    assert state.now() == before


def test_a_stream_leaves_the_session_as_it_was(
    spark: SparkSession, state: State, tmp_path: Path
) -> None:
    streams.make(tmp_path, 2)
    before = state.now()
    streams.run(spark, tmp_path)
    assert state.now() == before


def test_operations_on_iceberg_leave_the_session_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    del tmp_path
    if not jvm.has_class(spark, RUNTIME_CLASS):
        pytest.skip("needs Iceberg's runtime")
    from tests.iceberg.lake import lake_session

    lake = lake_session(spark)
    name = f"{LAKE}.db.untouched"
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = 3)")
    try:
        table = alcid.iceberg(name, lake)
        state = State(lake)
        before = state.now()
        operations: dict[str, Callable[[], object]] = {
            "append": lambda: table.append(lake.range(0, 100, 1, 4)),
            "build": lambda: table.build_indexes(INDEXES),
            "verify": table.verify,
            "read": lambda: table.read("id = 7").collect(),
            "read all": lambda: table.read().collect(),
            "delete": lambda: table.delete("id < 10"),
        }
        for what, operation in operations.items():
            operation()
            assert state.now() == before, what
        assert table.count() == 90
    finally:
        lake.sql(f"DROP TABLE IF EXISTS {name}")
        spark.createDataFrame([(1,)], "x INT")  # makes it the active one
