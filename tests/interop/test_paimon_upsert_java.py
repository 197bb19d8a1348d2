"""Upserts of ours in tables that Paimon's Java writes to and compacts: nobody loses a row."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

import alcid
from alcid.tables.paimon.keyed import commit
from tests.interop.keyed_tables import VECTORS, KeyedTable, Peers, levels, peers
from tests.tables.paimon.known_rows import as_text

__all__ = ["peers"]

COLUMNS = {"id": "INT", "v": "STRING"}
ONE_BUCKET = VECTORS | {"bucket": "1"}
JAVA = pytest.mark.parametrize("java", ["java", "newest"])
NONE: Mapping[str, str] = {}
# Compact only where level 0 must be emptied.
LAZY = {"num-sorted-run.compaction-trigger": "100", "num-levels": "6"}


def one_bucket(path: Path, peers: Peers, options: Mapping[str, str] = NONE) -> KeyedTable:
    return KeyedTable(path, peers, COLUMNS, ["id"], {**ONE_BUCKET, **options})


def rows(first: int, stop: int, value: str) -> list[tuple[int, str]]:
    return [(number, f"{value} {number}") for number in range(first, stop)]


# -- levels ------------------------------------------------------------------------------------


@JAVA
@pytest.mark.parametrize("options", [NONE, LAZY], ids=["default", "lazy"])
def test_java_takes_level_one_with_it_where_no_level_is_free(
    peers: Peers, tmp_path: Path, java: str, options: Mapping[str, str]
) -> None:
    table = one_bucket(tmp_path / "t", peers, options)
    for step in range(5):
        table.put("we", *rows(step * 3, step * 3 + 8, f"step {step}"))
        assert levels(table.path) == list(range(5 - step, 6))
        table.check()
    (lowest,) = _files(table, 1)
    table.put(java, *rows(4, 30, "java"))
    table.check()
    assert 0 not in levels(table.path)
    assert lowest not in _files(table, 1)
    table.compact(java)
    table.check()
    assert set(levels(table.path)) == {5}
    table.put("we", *rows(0, 6, "again"))
    table.remove("we", (20, None))
    table.check()
    assert levels(table.path) == [4, 5]


def _files(table: KeyedTable, level: int) -> list[str]:
    entries = alcid.paimon(table.path).snapshot.state.entries
    return [entry.file.name for entry in entries if entry.file.level == level]


@JAVA
def test_we_make_room_where_no_level_is_free(peers: Peers, tmp_path: Path, java: str) -> None:
    table = one_bucket(tmp_path / "t", peers)
    for step in range(9):
        who = java if step % 4 == 3 else "we"
        table.put(who, *rows(step * 3, step * 3 + 8, f"step {step}"))
        table.remove("we", (step * 3 + 1, None))
        table.check()
        assert 0 not in levels(table.path)
        assert len(levels(table.path)) <= 5
    table.compact("we")
    table.check()
    assert levels(table.path) == [5]
    table.put(java, *rows(3, 9, "java"))
    table.check()
    assert levels(table.path) == [4, 5]


@JAVA
def test_the_newest_row_wins_over_level_zero_of_a_job_that_does_not_compact(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = one_bucket(tmp_path / "t", peers)
    table.put(java, *rows(0, 10, "oldest"))
    table.put(java, *rows(2, 12, "older"), write_only=True)
    table.remove(java, (0, None), (5, None), write_only=True)
    table.check(compacted=False)
    table.put("we", *rows(4, 8, "newest"))
    table.check()
    assert 0 not in levels(table.path)
    table.compact(java)
    table.check()
    assert table.rows[5,] == (5, "newest 5")
    assert (0,) not in table.rows


@JAVA
def test_two_levels_are_enough(peers: Peers, tmp_path: Path, java: str) -> None:
    table = one_bucket(tmp_path / "t", peers, {"num-levels": "2"})
    for step, who in enumerate(("we", "we", java, "we", java)):
        table.put(who, *rows(step, step + 4, f"step {step}"))
        table.remove(who, (step, None))
        table.check()
        assert set(levels(table.path)) == {1}


# -- indexes and vectors -----------------------------------------------------------------------


def test_an_index_comes_and_goes_and_all_rows_stay(peers: Peers, tmp_path: Path) -> None:
    table = one_bucket(tmp_path / "t", peers)
    table.put("we", *rows(0, 20, "a"))
    table.put("we", *rows(5, 10, "b"))
    table.remove("we", (3, None))
    bitmap = {"file-index.bitmap.columns": "v"}
    for _ in range(2):
        assert table.table.build_indexes(bitmap, progress=False).indexed == 2
        table.check()
        assert table.table.drop_indexes() == 2
        table.check()
    assert table.table.build_indexes(bitmap, progress=False).indexed == 2
    table.check()
    table.put("java", *rows(7, 9, "c"))
    table.compact("java")
    table.check()


@JAVA
def test_java_writes_to_a_bucket_whose_vectors_it_emptied_before_we_wrote_to_another(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = KeyedTable(tmp_path / "t", peers, COLUMNS, ["id"], VECTORS | {"bucket": "2"})
    table.put("we", *rows(0, 20, "a"))
    buckets = table.check_buckets()
    first, second = (
        [key for (key,), number in buckets.items() if number == wanted_bucket]
        for wanted_bucket in (0, 1)
    )
    table.put("we", *((key, "b") for key in first[:4]))
    table.compact(java)
    table.check()
    table.put("we", *((key, "c") for key in second[:4]))
    table.check()
    table.put(java, *((key, "d") for key in first[2:6]))
    table.check()
    table.remove("we", *((key, None) for key in (first[0], second[0])))
    table.compact(java)
    table.check()


# -- half an upsert ----------------------------------------------------------------------------


class Killed(BaseException):
    """As if the process had ended."""


def _killed(*_: object) -> None:
    raise Killed


@JAVA
@pytest.mark.parametrize("then", ["we put", "java puts", "we compact", "java compacts"])
def test_somebody_finishes_an_upsert_that_was_killed_between_its_snapshots(
    peers: Peers, tmp_path: Path, java: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = one_bucket(tmp_path / "t", peers)
    table.put("we", *rows(0, 10, "a"))
    with monkeypatch.context() as patch:
        patch.setattr(commit, "commit_compact", _killed)
        with pytest.raises(Killed):
            table.put("we", *rows(3, 13, "b"))
        table.check(compacted=False)
        with pytest.raises(Killed):
            table.remove("we", (1, None), (4, None))
        table.check(compacted=False)
    assert levels(table.path) == [0, 0, 5]
    who = java if then.startswith("java") else "we"
    if "put" in then:
        table.put(who, *rows(6, 8, "c"))
    else:
        table.compact(who)
    table.check()
    assert 0 not in levels(table.path)
    table.compact(java)
    table.check()


@JAVA
def test_rows_that_nobody_compacts_are_there_for_those_who_merge(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = one_bucket(tmp_path / "t", peers)
    table.put("we", *rows(0, 10, "a"), write_only=True)
    table.put(java, *rows(5, 15, "b"), write_only=True)
    table.remove("we", (6, None), (20, None), write_only=True)
    table.check(compacted=False)
    table.put("we", *rows(9, 11, "c"), write_only=True)
    table.remove(java, (10, None), write_only=True)
    table.check(compacted=False)
    table.compact(java)
    table.check()


# -- writers that stay open --------------------------------------------------------------------


@JAVA
def test_a_java_job_that_does_not_compact_stays_open_while_we_upsert(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = one_bucket(tmp_path / "t", peers)
    table.put("we", *rows(0, 10, "a"))
    with peers.named(java).open_writer(table.path, {"write-only": "true"}) as writer:
        for step in range(3):
            ours, theirs = rows(step, step + 5, "ours"), rows(20 + step, 25 + step, f"job {step}")
            writer.write(table.arrow(theirs))
            table.put("we", *ours)
            for row in theirs:
                table.rows[row[:1]] = row
            writer.commit()
            table.check(compacted=False)
    table.put("we", (99, "last"))
    table.check()


@JAVA
@pytest.mark.parametrize("who", ["we", "java"])
def test_level_zero_of_a_job_that_opened_earlier_wins_when_it_is_lifted(
    peers: Peers, tmp_path: Path, java: str, who: str
) -> None:
    # Runs so large that Java does not merge them, but looks keys up in them. The numbers of the
    # job's rows are lower than those of ours, so that readers that merge see ours until then.
    table = one_bucket(tmp_path / "t", peers)
    table.put("we", *rows(0, 20_000, "a"))
    with peers.named(java).open_writer(table.path, {"write-only": "true"}) as writer:
        theirs = rows(3, 5, "job")
        writer.write(table.arrow(theirs))
        table.put("we", *rows(0, 5_000, "ours"))
        writer.commit()
    assert levels(table.path) == [0, 4, 5]
    for row in theirs:
        table.rows[row[:1]] = row
    table.put(java if who == "java" else "we", (20_000, "last"))
    assert levels(table.path) == [3, 4, 5]
    table.check()


# -- the past ----------------------------------------------------------------------------------


@JAVA
def test_a_tag_keeps_rows_that_were_replaced_compacted_and_expired(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = one_bucket(tmp_path / "t", peers)
    peer = peers.named(java)
    table.put("we", *rows(0, 10, "a"))
    table.put("we", *rows(5, 8, "b"))
    table.remove("we", (1, None))
    table.check()
    before = as_text(table.arrow(list(table.rows.values())))
    peer.tag(table.path, "then", table.table.snapshot_id or 0)
    table.put(java, *rows(0, 12, "c"))
    table.compact("we")
    table.put("we", *rows(2, 5, "d"))
    table.compact(java)
    assert peer.expire(table.path) > 5
    table.check()
    assert as_text(peer.read(table.path, options={"scan.tag-name": "then"})) == before
    assert as_text(alcid.paimon(table.path, tag="then").scan().to_arrow()) == before
    assert not table.table.clean(timedelta(0)).removed
    assert as_text(peer.read(table.path, options={"scan.tag-name": "then"})) == before
    table.check()


# -- schemas -----------------------------------------------------------------------------------


@JAVA
def test_files_of_older_schemas_take_part(peers: Peers, tmp_path: Path, java: str) -> None:
    table = KeyedTable(
        tmp_path / "t", peers, {"id": "INT", "v": "STRING", "n": "INT"}, ["id"], ONE_BUCKET
    )
    table.put("we", *((key, f"a {key}", key) for key in range(10)))
    table.put(java, *((key, f"b {key}", key) for key in range(3, 6)))
    peers.named(java).alter(table.path, "updateColumnType", "n", "BIGINT")
    peers.named(java).alter(table.path, "renameColumn", "v", "name")
    peers.named(java).alter(table.path, "addColumn", "more", "DOUBLE")
    table.columns = {"id": "INT", "name": "STRING", "n": "BIGINT", "more": "DOUBLE"}
    table.rows = {key: (*row, None) for key, row in table.rows.items()}
    table.check()
    table.put("we", *((key, f"c {key}", 1 << 40, 0.5) for key in range(5, 8)))
    table.remove("we", (9, None, None, None))
    table.check()
    table.compact("we")
    assert levels(table.path) == [5]
    table.check()
    table.put(java, (3, "d", None, 1.5))
    table.check()
