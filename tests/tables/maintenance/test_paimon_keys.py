"""Keys that are live twice: verify finds them, and repair corrects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alcid
from alcid import ConflictError, PaimonTable, UnsupportedError
from alcid.formats.hash_index import HashIndex
from alcid.tables.maintenance import paimon_keys, paimon_repair_vectors
from alcid.tables.maintenance.paimon_keys import BucketKeys, check_bucket_keys
from alcid.tables.paimon.keyed.bucket import read_hashes
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, IndexEntry
from tests.tables.maintenance.damaged_keys import (
    all_of,
    buckets,
    count_repaired,
    drop_vectors,
    forget,
    hashes_of,
    homes,
    keyed_of,
    new_table,
    put_hashes,
    rows_of,
    seen,
    swap_levels,
)
from tests.tables.maintenance.forging import flip, forge
from tests.tables.maintenance.kit import Workers
from tests.tables.paimon.small_tables import VECTORS, commit, create, set_options

ONE = {"bucket": "1"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "10"}


def problems(table: PaimonTable) -> list[tuple[str, str]]:
    report = table.verify()
    assert len(report.problems) == report.problem_count
    assert report.ok == (not report.problems)
    return [(problem.what, problem.problem) for problem in report.problems]


def kinds(table: PaimonTable) -> list[str]:
    """The kinds of all snapshots."""
    last = table.snapshot_id or 0
    return [table.folder.snapshots.get(number).commit_kind for number in range(1, last + 1)]


# -- in one bucket -----------------------------------------------------------------------------


def doubled(path: Path, options: dict[str, str] | None = None) -> PaimonTable:
    """Keys 0 to 9 are live twice: on level 5 and, newer, on level 4."""
    table = new_table(path, ONE | (options or {}))
    table.upsert(rows_of(range(100), "old"))
    table.upsert(rows_of(range(10), "new"))
    drop_vectors(table)
    assert table.count() == 110
    return table


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.bitmap64": "true"}], ids=["32", "64"])
def test_the_row_on_the_higher_level_is_marked(tmp_path: Path, options: dict[str, str]) -> None:
    table = doubled(tmp_path, options)
    old = next(bucket for bucket in buckets(table)).files[0]
    report = table.verify()
    assert (report.ok, report.keys_live_twice) == (False, 10)
    (problem,) = report.problems
    assert (problem.file, problem.what) == (old.path, "keys")
    assert problem.problem == "10 rows with a key that is live twice"
    before = kinds(table)

    done = table.repair()
    what = f"{old.path}: keys: {problem.problem}: marked as deleted"
    assert [(str(repair), repair.count) for repair in done.repaired] == [(what, 10)]
    assert (done.ok, done.commits, done.snapshot_id) == (True, 1, table.snapshot_id)
    report = table.verify()
    assert (report.ok, report.keys_live_twice) == (True, 0)
    assert kinds(table) == [*before, "COMPACT"]
    assert seen(table) == all_of(new=range(10), old=range(10, 100))
    (entry,) = (index for index in table.snapshot.state.indexes)
    assert [range_.cardinality for range_ in entry.ranges or ()] == [10]


def test_what_is_sound_is_left_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path, ONE)
    table.upsert(rows_of(range(100), "old"))
    table.upsert(rows_of(range(10), "new"))
    before = table.snapshot_id
    count, report = count_repaired(table), table.verify()
    assert (report.ok, count, table.snapshot_id) == (True, 0, before)
    assert report.leftovers == ()


def test_marks_that_are_there_stay(tmp_path: Path) -> None:
    table = doubled(tmp_path)
    table.delete("id >= 90")
    table.upsert(rows_of(range(20, 30), "third"))
    assert table.count() == 100
    assert count_repaired(table) == 10
    expected = all_of(new=range(10), old=[*range(10, 20), *range(30, 90)], third=range(20, 30))
    assert seen(table) == expected


def test_a_level_counts_more_than_a_number(tmp_path: Path) -> None:
    """A writer that opened the bucket earlier uses sequence numbers that others have used."""
    table = doubled(tmp_path)
    (bucket,) = buckets(table)
    swap_levels(table, bucket)  # now the lower numbers are on the lower level
    assert count_repaired(table) == 10
    assert seen(table) == all_of(old=range(100))


@pytest.mark.parametrize(("order", "kept"), [("ascending", "late"), ("descending", "early")])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_sequence_field_counts_more_than_a_level(
    tmp_path: Path, order: str, kept: str, swapped: bool
) -> None:
    options = ONE | {"sequence.field": "at", "sequence.field.sort-order": order}
    table = new_table(tmp_path, options)
    batches = [rows_of(range(20), "early", 1), rows_of(range(20), "late", 2)]
    for batch in batches if order == "ascending" else reversed(batches):
        table.upsert(batch)
    drop_vectors(table)
    if swapped:
        (bucket,) = buckets(table)
        swap_levels(table, bucket)
    assert table.count() == 40
    assert count_repaired(table) == 20
    assert seen(table) == [(key, kept) for key in range(20)]


def test_equal_sequence_fields_leave_it_to_the_level(tmp_path: Path) -> None:
    table = new_table(tmp_path, ONE | {"sequence.field": "at"})
    table.upsert(rows_of(range(20), "old", 7))
    table.upsert(rows_of(range(5), "new", 7))
    drop_vectors(table)
    assert count_repaired(table) == 5
    assert seen(table) == all_of(new=range(5), old=range(5, 20))


def test_a_key_that_is_live_on_five_levels_is_left_once(tmp_path: Path) -> None:
    table = new_table(tmp_path, ONE)
    for number in range(5):
        table.upsert(rows_of([1, 10 + number], f"batch {number}"))
    drop_vectors(table)
    assert table.count() == 10
    assert table.verify().keys_live_twice == 4
    assert count_repaired(table) == 4
    assert seen(table)[0] == (1, "batch 4")
    assert table.count() == 6


def test_rows_that_were_not_compacted_are_left_alone(tmp_path: Path) -> None:
    table = doubled(tmp_path)
    table.upsert(rows_of(range(5), "newest"), write_only=True)
    count, report = count_repaired(table), table.verify()
    assert (report.ok, count) == (True, 10)
    assert seen(table) == all_of(new=range(10), old=range(10, 100))
    table.compact()
    assert seen(table) == all_of(newest=range(5), new=range(5, 10), old=range(10, 100))


def test_rows_that_delete_are_sound_on_level_0(tmp_path: Path) -> None:
    table = new_table(tmp_path, ONE)
    table.upsert(rows_of(range(20), "old"))
    changes = rows_of(range(10), "gone").append_column("op", pa.array(["-D", "-U"] * 5))
    table.upsert(changes, row_kind="op", write_only=True)
    (entry,) = (entry for entry in table.snapshot.state.entries if not entry.file.level)
    assert (entry.file.delete_rows, entry.file.rows) == (10, 10)
    report = table.verify()
    assert (report.ok, report.warnings) == (True, ())
    table.upsert(rows_of([30], "new"))
    assert seen(table) == all_of(old=range(10, 20), new=[30])
    assert table.verify().ok


@pytest.mark.parametrize("bucket", ["3", "-1"])
def test_every_bucket_and_partition_is_repaired_in_one_commit_by_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setattr(paimon_keys, "_SMALL", -1)
    table = create(
        tmp_path,
        {"dt": "STRING", "id": "BIGINT", "v": "STRING"},
        primary_keys=["dt", "id"],
        partition_keys=["dt"],
        options=VECTORS | {"bucket": bucket, "dynamic-bucket.target-row-num": "20"},
    )

    def rows(keys: Sequence[int], text: str) -> pa.Table:
        parts = [
            pa.table({"dt": [day] * len(keys), "id": list(keys), "v": [text] * len(keys)})
            for day in ("a", "b")
        ]
        return pa.concat_tables(parts)

    table.upsert(rows(range(60), "old"))
    table.upsert(rows(range(30), "new"))
    marked = len([index for index in table.snapshot.state.indexes if index.ranges])
    drop_vectors(table)
    before = len(kinds(table))
    opened = PaimonTable(table.storage, engine=Workers(3))
    assert opened.verify().keys_live_twice == 60
    assert count_repaired(opened) == 60
    table.refresh()
    assert len(kinds(table)) == before + 1
    assert len([index for index in table.snapshot.state.indexes if index.ranges]) == marked
    assert table.count("v = 'new'") == 60
    assert table.count() == 120


def test_a_bucket_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    table = new_table(tmp_path, {"bucket": "2"})
    table.upsert(rows_of(range(40), "old"))
    table.upsert(rows_of(range(40), "new"))
    drop_vectors(table)
    first, second = buckets(table)
    flip(tmp_path / first.files[0].path, -1)
    expected = second.files[0].file.rows
    count, report = count_repaired(table), table.verify()
    assert (report.ok, report.keys_live_twice, count) == (False, 0, expected)
    assert {problem.file for problem in report.problems} == {first.files[0].path}


# -- others at the same time -------------------------------------------------------------------


def racing(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[int], object]) -> list[int]:
    """Let something happen between the check of the keys and the commit; the list counts checks."""
    looks: list[int] = []

    def look(*arguments: Any) -> list[BucketKeys]:
        buckets_of = check_bucket_keys(*arguments)
        looks.append(len(buckets_of))
        meanwhile(len(looks))
        return buckets_of

    monkeypatch.setattr(paimon_repair_vectors, "check_bucket_keys", look)
    return looks


def test_a_bucket_that_changed_meanwhile_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = doubled(tmp_path), alcid.paimon(tmp_path)

    def meanwhile(look: int) -> None:
        if look == 1:
            other.upsert(rows_of(range(5), "newest"))

    looks = racing(monkeypatch, meanwhile)
    count, report = count_repaired(table), table.verify()
    # The upsert has marked both rows of its five keys.
    assert (looks, count, report.ok, report.leftovers) == ([1, 1], 5, True, ())
    assert seen(table) == all_of(newest=range(5), new=range(5, 10), old=range(10, 100))


def test_others_who_are_always_faster_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = doubled(tmp_path), alcid.paimon(tmp_path)

    def meanwhile(look: int) -> None:
        other.upsert(rows_of([1000 + look], "more"), write_only=True)

    racing(monkeypatch, meanwhile)
    with pytest.raises(ConflictError) as error:
        table.repair()
    assert str(error.value).endswith(": others have changed the same files each time")
    assert table.verify().leftovers == ()


def test_a_commit_to_another_bucket_is_no_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, {"bucket": "2"})
    table.upsert(rows_of(range(40), "old"))
    first, second = buckets(table)
    alone = {bucket.number: _keys(bucket.number) for bucket in (first, second)}
    table.upsert(rows_of(alone[0], "new"))
    drop_vectors(table)
    other = alcid.paimon(tmp_path)

    looks = racing(monkeypatch, lambda _: other.upsert(rows_of(alone[1][:3], "other")))
    assert count_repaired(table) == len(alone[0])
    assert looks == [1]
    assert seen(table) == all_of(new=alone[0], other=alone[1][:3], old=alone[1][3:])


def _keys(bucket: int) -> list[int]:
    """The keys up to 39 in one of two buckets."""
    hashes = hashes_of(range(40)).tolist()
    return [key for key, hash_ in enumerate(hashes) if abs(hash_) % 2 == bucket]


# -- what cannot be ----------------------------------------------------------------------------


def test_an_option_that_stops_compactions_stops_the_repair_of_keys(tmp_path: Path) -> None:
    table = doubled(tmp_path)
    set_options(table, changelog_producer="input")
    report = table.repair()
    (left,) = report.not_repaired
    assert (left.what, left.problem) == ("keys", "10 rows with a key that is live twice")
    assert left.advice.startswith("changelog-producer=input: cannot compact")
    assert (report.ok, report.repaired, report.commits, table.count()) == (False, (), 0, 110)


def test_a_table_of_the_past_is_not_repaired(tmp_path: Path) -> None:
    doubled(tmp_path)
    with pytest.raises(UnsupportedError, match="opened at a snapshot of the past"):
        alcid.paimon(tmp_path, snapshot_id=1).repair()


@pytest.mark.parametrize("ranges", [None, ()], ids=["null", "empty"])
def test_an_index_file_without_vectors_is_removed(tmp_path: Path, ranges: tuple[()] | None) -> None:
    table = new_table(tmp_path, ONE)
    table.upsert(rows_of(range(5), "old"))
    table.storage.put("index/index-empty-0", b"\1")
    (bucket,) = buckets(table)
    entry = IndexEntry(*bucket.id, DELETION_VECTORS, "index-empty-0", 1, 0, ranges)
    forge(tmp_path, indexes=lambda entries: [*entries, entry])
    table.refresh()
    assert [warning.what for warning in table.verify().warnings] == ["deletion vectors"]
    count, report = count_repaired(table), table.verify()
    assert (count, report.warnings) == (1, ())
    assert table.snapshot.state.indexes == ()
    assert seen(table) == all_of(old=range(5))


# -- dynamic buckets ---------------------------------------------------------------------------


def spread(path: Path, options: dict[str, str] | None = None) -> PaimonTable:
    """Keys 0 to 29 in three buckets of ten."""
    table = new_table(path, DYNAMIC | (options or {}))
    table.upsert(rows_of(range(30), "old", 5))
    assert len(list(buckets(table))) == 3
    return table


def test_a_sound_table_has_every_key_in_one_index(tmp_path: Path) -> None:
    table = spread(tmp_path)
    table.upsert(rows_of(range(20, 50), "new"))
    table.delete("id < 5")
    table.upsert(rows_of(range(100, 105), "late"), write_only=True)
    count, report = count_repaired(table), table.verify()
    assert (report.ok, count, report.keys_live_twice) == (True, 0, 0)


def test_hashes_that_are_lost_come_back(tmp_path: Path) -> None:
    table = spread(tmp_path)
    before = homes(table)
    forget(table, range(4))
    lost = {before[hash_][0] for hash_ in hashes_of(range(4)).tolist()}
    lines = problems(table)
    assert {what for what, _ in lines} == {"hashes of keys"}
    assert len(lines) == len(lost)
    assert sum(int(problem.split()[0]) for _, problem in lines) == 4
    assert all(problem.endswith(" not in its hash index") for _, problem in lines)
    count, report = count_repaired(table), table.verify()
    assert (report.ok, count) == (True, 4)
    assert homes(table) == before
    table.upsert(rows_of(range(30), "new"))
    assert seen(table) == all_of(new=range(30))


def test_a_key_in_two_buckets_is_left_where_writers_have_put_it_since(tmp_path: Path) -> None:
    table = spread(tmp_path)
    forget(table, range(4), stays_full=True)
    table.upsert(rows_of(range(4), "new"))
    assert table.count() == 34
    report = table.verify()
    assert (report.ok, report.keys_live_twice) == (False, 4)
    rows = [problem.problem for problem in report.problems if problem.what == "keys"]
    assert sum(int(text.split()[0]) for text in rows) == 4
    assert all(text.endswith("with a key that is live in another bucket") for text in rows)
    assert count_repaired(table) == 4
    assert problems(table) == []
    assert seen(table) == all_of(new=range(4), old=range(4, 30))
    table.upsert(rows_of(range(30), "last"))
    assert seen(table) == all_of(last=range(30))
    assert table.verify().ok


def test_of_a_key_in_two_buckets_the_greater_sequence_field_counts(tmp_path: Path) -> None:
    table = spread(tmp_path, {"sequence.field": "at"})
    forget(table, range(4), stays_full=True)
    table.upsert(pa.concat_tables([rows_of(range(2), "lesser", 3), rows_of([2, 3], "greater", 9)]))
    table.repair()
    assert table.verify().keys_live_twice == 0
    assert problems(table) == []
    assert seen(table) == all_of(greater=[2, 3], old=[0, 1, *range(4, 30)])
    assert all(len(home) == 1 for home in homes(table).values())
    table.upsert(rows_of(range(30), "last", 10))
    assert seen(table) == all_of(last=range(30))


def test_a_hash_in_two_indexes_stays_with_its_key(tmp_path: Path) -> None:
    table = spread(tmp_path)
    before = homes(table)
    first, *_ = buckets(table)
    others = [hash_ for hash_, (home,) in before.items() if home != first.number][:7]
    hashes = read_hashes(keyed_of(table), first)
    put_hashes(table, first, hashes.union(np.array(others, np.int32)))
    listed = problems(table)
    assert listed[0] == ("hashes of keys", "7 in the hash index of another bucket too")
    count, report = count_repaired(table), table.verify()
    assert (report.ok, count) == (True, 7)
    assert homes(table) == before


def test_a_hash_of_no_key_stays_in_the_index_that_came_last(tmp_path: Path) -> None:
    table = spread(tmp_path)
    first, second, third = buckets(table)
    for bucket in (third, first, second):
        put_hashes(table, bucket, read_hashes(keyed_of(table), bucket).union([123456789]))
    assert count_repaired(table) == 2
    assert homes(table)[123456789] == [second.number]


def test_an_index_that_is_gone_is_made_again(tmp_path: Path) -> None:
    table = spread(tmp_path)
    before = homes(table)
    entries = [entry for bucket in buckets(table) for entry in bucket.hashes]
    commit(table, Change(kind="COMPACT", index_deleted=entries))
    assert count_repaired(table) == 30
    assert homes(table) == before
    assert problems(table) == []


def test_an_index_of_nothing_that_belongs_to_it_is_removed(tmp_path: Path) -> None:
    table = new_table(tmp_path, DYNAMIC)
    table.upsert(rows_of(range(10), "old"))
    (first,) = buckets(table)
    other = replace(first, number=7, files=(), vectors=(), hashes=())
    put_hashes(table, other, HashIndex(hashes_of(range(3))))
    assert count_repaired(table) == 3
    assert [bucket.number for bucket in buckets(table)] == [0]
    assert problems(table) == []


def test_different_keys_of_a_hash_stay_where_they_are(tmp_path: Path) -> None:
    """Marks cannot bring them together; both rows are valid."""
    keys = np.random.default_rng(0).integers(0, 1 << 62, 200_000)
    hashes = hashes_of(keys)
    order = np.argsort(hashes, kind="stable")
    same = int(np.flatnonzero(np.diff(hashes[order]) == 0)[0])
    first, other = keys[order[same : same + 2]].tolist()
    table = new_table(tmp_path, DYNAMIC | {"dynamic-bucket.target-row-num": "1"})
    table.upsert(rows_of([first], "one"))
    forget(table, [first], stays_full=True)
    table.upsert(rows_of([other], "other"))
    assert len(list(buckets(table))) == 2
    assert problems(table) == [("hashes of keys", "1 not in its hash index")]
    count, report = count_repaired(table), table.verify()
    assert (count, report.keys_live_twice, report.problem_count) == (0, 0, 1)
    assert seen(table) == all_of(one=[first], other=[other])


def test_a_key_that_is_not_compacted_in_another_bucket_is_left_alone(tmp_path: Path) -> None:
    table = spread(tmp_path)
    forget(table, [0], stays_full=True)
    table.upsert(rows_of([0], "new"), write_only=True)
    assert seen(table) == all_of(old=range(30))
    assert count_repaired(table) == 0
    assert seen(table) == all_of(old=range(30))  # no key is lost
    table.compact()
    assert table.verify().keys_live_twice == 1
    assert count_repaired(table) >= 1
    assert seen(table) == all_of(new=[0], old=range(1, 30))


def test_hashes_of_a_table_without_vectors_are_repaired_too(tmp_path: Path) -> None:
    table = create(
        tmp_path,
        {"id": "BIGINT", "at": "INT", "v": "STRING"},
        primary_keys=["id"],
        options=DYNAMIC,
    )
    table.upsert(rows_of(range(20), "old"))
    table.upsert(rows_of(range(10), "new"))
    before = homes(table)
    forget(table, range(3))
    assert count_repaired(table) == 3
    assert homes(table) == before
    assert seen(table) == all_of(new=range(10), old=range(10, 20))


# -- many --------------------------------------------------------------------------------------

STEP = st.one_of(
    st.tuples(st.just("upsert"), st.sets(st.integers(0, 40), min_size=1, max_size=12)),
    st.tuples(st.just("forget"), st.sets(st.integers(0, 40), max_size=6)),
    st.tuples(st.just("drop"), st.just(frozenset[int]())),
    st.tuples(st.just("repair"), st.just(frozenset[int]())),
)


@settings(max_examples=15)  # each syncs some files to the disk
@given(steps=st.lists(STEP, min_size=3, max_size=9), bucket=st.sampled_from(["1", "2", "-1"]))
def test_a_repair_brings_back_what_was_upserted_last(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[int]]], bucket: str
) -> None:
    options = {"bucket": bucket, "dynamic-bucket.target-row-num": "5"}
    if bucket != "-1":
        del options["dynamic-bucket.target-row-num"]
    table = new_table(tmp_path_factory.mktemp("table"), options)
    expected: dict[int, str] = {}
    for number, (step, keys) in enumerate([*steps, ("repair", set[int]())]):
        if step == "upsert":
            table.upsert(rows_of(keys, f"step {number}"))
            expected |= dict.fromkeys(keys, f"step {number}")
        elif step == "forget" and bucket == "-1":
            forget(table, keys, stays_full=number % 3 > 0)
        elif step == "drop" and any(bucket.vectors for bucket in buckets(table)):
            drop_vectors(table)
        elif step == "repair":
            table.repair()
            assert seen(table) == sorted(expected.items())
    assert table.verify().ok
