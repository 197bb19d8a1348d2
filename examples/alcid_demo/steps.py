"""The steps of the demo: create and index tables, query, change and verify them."""

from __future__ import annotations

import json
import time
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from alcid._text import count_text, size_text
from alcid.opening import create_table, iceberg, parquet
from alcid.spark import jvm
from alcid.spark.iceberg import RUNTIME_PACKAGE
from alcid.spark.jvm.iceberg import RUNTIME_CLASS
from alcid.spark.sql import sql
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from alcid_demo.data import INDEXES, expected_users, make_events, make_users
from alcid_demo.report import DemoLog

__all__ = [
    "EVENTS",
    "LAKE",
    "WAREHOUSE",
    "delete_rows",
    "distinct_values",
    "iceberg_events",
    "paimon_events",
    "parquet_events",
    "query_sql",
    "upsert_users",
    "verify_all",
]

EVENTS, WAREHOUSE, LAKE = "events", "warehouse", "lake"
_SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_CATALOG_SETTINGS = {".cache-enabled": "false"}  # a demo may run again in the same folder
_PROPERTIES = (
    "TBLPROPERTIES ('format-version' = '3', 'write.distribution-mode' = 'none',"
    " 'write.parquet.page-row-limit' = '2048')"
)
# Rows are read by pages: those of 2,048 rows cost less than Spark's 20,000.
_PAGES = {"parquet.page.row.count.limit": 2048, "parquet.dictionary.page.size": 65536}
_DELETED = "class_id = 7"
_COUNTED = ("user_id", "class_id", "url")
_EXACT_UP_TO, _NEAR = 4096, 0.05  # of theta sketches; three times their standard error


def parquet_events(log: DemoLog, spark: Any, folder: Path, rows: int) -> ParquetTable:
    """A folder of Parquet files that plain Spark writes, and indexes beside them."""
    path = str(folder / EVENTS)
    log.step("Events, written by plain Spark as a folder of Parquet files")
    events = make_events(spark, rows)
    log.note(f"rows: {rows:,} answers of pupils in a school; alcid_demo.data says what they are")

    def write() -> str:
        began = time.perf_counter()
        events.write.options(**_PAGES).partitionBy("dt").parquet(path)
        sizes = [file.stat().st_size for file in Path(path).rglob("*.parquet")]
        written = f"{count_text(len(sizes), 'file')}, {size_text(sum(sizes))}"
        return f"wrote {rows:,} rows: {written} in {time.perf_counter() - began:.1f} s"

    pages = f"pages = {json.dumps(_PAGES)}"
    log.call(f'{pages}\nrows.write.options(**pages).partitionBy("dt").parquet("{path}")', write)
    log.step("Indexes on existing files")
    table = log.call(
        f'events = alcid.parquet("{path}", spark)',
        lambda: parquet(path, spark),
        lambda result: count_text(result.files, "file"),
    )
    log.call(
        f"indexes = {json.dumps(INDEXES, indent=4)}\nevents.build_indexes(indexes)",
        lambda: table.build_indexes(INDEXES, progress=False),
    )
    log.call("events.indexes()", table.indexes, lambda result: "\n".join(map(str, result)))
    return table


def paimon_events(log: DemoLog, spark: Any, folder: Path, rows: int) -> PaimonTable:
    """The same rows in a Paimon table, indexed from the first commit on."""
    warehouse = str(folder / WAREHOUSE)
    log.step("The same events in a Paimon table, with indexes from the start")
    events = make_events(spark, rows)
    options = INDEXES | {"deletion-vectors.enabled": True}
    code = f'create_table(None, rows.schema, spark, warehouse="{warehouse}", table="demo.events",'
    table = log.call(
        f'paimon = alcid.{code}\n    partition_by=["dt"],'
        ' options=indexes | {"deletion-vectors.enabled": True})',
        lambda: create_table(
            None,
            events.schema,
            spark,
            warehouse=warehouse,
            table="demo.events",
            partition_by=["dt"],
            options=options,
        ),
        lambda table: f"created {table.location}",
    )
    log.call("paimon.append(rows)", lambda: table.append(events))
    return table


def iceberg_events(log: DemoLog, spark: Any, folder: Path, rows: int) -> IcebergTable | None:
    """The same rows in an Iceberg table; None if the session has no Iceberg."""
    log.step("The same events in an Iceberg table")
    if not jvm.has_class(spark, RUNTIME_CLASS):
        log.note(
            "left out: this Spark has no Iceberg; --conf spark.jars.packages="
            f"{RUNTIME_PACKAGE} fetches it"
        )
        return None
    warehouse = str((folder / LAKE).absolute())
    # A session never forgets the folder of a catalog, so another folder needs another catalog.
    catalog = f"demo_{zlib.crc32(warehouse.encode()):08x}"
    settings = {"": _SPARK_CATALOG, ".type": "hadoop", ".warehouse": warehouse, **_CATALOG_SETTINGS}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
    name = f"{catalog}.demo.events"
    events = make_events(spark, rows)
    create = f"CREATE TABLE {name} USING iceberg PARTITIONED BY (dt) {_PROPERTIES}"

    def write() -> str:
        began = time.perf_counter()
        spark.sql(f"{create} AS SELECT * FROM {{rows}}", rows=events)
        return f"wrote {rows:,} rows in {time.perf_counter() - began:.1f} s"

    log.call(f'spark.sql("{create} AS SELECT * FROM {{rows}}", rows=rows)', write)
    table = log.call(
        f'iceberg = alcid.iceberg("{name}", spark)',
        lambda: iceberg(name, spark),
        lambda result: count_text(result.files, "file"),
    )
    log.call("iceberg.build_indexes(indexes)", lambda: table.build_indexes(INDEXES, progress=False))
    return table


