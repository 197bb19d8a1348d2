"""What the driver of a Spark is asked while it, or a process that it started, is killed."""

from __future__ import annotations

import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from alcid.errors import AlcidError, AlcidWarning
from alcid.scan import ScanPlan
from alcid.spark.jvm import map_in_arrow, spark_exceptions
from alcid.testing.faults import Faults
from tests.faults.killing import counted_calls, die_with_children, killing
from tests.faults.operations import Operation, Rows
from tests.faults.spark_tables import Series, SparkTable, frames, make_iceberg
from tests.faults.sweep import check_after, check_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KillRequests"]


_GOOD_JOBS, _MOST_JOBS = 3, 20
PROBLEMS: tuple[type[Exception], ...] = (AlcidError, *spark_exceptions())


class KillRequests:
    """Each method is a request; a table is named by its location."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._running: dict[str, Future[float]] = {}
        self._pool = ThreadPoolExecutor()
        self._armed = ExitStack()

    def make_iceberg(self, location: str) -> Rows:
        """Make a table of the catalog; returns its rows."""
        return make_iceberg(self._spark, location)

    def begin(self, location: str, **asked: Any) -> None:
        """Begin an operation; returns when it is about to run."""
        operation = self._operation(location=location, **asked)
        begun = threading.Event()

        def run() -> float:
            with _BY_TASKS.active():
                begun.set()
                start = time.monotonic()
                answer = operation.run(SparkTable(self._spark, location).open())
                seconds = time.monotonic() - start
            check_answer(operation, answer)
            return seconds

        self._running[location] = self._pool.submit(run)
        begun.wait()

    def ended(self) -> list[str]:
        """The tables whose operations have ended."""
        return [location for location, running in self._running.items() if running.done()]

    def end(self, location: str) -> dict[str, Any]:
        """Wait for the end of an operation: the seconds that it took, or the error it gave.

        A wrong answer is not such an error, and is raised.
        """
        try:
            return {"seconds": self._running.pop(location).result(), "problem": None}
        except PROBLEMS:
            return {"seconds": None, "problem": traceback.format_exc()}

    def check(self, *, is_done: bool, **asked: Any) -> float | None:
        """Check what an operation has left, as `check_after` does; returns its seconds."""
        self._armed.close()
        operation = self._operation(**asked)
        taken: list[float] = []

        def run(table: Any) -> Any:
            start = time.monotonic()
            answer = operation.run(table)
            taken.append(time.monotonic() - start)
            return answer

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlcidWarning)
            table = SparkTable(self._spark, asked["location"])
            before = _rows(asked["rows"])
            check_after(table, replace(operation, run=run), before, is_done=is_done)
        return taken[0] if taken else None

    def die_at(self, number: int, *, within: bool) -> None:
        """Let this process and its JVM be killed at a call to files, unless a check comes first."""
        faults = Faults()
        faults.plan(killing(number, die_with_children, within=within))
        self._armed.enter_context(counted_calls(faults))

    def wait_for_workers(self) -> None:
        """Wait until tasks have Python workers again.

        Spark keeps idle ones for later. If their parent was killed, the next task that gets one
        of them fails, whatever it does; a local Spark does not retry it.
        """
        good = 0
        for _ in range(_MOST_JOBS):
            try:
                map_in_arrow(self._spark.range(0, 2, 1, 2), _same, "id bigint").collect()
                good += 1
            except PROBLEMS:
                good = 0
            if good == _GOOD_JOBS:
                return
        raise AssertionError(f"no {_GOOD_JOBS} jobs in a row among {_MOST_JOBS}")

    def failed_tasks(self) -> int:
        """How many tasks Spark has had to repeat, or has given up."""
        tracker = self._spark.sparkContext.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(None))
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        infos = map(tracker.getStageInfo, stages)
        return sum(info.numFailedTasks for info in infos if info is not None)

    def _operation(
        self, name: str, location: str, rows: Sequence[Sequence[Any]], step: int, operation: str
    ) -> Operation:
        series = Series(name, location, _rows(rows), step)
        return series.operations(frames(self._spark))[operation]


class _ByTasks:
    """Lets tasks do what a driver does itself for small tables; for several operations at once."""

    def __init__(self) -> None:
        self._lock, self._holders = threading.Lock(), 0
        self._patch = mock.patch.object(ScanPlan, "is_small", False)

    @contextmanager
    def active(self) -> Iterator[None]:
        with self._lock:
            if not self._holders:
                self._patch.start()
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._patch.stop()


_BY_TASKS = _ByTasks()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _rows(rows: Sequence[Sequence[Any]]) -> Rows:
    """Rows as they were before they became JSON."""
    return tuple((int(key), str(name)) for key, name in rows)
