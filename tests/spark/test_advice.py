"""Advice with Spark's workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import alcid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_find_the_same_as_threads(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(4):
        rows = pa.table({"id": rng.integers(0, 10**9, 20_000), "day": rng.integers(0, 7, 20_000)})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    queries = ["id = 500000000", "day = 3"]
    here = alcid.parquet(tmp_path).advise(queries, sample=3, progress=False)
    there = alcid.parquet(tmp_path, spark).advise(queries, sample=3, progress=False)
    assert here.options == {"file-index.bloom-filter.columns": "id"}
    assert (there.columns, there.sampled_files) == (here.columns, here.sampled_files)
    assert len(there.sampled_files) == 3
