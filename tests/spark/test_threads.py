"""Jobs are those of the thread that asks for them: its group, pool, tags and description."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid.errors import AlcidError
from alcid.spark.engine import SparkEngine
from alcid.spark.jvm.threads import described
from alcid.tables.engine import Task
from tests.spark.ui import jobs_within

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOOM = {"file-index.bloom-filter.columns": "id"}
TASK_SECONDS = 60  # of a task that is to be cancelled


@pytest.fixture
def context(spark: SparkSession) -> Iterator[Any]:
    """The Spark context; what a test sets for its thread is taken back."""
    context = spark.sparkContext
    yield context
    context._jsc.clearJobGroup()
    context._jsc.clearJobTags()
    context.setLocalProperty("spark.scheduler.pool", None)
    spark.clearTags()


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> alcid.ParquetTable:
    """A folder of four files."""
    rows = spark.range(0, 400, 1, 4).selectExpr("id", "id % 7 AS kind")
    table = alcid.parquet(tmp_path / "events", spark, create=True)
    table.append(rows, {})
    return table


def _size(task: Task[list[int]]) -> int:
    return len(task.items)


def test_a_job_has_the_properties_of_its_caller(spark: SparkSession, context: Any) -> None:
    context.setJobGroup("nightly", "the user's own words", True)
    context.addJobTag("nightly-tag")
    context.setLocalProperty("spark.scheduler.pool", "background")
    spark.addTag("mine")
    with jobs_within(spark) as plain:
        spark.range(2).collect()
    with jobs_within(spark) as jobs:
        assert SparkEngine(spark, "events").map(_size, [1, 2], np.full(2, 1)) == [1, 1]
    assert len(jobs) == len(plain) == 1
    job, own = jobs[0], plain[0]
    assert job.description == own.description == "the user's own words"
    assert job.group == own.group == "nightly"
    assert job.pools == own.pools == {"background"}
    session_tags = {tag for tag in own.tags if "-thread-" in tag and tag.endswith("-mine")}
    assert len(session_tags) == 1
    assert {"nightly-tag"} | session_tags <= job.tags
    assert context.getLocalProperty("spark.job.tags") == "nightly-tag"
    assert spark.getTags() == {"mine"}


def test_jobs_say_what_they_do_where_the_user_says_nothing(
    spark: SparkSession, events: alcid.ParquetTable
) -> None:
    with jobs_within(spark) as jobs:
        events.build_indexes(BLOOM)
        events.verify()
        events.compute_stats(["kind"])
        events.append(spark.range(9).selectExpr("id", "id AS kind"))
    descriptions = list(dict.fromkeys(job.description for job in jobs))
    assert descriptions == [
        "alcid: events: indexing (4 files)",
        "alcid: events: verifying (4 files)",
        "alcid: events: counting (4 files)",
        "alcid: events: writing rows",
    ]
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_rows_by_key_and_counts_are_described(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    users = alcid.create_table(
        tmp_path / "users", schema, spark, primary_key=["id"], options={"bucket": "2"}
    )
    rows = spark.range(9).selectExpr("id", "'a' AS name")
    with jobs_within(spark) as jobs:
        users.upsert(rows)
        alcid.parquet(tmp_path / "new", spark, create=True).append(rows, dry_run=True)
    assert {job.description for job in jobs} == {
        "alcid: users: writing rows by key",
        "alcid: new: counting rows",
    }


def test_a_description_ends_with_its_block_also_by_an_error(spark: SparkSession) -> None:
    def description() -> Any:
        return spark.sparkContext.getLocalProperty("spark.job.description")

    def fail() -> None:
        with described(spark, "outer"):
            with described(spark, "inner"):
                assert description() == "outer"
            assert description() == "outer"
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert description() is None


def _slow(task: Task[list[str]]) -> int:
    for flag in task.items:
        Path(flag).touch()
    time.sleep(TASK_SECONDS)
    return 0


def _cancel_when_it_runs(flags: list[Path], cancel: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        while not all(flag.exists() for flag in flags):
            time.sleep(0.05)
        cancel()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("by", ["group", "tag", "session"])
def test_a_job_that_is_cancelled_is_one_error(
    spark: SparkSession, context: Any, tmp_path: Path, by: str
) -> None:
    context.setJobGroup("ours", "cancelled soon", True)
    context.addJobTag("cancelled-tag")
    ways = {
        "group": lambda: context.cancelJobGroup("ours"),
        "tag": lambda: context.cancelJobsWithTag("cancelled-tag"),
        "session": spark.interruptAll,
    }
    flags = [tmp_path / "0", tmp_path / "1"]
    thread = _cancel_when_it_runs(flags, ways[by])
    begin = time.monotonic()
    with pytest.raises(AlcidError, match=r"^Spark: Job \d+ cancelled [^\n]+$"):
        SparkEngine(spark).map(_slow, list(map(str, flags)), np.full(2, 1))
    thread.join()
    assert time.monotonic() - begin < TASK_SECONDS / 2
    context._jsc.clearJobGroup()
    context._jsc.clearJobTags()
    assert SparkEngine(spark).map(_size, [1, 2], np.full(2, 1)) == [1, 1]


def test_an_error_of_the_caller_cancels_the_job(spark: SparkSession) -> None:
    """As Ctrl-C does: the job does not go on, and nobody waits for it."""

    def report(_files: int, _rows: int) -> None:
        raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        SparkEngine(spark).map(_one_slow, [0, 1], np.full(2, 1), report)
    assert time.monotonic() - begin < TASK_SECONDS / 2
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def _one_slow(task: Task[list[int]]) -> int:
    task.report(1, 0)
    time.sleep(TASK_SECONDS * task.items[0])
    return 0


def test_an_append_that_is_cancelled_publishes_nothing(
    spark: SparkSession, context: Any, events: alcid.ParquetTable, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.types import LongType

    flag = tmp_path / "flag"
    path, seconds = str(flag), TASK_SECONDS

    def wait(ids: pa.Array) -> pa.Array:
        Path(path).touch()
        time.sleep(seconds)
        return ids

    slow: Any = f.arrow_udf(wait, LongType())
    context.setJobGroup("ours", "cancelled soon", True)
    thread = _cancel_when_it_runs([flag], lambda: context.cancelJobGroup("ours"))
    rows = spark.range(0, 20, 1, 2).select(slow("id").alias("id"), f.col("id").alias("kind"))
    with pytest.raises(AlcidError, match=r"^Spark: Job \d+ cancelled part of cancelled job group"):
        events.append(rows, BLOOM)
    thread.join()
    assert alcid.parquet(events.location).count() == 400
    assert not events.storage.list("_alcid/staging", hidden=True).paths.to_pylist()


def test_nothing_of_a_job_is_left_behind(spark: SparkSession) -> None:
    from pyspark.accumulators import _accumulatorRegistry

    engine = SparkEngine(spark)

    def left_after(jobs: int) -> tuple[int, int, int]:
        for _ in range(jobs):
            engine.map(_size, [1, 2], np.full(2, 1), lambda _files, _rows: None)
        gc.collect()
        names = [thread.name for thread in threading.enumerate()]
        java_threads = [
            str(thread.getName())
            for thread in spark._jvm.java.lang.Thread.getAllStackTraces().keySet()
        ]
        # Of those that Py4J has for the threads of Python; Spark's pools have other names.
        connections = sum(name.startswith("Thread-") for name in java_threads)
        return len(_accumulatorRegistry), names.count("alcid-job"), connections

    accumulators, _, connections = left_after(2)
    after = left_after(50)
    assert after[:2] == (accumulators, 0)
    assert after[2] <= connections + 2  # the last ones may not have ended yet


def test_counters_begin_at_zero_each_time(spark: SparkSession) -> None:
    reported: list[tuple[int, int]] = []

    def report(files: int, rows: int) -> None:
        reported.append((files, rows))

    for jobs in (1, 2):
        SparkEngine(spark).map(_counted, [1, 2, 3], np.full(3, 1), report)
        assert np.sum(reported, axis=0).tolist() == [3 * jobs, 30 * jobs]


def _counted(task: Task[list[int]]) -> int:
    task.report(len(task.items), 10 * len(task.items))
    return 0
