"""The first part of the demo: the events as tables of each kind, with their indexes."""

from __future__ import annotations

import json
import time
import zlib
from pathlib import Path
from typing import Any

from alcid._text import count_text, size_text
from alcid.opening import create_table, iceberg, parquet
from alcid.spark import jvm
from alcid.spark.iceberg import RUNTIME_PACKAGE
from alcid.spark.jvm.iceberg import RUNTIME_CLASS
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from alcid_demo.data import INDEXES, make_events
from alcid_demo.folder import EVENTS, LAKE, WAREHOUSE
from alcid_demo.story import Story

__all__ = ["iceberg_events", "paimon_events", "parquet_events"]

_SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_CATALOG_SETTINGS = {".cache-enabled": "false"}  # a demo may run again, on a folder made anew
_PROPERTIES = (
    "TBLPROPERTIES ('format-version' = '3', 'write.distribution-mode' = 'none',"
    " 'write.parquet.page-row-limit' = '2048')"
)
# Rows are read by pages: those of 2,048 rows cost less than Spark's 20,000.
_PAGES = {"parquet.page.row.count.limit": 2048, "parquet.dictionary.page.size": 65536}


def parquet_events(story: Story, spark: Any, folder: Path, rows: int) -> ParquetTable:
    """Files as plain Spark writes them, and indexes built beside."""
    path = str(folder / EVENTS)
    story.step("Events, written by plain Spark as a folder of Parquet files")
    made = make_events(spark, rows)
    story.note(f"rows: {rows:,} answers of pupils in a school; alcid_demo.data says what they are")

    def write() -> str:
        began = time.perf_counter()
        made.write.options(**_PAGES).partitionBy("dt").parquet(path)
        sizes = [file.stat().st_size for file in Path(path).rglob("*.parquet")]
        written = f"{count_text(len(sizes), 'file')}, {size_text(sum(sizes))}"
        return f"wrote {rows:,} rows: {written} in {time.perf_counter() - began:.1f} s"

    pages = f"pages = {json.dumps(_PAGES)}"
    story.call(f'{pages}\nrows.write.options(**pages).partitionBy("dt").parquet("{path}")', write)
    story.step("Indexes on the files that are there")
    table = story.call(
        f'events = alcid.parquet("{path}", spark)',
        lambda: parquet(path, spark),
        lambda found: count_text(found.files, "file"),
    )
    story.call(
        f"indexes = {json.dumps(INDEXES, indent=4)}\nevents.build_indexes(indexes)",
        lambda: table.build_indexes(INDEXES, progress=False),
    )
    story.call("events.indexes()", table.indexes, lambda found: "\n".join(map(str, found)))
    return table


def paimon_events(story: Story, spark: Any, folder: Path, rows: int) -> PaimonTable:
    """The same rows in a Paimon table, which has the indexes from the first commit on."""
    warehouse = str(folder / WAREHOUSE)
    story.step("The same events in a Paimon table, with indexes from the start")
    made = make_events(spark, rows)
    options = INDEXES | {"deletion-vectors.enabled": True}
    code = f'create_table(None, rows.schema, spark, warehouse="{warehouse}", table="demo.events",'
    table = story.call(
        f'paimon = alcid.{code}\n    partition_by=["dt"],'
        ' options=indexes | {"deletion-vectors.enabled": True})',
        lambda: create_table(
            None,
            made.schema,
            spark,
            warehouse=warehouse,
            table="demo.events",
            partition_by=["dt"],
            options=options,
        ),
        lambda made: f"made {made.location}",
    )
    story.call("paimon.append(rows)", lambda: table.append(made))
    return table


def iceberg_events(story: Story, spark: Any, folder: Path, rows: int) -> IcebergTable | None:
    """The same rows in an Iceberg table, if the session has Iceberg; None if not."""
    story.step("The same events in an Iceberg table")
    if not jvm.has_class(spark, RUNTIME_CLASS):
        story.note(
            "left out: this Spark has no Iceberg; --conf spark.jars.packages="
            f"{RUNTIME_PACKAGE} fetches it"
        )
        return None
    place = str((folder / LAKE).absolute())
    # A session keeps a catalog, and its folder, for good: another folder is another catalog.
    catalog = f"demo_{zlib.crc32(place.encode()):08x}"
    settings = {"": _SPARK_CATALOG, ".type": "hadoop", ".warehouse": place, **_CATALOG_SETTINGS}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
    name = f"{catalog}.demo.events"
    made = make_events(spark, rows)
    create = f"CREATE TABLE {name} USING iceberg PARTITIONED BY (dt) {_PROPERTIES}"

    def write() -> str:
        began = time.perf_counter()
        spark.sql(f"{create} AS SELECT * FROM {{rows}}", rows=made)
        return f"wrote {rows:,} rows in {time.perf_counter() - began:.1f} s"

    story.call(f'spark.sql("{create} AS SELECT * FROM {{rows}}", rows=rows)', write)
    table = story.call(
        f'iceberg = alcid.iceberg("{name}", spark)',
        lambda: iceberg(name, spark),
        lambda found: count_text(found.files, "file"),
    )
    story.call(
        "iceberg.build_indexes(indexes)", lambda: table.build_indexes(INDEXES, progress=False)
    )
    return table
