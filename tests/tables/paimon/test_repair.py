"""Repair of Paimon tables: each thing that is wrong is mended, or told, and no row comes back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alcid
from alcid import (
    ConflictError,
    DeletionVector,
    DeletionVectorFile,
    FormatError,
    OptionError,
    PaimonTable,
)
from alcid.formats.deletion_vector import DeletionVectorRange
from alcid.paimon_metadata.commit import Change
from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.tables import verify_report
from alcid.tables.paimon.repair_vectors import VectorMender, VectorRepair
from alcid.tables.repair_report import ROLL_BACK, RepairReport
from tests.tables.maintaining import Shares
from tests.tables.paimon.forging import (
    flip,
    forge,
    one_file,
    put_vectors,
    state_of,
    vector_entries,
)
from tests.tables.paimon.small_tables import VECTORS, commit, create

KINDS: dict[str, dict[str, Any]] = {
    "any bucket": {},
    "buckets": {"options": {"bucket": "1", "bucket-key": "id"}},
    "key": {"options": {"bucket": "1"}, "primary_keys": ["id"]},
    "beside the data": {"options": {"index-file-in-data-file-dir": "true"}},
    "64 bits": {"options": {"deletion-vectors.bitmap64": "true"}},
}
every_kind = pytest.mark.parametrize("kind", KINDS)

INDEXES = {"file-index.bitmap.columns": "name", "file-index.bloom-filter.columns": "id"}


def rows_of(ids: Iterable[int]) -> pa.Table:
    keys = list(ids)
    return pa.table({"id": pa.array(keys, pa.int64()), "name": [f"n{one % 5}" for one in keys]})


def made(path: Path, kind: str = "any bucket", options: Mapping[str, str] = {}) -> PaimonTable:
    """Two files, of ids 0 to 9 and 10 to 19; 1 and 11 are deleted."""
    given = KINDS[kind]
    table = create(path, **{**given, "options": {**VECTORS, **given.get("options", {}), **options}})
    write = table.upsert if table.snapshot.schema.primary_keys else table.append
    for first in (0, 10):
        write(rows_of(range(first, first + 10)))
    table.delete("id IN (1, 11)")
    assert ids(table) == without(1, 11)
    return table


def ids(table: PaimonTable) -> list[int]:
    table.refresh()
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def without(*gone: int) -> list[int]:
    return [one for one in range(20) if one not in gone]


def data_files(path: Path) -> list[str]:
    """The names of the data files that hold 0 and 10."""
    table = alcid.paimon(path)
    found = {
        one.file.name: pa.parquet.read_table(path / one.path, partitioning=None)["id"][0].as_py()
        for one in table.snapshot.placed
        if one.file.delete_rows == 0 or one.file.delete_rows is None
    }
    return sorted(found, key=lambda name: found[name])


def change_entries(path: Path, change: Callable[[IndexEntry], IndexEntry]) -> None:
    """Let the index manifest say otherwise of all files of vectors."""
    forge(path, indexes=lambda every: [change(one) if one.ranges else one for one in every])


def told(report: RepairReport) -> list[tuple[str, str, str, str]]:
    return sorted((one.file, one.what, one.problem, one.done) for one in report.mended)


def repaired(table: PaimonTable, *, commits: int = 1) -> RepairReport:
    """Repair: a dry run says the same and changes nothing, and nothing is left to a second one."""
    files = {one: one.stat().st_mtime_ns for one in Path(table.location).rglob("*")}
    before, forged = table.snapshot_id, {one.path for one in table.verify().leftovers}
    trial = table.repair(dry_run=True)
    assert {one: one.stat().st_mtime_ns for one in Path(table.location).rglob("*")} == files
    report = table.repair()
    assert (told(trial), trial.not_mended, trial.commits, trial.dry_run) == (
        told(report),
        report.not_mended,
        commits,
        True,
    )
    assert (report.commits, report.dry_run) == (commits, False)
    assert table.snapshot_id == (before or 0) + commits
    again = table.repair()
    assert (again.mended, again.commits, again.snapshot_id) == ((), 0, None)
    assert again.not_mended == report.not_mended
    found = table.verify()
    assert [(one.file, one.what, one.problem) for one in found.problems] == [
        (one.file, one.what, one.problem) for one in report.not_mended
    ]
    assert {one.path for one in found.leftovers} == forged
    return report


# -- deletion vectors ----------------------------------------------------------------------------


@every_kind
def test_a_sound_table_is_left_alone(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    report = repaired(table, commits=0)
    assert (report.ok, report.mended, report.removed, report.kept) == (True, (), (), ())
    assert str(report).startswith("nothing to mend; removed 0 leftovers (0 B); ")
    assert ids(table) == without(1, 11)


@every_kind
def test_two_vectors_of_a_file_become_one(tmp_path: Path, kind: str) -> None:
    made(tmp_path, kind)
    first, second = data_files(tmp_path)
    old = [
        one.name
        for one in vector_entries(tmp_path)
        if first in {place.data_file for place in one.ranges or ()}
    ]
    put_vectors(tmp_path, {first: DeletionVector([3, 5])})
    table = alcid.paimon(tmp_path)  # it can be opened, but not read
    with pytest.raises(FormatError, match=f"two deletion vectors of {first}, which repair merges"):
        table.scan().to_arrow()
    new = "index-99999999-0000-0000-0000-000000000000-0"
    problem = f"two vectors, in {old[0]} and {new}"
    report = repaired(table)
    assert told(report) == [(first, "deletion vectors", problem, "merged to one, of 3 rows")]
    assert ids(table) == without(1, 3, 5, 11)
    every = [place for one in vector_entries(tmp_path) for place in one.ranges or ()]
    assert sorted((one.data_file, one.cardinality) for one in every) == sorted(
        [(first, 3), (second, 1)]
    )
    assert len(vector_entries(tmp_path)) == 1
    wide = "deletion-vectors.bitmap64" in table.options
    for entry in vector_entries(tmp_path):
        with DeletionVectorFile.open(next(tmp_path.rglob(entry.name))) as file:
            assert {one.bits for one in file.read_all(entry.ranges or ()).values()} == {
                64 if wide else 32
            }


def test_no_commit_gives_a_file_a_second_vector(tmp_path: Path) -> None:
    table = made(tmp_path)
    (entry,) = vector_entries(tmp_path)
    change = Change(kind="OVERWRITE", index_added=[replace(entry, name="index-other")])
    with pytest.raises(ConflictError, match=": has another deletion vector by now"):
        commit(table, change)


def test_nothing_is_deleted_by_one_of_two_vectors(tmp_path: Path) -> None:
    """To write the vectors of a bucket anew would lose the other."""
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
    assert told(repaired(table)) == [
        (path, "vector of b", problem, "dropped"),
        (path, "vector of data-gone.parquet", problem, "dropped"),
    ]
    assert ids(table) == without(1, 11)
    assert table.verify().warnings == ()
    named = {place.data_file for one in vector_entries(tmp_path) for place in one.ranges or ()}
    assert named == set(data_files(tmp_path))


@every_kind
def test_wrong_numbers_are_put_right(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)

    def lie(entry: IndexEntry) -> IndexEntry:
        ranges = [replace(one, cardinality=7) for one in entry.ranges or ()]
        return replace(entry, rows=9, ranges=tuple(ranges))

    change_entries(tmp_path, lie)
    table.refresh()
    with pytest.raises(FormatError, match="found 1, expected 7"):
        table.scan().to_arrow()
    report = repaired(table)
    assert {(one.what, one.done) for one in report.mended} == {
        ("row count", "written anew"),
        *((f"vector of {name}", "written anew, of 1 row") for name in data_files(tmp_path)),
    }
    assert ids(table) == without(1, 11)
    for entry in vector_entries(tmp_path):
        assert entry.rows == len(entry.ranges or ())
        assert {one.cardinality for one in entry.ranges or ()} == {1}


def test_only_the_index_file_that_is_wrong_is_written_anew(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.delete("id = 12")
    first, second = data_files(tmp_path)
    kept = [one for one in vector_entries(tmp_path) if _named(one) == {first}]
    change_entries(tmp_path, lambda one: replace(one, rows=9) if second in _named(one) else one)
    assert [one.what for one in repaired(table).mended] == ["row count"]
    assert kept[0] in vector_entries(tmp_path)
    assert ids(table) == without(1, 11, 12)


def _named(entry: IndexEntry) -> set[str]:
    return {one.data_file for one in entry.ranges or ()}


def test_an_index_file_of_another_size_is_written_anew(tmp_path: Path) -> None:
    table = made(tmp_path)
    (entry,) = vector_entries(tmp_path)
    path = tmp_path / "index" / entry.name
    path.write_bytes(path.read_bytes() + b"\0")
    problem = f"found {entry.size + 1} bytes, expected {entry.size}"
    assert told(repaired(table)) == [(f"index/{entry.name}", "size", problem, "written anew")]
    assert ids(table) == without(1, 11)


@every_kind
@pytest.mark.parametrize("ranges", [None, ()], ids=["null", "empty"])
def test_an_index_file_of_no_vectors_is_dropped(
    tmp_path: Path, kind: str, ranges: tuple[()] | None
) -> None:
    table = made(tmp_path, kind)
    path = put_vectors(tmp_path, {}, ranges=ranges)
    ((file, what, _, done),) = told(repaired(table))
    assert (file, what, done) == (path, "deletion vectors", "no vector in use: dropped")
    assert all(one.ranges for one in vector_entries(tmp_path))
    assert ids(table) == without(1, 11)


@every_kind
@pytest.mark.parametrize("ranges", [None, ()], ids=["null", "empty"])
def test_ranges_that_were_lost_are_taken_from_an_older_snapshot(
    tmp_path: Path, kind: str, ranges: tuple[()] | None
) -> None:
    table = made(tmp_path, kind)
    known = table.snapshot_id
    table.compute_stats(["id"])  # a snapshot that keeps the index manifest
    change_entries(tmp_path, lambda one: replace(one, ranges=ranges, rows=0))
    assert {1, 11} <= set(ids(table))  # they have come back
    report = repaired(table)
    assert {(one.what, one.done) for one in report.mended} == {
        ("deletion vectors", f"taken as snapshot {known} has it")
    }
    assert ids(table) == without(1, 11)


def test_ranges_that_no_snapshot_knows_are_dropped(tmp_path: Path) -> None:
    table = made(tmp_path)
    put_vectors(tmp_path, {data_files(tmp_path)[0]: DeletionVector([4])}, ranges=None, rows=0)
    ((_, _, problem, done),) = told(repaired(table))
    assert problem == "without ranges: writers of Paimon's Java fail on the bucket"
    assert done == "no vector in use: dropped"
    assert ids(table) == without(1, 11)


# -- what cannot be mended -----------------------------------------------------------------------


def damage(path: Path, data_file: str) -> tuple[Path, bytes]:
    """Flip a bit in the vector of a data file; its index file, and what that was."""
    for entry in vector_entries(path):
        for place in entry.ranges or ():
            if place.data_file == data_file:
                found = next(path.rglob(entry.name))
                before = found.read_bytes()
                flip(found, place.offset + 12)
                return found, before
    raise AssertionError(data_file)


@every_kind
def test_a_damaged_vector_stays_and_all_else_is_mended(tmp_path: Path, kind: str) -> None:
    made(tmp_path, kind)
    first, second = data_files(tmp_path)

    def lie(entry: IndexEntry) -> IndexEntry:
        ranges = (
            *(
                replace(one, cardinality=7) if one.data_file == second else one
                for one in _of(entry)
            ),
            replace(_of(entry)[0], data_file="data-gone.parquet"),
        )
        return replace(entry, ranges=ranges, rows=len(ranges))

    change_entries(tmp_path, lie)
    index, before = damage(tmp_path, first)
    table = alcid.paimon(tmp_path)
    report = repaired(table)
    (left,) = report.not_mended
    assert left.file == index.relative_to(tmp_path).as_posix()
    assert (left.what, left.advice) == (f"vector of {first}", ROLL_BACK)
    assert "bad checksum of a deletion vector" in left.problem
    assert not report.ok
    assert f"not mended: {left}" in str(report).splitlines()
    assert {one.what for one in report.mended} == {
        f"vector of {second}",
        "vector of data-gone.parquet",
    }
    with pytest.raises(FormatError, match="bad checksum"):
        table.count("id >= 0")
    assert sorted(table.scan("id >= 10").to_arrow()["id"].to_pylist()) == without(*range(10), 11)
    index.write_bytes(before)  # restored
    assert ids(table) == without(1, 11)
    assert table.verify().ok


def _of(entry: IndexEntry) -> Sequence[DeletionVectorRange]:
    return entry.ranges or ()


def test_two_vectors_of_which_one_is_damaged_stay_two(tmp_path: Path) -> None:
    """The other would have to be trusted alone, and rows come back."""
    made(tmp_path)
    first, _ = data_files(tmp_path)
    index, before = damage(tmp_path, first)
    put_vectors(tmp_path, {first: DeletionVector([3]), "gone": DeletionVector([0])})
    table = alcid.paimon(tmp_path)
    report = repaired(table)
    assert [one.what for one in report.mended] == ["vector of gone"]
    assert {one.what for one in report.not_mended} == {"deletion vectors", f"vector of {first}"}
    with pytest.raises(FormatError, match=f"two deletion vectors of {first}"):
        table.count("id >= 0")
    index.write_bytes(before)
    assert [one.done for one in table.repair().mended] == ["merged to one, of 2 rows"]
    assert ids(table) == without(1, 3, 11)


@pytest.mark.parametrize("kind", ["any bucket", "buckets", "key"])
def test_a_vector_file_that_is_gone_or_cut_stays_named(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    path = tmp_path / "index" / vector_entries(tmp_path)[0].name
    before, entries = path.read_bytes(), vector_entries(tmp_path)
    path.unlink()
    report = repaired(table, commits=0)
    assert [(one.what, one.problem) for one in report.not_mended] == [("", "is not there")]
    path.write_bytes(b"")
    report = repaired(table, commits=0)
    assert [one.what for one in report.not_mended] == ["size"]
    assert vector_entries(tmp_path) == entries
    path.write_bytes(before)
    assert ids(table) == without(1, 11)


def test_a_vector_of_rows_that_there_are_not_stays(tmp_path: Path) -> None:
    made(tmp_path)
    first, _ = data_files(tmp_path)
    forge(tmp_path, indexes=lambda every: every[:1])
    entry = vector_entries(tmp_path)[0]
    written = DeletionVectorFile.write({first: DeletionVector([1, 10])})
    (tmp_path / "index" / entry.name).write_bytes(written.data)
    size = len(written.data)
    forge(tmp_path, indexes=lambda _: [replace(entry, size=size, rows=1, ranges=written.ranges)])
    table = alcid.paimon(tmp_path)
    (left,) = repaired(table, commits=0).not_mended
    assert (left.problem, left.advice) == ("found row 10, expected below 10", ROLL_BACK)


def test_a_data_file_that_is_gone_is_told_and_the_rest_is_mended(tmp_path: Path) -> None:
    table = made(tmp_path)
    put_vectors(tmp_path, {"gone": DeletionVector([1])})
    lost = next(tmp_path.rglob(data_files(tmp_path)[1]))
    lost.unlink()
    report = repaired(table)
    assert [str(one) for one in report.not_mended] == [
        f"{lost.relative_to(tmp_path)}: is not there: {ROLL_BACK}"
    ]
    assert [one.done for one in report.mended] == ["dropped"]


# -- file indexes --------------------------------------------------------------------------------


def index_sizes(table: PaimonTable) -> dict[str, int]:
    return {f"{one.index_type} of {one.column}": one.fresh for one in table.indexes()}


@pytest.mark.parametrize("threshold", ["500 b", "0 b"], ids=["embedded", "sidecar"])
def test_a_container_that_cannot_be_read_is_built_as_the_table_asks(
    tmp_path: Path, threshold: str
) -> None:
    table = made(tmp_path, options={**INDEXES, "file-index.in-manifest-threshold": threshold})
    first, second = data_files(tmp_path)
    if threshold == "0 b":
        flip(next(tmp_path.rglob(f"{first}.index")), 0)
    else:
        forge(tmp_path, lambda entry: [_flipped(entry, 0) if entry.file.name == first else entry])
    other = next(one for one in state_of(tmp_path).entries if one.file.name == second)
    table.refresh()
    report = repaired(table)
    assert [(one.file, one.what, one.done) for one in report.mended] == [
        (f"bucket-0/{first}", "index", "built anew")
    ]
    assert index_sizes(table) == {"bitmap of name": 2, "bloom-filter of id": 2}
    assert other in state_of(tmp_path).entries  # nobody has touched it
    assert table.scan("name = 'n3' AND id < 10").to_arrow()["id"].to_pylist() == [3, 8]


def _flipped(entry: Any, offset: int) -> Any:
    data = bytearray(entry.file.embedded_index)
    data[offset] ^= 0xFF
    return entry.with_file(replace(entry.file, embedded_index=bytes(data)))


def test_an_index_that_lies_is_built_anew_and_the_others_are_kept(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.build_indexes(  # which the options of the table do not ask for
        {
            "file-index.bitmap.columns": "name",
            "file-index.range-bitmap.columns": "id",
            "file-index.in-manifest-threshold": "10 kb",
        }
    )
    first, second = data_files(tmp_path)
    indexes = {one.file.name: one.file.embedded_index for one in state_of(tmp_path).entries}

    def swapped(entry: Any) -> list[Any]:
        if entry.file.name != first:
            return [entry]
        return [entry.with_file(replace(entry.file, embedded_index=indexes[second]))]

    forge(tmp_path, swapped)
    table.refresh()
    (wrong,) = (one for one in table.verify().indexes if one.differing)
    assert (wrong.column, wrong.index_type, wrong.false_negatives) == ("id", "range-bitmap", 10)
    report = repaired(table)
    assert [(one.file, one.what, one.done) for one in report.mended] == [
        (f"bucket-0/{first}", "range-bitmap of 'id'", "built anew")
    ]
    assert table.count("id = 3") == 1
    assert index_sizes(table) == {"bitmap of name": 2, "range-bitmap of id": 2}


def test_an_index_of_a_file_whose_data_is_damaged_is_told(tmp_path: Path) -> None:
    table = made(tmp_path, options=INDEXES)
    first, _ = data_files(tmp_path)
    forge(tmp_path, lambda entry: [_flipped(entry, 0) if entry.file.name == first else entry])
    flip(next(tmp_path.rglob(first)), 4)
    table.refresh()
    report = table.repair()
    assert {(one.what, one.advice) for one in report.not_mended} == {
        ("index", "its data cannot be read for another: restore the data file"),
        ("column 'id'", ROLL_BACK),
    }
    assert report.commits == 0


def test_an_index_that_the_table_does_not_ask_for_and_cannot_be_read_is_dropped(
    tmp_path: Path,
) -> None:
    table = made(tmp_path)
    table.build_indexes(INDEXES)
    first, _ = data_files(tmp_path)
    forge(tmp_path, lambda entry: [_flipped(entry, 0) if entry.file.name == first else entry])
    table.refresh()
    assert [one.done for one in repaired(table).mended] == ["dropped"]
    assert index_sizes(table) == {"bitmap of name": 1, "bloom-filter of id": 1}


# -- hash indexes --------------------------------------------------------------------------------


def dynamic(path: Path) -> PaimonTable:
    """A table with dynamic buckets, of ten keys each."""
    options = {**VECTORS, "bucket": "-1", "dynamic-bucket.target-row-num": "10"}
    table = create(path, primary_keys=["id"], options=options)
    table.upsert(rows_of(range(20)))
    return table


@pytest.mark.parametrize("wrong", ["cut", "gone", "count"])
def test_a_hash_index_is_made_again_from_the_keys(tmp_path: Path, wrong: str) -> None:
    table = dynamic(tmp_path)
    entry = next(one for one in state_of(tmp_path).indexes if one.index_type == "HASH")
    path = tmp_path / "index" / entry.name
    hashes = path.read_bytes()
    if wrong == "cut":
        path.write_bytes(hashes[:-3])
    elif wrong == "gone":
        path.unlink()
    else:
        new = replace(entry, rows=entry.rows + 1)
        forge(tmp_path, indexes=lambda every: [new if one == entry else one for one in every])
    table.refresh()
    report = repaired(table)
    ((file, what, problem, done),) = told(report)
    assert (file, what) == (f"bucket-{entry.bucket}/", "hashes of keys")
    assert problem == f"{entry.rows} not in its hash index"
    assert done == f"{entry.rows} put in, 0 taken out"
    (now,) = (one for one in state_of(tmp_path).indexes if one.bucket == entry.bucket)
    data = (tmp_path / "index" / now.name).read_bytes()
    words = {data[at : at + 4] for at in range(0, len(data), 4)}
    assert words == {hashes[at : at + 4] for at in range(0, len(hashes), 4)}
    table.upsert(rows_of(range(20)))  # each key is found in its bucket
    assert ids(table) == list(range(20))


# -- all at once, and others meanwhile -----------------------------------------------------------


def test_all_that_is_wrong_is_mended_in_one_commit(tmp_path: Path) -> None:
    table = made(tmp_path, "key", INDEXES)
    table.upsert(rows_of([30, 31]))
    first, _ = data_files(tmp_path)[:2]
    put_vectors(tmp_path, {first: DeletionVector([3]), "gone": DeletionVector([0])})
    forge(
        tmp_path,
        lambda entry: [_flipped(entry, 0) if entry.file.name == first else entry],
    )
    table = PaimonTable(table.storage, engine=Shares(3))
    report = repaired(table)
    assert sorted(one.done for one in report.mended) == [
        "built anew",
        "dropped",
        "merged to one, of 2 rows",
    ]
    assert table.folder.snapshots.get(table.snapshot_id or 0).commit_kind == "COMPACT"
    assert ids(table) == [*without(1, 3, 11), 30, 31]


def test_keys_that_show_only_when_vectors_are_mended_are_mended_with_them(tmp_path: Path) -> None:
    """As long as a bucket has two vectors of a file, nobody can say which keys are live."""
    table = create(tmp_path, primary_keys=["id"], options={**VECTORS, "bucket": "1"})
    for text in ("a", "b", "c"):
        rows = rows_of(range(10))
        table.upsert(rows.set_column(1, "name", pa.array([text] * 10)))
    oldest = min(state_of(tmp_path).entries, key=lambda one: one.file.max_sequence).file.name
    (entry,) = vector_entries(tmp_path)
    # The marks of the file between are lost, and the oldest has two vectors.
    kept = tuple(one for one in entry.ranges or () if one.data_file == oldest)
    forge(tmp_path, indexes=lambda _: [replace(entry, ranges=kept, rows=1)])
    put_vectors(tmp_path, {oldest: DeletionVector([0])})
    table = alcid.paimon(tmp_path)
    assert table.verify().keys_live_twice == 0  # it cannot be told
    report = repaired(table)
    assert [(one.what, one.done, one.count) for one in report.mended] == [
        ("deletion vectors", "merged to one, of 10 rows", 1),
        ("keys", "marked as deleted", 10),
    ]
    assert set(table.scan().to_arrow()["name"].to_pylist()) == {"c"}
    assert ids(table) == list(range(10))


def test_what_another_deletes_meanwhile_stays_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    change_entries(tmp_path, lambda one: replace(one, rows=9))
    table, other = alcid.paimon(tmp_path), alcid.paimon(tmp_path)
    looks: list[int] = []

    def mend(*arguments: Any) -> VectorRepair:
        found = mended(*arguments)
        looks.append(len(found.mended))
        if len(looks) == 1:
            assert other.delete("id IN (2, 12)").rows == 2
        return found

    mended = VectorMender.mend
    monkeypatch.setattr(VectorMender, "mend", mend)
    report = table.repair()
    assert (looks, report.mended, report.commits, report.ok) == ([1], (), 0, True)
    assert ids(table) == without(1, 2, 11, 12)  # the delete has written all anew
    names = {one.name for one in state_of(tmp_path).indexes}
    assert {one.name for one in (tmp_path / "index").iterdir()} > names
    assert all(not one.path.startswith("index/") for one in table.verify().leftovers)


def test_a_repair_that_comes_too_late_leaves_a_damaged_vector_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stays of an index file is no file of the repair, to be removed with the others."""
    made(tmp_path)
    first, second = data_files(tmp_path)
    change_entries(tmp_path, partial(_lie, data_file=second))
    index, before = damage(tmp_path, first)
    table = alcid.paimon(tmp_path)
    looks: list[int] = []

    def mend(*arguments: Any) -> VectorRepair:
        found = mended(*arguments)
        looks.append(len(found.mended))
        if len(looks) == 1:  # another compacts both files away
            entries = state_of(tmp_path).entries
            change = Change(kind="OVERWRITE", deleted=entries, index_deleted=found.deleted)
            commit(alcid.paimon(tmp_path), change)
        return found

    mended = VectorMender.mend
    monkeypatch.setattr(VectorMender, "mend", mend)
    report = table.repair()
    assert (looks, report.mended, report.ok) == ([1], (), True)
    assert index.read_bytes() != before  # it is there, for the snapshots of the past
    assert len(list((tmp_path / "index").iterdir())) == 1


