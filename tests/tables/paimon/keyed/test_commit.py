"""Others commit between the plan of an upsert and its commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid.tables.paimon.metadata.commit import Committer
from tests.tables.paimon.small_tables import create

VECTORS = {"deletion-vectors.enabled": "true", "bucket": "1"}

Act = Callable[[alcid.PaimonTable], Any]


def rows_of(ids: list[int], name: str, kinds: list[str] | None = None) -> pa.Table:
    kinds = kinds or ["+I"] * len(ids)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids), "kind": kinds})


def put(table: alcid.PaimonTable, ids: list[int], name: str, kinds: list[str] | None = None) -> Any:
    return table.upsert(rows_of(ids, name, kinds), row_kind="kind")


def names_by_id(path: Path) -> dict[int, str]:
    rows = alcid.paimon(path).scan().to_arrow()
    assert len(rows) == len(set(rows["id"].to_pylist()))
    return dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))


def between(
    monkeypatch: pytest.MonkeyPatch, path: Path, act: Act, *, commit: int, times: int = 1
) -> list[int]:
    """Let another writer act before a commit, counted from 1, and before as many after it."""
    real, seen = Committer.commit, [0]

    def committing(self: Committer, *arguments: Any, **named: Any) -> Any:
        seen[0] += 1
        if commit <= seen[0] < commit + times:
            with monkeypatch.context() as before:
                before.setattr(Committer, "commit", real)
                act(alcid.paimon(path))
        return real(self, *arguments, **named)

    monkeypatch.setattr(Committer, "commit", committing)
    return seen


def replace_all(table: alcid.PaimonTable) -> None:
    """As many rows as before, with the same sequence numbers, but other keys."""
    table.delete("true")
    table.compact()
    put(table, [9, 10, 11], "other")


# For each: who acts, before which of our commits, and the rows at the end.
ACTS: dict[str, tuple[Act, int, dict[int, str]]] = {
    "replace": (replace_all, 1, {1: "ours", 10: "other", 11: "other"}),
    "upsert": (lambda t: put(t, [1, 9], "other"), 1, {1: "ours", 2: "base", 3: "base"}),
    "delete": (lambda t: t.delete("id <= 2"), 1, {1: "ours", 3: "base"}),
    "compact": (lambda t: t.compact(), 1, {1: "ours", 2: "base", 3: "base"}),
    "index": (
        lambda t: t.build_indexes({"file-index.bitmap.columns": "name"}),
        1,
        {1: "ours", 2: "base", 3: "base"},
    ),
    "upsert-after": (
        lambda t: put(t, [1, 9], "other"),
        2,
        {1: "other", 2: "base", 3: "base", 9: "other"},
    ),
    "delete-after": (lambda t: t.delete("id <= 2"), 2, {3: "base"}),
    "compact-after": (lambda t: t.compact(), 2, {1: "ours", 2: "base", 3: "base"}),
    "level-0-after": (
        lambda t: t.upsert(rows_of([1, 3], "other"), row_kind="kind", write_only=True),
        2,
        {1: "other", 2: "base", 3: "other"},
    ),
}


@pytest.mark.parametrize("name", ACTS)
def test_it_is_as_if_one_came_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    act, commit, expected = ACTS[name]
    table = create(tmp_path, primary_keys=["id"], options=VECTORS)
    put(table, [1, 2, 3], "base")
    between(monkeypatch, tmp_path, act, commit=commit)
    put(table, [1, 9], "ours", ["+U", "-D"])
    assert names_by_id(tmp_path) == expected
    report = table.verify(progress=False)
    assert report.ok, str(report)


def test_who_is_always_too_late_gives_up_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alcid.tables.paimon.keyed.commit._TRIES", 3)
    table = create(tmp_path, primary_keys=["id"], options=VECTORS)
    put(table, [1, 2, 3], "base")
    numbers = iter(range(100, 200))
    seen = between(
        monkeypatch, tmp_path, lambda t: put(t, [next(numbers)], "other"), commit=1, times=3
    )
    with pytest.raises(alcid.ConflictError, match="bucket-0/: another has written to it meanwhile"):
        put(table, [1], "ours")
    assert seen == [3]
    monkeypatch.undo()
    assert names_by_id(tmp_path) == {1: "base", 2: "base", 3: "base"} | dict.fromkeys(
        (100, 101, 102), "other"
    )
    assert not table.verify(progress=False).leftovers
