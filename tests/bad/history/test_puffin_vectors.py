"""Deletion vectors in Puffin files: the container, the frame of a blob, its data file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from alcid import (
    ChecksumError,
    DeletionVector,
    FormatError,
    puffin,
)
from tests.bad.history.asking import ids
from tests.golden_files import golden_files
from tests.tables.iceberg.vector_catalog import VectorCatalog
from tests.tables.paimon.small_tables import rows_of


@pytest.fixture
def catalog(tmp_path: Path) -> VectorCatalog:
    """Three files of ten rows."""
    new_catalog = VectorCatalog(tmp_path / "table")
    files = {f"{part}.parquet": range(10 * part, 10 * part + 10) for part in range(3)}
    new_catalog.add({name: rows_of(some).to_pydict() for name, some in files.items()})
    return new_catalog


def data_file(catalog: VectorCatalog, part: int) -> str:
    return str(catalog.folder / "data" / f"{part}.parquet")


def rewrite(catalog: VectorCatalog, data: bytes) -> str:
    """Replace the bytes of the only Puffin file, and return its path."""
    (path,) = catalog.puffin_files()
    path.write_bytes(data)
    for entry in catalog.vectors:
        entry["file_size_in_bytes"] = len(data)
    return str(path)


def test_duckdb_iceberg_1095_what_is_called_puffin_is_one(catalog: VectorCatalog) -> None:
    """Vectors were written as bare blobs, which only their own writer could read."""
    catalog.open().delete("id IN (3, 14, 15)")
    (path,) = catalog.puffin_files()
    data = path.read_bytes()
    assert data[:4] == data[-4:] == b"PFA1"
    with puffin.open(path) as reader:
        for blob, entry in zip(reader.blobs, catalog.vectors, strict=True):
            assert (blob.type, blob.codec) == ("deletion-vector-v1", None)
            assert (blob.fields, blob.snapshot_id) == ((2147483645,), -1)
            assert blob.offset == entry["content_offset"]
            assert blob.length == entry["content_size_in_bytes"]
            assert blob.properties == {
                "referenced-data-file": entry["referenced_data_file"],
                "cardinality": str(entry["record_count"]),
            }


def test_duckdb_iceberg_1095_a_bare_blob_is_told(catalog: VectorCatalog) -> None:
    """Its rows are read as the manifest says; `verify` reports that it is not a Puffin file."""
    catalog.open().delete("id = 3")
    (entry,) = catalog.vectors
    path = rewrite(catalog, DeletionVector([3], bits=64).to_bytes())
    entry["content_offset"] = 0
    table = catalog.open()
    assert ids(table.scan()) == [0, 1, 2, *range(4, 30)]
    (problem,) = table.verify().problems
    assert (problem.file, problem.what) == (path, "deletion vectors")
    assert problem.problem == (
        f"{path}: not a Puffin file: bad tail magic at offset 38: found dc8be776, expected 50464131"
    )


def test_duckdb_iceberg_336_a_flipped_bit_stops_the_scan(catalog: VectorCatalog) -> None:
    """The checksum of a blob was not checked."""
    catalog.open().delete("id = 3")
    data = bytearray(catalog.puffin_files()[0].read_bytes())
    data[4 + 36] ^= 1  # the position itself
    path = rewrite(catalog, bytes(data))
    with pytest.raises(ChecksumError) as raised:
        catalog.open().scan("id = 4").to_arrow()
    assert str(raised.value).startswith(f"{path}: bad checksum of a deletion vector at offset 42")


def test_iceberg_python_3576_the_frame_of_a_blob(tmp_path: Path) -> None:
    """The length, magic and checksum around a bitmap were read as part of the bitmap."""
    (golden,) = (file for file in golden_files("puffin") if file.json["name"] == "deletion_vectors")
    path = tmp_path / "java.puffin"
    path.write_bytes(golden.data)
    with puffin.open(path) as reader:
        vectors = [reader.read_deletion_vector(blob) for blob in reader.blobs]
        framed = [reader.read(blob) for blob in reader.blobs]
    assert list(vectors[0]) == [0, 1, 2, 50]
    assert framed[0][:8] == bytes.fromhex("00000028d1d33964")
    assert [vector.to_bytes() for vector in vectors] == framed
    for blob, vector in zip(golden.json["blobs"], vectors, strict=True):
        assert str(len(vector)) == blob["properties"]["cardinality"]


def test_iceberg_17334_vectors_of_one_puffin_file_are_told_apart(catalog: VectorCatalog) -> None:
    """Delete files were identified by path alone: all vectors of a Puffin file became its last."""
    table = catalog.open()
    table.delete("id IN (3, 14, 15, 25, 26, 27)")
    assert len({entry["file_path"] for entry in catalog.vectors}) == 1
    for opened in (table, catalog.open()):
        vectors = [list(opened.snapshot.deletions[file]) for file in range(3)]
        assert vectors == [[3], [4, 5], [5, 6, 7]]
    table.delete("id = 16")  # which replaces one of the three
    (removed,) = catalog.changes[-1].removed
    assert (removed.data_file, removed.cardinality) == (data_file(catalog, 1), 2)
    for opened in (table, catalog.open()):
        vectors = [list(opened.snapshot.deletions[file]) for file in range(3)]
        assert vectors == [[3], [4, 5, 6], [5, 6, 7]]


def test_iceberg_go_1372_a_second_delete_replaces_the_vector(catalog: VectorCatalog) -> None:
    """A second delete of a file added a vector next to the first: the table became unreadable."""
    for where in ("id = 3", "id IN (4, 14)", "id < 10", "id = 14"):
        catalog.open().delete(where)
        named = [entry["referenced_data_file"] for entry in catalog.vectors]
        assert len(named) == len(set(named))
    assert [(vector["record_count"]) for vector in catalog.vectors] == [1, 10]
    assert [len(change.removed) for change in catalog.changes] == [0, 1, 1]
    assert ids(catalog.open().scan()) == [*range(10, 14), *range(15, 30)]


def test_iceberg_go_1868_a_vector_that_came_meanwhile(catalog: VectorCatalog) -> None:
    """A vector was committed without a check for one that another writer had added."""
    other = catalog.open()
    catalog.meanwhile.append(lambda: other.delete("id IN (3, 5)"))
    report = catalog.open().delete("id IN (3, 4)")
    assert report.rows == 1  # as the other writer has deleted the first
    (entry,) = catalog.vectors
    assert entry["record_count"] == 3
    assert ids(catalog.open().scan("id < 10")) == [0, 1, 2, 6, 7, 8, 9]


def test_iceberg_17206_two_vectors_of_one_file_are_named(catalog: VectorCatalog) -> None:
    """Nobody knows which of two vectors counts: both are named, so that a person can repair it."""
    catalog.open().delete("id = 3")
    catalog.current.append({**catalog.vectors[0], "content_offset": 4})
    with pytest.raises(FormatError) as raised:
        catalog.open().scan().to_arrow()
    assert f"two deletion vectors of {data_file(catalog, 0)}" in str(raised.value)
    assert catalog.vectors[0]["file_path"] in str(raised.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"record_count": 2}, "deletion vector of another cardinality at offset 4: found 1"),
        ({"content_offset": 5}, "bad length of a deletion vector at offset 5: found"),
        ({"content_size_in_bytes": 41}, "bad length of a deletion vector at offset 4: found 34"),
        ({"content_size_in_bytes": None}, "a deletion vector without offset, size or data file"),
        ({"referenced_data_file": None}, "a deletion vector without offset, size or data file"),
    ],
    ids=["cardinality", "offset", "size", "no size", "no data file"],
)
def test_altinity_clickhouse_2119_an_entry_that_does_not_fit_its_blob(
    catalog: VectorCatalog, change: dict[str, Any], problem: str
) -> None:
    """A vector must be the one that the manifest means, or rows of another file are deleted."""
    catalog.open().delete("id = 3")
    catalog.vectors[0].update(change)
    with pytest.raises(FormatError) as raised:
        catalog.open().scan().to_arrow()
    assert problem in str(raised.value)


def test_altinity_clickhouse_2119_a_blob_of_another_data_file(catalog: VectorCatalog) -> None:
    """The footer names the data file of a blob: `verify` notices another name in the manifest."""
    catalog.open().delete("id = 3")
    catalog.vectors[0]["referenced_data_file"] = data_file(catalog, 1)
    (problem,) = catalog.open().verify().problems
    assert problem.problem == (
        f"referenced-data-file: the footer says {data_file(catalog, 0)}, the manifest"
        f" {data_file(catalog, 1)}"
    )


def test_altinity_clickhouse_2119_rows_that_a_file_does_not_have(catalog: VectorCatalog) -> None:
    """Positions beyond the last row belong to another file."""
    catalog.open().delete("id = 3")
    written = DeletionVector([12], bits=64).to_bytes()
    path = rewrite(catalog, b"PFA1" + written)
    with pytest.raises(FormatError) as raised:
        catalog.open().scan().to_arrow()
    assert str(raised.value) == (
        f"{path}: deleted row of {data_file(catalog, 0)} at offset 4: found 12, expected below 10"
    )
