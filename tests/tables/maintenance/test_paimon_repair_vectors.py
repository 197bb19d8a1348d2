"""Repair of deletion vectors: mistakes are corrected or reported, and no row comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import alcid
from alcid import (
    ConflictError,
    DeletionVector,
    DeletionVectorFile,
    FormatError,
)
from alcid.tables.maintenance.repair import ROLL_BACK
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.tables.maintenance.forging import (
    forge,
    put_vectors,
    vector_entries,
)
from tests.tables.maintenance.repair_kit import (
    change_entries,
    damage,
    data_files,
    every_kind,
    ids,
    made,
    ranges_of,
    repair_lines,
    repaired,
    without,
)
from tests.tables.paimon.small_tables import commit


@every_kind
def test_a_sound_table_is_left_alone(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    report = repaired(table, commits=0)
    assert (report.ok, report.repaired, report.removed, report.kept) == (True, (), (), ())
    assert str(report).startswith("nothing to repair; removed 0 leftovers (0 B); ")
    assert ids(table) == without(1, 11)


@every_kind
def test_two_vectors_of_a_file_become_one(tmp_path: Path, kind: str) -> None:
    made(tmp_path, kind)
    first, second = data_files(tmp_path)
    old = [
        entry.name
        for entry in vector_entries(tmp_path)
        if first in {vector_range.data_file for vector_range in entry.ranges or ()}
    ]
    put_vectors(tmp_path, {first: DeletionVector([3, 5])})
    table = alcid.paimon(tmp_path)  # it can be opened, but not read
    with pytest.raises(FormatError, match=f"two deletion vectors of {first}, which repair merges"):
        table.scan().to_arrow()
    new = "index-99999999-0000-0000-0000-000000000000-0"
    problem = f"two vectors, in {old[0]} and {new}"
    report = repaired(table)
    assert repair_lines(report) == [
        (first, "deletion vectors", problem, "merged to one, of 3 rows")
    ]
    assert ids(table) == without(1, 3, 5, 11)
    every = [
        vector_range for entry in vector_entries(tmp_path) for vector_range in entry.ranges or ()
    ]
    assert sorted((entry.data_file, entry.cardinality) for entry in every) == sorted(
        [(first, 3), (second, 1)]
    )
    assert len(vector_entries(tmp_path)) == 1
    wide = "deletion-vectors.bitmap64" in table.options
    for entry in vector_entries(tmp_path):
        with DeletionVectorFile.open(next(tmp_path.rglob(entry.name))) as file:
            assert {vector.bits for vector in file.read_all(entry.ranges or ()).values()} == {
                64 if wide else 32
            }


def test_no_commit_gives_a_file_a_second_vector(tmp_path: Path) -> None:
    table = made(tmp_path)
    (entry,) = vector_entries(tmp_path)
    change = Change(kind="OVERWRITE", index_added=[replace(entry, name="index-other")])
    with pytest.raises(ConflictError, match=": has another deletion vector by now"):
        commit(table, change)


def test_nothing_is_deleted_by_one_of_two_vectors(tmp_path: Path) -> None:
    """Rewriting the vectors of a bucket would lose the other one."""
    made(tmp_path, "buckets")
    first, _ = data_files(tmp_path)
    put_vectors(tmp_path, {first: DeletionVector([3])})
    table = alcid.paimon(tmp_path)
    with pytest.raises(FormatError, match=f"^{first}: two vectors, in .*, which repair merges"):
        table.delete("id = 15")
    assert table.repair().ok
    assert table.delete("id = 15").rows == 1
    assert ids(table) == without(1, 3, 11, 15)


@every_kind
def test_vectors_of_files_that_are_gone_are_dropped(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    path = put_vectors(
        tmp_path, {"data-gone.parquet": DeletionVector([1]), "b": DeletionVector([2])}
    )
    problem = "it is no live data file"
    assert repair_lines(repaired(table)) == [
        (path, "deletion vector of b", problem, "dropped"),
        (path, "deletion vector of data-gone.parquet", problem, "dropped"),
    ]
    assert ids(table) == without(1, 11)
    assert table.verify().warnings == ()
    named = {
        vector_range.data_file
        for entry in vector_entries(tmp_path)
        for vector_range in entry.ranges or ()
    }
    assert named == set(data_files(tmp_path))


@every_kind
def test_wrong_numbers_are_put_right(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)

    def lie(entry: IndexEntry) -> IndexEntry:
        ranges = [replace(range_, cardinality=7) for range_ in entry.ranges or ()]
        return replace(entry, rows=9, ranges=tuple(ranges))

    change_entries(tmp_path, lie)
    table.refresh()
    with pytest.raises(FormatError, match="found 1, expected 7"):
        table.scan().to_arrow()
    report = repaired(table)
    assert {(repair.what, repair.done) for repair in report.repaired} == {
        ("row count", "written anew"),
        *(
            (f"deletion vector of {name}", "written anew, of 1 row")
            for name in data_files(tmp_path)
        ),
    }
    assert ids(table) == without(1, 11)
    for entry in vector_entries(tmp_path):
        assert entry.rows == len(entry.ranges or ())
        assert {range_.cardinality for range_ in entry.ranges or ()} == {1}


def test_only_the_wrong_index_file_is_rewritten(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.delete("id = 12")
    first, second = data_files(tmp_path)
    kept = [entry for entry in vector_entries(tmp_path) if _named(entry) == {first}]
    change_entries(
        tmp_path, lambda entry: replace(entry, rows=9) if second in _named(entry) else entry
    )
    assert [repair.what for repair in repaired(table).repaired] == ["row count"]
    assert kept[0] in vector_entries(tmp_path)
    assert ids(table) == without(1, 11, 12)


def _named(entry: IndexEntry) -> set[str]:
    return {range_.data_file for range_ in entry.ranges or ()}


def test_an_index_file_of_another_size_is_rewritten(tmp_path: Path) -> None:
    table = made(tmp_path)
    (entry,) = vector_entries(tmp_path)
    path = tmp_path / "index" / entry.name
    path.write_bytes(path.read_bytes() + b"\0")
    problem = f"found {entry.size + 1} bytes, expected {entry.size}"
    assert repair_lines(repaired(table)) == [
        (f"index/{entry.name}", "size", problem, "written anew")
    ]
    assert ids(table) == without(1, 11)


@every_kind
@pytest.mark.parametrize("ranges", [None, ()], ids=["null", "empty"])
def test_an_index_file_of_no_vectors_is_dropped(
    tmp_path: Path, kind: str, ranges: tuple[()] | None
) -> None:
    table = made(tmp_path, kind)
    path = put_vectors(tmp_path, {}, ranges=ranges)
    ((file, what, _, done),) = repair_lines(repaired(table))
    assert (file, what, done) == (path, "deletion vectors", "no vector in use: dropped")
    assert all(entry.ranges for entry in vector_entries(tmp_path))
    assert ids(table) == without(1, 11)


@every_kind
@pytest.mark.parametrize("ranges", [None, ()], ids=["null", "empty"])
def test_ranges_that_were_lost_are_taken_from_an_older_snapshot(
    tmp_path: Path, kind: str, ranges: tuple[()] | None
) -> None:
    table = made(tmp_path, kind)
    known_snapshot = table.snapshot_id
    table.compute_stats(["id"])  # a snapshot that keeps the index manifest
    change_entries(tmp_path, lambda entry: replace(entry, ranges=ranges, rows=0))
    assert {1, 11} <= set(ids(table))  # they came back
    report = repaired(table)
    assert {(repair.what, repair.done) for repair in report.repaired} == {
        ("deletion vectors", f"taken as snapshot {known_snapshot} has it")
    }
    assert ids(table) == without(1, 11)


def test_ranges_that_no_snapshot_knows_are_dropped(tmp_path: Path) -> None:
    table = made(tmp_path)
    put_vectors(tmp_path, {data_files(tmp_path)[0]: DeletionVector([4])}, ranges=None, rows=0)
    ((_, _, problem, done),) = repair_lines(repaired(table))
    assert problem == "without ranges: writers of Paimon's Java fail on the bucket"
    assert done == "no vector in use: dropped"
    assert ids(table) == without(1, 11)


@every_kind
def test_a_damaged_vector_stays_and_all_else_is_repaired(tmp_path: Path, kind: str) -> None:
    made(tmp_path, kind)
    first, second = data_files(tmp_path)

    def lie(entry: IndexEntry) -> IndexEntry:
        ranges = (
            *(
                replace(vector_range, cardinality=7)
                if vector_range.data_file == second
                else vector_range
                for vector_range in ranges_of(entry)
            ),
            replace(ranges_of(entry)[0], data_file="data-gone.parquet"),
        )
        return replace(entry, ranges=ranges, rows=len(ranges))

    change_entries(tmp_path, lie)
    index, before = damage(tmp_path, first)
    table = alcid.paimon(tmp_path)
    report = repaired(table)
    (left,) = report.not_repaired
    assert left.file == index.relative_to(tmp_path).as_posix()
    assert (left.what, left.advice) == (f"deletion vector of {first}", ROLL_BACK)
    assert "bad checksum of a deletion vector" in left.problem
    assert not report.ok
    assert f"not repaired: {left}" in str(report).splitlines()
    assert {repair.what for repair in report.repaired} == {
        f"deletion vector of {second}",
        "deletion vector of data-gone.parquet",
    }
    with pytest.raises(FormatError, match="bad checksum"):
        table.count("id >= 0")
    assert sorted(table.scan("id >= 10").to_arrow()["id"].to_pylist()) == without(*range(10), 11)
    index.write_bytes(before)  # restored
    assert ids(table) == without(1, 11)
    assert table.verify().ok


def test_two_vectors_stay_two_if_one_is_damaged(tmp_path: Path) -> None:
    """Trusting the other one alone would bring rows back."""
    made(tmp_path)
    first, _ = data_files(tmp_path)
    index, before = damage(tmp_path, first)
    put_vectors(tmp_path, {first: DeletionVector([3]), "gone": DeletionVector([0])})
    table = alcid.paimon(tmp_path)
    report = repaired(table)
    assert [repair.what for repair in report.repaired] == ["deletion vector of gone"]
    assert {repair.what for repair in report.not_repaired} == {
        "deletion vectors",
        f"deletion vector of {first}",
    }
    with pytest.raises(FormatError, match=f"two deletion vectors of {first}"):
        table.count("id >= 0")
    index.write_bytes(before)
    assert [repair.done for repair in table.repair().repaired] == ["merged to one, of 2 rows"]
    assert ids(table) == without(1, 3, 11)


@pytest.mark.parametrize("kind", ["any bucket", "buckets", "key"])
def test_a_vector_file_that_is_gone_or_cut_stays_named(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    path = tmp_path / "index" / vector_entries(tmp_path)[0].name
    before, entries = path.read_bytes(), vector_entries(tmp_path)
    path.unlink()
    report = repaired(table, commits=0)
    assert [(repair.what, repair.problem) for repair in report.not_repaired] == [
        ("", "is not there")
    ]
    path.write_bytes(b"")
    report = repaired(table, commits=0)
    assert [repair.what for repair in report.not_repaired] == ["size"]
    assert vector_entries(tmp_path) == entries
    path.write_bytes(before)
    assert ids(table) == without(1, 11)


def test_a_vector_of_rows_that_do_not_exist_stays(tmp_path: Path) -> None:
    made(tmp_path)
    first, _ = data_files(tmp_path)
    forge(tmp_path, indexes=lambda every: every[:1])
    entry = vector_entries(tmp_path)[0]
    written = DeletionVectorFile.write({first: DeletionVector([1, 10])})
    (tmp_path / "index" / entry.name).write_bytes(written.data)
    size = len(written.data)
    forge(tmp_path, indexes=lambda _: [replace(entry, size=size, rows=1, ranges=written.ranges)])
    table = alcid.paimon(tmp_path)
    (left,) = repaired(table, commits=0).not_repaired
    assert (left.problem, left.advice) == ("found row 10, expected below 10", ROLL_BACK)


def test_a_missing_data_file_is_reported_and_the_rest_is_repaired(tmp_path: Path) -> None:
    table = made(tmp_path)
    put_vectors(tmp_path, {"gone": DeletionVector([1])})
    lost = next(tmp_path.rglob(data_files(tmp_path)[1]))
    lost.unlink()
    report = repaired(table)
    assert [str(repair) for repair in report.not_repaired] == [
        f"{lost.relative_to(tmp_path)}: is not there: {ROLL_BACK}"
    ]
    assert [repair.done for repair in report.repaired] == ["dropped"]
