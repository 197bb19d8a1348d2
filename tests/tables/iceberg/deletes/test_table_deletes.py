"""The deleted rows of a table: what is read, when it is read, and what a new vector replaces."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.iceberg.catalog import RemovedDeletes
from alcid.tables.iceberg.deletes import DeleteColumns, TableDeletes, delete_problem
from alcid.tables.iceberg.deletes.plan import write_vectors
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Field, Schema
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata
from alcid.types import DataType
from tests.tables.iceberg.deletes.delete_files import (
    Row,
    data_file,
    deletes_of,
    entries_of,
    write_keys,
    write_positions,
)
from tests.tables.iceberg.deletes.test_plan import SPECS, in_p, vector

OLD = Schema(
    0,
    (
        Field(1, "id", "int", DataType("INT")),
        Field(2, "gone", "string", DataType.parse("STRING")),
        Field(3, "u", "uuid", None, problem="column u: uuid is not read natively"),
        Field(4, "r", "struct<...>", DataType.parse("ROW<x INT>"), (5,)),
    ),
)
NEW = Schema(1, (Field(1, "number", "long", DataType("BIGINT")), *OLD.fields[2:]))


def metadata_of(location: Path) -> TableMetadata:
    schemas = {1: NEW, 0: OLD}
    some: dict[str, Any] = {"refs": {}, "branches": frozenset(), "statistics": {}}
    return TableMetadata(
        2, "", str(location), schemas, 1, SPECS, 0, {}, None, **some, properties={}, snapshot_log=()
    )


def read_fields(_file: int, fields: Sequence[Field]) -> pa.Table:
    """Three rows, as in every data file."""
    columns = {"number": pa.array([1, 2, 3]), "gone": pa.array(["x", "y", None])}
    return pa.table({field.name: columns[field.name] for field in fields})


@pytest.fixture
def entries(tmp_path: Path) -> Entries:
    """One data file with positions and equality deletes, one with a vector, one with nothing."""
    shared, own, keys, vectors = (str(tmp_path / name) for name in ("s", "o", "k", "v"))
    written = write_vectors({"b": DeletionVector([1, 8])})
    Path(vectors).write_bytes(written.data)
    blob = written.blobs["b"]
    location = {"content_offset": blob.offset, "content_size_in_bytes": blob.length}
    shared_size = write_positions(Path(shared), [("a", 5), ("b", 5)])
    own_size = write_positions(Path(own), [("b", 8)])
    keys_size = write_keys(
        Path(keys), was=(1, pa.array([3], pa.int32())), gone=(2, pa.array([None], pa.string()))
    )
    rows = [
        data_file("a", 1),
        data_file("b", 1),
        data_file("c", 9),
        deletes_of(shared, 2, file_size_in_bytes=shared_size),
        deletes_of(own, 3, file_size_in_bytes=own_size, referenced_data_file="b"),
        deletes_of(keys, 2, 2, file_size_in_bytes=keys_size, equality_ids=[1, 2]),
        vector(vectors, 4, "b", file_size_in_bytes=len(written.data), record_count=2, **location),
    ]
    return entries_of(rows)


def deletes(entries: Entries, folder: Path) -> TableDeletes:
    return TableDeletes(entries, DeleteColumns.of(metadata_of(folder)), FileIO(), read_fields)


def test_each_file_has_all_that_is_deleted(entries: Entries, tmp_path: Path) -> None:
    table_deletes = deletes(entries, tmp_path)
    assert list(table_deletes) == [0, 1]
    assert len(table_deletes) == 2
    assert table_deletes == {0: DeletionVector([2, 5]), 1: DeletionVector([1, 2, 8])}
    assert 2 not in table_deletes
    assert table_deletes.get(2) is None


def test_positions_are_without_equality_deletes(entries: Entries, tmp_path: Path) -> None:
    table_deletes = deletes(entries, tmp_path)
    assert [table_deletes.positions(file) for file in range(3)] == [
        DeletionVector([5]),
        DeletionVector([1, 8]),
        DeletionVector(),
    ]


def test_a_new_vector_replaces_the_old_one_and_positions_of_its_file(
    entries: Entries, tmp_path: Path
) -> None:
    table_deletes = deletes(entries, tmp_path)
    assert table_deletes.removable(0) == table_deletes.removable(2) == []
    own, old = (str(tmp_path / name) for name in "ov")
    sizes = [Path(path).stat().st_size for path in (own, old)]
    assert table_deletes.removable(1) == [
        RemovedDeletes(own, sizes[0], "b", 0, (), 100, "PARQUET"),
        RemovedDeletes(old, sizes[1], "b", 0, (), 2, "PUFFIN", 4, 44),
    ]


def test_nothing_is_read_before_it_is_needed(entries: Entries, tmp_path: Path) -> None:
    table_deletes = deletes(entries, tmp_path)
    (tmp_path / "v").unlink()
    table_deletes.load(np.array([0, 2]))
    (tmp_path / "s").unlink()
    (tmp_path / "k").unlink()
    assert table_deletes[0] == DeletionVector([2, 5])
    with pytest.raises(FileNotFoundError):
        table_deletes[1]


def test_threads_may_ask_at_once(entries: Entries, tmp_path: Path) -> None:
    table_deletes = deletes(entries, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        every = list(pool.map(lambda file: table_deletes[file % 2], range(40)))
    assert every == [table_deletes[0], table_deletes[1]] * 20


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (deletes_of("d", 2, 2, equality_ids=[1, 2]), ""),
        (deletes_of("d", 2), ""),
        (vector("d", 2, "a"), ""),
        (deletes_of("d", 2, file_format="AVRO"), "delete files in AVRO"),
        (deletes_of("d", 2, key_metadata=b"k"), "encrypted delete files"),
        (
            deletes_of("d", 2, 2, equality_ids=[5]),
            "equality deletes by field 5, which is not a column",
        ),
        (deletes_of("d", 2, 2, equality_ids=[1, 3]), "equality deletes by uuid"),
        (deletes_of("d", 2, 2, equality_ids=[4]), "equality deletes by struct<...>"),
    ],
    ids=["equality", "positions", "vector", "avro", "key", "inner", "uuid", "struct"],
)
def test_why_delete_files_are_not_read_here(tmp_path: Path, row: Row, problem: str) -> None:
    file_entries = entries_of([data_file("a", 1), row])
    assert delete_problem(file_entries.deletes, metadata_of(tmp_path)) == problem


def test_equality_deletes_of_a_partition_whose_column_was_dropped_are_not_read(
    tmp_path: Path,
) -> None:
    row = deletes_of("d", 2, 2, equality_ids=[1]) | {"spec_id": 1}
    file_entries = entries_of([in_p("a", 1, 7), row])
    assert delete_problem(file_entries.deletes, metadata_of(tmp_path)) == ""
    partition = pa.array([{"q": None}], pa.struct([("q", pa.string())]))
    column = file_entries.deletes.schema.get_field_index("partition")
    dropped = file_entries.deletes.set_column(column, "partition", pa.chunked_array([partition]))
    expected = "equality deletes in partitions by p, whose column was dropped"
    assert delete_problem(dropped, metadata_of(tmp_path)) == expected
