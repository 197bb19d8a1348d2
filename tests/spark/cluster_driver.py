"""The program of a driver: it serves requests, one JSON object a line, until its input ends."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

import pyarrow as pa

import alcid
from alcid.scan import ScanPlan
from alcid.spark import reading
from alcid.spark.engine import SparkEngine
from alcid.spark.jvm import map_in_arrow
from alcid.spark.reading import ReadStrategy
from alcid.storage import Storage
from alcid.tables import build
from alcid.tables.paimon.keyed import upsert as keyed_upsert
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from tests.faults.spark_requests import KillRequests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Requests(KillRequests):
    """Each method is a request; folders are those of tables."""

    def look(self) -> list[dict[str, Any]]:
        """Where the executors have `alcid` from."""

        def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            time.sleep(1)  # so that the other executor takes the other task
            for _ in batches:
                state = {"file": alcid.__file__, "python": sys.executable, "in": str(Path.cwd())}
                yield pa.RecordBatch.from_pylist([{"state": json.dumps(state)}])

        rows = map_in_arrow(self._spark.range(0, 2, 1, 2), tell, "state string").collect()
        return [json.loads(row.state) for row in rows]

    def plain(self, folder: str, where: str) -> list[str]:
        """What Spark reads without our code."""
        return _rows(self._spark.read.parquet(folder).where(where))

    def build(self, folder: str, options: dict[str, str], gate: str | None = None) -> Any:
        return self._table(folder, gate).build_indexes(options, progress=False).to_dict()

    def read(
        self, folder: str, where: str, strategy: Literal["driver", "tasks", "Spark"]
    ) -> list[str]:
        with patch.object(
            reading, "choose_strategy", lambda *_, **__: ReadStrategy(strategy, "so it is tested")
        ):
            return _rows(self._table(folder).read(where))

    def count(self, folder: str, where: str) -> int:
        with patch.object(ScanPlan, "is_small", False):
            return self._table(folder).count(where)

    def append(
        self,
        folder: str,
        numbers: list[int],
        tasks: int,
        gate: str | None = None,
        speculation: bool = False,
        **how: Any,
    ) -> Any:
        """Append rows that depend on their numbers, from `numbers[0]` on."""
        table = self._table(folder, gate)
        with self._speculating() if speculation else nullcontext():
            return table.append(self._numbered(numbers, tasks), **how).to_dict()

    def upsert(
        self,
        folder: str,
        numbers: list[int],
        tasks: int,
        gate: str | None = None,
        speculation: bool = False,
    ) -> Any:
        """Upsert such rows into a Paimon table."""
        table = alcid.paimon(folder, self._spark)
        if gate is not None:
            table = PaimonTable(gated(folder, gate), engine=SparkEngine(self._spark))
        with (
            self._speculating() if speculation else nullcontext(),
            patch.object(keyed_upsert, "_CHANNEL_BYTES", 100),  # few rows are enough for both
            patch.object(keyed_upsert, "_WAVES", 1),
        ):
            return table.upsert(self._numbered(numbers, tasks)).to_dict()

    def sql(self, folder: str, query: str) -> list[str]:
        return _rows(alcid.sql(query, t=self._table(folder)))

    def plain_sql(self, folder: str, query: str) -> list[str]:
        self._spark.read.parquet(folder).createOrReplaceTempView("t")
        return _rows(self._spark.sql(query))

    def source(self, folder: str, where: str) -> list[str]:
        return _rows(self._spark.read.format("alcid").load(folder).where(where))

    def stats(self, folder: str) -> Any:
        return self._table(folder).compute_stats(progress=False).to_pylist()

    def verify(self, folder: str) -> Any:
        return self._table(folder).verify(progress=False).to_dict()

    def clean(self, folder: str) -> Any:
        return self._table(folder).clean(timedelta(0)).to_dict()

    def _numbered(self, numbers: list[int], tasks: int) -> DataFrame:
        first, stop = numbers
        return self._spark.range(first, stop, 1, tasks).selectExpr(
            "id", "CAST(id % 7 AS INT) AS class_id", "id / 8 AS score", "concat('n', id) AS name"
        )

    @contextmanager
    def _speculating(self) -> Iterator[None]:
        """Let a task run twice at the same time once half of a stage is done."""
        settings, quantile = self._spark.sparkContext._jsc.sc().conf(), "spark.speculation.quantile"
        before = settings.get(quantile)
        settings.set(quantile, "0.5")
        try:
            yield
        finally:
            settings.set(quantile, before)

    def _table(self, folder: str, gate: str | None = None) -> ParquetTable:
        if gate is None:
            return alcid.parquet(folder, self._spark)
        return ParquetTable(gated(folder, gate), engine=SparkEngine(self._spark))


class GatedStorage(Storage):
    """A storage in which tasks wait, after their first file, for files in the folder `gate`.

        hold-1     while this is there, the first attempt of task 1 waits
        put-1-0-2  attempt 0 of task 1 has written its file 2, counted from 0

    In the driver it is like any other.
    """

    gate = ""
    puts = 0

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            return
        task, attempt = context.partitionId(), context.attemptNumber()
        Path(self.gate, f"put-{task}-{attempt}-{self.puts}").touch()
        self.puts += 1
        while attempt == 0 and Path(self.gate, f"hold-{task}").exists():
            time.sleep(0.02)

    def __reduce__(self) -> tuple[object, ...]:
        return gated, (self.location, self.gate)


def gated(folder: str, gate: str) -> Storage:
    """A folder as a `GatedStorage`."""
    storage = GatedStorage.open(folder)
    assert isinstance(storage, GatedStorage)
    storage.gate = gate
    build.BATCH_SECONDS = 0.0  # in a task: every file that a build reads becomes a bundle
    return storage


def _rows(frame: DataFrame) -> list[str]:
    """Rows as text, in which NaN equals itself."""
    return sorted(map(repr, frame.toArrow().select(sorted(frame.columns)).to_pylist()))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for what Java prints
    settings = json.loads(sys.argv[1])
    spark = alcid.session(master=settings.pop("spark.master"), config=settings)
    requests = Requests(spark)

    def serve(line: str) -> None:
        arguments = json.loads(line)
        try:
            answer = {"answer": getattr(requests, arguments.pop("request"))(**arguments)}
        except Exception:  # noqa: BLE001 - whatever it is, it goes to the test
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer, default=str), file=answers, flush=True)

    print(json.dumps({"answer": "ready"}), file=answers, flush=True)
    with ThreadPoolExecutor() as pool:  # a request may come while another is being served
        for line in sys.stdin:
            pool.submit(serve, line)


if __name__ == "__main__":
    main()
