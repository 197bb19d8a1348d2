"""`Engine.map` on Spark: each task gets only its own items, and results keep their order."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.errors import AlcidError, AlcidWarning, FormatError
from alcid.spark import jvm
from alcid.spark.engine import SparkEngine
from alcid.spark.jobs import MAX_WARNINGS, over_tasks, tasks_of
from alcid.tables.engine import Task
from tests.spark.test_sql import Connected
from tests.spark.ui import jobs_within

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


def _warns(task: Task[list[int]]) -> int:
    for item in task.items:
        for number in range(200):
            warnings.warn(f"file {item}: {number}", AlcidWarning, stacklevel=1)
    return len(task.items)


def test_of_many_warnings_the_first_are_shown_and_the_others_counted(spark: SparkSession) -> None:
    with pytest.warns(AlcidWarning) as caught:
        assert SparkEngine(spark).map(_warns, [0, 1], np.full(2, 1)) == [1, 1]
    messages = [str(one.message) for one in caught if one.category is AlcidWarning]
    assert messages[:MAX_WARNINGS] == [f"file 0: {number}" for number in range(MAX_WARNINGS)]
    # Each task has said that of 100 of its own.
    assert messages[MAX_WARNINGS:] == ["101 more warnings, which are not shown"]


def _large(task: Task[list[int]]) -> bytes:
    return b"x" * (len(task.items) * 3 << 20)


def test_results_that_the_driver_may_not_take_are_one_error(spark: SparkSession) -> None:
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "1m")
    try:
        with pytest.raises(AlcidError, match=r"^Spark: Total size of .*maxResultSize [^\n]*$"):
            SparkEngine(spark).map(_large, [1, 2], np.full(2, 1))
    finally:
        conf.remove("spark.driver.maxResultSize")


@pytest.mark.parametrize("slices", ["1", "7"])
def test_each_task_has_a_partition_whatever_spark_does_with_local_rows(
    other_session: SparkSession, slices: str
) -> None:
    other_session.conf.set("spark.sql.leafNodeDefaultParallelism", slices)
    rows = over_tasks(other_session, [1, 2, 3], _partition, "task bigint, partition bigint")
    assert sorted(tuple(row) for row in rows.collect()) == [(0, 0), (1, 1), (2, 2)]


def _partition(batches: Any) -> Any:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for number, _ in tasks_of(batches):
        columns = [pa.array([number]), pa.array([context.partitionId()])]
        yield pa.RecordBatch.from_arrays(columns, ["task", "partition"])


def test_without_a_jvm_jobs_have_no_description_and_no_progress(spark: SparkSession) -> None:
    connected: Any = Connected(spark)
    reported: list[int] = []
    engine = SparkEngine(connected, "events")
    with jobs_within(spark) as jobs:
        parts = engine.map(
            _numbers,
            [(0, b""), (1, b"")],
            np.full(2, 1),
            lambda files, _rows: reported.append(files),
        )
    assert parts == [[0], [1]]
    assert reported == []
    assert {job.description for job in jobs} == {None}
    assert spark.getTags() == set()


class Settings:
    """A session of certain settings, with a JVM or without."""

    def __init__(self, settings: dict[str, str], cores: int | None) -> None:
        self._settings, self.conf = settings, self
        if cores is not None:
            self._jsparkSession = self
            self.sparkContext = SimpleNamespace(defaultParallelism=cores)

    def get(self, key: str, default: str | None = None) -> str | None:
        return self._settings.get(key, default)


DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.executor.cores": "4",
    "spark.sql.shuffle.partitions": "200",
}


@pytest.mark.parametrize(
    ("settings", "cores", "expected"),
    [
        ({}, 6, 6),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "10"}, 2, 40),
        (
            DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "10", "spark.task.cpus": "2"},
            2,
            20,
        ),
        (DYNAMIC, 2, 200),  # no limit: as many as a shuffle has
        (DYNAMIC | {"spark.sql.shuffle.partitions": "1"}, 320, 320),  # it has them already
        (DYNAMIC | {"spark.default.parallelism": "12"}, 12, 12),  # the user has decided
        ({}, None, 8),
        ({"spark.master": "local[3]"}, None, 3),
        ({"spark.executor.instances": "5", "spark.executor.cores": "4"}, None, 20),
        ({"spark.default.parallelism": "12", "spark.executor.instances": "5"}, None, 12),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "10"}, None, 40),
    ],
)
def test_parallelism_is_what_spark_may_run(
    settings: dict[str, str], cores: int | None, expected: int
) -> None:
    session: Any = Settings(settings, cores)
    assert jvm.parallelism(session) == expected


def test_progress_is_reported_as_tasks_end(spark: SparkSession) -> None:
    reported = []
    items = [(number, b"") for number in range(20)]
    SparkEngine(spark).map(
        _numbers, items, np.full(20, 1 << 20), lambda files, _rows: reported.append(files)
    )
    assert sum(reported) == 20
