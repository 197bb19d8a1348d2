"""Java jobs that follow a table see each of our upserts and deletes exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import alcid
from tests.interop.keyed_tables import VECTORS, KeyedTable, Peers, peers

__all__ = ["peers"]

COLUMNS = {"id": "INT", "v": "STRING"}
JAVA = pytest.mark.parametrize("java", ["java", "newest"])


def _table(path: Path, peers: Peers) -> KeyedTable:
    return KeyedTable(path, peers, COLUMNS, ["id"], VECTORS | {"bucket": "2"})


class Follower:
    """A job that follows a table."""

    def __init__(self, table: KeyedTable, java: str) -> None:
        self._table, self._java, self._seen = table, table.peers.named(java), 0

    def begin(self) -> None:
        """Follow from the latest snapshot."""
        self._seen = alcid.paimon(self._table.path).snapshot_id or 0

    def sees(self, *expected: tuple[Any, ...]) -> None:
        """The snapshots since the last look have these rows, all in one snapshot."""
        changes = self._java.stream(self._table.path, self._seen)
        assert list(changes.values()) == ([sorted(expected, key=repr)] if expected else [])
        self.begin()


@JAVA
def test_each_upsert_and_each_delete_is_seen_once(peers: Peers, tmp_path: Path, java: str) -> None:
    table = _table(tmp_path / "t", peers)
    follower = Follower(table, java)
    follower.sees()
    table.put("we", *((number, "a") for number in range(6)))
    follower.sees(*(("+I", number, "a") for number in range(6)))
    table.put("we", (1, "b"), (2, "b"), (9, "b"))
    follower.sees(("+I", 1, "b"), ("+I", 2, "b"), ("+I", 9, "b"))
    table.remove("we", (1, None), (77, None))
    follower.sees(("-D", 1, None))
    kinded = [(3, "b"), (3, "c"), (4, "b"), (10, "c")]
    table.write("we", kinded, ["-U", "+U", "-U", "+I"])
    follower.sees(("+U", 3, "c"), ("-U", 4, "b"), ("+I", 10, "c"))
    table.rows |= {(3,): (3, "c"), (10,): (10, "c")}
    del table.rows[4,]
    table.check()
    assert table.table.delete("v = 'a' AND id < 5").rows == 1
    del table.rows[0,]
    follower.sees(("-D", 0, "a"))
    table.check()
    table.put(java, (0, "d"), (5, "d"))
    follower.sees(("+I", 0, "d"), ("+I", 5, "d"))
    table.put("we", (0, "e"))
    follower.sees(("+I", 0, "e"))
    table.check()


@JAVA
def test_nothing_is_seen_of_compactions_and_indexes(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = _table(tmp_path / "t", peers)
    table.put("we", *((number, "a") for number in range(10)))
    table.put("we", *((number, "b") for number in range(5)))
    follower = Follower(table, java)
    follower.begin()
    table.table.build_indexes({"file-index.bitmap.columns": "v"}, progress=False)
    table.compact("we")
    table.table.compute_stats(progress=False)
    table.table.drop_indexes()
    table.compact(java)
    follower.sees()
    table.check()


@JAVA
def test_rows_that_are_not_compacted_are_seen_when_they_are_written(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = _table(tmp_path / "t", peers)
    follower = Follower(table, java)
    table.put("we", (1, "a"), (2, "a"), write_only=True)
    follower.sees(("+I", 1, "a"), ("+I", 2, "a"))
    table.remove("we", (1, None), (7, None), write_only=True)
    follower.sees(("-D", 1, None), ("-D", 7, None))
    table.compact("we")
    follower.sees()
    table.put("we", (1, "b"))
    follower.sees(("+I", 1, "b"))
    table.check()


@JAVA
def test_a_job_that_begins_late_sees_all_rows_and_goes_on(
    peers: Peers, tmp_path: Path, java: str
) -> None:
    table = _table(tmp_path / "t", peers)
    table.put("we", *((number, "a") for number in range(10)))
    table.put("we", *((number, "b") for number in range(5)))
    table.remove("we", (7, None))
    table.put("we", (8, "c"), write_only=True)
    table.check(compacted=False)  # reads as such a job does first
    follower = Follower(table, java)
    follower.begin()
    table.put("we", (8, "d"), (0, "d"))
    follower.sees(("+I", 8, "d"), ("+I", 0, "d"))
    table.check()
