"""Rows that came back or disappeared because positions and deletion vectors did not match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import DeletionVector
from alcid.scan import Outcome
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.bad.history.asking import file_outcomes, files_read, fill, ids, outcomes
from tests.bad.history.deletable import KINDS, Deletable, make_table
from tests.tables.maintenance.forging import forge
from tests.tables.paimon.small_tables import commit, create, partition_of, rows_of, write_file

BITMAP = {"file-index.bitmap.columns": "name"}
FILES = [range(10), range(10, 20), range(20, 30)]


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Deletable:
    """Three files of ten rows each."""
    return make_table(request.param, tmp_path, *FILES)


def test_clickhouse_114933_count_heeds_deleted_rows(table: Deletable) -> None:
    """A count took the number of rows of the files and included deleted rows."""
    assert table.count() == 30
    table.delete("id IN (0, 9, 10, 25)")
    assert table.count() == table.scan(columns=[]).to_arrow().num_rows == 26
    assert table.count("id < 10") == 8
    assert table.count("id >= 0") == 26  # which only the statistics know
    table.build_indexes(BITMAP)
    assert table.count("name = 'n0'") == 3  # of 0, 5, 10, 15, 20, 25
    assert table.count("name <> 'n0'") == 23
    table.delete("id < 10")
    assert (table.count(), table.count("name = 'n0'")) == (18, 2)


@pytest.mark.parametrize("where", ["id >= 20", "true", "id = 29", "id = 20"])
def test_trino_23231_the_last_row_of_a_range(table: Deletable, where: str) -> None:
    """A range of rows was one too long: a delete kept, or removed, the row behind it."""
    gone = {"id >= 20": range(20, 30), "true": range(30), "id = 29": [29], "id = 20": [20]}[where]
    report = table.delete(where)
    assert report.rows == len(gone)
    assert ids(table.scan()) == [number for number in range(30) if number not in gone]
    vectors = [table.snapshot.deletions.get(file) for file in range(3)]
    deleted_rows = [[] if vector is None else list(vector) for vector in vectors]
    assert sorted(deleted_rows) == sorted(
        [[number % 10 for number in some if number in gone] for some in FILES]
    )


def test_trino_23231_live_rows_of_ranges() -> None:
    """The same in memory, at the ends of containers of 65,536 rows."""
    for rows in (1, 65_535, 65_536, 65_537):
        vector = DeletionVector(range(rows - 1))
        assert list(vector.live_rows(rows)) == [rows - 1]
        assert list((vector | DeletionVector([rows - 1])).live_rows(rows)) == []
        assert list(vector.live_rows(rows - 1)) == []


def test_trino_21737_vectors_of_a_partitioned_table(tmp_path: Path) -> None:
    """Partition values were taken for positions, and every row disappeared."""
    columns = {"id": "BIGINT", "name": "STRING", "part": "INT"}
    table = create(tmp_path, columns, partition_keys=["part"])
    for part in (1, 0):
        rows = rows_of(range(4)).append_column("part", pa.array([part] * 4, pa.int32()))
        entry = write_file(table, rows, partition=partition_of(table, part))
        commit(table, Change(kind="APPEND", added=[entry]))
    assert table.delete("id = 1 AND part = 1").rows == 1
    table_rows = table.scan(columns=["part", "id"]).to_arrow().to_pylist()
    assert sorted((row["part"], row["id"]) for row in table_rows) == [
        *((0, number) for number in range(4)),
        *((1, number) for number in (0, 2, 3)),
    ]
    assert ids(table.scan("part = 1", columns=["id"])) == [0, 2, 3]


def test_trino_24671_a_second_delete_of_the_same_file(table: Deletable) -> None:
    """Rows appeared twice, or came back, after a second delete in the same file."""
    left = list(range(30))
    for gone in ([5], [9, 19], [6, 7], [0], [29]):
        assert table.delete(f"id IN ({', '.join(map(str, gone))})").rows == len(gone)
        left = [number for number in left if number not in gone]
        assert ids(table.scan()) == left
    assert table.delete("id IN (5, 9, 0)").rows == 0


def test_cudf_spark_13513_row_groups_that_a_filter_drops(tmp_path: Path) -> None:
    """Deleted positions were counted within the remaining row groups and hit other rows."""
    values = [-3268, -3267, 0, 1, 3266, 3267]
    folder = fill(tmp_path, {"a.parquet": {"id": values}}, group_rows=2)
    table = folder.with_deletions({"a.parquet": DeletionVector([0, 1])})
    assert ids(table.scan("id > 3000")) == [3266, 3267]
    assert ids(table.scan("id < 3000")) == [0, 1]
    table = folder.with_deletions({"a.parquet": DeletionVector([3, 4])})
    assert ids(table.scan("id > 0")) == [3267]
    assert ids(table.scan("id > 0", use_indexes=False)) == [3267]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_cudf_spark_13513_pages_that_an_index_leaves(tmp_path: Path, is_indexed: bool) -> None:
    """The same for pages of many rows, which an index or a bound leaves out."""
    rows = pa.table({"id": range(40_000), "a": [row * 7 % 40_000 for row in range(40_000)]})
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path, row_group_size=10_000, data_page_size=2_000, write_page_index=True)
    folder = alcid.parquet(tmp_path)
    if is_indexed:
        folder.build_indexes({"file-index.range-bitmap.columns": "a"})
    deleted = [*range(12_000), 27_123, 39_999]
    table = folder.with_deletions({"a.parquet": DeletionVector(deleted)})
    matching = [row for row in range(12_000, 39_999) if row * 7 % 40_000 < 30 and row != 27_123]
    assert ids(table.scan("a < 30")) == matching
    assert len(matching) == 17
    assert ids(table.scan("a = 29861")) == []  # for row 27,123
    assert ids(table.scan("a = 29868")) == [27_124]


@pytest.mark.parametrize("limit", [1, 5, 20])
def test_paimon_9141_a_limit_counts_rows_that_are_left(table: Deletable, limit: int) -> None:
    """LIMIT took the first rows of a file, and gave fewer when these were deleted."""
    table.delete("id < 15 OR id = 17")
    left = [15, 16, *range(18, 30)]
    assert ids(table.scan(limit=limit)) == left[:limit]
    table.build_indexes({**BITMAP, "file-index.range-bitmap.columns": "id"})
    assert ids(table.scan("name = 'n1'", limit=limit)) == [16, 21, 26][:limit]
    assert ids(table.scan(order_by="id", limit=limit)) == left[:limit]
    assert ids(table.scan("id < 20", order_by="id DESC", limit=limit)) == [19, 18, 16, 15][:limit]


def test_paimon_9088_a_file_whose_matching_rows_are_deleted(table: Deletable) -> None:
    """The rows of an index were discarded if some were deleted, and the whole file was read."""
    table.build_indexes(BITMAP)
    table.delete("id IN (1, 6)")  # all rows with the name n1 of the first file
    scan = table.scan("name = 'n1'")
    assert ids(scan) == [11, 16, 21, 26]
    assert len(files_read(scan)) == 2
    reasons = [outcome.outcome for outcome in file_outcomes(scan)]
    assert reasons.count(Outcome("deletion vectors", "all rows deleted")) == 1
    assert outcomes(scan) == [("bitmap", "answered", 3)]


@pytest.mark.parametrize("kind", ["paimon-32", "paimon-64"])
def test_paimon_8211_ranges_in_another_order_than_the_file(tmp_path: Path, kind: str) -> None:
    """Vectors were read one after the other, in the order of the manifest."""
    table = make_table(kind, tmp_path, *FILES)
    table.delete("id IN (1, 2, 3, 14, 25, 26)")

    def turned(entries: list[IndexEntry]) -> list[IndexEntry]:
        (entry,) = entries
        ranges = sorted(
            entry.ranges or (), key=lambda vector_range: vector_range.offset, reverse=True
        )
        assert sorted(vector_range.cardinality or 0 for vector_range in ranges) == [1, 2, 3]
        return [replace(entry, ranges=tuple(ranges))]

    forge(tmp_path / "table", indexes=turned)
    table = alcid.paimon(tmp_path / "table")
    left = [0, *range(4, 14), *range(15, 25), *range(27, 30)]
    assert ids(table.scan(order_by="id")) == left
    table.delete("id = 0")
    assert ids(table.scan(order_by="id")) == left[1:]
