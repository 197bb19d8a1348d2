"""Work on many files as one Spark job of few tasks.

A Python task costs a tenth of a second before it does anything. So items are put together by their
bytes: a few tasks for each core, so that the last ones do not leave the others waiting; and none so
large that losing it costs much. The items of a task travel as a row of a DataFrame, so that no task
is sent those of another.
"""

from __future__ import annotations

import pickle
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array, split_by
from alcid.config import Settings, current_settings, using
from alcid.errors import AlcidError, AlcidWarning
from alcid.spark import jvm
from alcid.spark.errors import naming_missing_package
from alcid.tables.engine import Task, take_items
from alcid.tables.progress import ReportProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Items = TypeVar("Items")
R = TypeVar("R")

_TASKS_PER_CORE = 3
_MIN_TASK_BYTES, _MAX_TASK_BYTES = 64 << 20, 1 << 30
_POLL_SECONDS = 0.2


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
) -> list[R]:
    """The result of each task, in order; see `Engine.map`.

    Raises:
        AlcidError: What the first task raised that failed; the others have been done all the same.
    """
    parts = split_by_bytes(sizes, jvm.parallelism(spark))
    files, rows = jvm.progress_counter(spark), jvm.progress_counter(spark)
    runner = _TaskRunner(function, current_settings(), files, rows)
    tasks = [take_items(items, positions) for positions in parts]
    job = over_tasks(spark, tasks, runner, "task bigint, outcome binary")
    tag = f"alcid-{uuid.uuid4().hex}"

    def collect() -> Any:
        spark.addTag(tag)
        try:
            return job.toArrow()
        finally:
            spark.removeTag(tag)

    with ThreadPoolExecutor(1, thread_name_prefix="alcid-job") as pool:
        running = pool.submit(collect)
        try:
            _watch(running, files, rows, report)
        except BaseException:
            spark.interruptTag(tag)
            raise
    with naming_missing_package():
        collected = running.result()
    outcomes = dict(zip(*collected.to_pydict().values(), strict=True))
    return _results([pickle.loads(outcomes[number]) for number in range(len(tasks))])


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
    if not jvm.has_jvm(spark) or len(rows) > jvm.parallelism(spark):  # else Spark splits them so
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
    warnings: tuple[tuple[type[Warning], str], ...]


@dataclass(frozen=True, eq=False)
class _TaskRunner(Generic[R]):
    """What runs on the executors, as `mapInArrow` calls it."""

    function: Callable[[Task[Any]], R]
    settings: Settings
    files: Any
    rows: Any

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
        messages = {(warning.category, str(warning.message)): None for warning in caught}
        ours = tuple(message for message in messages if issubclass(message[0], AlcidWarning))
        return _Outcome(result, error, ours)

    def _report(self, files: int, rows: int) -> None:
        if self.files is not None:
            self.files.add(files)
            self.rows.add(rows)


def _watch(running: Future[Any], files: Any, rows: Any, report: ReportProgress) -> None:
    """Report progress until the job has ended."""
    seen = 0, 0
    while True:
        ended = running.done()
        if files is not None:
            now = files.value, rows.value
            if now[0] > seen[0]:
                report(now[0] - seen[0], now[1] - seen[1])
            seen = now
        if ended:
            return
        time.sleep(_POLL_SECONDS)


def _results(outcomes: list[_Outcome[R]]) -> list[R]:
    results: list[R] = []
    messages: dict[tuple[type[Warning], str], None] = {}
    for outcome in outcomes:
        messages.update(dict.fromkeys(outcome.warnings))
    for category, text in messages:
        warnings.warn(text, category, stacklevel=2)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        results.append(outcome.result)  # type: ignore[arg-type]  # there is one without an error
    return results