def test_rows_that_another_appends_meanwhile_are_no_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    first, _ = data_files(tmp_path)
    put_vectors(tmp_path, {first: DeletionVector([3])})
    table, other = alcid.paimon(tmp_path), alcid.paimon(tmp_path)

    def mend(*arguments: Any) -> VectorRepair:
        other.append(rows_of([30]))
        return mended(*arguments)

    mended = VectorMender.mend
    monkeypatch.setattr(VectorMender, "mend", mend)
    report = table.repair()
    assert (report.commits, report.ok) == (1, True)
    assert ids(table) == [*without(1, 3, 11), 30]


def test_more_problems_than_a_report_keeps_are_mended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, options=INDEXES)
    forge(tmp_path, lambda entry: [_flipped(entry, 0)])
    table.refresh()
    monkeypatch.setattr(verify_report, "_MOST_FINDINGS", 1)
    report = repaired(table, commits=2)
    assert sorted(one.file.rpartition("/")[2] for one in report.mended) == sorted(
        data_files(tmp_path)
    )


DAMAGES = st.lists(
    st.one_of(
        st.tuples(st.just("twice"), st.integers(0, 1), st.sets(st.integers(0, 9), min_size=1)),
        st.tuples(
            st.sampled_from(["gone", "count", "cardinality", "empty", "index"]),
            st.integers(0, 1),
            st.just(set[int]()),
        ),
    ),
    max_size=5,
)


