"""Streams of Spark into a table with a key: batch n is the n-th file of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import alcid
from tests.tables.paimon.keyed.sink_tables import keyed_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES: tuple[dict[int, tuple[str, str | None]], ...] = (
    {0: ("+U", "zero"), 1: ("+U", "zero"), 10: ("+I", "zero")},
    {1: ("-D", None), 2: ("+U", "one"), 11: ("+I", "one")},
    {10: ("+U", "two"), 11: ("-D", None), 1: ("+I", "two")},
)
"""The changes of each batch."""


def names_after(batches: int) -> dict[int, str]:
    """The rows of the table after this many batches."""
    names = dict.fromkeys(range(10), "old")
    for batch in BATCHES[:batches]:
        for number, (kind, name) in batch.items():
            if name is None:
                del names[number]
            else:
                assert kind in ("+I", "+U")
                names[number] = name
    return dict(sorted(names.items()))


def make(folder: Path, batches: int) -> None:
    """A table, and the files of some batches."""
    keyed_table(folder / "table")
    for number in range(batches):
        add_batch(folder, number)


def add_batch(folder: Path, number: int) -> None:
    """The file of a batch; files are read in the order of their modification times."""
    batch = BATCHES[number]
    names = {row_number: name for row_number, (_, name) in batch.items()}
    path = folder / "input" / f"{number}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(rows_of(names, [kind for kind, _ in batch.values()]), path)
    os.utime(path, (1_700_000_000 + number,) * 2)


def rows(spark: SparkSession, folder: Path) -> DataFrame:
    """The stream."""
    stream = spark.readStream.schema("id BIGINT, name STRING, op STRING")
    return stream.option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))


def start(spark: SparkSession, folder: Path, checkpoint: str = "checkpoint") -> Any:
    """Begin a query that ends when all files are read."""
    table = alcid.paimon(folder / "table", spark)
    sink = alcid.upsert_sink(table, "numbers", row_kind="op")
    writer = rows(spark, folder).writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(folder / checkpoint))
    return writer.trigger(availableNow=True).start()


def run(spark: SparkSession, folder: Path, checkpoint: str = "checkpoint") -> None:
    """Run a query until all files are read."""
    query = start(spark, folder, checkpoint)
    try:
        query.awaitTermination()
    finally:
        query.stop()
