"""Every operation on Spark with little memory: no step depends on memory that grows with the table.

    python -m tests.spark.bounded --rows 20000000

A standalone cluster of two executors of one core and 768 MB each, and a driver of 512 MB, work on
three tables: a folder of Parquet files, a Paimon table whose readers merge its keys, and an Iceberg
table with equality deletes. Each step checks its answer, and says what it took: the peak of the
driver's Python process, the greatest peak of a Python worker, and the bytes that each side has
read. `tests/spark/test_bounded.py` runs it at a tenth of the size with the same limits.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.spark.processes import below, command_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVER_MEMORY, EXECUTOR_MEMORY = "512m", "768m"
MOST_DRIVER_MB = 640
"""What the driver's Python process may have at its peak; it has 250 before it does anything."""
MOST_WORKER_MB = 768
"""What a Python worker may have at its peak."""
BATCHES = 3
PAYLOAD = "concat(sha2(cast(id * {salt} as string), 256), sha2(cast(id + {salt} as string), 256))"


@dataclass(frozen=True)
class Step:
    """What a step took."""

    name: str
    seconds: float
    driver_peak_mb: int
    worker_peak_mb: int
    driver_read_mb: float
    workers_read_mb: float


class Run:
    """Runs the steps in the driver, and measures them."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, workers: list[int]) -> None:
        self.spark, self.folder, self.rows, self._workers = spark, folder, rows, workers
        self.steps: list[Step] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step."""
        began, driver, workers = time.monotonic(), _bytes_read("self"), self._workers_read()
        yield
        step = Step(
            name,
            round(time.monotonic() - began, 1),
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            max((_peak_mb(process) for process in self._pythons()), default=0),
            round((_bytes_read("self") - driver) / 1e6, 1),
            round((self._workers_read() - workers) / 1e6, 1),
        )
        self.steps.append(step)
        print(json.dumps(asdict(step)), flush=True)
        assert step.driver_peak_mb <= MOST_DRIVER_MB, step
        assert step.worker_peak_mb <= MOST_WORKER_MB, step

    def _pythons(self) -> list[int]:
        return [
            process
            for worker in self._workers
            for process in below(worker)
            if ".daemon" in command_of(process)
        ]

    def _workers_read(self) -> int:
        return sum(_bytes_read(str(process)) for process in self._pythons())

    def data(self, first: int, end: int, *, batch: int = 0, only: int | None = None) -> DataFrame:
        """Rows with ids from `first` on; `only`: those that leave this remainder by 4."""
        ids = self.spark.range(first, end, numPartitions=max((end - first) // 500_000, 2))
        if only is not None:
            ids = ids.where(f"id % 4 = {only}")
        payload = PAYLOAD.format(salt=batch + 7)
        return ids.selectExpr(
            "id", "CAST(id % 1000 AS INT) AS k", f"CAST({batch} AS BIGINT) AS v", f"{payload} AS p"
        )


def _bytes_read(process: str) -> int:
    """What a process has read of files and sockets."""
    try:
        lines = Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return int(lines[0].split()[1])


def _peak_mb(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")), 0
    )


def totals(rows: DataFrame) -> tuple[Any, ...]:
    """What shows whether rows are the right ones, without collecting them."""
    (row,) = rows.selectExpr(
        "count(*)",
        "count(DISTINCT id)",
        "sum(v)",
        "sum(id)",
        "sum(CAST(xxhash64(p) AS DECIMAL(38)))",
    ).collect()
    return tuple(row)


def parquet_folder(run: Run) -> None:
    """Build, look up, append, count, verify and clean a folder of Parquet files."""
    import alcid

    rows, path = run.rows, run.folder / "events"
    with run.step("folder: Spark writes it"):
        run.data(0, rows).write.parquet(str(path))
    table = alcid.parquet(path, run.spark)
    with run.step("folder: build"):
        options = {"file-index.bloom-filter.columns": "id", "file-index.bitmap.columns": "k"}
        assert table.build_indexes(options, progress=False).rows == rows
    with run.step("folder: look up"):
        assert table.count("k = 7") == rows // 1000
        assert table.read("id = 4711").count() == 1
    with run.step("folder: read all"):
        assert totals(table.read()) == totals(run.spark.read.parquet(str(path)))
    with run.step("folder: append"):
        assert table.append(run.data(rows, rows + rows // 10)).rows == rows // 10
    with run.step("folder: stats"):
        statistics = table.compute_stats(["k"], progress=False).to_pylist()
        assert statistics[0]["ndv"] == 1000
    with run.step("folder: limit"):
        assert table.read("p LIKE '%zzz%'", limit=10).count() == 0
    with run.step("folder: verify"):
        assert table.verify(progress=False).ok
    with run.step("folder: clean"):
        table.clean()
        assert table.count() == rows + rows // 10


def merged_keys(run: Run) -> None:
    """Load, upsert, read, count, delete and compact a Paimon table whose readers merge."""
    import alcid

    rows = run.rows
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), False),
            ("k", pa.int32()),
            ("v", pa.int64()),
            ("p", pa.string()),
        ]
    )
    table = alcid.create_table(
        run.folder / "keyed",
        schema,
        run.spark,
        primary_key=["id"],
        options={"bucket": "4", "write-only": "true"},
    )
    with run.step("keyed: first load"):
        assert table.upsert(run.data(0, rows)).rows == rows
    for batch in range(1, BATCHES + 1):
        with run.step(f"keyed: upsert {batch}"):
            assert table.upsert(run.data(0, rows, batch=batch, only=batch)).rows == rows // 4
    batches = [run.data(0, rows, batch=batch, only=batch) for batch in range(BATCHES + 1)]
    every = batches[0]
    for batch in batches[1:]:
        every = every.unionByName(batch)
    expected = totals(every)
    with run.step("keyed: read"):
        assert totals(table.read()) == expected
    with run.step("keyed: count"):
        assert table.count() == rows
        assert table.count("v = 2") == rows // 4
    with run.step("keyed: order and limit"):
        first = table.read(order_by="id DESC", limit=3).collect()
        assert [row["id"] for row in first] == [rows - 1, rows - 2, rows - 3]
    with run.step("keyed: stats"):
        statistics = table.compute_stats(["k", "v"], progress=False).to_pylist()
        assert [row["ndv"] for row in statistics] == [1000, BATCHES + 1]
    with run.step("keyed: compact"):
        table.compact()
    with run.step("keyed: read compacted"):
        assert totals(table.read()) == expected
    with run.step("keyed: delete"):
        assert table.delete("k = 5").rows == rows // 1000
        assert table.count() == rows - rows // 1000
    with run.step("keyed: verify"):
        assert table.verify(progress=False).ok


