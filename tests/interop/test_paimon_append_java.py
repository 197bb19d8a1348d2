"""Rows that we append to a Paimon table: Java, pypaimon and pypaimon-rust read and extend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.tables.paimon.write.append import append_arrow
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.values import f64
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse
from tests.tables.paimon.every_type import every_type
from tests.tables.paimon.small_tables import create

COLUMNS = {"id": "INT", "name": "STRING", "score": "DOUBLE", "dt": "STRING"}
INDEXES = {
    "file-index.bitmap.columns": "name",
    "file-index.bloom-filter.columns": "id",
    "file-index.range-bitmap.columns": "score",
}
VECTORS = {"deletion-vectors.enabled": "true"}


def rows_of(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "name": [f"name {number % 7}" if number % 5 else None for number in numbers],
            "score": [number / 4 for number in numbers],
            "dt": [("a/b", None, "é x")[number % 3] for number in numbers],
        }
    )


def sorted_rows(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def ids(rows: pa.Table) -> list[int]:
    numbers: list[int] = sorted(rows["id"].to_pylist())
    return numbers


@pytest.mark.parametrize("nanoseconds", [False, True], ids=["microseconds", "nanoseconds"])
def test_java_reads_values_of_every_type(
    java_paimon: JavaPaimon, newest_paimon: JavaPaimon, tmp_path: Path, nanoseconds: bool
) -> None:
    columns, rows = every_type(nanoseconds)
    ours, theirs = (create(tmp_path / name, columns, options={}) for name in ("ours", "theirs"))
    append_arrow(ours, rows)
    times = rows.schema.get_field_index("at6")  # which Java stores in milliseconds
    java_paimon.write(
        tmp_path / "theirs",
        rows.set_column(times, "at6", rows["at6"].cast(pa.time32("ms"))),
    )
    expected = java_paimon.read(tmp_path / "theirs")
    for java in (java_paimon, newest_paimon):
        assert java.read(tmp_path / "ours").equals(expected)
    theirs.refresh()
    assert ours.scan().to_arrow().equals(theirs.scan().to_arrow())
    (ours_entry,), (other,) = ours.snapshot.state.entries, theirs.snapshot.state.entries
    assert ours_entry.file.stats_columns == other.file.stats_columns
    assert ours_entry.file.value_stats.null_counts == other.file.value_stats.null_counts


def test_java_uses_the_indexes_and_the_statistics(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    for name, threshold in (("embedded", "1 mb"), ("beside", "1 b")):
        path = java_paimon.create(
            tmp_path / name,
            COLUMNS,
            options=INDEXES | {"file-index.in-manifest-threshold": threshold},
        )
        table = alcid.paimon(path)
        append_arrow(table, rows_of(0, 100))
        append_arrow(table, rows_of(100, 200))
        by_name = java_paimon.read(path, leaf("name", "EQUAL", "name 3"), exact=False)
        expected = [number for number in range(200) if number % 7 == 3 and number % 5]
        assert ids(by_name) == expected  # only the bitmaps can tell the rows apart
        absent = leaf("id", "EQUAL", 1000)
        assert java_paimon.planned_files(path, absent) == []  # by statistics
        files = java_paimon.planned_files(path, leaf("id", "GREATER_OR_EQUAL", 150))
        assert files == [table.snapshot.placed[1].file.name]
        high = java_paimon.read(path, leaf("score", "GREATER_THAN", f64(49.25)))
        assert ids(high) == [number for number in range(200) if number / 4 > 49.25]


@pytest.mark.parametrize(
    "buckets", [{}, {"bucket": "3", "bucket-key": "id,name"}], ids=["none", "3"]
)
def test_files_are_where_java_would_put_them(
    java_paimon: JavaPaimon, tmp_path: Path, buckets: dict[str, str]
) -> None:
    tables = []
    for name in ("ours", "theirs"):
        path = java_paimon.create(tmp_path / name, COLUMNS, partition_keys=["dt"], options=buckets)
        tables.append(alcid.paimon(path))
    for start in (0, 50):
        append_arrow(tables[0], rows_of(start, start + 50))
        java_paimon.write(tmp_path / "theirs", rows_of(start, start + 50))
    described = []
    for table in tables:
        table.refresh()
        described.append(
            sorted(
                (
                    placed.folder,
                    placed.entry.partition,
                    placed.entry.bucket,
                    placed.entry.total_buckets,
                    placed.file.rows,
                    (placed.file.min_sequence, placed.file.max_sequence),
                    placed.file.value_stats.maximum,
                )
                for placed in table.snapshot.placed
            )
        )
    assert described[0] == described[1]
    assert sorted_rows(java_paimon.read(tmp_path / "ours")) == sorted_rows(rows_of(0, 100))


@pytest.mark.parametrize("buckets", [{}, {"bucket": "2", "bucket-key": "id"}], ids=["none", "2"])
def test_java_goes_on_with_a_table_that_we_append_to(
    java_paimon: JavaPaimon, tmp_path: Path, buckets: dict[str, str]
) -> None:
    options = INDEXES | VECTORS | buckets
    path = java_paimon.create(tmp_path / "t", COLUMNS, partition_keys=["dt"], options=options)
    table = alcid.paimon(path)
    append_arrow(table, rows_of(0, 60))
    java_paimon.write(path, rows_of(60, 90), options={"write-only": "true"})
    java_paimon.delete(path, leaf("id", "BETWEEN", 20, 69))
    append_arrow(table, rows_of(90, 120))
    left = [*range(20), *range(70, 120)]
    assert ids(java_paimon.read(path)) == left
    assert ids(table.scan().to_arrow()) == left
    java_paimon.compact(path)
    append_arrow(table, rows_of(120, 130))
    java_paimon.expire(path)
    left = [*left, *range(120, 130)]
    table.refresh()
    for rows in (java_paimon.read(path), table.scan().to_arrow()):
        assert ids(rows) == left
    expected = [row for row in rows_of(0, 130).to_pylist() if row["id"] in left]
    assert sorted_rows(java_paimon.read(path)) == sorted(map(repr, expected))


def test_rows_go_into_the_columns_that_the_table_has_by_now(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    path = java_paimon.create(tmp_path / "t", {"id": "INT", "old": "STRING"})
    table = alcid.paimon(path)
    append_arrow(table, pa.table({"id": pa.array([1], pa.int32()), "old": ["a"]}))
    java_paimon.alter(path, "renameColumn", "old", "new")
    java_paimon.alter(path, "updateColumnType", "id", "BIGINT")
    java_paimon.alter(path, "addColumn", "old", "DOUBLE")
    append_arrow(table, pa.table({"id": [2**40], "new": ["b"], "old": [0.5]}))
    expected = [
        {"id": 1, "new": "a", "old": None},
        {"id": 2**40, "new": "b", "old": 0.5},
    ]
    assert java_paimon.read(path).to_pylist() == expected
    assert table.scan().to_arrow().to_pylist() == expected


def test_the_other_pythons_read_what_we_append(pypaimon: PyPaimon, tmp_path: Path) -> None:
    table = create(tmp_path / "t", COLUMNS, partition_keys=["dt"], options=INDEXES)
    append_arrow(table, rows_of(0, 100))
    assert sorted_rows(pypaimon.read(tmp_path / "t")) == sorted_rows(rows_of(0, 100))
    rust = RustWarehouse(tmp_path / "rust")
    rust.link(tmp_path / "t")
    assert sorted_rows(rust.read()) == sorted_rows(rows_of(0, 100))
    expected = [number for number in range(100) if number % 7 == 3 and number % 5]
    assert ids(rust.read("name = 'name 3'")) == expected


def test_we_read_what_java_reads_whatever_is_asked(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    path = java_paimon.create(tmp_path / "t", COLUMNS, partition_keys=["dt"], options=INDEXES)
    table: PaimonTable = alcid.paimon(path)
    append_arrow(table, rows_of(0, 300))
    questions: list[tuple[Any, str]] = [
        (leaf("name", "IS_NULL"), "name IS NULL"),
        (leaf("name", "NOT_EQUAL", "name 3"), "name <> 'name 3'"),
        (leaf("dt", "EQUAL", "a/b"), "dt = 'a/b'"),
        (leaf("dt", "IS_NULL"), "dt IS NULL"),
        (leaf("id", "IN", 3, 77, 5000), "id IN (3, 77, 5000)"),
        (leaf("score", "LESS_THAN", f64(2.5)), "score < 2.5"),
    ]
    for theirs, ours in questions:
        assert ids(java_paimon.read(path, theirs)) == ids(table.scan(ours).to_arrow()) != []
