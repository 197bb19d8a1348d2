"""Indexes and compaction: rows that were lost because positions of old files were asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from alcid import PaimonTable
from alcid.tables.paimon.metadata.commit import Change
from tests.bad.history.asking import fill, ids, outcomes
from tests.tables.paimon.index_contents import entries
from tests.tables.paimon.small_tables import append, commit, create, rows_of, write_file
from tests.tables.paimon.write.test_index_swap import meddled

KEYED = {"bucket": "1", "deletion-vectors.enabled": "true"}
INDEXES = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "id, name",
    "file-index.range-bitmap.columns": "id",
}


def keyed(folder: Path, **options: str) -> PaimonTable:
    """A table with a primary key and indexes."""
    return create(folder, primary_keys=["id"], options={**KEYED, **INDEXES, **options})


def check(table: PaimonTable, left: Sequence[int], others: Sequence[int] = ()) -> None:
    """The indexes find every id at its position, and no others."""
    for number in (*left, *others):
        scan = table.scan(f"id = {number}")
        assert ids(scan) == [number] * (number in left), number
    names = {f"n{key % 5}" for key in left}
    for name in sorted(names):
        scan = table.scan(f"name = '{name}'", columns=["id"], order_by="id")
        assert ids(scan) == [key for key in left if f"n{key % 5}" == name]
        assert {outcome for _, outcome, _ in outcomes(scan)} == {"answered"}
    assert ids(table.scan(order_by="id DESC", limit=3)) == list(reversed(left))[:3]
    assert ids(table.scan(order_by="id")) == list(left)


def test_lance_8221_an_index_after_files_were_merged(tmp_path: Path) -> None:
    """A bloom filter returned zones of the old files, which no longer have the row."""
    table = keyed(tmp_path)
    for start in (0, 20, 10):  # the last file replaces rows of the others
        table.upsert(rows_of(range(start, start + 20)))
    check(table, range(40))
    table.compact()
    (entry,) = entries(table)
    assert entry.file.rows == 40
    check(table, range(40), [40, 99])
    assert table.verify().ok


def test_lance_5826_a_compaction_across_many_deleted_rows(tmp_path: Path) -> None:
    """Deleted rows were removed, and the index had wrong positions for the rows behind them."""
    table = keyed(tmp_path)
    for start in (0, 50, 100):
        table.upsert(rows_of(range(start, start + 50)))
    table.delete("id > 10 AND id < 100")
    left = [*range(11), *range(100, 150)]
    check(table, left, [11, 99])
    table.compact()
    assert sum(entry.file.rows for entry in entries(table)) == len(left)
    check(table, left, [11, 50, 99])


def test_lance_3765_a_compaction_of_some_of_the_files(tmp_path: Path) -> None:
    """A bitmap kept only the rows of the rewritten files and lost those of the others."""
    table = create(tmp_path)
    first, second = append(table, range(10)), append(table, range(10, 20))
    append(table, range(20, 30))
    table.build_indexes(INDEXES)
    first, second, *_ = (
        entry for entry in entries(table) if entry.file.name in (first.file.name, second.file.name)
    )
    merged = write_file(table, rows_of([*range(19, 9, -1), *range(10)]))
    commit(table, Change(kind="COMPACT", deleted=[first, second], added=[merged]))
    for _ in range(2):
        for number in range(30):
            assert ids(table.scan(f"id = {number}")) == [number]
        rows = sorted(ids(table.scan("name = 'n3'")))
        assert rows == [3, 8, 13, 18, 23, 28]
        table.build_indexes(INDEXES)
    assert table.verify().ok
    check(table, range(30))


def test_lance_9200_the_first_row_of_the_first_file(tmp_path: Path) -> None:
    """An entry for row 0 of file 0 stayed after all rows of that file had been deleted."""
    table = keyed(tmp_path)
    table.upsert(rows_of(range(10)))
    table.upsert(rows_of(range(10, 20)))
    table.delete("id < 10")
    check(table, range(10, 20), [0, 1, 9])
    table.compact()
    check(table, range(10, 20), [0, 1, 9])
    assert table.count("id = 0") == table.count("name = 'n0' AND id < 10") == 0


def test_lance_9270_indexes_that_were_built_before_a_compaction(tmp_path: Path) -> None:
    """Indexes of old files, committed after a compaction, hid the rows of the new ones."""
    table = create(tmp_path)
    append(table, range(10))

    def rewrite(other: PaimonTable) -> None:
        merged = write_file(other, rows_of(range(9, -1, -1)))
        commit(other, Change(kind="COMPACT", deleted=entries(other), added=[merged]))

    mine = meddled(table, rewrite)
    report = mine.build_indexes(INDEXES)
    assert (report.indexed, report.failed, report.snapshot_id) == (0, 1, None)
    assert [skip.reason for skip in report.skipped] == [
        "changed or removed by another while it was indexed"
    ]
    table.refresh()
    for number in range(10):
        assert ids(table.scan(f"id = {number}")) == [number]
    assert table.build_indexes(INDEXES).indexed == 1
    check(table, range(10))


@pytest.mark.parametrize("is_built_again", [False, True])
def test_lance_8221_a_folder_whose_files_were_rewritten(
    tmp_path: Path, is_built_again: bool
) -> None:
    """The same with files that keep their names: an index of other rows is never asked."""
    values = [row * 7 % 20 for row in range(20)]
    table = fill(tmp_path, {"a.parquet": {"id": range(20), "a": values}})
    options = {"file-index.bitmap.columns": "a", "file-index.bloom-filter.columns": "id"}
    table.build_indexes(options)
    assert ids(table.scan("a = 3")) == [9]
    rows = pa.table({"id": range(20), "a": values}).slice(5)
    fill(tmp_path, {"a.parquet": rows.to_pydict()})
    table.refresh()
    if is_built_again:
        table.build_indexes(options)
    for row in range(20):
        scan = table.scan(f"a = {row * 7 % 20}")
        assert ids(scan) == [row] * (row >= 5)
        if row >= 5:
            assert outcomes(scan) == [("bitmap", "answered" if is_built_again else "stale", 1)]
