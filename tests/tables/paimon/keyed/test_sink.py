"""`upsert_sink`: a batch is in the table once, whoever sends it again, and whatever was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import (
    AlcidWarning,
    ConflictError,
    FormatError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Storage
from alcid.storage.backend import FileStat
from alcid.tables.paimon.keyed.sink import SinkProgress
from alcid.tables.paimon.metadata.snapshot import snapshot_path
from tests.interop.peers import ROOT
from tests.tables.paimon.keyed.killed_sinks import BATCHES, STEPS
from tests.tables.paimon.keyed.sink_tables import (
    commit_without_marks,
    expire,
    history,
    keyed_table,
    names_of,
    rows_of,
)
from tests.tables.paimon.small_tables import create

OLD = dict.fromkeys(range(10), "old")


def test_a_batch_is_two_snapshots_with_its_number(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    report = alcid.upsert_sink(table, "s")(rows_of({0: "new", 10: "new"}), 7)
    assert report is not None
    assert (report.rows, report.snapshot_id, table.snapshot_id) == (2, 3, 3)
    assert history(table, 2) == [(2, "APPEND", 7), (3, "COMPACT", 7)]
    snapshots = [table.folder.snapshots.get(number) for number in (2, 3)]
    assert {snapshot.commit_user for snapshot in snapshots} == {"alcid-sink-s"}
    marks = [
        SinkProgress.parse((snapshot.properties or {})["alcid.sink.s"], file="")
        for snapshot in snapshots
    ]
    assert [(mark.batch, mark.query) for mark in marks] == [(7, None)] * 2
    assert names_of(table) == OLD | {0: "new", 10: "new"}


def test_the_first_batch_of_an_empty_table_is_one_snapshot(tmp_path: Path) -> None:
    options = {"bucket": "-1", "deletion-vectors.enabled": "true"}
    table = create(tmp_path, primary_keys=["id"], options=options)
    sink = alcid.upsert_sink(table, "s")
    sink(rows_of({1: "a"}), 0)
    assert sink(rows_of({1: "a"}), 0) is None
    assert history(table) == [(1, "APPEND", 0)]
    assert names_of(table) == {1: "a"}


def test_a_batch_that_comes_again_is_passed_over(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    sink = alcid.upsert_sink(table, "s")
    sink(rows_of({0: "a"}), 0)
    sink(rows_of({0: "b"}), 1)
    for batch in (0, 1):
        assert sink(rows_of({0: "again"}), batch) is None
        assert alcid.upsert_sink(table, "s")(rows_of({0: "again"}), batch) is None
    assert table.snapshot_id == 5
    assert names_of(table) == OLD | {0: "b"}


def test_batch_ids_may_jump(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    sink = alcid.upsert_sink(table, "s")
    for batch in (3, 4, 90, 2**62):
        assert sink(rows_of({0: str(batch)}), batch) is not None
        assert sink(rows_of({0: "again"}), batch) is None
    assert [batch_id for _, _, batch_id in history(table, 2)] == [3, 3, 4, 4, 90, 90, 2**62, 2**62]
    assert names_of(table) == OLD | {0: str(2**62)}


def test_row_kinds_of_a_stream_delete(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    sink = alcid.upsert_sink(table, "s", row_kind="op")
    sink(rows_of({0: "new", 1: None, 2: "x", 20: "new"}, ["+U", "-D", "-U", "+I"]), 0)
    sink(rows_of({20: None, 30: None}, ["-D", "-D"]), 1)
    expected = dict.fromkeys(range(3, 10), "old") | {0: "new"}
    assert names_of(table) == expected


def test_a_batch_without_rows_makes_no_snapshot(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    sink = alcid.upsert_sink(table, "s")
    for batch in (0, 1, 1):
        report = sink(rows_of({}), batch)
        assert report is not None
        assert (report.rows, report.snapshot_id) == (0, None)
    assert table.snapshot_id == 1
    assert sink(pa.RecordBatch.from_pylist([{"id": 3, "name": "x"}]), 2) is not None
    assert names_of(table) == OLD | {3: "x"}


def test_sinks_with_other_names_continue_independently(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    names = ["s", "S", "s.t", 'a "q" b\\c/d', "größe 🐦", "{}", "-1"]
    sinks = [alcid.upsert_sink(table, name) for name in names]
    for batch in range(2):
        for number, sink in enumerate(sinks):
            assert sink(rows_of({number: f"{batch}"}), batch) is not None
            assert sink(rows_of({number: "again"}), batch) is None
    for number, name in enumerate(names):
        assert alcid.upsert_sink(table, name)(rows_of({number: "again"}), 1) is None
    assert names_of(table) == OLD | dict.fromkeys(range(7), "1")


def test_rows_on_level_0_stay_there_if_another_is_to_compact(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    sink = alcid.upsert_sink(table, "s", write_only=True)
    sink(rows_of({0: "new"}), 0)
    assert sink(rows_of({0: "again"}), 0) is None
    assert history(table, 2) == [(2, "APPEND", 0)]
    assert alcid.upsert_sink(table, "s")(rows_of({0: "again"}), 0) is None
    assert history(table, 2) == [(2, "APPEND", 0), (3, "COMPACT", 0)]
    assert names_of(table) == OLD | {0: "new"}


# -- others ------------------------------------------------------------------------------------


def test_commits_that_drop_the_mark_do_not_hide_it(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    alcid.upsert_sink(table, "s")(rows_of({0: "a"}), 4)
    for _ in range(3):
        commit_without_marks(table)
    assert alcid.upsert_sink(table, "s")(rows_of({0: "again"}), 4) is None
    assert alcid.upsert_sink(table, "s")(rows_of({0: "b"}), 5) is not None
    assert names_of(table) == OLD | {0: "b"}


def test_commits_of_this_library_carry_the_mark_past_expiry(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    alcid.upsert_sink(table, "s")(rows_of({0: "a"}), 4)
    table.upsert(rows_of({0: "by another"}))
    expire(table, 1)
    assert alcid.upsert_sink(table, "s")(rows_of({0: "again"}), 4) is None
    assert names_of(table) == OLD | {0: "by another"}


def test_an_expired_batch_is_reported_once_and_written_again(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    old = alcid.upsert_sink(table, "s")
    old(rows_of({0: "a"}), 4)
    commit_without_marks(table)
    expire(table, 1)
    assert old(rows_of({0: "again"}), 4) is None  # it has seen the mark
    sink = alcid.upsert_sink(table, "s")
    with pytest.warns(AlcidWarning, match=r"sink s: .* batch 4 may be written a second") as caught:
        assert sink(rows_of({0: "a"}), 4) is not None
    assert len(caught) == 1
    assert sink(rows_of({0: "b"}), 5) is not None
    assert names_of(table) == OLD | {0: "b"}


def test_no_mark_says_that_nothing_was_written_if_nothing_expired(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    assert alcid.upsert_sink(table, "s")(rows_of({0: "a"}), 4) is not None  # and no warning


def test_of_two_live_sinks_the_older_is_refused(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    older, newer = alcid.upsert_sink(table, "s"), alcid.upsert_sink(PaimonTable(table.storage), "s")
    older(rows_of({0: "older"}), 0)
    newer(rows_of({0: "newer"}), 1)
    message = (
        r"sink s: another sink of this name is live, and has written batch 1: "
        r"stop one of the two, or give it a name of its own$"
    )
    for batch in (1, 2):
        with pytest.raises(ConflictError, match=message):
            older(rows_of({0: "older", 11: "lost"}), batch)
    newer(rows_of({1: "newer"}), 2)
    assert table.folder.snapshots.numbers() == list(range(1, 8))
    assert names_of(table) == OLD | {0: "newer", 1: "newer"}


class Interrupted(Storage):
    """A storage in which something happens, once, before a snapshot gets its name."""

    happens: Any = None
    snapshots = 1
    """Before which of the following snapshots."""

    def create(self, path: str, data: bytes) -> None:
        self.snapshots -= 1
        if not self.snapshots:
            self.happens()
        super().create(path, data)


def interrupted(folder: Path, happens: Any, *, snapshot: int) -> PaimonTable:
    """The table, where something happens before a snapshot that is committed through it."""
    storage = Interrupted.open(folder)
    assert isinstance(storage, Interrupted)
    storage.happens, storage.snapshots = happens, snapshot
    return PaimonTable(storage)


def test_of_two_sinks_that_race_one_is_refused_in_the_moment_of_its_commit(tmp_path: Path) -> None:
    other = alcid.upsert_sink(keyed_table(tmp_path), "s")
    theirs, ours = rows_of({0: "other", 1: "other"}), rows_of({0: "this", 2: "this"})
    table = interrupted(tmp_path, lambda: other(theirs, 0), snapshot=1)
    with pytest.raises(ConflictError, match="another sink of this name is live"):
        alcid.upsert_sink(table, "s")(ours, 0)
    assert names_of(table) == OLD | {0: "other", 1: "other"}
    assert history(table, 2) == [(2, "APPEND", 0), (3, "COMPACT", 0)]
    assert other(theirs, 0) is None
    assert not table.clean(timedelta(0)).removed  # what was refused is gone


def test_a_batch_is_seen_whole_though_another_takes_over_in_its_midst(tmp_path: Path) -> None:
    other = alcid.upsert_sink(keyed_table(tmp_path), "s")
    theirs, ours = rows_of({0: "other"}), rows_of(dict.fromkeys(range(10), "this"))
    table = interrupted(tmp_path, lambda: other(theirs, 1), snapshot=2)
    sink = alcid.upsert_sink(table, "s")
    assert sink(ours, 0) is not None
    everything = dict.fromkeys(range(10), "this") | {0: "other"}
    assert names_of(table) == everything
    # The successor compacts the other batch along with its own.
    assert history(table, 2) == [(2, "APPEND", 0), (3, "APPEND", 1), (4, "COMPACT", 1)]
    assert other(theirs, 1) is None  # the last snapshot says that it has batch 1
    with pytest.raises(ConflictError, match="another sink of this name is live"):
        sink(ours, 1)
    other(rows_of({1: "other"}), 2)
    assert names_of(table) == everything | {1: "other"}
    assert table.verify(progress=False).ok


def give_all(location: str, number: int, batches: int) -> int:
    """Send batches to sinks, to a new one after each conflict; returns how many were written."""
    written = 0
    sink = alcid.upsert_sink(alcid.paimon(location), "s")
    for batch in range(batches):
        while True:
            try:
                written += sink(rows_of({batch: f"{number}"}), batch) is not None
                break
            except ConflictError:
                sink = alcid.upsert_sink(alcid.paimon(location), "s")
    return written


def test_sinks_that_race_for_every_batch_write_each_once(tmp_path: Path) -> None:
    batches, location = 12, keyed_table(tmp_path).location
    with ThreadPoolExecutor(3) as pool:
        written = list(pool.map(lambda number: give_all(location, number, batches), range(3)))
    assert sum(written) == batches
    table = alcid.paimon(location)
    appended = [batch for _, kind, batch in history(table, 2) if kind == "APPEND"]
    assert appended == list(range(batches))
    names = names_of(table)
    assert sorted(names) == list(range(batches))
    assert [list(names.values()).count(str(number)) for number in range(3)] == written


# -- killed ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables whose sink was killed within batch 6, each at another step."""
    folder = tmp_path_factory.mktemp("killed")
    module = "tests.tables.paimon.keyed.killed_sinks"
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert sorted(ended.stdout.splitlines()) == sorted(
        f"{step}: {-signal.SIGKILL}" for step in STEPS
    )
    return folder


