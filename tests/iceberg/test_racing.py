"""Two workers delete with us and two upsert with Iceberg: as if one had come after the other.

`make soak` lets them do a hundred rounds; ALCID_ROUNDS says how many each of the four does.
"""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import alcid
from alcid.errors import ConflictError
from alcid.spark.jvm import spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = int(os.environ.get("ALCID_ROUNDS", "2"))
KEYS, FILES, NEW = 400, 4, 1_000_000
_TRIES = 20
_TAG = "spark.sql.iceberg.snapshot-property.round"


def _keys(name: str) -> tuple[int, int]:
    """The keys that a round deletes or updates."""
    start = random.Random(name).randrange(KEYS)
    return start, start + 12


def _new_key(name: str) -> int:
    """A key that only this round inserts, and nobody deletes."""
    worker, number = name.split("-")
    return NEW * (int(worker) + 1) + int(number)


def _delete(lake: SparkSession, name: str, worker: int) -> dict[int, str]:
    """The snapshots of the rounds."""
    table = alcid.iceberg(name, lake)
    made = {}
    for number in range(ROUNDS):
        of_round = f"{worker}-{number}"
        least, most = _keys(of_round)
        try:
            snapshot = table.delete(f"id BETWEEN {least} AND {most}").snapshot_id
        except ConflictError:  # others were faster ten times
            continue
        if snapshot is not None:
            made[snapshot] = of_round
    return made


def _upsert(lake: SparkSession, name: str, worker: int) -> dict[int, str]:
    session = lake.newSession()
    for number in range(ROUNDS):
        of_round = f"{worker}-{number}"
        session.conf.set(_TAG, of_round)
        for _ in range(_TRIES):
            try:
                session.sql(_merge(name, of_round))
                break
            except spark_exceptions():  # another writer was faster
                continue
    return {}


def _merge(name: str, of_round: str) -> str:
    least, most = _keys(of_round)
    return (
        f"MERGE INTO {name} t USING (SELECT id FROM range({least}, {most + 1}) UNION ALL"
        f" SELECT {_new_key(of_round)}) s ON t.id = s.id"
        f" WHEN MATCHED THEN UPDATE SET v = '{of_round}'"
        f" WHEN NOT MATCHED AND s.id >= {NEW} THEN INSERT (id, v) VALUES (s.id, '{of_round}')"
    )


def test_deletes_and_upserts_at_once(lake: SparkSession, name: str) -> None:
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) USING iceberg TBLPROPERTIES"
        " ('format-version' = '3', 'write.merge.mode' = 'merge-on-read',"
        " 'write.delete.mode' = 'merge-on-read', 'commit.retry.num-retries' = '20')"
    )
    rows = lake.range(0, KEYS, 1, FILES).selectExpr("id", "'first' AS v")
    rows.writeTo(name).append()
    alcid.iceberg(name, lake).build_indexes(
        {"file-index.bloom-filter.columns": "id"}, progress=False
    )
    jobs = [_delete, _delete, _upsert, _upsert]
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job, lake, name, worker) for worker, job in enumerate(jobs)]
        deletes = {
            number: round_number for job in running for number, round_number in job.result().items()
        }

    lake.sql(f"REFRESH TABLE {name}")  # commits of other sessions are not in its cache
    expected = dict.fromkeys(range(KEYS), "first")
    upserts = 0
    snapshots = lake.sql(
        f"SELECT s.snapshot_id, s.summary['round'] AS upsert FROM {name}.history h"
        f" JOIN {name}.snapshots s ON h.snapshot_id = s.snapshot_id"
        " WHERE h.is_current_ancestor ORDER BY h.made_current_at"
    ).collect()
    for snapshot in snapshots[1:]:
        of_round = deletes.pop(snapshot.snapshot_id, snapshot.upsert)
        least, most = _keys(of_round)
        if snapshot.upsert is None:
            expected = {key: v for key, v in expected.items() if not least <= key <= most}
        else:
            upserts += 1
            expected |= {key: of_round for key in expected if least <= key <= most}
            expected[_new_key(of_round)] = of_round
    assert not deletes
    assert upserts
    table = alcid.iceberg(name, lake)
    ours = table.scan(order_by="id").to_arrow().to_pydict()
    theirs = lake.sql(f"SELECT id, v FROM {name} ORDER BY id").toArrow().to_pydict()
    assert ours == theirs
    assert dict(zip(ours["id"], ours["v"], strict=True)) == expected
    report = table.verify(progress=False)
    assert report.ok, str(report)
