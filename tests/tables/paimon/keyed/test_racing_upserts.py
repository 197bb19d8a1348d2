"""Concurrent upserts by processes: as if they had upserted one after the other."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from tests.tables.paimon.keyed.racing_upserts import race_upserts, rows_of_round
from tests.tables.paimon.small_tables import create

WORKERS, ROUNDS = 4, 6
COLUMNS = {"part": "INT", "id": "BIGINT", "name": "STRING"}


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "-1", "dynamic-bucket.target-row-num": "7"},
        {"bucket": "2"},
    ],
    ids=["dynamic", "fixed"],
)
def test_upserts_of_four_processes_are_as_if_one_after_the_other(
    tmp_path: Path, options: dict[str, str]
) -> None:
    options = {"deletion-vectors.enabled": "true", **options}
    create(
        tmp_path / "t",
        COLUMNS,
        partition_keys=["part"],
        primary_keys=["part", "id"],
        options=options,
    )
    race_upserts(str(tmp_path / "t"), workers=WORKERS, rounds=ROUNDS)
    table = alcid.paimon(tmp_path / "t")
    rows: dict[int, str] = {}
    names: list[str] = []
    snapshots = table.folder.snapshots
    for number in snapshots.numbers():
        snapshot = snapshots.get(number)
        if snapshot.commit_kind == "APPEND":
            names.append(snapshot.commit_user)
            _apply(rows, rows_of_round(snapshot.commit_user))
    assert len(set(names)) == len(names)
    # A round that only deletes missing rows makes no snapshot.
    every = {f"{worker}-{number}" for worker in range(WORKERS) for number in range(ROUNDS)}
    assert set(names) <= every
    assert len(names) > len(every) * 0.9
    table.compact()
    stored = table.scan(columns=["id", "name"]).to_arrow().to_pydict()
    assert dict(zip(stored["id"], stored["name"], strict=True)) == rows
    assert len(stored["id"]) == len(rows)
    report = table.verify(progress=False)
    assert report.ok, str(report)


@pytest.mark.parametrize("bucket", ["-1", "2"], ids=["dynamic", "fixed"])
def test_threads_may_share_a_table(tmp_path: Path, bucket: str) -> None:
    options = {"deletion-vectors.enabled": "true", "bucket": bucket}
    if bucket == "-1":
        options["dynamic-bucket.target-row-num"] = "7"
    table = create(tmp_path, primary_keys=["id"], options=options)

    def work(worker: int) -> None:
        for number in range(5):
            keys = random.Random(f"{worker} {number}").sample(range(40), 12)
            name = f"{worker} {number}"
            table.upsert(pa.table({"id": pa.array(keys, pa.int64()), "name": [name] * len(keys)}))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    every = {
        key
        for worker in range(3)
        for number in range(5)
        for key in random.Random(f"{worker} {number}").sample(range(40), 12)
    }
    assert sorted(ids) == sorted(every)
    report = table.verify(progress=False)
    assert report.ok, str(report)


def _apply(rows: dict[int, Any], upserted: pa.Table) -> None:
    for row in upserted.to_pylist():
        if row["kind"] == "-D":
            rows.pop(row["id"], None)
        else:
            rows[row["id"]] = row["name"]
