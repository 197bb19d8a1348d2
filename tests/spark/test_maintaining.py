"""Verify, clean and statistics on Spark: equal to the results of this process."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import alcid
from alcid.index.bundle import PayloadKind
from alcid.storage import Storage
from tests.tables.folders import OPTIONS, bundle_names, fill, path_of
from tests.tables.maintenance.kit import Files, forge, problems, with_payload

if TYPE_CHECKING:
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
