"""The engine: what does the work on many files, in this process or on Spark.

Work comes as items, which are divided into tasks. A worker does a task from its first item to its
last, publishes what it makes under names of its own, and returns a result. So a worker that is
killed, or one that does a task for the second time, does no harm: only results count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.scan import Scan, ScanEngine, ScanPlan
from alcid.tables.progress import ReportProgress, no_progress
from alcid.tables.rows import ArrowRows, RowSource

Items = TypeVar("Items")
Items_co = TypeVar("Items_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[Items_co]):
    """The items that one worker works on."""

    items: Items_co
    """Its own items, of the same kind as all of them: a sequence, a table, or `Splittable`."""
    threads: int = 1
    """How many threads it may use."""
    report: ReportProgress = no_progress


@runtime_checkable
class Splittable(Protocol):
    """Items that are kept in columns, as the files of a table are."""

    def part(self, positions: Int64Array, /) -> Any:
        """Some of the items, and nothing of the others; it pickles."""


def take_items(items: Items, positions: Int64Array) -> Items:
    """The items of one task: of a sequence, an Arrow table, or what is `Splittable`.

    >>> import numpy as np
    >>> take_items(["a", "b", "c"], np.array([1, 2]))
    ['b', 'c']
    """
    taken: Any
    if isinstance(items, Splittable):
        taken = items.part(positions)
    elif isinstance(items, pa.Table):
        taken = items.take(pa.array(positions))
    else:
        taken = [items[position] for position in positions.tolist()]  # type: ignore[index]
    return taken  # type: ignore[no-any-return]


class Engine(ScanEngine, Protocol):
    """What does the work on a table, and reads its rows."""

    def map(
        self,
        function: Callable[[Task[Items]], R],
        items: Items,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[R]:
        """Divide items into tasks, and return the result of each.

        A task has items that follow each other, and results come in the order of tasks: where a
        result is a list with one entry for each item, all of them in a row are in the items' order.

        Args:
            function: Does a task. It is pickled with all that it holds, which should be the same
                for any number of items; so is what it returns.
            items: A sequence, an Arrow table, or what is `Splittable`. Each task is sent its own
                ones only.
            sizes: The bytes of each item, by which they are divided.
            report: Is called with what is done.
        """

    def row_source(self, rows: Any, /) -> RowSource:
        """The rows of a DataFrame, to be written; see `row_source` for rows of any kind."""

    def streaming_query(self, rows: Any, /) -> str | None:
        """The id of the streaming query that rows come from, the same as long as its checkpoint is.

        None if there is none, or it is not known.
        """


class Threads:
    """This process, with as many threads as there are cores."""

    has_spark = False
    delete_bytes: int | None = None

    def __init__(self, like: Engine | None = None) -> None:
        """Work with the settings of another engine; by default with those of `alcid.config`."""
        self._like = like

    def settings(self) -> AbstractContextManager[None]:
        """The time zone and the case rule."""
        return nullcontext() if self._like is None else self._like.settings()

    def map(
        self,
        function: Callable[[Task[Items]], R],
        items: Items,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[R]:
        """Do all items as one task."""
        del sizes
        return [function(Task(items, os.cpu_count() or 1, report))]

    def to_spark(self, scan: Scan) -> Any:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise no_spark(scan)

    def row_source(self, _rows: Any, /) -> RowSource:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise no_spark("a DataFrame")

    def streaming_query(self, _rows: Any, /) -> str | None:
        """There is none."""
        return None

    def count(self, _plan: ScanPlan) -> int | None:
        """Reading is the scan's own work."""
        return None

    def find(self, plan: ScanPlan) -> Mapping[int, DeletionVector]:
        """Nothing is left to be found: `delete_bytes` has no limit."""
        raise AssertionError(plan)

    def note(self, _scan: Scan) -> str | None:
        """Nothing to say."""
        return None


def row_source(engine: Engine, rows: Any, table: object) -> RowSource:
    """Rows to be written to a table: an Arrow table or record batch, or a DataFrame.

    Raises:
        UnsupportedError: Rows of another kind, or a DataFrame where there is no Spark.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return ArrowRows(rows)
    if not hasattr(rows, "sparkSession"):
        raise UnsupportedError(
            f"rows: found {type(rows).__name__}, expected a Spark DataFrame or an Arrow table"
        )
    if not engine.has_spark:
        raise no_spark(table)
    return engine.row_source(rows)


def no_spark(what: object) -> UnsupportedError:
    """The error of what only Spark does."""
    return UnsupportedError(
        f"{what}: needs Spark, open the table with a session, as alcid.session() gives one"
    )
