"""`foreachBatch(upsert_sink(...))`: the rows of a stream are in the table exactly once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import ConflictError, UnsupportedError
from alcid.spark.session import ensure_java
from alcid.storage import Storage
from tests.interop.peers import ROOT, unavailable
from tests.spark.killed_streams import STEPS
from tests.spark.processes import below, is_running, kill, wait_for
from tests.spark.streams import add_batch, make, names_after, run
from tests.tables.paimon.keyed.sink_tables import history, names_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The batch of each snapshot, and its kind.
HISTORY = [
    (2 + 2 * batch + step, kind, batch)
    for batch in range(3)
    for step, kind in enumerate(("APPEND", "COMPACT"))
]


def opened(folder: Path) -> PaimonTable:
    return PaimonTable(Storage.open(folder / "table"))


def test_each_batch_of_a_stream_is_upserted_once(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path, 2)
    run(spark, tmp_path)
    table = opened(tmp_path)
    assert names_of(table) == names_after(2)
    assert history(table, 2) == HISTORY[:4]
    run(spark, tmp_path)  # nothing is new
    add_batch(tmp_path, 2)
    run(spark, tmp_path)
    assert names_of(table) == names_after(3)
    assert history(table, 2) == HISTORY
    assert table.verify(progress=False).ok


def test_a_batch_that_spark_runs_again_is_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path, 2)
    run(spark, tmp_path)
    table = opened(tmp_path)
    table.upsert(rows_of({2: "by another"}))
    for name in ("1", ".1.crc"):  # as if it had been killed before it wrote that the batch is done
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    add_batch(tmp_path, 2)
    run(spark, tmp_path)
    assert names_of(table) == names_after(3) | {2: "by another"}
    assert [batch for _, _, batch in history(table, 2)] == [0, 0, 1, 1, *[2**63 - 1] * 2, 2, 2]


def test_a_new_checkpoint_needs_a_new_name(spark: SparkSession, tmp_path: Path) -> None:
    """Its batches count from 0 again, and would all be mistaken for old ones."""
    from pyspark.errors import StreamingQueryException

    make(tmp_path, 2)
    run(spark, tmp_path)
    message = r"sink numbers: batch 1 came from another checkpoint: give this query a name"
    with pytest.raises(StreamingQueryException, match=message):
        run(spark, tmp_path, "another")
    table = opened(tmp_path)
    assert history(table, 2) == HISTORY[:4]
    run(spark, tmp_path)


def test_a_sink_whose_name_a_new_query_has_taken_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    make(tmp_path, 1)
    table = alcid.paimon(tmp_path / "table", spark)
    old = alcid.upsert_sink(table, "numbers")
    old(spark.createDataFrame([(0, "first")], "id BIGINT, name STRING"), 0)
    (tmp_path / "checkpoint").mkdir()
    add_batch(tmp_path, 1)
    run(spark, tmp_path)  # batch 0 is committed, as far as it can know; batch 1 is written
    assert history(table, 4) == [(4, "APPEND", 1), (5, "COMPACT", 1)]
    with pytest.raises(ConflictError, match="another sink of this name is live"):
        old(spark.range(1).selectExpr("id", "'lost' AS name"), 2)
    table.refresh()
    assert table.snapshot_id == 5


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Streams whose driver was killed, each at another step of its second batch."""
    try:
        ensure_java()
    except UnsupportedError as error:
        unavailable(str(error))
    root = tmp_path_factory.mktemp("killed")
    for step in STEPS:
        (root / step).mkdir()
        make(root / step, 3)
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.killed_streams", str(root)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as driver:
        reached = [root / step / "reached" for step in STEPS]
        try:
            wait_for(
                lambda: driver.poll() is not None or all(map(Path.exists, reached)),
                "three streams at their steps",
                patience=300,
            )
            assert driver.poll() is None
        finally:
            others = below(driver.pid)
            kill([driver.pid])
        wait_for(lambda: not any(map(is_running, others)), "the end of Java and the workers")
    return root


@pytest.mark.parametrize("step", STEPS)
def test_a_stream_whose_driver_was_killed_goes_on(
    spark: SparkSession, killed: Path, step: str
) -> None:
    folder, table = killed / step, opened(killed / step)
    done = {"before the APPEND": 2, "after the APPEND": 3, "after the COMPACT": 4}[step]
    assert history(table, 2) == HISTORY[:done]
    assert names_of(table) == names_after(2 if step == "after the COMPACT" else 1)
    run(spark, folder)
    assert history(table, 2) == HISTORY
    assert names_of(table) == names_after(3)
    assert table.verify(progress=False).ok
