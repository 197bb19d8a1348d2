"""What appends to all kinds of tables share: rows go to tasks, which write, and tell what.

Spark gives back what each task told that counts, whatever was tried twice.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from alcid.errors import AlcidError, FileGoneError, StorageError
from alcid.options import Settings, current_settings, using
from alcid.spark import jvm
from alcid.spark.spark_errors import naming_missing_package

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["column_at", "columns_at", "run_tasks", "together", "told_error"]

T = TypeVar("T")

_ANSWER = "answer binary, problem binary"


def run_tasks(
    rows: DataFrame, write: Callable[[Iterable[pa.RecordBatch]], Iterable[T]]
) -> Iterator[T]:
    """Let tasks write rows; what they tell, also if some of them fail, before that is raised.

    Args:
        rows: Those of each partition go to one task.
        write: Takes the rows of a task, and tells what it wrote; it is pickled, and what it tells.

    Raises:
        AlcidError: What a task raised, if it would raise it again.
    """
    task = _Task(write, current_settings())
    with naming_missing_package():
        answers = jvm.map_in_arrow(rows, task, _ANSWER).collect()
    for answer, _ in answers:
        if answer is not None:
            yield pickle.loads(answer)
    for _, problem in answers:
        if problem is not None:
            raise pickle.loads(problem)


@dataclass(frozen=True, slots=True)
class _Task(Generic[T]):
    """What runs on the executors."""

    write: Callable[[Iterable[pa.RecordBatch]], Iterable[T]]
    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with using(self.settings):
            try:
                for told in self.write(batches):
                    yield _row(pickle.dumps(told), None)
            except AlcidError as error:
                yield _row(None, told_error(error))


def told_error(error: AlcidError) -> bytes:
    """An error as the driver is told of it; one that may not come again is raised.

    Spark tries the task again then. Of a value that does not fit, it would only hide the cause.
    """
    if isinstance(error, StorageError) and not isinstance(error, FileGoneError):
        raise error
    return pickle.dumps(error)


def _row(answer: bytes | None, problem: bytes | None) -> pa.RecordBatch:
    arrays = [pa.array([answer], pa.binary()), pa.array([problem], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["answer", "problem"])


def column_at(df: DataFrame, place: int) -> Any:
    """A column by its place, whatever its name."""
    from pyspark.sql import functions as f

    name = df.columns[place].replace("`", "``")
    return f.col(f"`{name}`")


def columns_at(df: DataFrame, places: Iterable[int]) -> DataFrame:
    """Columns by their places, named c0, c1 and so on."""
    return df.select(
        *(column_at(df, place).alias(f"c{number}") for number, place in enumerate(places))
    )


def together(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows with those of the same values one after the other, in few tasks; many in several.

    Without names rows stay where they are.
    """
    if not names:
        return rows
    return rows.hint("rebalance", *names).sortWithinPartitions(*names)
