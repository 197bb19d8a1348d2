"""Verify, clean and statistics on Spark: the same as in this process."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import alcid
from alcid.index.bundle import PayloadKind
from alcid.storage import Meter, Storage
from alcid.tables import bundle_folder
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
        one, two = files[path_of(1)], files[path_of(2)]
        files[path_of(1)] = with_payload(one, kind, two.payloads[kind])

    forge(storage, OPTIONS, swap)
    found = table.verify(progress=False)
    assert problems(found) == [(path_of(1), "bloom-filter of 'id'")]
    here = alcid.parquet(tmp_path).verify(progress=False)
    assert replace(found, seconds=0.0) == replace(here, seconds=0.0)


def test_statistics_are_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    fill(Storage.open(tmp_path), 5)
    found = alcid.parquet(tmp_path, spark).compute_stats(progress=False)
    assert found.equals(alcid.parquet(tmp_path).compute_stats(progress=False))
    assert found.num_rows == 5


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
