"""Every operation on a cluster: equal to this process or plain Spark, also if executors die."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.storage import Storage
from alcid.tables.parquet.indexes import FolderIndexes
from tests.spark.cluster import ONE_KILLED, Cluster, Driver, kill_one_executor
from tests.spark.gates import Gate
from tests.tables.folders import OPTIONS, bundle_names, check_indexes, fill, opened

FILES = 8
WHERE = "class_id = 3 AND score > 0.4 OR id < 50000"
APPENDED = {"file-index.bitmap.columns": "class_id", "file-index.bloom-filter.columns": "id"}


@pytest.fixture(scope="module")
def folder(remote: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that does not change, with indexes that were built on the cluster."""
    root = tmp_path_factory.mktemp("table")
    fill(Storage.open(root), FILES)
    report = remote.ask("build", folder=str(root), options=OPTIONS)
    assert (report["indexed"], report["failed"], report["skipped"]) == (FILES, 0, [])
    return root


def tables_of(folder: Path) -> dict[str, pa.Table]:
    """The rows of each file."""
    paths = Storage.open(folder).list().paths.to_pylist()
    return {path: pq.ParquetFile(folder / path).read() for path in paths}


def check_bytes(folder: Path, options: dict[str, Any]) -> None:
    """Check that every file has its indexes, byte for byte those built from its rows in memory."""
    storage = Storage.open(folder)
    check_indexes(opened(FolderIndexes(storage), storage), tables_of(folder), options)


# -- operations --------------------------------------------------------------------------------


def test_executors_use_the_package_that_was_shipped(machines: Cluster, remote: Driver) -> None:
    imported = [machines.python, "-c", "import pyarrow, numpy, pyroaring, sqlglot; import alcid"]
    alone = subprocess.run(imported, capture_output=True, text=True, check=False, cwd="/")
    assert alone.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'alcid'"
    for state in remote.ask("look"):
        module = Path(state["in"], state["file"]).resolve()
        assert module.is_relative_to(machines.work)
        assert module.parts[-3:] == ("alcid.zip", "alcid", "__init__.py")
        assert state["python"] == machines.python


def test_build(folder: Path) -> None:
    check_bytes(folder, OPTIONS)
    assert [info.fresh for info in alcid.parquet(folder).indexes()] == [FILES] * 3


@pytest.mark.parametrize("strategy", ["driver", "tasks", "Spark"])
def test_read(remote: Driver, folder: Path, strategy: str) -> None:
    asked = {"folder": str(folder), "where": WHERE}
    rows = remote.ask("read", strategy=strategy, **asked)
    assert len(rows) == alcid.parquet(folder).count(WHERE)
    assert rows == remote.ask("plain", **asked)


def test_count(remote: Driver, folder: Path) -> None:
    where = "name LIKE '%3' AND class_id <> 2"
    count = remote.ask("count", folder=str(folder), where=where)
    assert count == len(remote.ask("plain", folder=str(folder), where=where))


def test_sql(remote: Driver, folder: Path) -> None:
    query = """
        SELECT a.dt, a.class_id, count(*) AS n, max(b.id) AS last
        FROM t a LEFT JOIN t b ON a.id = b.id AND b.class_id = 3
        WHERE a.class_id IN (1, 3) GROUP BY a.dt, a.class_id
    """
    rows = remote.ask("sql", folder=str(folder), query=query)
    assert len(rows) == FILES // 2 * 2
    assert rows == remote.ask("plain_sql", folder=str(folder), query=query)


def test_data_source(remote: Driver, folder: Path) -> None:
    asked = {"folder": str(folder), "where": "class_id = 3 AND score > 0.4"}
    assert remote.ask("source", **asked) == remote.ask("plain", **asked)


def test_statistics(remote: Driver, tmp_path: Path) -> None:
    fill(Storage.open(tmp_path), 3)
    statistics = remote.ask("stats", folder=str(tmp_path))
    assert statistics == alcid.parquet(tmp_path).compute_stats(progress=False).to_pylist()
    assert len(statistics) == 5


def test_verify(remote: Driver, folder: Path) -> None:
    report = remote.ask("verify", folder=str(folder))
    expected = json.loads(json.dumps(alcid.parquet(folder).verify(progress=False).to_dict()))
    assert report == {**expected, "seconds": report["seconds"]}
    assert (report["ok"], report["checked"]) == (True, FILES)


