"""Killed drivers: the table reads as before, and the next build finishes the work."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import UnsupportedError
from alcid.spark.session import ensure_java
from alcid.storage import Storage
from alcid.storage.local import LocalFiles
from alcid.tables.parquet.indexes import FolderIndexes
from tests.interop.peers import unavailable
from tests.spark import killed_builds
from tests.spark.cluster import JAVA_OPTIONS, ROOT, driver
from tests.spark.gates import Gate
from tests.spark.killed_builds import FILES
from tests.spark.processes import below, is_running, kill, wait_for
from tests.tables.folders import OPTIONS, check_indexes, fill, opened, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTIONS = ("class_id = 3", "id < 300000 OR class_id = 1", "tags['color'] = 'red'", "score > 0.5")
APPENDED = {"file-index.bitmap.columns": "class_id", "file-index.bloom-filter.columns": "id"}
AT_ONCE = timedelta(0)


def texts(rows: pa.Table) -> list[str]:
    """Rows as text, in which NaN equals itself."""
    return list(map(repr, rows.to_pylist()))


def data_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.parquet") if "_alcid" not in path.parts)


def left_over(folder: Path) -> dict[str, int]:
    """The leftovers, by reason."""
    report = alcid.parquet(folder).verify(progress=False)
    assert report.ok
    return dict(Counter(leftover.reason for leftover in report.leftovers))


def fresh(folder: Path) -> set[int]:
    """For how many files each index is fresh."""
    return {info.fresh for info in alcid.parquet(folder).indexes()}


def check_answers(folder: Path, questions: tuple[str, ...] = QUESTIONS) -> None:
    """With indexes there are the same rows as without."""
    table = alcid.parquet(folder, strict=True)
    for question in questions:
        rows = table.scan(question).to_arrow()
        assert texts(rows) == texts(table.scan(question, use_indexes=False).to_arrow())
        assert rows.num_rows == table.count(question) > 0


def finish(folder: Path, options: dict[str, Any], missing: int) -> None:
    """The next build indexes what is missing; then `clean` leaves nothing else."""
    before = data_files(folder)
    table = alcid.parquet(folder)
    report = table.build_indexes(options, progress=False)
    assert (report.indexed, report.fresh) == (missing, len(before) - missing)
    for _ in range(2):  # before and after cleaning
        storage = Storage.open(folder)
        rows = {str(path.relative_to(folder)): pq.ParquetFile(path).read() for path in before}
        check_indexes(opened(FolderIndexes(storage), storage), rows, options)
        assert data_files(folder) == before
        table.clean(AT_ONCE)
    assert left_over(folder) == {}
    assert not list(folder.glob("_alcid/staging/*/*"))


# -- builds ------------------------------------------------------------------------------------

# For how many files indexes are fresh after the kill, and the leftovers.
BUILDS: dict[str, tuple[int, dict[str, int]]] = {
    "before_the_tasks": (4, {}),
    "within_a_write": (4, {"unfinished": 1}),
    "after_the_first_bundle": (5, {}),
    "between_two_parts_of_a_bundle": (4, {"unfinished": 1}),
    "before_the_mark_of_a_rebuild": (6, {}),
    "after_the_mark_of_a_rebuild": (6, {"replaced": 2}),
    "before_a_merge": (6, {}),
    "within_a_merge": (6, {}),
    "between_two_parts_of_a_merge": (6, {"unfinished": 1}),
    "after_a_merge": (6, {"replaced": 3}),
    "within_the_removal_of_old_bundles": (6, {"replaced": 2}),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each step, as the kill left it."""
    root = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.spark.killed_builds", str(root)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    expected = [f"{step.__name__} {-signal.SIGKILL}" for step in killed_builds.STEPS]
    assert ended.stdout.splitlines() == expected
    return root


@pytest.mark.parametrize("step", BUILDS)
def test_driver_killed_at_a_step_of_a_build(killed: Path, step: str) -> None:
    folder, (indexed, lying) = killed / step, BUILDS[step]
    expected = pa.concat_tables(rows_of(number) for number in range(FILES))
    rows = alcid.parquet(folder).scan(columns=expected.column_names).to_arrow()
    assert texts(rows) == texts(expected)
    check_answers(folder)
    assert (fresh(folder), left_over(folder)) == ({indexed}, lying)
    finish(folder, OPTIONS, FILES - indexed)
    check_answers(folder)


