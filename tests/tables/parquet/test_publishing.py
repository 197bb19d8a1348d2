"""An append on an object store is published by tasks, all of it or nothing, however often."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.errors import NameTakenError, StorageError
from alcid.options import parse_options
from alcid.storage import Storage
from alcid.storage.traffic import Traffic
from alcid.tables.bundle_folder import FOLDER, BundleFolder
from alcid.tables.engine import Task, Threads, take_items
from alcid.tables.parquet import publishing
from alcid.tables.parquet.publishing import MAX_DRIVER_COPIES, PublishWork, publish
from alcid.tables.parquet.staging import STAGING, StagedBundle, StagingJob, new_job
from alcid.tables.parquet_table import ParquetTable
from alcid.tables.progress import no_progress
from alcid.tables.schema import fit_columns
from tests.storage.conftest import bucket, moto_port, proxy, storage

__all__ = ["bucket", "moto_port", "proxy", "storage"]

SPECS = tuple(parse_options({"file-index.bitmap.columns": "id"}))
BUNDLES, FILES = 3, 8  # 8 files each


class Tasks(Threads):
    """A task for each item, in another process as far as pickling goes, each done several times."""

    has_spark = True

    def __init__(self, attempts: int = 1) -> None:
        super().__init__()
        self.attempts, self.jobs = attempts, 0

    def map(self, function: Any, items: Any, sizes: Any, report: Any = no_progress) -> list[Any]:
        del sizes, report
        self.jobs += 1
        results = []
        for number in range(len(items)):
            for _ in range(self.attempts):
                work, task = pickle.loads(
                    pickle.dumps((function, take_items(items, np.array([number]))))
                )
                results.append(work(Task(task)))
            del results[-self.attempts : -1]
        return results


ON_S3 = pytest.mark.parametrize("storage", ["s3-arrow", "s3-fsspec"], indirect=True)
SHARED = pytest.mark.parametrize("storage", ["local", "s3-arrow", "s3-fsspec"], indirect=True)
"""Storages that tasks in other processes share."""


@pytest.fixture
def lake(storage: Storage) -> Storage:
    """A storage for staged files."""
    return storage


def staged_on(storage: Storage, bundles: int = BUNDLES) -> tuple[StagingJob, list[StagedBundle]]:
    columns = fit_columns(pa.schema([("id", pa.int64()), ("p", pa.string())]), None, ["p"])
    job = StagingJob(storage, new_job(), columns, "", SPECS, {}, 1 << 30)
    staged: list[StagedBundle] = []
    for task in range(bundles):
        batches = []
        for part in range(FILES):
            ids = [task * 100 + part * 10 + row for row in range(3)]
            arrays = [pa.array(ids), pa.array([f"{part}"] * 3)]
            batches.append(pa.RecordBatch.from_arrays(arrays, ["c0", "p0"]))
        staged += job.write(batches, task)
    assert len(staged) == bundles
    return job, staged


def every_id(bundles: int = BUNDLES) -> list[int]:
    return sorted(
        task * 100 + part * 10 + row
        for task in range(bundles)
        for part in range(FILES)
        for row in range(3)
    )


def check_table(storage: Storage, bundles: int = BUNDLES) -> None:
    """Each row is there once, all files have fresh indexes, and nothing is staged."""
    table = ParquetTable(Storage.open(storage.location, storage._options.options))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == every_id(bundles)
    assert [(index.fresh, index.absent) for index in table.indexes()] == [(bundles * FILES, 0)]
    assert len(storage.list(STAGING, hidden=True)) == 0


def traffic_of(storage: Storage, call: Callable[[], object]) -> Traffic:
    before = storage.traffic
    call()
    return storage.traffic - before


@pytest.mark.parametrize("attempts", [1, 2])
@SHARED
def test_tasks_copy_and_the_driver_requests_nothing(lake: Storage, attempts: int) -> None:
    job, staged = staged_on(lake)
    if lake.remote:
        time.sleep(1.1)  # a copy in the same second would have the same version
    engine = Tasks(attempts)
    sizes: list[int] = []
    traffic = traffic_of(
        lake, lambda: sizes.extend(publish(engine, job, BundleFolder(lake, FOLDER), staged))
    )
    assert len(sizes) == BUNDLES
    assert min(sizes) > 0
    if lake.remote:
        assert engine.jobs == 1
        assert traffic == Traffic()
    else:
        assert engine.jobs == 0  # on a disk, files are renamed
    lake.remove_folder(job.folder)
    check_table(lake)


@SHARED
def test_few_files_are_copied_by_the_driver(lake: Storage) -> None:
    bundles = MAX_DRIVER_COPIES // FILES
    job, staged = staged_on(lake, bundles)
    engine = Tasks()
    folder = BundleFolder(lake, FOLDER)
    traffic = traffic_of(lake, lambda: publish(engine, job, folder, staged))
    assert engine.jobs == 0
    assert traffic.puts <= MAX_DRIVER_COPIES + bundles
    lake.remove_folder(job.folder)
    check_table(lake, bundles)


@SHARED
def test_without_spark_the_driver_copies(lake: Storage) -> None:
    job, staged = staged_on(lake)
    assert len(publish(Threads(), job, BundleFolder(lake, FOLDER), staged)) == BUNDLES
    lake.remove_folder(job.folder)
    check_table(lake)


REQUESTS = 1 + 3 * FILES + 1 + FILES + 1  # staged? stat, copy, stat; the bundle; what is removed


@pytest.mark.parametrize("done", [0, 2, 3, 4, 13, 25, 26, 29, REQUESTS - 1])
@ON_S3
def test_an_attempt_goes_on_where_another_was_lost(
    lake: Storage, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    """The first attempt is killed at any of its requests; the second publishes all, once."""
    job, [staged] = staged_on(lake, 1)
    work = PublishWork(lake, BundleFolder(lake, FOLDER))
    left = [done]

    def killed(name: str) -> None:
        call = getattr(Storage, name)

        def counted(self: Storage, *arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return call(self, *arguments)

        patch.setattr(Storage, name, counted)

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "run_in_threads", _one_by_one)
        for name in ("stat", "copy", "put"):
            killed(name)
        patch.setattr(Storage, "delete", _delete_one_by_one(Storage.delete, left))
        with pytest.raises(KeyboardInterrupt):
            work(Task([staged]))
    published = work(Task([staged]))
    assert published.error is None
    assert len(published.sizes) == 1
    lake.remove_folder(job.folder)
    check_table(lake, 1)


def _one_by_one(call: Callable[[Any], Any], items: Sequence[Any], *, waiting: bool) -> list[Any]:
    del waiting
    return [call(item) for item in items]


def _delete_one_by_one(delete: Any, left: list[int]) -> Any:
    def delete_some(self: Storage, paths: Any) -> None:
        for path in paths:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            delete(self, [path])

    return delete_some


@ON_S3
def test_a_copy_that_fails_takes_back_all_of_them(
    lake: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, staged = staged_on(lake)
    broken, copy = staged[1].files[5].staged, Storage.copy

    def failing(self: Storage, path: str, target: str) -> None:
        if path == broken:
            raise StorageError("no space", file=path)
        copy(self, path, target)

    monkeypatch.setattr(Storage, "copy", failing)
    with pytest.raises(StorageError, match="no space"):
        publish(Tasks(), job, BundleFolder(lake, FOLDER), staged)
    assert lake.list(hidden=True).paths.to_pylist() == []


@ON_S3
def test_a_file_of_others_is_neither_replaced_nor_removed(lake: Storage) -> None:
    job, staged = staged_on(lake)
    path = staged[2].files[0].path
    lake.put(path, b"theirs")
    with pytest.raises(NameTakenError):
        publish(Tasks(), job, BundleFolder(lake, FOLDER), staged)
    assert lake.list().paths.to_pylist() == [path]
    assert lake.source(path).read(0, 6) == b"theirs"
