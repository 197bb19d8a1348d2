"""Statistics and orphans of Paimon tables, compared with the released Paimon."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from alcid.storage import Storage
from alcid.tables.engine import Threads
from alcid.tables.maintenance.paimon_clean import clean
from alcid.tables.maintenance.paimon_verify import verify
from alcid.tables.paimon.write.distinct_values import compute_stats
from alcid.tables.paimon_table import PaimonTable
from tests.golden.paimon_table_cases import (
    WRITE_ONLY,
    birds,
    history,
    key_vectors,
    sidecars,
    vectors,
)
from tests.golden.paimon_tables_jvm import JavaPaimon

DAY = 86_400
UUID = "11111111-2222-3333-4444-555555555555"


def java_statistics(java: JavaPaimon, table: Path) -> dict[str, tuple[int, int]]:
    """Distinct values and nulls of columns, as Java reads them from the newest snapshot."""
    statistics = java.call("table.Table", "statistics", java._open(table)).get()
    columns = statistics.colStats()
    return {
        name: (
            columns.get(name).distinctCount().getAsLong(),
            columns.get(name).nullCount().getAsLong(),
        )
        for name in columns
    } | {"": (statistics.mergedRecordCount().getAsLong(), statistics.snapshotId())}


def remove_orphans(java: JavaPaimon, table: Path) -> set[str]:
    """What Java's own cleaning removes from files older than a day."""
    before = files_of(table)
    until = int((time.time() - DAY) * 1000)
    cleaning = java.jvm.paimon.operation.LocalOrphanFilesClean(java._open(table), until, False)
    cleaning.clean()
    return before - files_of(table)


def files_of(table: Path) -> set[str]:
    paths = (path for path in table.rglob("*") if path.is_file() and path.suffix != ".crc")
    return {path.relative_to(table).as_posix() for path in paths}


def grow_old(table: Path) -> None:
    then = time.time() - 2 * DAY
    for path in table.rglob("*"):
        os.utime(path, (then, then))


def test_java_plans_by_our_statistics(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = tmp_path / "table"
    vectors(32)(java_paimon, table)
    compute_stats(PaimonTable(Storage.open(table)))
    expected = {"ring": (36, 0), "kind": (4, 9), "weight": (17, 4), "wing": (36, 0), "": (36, 5)}
    assert java_statistics(java_paimon, table) == expected
    java_paimon.write(table, birds(50, 53), options=WRITE_ONLY)
    assert java_statistics(java_paimon, table) == expected
    assert java_paimon.read(table).num_rows == 39
    assert java_paimon.expire(table, keep=1) > 0
    assert java_statistics(java_paimon, table) == expected


@pytest.mark.parametrize("version", ["java_paimon", "newest_paimon"])
def test_java_shows_our_statistics_as_a_table(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    java: JavaPaimon = request.getfixturevalue(version)
    table = tmp_path / "table"
    vectors(32)(java, table)
    files = PaimonTable(Storage.open(table)).snapshot.placed
    (deleted,) = {sum(file.entry.file.rows for file in files) - 36}
    assert deleted > 0
    compute_stats(PaimonTable(Storage.open(table)))
    (row,) = java.system_table(table, "statistics").to_pylist()
    size = sum(file.entry.file.size for file in files) * 36 // (36 + deleted)
    snapshot, schema, count, merged_size, columns = row.values()
    assert (snapshot, schema, count, merged_size) == (5, 0, 36, size)
    assert {name: column["distinctCount"] for name, column in json.loads(columns).items()} == {
        "ring": 36,
        "kind": 4,
        "weight": 17,
        "wing": 36,
    }


def test_java_leaves_the_sketches_alone(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    """Next to its own statistics it would remove them, so they are elsewhere."""
    table = tmp_path / "table"
    vectors(32)(java_paimon, table)
    compute_stats(PaimonTable(Storage.open(table)))
    (table / "statistics" / f"alcid-{UUID}.puffin").write_bytes(b"a sketch")
    grow_old(table)
    before = files_of(table)
    assert remove_orphans(java_paimon, table) == {f"statistics/alcid-{UUID}.puffin"}
    assert any(path.startswith("_alcid/statistics-") for path in before & files_of(table))


def test_orphans_are_those_of_java(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = tmp_path / "table"
    vectors(32)(java_paimon, table)
    garbage = {
        f"bucket-0/data-{UUID}-0.parquet",
        f"bucket-0/data-{UUID}-0.parquet.index",
        f"index/index-{UUID}-0",
        f"manifest/manifest-{UUID}-0",
        f"manifest/manifest-list-{UUID}-0",
        f"manifest/index-manifest-{UUID}-0",
        f"statistics/stats-{UUID}-0",
    }
    for path in garbage:
        (table / path).parent.mkdir(exist_ok=True)
        (table / path).write_bytes(b"12345")
    grow_old(table)
    ours = clean(Storage.open(table), older_than=timedelta(days=1), dry_run=True)
    assert {file.path for file in ours.removed} == garbage
    assert remove_orphans(java_paimon, table) == garbage


def test_java_reads_every_snapshot_and_tag_that_is_left_after_cleaning(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    for make in (history, sidecars, key_vectors):
        table = tmp_path / make.__name__
        make(java_paimon, table)
        java_paimon.expire(table, keep=1)
        tags = [path.name.removeprefix("tag-") for path in table.glob("tag/tag-*")]
        before = [java_paimon.read(table, options={"scan.tag-name": tag}) for tag in tags]
        rows = java_paimon.read(table)
        clean(Storage.open(table), older_than=timedelta(0))
        assert java_paimon.read(table).equals(rows)
        after = [java_paimon.read(table, options={"scan.tag-name": tag}) for tag in tags]
        assert all(first.equals(other) for first, other in zip(before, after, strict=True))
        grow_old(table)
        assert remove_orphans(java_paimon, table) == set()


def test_what_java_compacts_deletes_and_rewrites_is_sound(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    vectors(64, buckets=2)(java_paimon, table)
    steps = (
        lambda: java_paimon.alter(table, "setOption", "file-index.bitmap.columns", "kind,ring"),
        lambda: java_paimon.rewrite_file_index(table),
        lambda: java_paimon.delete(
            table, {"column": "ring", "function": "LESS_THAN", "literals": [9]}
        ),
        lambda: java_paimon.compact(table),
        lambda: java_paimon.alter(table, "renameColumn", "wing", "span"),
        lambda: java_paimon.expire(table, keep=1),
    )
    for step in steps:
        step()
        report = verify(Storage.open(table), Threads())
        assert (report.problems, report.checked) == ((), report.files)
