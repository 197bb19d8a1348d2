"""Verify, clean and statistics on Spark: equal to the results of this process."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.index.bundle import PayloadKind
from alcid.spark.engine import SparkEngine
from alcid.storage import Meter, Storage
from alcid.tables import bundle_folder, many_files
from alcid.tables.parquet.indexes import FolderIndexes
from tests.tables.folders import OPTIONS, bundle_names, check_indexes, fill, opened, path_of
from tests.tables.maintenance.kit import Files, forge, problems, with_payload

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_verify_finds_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    fill(storage, 5)
    table = alcid.parquet(tmp_path, spark)
    table.build_indexes(OPTIONS, progress=False)
    assert table.verify(progress=False).ok

    def swap(files: Files) -> None:
        kind = PayloadKind.index("id", "bloom-filter")
        first, two = files[path_of(1)], files[path_of(2)]
        files[path_of(1)] = with_payload(first, kind, two.payloads[kind])

    forge(storage, OPTIONS, swap)
    report_of_spark = table.verify(progress=False)
    assert problems(report_of_spark) == [(path_of(1), "bloom-filter of 'id'")]
    here = alcid.parquet(tmp_path).verify(progress=False)
    assert replace(report_of_spark, seconds=0.0) == replace(here, seconds=0.0)


def test_statistics_are_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    fill(Storage.open(tmp_path), 5)
    counts = alcid.parquet(tmp_path, spark).compute_stats(progress=False)
    assert counts.equals(alcid.parquet(tmp_path).compute_stats(progress=False))
    assert counts.num_rows == 5


def test_clean_leaves_one_bundle_of_the_many_that_tasks_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    storage = Storage.open(tmp_path)
    table = alcid.parquet(tmp_path, spark)
    for number in range(2):
        fill(storage, 2, first=2 * number)
        table.build_indexes(OPTIONS, progress=False)
    names = bundle_names(storage)
    report = table.clean(older_than=timedelta(0))
    assert report.merged == tuple(names)
    assert bundle_names(storage) == list(report.written)
    assert len(report.written) == 1
    assert table.verify(progress=False).checked == 4


def test_many_files_are_listed_and_removed_by_tasks_as_in_this_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clean and expiry of a partitioned table whose files are taken for many."""
    here, there = tmp_path / "here", tmp_path / "there"
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    table = alcid.create_table(here, schema, partition_by=["day"])
    for batch in range(3):
        days = [f"d{number}" for number in range(12)]
        table.append(pa.table({"id": [batch] * 12, "day": days}, schema))
        table.delete(f"id = {batch - 1}")
    for day in range(12):
        name = f"data-11111111-2222-3333-4444-5555555555{day:02}-0.parquet"
        (here / f"day=d{day}/bucket-0/{name}").write_bytes(b"orphan")
    shutil.copytree(here, there)
    monkeypatch.setattr(many_files, "LISTED_BY_TASKS", 4)
    monkeypatch.setattr(many_files, "REMOVED_BY_TASKS", 4)
    jobs: list[int] = []
    real = SparkEngine.map

    def count(self: SparkEngine, function: Any, items: Any, sizes: Any, *more: Any) -> Any:
        jobs.append(len(sizes))
        return real(self, function, items, sizes, *more)

    monkeypatch.setattr(SparkEngine, "map", count)
    plain, remote = alcid.paimon(here), alcid.paimon(there, spark)
    cleaned, by_tasks = plain.clean(timedelta(0)), remote.clean(timedelta(0))
    assert [one.path for one in by_tasks.removed] == [one.path for one in cleaned.removed]
    assert len(by_tasks.removed) == 12
    folders = len([path for path in there.iterdir() if path.is_dir()])
    assert jobs == [folders, 12]
    jobs.clear()
    ours, theirs = (table.expire_snapshots(timedelta(0), 1) for table in (plain, remote))
    assert replace(theirs, seconds=0.0, bytes=0) == replace(ours, seconds=0.0, bytes=0)
    assert theirs.snapshots > 3
    assert jobs == [theirs.data_files + theirs.index_files + theirs.manifests]
    assert _files_of(there) == _files_of(here)
    assert remote.scan().to_arrow().equals(plain.scan().to_arrow())


def _files_of(table: Path) -> set[str]:
    paths = (path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file())
    return {path for path in paths if not path.endswith(".crc")}


MB = 1 << 20
TAIL = 256 << 10
"""What is read of a bundle when it is opened: its directories, and the payloads before them."""


def test_tasks_merge_bundles_and_check_them_and_the_driver_reads_no_payload(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, count = Storage.open(tmp_path), 4
    options = OPTIONS | {"file-index.bloom-filter.id.items": 4_000_000}
    table = alcid.parquet(tmp_path, spark)
    tables: dict[str, pa.Table] = {}
    for number in range(count):
        tables |= fill(storage, 1, first=number)
        table.build_indexes(options, progress=False)
    folder = tmp_path / "_alcid"
    sizes = [path.stat().st_size for path in folder.iterdir()]
    assert len(sizes) == count
    assert sum(sizes) > 8 * MB
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 1)
    monkeypatch.setattr(bundle_folder, "FULL_BYTES", 5 * MB)  # two bundles, of two tasks
    with Meter() as meter:
        report = table.clean(older_than=timedelta(0))
    assert (len(report.merged), len(report.written)) == (count, 2)
    # Opened before and after the merge, and the new ones for the table.
    assert meter.snapshot().bytes_read < (count + count + 2 + 2) * (TAIL + 1000)
    assert meter.snapshot().bytes_written == 0
    check_indexes(opened(FolderIndexes(storage), storage), tables, options)
    with Meter() as meter:
        assert table.verify(progress=False).ok
    assert meter.snapshot().bytes_read < (count + 2) * (TAIL + 1000)
