"""After a compaction, level 0 of a bucket is empty and only the newest row of a key is live."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alcid.errors import ConflictError, FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.engine import Task
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed import bucket_compaction
from alcid.tables.paimon.keyed.bucket_compaction import CompactWork, compact_bucket
from alcid.tables.paimon.keyed.key_files import KeyReader
from alcid.tables.paimon.keyed.live_rows import merge_rows
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.tables.paimon.keyed.bucket_kit import BucketTable
from tests.tables.paimon.small_tables import commit

SEQUENCE = {"sequence.field": "at"}
NO_VECTORS = {"deletion-vectors.enabled": "false"}
MERGING = {"deletion-vectors.merge-on-read": "true"}
LARGE_FILES = {"target-file-size": "1 kb"}  # no file of a test has less than 70 % of it


def only_file(table: BucketTable) -> PlacedFile:
    """The only file of the bucket."""
    (file,) = table.bucket.files
    return file


def stored(table: BucketTable, placed: PlacedFile) -> list[tuple[Any, ...]]:
    """Key, value, sequence number and kind of each row of a file."""
    data = io.BytesIO(table.table.storage.source(placed.path).read(0, placed.file.size))
    names = ["_KEY_id", "v", "_SEQUENCE_NUMBER", "_VALUE_KIND"]
    columns = pq.read_table(data, columns=names).to_pydict()
    return list(zip(*(columns[name] for name in names), strict=True))


# -- files that only change their level ------------------------------------------------------


def test_a_file_alone_is_lifted_to_the_top_and_nothing_is_written(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    placed = table.put({1: "a", 2: "b"})
    assert table.rows() == {}
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert compaction.written == ()
    assert compaction.superseded == 0
    assert [file.entry for file in compaction.removed] == [placed.entry]
    lifted = placed.entry.with_file(replace(placed.file, level=5))
    assert [written.entry for written in compaction.added] == [lifted]
    table.commit(compaction)
    assert table.rows() == {1: "a", 2: "b"}
    assert compact_bucket(table.keyed, table.bucket) is None


def test_older_rows_are_marked_at_their_places(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 3: "c", 5: "e", 7: "g"}, level=5)
    other = table.put({20: "t"}, level=4)
    new = table.put({2: "B", 3: "C", 7: "G"})
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert compaction.superseded == 2
    assert compaction.vectors is not None
    assert compaction.written == (f"index/{compaction.vectors.name}",)
    table.commit(compaction)
    assert table.marks == {old.file.name: [1, 3]}
    assert table.levels == {old.file.name: 5, other.file.name: 4, new.file.name: 3}
    assert table.rows() == {1: "a", 2: "B", 3: "C", 5: "e", 7: "G", 20: "t"}


def test_marks_are_added_to_those_there_are_and_others_are_kept(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, {"deletion-vectors.bitmap64": "true"})
    old = table.put({1: "a", 2: "b", 3: "c"}, level=5)
    other = table.put({20: "t", 21: "u"}, level=4)
    table.mark({old.file.name: [0], other.file.name: [1]})
    table.put({3: "C"})
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert table.marks == {old.file.name: [0, 2], other.file.name: [1]}
    assert len(table.bucket.vectors) == 1
    entry = table.bucket.vectors[0]
    assert entry.rows == 2
    data = table.table.storage.source(f"index/{entry.name}").read(0, entry.size)
    for vector_range in entry.ranges or ():
        blob = data[
            vector_range.offset : vector_range.offset + vector_range.length
        ]  # of 64 bits: with all around it
        assert DeletionVector.from_bytes(blob, vector_range.cardinality).bits == 64
    assert table.rows() == {2: "b", 3: "C", 20: "t"}


def test_without_new_marks_the_index_file_stays(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 2: "b"}, level=5)
    table.mark({old.file.name: [0]})
    (before,) = table.bucket.vectors
    table.put({1: "A", 9: "i"})  # the row of key 1 is already marked
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert compaction.vectors == before
    assert compaction.written == ()
    table.commit(compaction)
    assert table.bucket.vectors == (before,)
    assert table.rows() == {1: "A", 2: "b", 9: "i"}


def test_vectors_of_files_that_are_gone_are_dropped(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 2: "b"}, level=5)
    table.mark({old.file.name: [0]})
    table.put({2: None})
    compaction = compact_bucket(table.keyed, table.bucket, full=True)
    assert compaction is not None
    assert compaction.added == ()
    assert compaction.vectors is None
    table.commit(compaction)
    assert table.bucket.files == ()
    assert table.bucket.vectors == ()
    assert table.rows() == {}


def test_an_index_file_without_vectors_goes(tmp_path: Path) -> None:
    """Java leaves one when a bucket has none any more; a rewritten one would open for no writer."""
    table = BucketTable(tmp_path)
    table.put({1: "a"})
    bucket = table.bucket
    empty = IndexEntry(*bucket.id, "DELETION_VECTORS", "index-java-0", 1, 0, ())
    bucket = replace(bucket, vectors=(empty,))
    compaction = compact_bucket(table.keyed, bucket)
    assert compaction is not None
    assert compaction.vectors is None


# -- files that are merged -------------------------------------------------------------------


def test_files_that_share_keys_are_merged_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    table.put({1: "a", 3: "c", 5: "e"})
    table.put({2: "B", 3: "C", 4: "D"})
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert compaction.superseded == 0  # readers saw none of them
    table.commit(compaction)
    placed = only_file(table)
    assert (placed.file.level, placed.file.source, placed.file.delete_rows) == (5, 1, 0)
    assert stored(table, placed) == [
        (1, "a", 0, 0),
        (2, "B", 3, 0),
        (3, "C", 4, 0),
        (4, "D", 5, 0),
        (5, "e", 2, 0),
    ]
    assert compaction.written == (placed.path,)
    assert table.rows() == {1: "a", 2: "B", 3: "C", 4: "D", 5: "e"}


def test_rows_that_delete_are_not_written_again(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 2: "b", 3: "c"}, level=5)
    table.put({2: None, 4: "d", 9: None})
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert table.marks == {old.file.name: [1]}
    (new,) = [file for file in table.bucket.files if file.file.level == 4]
    assert stored(table, new) == [(4, "d", 4, 0)]
    assert new.file.delete_rows == 0
    assert table.rows() == {1: "a", 3: "c", 4: "d"}


def test_rows_that_delete_are_found_though_the_manifest_counts_none(tmp_path: Path) -> None:
    """pypaimon writes such files; moved up unchanged, their deletes would become rows."""
    table = BucketTable(tmp_path)
    lying = table.put({1: None, 2: "b"})
    entry = lying.entry.with_file(replace(lying.file, delete_rows=0, extra_files=("x",)))
    commit(table.table, Change(kind="COMPACT", deleted=[lying.entry], added=[entry]))
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert stored(table, only_file(table)) == [(2, "b", 1, 0)]


def test_a_count_that_is_unknown_becomes_none(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    placed = table.put({1: "a"})
    entry = placed.entry.with_file(replace(placed.file, delete_rows=None, extra_files=("x",)))
    commit(table.table, Change(kind="COMPACT", deleted=[placed.entry], added=[entry]))
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert only_file(table).file.delete_rows == 0
    assert only_file(table).file.name == placed.file.name


def test_files_of_deletes_only_leave_nothing(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 2: "b"}, level=5)
    table.put({2: None, 3: None})
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert compaction.added == ()
    assert compaction.superseded == 1
    table.commit(compaction)
    assert table.levels == {old.file.name: 5}
    assert table.marks == {old.file.name: [1]}


def test_ignored_deletes_delete_nothing_and_go(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, {"ignore-delete": "true"})
    table.put({1: "a", 2: "b"}, level=5)
    table.put({2: None, 3: "c"})
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert table.marks == {}
    assert table.rows() == {1: "a", 2: "b", 3: "c"}


def test_a_key_twice_in_a_file_of_level_zero_is_written_once(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    placed = _repeat(table, table.put({1: "a", 2: "b", 3: "c"}), [0, 1, 1, 2])
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert only_file(table).file.name != placed.file.name
    assert stored(table, only_file(table)) == [(1, "a", 0, 0), (2, "b", 1, 0), (3, "c", 2, 0)]


def test_a_file_whose_keys_are_not_in_order_is_an_error(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    placed = _repeat(table, table.put({1: "a", 2: "b", 3: "c"}), [0, 2, 1])
    before = table.table.storage.list(under="bucket-0").paths.to_pylist()
    with pytest.raises(FormatError) as raised:
        compact_bucket(table.keyed, table.bucket)
    assert str(raised.value) == f"{placed.path}: key of row 2 is below the one before"
    assert table.table.storage.list(under="bucket-0").paths.to_pylist() == before


def _repeat(table: BucketTable, placed: PlacedFile, rows: list[int]) -> PlacedFile:
    """Replace a file by one with some of its rows, in another order, or twice."""
    storage = table.table.storage
    data = pq.read_table(io.BytesIO(storage.source(placed.path).read(0, placed.file.size)))
    out = io.BytesIO()
    pq.write_table(data.take(pa.array(rows)), out)
    file = replace(placed.file, name="data-other-0.parquet", size=out.tell(), rows=len(rows))
    other = PlacedFile(placed.entry.with_file(file), placed.folder)
    storage.put(other.path, out.getvalue())
    change = Change(kind="COMPACT", deleted=[placed.entry], added=[other.entry])
    commit(table.table, change)
    return other


def test_small_files_that_follow_each_other_become_one(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    for first in (1, 3, 5):
        table.put({first: "a", first + 1: "b"})
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert [row[0] for row in stored(table, only_file(table))] == [1, 2, 3, 4, 5, 6]


def test_large_files_are_lifted_as_they_are(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, LARGE_FILES)
    names = [table.put({first: "a", first + 1: "b"}).file.name for first in (1, 3, 5)]
    table.put({6: "B", 7: "C"})  # merged with the last
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert {name: level for name, level in table.levels.items() if name in names} == {
        names[0]: 5,
        names[1]: 5,
    }
    assert table.rows() == {1: "a", 2: "b", 3: "a", 4: "b", 5: "a", 6: "B", 7: "C"}


# -- which row is newest ---------------------------------------------------------------------


def test_level_zero_wins_whatever_the_numbers(tmp_path: Path) -> None:
    """A Java writer that opened the bucket before others wrote assigns numbers again."""
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 2: "b"}, level=5, number=100)
    middle = table.put({2: "B"}, level=4, number=200)
    table.mark({old.file.name: [1]})
    table.put({1: "A", 2: "BB"}, number=50)
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert table.marks == {old.file.name: [0, 1], middle.file.name: [0]}
    assert table.rows() == {1: "A", 2: "BB"}


def test_level_zero_wins_where_runs_are_merged(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    table.put({1: "a", 2: "b"}, level=5, number=100)
    table.put({1: "A"}, number=50)
    table.commit(compact_bucket(table.keyed, table.bucket, full=True))
    assert stored(table, only_file(table)) == [(1, "A", 50, 0), (2, "b", 101, 0)]


def test_among_files_of_level_zero_the_number_decides(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    table.put({1: "new"}, number=7)
    table.put({1: "old"}, number=3)
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert table.rows() == {1: "new"}


@pytest.mark.parametrize("options", [NO_VECTORS, MERGING], ids=["no vectors", "merge on read"])
def test_where_readers_merge_the_number_decides_as_it_does_for_them(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = BucketTable(tmp_path, options)
    table.put({1: "a", 2: "b"}, level=5, number=100)
    table.put({1: "A", 3: "C"}, number=50)
    before = table.rows()
    assert before == {1: "a", 2: "b", 3: "C"}
    table.commit(compact_bucket(table.keyed, table.bucket, full=True))
    assert table.rows() == before


def test_a_greater_sequence_field_wins_from_an_older_file(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, SEQUENCE)
    old = table.put({1: "a", 2: "b", 3: "c", 4: "d"}, level=5, at=[5, 5, 5, None])
    new = table.put({1: "A", 2: "B", 3: "C", 4: "D", 5: "E"}, at=[4, 5, 6, None, 0])
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert compaction.superseded == 3
    table.commit(compaction)
    assert table.marks == {old.file.name: [1, 2, 3], new.file.name: [0]}
    assert table.levels == {old.file.name: 5, new.file.name: 4}
    assert table.rows() == {1: "a", 2: "B", 3: "C", 4: "D", 5: "E"}


def test_a_delete_with_a_lesser_sequence_field_deletes_nothing(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, {**SEQUENCE, "sequence.field.sort-order": "descending"})
    table.put({1: "a", 2: "b"}, level=5, at=[5, 5])
    table.put({1: None, 2: None}, at=[6, 4])
    table.commit(compact_bucket(table.keyed, table.bucket))
    assert table.rows() == {1: "a"}


# -- runs ------------------------------------------------------------------------------------


def test_runs_are_merged_where_no_level_is_free(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, {"num-levels": "4"})
    top = table.put({key: f"3-{key}" * 40 for key in range(1000)}, level=3)
    table.put({key: f"2-{key}" for key in (1, 2, 3)}, level=2)
    table.put({key: f"1-{key}" for key in (2, 3, 4)}, level=1)
    middle, low = table.bucket.files[1:]
    table.mark({top.file.name: [1, 2, 3, 4], middle.file.name: [1, 2]})
    table.put({3: "0-3", 4: None, 5: "0-5"})
    compaction = compact_bucket(table.keyed, table.bucket)
    assert compaction is not None
    assert {file.file.name for file in compaction.removed} >= {middle.file.name, low.file.name}
    table.commit(compaction)
    (merged,) = [file for file in table.bucket.files if file.file.name != top.file.name]
    assert merged.file.level == 2
    assert [row[:2] for row in stored(table, merged)] == [
        (1, "2-1"),
        (2, "1-2"),
        (3, "0-3"),
        (5, "0-5"),
    ]
    assert table.marks == {top.file.name: [1, 2, 3, 4, 5]}
    rest = {key: f"3-{key}" * 40 for key in range(1000) if key not in range(1, 6)}
    assert table.rows() == rest | {1: "2-1", 2: "1-2", 3: "0-3", 5: "0-5"}


def test_full_leaves_one_run_without_vectors(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    top = table.put({1: "a", 2: "b", 3: "c"}, level=5)
    table.put({2: "B", 8: "h"}, level=4)
    table.mark({top.file.name: [1]})
    table.put({3: None, 9: "i"})
    table.commit(compact_bucket(table.keyed, table.bucket, full=True))
    assert only_file(table).file.level == 5
    assert table.bucket.vectors == ()
    assert table.rows() == {1: "a", 2: "B", 8: "h", 9: "i"}
    assert compact_bucket(table.keyed, table.bucket, full=True) is None


def test_full_leaves_files_of_the_top_level_alone_that_nothing_is_to_be_done_to(
    tmp_path: Path,
) -> None:
    table = BucketTable(tmp_path, LARGE_FILES)
    kept = table.put({1: "a", 2: "b"}, level=5)
    marked = table.put({11: "k", 12: "l"}, level=5)
    table.mark({marked.file.name: [0]})
    lifted = table.put({21: "u"}, level=4)
    compaction = compact_bucket(table.keyed, table.bucket, full=True)
    assert compaction is not None
    assert [file.file.name for file in compaction.removed] == [marked.file.name, lifted.file.name]
    assert compaction.vectors is None
    table.commit(compaction)
    (new,) = table.levels.keys() - {kept.file.name, lifted.file.name}
    assert table.levels == {kept.file.name: 5, lifted.file.name: 5, new: 5}
    assert table.rows() == {1: "a", 2: "b", 12: "l", 21: "u"}


def test_small_files_of_the_top_level_are_not_written_again_for_nothing(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    for first in (1, 3):
        table.put({first: "a", first + 1: "b"}, level=5)
    bucket = table.bucket
    unknown = [replace(file, entry=_uncounted(file.entry)) for file in bucket.files[:1]]
    compaction = compact_bucket(
        table.keyed, replace(bucket, files=(*unknown, bucket.files[1])), full=True
    )
    assert (
        compaction is not None
    )  # a file without a count of deletes is rewritten together with its neighbour
    assert len(compaction.removed) == 2
    assert compact_bucket(table.keyed, bucket, full=True) is None


def _uncounted(entry: ManifestEntry) -> ManifestEntry:
    return entry.with_file(replace(entry.file, delete_rows=None))


def test_without_vectors_only_a_full_compaction_does_anything(tmp_path: Path) -> None:
    table = BucketTable(tmp_path, NO_VECTORS)
    table.put({1: "a", 2: "b"})
    table.put({2: None, 3: "c"})
    assert compact_bucket(table.keyed, table.bucket) is None
    before = table.rows()
    table.commit(compact_bucket(table.keyed, table.bucket, full=True))
    assert only_file(table).file.level == 5
    assert table.rows() == before == {1: "a", 3: "c"}


# -- what must not happen --------------------------------------------------------------------


def test_files_that_share_keys_never_come_to_one_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's writers would not open the bucket any more: it is checked again at the end."""
    table = BucketTable(tmp_path, LARGE_FILES)
    table.put({1: "a", 5: "e", 7: "g"})
    table.put({3: "C", 5: "E", 9: "I"})
    before = sorted(table.table.storage.list().paths.to_pylist())
    monkeypatch.setattr(
        bucket_compaction, "key_sections", lambda files, _schema: [[file] for file in files]
    )
    with pytest.raises(FormatError, match=r"overlaps data-.* on level 5"):
        compact_bucket(table.keyed, table.bucket)
    assert sorted(table.table.storage.list().paths.to_pylist()) == before


