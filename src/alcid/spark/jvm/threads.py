"""What Spark ties to threads: descriptions, job groups, pools and tags of jobs; and accumulators.

Spark keeps the properties of a job with the thread of the driver that starts it. A job that is to
be watched runs in a thread of its own, which takes all of them over from the caller: the job is
then of the caller's group, runs in the caller's pool, and is cancelled with it.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from alcid.spark.jvm import has_jvm, is_stopped, spark_exceptions

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

R = TypeVar("R")

_DESCRIPTION = "spark.job.description"


@contextmanager
def described(spark: SparkSession, description: str) -> Iterator[None]:
    """Let the jobs of this thread have a description in Spark's UI, unless the user has set one.

    Without a JVM, nothing is done.
    """
    if not has_jvm(spark) or spark.sparkContext.getLocalProperty(_DESCRIPTION) is not None:
        yield
        return
    spark.sparkContext.setLocalProperty(_DESCRIPTION, description)
    try:
        yield
    finally:
        if not is_stopped(spark):
            with suppress(*spark_exceptions()):  # the JVM may have ended meanwhile
                spark.sparkContext.setLocalProperty(_DESCRIPTION, None)


class JobThread:
    """A call in a thread of its own, whose jobs are taken for jobs of the calling thread."""

    def __init__(self, spark: SparkSession, call: Callable[[], R], description: str) -> None:
        """Start it."""
        from pyspark import InheritableThread

        self._spark, self._tag = spark, f"alcid-{uuid.uuid4().hex}"
        self._future: Future[R] = Future()
        tags = [*_session_tags(spark), self._tag]

        def run() -> None:
            try:
                with self._tagged(tags), described(spark, description):
                    self._future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it is raised by `result`
                self._future.set_exception(error)

        # Without a JVM, tags are those of the session's client, which the thread takes over.
        session = None if has_jvm(spark) else spark
        InheritableThread(run, session=session, name="alcid-job", daemon=True).start()

    @contextmanager
    def _tagged(self, tags: list[str]) -> Iterator[None]:
        """Tag the jobs of this thread, which ends with the block."""
        add = self._spark.sparkContext.addJobTag if has_jvm(self._spark) else self._spark.addTag
        for tag in tags:
            add(tag)
        yield

    def wait(self, seconds: float) -> bool:
        """Wait for the call, and say whether it has ended."""
        with suppress(TimeoutError):
            self._future.exception(seconds)
        return self._future.done()

    def result(self) -> Any:
        """What the call has returned; what it has raised is raised."""
        return self._future.result()

    def cancel(self, seconds: float) -> None:
        """Cancel its jobs until it has ended: one of them may not have begun yet.

        Once Spark itself has ended, there is nothing left to wait for.
        """
        while not is_stopped(self._spark):
            with suppress(*spark_exceptions()):
                if has_jvm(self._spark):
                    self._spark.sparkContext.cancelJobsWithTag(self._tag)
                else:
                    self._spark.interruptTag(self._tag)
            if self.wait(seconds):
                return


def _session_tags(spark: SparkSession) -> list[str]:
    """The tags that the calling thread has set by `SparkSession.addTag`, as its jobs have them.

    Spark makes them unlike those of any other thread. `InheritableThread` would add tags of the
    same names, which belong to the new thread, so that an interrupt by the caller missed its jobs.
    """
    if not has_jvm(spark):
        return []
    tags = str(spark._jsparkSession.managedJobTags().get().values().mkString(","))
    return [tag for tag in tags.split(",") if tag]


_idle_counters: list[Accumulator[int]] = []
_lock = threading.Lock()


@contextmanager
def progress_counters(spark: SparkSession, count: int) -> Iterator[list[Counter] | None]:
    """Numbers that tasks add to, and of which the driver sees what ended tasks have added.

    Without a JVM there are none. PySpark never forgets an accumulator, and fails for the whole
    application if an update comes for one that was taken out of its registry. So counters are used
    again: there are only as many as were needed at one time.
    """
    if not has_jvm(spark):
        yield None
        return
    with _lock:
        reused = [_idle_counters.pop() for _ in range(min(count, len(_idle_counters)))]
    new = [spark.sparkContext.accumulator(0) for _ in range(count - len(reused))]
    try:
        yield [Counter(accumulator) for accumulator in [*reused, *new]]
    finally:
        with _lock:
            _idle_counters.extend([*reused, *new])


class Counter:
    """A number that tasks add to, from 0 on."""

    def __init__(self, accumulator: Accumulator[int]) -> None:
        """Begin at what others have counted."""
        self._accumulator, self._begin = accumulator, accumulator.value

    def add(self, number: int) -> None:
        """Add in a task."""
        self._accumulator.add(number)

    @property
    def value(self) -> int:
        """What has been added, in the driver."""
        count: int = self._accumulator.value - self._begin
        return count

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_task, (self._accumulator,)


def _of_task(accumulator: Accumulator[int]) -> Counter:
    counter = Counter.__new__(Counter)
    counter._accumulator = accumulator  # whose value only the driver may ask for
    return counter
