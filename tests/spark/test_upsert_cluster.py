"""Upserts on a cluster: executors are lost, and tasks run twice; each key counts once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from tests.spark.cluster import Cluster, Driver, kill_one_executor
from tests.spark.gates import Gate
from tests.tables.paimon.small_tables import create

COLUMNS = {"id": "BIGINT", "class_id": "INT", "score": "DOUBLE", "name": "STRING"}
VECTORS = {"deletion-vectors.enabled": "true"}
FIXED = {"bucket": "4"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "600"}


def older_rows(folder: Path, buckets: dict[str, str]) -> str:
    """A table with 1,000 rows, whose keys are even."""
    table = create(folder, COLUMNS, primary_keys=["id"], options=VECTORS | buckets)
    table.upsert(pa.table({"id": range(0, 2000, 2), "name": ["old"] * 1000}))
    return table.location


def check_upserted(folder: str, stop: int, lost: int) -> None:
    """Check that the table has the new rows only, and that `clean` removes what was lost."""
    table = alcid.paimon(folder)
    assert table.scan(order_by="id").to_arrow().to_pylist() == [
        {"id": n, "class_id": n % 7, "score": n / 8, "name": f"n{n}"} for n in range(stop)
    ]
    assert (verified := table.verify(progress=False)).ok, verified
    assert len(table.clean(timedelta(0)).removed) == lost
    assert table.count() == stop


def test_upserts(remote: Driver, tmp_path: Path) -> None:
    for name, buckets in {"fixed": FIXED, "dynamic": DYNAMIC}.items():
        folder = older_rows(tmp_path / name, buckets)
        report = remote.ask("upsert", folder=folder, numbers=[0, 4000], tasks=3)
        assert (report["rows"], report["replaced"], report["snapshot_id"]) == (4000, 1000, 3)
        check_upserted(folder, 4000, lost=0)


@pytest.mark.parametrize("buckets", [FIXED, DYNAMIC], ids=["fixed", "dynamic"])
def test_executor_killed_during_an_upsert(
    machines: Cluster, remote: Driver, tmp_path: Path, buckets: dict[str, str]
) -> None:
    folder, gate = older_rows(tmp_path / "table", buckets), Gate(tmp_path / "gate", (0, 1))
    asked = {"folder": folder, "numbers": [0, 4000], "tasks": 2, "gate": str(gate)}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(remote.ask, "upsert", **asked)
        kill_one_executor(machines, gate)
        report = running.result()
    # Rows that the executor had shuffled are lost too: Spark repeats that as well.
    assert (report["rows"], report["replaced"], report["snapshot_id"]) == (4000, 1000, 3)
    check_upserted(folder, 4000, lost=1)


def test_speculative_attempt_doubles_nothing(remote: Driver, tmp_path: Path) -> None:
    folder, gate = older_rows(tmp_path / "table", FIXED), Gate(tmp_path / "gate", (1,))
    asked = {"folder": folder, "numbers": [0, 3000], "tasks": 2, "gate": str(gate)}
    # Task 1 waits forever, until Spark lets another executor run it too.
    report = remote.ask("upsert", speculation=True, **asked)
    # On a busy machine the first attempt may be ended before it begins to wait.
    assert gate.attempts() | {(1, 0)} == {(0, 0), (1, 0), (1, 1)}
    assert (report["rows"], report["replaced"], report["snapshot_id"]) == (3000, 1000, 3)
    check_upserted(folder, 3000, lost=len(gate.attempts()) - 2)
