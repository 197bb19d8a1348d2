"""An engine that pickles what tasks are given, as Spark does: each item is a task of its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from alcid._arrays import Int64Array
from alcid.formats.deletion_vector import DeletionVector
from alcid.scan import ReadPlan, ScanPlan
from alcid.tables.base import find_matching
from alcid.tables.engine import Items, Task, Threads, take_items
from alcid.tables.progress import ReportProgress, no_progress

__all__ = ["TaskEngine"]

R = TypeVar("R")


class TaskEngine(Threads):
    """Nothing is looked for in the driver, so that every deleted row is found by a task."""

    delete_bytes: int | None = 0

    def __init__(self) -> None:
        super().__init__()
        self.task_bytes: list[int] = []
        """The size of each task that was sent."""

    def map(
        self,
        function: Callable[[Task[Items]], R],
        items: Items,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[R]:
        """Each item is a task; what it is given, and what it gives, is pickled."""
        results = []
        for number in range(len(sizes)):
            sent = pickle.dumps((function, take_items(items, np.array([number]))))
            self.task_bytes.append(len(sent))
            work, own = pickle.loads(sent)
            results.append(pickle.loads(pickle.dumps(work(Task(own, 1, report)))))
        return results

    def count(self, plan: ScanPlan) -> int | None:
        """How many rows match, by tasks."""
        return sum(self.map(_count, plan.read_plan(), plan.sizes))

    def find(self, plan: ScanPlan) -> Mapping[int, DeletionVector]:
        """The positions of the rows that match, by tasks."""
        return find_matching(plan, self)


def _count(task: Task[ReadPlan]) -> int:
    return sum(map(len, task.items.read()))
