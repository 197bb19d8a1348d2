"""Files that are named one by one are read as Spark reads them, with few calls of Java."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import JavaClient

from alcid.spark.jvm.files import java_list, read_parquet
from tests.spark.ui import jobs_within

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
FILES = 50  # Spark starts a job to list more than 32
MAX_CALLS = 80  # of Java, for any number of paths


class Calls:
    """How many commands this process sends to Java."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        send = JavaClient.send_command

        def send_command(client: Any, *arguments: Any, **options: Any) -> Any:
            self.count += 1
            return send(client, *arguments, **options)

        monkeypatch.setattr(JavaClient, "send_command", send_command)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two partitions, with a name that Spark escapes."""
    root = tmp_path_factory.mktemp("files")
    for number in range(FILES):
        path = root / f"dt={number % 2}" / f"part %{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": [number, number + 1000]}), path)
    return root


def _schema() -> StructType:
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    return StructType([StructField("id", LongType()), StructField("dt", IntegerType())])


def _paths(folder: Path) -> list[str]:
    return [f"file:{path}" for path in sorted(folder.rglob("*.parquet"))]


@pytest.mark.parametrize("v1", [True, False])
def test_rows_are_those_of_the_files_and_listing_takes_no_job(
    other_session: SparkSession, folder: Path, v1: bool
) -> None:
    other_session.conf.set(THRESHOLD, "32")
    if not v1:
        other_session.conf.set("spark.sql.sources.useV1SourceList", "")
    base, paths = f"file:{folder}", _paths(folder)[1:]
    with jobs_within(other_session) as jobs:
        rows = read_parquet(other_session, paths, _schema(), base)
    assert len(jobs) == (0 if v1 else 1)
    plain = other_session.read.schema(_schema()).option("basePath", base).parquet(*paths)
    assert rows.schema == plain.schema
    assert sorted(rows.collect()) == sorted(plain.collect())
    assert sorted(rows.where("dt = 1").inputFiles()) == sorted(plain.where("dt = 1").inputFiles())
    assert rows.sparkSession is other_session
    assert other_session.conf.get(THRESHOLD) == "32"


def test_settings_of_the_session_count_when_rows_are_read(
    other_session: SparkSession, folder: Path
) -> None:
    rows = read_parquet(other_session, _paths(folder), _schema(), f"file:{folder}")
    other_session.conf.set("spark.sql.files.maxPartitionBytes", "1b")
    assert rows.rdd.getNumPartitions() >= FILES
    other_session.conf.set("spark.sql.files.maxPartitionBytes", "128m")
    assert rows.select("id").rdd.getNumPartitions() < FILES


def test_calls_are_as_many_for_any_number_of_paths(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, counts = Calls(monkeypatch), []
    read_parquet(spark, _paths(folder), _schema())
    for number in (2, FILES):
        calls.count = 0
        read_parquet(spark, _paths(folder)[:number], _schema())
        counts.append(calls.count)
    assert max(counts) < MAX_CALLS
    assert abs(counts[1] - counts[0]) < 8  # objects of Java are released when Python's are
    calls.count = 0
    texts = [f'"{number}\n\\ä' for number in range(10_000)]
    java = java_list(spark._jvm, texts)
    assert (java.size(), java.get(9_999)) == (10_000, texts[-1])
    assert calls.count < MAX_CALLS
