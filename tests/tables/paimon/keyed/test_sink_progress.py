"""Marks of sinks are found on the latest snapshot, or on an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcid.errors import FormatError
from alcid.storage import Storage
from alcid.tables.paimon.keyed.sink import ProgressSearch, SinkProgress
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path

FIRST, SECOND = SinkProgress(3, "a", "q"), SinkProgress(4, "b")


def put(folder: SnapshotFolder, number: int, marks: dict[str, SinkProgress]) -> Snapshot:
    """Write a snapshot that only has marks; it replaces one with the same number."""
    snapshot = Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list=f"base-{number}",
        delta_manifest_list=f"delta-{number}",
        commit_user="somebody",
        commit_identifier=0,
        commit_kind="APPEND",
        time_millis=0,
        properties={SinkProgress.key(name): mark.to_json() for name, mark in marks.items()} or None,
    )
    folder._storage.replace(snapshot_path(number), snapshot.to_json())
    return folder.get(number)


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    return SnapshotFolder(Storage.open(tmp_path))


def expire(folder: SnapshotFolder, *numbers: int) -> None:
    folder._storage.delete(map(snapshot_path, numbers))


def test_a_mark_is_read_as_it_was_written(folder: SnapshotFolder) -> None:
    names = {"x": FIRST, 'a "quoted" näme/with\\odd.{signs} 🐦': SECOND}
    latest = put(folder, 1, names)
    for name, mark in names.items():
        assert ProgressSearch(folder, name).find(latest) == mark
    assert ProgressSearch(folder, "X").find(latest) is None


def test_the_newest_mark_counts_whatever_was_committed_since(folder: SnapshotFolder) -> None:
    put(folder, 1, {"x": FIRST})
    put(folder, 2, {"x": SECOND, "y": FIRST})
    put(folder, 3, {"y": SECOND})
    latest = put(folder, 4, {})
    assert ProgressSearch(folder, "x").find(latest) == SECOND
    assert ProgressSearch(folder, "y").find(latest) == SECOND
    assert ProgressSearch(folder, "x").find(folder.get(1)) == FIRST


def test_a_search_knows_whether_a_mark_may_have_expired(folder: SnapshotFolder) -> None:
    search = ProgressSearch(folder, "x")
    assert (search.find(None), search.is_complete) == (None, True)
    latest = [put(folder, number, {}) for number in range(1, 5)][-1]
    assert (search.find(latest), search.is_complete) == (None, True)
    expire(folder, 1)
    search = ProgressSearch(folder, "x")
    assert (search.find(latest), search.is_complete) == (None, False)


def test_what_was_found_once_is_not_forgotten_when_it_expires(folder: SnapshotFolder) -> None:
    search = ProgressSearch(folder, "x")
    assert search.find(put(folder, 1, {"x": FIRST})) == FIRST
    put(folder, 2, {})
    latest = put(folder, 3, {})
    expire(folder, 1)
    assert search.find(latest) == FIRST
    assert ProgressSearch(folder, "x").find(latest) is None


def test_marks_of_commits_that_were_rolled_back_do_not_count(folder: SnapshotFolder) -> None:
    search = ProgressSearch(folder, "x")
    put(folder, 1, {"x": FIRST})
    assert search.find(put(folder, 2, {"x": SECOND})) == SECOND
    expire(folder, 2)
    assert search.find(folder.get(1)) == FIRST
    assert search.find(put(folder, 2, {})) == FIRST


def test_snapshots_are_read_once(folder: SnapshotFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    get, read = SnapshotFolder.get, list[int]()

    def get_and_note(self: SnapshotFolder, number: int) -> Snapshot:
        read.append(number)
        return get(self, number)

    monkeypatch.setattr(SnapshotFolder, "get", get_and_note)
    put(folder, 1, {"x": FIRST})
    for number in (2, 3):
        put(folder, number, {})
    search, latest = ProgressSearch(folder, "x"), folder.get(3)
    read.clear()
    assert [search.find(latest), search.find(latest), read] == [FIRST, FIRST, [2, 1]]
    newest = put(folder, 4, {})
    read.clear()
    assert (search.find(newest), read) == (FIRST, [3])


def test_snapshots_that_expire_during_the_walk_end_it(folder: SnapshotFolder) -> None:
    latest = [put(folder, number, {}) for number in range(1, 5)][-1]
    walk = folder.history(latest)
    assert [next(walk).id, next(walk).id] == [4, 3]
    expire(folder, 1, 2)
    assert list(walk) == []


@pytest.mark.parametrize("text", ["", "7 a", "[]", "7", '{"batch": "7", "instance": "a"}', "{}"])
def test_damaged_progress_is_reported(text: str) -> None:
    with pytest.raises(FormatError, match=r"snapshot/snapshot-5: progress of a sink: found '"):
        SinkProgress.parse(text, file=snapshot_path(5))
