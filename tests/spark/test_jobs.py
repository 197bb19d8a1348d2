"""`Engine.map` on Spark: each task gets only its own items, and results keep their order."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.errors import AlcidWarning, FormatError
from alcid.spark import jvm
from alcid.spark.engine import SparkEngine
from alcid.tables.engine import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAYLOAD = 2000  # bytes of an item


class Sent:
    """How much each job sends: with its function, and with each task."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.closure, self.tasks = 0, list[int]()
        run = jvm.map_in_arrow

        def map_in_arrow(rows: Any, function: Any, schema: Any) -> Any:
            from pyspark import cloudpickle

            self.closure = len(cloudpickle.dumps(function))
            self.tasks = [len(row["items"]) for row in rows.select("items").collect()]
            return run(rows, function, schema)

        monkeypatch.setattr(jvm, "map_in_arrow", map_in_arrow)


def _numbers(task: Task[list[tuple[int, bytes]]]) -> list[int]:
    task.report(len(task.items), 0)
    return [number for number, _ in task.items]


def _rows_of(task: Task[pa.Table]) -> list[int]:
    numbers: list[int] = task.items.column("number").to_pylist()
    return numbers


def test_a_task_is_sent_its_own_items_only(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, sent = SparkEngine(spark), Sent(monkeypatch)
    closures, largest = [], []
    for count in (10, 1000):
        items = [(number, bytes([number % 251]) * _PAYLOAD) for number in range(count)]
        parts = engine.map(_numbers, items, np.full(count, 4 << 20))
        assert len(parts) == len(sent.tasks) > 1
        assert [number for part in parts for number in part] == list(range(count))
        closures.append(sent.closure)
        largest.append(max(sent.tasks) / max(map(len, parts)))
    assert closures[0] == closures[1] < _PAYLOAD
    assert max(largest) < 1.2 * _PAYLOAD


def test_tables_are_split_by_rows(spark: SparkSession) -> None:
    table = pa.table({"number": range(9)})
    parts = SparkEngine(spark).map(_rows_of, table, np.full(9, 1 << 30))
    assert parts == [[number] for number in range(9)]  # a gigabyte each


def _fails(task: Task[list[int]]) -> int:
    warnings.warn("half of it", AlcidWarning, stacklevel=1)
    if 0 in task.items:
        raise FormatError("damaged", file="a")
    return len(task.items)


def test_errors_and_warnings_of_tasks_reach_the_driver(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    with pytest.warns(AlcidWarning, match="half of it"):
        assert sum(engine.map(_fails, [1, 2, 3], np.full(3, 1))) == 3
    with (
        pytest.warns(AlcidWarning, match="half of it"),
        pytest.raises(FormatError, match="damaged"),
    ):
        engine.map(_fails, [1, 0, 3], np.full(3, 1))


def test_progress_is_reported_as_tasks_end(spark: SparkSession) -> None:
    reported = []
    items = [(number, b"") for number in range(20)]
    SparkEngine(spark).map(
        _numbers, items, np.full(20, 1 << 20), lambda files, _rows: reported.append(files)
    )
    assert sum(reported) == 20
