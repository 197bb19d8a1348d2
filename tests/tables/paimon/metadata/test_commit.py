"""Commits: concurrent, killed and late ones; and manifests that are merged on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import PaimonTable
from alcid.errors import ConflictError, FormatError
from alcid.storage import Storage
from alcid.tables.paimon.metadata import commit as commit_module
from alcid.tables.paimon.metadata.commit import Change, SnapshotWriter, merge_entries
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    DataFile,
    ManifestEntry,
    write_manifest,
)
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS, RowStats, pack_rows
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.types import DataType
from tests.storage.conftest import KEYS, is_missing
from tests.tables.paimon.machine_runs import IS_SOAK
from tests.tables.paimon.metadata.killed_commits import COMMITS, STEPS
from tests.tables.paimon.metadata.racing import ROOT, Done, race
from tests.tables.paimon.newer_fields import avro_records, change_snapshot, newer_file
from tests.tables.paimon.small_tables import (
    VECTORS,
    append,
    commit,
    create,
    ids,
    rows_of,
    set_options,
    swap_index,
    write_file,
)

# -- many at once ------------------------------------------------------------------------------


def check_race(table: PaimonTable, done: list[Done]) -> None:
    """All work is there, once, in snapshots without a gap; all of them can be read."""
    made = sorted(number for racer in done for number in racer.snapshots)
    assert made == list(range(1, len(made) + 1))
    snapshots = table.folder.snapshots
    assert snapshots.numbers() == made
    rows = 0
    for number in made:
        state = TableState(table.storage, snapshots.get(number))
        assert state.snapshot is not None
        rows += state.snapshot.delta_record_count or 0
        assert sum(entry.file.rows for entry in state.entries) == rows
        assert state.snapshot.total_record_count == rows
        live = {entry.file.name for entry in state.entries}
        assert {
            vector_range.data_file for index in state.indexes for vector_range in index.ranges or ()
        } <= live
    appended = {file for each in done for file in each.appended}
    deleted = {file for each in done for file in each.deleted}
    assert rows == len(appended)
    assert ids(table) == sorted(appended - deleted)


def test_processes_that_commit_at_once_lose_nothing(tmp_path: Path) -> None:
    table = create(tmp_path)
    rounds = 200 if IS_SOAK else 25
    done = race(str(tmp_path), {}, rounds=rounds)
    assert sum(len(racer.snapshots) for racer in done) == 4 * rounds
    check_race(table, done)
    assert len(table.snapshot.state.manifests) <= 60


def test_processes_that_commit_at_once_to_s3_lose_nothing(moto_port: int, bucket: str) -> None:
    """Arrow cannot create a file on S3 only if the name is free, so s3fs does it."""
    if is_missing("s3fs"):
        pytest.skip("needs s3fs")
    options = KEYS | {"endpoint_url": f"http://127.0.0.1:{moto_port}", "library": "arrow"}
    location = f"s3://{bucket}/table"
    table = create(Storage.open(location, options))
    done = race(location, options, workers=3, rounds=4)
    assert sum(len(racer.snapshots) for racer in done) == 12
    check_race(table, done)


# -- killed ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables whose commit was killed, each at another step."""
    folder = tmp_path_factory.mktemp("killed")
    ended = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.tables.paimon.metadata.killed_commits",
            str(folder),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert sorted(ended.stdout.splitlines()) == sorted(
        f"{step.__name__} {name} {-signal.SIGKILL}" for step in STEPS for name in COMMITS
    )
    return folder


@pytest.mark.parametrize("name", COMMITS)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_commit_that_is_killed_is_there_with_its_snapshot_or_not_at_all(
    killed: Path, step: Any, name: str
) -> None:
    table = PaimonTable(Storage.open(killed / f"{step.__name__}-{name}"))
    after = {"append": [*range(9), *range(10, 20)], "delete": list(range(5, 9))}[name]
    is_there = step.__name__ == "before_the_hint"
    assert table.folder.snapshots.numbers() == [1, 2, 3][: 3 if is_there else 2]
    assert ids(table) == (after if is_there else list(range(9)))
    COMMITS[name](table)
    assert table.snapshot_id == (3 if name == "delete" and is_there else 4 if is_there else 3)
    twice = [*after, *range(10, 20)] if name == "append" and is_there else after
    assert ids(table) == sorted(twice)


# -- late --------------------------------------------------------------------------------------


class Interrupted(Storage):
    """A storage in which something happens, once, before a snapshot gets its name."""

    happens: Any = None

    def create(self, path: str, data: bytes) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        super().create(path, data)


