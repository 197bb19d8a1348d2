"""A Java writer that is unaware of our upsert leaves keys live twice, until a repair."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.formats.binary_row import hash_rows
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.peers import PyPaimon
from tests.tables.maintenance.damaged_keys import count_repaired

VECTORS = {"deletion-vectors.enabled": "true"}
WRITE_ONLY = {"write-only": "true"}
COLUMNS = {"id": "BIGINT NOT NULL", "at": "INT", "v": "STRING"}


def rows_of(ids: Iterable[int], text: str, at: int = 0) -> pa.Table:
    keys = list(ids)
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "at": pa.array([at] * len(keys), pa.int32()),
            "v": [text] * len(keys),
        }
    )


def pairs(rows: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


def all_of(**texts: Iterable[int]) -> list[tuple[int, str]]:
    return sorted((key, text) for text, keys in texts.items() for key in keys)


def make(java: JavaPaimon, path: Path, options: dict[str, str]) -> PaimonTable:
    java.create(path, COLUMNS, primary_keys=["id"], options=VECTORS | options)
    return alcid.paimon(path)


def seen(table: PaimonTable) -> list[tuple[int, str]]:
    table.refresh()
    return pairs(table.scan().to_arrow())


@pytest.fixture(params=["java_paimon", "newest_paimon"])
def java(request: pytest.FixtureRequest) -> JavaPaimon:
    """Each of the releases."""
    paimon: JavaPaimon = request.getfixturevalue(request.param)
    return paimon


def test_marks_that_a_stale_writer_has_dropped_are_made_again(
    java: JavaPaimon, java_paimon: JavaPaimon, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    table = make(java, path, {"bucket": "1"})
    java.write(path, rows_of(range(100), "first"))
    with java.open_writer(path) as writer:
        writer.write(rows_of([50], "java"))  # it knows the bucket as it is now
        table.upsert(rows_of(range(10), "ours"))
        writer.commit()  # with a file of vectors that has only its own mark
    expected = all_of(ours=range(10), java=[50], first=[*range(10, 50), *range(51, 100)])
    assert java.read(path).num_rows == 110  # Java does not notice either
    table.refresh()
    report = table.verify()
    assert (report.ok, report.keys_live_twice) == (False, 10)

    count, report = count_repaired(table), table.verify()
    assert (report.ok, report.keys_live_twice, count) == (True, 0, 10)
    assert seen(table) == expected
    for reader in (java, java_paimon):
        assert pairs(reader.read(path)) == expected
    assert pairs(pypaimon.read(path)) == expected

    java.write(path, rows_of([0, 60], "after"))
    expected = all_of(
        after=[0, 60],
        ours=range(1, 10),
        java=[50],
        first=[*range(10, 50), *range(51, 60), *range(61, 100)],
    )
    assert seen(table) == pairs(java.read(path)) == expected
    java.compact(path)
    assert seen(table) == pairs(java.read(path)) == expected
    assert table.verify().ok


@pytest.mark.parametrize(("order", "kept"), [("ascending", 9), ("descending", 1)])
def test_the_sequence_field_says_which_row_stays(
    java: JavaPaimon, tmp_path: Path, order: str, kept: int
) -> None:
    path = tmp_path / "table"
    options = {"bucket": "1", "sequence.field": "at", "sequence.field.sort-order": order}
    table = make(java, path, options)
    java.write(path, rows_of(range(20), "first", 5))
    with java.open_writer(path) as writer:
        writer.write(rows_of([15], "java", kept))
        table.upsert(rows_of(range(10), "ours", kept))
        writer.commit()
    table.refresh()
    assert java.read(path).num_rows == 30
    assert count_repaired(table) == 10
    expected = all_of(ours=range(10), java=[15], first=[*range(10, 15), *range(16, 20)])
    assert seen(table) == pairs(java.read(path)) == expected


def test_keys_that_two_writers_put_into_different_buckets_are_left_once(
    java: JavaPaimon, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    table = make(java, path, {"bucket": "-1", "dynamic-bucket.target-row-num": "5"})
    with java.open_writer(path, WRITE_ONLY) as writer:
        writer.write(rows_of(range(100, 105), "java"))  # to the first bucket, which is empty
        table.upsert(rows_of([*range(5), *range(100, 105)], "ours"))  # to the second
        writer.commit()  # with a hash index of the first bucket that lacks our keys
    table.refresh()
    table.compact()
    assert java.read(path).num_rows == 15
    report = table.verify()
    assert (report.ok, report.keys_live_twice) == (False, 5)
    assert {problem.problem for problem in report.problems if problem.what == "hashes of keys"} == {
        "5 not in its hash index",
        "5 in the hash index of another bucket too",
    }

    count, report = count_repaired(table), table.verify()
    # Five rows marked, five hashes that were lost, five that one index had too many.
    assert (report.ok, report.keys_live_twice, count) == (True, 0, 15)
    # Writers look at the hash index that Java has written last, so its rows stay.
    assert seen(table) == pairs(java.read(path)) == all_of(ours=range(5), java=range(100, 105))
    keys = hash_rows([pa.array([*range(5), *range(100, 105)], pa.int64())])
    assert list(java.hash_indexes(path).values()) == [sorted(keys.tolist())]

    java.write(path, rows_of([*range(5), *range(100, 105)], "after"))
    assert seen(table) == all_of(after=[*range(5), *range(100, 105)])
    table.upsert(rows_of([*range(5), *range(100, 105)], "last"))
    assert pairs(java.read(path)) == all_of(last=[*range(5), *range(100, 105)])
    assert table.verify().ok


def test_what_a_repair_takes_away_no_writer_of_java_misses(
    java: JavaPaimon, tmp_path: Path
) -> None:
    """A full compaction of Java leaves an index file without vectors."""
    path = tmp_path / "table"
    table = make(java, path, {"bucket": "2"})
    java.write(path, rows_of(range(40), "first"))
    java.write(path, rows_of(range(20), "second"))
    java.compact(path)
    table.refresh()
    empty = [index for index in table.snapshot.state.indexes if not index.ranges]
    count, report = count_repaired(table), table.verify()
    assert (report.ok, count, report.warnings) == (True, len(empty), ())
    assert len(empty) == 2
    java.write(path, rows_of(range(10), "third"))
    expected = all_of(third=range(10), second=range(10, 20), first=range(20, 40))
    assert seen(table) == pairs(java.read(path)) == expected
