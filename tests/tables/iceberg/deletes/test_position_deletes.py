"""Position delete files, and vectors in Puffin files at the offsets in manifests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.datafiles.parquet import open_scans
from alcid.errors import ChecksumError, FileGoneError, FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import FileSource
from alcid.tables.iceberg.deletes.files import Positions, read_positions
from alcid.tables.iceberg.deletes.plan import DeletePlan, StoredVector, read_vectors, write_vectors
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import Entries
from tests.tables.iceberg.deletes.delete_files import (
    PATH,
    POSITION,
    data_file,
    deletes_of,
    entries_of,
    write_columns,
    write_positions,
)
from tests.tables.iceberg.deletes.test_plan import SPECS, vector


def read(path: Path, files: dict[str, int]) -> dict[int, DeletionVector]:
    with FileSource(path) as source:
        (scan,) = open_scans([source])
        return read_positions(scan, files)


def positions(entries: Entries) -> Positions:
    return Positions(entries, DeletePlan(entries, SPECS), FileIO(), remote=False)


def test_rows_of_known_files_by_row_group(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    rows = [("a", 1), ("a", 5), ("b", 0), ("gone", 7), ("c", 3), ("a", 2), ("a", 5)]
    write_positions(path, rows, row_group_size=2)
    assert read(path, {"a": 4, "c": 0, "d": 1}) == {
        4: DeletionVector([1, 2, 5]),
        0: DeletionVector([3]),
    }
    assert read(path, {}) == {}


def test_columns_go_by_field_id_and_narrow_positions_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    columns = {
        "file_path": (7, pa.array(["b"])),
        "pos": (8, pa.array([9])),
        "x": (POSITION, pa.array([3], pa.int32())),
        "y": (PATH, pa.array(["a"]).dictionary_encode()),
    }
    write_columns(path, columns)
    assert read(path, {"a": 0, "b": 1}) == {0: DeletionVector([3])}


def test_a_file_without_rows(tmp_path: Path) -> None:
    write_positions(tmp_path / "d.parquet", [])
    assert read(tmp_path / "d.parquet", {"a": 0}) == {}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("a", 1), (None, 2)], "found null, expected a path and a position in each row"),
        ([("a", None)], "found null, expected a path and a position in each row"),
        ([("a", -1)], "position of a deleted row: found -1, expected 0 or more"),
    ],
    ids=["path", "position", "negative"],
)
def test_rows_that_cannot_be(
    tmp_path: Path, rows: list[tuple[str | None, int | None]], problem: str
) -> None:
    write_positions(tmp_path / "d.parquet", rows)
    with pytest.raises(FormatError, match=problem):
        read(tmp_path / "d.parquet", {"a": 0})


def test_a_file_without_the_columns_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    write_columns(path, {"file_path": (PATH, pa.array(["a"])), "pos": (1, pa.array([1]))})
    with pytest.raises(
        FormatError, match=f"field ids 1, {PATH}, expected {POSITION} of type int64"
    ):
        read(path, {"a": 0})
    write_columns(path, {"p": (PATH, pa.array(["a"])), "q": (POSITION, pa.array(["one"]))})
    with pytest.raises(FormatError, match=f"field id {POSITION}: found string, expected int64"):
        read(path, {"a": 0})


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 70_000)), max_size=40))
def test_any_rows(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]]) -> None:
    path = tmp_path_factory.getbasetemp() / "any_positions.parquet"
    write_positions(path, rows, row_group_size=7)
    numbers = {"a": 2, "b": 0, "c": 1}
    expected = {
        number: DeletionVector([row for name, row in rows if name == path])
        for path, number in numbers.items()
    }
    assert read(path, numbers) == {number: some for number, some in expected.items() if some}


def test_all_that_applies_is_put_together(tmp_path: Path) -> None:
    shared, own = tmp_path / "s.parquet", tmp_path / "o.parquet"
    sizes = [
        write_positions(shared, [("a", 1), ("b", 2), ("c", 3)]),
        write_positions(own, [("a", 7)]),
    ]
    entries = entries_of(
        [
            data_file("a", 1),
            data_file("b", 2),
            data_file("c", 3),
            deletes_of(str(shared), 2, file_size_in_bytes=sizes[0]),
            deletes_of(str(own), 3, file_size_in_bytes=sizes[1], referenced_data_file="a"),
        ]
    )
    loaded = positions(entries)
    loaded.load([0, 2])
    loaded.load([1])
    shared.unlink()
    loaded.load([0, 1, 2])  # all is known
    assert [loaded[file] for file in range(3)] == [
        DeletionVector([1, 7]),
        DeletionVector([2]),
        DeletionVector(),
    ]


def test_a_position_beyond_the_data_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    size = write_positions(path, [("a", 99), ("b", 100)])
    row = deletes_of(str(path), 2, file_size_in_bytes=size)
    loaded = positions(entries_of([data_file("a", 1), data_file("b", 1), row]))
    loaded.load([0])
    assert loaded[0] == DeletionVector([99])
    with pytest.raises(FormatError, match="deleted row of b: found 100, expected below 100"):
        loaded.load([1])


def test_a_delete_file_that_is_gone_or_damaged_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    size = write_positions(path, [("a", 1)])
    row = deletes_of(str(path), 2, file_size_in_bytes=size)
    entries = entries_of([data_file("a", 1), row])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError):
        positions(entries).load([0])
    path.unlink()
    with pytest.raises(FileGoneError):
        positions(entries).load([0])


def write_puffin(path: Path, vectors: dict[str, DeletionVector]) -> list[StoredVector]:
    written = write_vectors(vectors)
    path.write_bytes(written.data)
    return [
        StoredVector(
            str(path), len(written.data), blob.offset, blob.length, len(vectors[name]), name, 100
        )
        for name, blob in written.blobs.items()
    ]


def test_vectors_by_the_ranges_in_manifests(tmp_path: Path) -> None:
    vectors = {"a": DeletionVector([1, 2]), "b": DeletionVector([99]), "c": DeletionVector([0])}
    stored = write_puffin(tmp_path / "v.puffin", vectors)
    more = write_puffin(tmp_path / "w.puffin", {"d": DeletionVector([50])})
    vectors_read = read_vectors(FileIO(), [stored[2], more[0], stored[0]])
    assert vectors_read == [vectors["c"], DeletionVector([50]), vectors["a"]]
    assert read_vectors(FileIO(), []) == []


def test_a_vector_is_read_with_its_data_file(tmp_path: Path) -> None:
    (stored,) = write_puffin(tmp_path / "v.puffin", {"a": DeletionVector([1, 2])})
    location = {"content_offset": stored.offset, "content_size_in_bytes": stored.length}
    row = vector(stored.path, 2, "a", file_size_in_bytes=stored.size, record_count=2, **location)
    loaded = positions(entries_of([data_file("a", 1), deletes_of("gone", 2), row]))
    loaded.load([0])  # without the position delete file, which the vector replaces
    assert loaded[0] == DeletionVector([1, 2])


def test_damaged_vectors_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "v.puffin"
    (stored,) = write_puffin(path, {"a": DeletionVector([1, 2])})

    def fail(changed: StoredVector, error: type[FormatError], problem: str) -> None:
        with pytest.raises(error, match=problem):
            read_vectors(FileIO(), [changed])

    fail(replace(stored, cardinality=3), FormatError, "found 2, expected 3")
    fail(
        replace(stored, rows=2),
        FormatError,
        "deleted row of a at offset 4: found 2, expected below 2",
    )
    fail(replace(stored, offset=5), FormatError, "v.puffin")
    fail(replace(stored, length=stored.length - 1), FormatError, "v.puffin")
    fail(replace(stored, length=stored.size), FormatError, "outside of the file")
    data = bytearray(path.read_bytes())
    data[stored.offset + stored.length - 5] ^= 1
    path.write_bytes(data)
    fail(stored, ChecksumError, "v.puffin")


def test_vectors_of_paimons_kind_are_errors(tmp_path: Path) -> None:
    data = DeletionVector([1, 2]).to_bytes(bits=32)
    (tmp_path / "v").write_bytes(data)
    stored = StoredVector(str(tmp_path / "v"), len(data), 0, len(data), 2, "a", 100)
    with pytest.raises(FormatError, match="found 32 bits, expected 64 bits"):
        read_vectors(FileIO(), [stored])
