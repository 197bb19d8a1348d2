"""Java commits during an upsert of ours: both count, in the order of the commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alcid.tables.paimon.keyed import commit, upsert_job
from alcid.tables.paimon.keyed.bucket_compaction import compact_buckets
from tests.golden.paimon_writing import RowKind
from tests.interop.keyed_tables import VECTORS, KeyedTable, Peers, levels, peers

__all__ = ["peers"]

OPTIONS = {
    "fixed": VECTORS | {"bucket": "1"},
    "dynamic": VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": "8"},
}


def _rows(first: int, stop: int, value: str) -> list[tuple[int, str]]:
    return [(number, f"{value} {number}") for number in range(first, stop)]


def _expire(table: KeyedTable, java: str) -> None:
    table.compact(java)
    table.peers.named(java).expire(table.path)


# So many that the last ones, which we write too, get higher numbers than ours had at first.
JAVA_ROWS = [*_rows(30, 60, "java"), *_rows(6, 14, "java")]
ACTIONS: dict[str, Callable[[KeyedTable, str], None]] = {
    "puts": lambda table, java: table.put(java, *JAVA_ROWS),
    "puts on level 0": lambda table, java: table.put(java, *JAVA_ROWS, write_only=True),
    "removes": lambda table, java: table.remove(java, *_rows(2, 9, "java")),
    "compacts": lambda table, java: table.compact(java),
    "compacts and expires": _expire,
}
# The function before which Java commits, and whose rows come last then.
MOMENTS: dict[str, tuple[Any, str, str]] = {
    "before we look for older rows": (upsert_job, "upsert_bucket", "ours"),
    "before our rows come to level 0": (commit, "commit_append", "ours"),
    "before our rows are lifted": (commit, "commit_compact", "theirs"),
}


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_java_does_in_the_middle_of_an_upsert_is_not_lost(
    peers: Peers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    action: str,
    kind: str,
) -> None:
    java = "java" if kind == next(iter(OPTIONS)) else "newest"
    table = KeyedTable(tmp_path / "t", peers, {"id": "INT", "v": "STRING"}, ["id"], OPTIONS[kind])
    table.put("we", *_rows(0, 10, "old"))
    table.put("we", *_rows(3, 6, "older"))
    module, name, last = MOMENTS[moment]
    waiting = [ACTIONS[action]]
    step = getattr(module, name)

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if waiting:
            waiting.pop()(table, java)
        return step(*arguments, **named)

    monkeypatch.setattr(module, name, interrupted)
    ours = [*_rows(5, 12, "ours"), *_rows(20, 24, "ours")]
    gone = _rows(1, 4, "ours")
    before, snapshot = dict(table.rows), table.table.snapshot_id or 0
    kinds: list[RowKind] = ["+U" if row in ours else "-D" for row in (*ours, *gone)]
    table.write("we", [*ours, *gone], kinds)
    assert not waiting
    if "expires" not in action:  # a job that follows the table sees our rows once
        seen = peers.named(java).stream(table.path, snapshot)
        updates = [row for shown in seen.values() for row in shown if row[0] == "+U"]
        assert sorted(updates) == sorted(("+U", *row) for row in ours)
    if last == "theirs":  # the model applies ours again, in the order of the commits
        table.rows = before
    for row in ours:
        table.rows[row[:1]] = row
    for row in gone:
        table.rows.pop(row[:1], None)
    if last == "theirs":
        _again(table, action)
    # Level 0 is compacted in the buckets that we write to.
    compacted = (action, kind) != ("puts on level 0", "dynamic")
    table.check(compacted=compacted)
    assert not compacted or 0 not in levels(table.path)
    table.compact(java)
    table.check()


def _again(table: KeyedTable, action: str) -> None:
    """Apply to the model what Java did."""
    if action.startswith("puts"):
        table.rows |= {row[:1]: row for row in JAVA_ROWS}
    elif action == "removes":
        for row in _rows(2, 9, "java"):
            table.rows.pop(row[:1], None)


@pytest.mark.parametrize("action", ["compacts", "compacts and expires", "puts"])
@pytest.mark.parametrize("java", ["java", "newest"])
def test_java_compacts_what_we_are_about_to_compact(
    peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: str, action: str
) -> None:
    table = KeyedTable(
        tmp_path / "t", peers, {"id": "INT", "v": "STRING"}, ["id"], OPTIONS["fixed"]
    )
    table.put(java, *_rows(0, 10, "old"))
    table.put(java, *_rows(4, 12, "newer"), write_only=True)
    waiting = [ACTIONS[action]]

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if waiting:
            waiting.pop()(table, java)
        return compact_buckets(*arguments, **named)

    monkeypatch.setattr(commit, "compact_buckets", interrupted)
    table.put("we", *_rows(6, 8, "ours"))
    assert not waiting
    if action == "puts":
        table.rows |= {row[:1]: row for row in JAVA_ROWS}
    table.check()
    assert 0 not in levels(table.path)
