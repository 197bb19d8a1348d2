"""The jobs of a session, as Spark's UI shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Job", "job_ids", "jobs_within"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job, as it is listed."""

    description: str | None
    group: str | None
    tags: frozenset[str]
    pools: frozenset[str]
    """Of its stages that have begun."""
    tasks: int


@contextmanager
def jobs_within(spark: SparkSession) -> Iterator[list[Job]]:
    """The jobs that begin within the block, in any thread; the list is filled when it ends."""
    before = job_ids(spark)
    jobs: list[Job] = []
    yield jobs
    jobs += (_job(spark, number) for number in sorted(job_ids(spark) - before))


def job_ids(spark: SparkSession) -> set[int]:
    """The ids of all jobs that are listed."""
    return {int(job.jobId()) for job in _each(_store(spark).jobsList(None))}


def _store(spark: SparkSession) -> Any:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()  # it is told of events by another thread
    return context.statusStore()


def _job(spark: SparkSession, number: int) -> Job:
    store = _store(spark)
    job = store.job(number)
    stages = _each(job.stageIds())
    attempts = [store.lastStageAttempt(stage) for stage in stages]
    return Job(
        _text(job.description()),
        _text(job.jobGroup()),
        frozenset(map(str, _each(job.jobTags()))),
        frozenset(
            str(stage.schedulingPool())
            for stage in attempts
            if str(stage.status()) not in ("PENDING", "SKIPPED")
        ),
        int(job.numTasks()),
    )


def _text(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


def _each(items: Any) -> list[Any]:
    return [items.apply(position) for position in range(items.size())]