@given(st.sampled_from(sorted(KINDS)), DAMAGES)
@settings(max_examples=10)
def test_any_damages_together_leave_the_rows_that_no_vector_deletes(
    kind: str, damages: list[tuple[str, int, set[int]]]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        table = made(path, kind, INDEXES)
        names, gone = data_files(path), {1, 11}
        for number, (what, file, rows) in enumerate(damages):
            if what == "twice":
                put_vectors(path, {names[file]: DeletionVector(rows)}, number)
                gone |= {file * 10 + row for row in rows}
            elif what == "gone":
                put_vectors(path, {f"data-{number}": DeletionVector([5])}, number)
            elif what == "empty":
                put_vectors(path, {}, number, ranges=None if file else ())
            elif what == "count":
                change_entries(path, lambda one: replace(one, rows=one.rows + 1))
            elif what == "cardinality":
                change_entries(path, partial(_lie, data_file=names[file]))
            else:
                forge(path, partial(_without_magic, data_file=names[file]))
        table.refresh()
        report = table.repair(dry_run=True)
        assert (report.ok, report.commits) == (True, bool(damages)), str(report)
        assert told(table.repair()) == told(report)
        assert ids(table) == without(*gone)
        found = table.verify()
        assert (found.problems, found.warnings) == ((), ())
        assert table.repair().mended == ()


def _lie(entry: IndexEntry, data_file: str) -> IndexEntry:
    ranges = (
        replace(one, cardinality=99) if one.data_file == data_file else one for one in _of(entry)
    )
    return replace(entry, ranges=tuple(ranges))


def _without_magic(entry: Any, data_file: str) -> list[Any]:
    if entry.file.name != data_file:
        return [entry]
    data = b"\xff" + entry.file.embedded_index[1:]
    return [entry.with_file(replace(entry.file, embedded_index=data))]


# -- leftovers -----------------------------------------------------------------------------------


def test_what_no_snapshot_needs_is_removed_when_it_is_old_enough(tmp_path: Path) -> None:
    table = made(tmp_path)
    orphan = tmp_path / "index" / "index-00000000-0000-0000-0000-000000000000-0"
    orphan.write_bytes(b"\1")
    report = table.repair()
    assert ([one.path for one in report.kept], report.removed) == ([f"index/{orphan.name}"], ())
    assert "; 1 too young; " in str(report)
    trial = table.repair(timedelta(0), dry_run=True)
    assert [one.path for one in trial.removed] == [f"index/{orphan.name}"]
    assert orphan.exists()
    os.utime(orphan, (0, 0))
    report = table.repair()
    assert ([one.path for one in report.removed], report.kept) == ([f"index/{orphan.name}"], ())
    assert not orphan.exists()
    with pytest.raises(OptionError, match="older_than: found -1 day"):
        table.repair(timedelta(days=-1))


def test_leftovers_stay_if_an_older_snapshot_cannot_be_read(tmp_path: Path) -> None:
    table = made(tmp_path)
    orphan = tmp_path / "index" / "index-00000000-0000-0000-0000-000000000000-0"
    orphan.write_bytes(b"\1")
    manifest = table.folder.snapshots.get(1).delta_manifest_list
    flip(one_file(tmp_path, f"manifest/{manifest}"), -1)
    report = table.repair(timedelta(0))
    assert [(one.what, one.advice) for one in report.not_mended] == [
        ("older snapshots", "nothing was removed: restore the file, or let the snapshot expire")
    ]
    assert orphan.exists()


def test_a_report_is_plain_data_and_a_page(tmp_path: Path) -> None:
    table = made(tmp_path)
    put_vectors(tmp_path, {"gone": DeletionVector([1])})
    damage(tmp_path, data_files(tmp_path)[0])
    report = table.repair()
    plain = report.to_dict()
    assert (plain["ok"], plain["commits"], plain["snapshot_id"]) == (False, 1, table.snapshot_id)
    assert [one["done"] for one in plain["mended"]] == ["dropped"]
    assert [one["advice"] for one in plain["not_mended"]] == [ROLL_BACK]
    first = f"mended 1 problem in 1 commit: snapshot {table.snapshot_id}; removed 0 leftovers (0 B)"
    assert str(report).startswith(f"{first}; 3 too young; 1 NOT mended; ")
    shown = report.to_html()
    assert "<td>dropped</td>" in shown
    assert f"<td>{ROLL_BACK}</td>" in shown