def test_clean(remote: Driver, tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    for first in (0, 2):
        fill(storage, 2, first=first)
        remote.ask("build", folder=str(tmp_path), options=OPTIONS)
    names = bundle_names(storage)
    report = remote.ask("clean", folder=str(tmp_path))
    assert report["merged"] == names
    assert bundle_names(storage) == report["written"]
    assert len(names) > len(report["written"]) == 1
    check_bytes(tmp_path, OPTIONS)


def test_append(remote: Driver, tmp_path: Path) -> None:
    folder = str(tmp_path)
    report = remote.ask("append", folder=folder, numbers=[0, 2000], tasks=2, options=APPENDED)
    assert (report["files"], report["rows"], report["bundles"]) == (2, 2000, 2)
    more = remote.ask("append", folder=folder, numbers=[2000, 2500], tasks=1, target_file_bytes=1)
    assert (more["files"], more["rows"], more["bundles"]) == (1, 500, 1)
    check_appended(remote, tmp_path, 2500)


def check_appended(remote: Driver, folder: Path, count: int) -> None:
    """Check that the table has exactly these rows, all indexes, and nothing else."""
    assert remote.ask("plain", folder=str(folder), where="true") == sorted(
        repr({"class_id": n % 7, "id": n, "name": f"n{n}", "score": n / 8}) for n in range(count)
    )
    check_bytes(folder, APPENDED)
    report = alcid.parquet(folder).verify(progress=False)
    assert (report.ok, report.unindexed, report.gone) == (True, 0, 0)
    assert (report.checked, report.rows, report.leftovers) == (report.files, count, ())
    assert not list(folder.glob("_alcid/staging/*"))


# -- kills -------------------------------------------------------------------------------------


def test_executor_killed_during_a_build(machines: Cluster, remote: Driver, tmp_path: Path) -> None:
    folder, gate = tmp_path / "table", Gate(tmp_path / "gate", (0, 1))
    storage = Storage.open(folder)
    fill(storage, FILES)
    before = remote.ask("plain", folder=str(folder), where="true")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            remote.ask, "build", folder=str(folder), options=OPTIONS, gate=str(gate)
        )
        kill_one_executor(machines, gate)
        report = running.result()
    assert (report["indexed"], report["fresh"], report["failed"]) == (FILES, 0, 0)
    assert (report["rows"], report["bundles"]) == (len(before), FILES)
    assert gate.attempts() in ONE_KILLED
    # What the killed attempt had published stays, and does no harm.
    assert len(bundle_names(storage)) == gate.count() == FILES + 1
    check_bytes(folder, OPTIONS)
    assert remote.ask("plain", folder=str(folder), where="true") == before
    table = alcid.parquet(folder)
    assert [info.fresh for info in table.indexes()] == [FILES] * 3
    assert (verified := table.verify(progress=False)).ok
    assert (verified.checked, verified.rows) == (FILES, len(before))
    assert table.count("class_id = 3") == remote.ask(
        "count", folder=str(folder), where="class_id = 3"
    )


def test_executor_killed_during_an_append(
    machines: Cluster, remote: Driver, tmp_path: Path
) -> None:
    folder, gate = tmp_path / "table", Gate(tmp_path / "gate", (0, 1))
    folder.mkdir()
    asked = {"folder": str(folder), "numbers": [0, 4000], "tasks": 2, "options": APPENDED}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(remote.ask, "append", gate=str(gate), target_file_bytes=1, **asked)
        kill_one_executor(machines, gate)
        report = running.result()
    assert (report["files"], report["rows"], report["bundles"]) == (8, 4000, 2)
    assert gate.attempts() in ONE_KILLED
    assert gate.count() == 8 + 2 + 1  # files, their bundles, and the file of the killed attempt
    check_appended(remote, folder, 4000)


def test_speculative_attempt_doubles_nothing(remote: Driver, tmp_path: Path) -> None:
    folder, gate = tmp_path / "table", Gate(tmp_path / "gate", (1,))
    folder.mkdir()
    asked = {"folder": str(folder), "numbers": [0, 2000], "tasks": 2, "options": APPENDED}
    # Task 1 waits forever, until Spark lets another executor run it too.
    how = {"target_file_bytes": 1, "speculation": True}
    report = remote.ask("append", gate=str(gate), **how, **asked)
    # On a busy machine the first attempt may be ended before it begins to wait.
    assert gate.attempts() | {(1, 0)} == {(0, 0), (1, 0), (1, 1)}
    assert (report["files"], report["rows"], report["bundles"]) == (4, 2000, 2)
    check_appended(remote, folder, 2000)
