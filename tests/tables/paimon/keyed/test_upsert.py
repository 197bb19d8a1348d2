"""Where rows of an upsert go: one channel for each bucket, one bucket for each key."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import PaimonTable, Routing
from alcid.tables import reports
from alcid.tables.paimon.data_files import fit_stored, table_paths
from alcid.tables.paimon.keyed import upsert
from alcid.tables.paimon.keyed.bucket import buckets_of
from alcid.tables.paimon.keyed.hash_lookup import NEW_KEY, HashIndexes
from alcid.tables.paimon.keyed.memory import MemoryBounds
from alcid.tables.paimon.keyed.upsert import UpsertPlan, count_channels, keyed_table, plan_job
from alcid.tables.paimon.keyed.upsert_job import Channel, UpsertJob
from alcid.tables.rows import ArrowRows, Routed, SizeEstimate
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


def test_skewed_partitions_and_buckets_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "_SKEW_ROWS", 50)
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    keys = ["part", "id"]
    table = create(tmp_path, COLUMNS, partition_keys=["part"], primary_keys=keys, options=options)
    parts = [0] * 90 + [1] * 60 + list(range(2, 12))
    rows = pa.table({"part": pa.array(parts, pa.int32()), "id": range(len(parts))})
    report = table.upsert(rows)
    assert report.skewed == (
        reports.Skewed("part=0", 90, 90 / 160, 12),
        reports.Skewed("part=1", 60, 60 / 160, 12),
        reports.Skewed("part=0/bucket-0", 90, 90 / 160, 12),
        reports.Skewed("part=1/bucket-0", 60, 60 / 160, 12),
    )
    assert str(report).splitlines()[1] == "skewed: part=0 got 90 rows, 56 % of all, one of 12"
    assert report.to_dict()["skewed"][3] == {
        "path": "part=1/bucket-0",
        "rows": 60,
        "share": 0.375,
        "count": 12,
    }
    assert table.upsert(rows.slice(150)).skewed == ()
    monkeypatch.setattr(reports, "_SKEW_ROWS", 100)
    assert table.upsert(rows).skewed == ()


def test_at_most_ten_skewed_buckets_are_named() -> None:
    rows = {f"a{number:02}": 10**6 + number for number in range(20)}
    rows |= {f"b{number}": 1 for number in range(200)}
    assert [skewed.path for skewed in reports.find_skewed(rows)] == [
        f"a{number:02}" for number in range(19, 9, -1)
    ]
    assert reports.find_skewed({}) == ()


def test_channels_go_by_the_rows(tmp_path: Path) -> None:
    mb = 1 << 20
    for size, least, most, channels in (
        (SizeEstimate(mb, 10_000), 1, None, 1),
        (SizeEstimate(0, 0), 1, None, 1),
        (SizeEstimate(33 * mb), 1, None, 2),
        (SizeEstimate(mb, 3 * mb + 1), 1, None, 4),
        (SizeEstimate(mb, 10_000), 50, None, 50),
        (SizeEstimate(mb, 10_000), 50, 30, 30),
        (SizeEstimate(mb * mb), 1, 800, 800),
        (None, 1, None, 200),
        (None, 1, 3, 3),
    ):
        assert count_channels(size, 200, least, most) == channels
    rows = ArrowRows(rows_of(1, range(10)))
    options = {"deletion-vectors.enabled": "true"}
    for number, (bucket, partitions, channels) in enumerate(
        [("3", [], 3), ("3", ["part"], 8), ("-1", [], 2)]
    ):
        table = create(
            tmp_path / str(number),
            COLUMNS,
            partition_keys=partitions,
            primary_keys=["part", "id"],
            options=options | {"bucket": bucket},
        )
        with (
            patch.object(ArrowRows, "parallelism", 2),
            patch.object(ArrowRows, "size", lambda _self: SizeEstimate(1 << 40)),
        ):
            job = plan_job(table, rows, UpsertPlan())
        assert job.channels == channels
        assert job.lookup_tasks == 0
        with patch.object(ArrowRows, "parallelism", 200):
            assert plan_job(table, rows, UpsertPlan()).channels == 1


def test_few_rows_that_look_up_much_have_several_channels(
    tables: dict[str, PaimonTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables["dynamic"]
    buckets = {placed.entry.bucket_id for placed in table.snapshot.placed}
    monkeypatch.setattr(ArrowRows, "parallelism", 50)
    monkeypatch.setattr(upsert, "_LOOKED_UP_BYTES", 1)
    rows = ArrowRows(rows_of(1, range(10)))
    assert plan_job(table, rows, UpsertPlan()).channels == min(len(buckets), 50)
    assert plan_job(table, rows, UpsertPlan(write_only=True)).channels == 1
    monkeypatch.setattr(upsert, "DEFAULT_MEMORY", MemoryBounds(hash_bytes=200))
    job = plan_job(table, rows, UpsertPlan())
    assert job.lookup_tasks == job.hash_indexes.ranges == 6
