"""Where rows of an upsert go: one channel for each bucket, one bucket for each key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import PaimonTable, Routing
from alcid.tables.paimon.data_files import fit_stored, table_paths
from alcid.tables.paimon.keyed.bucket import buckets_of
from alcid.tables.paimon.keyed.hash_lookup import NEW_KEY, HashIndexes
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.keyed.upsert_job import Channel, UpsertJob
from alcid.tables.rows import Routed
from tests.tables.paimon.small_tables import create

COLUMNS = {"part": "INT", "id": "BIGINT"}


def rows_of(parts: int, ids: range) -> pa.Table:
    return pa.table(
        {
            "part": pa.array([one % parts for one in ids], pa.int32()),
            "id": pa.array(ids, pa.int64()),
        }
    )


def job_of(table: PaimonTable, routing: Routing) -> UpsertJob:
    keyed = keyed_table(table, "upsert")
    buckets = buckets_of(table.snapshot.state, table_paths(keyed.schema, keyed.options))
    columns = fit_stored(rows_of(1, range(1)).schema, keyed.schema)
    known = HashIndexes(keyed, buckets)
    return UpsertJob(keyed, columns, None, buckets, known, routing, looks_up=True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PaimonTable]:
    """Tables of 3 partitions with the keys 0 to 299, of one assigner and many buckets."""
    made = {}
    for name, bucket in (("dynamic", "-1"), ("fixed", "5")):
        options = {"bucket": bucket, "deletion-vectors.enabled": "true"}
        if name == "dynamic":
            options["dynamic-bucket.target-row-num"] = "9"
        made[name] = create(
            Path(tmp_path_factory.mktemp(name)),
            COLUMNS,
            partition_keys=["part"],
            primary_keys=["part", "id"],
            options=options,
        )
        made[name].upsert(rows_of(3, range(300)))
    return made


@given(
    kind=st.sampled_from(["dynamic", "fixed"]),
    assigners=st.integers(1, 7),
    times=st.integers(1, 4),
)
def test_no_two_channels_have_rows_of_a_bucket(
    tables: dict[str, PaimonTable], kind: str, assigners: int, times: int
) -> None:
    routing = Routing(assigners * times, assigners)
    job = job_of(tables[kind], routing)
    rows = job.columns.rows(rows_of(4, range(200, 500)).columns)
    routed = job.route(rows)
    if kind == "dynamic":
        known = {(one % 3, one) for one in range(300)}
        is_new = [(one % 4, one) not in known for one in range(200, 500)]
        assert (routed.buckets == NEW_KEY).tolist() == is_new
    owner: dict[tuple[bytes, int], int] = {}
    placed: dict[int, tuple[bytes, int]] = {}
    for channel in range(routing.channels):
        mine = np.flatnonzero(routed.channels == channel)
        if not len(mine):
            continue
        chosen = Routed(routed.hashes[mine], routed.buckets[mine], routed.channels[mine])
        kinds = np.zeros(len(mine), np.int8)
        for part in Channel(job, channel).split(rows.take(mine), kinds, chosen):
            assert owner.setdefault(part.bucket.id, channel) == channel
            for row in mine[part.batch.positions].tolist():
                placed[row] = part.bucket.id
                if routed.buckets[row] != NEW_KEY:
                    assert part.bucket.number == routed.buckets[row]
    assert sorted(placed) == list(range(300))
    if kind == "dynamic":
        target = job.keyed.options.dynamic_buckets().target_row_num
        held = {one.id: sum(index.rows for index in one.hashes) for one in job.buckets}
        for row, place in placed.items():
            if routed.buckets[row] == NEW_KEY:
                held[place] = held.get(place, 0) + 1
        assert max(held.values()) <= target
