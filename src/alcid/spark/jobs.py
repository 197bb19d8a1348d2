"""Work on many files as one Spark job of few tasks.

A Python task costs a tenth of a second before it does anything. So files are put together by their
bytes: a few shares for each core, that the last ones do not leave the others waiting; and none so
large that a task which is lost costs much.
"""

from __future__ import annotations

import pickle
import time
import uuid
import warnings
from collections.abc import Iterator
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
from alcid.tables.engine import Share, Tell, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["make_shares", "over_shares", "run_shares"]

R = TypeVar("R")


_A_CORE = 3  # shares
_LEAST, _MOST = 64 << 20, 1 << 30  # bytes of a share
_POLL = 0.2  # seconds


def make_shares(sizes: Int64Array, cores: int) -> list[Int64Array]:
    """Items that go together, one after the other, of about the same number of bytes.

    >>> make_shares(np.full(5, 300 << 20), cores=1)
    [array([0, 1]), array([2, 3]), array([4])]
    """
    total = int(sizes.sum())
    count = max(min(_A_CORE * cores, total // _LEAST), total // _MOST, min(cores, len(sizes)), 1)
    ends = np.cumsum(sizes)
    numbers = np.minimum((ends - sizes) * count // max(total, 1), count - 1)
    return split_by(np.arange(len(sizes)), numbers)


def run_shares(spark: SparkSession, work: Work[R], sizes: Int64Array, tell: Tell) -> list[R]:
    """What work gave for each share, in their order.

    Raises:
        AlcidError: What the first share raised that did; the others have been done all the same.
    """
    shares = make_shares(sizes, jvm.parallelism(spark))
    files, rows = jvm.progress_counter(spark), jvm.progress_counter(spark)
    task = _Task(work, shares, current_settings(), files, rows)
    job = over_shares(spark, len(shares), task, "share bigint, answer binary")
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
            _watch(running, files, rows, tell)
        except BaseException:
            spark.interruptTag(tag)
            raise
    with naming_missing_package():
        collected = running.result()
    answers = dict(zip(*collected.to_pydict().values(), strict=True))
    return _results([pickle.loads(answers[number]) for number in range(len(shares))])


def over_shares(spark: SparkSession, count: int, task: Any, schema: StructType | str) -> DataFrame:
    """What a task gives for each share, which it is given by its number: one row, one column."""
    return jvm.map_in_arrow(spark.range(0, count, 1, count), task, schema)


@dataclass(frozen=True, slots=True)
class _Answer(Generic[R]):
    """What came of a share."""

    result: R | None
    error: AlcidError | None
    warned: tuple[tuple[type[Warning], str], ...]


@dataclass(frozen=True, eq=False)
class _Task(Generic[R]):
    """What a task does, as `mapInArrow` calls it."""

    work: Work[R]
    shares: list[Int64Array]
    settings: Settings
    files: Any
    rows: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = pickle.dumps(self._answer(Share(self.shares[number], threads=1)))
                columns = [pa.array([number]), pa.array([answer], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["share", "answer"])

    def _answer(self, share: Share) -> _Answer[R]:
        # An error of ours would be the same at every try: it is answered, not raised.
        result, error = None, None
        with using(self.settings), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AlcidWarning)
            try:
                result = self.work(share, self._tell)
            except AlcidError as raised:
                error = raised
        said = {(one.category, str(one.message)): None for one in caught}
        ours = tuple(one for one in said if issubclass(one[0], AlcidWarning))
        return _Answer(result, error, ours)

    def _tell(self, files: int, rows: int) -> None:
        if self.files is not None:
            self.files.add(files)
            self.rows.add(rows)


def _watch(running: Future[Any], files: Any, rows: Any, tell: Tell) -> None:
    """Tell how far it is, until it has ended."""
    seen = 0, 0
    while True:
        ended = running.done()
        if files is not None:
            now = files.value, rows.value
            if now[0] > seen[0]:
                tell(now[0] - seen[0], now[1] - seen[1])
            seen = now
        if ended:
            return
        time.sleep(_POLL)


def _results(answers: list[_Answer[R]]) -> list[R]:
    results: list[R] = []
    said: dict[tuple[type[Warning], str], None] = {}
    for answer in answers:
        said.update(dict.fromkeys(answer.warned))
    for category, text in said:
        warnings.warn(text, category, stacklevel=2)
    for answer in answers:
        if answer.error is not None:
            raise answer.error
        results.append(answer.result)  # type: ignore[arg-type]  # there is one without an error
    return results