def interrupted(folder: Path, happens: Any) -> PaimonTable:
    storage = Interrupted.open(folder)
    assert isinstance(storage, Interrupted)
    storage.happens = happens
    return PaimonTable(storage)


def test_the_second_writer_plans_again_on_the_commit_of_the_first(tmp_path: Path) -> None:
    other = create(tmp_path)
    append(other, range(5))
    late = interrupted(tmp_path, lambda: append(other, range(5, 10)))
    seen: list[int | None] = []
    entry = write_file(late, rows_of(range(10, 15)))

    def plan(state: TableState) -> Change:
        seen.append(None if state.snapshot is None else state.snapshot.id)
        return Change(kind="APPEND", added=[entry])

    made = late.committer().commit(plan)
    assert made is not None
    assert (made.id, seen) == (3, [1, 2])
    assert ids(other) == list(range(15))
    # The files of the first try are gone: three of each snapshot, and one more of the base.
    named = {snapshot.base_manifest_list for snapshot in map(late.folder.snapshots.get, (1, 2, 3))}
    named |= {
        snapshot.delta_manifest_list for snapshot in map(late.folder.snapshots.get, (1, 2, 3))
    }
    state = TableState(late.storage, late.folder.snapshots.get(3))
    named |= {meta.name for meta in state.manifests}
    names = {path.rpartition("/")[2] for path in late.storage.list("manifest").paths.to_pylist()}
    assert names == named


@pytest.mark.parametrize("kept", [2, 3])
def test_the_number_of_a_snapshot_that_has_expired_is_not_taken(tmp_path: Path, kept: int) -> None:
    other = create(tmp_path)
    append(other, range(5))

    def overtake() -> None:
        """Three commits; the first snapshots expire, or those up to the given number."""
        for start in (5, 10, 15):
            append(other, range(start, start + 5))
        other.storage.delete([f"snapshot/snapshot-{number}" for number in range(1, 5 - kept + 1)])

    late = interrupted(tmp_path, overtake)
    append(late, range(20, 25))
    assert late.snapshot_id == 5
    assert late.folder.snapshots.numbers() == [*range(5 - kept + 1, 5), 5]
    assert ids(other) == list(range(25))


def test_the_first_snapshot_that_has_expired_is_not_made_again(tmp_path: Path) -> None:
    other = create(tmp_path)

    def overtake() -> None:
        for start in (0, 5, 10):
            append(other, range(start, start + 5))
        other.storage.delete(["snapshot/snapshot-1", "snapshot/snapshot-2"])

    late = interrupted(tmp_path, overtake)
    append(late, range(15, 20))
    assert late.folder.snapshots.numbers() == [3, 4]
    assert ids(other) == list(range(20))


def test_a_snapshot_that_expires_right_away_was_made_all_the_same(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(5))
    before = table.snapshot.state.snapshot
    changes = [Change(kind="APPEND", added=[write_file(table, rows_of([n]))]) for n in (7, 8)]
    made = commit(table, changes[0])
    append(table, [9])
    table.storage.delete(["snapshot/snapshot-1"])
    assert not SnapshotWriter(table.storage)._is_stale(made, changes[0], before)
    assert SnapshotWriter(table.storage)._is_stale(made, changes[1], before)
    table.storage.delete(["snapshot/snapshot-2"])
    assert not SnapshotWriter(table.storage)._is_stale(made, changes[1], before)


def java_commit(table: PaimonTable, numbers: range) -> None:
    """Commit as Java does on a disk: over a snapshot that appeared between its check and rename."""
    entry = write_file(table, rows_of(numbers))
    beside = PaimonTable(Storage.open(table.location))
    (path,) = (Path(table.location) / "snapshot").glob("snapshot-2")
    kept = path.read_bytes()
    path.unlink()
    commit(beside, Change(kind="APPEND", added=[entry]))
    assert path.read_bytes() != kept


class Replaced(Storage):
    """A storage where something happens, once, when the hint is written."""

    happens: Any = None

    def replace(self, path: str, data: bytes) -> None:
        super().replace(path, data)
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()


def test_a_commit_whose_snapshot_java_has_replaced_is_made_again(tmp_path: Path) -> None:
    other = create(tmp_path)
    append(other, range(5))
    storage = Replaced.open(tmp_path)
    assert isinstance(storage, Replaced)
    storage.happens = lambda: java_commit(other, range(5, 10))
    append(PaimonTable(storage), range(10, 15))
    assert other.folder.snapshots.numbers() == [1, 2, 3]
    assert ids(other) == list(range(15))


