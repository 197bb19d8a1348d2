"""Deletes by predicate: deleted rows, written files, and what others may do meanwhile."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alcid
from alcid import (
    DeletionVector,
    DeletionVectorFile,
    FileIndex,
    PaimonTable,
)
from alcid._arrays import Int64Array
from alcid.errors import (
    ConflictError,
    DamagedIndexWarning,
    PredicateError,
    UnsupportedError,
)
from alcid.scan import ScanPlan
from alcid.storage import Storage
from alcid.tables.engine import Task, Threads, take_items
from alcid.tables.paimon.delete import delete
from alcid.tables.paimon.deletion_vectors import DeletedRows
from alcid.tables.paimon.metadata.commit import Change, Committer
from alcid.tables.paimon.metadata.statistics import FULL, collect
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.tables.paimon.write.deletion_vectors import VectorChanges
from alcid.tables.progress import ReportProgress, no_progress
from alcid.tables.reports import DeleteReport
from tests.tables.paimon.small_tables import (
    VECTORS,
    append,
    commit,
    create,
    ids,
    partition_of,
    rows_of,
    set_options,
    swap_index,
    write_file,
)

BUCKETED = VECTORS | {"bucket": "2", "bucket-key": "id"}


def vector_files(table: PaimonTable) -> list[IndexEntry]:
    table.refresh()
    return list(table.snapshot.state.indexes)


def names(entry: IndexEntry) -> set[str]:
    return {vector_range.data_file for vector_range in entry.ranges or ()}


def read_vectors(table: PaimonTable) -> dict[str, DeletionVector]:
    """All vectors, from the files that the manifest names."""
    every: dict[str, DeletionVector] = {}
    for entry in vector_files(table):
        source = table.storage.source(f"index/{entry.name}")
        assert source.size == entry.size
        assert entry.rows == len(entry.ranges or ())
        with DeletionVectorFile.open(source) as file:
            vectors = file.read_all(entry.ranges or ())
        for vector_range in entry.ranges or ():
            assert vector_range.cardinality == len(vectors[vector_range.data_file])
        assert not every.keys() & vectors.keys()
        every |= vectors
    return every


def index_files(table: PaimonTable) -> set[str]:
    return set(table.storage.list("index").paths.to_pylist())


# -- what is deleted ---------------------------------------------------------------------------


def test_the_rows_that_match_are_marked_and_nothing_else_changes(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, second = append(table, range(10)), append(table, range(10, 20))
    entries = table.snapshot.state.entries
    assert delete(table, "id IN (3, 5, 17)") == DeleteReport(3, 2, 3)
    assert ids(table) == [0, 1, 2, 4, *range(6, 17), 18, 19]
    assert read_vectors(table) == {
        first.file.name: DeletionVector([3, 5]),
        second.file.name: DeletionVector([7]),
    }
    assert table.snapshot.state.entries == entries
    made = table.snapshot.state.snapshot
    assert made is not None
    assert made.commit_kind == "OVERWRITE"
    assert (made.delta_record_count, made.total_record_count) == (0, 20)
    assert table.snapshot.state.delta == ()


def test_a_delete_sees_what_others_appended_since_the_table_was_opened(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(5))
    append(PaimonTable(Storage.open(tmp_path)), range(5, 10))
    assert delete(table, "id >= 3") == DeleteReport(7, 2, 3)
    assert ids(table) == [0, 1, 2]


def test_the_table_sees_its_own_delete(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(5))
    delete(table, "id = 1")
    assert table.snapshot_id == 2
    assert table.count() == 4


def test_rows_are_deleted_once(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(10))
    assert delete(table, "id < 4").rows == 4
    assert delete(table, "id < 6").rows == 2
    assert delete(table, "id < 6") == DeleteReport(0, 0, None)
    assert delete(table, "true").rows == 4
    assert delete(table, "true") == DeleteReport(0, 0, None)
    assert ids(table) == []
    assert table.snapshot_id == 4


def test_no_row_that_matches_makes_no_snapshot(tmp_path: Path) -> None:
    table = create(tmp_path)
    assert delete(table, "true") == DeleteReport(0, 0, None)
    append(table, range(10))
    assert delete(table, "id > 100") == DeleteReport(0, 0, None)
    assert table.snapshot_id == 1
    assert index_files(table) == set()


def test_a_predicate_object_and_nulls(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = write_file(table, pa.table({"id": [1, None, 3], "name": ["a", "b", None]}))
    commit(table, Change(kind="APPEND", added=[entry]))
    assert delete(table, alcid.col("id") != 3).rows == 1
    assert table.scan().to_arrow().to_pydict() == {"id": [None, 3], "name": ["b", None]}
    assert delete(table, "id IS NULL OR name IS NULL").rows == 2


def test_rows_are_looked_at_before_they_are_deleted(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = write_file(table, rows_of(range(100)))
    wrong = FileIndex.build(rows_of([*range(50), *range(50)]), {"file-index.bitmap.columns": "id"})
    types = [field.data_type for field in table.snapshot.schema.fields]
    others = collect(rows_of([200, 300]), types, [FULL, FULL])
    file = replace(entry.file, embedded_index=wrong.to_bytes(), value_stats=others)
    commit(table, Change(kind="APPEND", added=[replace(entry, file=file)]))
    assert table.count("id >= 200") == 100  # as the statistics are trusted
    with pytest.warns(DamagedIndexWarning, match="its rows are not what its indexes or statistics"):
        assert delete(table, "id >= 200") == DeleteReport(0, 0, None)
    assert delete(table, "id = 250") == DeleteReport(0, 0, None)
    assert table.count("id >= 200") == 0  # and are no longer


def test_a_file_of_a_partition_is_not_read(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "name": "STRING", "dt": "STRING"}
    table = create(tmp_path, columns, partition_keys=["dt"])
    rows = rows_of(range(100)).append_column("dt", pa.array(["a"] * 100))
    entry = write_file(table, rows, partition=partition_of(table, "a"))
    commit(table, Change(kind="APPEND", added=[entry]))
    (tmp_path / "dt=a" / "bucket-0" / entry.file.name).unlink()
    assert delete(table, "dt = 'a'") == DeleteReport(100, 1, 2)
    assert read_vectors(table) == {entry.file.name: DeletionVector(range(100))}


def test_partitions_are_kept_apart(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "name": "STRING", "dt": "STRING"}
    table = create(tmp_path, columns, partition_keys=["dt"])
    for value in ("a", "b/c", None):
        rows = rows_of(range(6)).append_column("dt", pa.array([value] * 6, pa.string()))
        entry = write_file(table, rows, partition=partition_of(table, value))
        commit(table, Change(kind="APPEND", added=[entry]))
    assert delete(table, "id = 2 AND (dt = 'b/c' OR dt IS NULL)") == DeleteReport(2, 2, 4)
    assert delete(table, "dt = 'a'").rows == 6
    left = table.scan(columns=["dt", "id"]).to_arrow().to_pylist()
    assert [(row["dt"], row["id"]) for row in left] == [
        (value, row_id) for value in ("b/c", None) for row_id in (0, 1, 3, 4, 5)
    ]
    assert [entry.partition for entry in vector_files(table)] == [
        partition_of(table, value) for value in ("b/c", None, "a")
    ]


# -- which files are written -------------------------------------------------------------------


def test_without_buckets_only_files_with_a_changed_vector_are_replaced(tmp_path: Path) -> None:
    table = create(tmp_path)
    files = [append(table, range(start, start + 10)).file.name for start in range(0, 40, 10)]
    delete(table, "id IN (1, 11, 21)")
    (first,) = vector_files(table)
    delete(table, "id = 31")
    kept, second = vector_files(table)
    assert kept == first
    assert (names(first), names(second)) == (set(files[:3]), {files[3]})
    delete(table, "id = 12")
    assert [names(entry) for entry in vector_files(table)] == [
        {files[3]},
        {files[1]},
        {files[0], files[2]},
    ]
    assert vector_files(table)[0] == second
    assert read_vectors(table) == {
        files[0]: DeletionVector([1]),
        files[1]: DeletionVector([1, 2]),
        files[2]: DeletionVector([1]),
        files[3]: DeletionVector([1]),
    }


def test_without_buckets_files_end_at_the_target_size(tmp_path: Path) -> None:
    table = create(tmp_path, options=VECTORS | {"deletion-vector.index-file.target-size": "40 b"})
    files = [append(table, [number]).file.name for number in range(5)]
    delete(table, "true")
    # A vector of one row takes 30 bytes, so a file exceeds 40 with its second one.
    assert [len(names(entry)) for entry in vector_files(table)] == [2, 2, 1]
    assert set(read_vectors(table)) == set(files)


def test_with_buckets_there_is_one_file_for_each(tmp_path: Path) -> None:
    table = create(tmp_path, options=BUCKETED)
    files = [append(table, range(10 * n, 10 * n + 10), bucket=n % 2).file.name for n in range(4)]
    delete(table, "id IN (1, 11)")
    delete(table, "id = 21")
    assert [(entry.bucket, names(entry)) for entry in vector_files(table)] == [
        (1, {files[1]}),
        (0, {files[0], files[2]}),
    ]
    assert set(read_vectors(table)) == {files[0], files[1], files[2]}


def test_vectors_may_be_next_to_the_data(tmp_path: Path) -> None:
    table = create(tmp_path, options=VECTORS | {"index-file-in-data-file-dir": "true"})
    append(table, range(10))
    delete(table, "id = 1")
    delete(table, "id = 2")
    (entry,) = vector_files(table)
    assert (tmp_path / "bucket-0" / entry.name).stat().st_size == entry.size
    assert not (tmp_path / "index").exists()
    assert ids(table) == [0, *range(3, 10)]


@pytest.mark.parametrize("options", [VECTORS, BUCKETED], ids=["unaware", "bucketed"])
def test_the_option_says_of_how_many_bits_new_vectors_are(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(tmp_path, options=options)
    first, second = append(table, range(10)).file.name, append(table, range(10, 20)).file.name
    delete(table, "id IN (1, 11)")
    assert {vector.bits for vector in read_vectors(table).values()} == {32}
    set_options(table, deletion_vectors__bitmap64="true")
    delete(table, "id = 2")
    vectors = read_vectors(table)
    assert {name: (vector.bits, list(vector)) for name, vector in vectors.items()} == {
        first: (64, [1, 2]),
        second: (32, [1]),
    }
    set_options(table, deletion_vectors__bitmap64="false")
    delete(table, "id IN (3, 13)")
    assert {name: vector.bits for name, vector in read_vectors(table).items()} == {
        first: 64,
        second: 32,
    }


@pytest.mark.parametrize("options", [VECTORS, BUCKETED], ids=["unaware", "bucketed"])
def test_vectors_of_files_that_went_are_left_out(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, options=options)
    gone, left = append(table, range(10)), append(table, range(10, 20))
    delete(table, "id IN (1, 11)")
    commit(table, Change(kind="OVERWRITE", deleted=[gone]))
    assert delete(table, "id = 12").rows == 1
    assert read_vectors(table) == {left.file.name: DeletionVector([1, 2])}


# -- others, meanwhile -------------------------------------------------------------------------


def marks(table: PaimonTable, *rows: int) -> VectorChanges:
    """A delete that has found rows of the first file, and continues later."""
    deleted = [DeletedRows(table.snapshot.placed[0], DeletionVector(rows))]
    return VectorChanges(table.storage, table.snapshot.options, deleted)


@pytest.mark.parametrize("options", [VECTORS, BUCKETED], ids=["unaware", "bucketed"])
def test_a_delete_of_the_same_file_meanwhile_is_kept(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = create(tmp_path, options=options)
    entry = append(table, range(10))
    committer, slow = table.committer(), marks(table, 1, 2, 3)
    assert delete(table, "id IN (3, 4)").rows == 2
    made = committer.commit(slow.plan)
    assert made is not None
    assert (made.id, slow.rows, slow.files) == (3, 2, 1)
    assert read_vectors(table) == {entry.file.name: DeletionVector([1, 2, 3, 4])}


def test_rows_that_another_has_deleted_meanwhile_make_no_snapshot(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(10))
    committer, slow = table.committer(), marks(table, 1, 2)
    delete(table, "id < 5")
    assert committer.commit(slow.plan) is None
    assert (slow.rows, slow.files) == (0, 0)


def test_an_index_that_was_swapped_meanwhile_does_no_harm(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = append(table, range(10))
    committer, slow = table.committer(), marks(table, 1)
    swapped = swap_index(table, entry, f"{entry.file.name}.index")
    assert committer.commit(slow.plan) is not None
    table.refresh()
    assert table.snapshot.state.entries == (swapped,)
    assert read_vectors(table) == {entry.file.name: DeletionVector([1])}
    swap_index(table, swapped, f"{entry.file.name}-1.index")
    assert read_vectors(table) == {entry.file.name: DeletionVector([1])}


def test_a_file_that_went_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = append(table, range(10))
    committer, slow = table.committer(), marks(table, 1)
    new = write_file(table, rows_of(range(10)))
    commit(table, Change(kind="COMPACT", deleted=[entry], added=[new]))
    with pytest.raises(ConflictError, match=f"{entry.file.name}: is not there any more"):
        committer.commit(slow.plan)


class Disturbed(PaimonTable):
    """Another writer replaces its files whenever a delete has looked at them; a few times."""

    times = 0

    def committer(self) -> Committer:
        made = super().committer()
        if self.times:
            self.times -= 1
            (entry,) = self.snapshot.state.entries
            new = write_file(self, rows_of(range(10)))
            made.commit(lambda _: Change(kind="COMPACT", deleted=[entry], added=[new]))
        return made


def test_rows_are_looked_for_again_where_their_file_went(tmp_path: Path) -> None:
    append(create(tmp_path), range(10))
    table = Disturbed(Storage.open(tmp_path))
    table.times = 3
    assert delete(table, "id < 4 AND name = 'n1'") == DeleteReport(1, 1, 5)
    assert ids(table) == [0, *range(2, 10)]
    assert len(index_files(table)) == 1


def test_a_delete_that_is_always_disturbed_gives_up_and_leaves_nothing(tmp_path: Path) -> None:
    append(create(tmp_path), range(10))
    table = Disturbed(Storage.open(tmp_path))
    table.times = 10
    with pytest.raises(ConflictError, match="is not there any more"):
        delete(table, "id < 4")
    assert ids(table) == list(range(10))
    assert index_files(table) == set()


def test_index_files_of_a_lost_race_are_removed(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(10))
    slow = marks(table, 1)
    assert slow.plan(table.snapshot.state) is not None
    assert slow.plan(table.snapshot.state) is not None
    assert len(index_files(table)) == 1  # the same state is not written for twice
    delete(table, "id = 4")
    before = [f"index/{entry.name}" for entry in vector_files(table)]
    assert table.committer().commit(slow.plan) is not None
    slow.remove_unused()
    now = [f"index/{entry.name}" for entry in vector_files(table)]
    assert index_files(table) == {*before, *now}  # of both snapshots
    assert ids(table) == [0, 2, 3, *range(5, 10)]


# -- where the work is done --------------------------------------------------------------------


class Pieces(Threads):
    """An engine that sends each file elsewhere."""

    def map(
        self,
        function: Callable[[Task[Any]], Any],
        items: Any,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[Any]:
        sent = [
            pickle.dumps((function, take_items(items, np.array([position]))))
            for position in range(len(sizes))
        ]
        return [
            pickle.loads(pickle.dumps(again(Task(some, 1, report))))
            for again, some in map(pickle.loads, sent)
        ]


def test_the_work_can_be_done_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScanPlan, "is_small", False)
    local = create(tmp_path)
    files = [append(local, range(start, start + 10)).file.name for start in range(0, 40, 10)]
    delete(local, "id = 1")
    table = PaimonTable(Storage.open(tmp_path), engine=Pieces())
    assert delete(table, "name = 'n1' AND id < 25") == DeleteReport(4, 3, 6)
    assert read_vectors(table) == {
        files[0]: DeletionVector([1, 6]),
        files[1]: DeletionVector([1, 6]),
        files[2]: DeletionVector([1]),
    }


# -- what is refused ---------------------------------------------------------------------------


def test_an_option_that_deletes_cannot_follow_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, options=VECTORS | {"delete.force-produce-changelog": "true"})
    with pytest.raises(UnsupportedError, match=r"delete\.force-produce-changelog=true: cannot"):
        delete(table, "id = 1")


def test_a_predicate_must_be_given(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, range(10))
    with pytest.raises(UnsupportedError, match="where: found NoneType, expected str"):
        delete(table, None)  # type: ignore[arg-type]
    with pytest.raises(PredicateError):
        delete(table, "id = = 1")
    with pytest.raises(PredicateError, match="only Spark can evaluate, which deletes do not ask"):
        delete(table, "abs(id) = 1")
    assert table.snapshot_id == 1


# -- any sequence ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return (tmp_path_factory.mktemp("table") for _ in iter(int, 1))


@settings(max_examples=15)  # each syncs some files to the disk
@given(
    bucketed=st.booleans(),
    bits=st.booleans(),
    steps=st.lists(st.frozensets(st.integers(0, 29), max_size=12), max_size=6),
)
def test_any_sequence_of_deletes_leaves_what_a_set_would(
    folders: Iterator[Path], bucketed: bool, bits: bool, steps: list[frozenset[int]]
) -> None:
    options = (BUCKETED if bucketed else VECTORS) | {"deletion-vectors.bitmap64": str(bits).lower()}
    table = create(next(folders), options=options)
    for number in range(3):
        bucket = number % 2 if bucketed else 0
        append(table, range(10 * number, 10 * number + 10), bucket=bucket)
    left = set(range(30))
    for step in steps:
        report = delete(table, alcid.col("id").isin(sorted(step)))
        assert report.rows == len(left & step)
        left -= step
        assert ids(table) == sorted(left)
    buckets = [(entry.partition, entry.bucket) for entry in vector_files(table)]
    assert not bucketed or len(buckets) == len(set(buckets))
    assert {v.bits for v in read_vectors(table).values()} <= {64 if bits else 32}