def test_vectors_of_a_bucket_without_files_go(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    placed = table.put({1: "a", 2: "b"}, level=5)
    table.mark({placed.file.name: [0]})
    compaction = compact_bucket(table.keyed, replace(table.bucket, files=()), full=True)
    assert compaction is not None
    assert compaction.vectors is None
    assert compaction.removed == compaction.added == ()
    assert compaction.written == ()


def test_work_does_the_same_elsewhere(tmp_path: Path) -> None:
    """On Spark it is pickled, and so is its result."""
    table = BucketTable(tmp_path)
    old = table.put({1: "a", 2: "b"}, level=5)
    table.put({2: "B"})
    work = pickle.loads(pickle.dumps(CompactWork(table.keyed, full=False)))
    items = pickle.loads(pickle.dumps([table.bucket]))
    reported: list[tuple[int, int]] = []
    done = work(Task(items, 1, lambda *new: reported.append(new)))
    (compaction,) = pickle.loads(pickle.dumps(done))
    table.commit(compaction)
    assert reported == [(2, 3)]
    assert table.marks == {old.file.name: [1]}
    assert table.rows() == {1: "a", 2: "B"}


def test_files_of_a_later_schema_are_a_conflict(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    table.put({1: "a"})
    keyed = table.keyed
    (placed,) = table.bucket.files
    later = placed.entry.with_file(replace(placed.file, schema_id=7))
    bucket = replace(table.bucket, files=(replace(placed, entry=later),))
    with pytest.raises(ConflictError, match="of a schema that came later"):
        compact_bucket(keyed, bucket)


# -- rows in the order of keys ---------------------------------------------------------------


@pytest.mark.parametrize("chunk_rows", [1, 3, 64, 1000])
def test_rows_come_by_key_whatever_the_chunks(tmp_path: Path, chunk_rows: int) -> None:
    table = BucketTable(tmp_path)
    random = np.random.default_rng(chunk_rows)
    left = random.permutation(200)
    files = [table.put({int(key): f"v{key}" for key in part}) for part in np.split(left, [7, 90])]
    dead = {files[1].file.name: DeletionVector([0, 3, 82])}
    runs = list(merge_rows(KeyReader(table.keyed), files, dead, chunk_rows=chunk_rows))
    gone = {sorted(int(key) for key in left[7:90])[index] for index in (0, 3, 82)}
    expected = [key for key in range(200) if key not in gone]
    keys = [key for run in runs for key in run.rows.column("id").to_pylist()]
    assert keys == expected
    assert [value for run in runs for value in run.rows.column("v").to_pylist()] == [
        f"v{key}" for key in expected
    ]
    assert [len(run) for run in runs[:-1]] == [chunk_rows] * (len(runs) - 1)


_batch = st.dictionaries(st.integers(0, 9), st.none() | st.text("ab", max_size=2), min_size=1)
_step = st.one_of(_batch, st.just("compact"), st.just("full"))


@settings(max_examples=40)
@given(st.lists(_step, max_size=12), st.sampled_from(["1 kb", "1 mb"]))
def test_any_order_of_writes_and_compactions_leaves_the_newest_rows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], size: str
) -> None:
    options = {"target-file-size": size, "num-levels": "4"}
    table = BucketTable(tmp_path_factory.mktemp("table"), options)
    model: dict[int, str] = {}
    seen = dict(model)
    for step in steps:
        if isinstance(step, dict):
            table.put(step)
            model |= {key: value for key, value in step.items() if value is not None}
            model = {key: value for key, value in model.items() if step.get(key, "") is not None}
        else:
            compaction = compact_bucket(table.keyed, table.bucket, full=step == "full")
            if compaction is not None:
                table.commit(compaction)
            seen = dict(model)
        assert table.rows() == dict(sorted(seen.items()))
        assert table.rows(merge_on_read=True) == dict(sorted(model.items()))
    assert table.table.verify().problems == ()