@pytest.mark.parametrize("step", STEPS)
def test_a_sink_that_is_killed_is_taken_over_by_a_new_process(killed: Path, step: str) -> None:
    table = PaimonTable(Storage.open(killed / step))
    is_written = step != "before the APPEND"
    is_lifted = step == "after the COMPACT"
    before = OLD | BATCHES[5]
    after = before | BATCHES[6]
    both = [(2, "APPEND", 5), (3, "COMPACT", 5), (4, "APPEND", 6), (5, "COMPACT", 6)]
    assert history(table, 2) == both[: 4 if is_lifted else 3 if is_written else 2]
    assert names_of(table) == (after if is_lifted else before)
    sink = alcid.upsert_sink(table, "s")
    again = {0: "again", 99: "again"} if is_written else BATCHES[6]
    assert (sink(rows_of(again), 6) is None) == is_written
    assert history(table, 2) == both
    assert names_of(table) == after
    assert sink(rows_of({99: "again"}), 6) is None
    assert history(table, 2) == both
    sink(rows_of({1: "seven"}), 7)
    assert names_of(table) == after | {1: "seven"}
    assert table.verify(progress=False).ok


def test_a_compact_is_made_up_for_where_its_append_has_expired(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    alcid.upsert_sink(table, "s", write_only=True)(rows_of({0: "a", 1: "a"}), 4)
    table.compute_stats(["id"], progress=False)
    expire(table, 1)
    assert alcid.upsert_sink(table, "s")(rows_of({0: "again"}), 4) is None
    assert history(table) == [(3, "ANALYZE", 2**63 - 1), (4, "COMPACT", 4)]
    assert names_of(table) == OLD | {0: "a", 1: "a"}


def test_only_files_of_the_batch_are_lifted_when_it_comes_again(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    first, second = ids_of_buckets(table)
    sink = alcid.upsert_sink(table, "s", write_only=True)
    sink(rows_of({first: "a"}), 4)
    table.upsert(rows_of({second: "b"}), write_only=True)
    assert alcid.upsert_sink(table, "s")(rows_of({first: "again"}), 4) is None
    assert levels(table) == {0: [4, 5], 1: [0, 5]}
    assert names_of(table) == OLD | {first: "a"}
    table.compact()
    assert names_of(table) == OLD | {first: "a", second: "b"}


def ids_of_buckets(table: PaimonTable) -> list[int]:
    """A row of each of the two buckets."""
    ids = dict[int, int]()
    for placed in table.snapshot.placed:
        rows = pa.parquet.read_table(Path(table.location, placed.path))
        ids[placed.entry.bucket] = rows["id"][0].as_py()
    return [ids[0], ids[1]]


def levels(table: PaimonTable) -> dict[int, list[int]]:
    """The levels of the files of each bucket."""
    levels_by_bucket: dict[int, list[int]] = {0: [], 1: []}
    for entry in table.snapshot.state.entries:
        levels_by_bucket[entry.bucket].append(entry.file.level)
    return {bucket: sorted(numbers) for bucket, numbers in levels_by_bucket.items()}


class Unanswered(Storage):
    """A storage that makes a file once without confirming it, or that it exists."""

    silences = 2

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        self._answer(path)

    def stat(self, path: str) -> FileStat:
        if self.silences == 1:
            self._answer(path)
        return super().stat(path)

    def _answer(self, path: str) -> None:
        if self.silences:
            self.silences -= 1
            raise StorageError("timed out", file=path)


def test_a_commit_whose_answer_was_lost_is_not_repeated(tmp_path: Path) -> None:
    keyed_table(tmp_path)
    table = PaimonTable(Unanswered.open(tmp_path))
    sink = alcid.upsert_sink(table, "s")
    with pytest.raises(StorageError, match="whether this commit was made is not known: timed out"):
        sink(rows_of({0: "a"}), 0)
    assert sink(rows_of({0: "again"}), 0) is None
    assert history(table, 2) == [(2, "APPEND", 0), (3, "COMPACT", 0)]
    assert names_of(table) == OLD | {0: "a"}


# -- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\udc80", "\0"])
def test_a_name_must_be_one(tmp_path: Path, name: str) -> None:
    table = keyed_table(tmp_path)
    with pytest.raises(OptionError, match=r"^name: found .*, expected printable characters$"):
        alcid.upsert_sink(table, name)
    with pytest.raises(UnsupportedError, match="name: found int, expected str"):
        alcid.upsert_sink(table, 5)  # type: ignore[arg-type]


def test_a_batch_must_have_a_number(tmp_path: Path) -> None:
    sink = alcid.upsert_sink(keyed_table(tmp_path), "s")
    for number in (-1, 2**63 - 1):
        with pytest.raises(OptionError, match=r"^batch_id: found"):
            sink(rows_of({1: "a"}), number)
    with pytest.raises(UnsupportedError, match="batch_id: found str, expected int"):
        sink(rows_of({1: "a"}), "1")  # type: ignore[arg-type]
    assert sink.table.snapshot_id == 1


def test_what_a_table_refuses_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    past = PaimonTable(table.storage, snapshot_id=1)
    with pytest.raises(UnsupportedError, match="opened at a snapshot of the past"):
        alcid.upsert_sink(past, "s")
    with pytest.raises(UnsupportedError, match="expected a Spark DataFrame or an Arrow table"):
        alcid.upsert_sink(table, "s")([{"id": 1}], 0)
    plain = create(tmp_path / "plain")
    with pytest.raises(UnsupportedError, match="primary key"):
        alcid.upsert_sink(plain, "s")(rows_of({1: "a"}), 0)
    assert plain.snapshot_id is None


def test_a_damaged_mark_is_not_taken_for_none(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    alcid.upsert_sink(table, "s")(rows_of({0: "a"}), 4)
    path = snapshot_path(3)
    data = Path(table.location, path).read_bytes()
    Path(table.location, path).write_bytes(data.replace(rb"\"batch\": 4", rb"\"batch\": []"))
    table = PaimonTable(Storage.open(tmp_path))
    with pytest.raises(FormatError, match="snapshot/snapshot-3: progress of a sink"):
        alcid.upsert_sink(table, "s")(rows_of({0: "b"}), 5)