# -- while tasks are running -------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables: when their driver was killed, one was being built and one appended to."""
    try:
        ensure_java()
    except UnsupportedError as error:
        unavailable(str(error))
    root = tmp_path_factory.mktemp("cut-off")
    fill(Storage.open(root / "built"), 8)
    put_rows(root / "appended", 500)
    settings = {
        "spark.master": "local[4]",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    }
    builds, appends = Gate(root / "builds", (0, 1, 2, 3)), Gate(root / "appends", (0, 1))
    numbers: dict[str, Any] = {"numbers": [500, 2500], "tasks": 2, "target_file_bytes": 1}
    with driver(root / "driver", settings) as victim:
        victim.send("append", folder=str(root / "appended"), gate=str(appends), **numbers)
        wait_for(lambda: len(appends.attempts()) == 2, "a file of each task of the append")
        # Two of the four cores are free for it, so two of its four tasks begin.
        victim.send("build", folder=str(root / "built"), gate=str(builds), options=OPTIONS)
        wait_for(lambda: len(builds.attempts()) == 2, "two bundles of the build")
        others = below(victim.process.pid)
        kill([victim.process.pid])
        wait_for(lambda: not any(map(is_running, others)), "the end of Java and the workers")
    assert (appends.count(), builds.count()) == (2, 2)
    return root


def test_driver_killed_while_tasks_build(cut_off: Path) -> None:
    folder = cut_off / "built"
    expected = pa.concat_tables(rows_of(number) for number in range(8))
    rows = alcid.parquet(folder).scan(columns=expected.column_names).to_arrow()
    assert texts(rows) == texts(expected)
    check_answers(folder)
    assert (fresh(folder), left_over(folder)) == ({2}, {})
    finish(folder, OPTIONS, 6)
    check_answers(folder)


def test_driver_killed_while_tasks_append(cut_off: Path) -> None:
    folder = cut_off / "appended"
    assert ids(folder) == list(range(500))
    assert left_over(folder) == {"staged": 1}
    assert len(list(folder.glob("_alcid/staging/*/*.parquet"))) == 2
    table = alcid.parquet(folder)
    assert table.clean().removed == ()  # it may be an append that is running
    assert [leftover.reason for leftover in table.clean(AT_ONCE).removed] == ["staged"]
    assert not list(folder.glob("_alcid/staging/*"))
    assert ids(folder) == list(range(500))
    finish(folder, APPENDED, 1)


# -- appends, after the tasks ------------------------------------------------------------------


def put_rows(folder: Path, stop: int) -> None:
    """A table of one file, with the columns that are appended."""
    folder.mkdir()
    rows = {
        "id": range(stop),
        "class_id": pa.array([number % 7 for number in range(stop)], pa.int32()),
        "score": pa.array([number / 8 for number in range(stop)]),
        "name": [f"n{number}" for number in range(stop)],
    }
    pq.write_table(pa.table(rows), folder / "first.parquet")


def ids(folder: Path) -> list[int]:
    numbers: list[int] = alcid.parquet(folder).scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(numbers)


class Copies:
    """Copies of a folder, before and after each change that this process makes in it.

    A kill between two changes leaves the files of a copy; modification times are copied too.
    """

    def __init__(self, folder: Path, to: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._to = folder, to
        self.folders: list[Path] = []
        for name in ("delete", "link", "put", "remove_folder"):
            monkeypatch.setattr(LocalFiles, name, self._copying(getattr(LocalFiles, name)))

    def _copying(self, function: Any) -> Any:
        def change(*arguments: Any) -> None:
            if not self.folders:
                self._copy()
            function(*arguments)
            self._copy()

        return change

    def _copy(self) -> None:
        self.folders.append(self._to / str(len(self.folders)))
        shutil.copytree(self._folder, self.folders[-1])


def test_driver_killed_at_a_step_of_an_append(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "table"
    put_rows(folder, 500)
    alcid.parquet(folder).build_indexes(APPENDED, progress=False)
    rows = spark.range(500, 2500, 1, 2).selectExpr("id", "CAST(id % 7 AS INT) AS class_id")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    try:
        with monkeypatch.context() as patched:
            copies = Copies(folder, tmp_path, patched).folders
            report = alcid.parquet(folder, spark).append(rows, APPENDED, target_file_bytes=1)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert (report.files, report.bundles) == (4, 2)
    # A file of the table is first linked there, then removed from the staging folder.
    moved, indexed = [0, 1, 1, 2, 2, 3, 3, 4, 4], [0] * 9
    # So are the two bundles; the folder is removed last.
    moved, indexed = moved + [4] * 5, [*indexed, 2, 2, 4, 4, 4]
    assert [len(data_files(copy)) - 1 for copy in copies] == moved
    assert [fresh(copy) for copy in copies] == [{1 + count} for count in indexed]
    for copy, visible, covered in zip(copies, moved, indexed, strict=True):
        assert ids(copy) == list(range(500 * (1 + visible)))
        check_answers(copy, ("class_id = 3", "id = 499 OR class_id = 2"))
        # When everything is moved, an empty folder is left.
        assert left_over(copy) == ({} if copy in copies[-2:] else {"staged": 1})
        finish(copy, APPENDED, visible - covered)
        assert ids(copy) == list(range(500 * (1 + visible)))
