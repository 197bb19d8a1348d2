"""One run of `python -m tests.faults.kills --spark driver`, with an operation of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.driver_kills import cut_off
from tests.faults.spark_kills import local_settings
from tests.faults.spark_requests import KillRequests
from tests.faults.spark_tables import Series, make_in_folder
from tests.spark.cluster import driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 1.0  # a driver that has just started takes longer for its first job


def test_what_a_driver_was_killed_in_is_finished_by_another(
    lake: SparkSession, name: str, tmp_path: Path
) -> None:
    here = KillRequests(lake)
    operations = {
        make_in_folder("parquet", tmp_path / "folder"): "append",
        make_in_folder("paimon-dynamic", tmp_path / "keyed"): "upsert",
        Series("iceberg", name, here.make_iceberg(name)): "delete",
    }
    warehouse = Path(str(lake.conf.get("spark.sql.catalog.lake.warehouse")))
    asked = [series.asked(operation) for series, operation in operations.items()]
    with driver(tmp_path / "driver", local_settings(warehouse)) as victim:
        ended = cut_off(victim, asked, after=SECONDS)
    assert len(ended) < len(asked)
    for answer in asked:
        here.check(is_done=answer["location"] in ended, **answer)