def equality_deletes(run: Run) -> None:
    """Read and count an Iceberg table with equality deletes."""
    import alcid
    from tests.iceberg.deleted import delete_equal

    rows, name = run.rows // 2, "lake.bounded"
    spark = run.spark
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, k INT, v BIGINT, p STRING) USING iceberg "
        "TBLPROPERTIES ('format-version'='2')"
    )
    with run.step("iceberg: Spark writes it"):
        run.data(0, rows).writeTo(name).append()
        for part in range(4):
            ids = pa.array(range(part * 5, rows, 40), pa.int64())
            delete_equal(spark, name, {"id": (1, ids)})
    with run.step("iceberg: Iceberg reads it"):
        expected = totals(spark.table(name))
    table = alcid.iceberg(name, spark)
    with run.step("iceberg: read"):
        assert totals(table.read()) == expected
    with run.step("iceberg: count"):
        assert table.count() == expected[0]
        assert table.count("k = 7") == spark.table(name).where("k = 7").count()
    with run.step("iceberg: build"):
        assert table.build_indexes({"file-index.bloom-filter.columns": "id"}, progress=False).rows
    with run.step("iceberg: stats"):
        statistics = table.compute_stats(["k"], progress=False).to_pylist()
        assert statistics[0]["rows"] == expected[0]


PARTS: dict[str, Callable[[Run], None]] = {
    "folder": parquet_folder,
    "keyed": merged_keys,
    "iceberg": equality_deletes,
}


def serve(settings: dict[str, str], folder: Path, rows: int, workers: list[int]) -> None:
    """The driver's program."""
    import alcid

    spark = alcid.session(app_name="bounded", config=settings)
    run = Run(spark, folder, rows, workers)
    for name, part in PARTS.items():
        if name != "iceberg" or "spark.sql.catalog.lake" in settings:
            part(run)
    spark.stop()


def run_bounded(folder: Path, rows: int) -> list[Step]:
    """Run all steps on a cluster of its own, in a driver of its own."""
    from tests.iceberg.lake import lake_settings
    from tests.spark.cluster import PYTHON_PATH, cluster, environment

    with cluster(folder / "cluster", memory="1g") as machines:
        settings = {
            **machines.settings(),
            **lake_settings(folder / "lake"),
            "spark.driver.memory": DRIVER_MEMORY,
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.sql.shuffle.partitions": "8",
            "spark.speculation": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        }
        home = folder / "driver"
        home.mkdir(parents=True)
        arguments = [json.dumps(settings), str(folder / "tables"), str(rows)]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.spark.bounded", "--serve", *arguments]
            + [str(worker) for worker in machines.workers],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(home) | {"PYSPARK_PYTHON": machines.python, "PYTHONPATH": PYTHON_PATH},
            cwd=home,
        ) as process:
            assert process.stdout is not None
            steps = []
            for line in process.stdout:
                if line.startswith("{"):
                    steps.append(Step(**json.loads(line)))
                    print(_line(steps[-1]), file=sys.stderr, flush=True)
        assert process.returncode == 0, "the driver has failed"
        return steps


def _line(step: Step) -> str:
    return (
        f"{step.name:28} {step.seconds:7.1f} s   driver {step.driver_peak_mb:4} MB, read "
        f"{step.driver_read_mb:8.1f} MB   workers {step.worker_peak_mb:4} MB, read "
        f"{step.workers_read_mb:9.1f} MB"
    )


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        settings, folder, rows, *workers = sys.argv[2:]
        serve(json.loads(settings), Path(folder), int(rows), list(map(int, workers)))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_bounded(Path(folder), arguments.rows)


if __name__ == "__main__":
    main()