def query_sql(log: DemoLog, events: ParquetTable, plain: Any) -> None:
    """A Spark SQL query whose filter is pushed to the indexes."""
    log.step("Spark SQL on top of indexes")
    text = "SELECT class_id, count(*) AS n, max(score) AS best FROM {events}"
    text += " WHERE score > 99 GROUP BY class_id ORDER BY class_id"
    rows = log.call(
        f'alcid.sql("{text.format(events="events")}", events=events)',
        lambda: sql(text.format(events="events"), events=events).collect(),
        lambda rows: count_text(len(rows), "row"),
    )
    log.check(
        "the rows of plain Spark", rows == plain.sparkSession.sql(text, events=plain).collect()
    )


def delete_rows(log: DemoLog, events: PaimonTable, plain: Any) -> None:
    """Delete the rows of a class by deletion vectors."""
    log.step("Deletes in the Paimon table, as deletion vectors")
    expected = plain.where(f"NOT ({_DELETED})").select("id").toArrow()["id"]
    deleted = plain.count() - len(expected)
    report = log.call(f'paimon.delete("{_DELETED}")', lambda: events.delete(_DELETED))
    left = log.call(f'paimon.count("{_DELETED}")', lambda: events.count(_DELETED))
    log.check(f"{deleted:,} rows are deleted", report.rows == deleted and left == 0)
    rest = events.scan(columns=["id"]).to_arrow()["id"]
    is_same = _ascending(rest).equals(_ascending(expected))
    log.check(f"the other {len(expected):,} remain", is_same)


def upsert_users(log: DemoLog, spark: Any, folder: Path, users: int) -> PaimonTable:
    """Upsert changes into a table with a primary key and dynamic buckets."""
    log.step("Upserts into a Paimon table with a primary key and dynamic buckets")
    first, changes = make_users(spark, users)
    options = {
        "deletion-vectors.enabled": True,
        "dynamic-bucket.target-row-num": 50_000,
        "file-index.bloom-filter.columns": "name",
    }
    code = f'create_table(None, first.schema, spark, warehouse="{folder / WAREHOUSE}",'
    shown = json.dumps(options).replace("true", "True")
    table = log.call(
        f'users = alcid.{code}\n    table="demo.users", primary_key=["user_id"],'
        f"\n    options={shown})",
        lambda: create_table(
            None,
            first.schema,
            spark,
            warehouse=str(folder / WAREHOUSE),
            table="demo.users",
            primary_key=["user_id"],
            options=options,
        ),
        lambda table: f"created {table.location}",
    )
    log.call("users.upsert(first)", lambda: table.upsert(first))
    log.call('users.upsert(changes, row_kind="op")', lambda: table.upsert(changes, row_kind="op"))
    rows = table.scan(order_by="user_id").to_arrow()
    expected = expected_users(spark, users).toArrow().cast(rows.schema)
    log.check(
        f"the {len(expected):,} expected users", bool(rows.equals(expected.sort_by("user_id")))
    )
    return table


def distinct_values(log: DemoLog, events: ParquetTable, plain: Any) -> None:
    """Compare theta sketches with exact counts."""
    log.step("Statistics: distinct values by theta sketches")
    counted = log.call(
        f"events.compute_stats({list(_COUNTED)})",
        lambda: events.compute_stats(_COUNTED, progress=False),
        lambda statistics: "\n".join(
            f"{row['column']}: {row['ndv']:,} distinct values, {row['nulls']:,} nulls"
            for row in statistics.to_pylist()
        ),
    )
    counts = plain.selectExpr(*(f"count(DISTINCT {name}) AS {name}" for name in _COUNTED)).first()
    for row in counted.to_pylist():
        exact = counts[row["column"]]
        error = abs(row["ndv"] - exact)
        log.check(
            f"{row['column']}: {exact:,} exactly, {error / max(exact, 1):.1%} off",
            error <= (0 if exact <= _EXACT_UP_TO else _NEAR * exact),
        )


def verify_all(log: DemoLog, tables: dict[str, Any]) -> None:
    """Rebuild every index and compare."""
    log.step("Verify: read everything again and compare")
    for name, table in tables.items():
        report = log.call(
            f"{name}.verify()",
            partial(table.verify, progress=False),
            lambda report: str(report).splitlines()[0],
        )
        log.check(f"{name} is sound", report.ok)


def _ascending(values: Any) -> Any:
    return pc.take(values, pc.sort_indices(values)).combine_chunks()
