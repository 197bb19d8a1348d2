"""Deletes by predicate from tables with a primary key: exact rows, and delete records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid.errors import PredicateError, UnsupportedError
from alcid.tables.reports import DeleteReport
from tests.tables.paimon.small_tables import create, set_options

VECTORS = {"deletion-vectors.enabled": "true"}


def table_of(path: Path, options: dict[str, str]) -> alcid.PaimonTable:
    """Keys 0 to 99 in several files; the name is the key modulo 5, newer for every third key."""
    table = create(path, primary_keys=["id"], options=options)
    table.upsert(rows_of(range(100)))
    table.upsert(rows_of(range(0, 100, 3), "newer"))
    return table


def rows_of(ids: range, name: str | None = None) -> pa.Table:
    names = [name or f"n{key % 5}" for key in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def ids_of(table: alcid.PaimonTable) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    "options",
    [
        VECTORS,
        {**VECTORS, "bucket": "3"},
        {**VECTORS, "dynamic-bucket.target-row-num": "20"},
        {**VECTORS, "file-index.bitmap.columns": "name"},
        {**VECTORS, "num-levels": "2"},
        {"bucket": "1"},
    ],
    ids=["dynamic", "fixed", "many", "indexed", "full", "merged"],
)
def test_exactly_the_rows_that_match_go(tmp_path: Path, options: dict[str, str]) -> None:
    table = table_of(tmp_path, options)
    report = table.delete("name = 'n1' OR id = 6")
    gone = {key for key in range(100) if key % 3 and key % 5 == 1} | {6}
    assert report.rows == len(gone)
    left = sorted(set(range(100)) - gone)
    assert ids_of(table) == left
    table.upsert(rows_of(range(1, 7, 5)))  # 1 and 6 are inserted again
    assert ids_of(table) == sorted([*left, 1, 6])
    table.compact()
    assert ids_of(table) == sorted([*left, 1, 6])
    assert table.verify(progress=False).ok


def test_each_deleted_row_is_written_as_a_row_that_deletes(tmp_path: Path) -> None:
    table = table_of(tmp_path, VECTORS)
    before = table.snapshot_id
    assert before is not None
    report = table.delete("id IN (3, 4)")
    assert report == DeleteReport(2, None, before + 2)
    appended = table.snapshot.state.at(table.folder.snapshots.get(before + 1))
    assert appended.snapshot is not None
    assert appended.snapshot.commit_kind == "APPEND"
    (entry,) = (entry for part in appended.read(appended.delta) for entry in part)
    assert (entry.file.level, entry.file.rows, entry.file.delete_rows) == (0, 2, 2)
    assert all(entry.file.level for entry in table.snapshot.state.entries)


def test_nothing_that_matches_makes_no_snapshot(tmp_path: Path) -> None:
    table = table_of(tmp_path, VECTORS)
    before = table.snapshot_id
    assert str(table.delete("id = 1000")) == "deleted nothing: no row matches"
    assert table.snapshot_id == before


def test_rows_that_are_not_compacted_count_as_they_are(tmp_path: Path) -> None:
    table = table_of(tmp_path, VECTORS)
    table.upsert(rows_of(range(2), "unseen"), write_only=True)
    # 0 was "newer" and 1 was "n1": the current values count, though batch reads do not see them.
    assert table.delete("name IN ('newer', 'n1') AND id < 3").rows == 0
    assert table.delete("name = 'unseen'").rows == 2
    assert ids_of(table) == list(range(2, 100))


def test_a_table_that_others_compact_gets_rows_that_delete_on_level_0(tmp_path: Path) -> None:
    table = table_of(tmp_path, VECTORS)
    set_options(table, write_only="true")
    assert table.delete("id < 10").rows == 10
    newest = alcid.paimon(tmp_path, merge_on_read=True)
    assert ids_of(newest) == list(range(10, 100))
    with pytest.warns(alcid.AlcidWarning, match="not yet compacted"):
        assert ids_of(alcid.paimon(tmp_path)) == list(range(100))
    table.compact()
    assert ids_of(table) == list(range(10, 100))


def test_impossible_arguments_are_refused_and_change_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, VECTORS)
    before = table.snapshot_id
    with pytest.raises(PredicateError):
        table.delete("initcap(name) = 'N1'")
    set_options(table, ignore_delete="true")
    with pytest.raises(UnsupportedError, match="ignore-delete=true: cannot delete rows"):
        table.delete("id = 1")
    assert table.snapshot_id == before