def test_a_commit_is_not_based_on_a_snapshot_that_java_has_replaced(tmp_path: Path) -> None:
    other = create(tmp_path)
    append(other, range(5))
    append(other, range(100, 105))
    late = PaimonTable(Storage.open(tmp_path))
    entry, seen = write_file(late, rows_of(range(10, 15))), list[Any]()

    def plan(state: TableState) -> Change:
        seen.append(state.snapshot)
        if len(seen) == 1:
            java_commit(other, range(5, 10))
        return Change(kind="APPEND", added=[entry])

    late.committer().commit(plan)
    assert [snapshot.id for snapshot in seen] == [2, 2]
    assert ids(late) == list(range(15))  # that of 100 is lost by the renaming


def test_a_schema_that_changed_is_a_conflict(tmp_path: Path) -> None:
    table = create(tmp_path)
    committer, entry = table.committer(), write_file(table, rows_of([1]))
    set_options(table, write_only="true")
    with pytest.raises(ConflictError, match="its schema has changed since it was opened"):
        committer.commit(lambda _: Change(kind="APPEND", added=[entry]))
    assert table.folder.snapshots.numbers() == []


def test_a_file_that_is_gone_cannot_go_and_one_that_went_cannot_come_back(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = append(table, range(5))
    swapped = swap_index(table, entry, "one.index")
    with pytest.raises(ConflictError, match="is not there any more, or was changed"):
        swap_index(table, entry, "two.index")
    with pytest.raises(ConflictError, match="is there, or was, exactly as it would be"):
        commit(table, Change(kind="COMPACT", deleted=[swapped], added=[entry]))
    assert table.snapshot_id == 2


def test_the_user_has_the_prefix_of_the_table(tmp_path: Path) -> None:
    table = create(tmp_path, options=VECTORS | {"commit.user-prefix": "night"})
    entry = write_file(table, rows_of([1]))
    made = commit(table, Change(kind="APPEND", added=[entry]))
    assert made.commit_user.startswith("night_")
    assert len(made.commit_user) == len("night_") + 36


# -- merged manifests --------------------------------------------------------------------------


def test_a_hundred_commits_leave_few_manifests(tmp_path: Path) -> None:
    table = create(tmp_path)
    for number in range(100):
        append(table, [number])
    assert len(table.snapshot.state.manifests) == 13
    assert ids(table) == list(range(100))


def test_merging_keeps_the_order_of_manifests(tmp_path: Path) -> None:
    """Java's writers refuse a file that comes after the entry that removed it."""
    table = create(tmp_path, options={"manifest.merge-min-count": "4"})
    entry = append(table, [0])
    for number in range(1, 12):
        entry = swap_index(table, entry, f"{number}.index") if number % 2 else entry
        append(table, [number])
        live: set[Any] = set()
        state = table.snapshot.state
        for live_entry in (entry for part in state.read(state.manifests) for entry in part):
            if live_entry.kind == 0:
                assert live_entry.identity not in live
                live.add(live_entry.identity)
            else:
                live.remove(live_entry.identity)
        assert live == state.live.keys()
    assert ids(table) == list(range(12))


def test_a_large_table_drops_removed_entries(tmp_path: Path) -> None:
    """All manifests are rewritten if most of their entries are outdated, however large they are."""
    options = {"manifest.target-file-size": "3 kb", "manifest.merge-min-count": "1000"}
    table = create(tmp_path, options=options)
    entries = [append(table, [number]) for number in range(4)]
    for round_number in range(6):
        entries = [swap_index(table, entry, f"{round_number}.index") for entry in entries]
    state = table.snapshot.state
    assert sum(meta.deleted for meta in state.manifests) <= 8
    assert ids(table) == [0, 1, 2, 3]
    assert set(state.entries) == set(entries)


def test_merged_manifests_are_cut_to_their_size(tmp_path: Path) -> None:
    options = {
        "manifest.target-file-size": "24 kb",
        "manifest.merge-min-count": "10",
        "manifest.compression": "none",
    }
    table = create(tmp_path, options=options)
    for number in range(10):
        added = [write_file(table, rows_of([20 * number + key])) for key in range(20)]
        commit(table, Change(kind="APPEND", added=added))
    append(table, [200])
    sizes = [meta.size for meta in table.snapshot.state.manifests]
    assert len(sizes) == 4
    assert all(12 << 10 <= size <= 24 << 10 for size in sizes[:2])
    names = [meta.name for meta in table.snapshot.state.manifests[:2]]
    for number in range(201, 220):
        append(table, [number])
    after = [meta.name for meta in table.snapshot.state.manifests]
    assert after[:2] == names  # large ones are not rewritten
    assert ids(table) == list(range(220))


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> ManifestEntry:
    return write_file(create(tmp_path_factory.mktemp("entry")), rows_of([1]))


@given(steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40), data=st.data())
def test_merging_at_any_time_changes_nothing_of_what_is_live(
    entry: ManifestEntry, steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Files come and go, and get other indexes; now and then some manifests are merged."""

    def version(file: int, number: int) -> ManifestEntry:
        described = replace(entry.file, name=f"data-{file}", extra_files=(f"{number}.index",))
        return entry.with_file(described)

    live: dict[int, ManifestEntry] = {}
    manifests: list[list[ManifestEntry]] = []
    for number, (file, action) in enumerate(steps):
        if action == 3:
            first = data.draw(st.integers(0, len(manifests)))
            last = data.draw(st.integers(first, len(manifests)))
            merged = merge_entries(entry for part in manifests[first:last] for entry in part)
            manifests[first:last] = [merged] if merged else []
        elif file in live and action == 0:
            manifests.append([live.pop(file).deleted()])
        else:
            before = [live[file].deleted()] if file in live else []
            live[file] = version(file, number)
            manifests.append([*before, live[file]])
    everything = [entry for part in manifests for entry in part]
    gone = {entry.identity for entry in everything if entry.kind == 1}
    came = [entry for entry in everything if entry.kind == 0]
    identities = {entry.identity for entry in came} - gone
    assert identities == {entry.identity for entry in live.values()}
    assert len(came) == len({entry.identity for entry in came})
    assert {entry.identity for entry in merge_entries(everything)} == identities


def test_what_seems_to_come_again_stays_gone_when_it_is_merged(entry: ManifestEntry) -> None:
    """As for readers, so that a merge does not bring rows back."""
    assert merge_entries([entry, entry.deleted(), entry]) == []
    assert merge_entries([entry.deleted(), entry.deleted()]) == [entry.deleted()]


# -- what a newer Paimon says ----------------------------------------------------------------------


def test_what_is_not_known_survives_commits_that_merge_manifests(tmp_path: Path) -> None:
    table = create(tmp_path, options={**VECTORS, "manifest.merge-min-count": "100"})
    entries = [append(table, [number]) for number in range(3)]
    folder = tmp_path / "manifest"
    for number, meta in enumerate(table.snapshot.state.manifests):
        newer = {("_NEW",): ("int", number), ("_FILE", "_NEW"): ("string", f"file {number}")}
        newer_file(folder / meta.name, newer)
    sizes = ("long", lambda record: (folder / record["_FILE_NAME"]).stat().st_size)
    snapshot = change_snapshot(
        tmp_path,
        lambda record: record.update(newThings={"a": [1]}, uuid="u", writerVersion="java-9"),
    )
    for name in ("baseManifestList", "deltaManifestList"):
        fields = {
            ("_FILE_SIZE",): sizes,
            ("_EXTRA_FILES",): ({"type": "array", "items": "string"}, ["side"]),
            ("_NEW",): ("double", 2.5),
            ("_PARTITION_STATS", "_NEW"): ("boolean", True),
        }
        newer_file(folder / snapshot[name], fields)
    table.refresh()

    append(table, [3])  # manifests stay, and are listed again
    snapshot_json = json.loads((tmp_path / "snapshot/snapshot-4").read_bytes())
    assert (snapshot_json["newThings"], snapshot_json.keys() & {"uuid", "writerVersion"}) == (
        {"a": [1]},
        set(),
    )
    listed = avro_records((folder / snapshot_json["baseManifestList"]).read_bytes())
    assert [(record["_EXTRA_FILES"], record["_NEW"]) for record in listed] == [(["side"], 2.5)] * 3
    assert [record["_PARTITION_STATS"]["_NEW"] for record in listed] == [True] * 3

    set_options(table, manifest__merge_min_count="2")
    live = table.snapshot.state.entries
    commit(table, Change(kind="OVERWRITE", deleted=[live[0]]))  # manifests are merged
    snapshot_json = json.loads((tmp_path / "snapshot/snapshot-5").read_bytes())
    assert snapshot_json["newThings"] == {"a": [1]}
    (merged,) = avro_records((folder / snapshot_json["baseManifestList"]).read_bytes())
    assert "_EXTRA_FILES" not in merged  # nothing is left next to the new manifest
    written = avro_records((folder / merged["_FILE_NAME"]).read_bytes())
    news = {
        record["_FILE"]["_FILE_NAME"]: (record["_NEW"], record["_FILE"]["_NEW"])
        for record in written
    }
    assert len(news) == 4
    assert [news[entry.file.name] for entry in entries] == [(n, f"file {n}") for n in range(3)]
    assert sorted(news.values(), key=repr)[-1] == (None, None)
    assert ids(table) == [1, 2, 3]


def test_unknown_fields_of_an_index_manifest_survive(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, list(range(5)))
    append(table, list(range(5, 10)))
    table.delete("id = 2")
    newer = {("_NEW",): ("string", "x"), ("_DELETIONS_VECTORS_RANGES", "*", "_NEW"): ("int", 4)}
    snapshot = json.loads((tmp_path / "snapshot/snapshot-3").read_bytes())
    newer_file(tmp_path / f"manifest/{snapshot['indexManifest']}", newer)
    table.refresh()
    other = replace(table.snapshot.state.indexes[0], name="index-of-another", index_type="BLOOM")
    commit(table, Change(kind="COMPACT", index_added=[replace(other, ranges=None, unknown=())]))
    snapshot = json.loads((tmp_path / "snapshot/snapshot-4").read_bytes())
    records = avro_records((tmp_path / f"manifest/{snapshot['indexManifest']}").read_bytes())
    assert [record["_NEW"] for record in records] == ["x", None]
    assert [vector_range["_NEW"] for vector_range in records[0]["_DELETIONS_VECTORS_RANGES"]] == [4]


# -- what is written is read first -----------------------------------------------------------------


def test_a_manifest_that_would_read_otherwise_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path)
    append(table, [1])
    before = files_below(tmp_path)

    def wrong(entries: Sequence[ManifestEntry], compression: str) -> bytes:
        return write_manifest([replace(entry, bucket=7) for entry in entries], compression)

    monkeypatch.setattr(commit_module, "write_manifest", wrong)
    entry = write_file(table, rows_of([2]))
    with pytest.raises(FormatError, match=r"manifest to be written reads as something else"):
        commit(table, Change(kind="APPEND", added=[entry]))
    assert files_below(tmp_path) - before == {f"bucket-0/{entry.file.name}"}
    assert ids(table) == [1]


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def wide_entries(commits: int, files: int, columns: int) -> list[list[ManifestEntry]]:
    """Entries of files of many columns, all of them null."""
    packed = pack_rows([pa.nulls(1)] * columns, [DataType("INT")] * columns)[0]
    nulls = (1000,) * columns
    return [
        [
            ManifestEntry(ADD, EMPTY, 0, -1, _wide_file(f"data-{uuid.uuid4()}-0.parquet", stats))
            for stats in [RowStats(packed, packed, nulls)] * files
        ]
        for _ in range(commits)
    ]


def _wide_file(name: str, stats: RowStats) -> DataFile:
    return DataFile(
        name=name,
        size=1000,
        rows=1000,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=NO_STATS,
        value_stats=stats,
        min_sequence=0,
        max_sequence=999,
        schema_id=0,
        level=0,
    )


def test_a_wide_and_sparse_table_can_be_read_after_its_manifests_were_merged(
    tmp_path: Path,
) -> None:
    columns = {f"c{number}": "INT" for number in range(2000)}
    table = create(tmp_path, columns, options={"manifest.merge-min-count": "5"})
    names: list[str] = []
    cached = table.snapshot.state
    for entries in wide_entries(10, 30, len(columns)):

        def plan(state: TableState, added: Sequence[ManifestEntry] = entries) -> Change:
            nonlocal cached
            cached = state
            return Change(kind="APPEND", added=added)

        table.committer().commit(plan, cached=cached)
        names += [entry.file.name for entry in entries]
    state = TableState(table.storage, table.folder.snapshots.latest())
    assert [entry.file.name for entry in state.entries] == names
    largest = max(state.manifests, key=lambda meta: meta.added)
    assert largest.added > 200
    content = largest.added * (2 * len(cached.entries[0].file.value_stats.minimum) + 4000)
    assert content > (4 << 20) + 100 * largest.size  # a limit that refused such manifests


def test_a_manifest_has_no_more_than_readers_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_module, "_LARGEST_MANIFEST", 100_000)
    table = create(tmp_path, {f"c{number}": "INT" for number in range(1000)})
    (entries,) = wide_entries(1, 20, 1000)
    made = commit(table, Change(kind="APPEND", added=entries))
    state = TableState(table.storage, made)
    assert [meta.added for meta in state.delta] == [5, 5, 6, 4]
    assert [entry.file.name for entry in state.entries] == [entry.file.name for entry in entries]
