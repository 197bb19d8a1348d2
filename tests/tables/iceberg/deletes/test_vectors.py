"""Deletion vectors of other writers, and our own commits."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alcid import DeletionVector, FormatError
from alcid.formats.puffin import PuffinWriter
from alcid.tables.iceberg import delete
from tests.tables.iceberg.vector_catalog import VectorCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> VectorCatalog:
    """One file of ten rows."""
    new_catalog = VectorCatalog(tmp_path / "table")
    new_catalog.add({"a.parquet": {"id": list(range(10)), "name": ["x"] * 10}})
    return new_catalog


def test_vectors_of_a_table_that_was_moved_are_sound(catalog: VectorCatalog) -> None:
    """The metadata were rewritten for the new folder; footers still have the old one."""
    catalog.open().delete("id = 3", progress=False)
    now = str(catalog.folder / "data" / "a.parquet")
    before = "x" * len(str(catalog.folder)) + "/data/a.parquet"
    (stored,) = catalog.puffin_files()
    stored.write_bytes(stored.read_bytes().replace(now.encode(), before.encode()))
    report = catalog.open().verify()
    assert not report.problems
    (warning,) = report.warnings
    assert warning.problem == f"the footer says {before}: the table was moved, and reads the same"


@pytest.mark.parametrize("change", [{"spec_id": 1}, {"partition": (5,)}])
def test_a_vector_of_another_partition_than_its_data_file_is_not_written(
    catalog: VectorCatalog, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    made = delete._vector_file
    monkeypatch.setattr(
        delete, "_vector_file", lambda *arguments: replace(made(*arguments), **change)
    )
    with pytest.raises(FormatError, match=r"a\.parquet: spec and partition: found "):
        catalog.open().delete("id = 3", progress=False)
    assert (catalog.vectors, catalog.puffin_files()) == ([], [])


@pytest.mark.parametrize("is_of_snapshots", [False, True])
def test_vectors_of_two_snapshots_in_one_file_are_not_merged(
    catalog: VectorCatalog, is_of_snapshots: bool
) -> None:
    """As DuckLake records when rows were deleted: the later one is valid, not both."""
    data_file = str(catalog.folder / "data" / "a.parquet")
    file = io.BytesIO()
    with PuffinWriter(file) as writer:
        blobs = [
            writer.add_deletion_vector(
                DeletionVector(rows, bits=64), data_file.replace("a.par", f"{name}par")
            )
            for name, rows in (("a.", [1, 2]), ("b.", [2, 3]))
        ]
    data = file.getvalue().replace(b"b.parquet", b"a.parquet")  # which the writer does not do
    if is_of_snapshots:
        for number in (b"5", b"7"):
            data = data.replace(b'"snapshot-id":-1', b'"snapshot-id": ' + number, 1)
    path = catalog.folder / "data" / "both.puffin"
    path.write_bytes(data)
    for blob in blobs:
        catalog.current.append(
            {
                **catalog.current[0],
                "content": 1,
                "file_path": str(path),
                "file_format": "PUFFIN",
                "record_count": 2,
                "file_size_in_bytes": len(data),
                "referenced_data_file": data_file,
                "content_offset": blob.offset,
                "content_size_in_bytes": blob.length,
            }
        )
    with pytest.raises(FormatError, match="two deletion vectors"):
        catalog.open().count("id = 3")
    table = catalog.open()
    report = table.repair()
    if is_of_snapshots:
        assert (report.commits, len(report.not_repaired)) == (0, 1)
        assert len(catalog.vectors) == 2
    else:
        assert (report.commits, report.not_repaired) == (1, ())
        assert table.scan().to_arrow()["id"].to_pylist() == [0, *range(4, 10)]
