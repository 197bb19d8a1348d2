"""Work on many files as one Spark job of few tasks.

A Python task costs a tenth of a second before it does anything. So items are put together by their
bytes: a few tasks for each core, so that the last ones do not leave the others waiting; and none so
large that losing it costs much. The items of a task travel as a row of a DataFrame, so that no task
is sent those of another.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array, split_by
from alcid.config import Settings, current_settings, using
from alcid.errors import AlcidError, AlcidWarning
from alcid.spark import jvm
from alcid.spark.errors import job_errors
from alcid.spark.jvm.threads import Counter, JobThread, progress_counters
from alcid.tables.engine import Task, take_items
from alcid.tables.progress import ReportProgress, current_work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Items = TypeVar("Items")
R = TypeVar("R")
_Message: TypeAlias = tuple[type[Warning], str]

_TASKS_PER_CORE = 3
_MIN_TASK_BYTES, _MAX_TASK_BYTES = 64 << 20, 1 << 30
_POLL_SECONDS = 0.2
MAX_WARNINGS = 100
"""Different warnings that a task sends to the driver, and that the driver shows of a job."""


def split_by_bytes(sizes: Int64Array, cores: int) -> list[Int64Array]:
    """The positions of the items of each task: of about the same number of bytes, in order.

    >>> split_by_bytes(np.full(5, 300 << 20), cores=1)
    [array([0, 1]), array([2, 3]), array([4])]
    """
    total = int(sizes.sum())
    count = max(
        min(_TASKS_PER_CORE * cores, total // _MIN_TASK_BYTES),
        total // _MAX_TASK_BYTES,
        min(cores, len(sizes)),
        1,
    )
    ends = np.cumsum(sizes)
    numbers = np.minimum((ends - sizes) * count // max(total, 1), count - 1)
    return split_by(np.arange(len(sizes)), numbers)


def map_tasks(
    spark: SparkSession,
    function: Callable[[Task[Items]], R],
    items: Items,
    sizes: Int64Array,
    report: ReportProgress,
    name: str = "",
) -> list[R]:
    """The result of each task, in order; see `Engine.map`. `name`: what the table is called.

    Raises:
        AlcidError: What the first task raised that failed; the others have been done all the same.
            Or the job was cancelled.
    """
    parts = split_by_bytes(sizes, jvm.parallelism(spark))
    tasks = [take_items(items, positions) for positions in parts]
    with progress_counters(spark, 2) as counters:
        runner = _TaskRunner(function, current_settings(), counters)
        job = over_tasks(spark, tasks, runner, "task bigint, outcome binary")
        thread = JobThread(spark, job.toArrow, job_description(name, str(current_work() or "")))
        try:
            _watch(thread, counters, report)
        except BaseException:
            thread.cancel(_POLL_SECONDS)
            raise
    with job_errors():
        collected = thread.result()
    outcomes = dict(zip(*collected.to_pydict().values(), strict=True))
    return _results([pickle.loads(outcomes[number]) for number in range(len(tasks))])


def job_description(name: str, work: str) -> str:
    """What Spark's UI calls a job.

    >>> job_description("events", "indexing (40 files)")
    'alcid: events: indexing (40 files)'
    """
    return ": ".join(filter(None, ("alcid", name, work)))


def over_tasks(
    spark: SparkSession, tasks: Sequence[Any], function: Any, schema: StructType | str
) -> DataFrame:
    """What a function gives for each task, as `mapInArrow` calls it.

    Its rows are the number of a task and its pickled items, each row in a partition of its own.
    """
    rows = [pickle.dumps(items, pickle.HIGHEST_PROTOCOL) for items in tasks]
    batches = [
        pa.record_batch([pa.array([number]), pa.array([row], pa.binary())], ["task", "items"])
        for number, row in enumerate(rows)
    ]
    frame = spark.createDataFrame(pa.Table.from_batches(batches), "task bigint, items binary")
    if len(rows) > jvm.local_slices(spark):  # else each gets a partition as it is
        from pyspark.sql import functions as f

        frame = frame.repartitionById(len(rows), f.col("task").cast("int"))
    return jvm.map_in_arrow(frame, function, schema)


def tasks_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """The numbers and items of the tasks that `over_tasks` has put into a partition."""
    for batch in batches:
        for number, items in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield number, pickle.loads(items)


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[R]):
    """What came of a task."""

    result: R | None
    error: AlcidError | None
    warnings: tuple[_Message, ...]


@dataclass(frozen=True, eq=False)
class _TaskRunner(Generic[R]):
    """What runs on the executors, as `mapInArrow` calls it."""

    function: Callable[[Task[Any]], R]
    settings: Settings
    counters: Sequence[Counter] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, items in tasks_of(batches):
            outcome = pickle.dumps(self._run(Task(items, 1, self._report)))
            columns = [pa.array([number]), pa.array([outcome], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, ["task", "outcome"])

    def _run(self, task: Task[Any]) -> _Outcome[R]:
        # An error of ours would be the same at every try: it is returned, not raised.
        result, error = None, None
        with using(self.settings), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AlcidWarning)
            try:
                result = self.function(task)
            except AlcidError as raised:
                error = raised
        return _Outcome(result, error, _ours(caught))

    def _report(self, files: int, rows: int) -> None:
        for counter, number in zip(self.counters or (), (files, rows), strict=False):
            counter.add(number)


def _ours(caught: Sequence[warnings.WarningMessage]) -> tuple[_Message, ...]:
    """Our own warnings of a task."""
    messages = [(warning.category, str(warning.message)) for warning in caught]
    return _shortened([message for message in messages if issubclass(message[0], AlcidWarning)])


def _shortened(messages: Iterable[_Message]) -> tuple[_Message, ...]:
    """Warnings, each once; of very many the first ones, and how many more there are.

    >>> [text for _, text in _shortened([(AlcidWarning, str(n % 150)) for n in range(300)])][99:]
    ['99', '50 more warnings, which are not shown']
    """
    different = list(dict.fromkeys(messages))
    left_out = len(different) - MAX_WARNINGS
    if left_out > 0:
        text = f"{left_out} more warnings, which are not shown"
        different = [*different[:MAX_WARNINGS], (AlcidWarning, text)]
    return tuple(different)


def _watch(thread: JobThread, counters: Sequence[Counter] | None, report: ReportProgress) -> None:
    """Report progress until the job has ended."""
    seen = 0, 0
    while True:
        has_ended = thread.wait(_POLL_SECONDS)
        if counters is not None:
            files, rows = (counter.value for counter in counters)
            if files > seen[0]:
                report(files - seen[0], rows - seen[1])
            seen = files, rows
        if has_ended:
            return


def _results(outcomes: list[_Outcome[R]]) -> list[R]:
    results: list[R] = []
    for category, text in _shortened(w for outcome in outcomes for w in outcome.warnings):
        warnings.warn(text, category, stacklevel=2)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        results.append(outcome.result)  # type: ignore[arg-type]  # there is one without an error
    return results
