"""Rows of files with keys are read in the current schema, whoever wrote them and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile, stored_schema
from alcid.tables.paimon.keyed.bucket import KeyedTable
from alcid.tables.paimon.keyed.key_files import KeyReader
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS
from alcid.tables.parquet_writer import Encoding
from alcid.types import DataType

OLD = TableSchema.of(
    [
        ("id", DataType("INT")),
        ("name", DataType.parse("STRING")),
        ("gone", DataType("INT")),
        ("age", DataType("INT")),
    ],
    ["id"],
    [],
    {"bucket": "1", "sequence.field": "age"},
)
NEW = replace(  # the key is renamed and widened, `name` is last, `added` is new
    OLD,
    id=1,
    fields=(
        Field(0, "key", DataType("BIGINT"), nullable=False),
        Field(4, "added", DataType("DOUBLE")),
        Field(3, "age", DataType("BIGINT")),
        Field(1, "name", DataType.parse("STRING")),
    ),
    highest_field_id=4,
    primary_keys=("key",),
)
ROWS: dict[str, list[Any]] = {
    "_KEY_id": [1, 2, 3, 4, 5, 6, 7],
    "_SEQUENCE_NUMBER": [9, 8, 7, 6, 5, 4, 3],
    "_VALUE_KIND": [0, 1, 2, 3, 0, 0, 0],
    "id": [1, 2, 3, 4, 5, 6, 7],
    "name": ["a", None, "c", "d", "e", "f", "g"],
    "gone": [0] * 7,
    "age": [70, 60, None, 40, 30, 20, 10],
}
TYPES = {
    "_KEY_id": pa.int32(),
    "_SEQUENCE_NUMBER": pa.int64(),
    "_VALUE_KIND": pa.int8(),
    "id": pa.int32(),
    "name": pa.string(),
    "gone": pa.int32(),
    "age": pa.int32(),
}


def reader(folder: Path, schema: TableSchema = NEW) -> KeyReader:
    schemas = {each.id: each for each in (OLD, NEW, schema)}
    options = TableOptions.parse(schema.options, has_primary_key=True)
    storage = Storage.open(str(folder))
    return KeyReader(KeyedTable(storage, schema, schemas, options, (), Encoding("zstd")))


def written(folder: Path, rows: pa.Table, name: str = "data-0.parquet") -> PlacedFile:
    """A file with row groups, or stripes, of three rows, in the old schema."""
    (folder / "bucket-0").mkdir(exist_ok=True)
    path = folder / "bucket-0" / name
    if name.endswith("orc"):
        pyarrow.orc.write_table(rows, path, stripe_size=1, batch_size=3)
    else:
        pq.write_table(rows, path, row_group_size=3)
    return placed(name, path.stat().st_size, rows.num_rows)


def placed(name: str, size: int, rows: int) -> PlacedFile:
    file = DataFile(
        name=name, size=size, rows=rows, min_key=EMPTY, max_key=EMPTY, key_stats=NO_STATS,
        value_stats=NO_STATS, min_sequence=3, max_sequence=9, schema_id=0, level=4,
    )  # fmt: skip
    return PlacedFile(ManifestEntry(ADD, EMPTY, 0, 1, file), "bucket-0/")


def table(without: tuple[str, ...] = (), more: dict[str, list[Any]] | None = None) -> pa.Table:
    kept = {
        name: values for name, values in {**ROWS, **(more or {})}.items() if name not in without
    }
    return pa.table({name: pa.array(values, TYPES[name]) for name, values in kept.items()})


every_format = pytest.mark.parametrize("name", ["data-0.parquet", "data-0.orc"])
every_mode = pytest.mark.parametrize("without", [(), ("_KEY_id",)], ids=["full", "thin"])


@every_format
@every_mode
def test_keys_are_those_of_the_present_schema(
    tmp_path: Path, name: str, without: tuple[str, ...]
) -> None:
    deleted = DeletionVector([2])
    key_rows = reader(tmp_path).keys(written(tmp_path, table(without), name), deleted)
    assert [key.type for key in key_rows.keys] == [pa.int64()]
    assert [key.to_pylist() for key in key_rows.keys] == [ROWS["id"]]
    assert [column.type for column in key_rows.sequence] == [pa.int64()]
    assert [column.to_pylist() for column in key_rows.sequence] == [ROWS["age"]]
    assert np.asarray(key_rows.sequence_numbers).tolist() == ROWS["_SEQUENCE_NUMBER"]
    assert np.asarray(key_rows.kinds).tolist() == ROWS["_VALUE_KIND"]
    assert (key_rows.level, key_rows.deleted, key_rows.name) == (4, deleted, f"bucket-0/{name}")


@every_format
@every_mode
def test_rows_are_those_of_the_present_schema(
    tmp_path: Path, name: str, without: tuple[str, ...]
) -> None:
    read = reader(tmp_path)
    file = written(tmp_path, table(without), name)
    runs = list(read.runs(file))
    assert all(run.rows.schema.equals(stored_schema(NEW), check_metadata=True) for run in runs)
    if name.endswith("parquet"):
        assert [len(run) for run in runs] == [3, 3, 1]
    assert pa.concat_tables([run.rows for run in runs]).to_pydict() == {
        "key": ROWS["id"],
        "added": [None] * 7,
        "age": ROWS["age"],
        "name": ROWS["name"],
    }
    assert np.concatenate([run.numbers for run in runs]).tolist() == ROWS["_SEQUENCE_NUMBER"]
    assert np.concatenate([run.kinds for run in runs]).tolist() == ROWS["_VALUE_KIND"]
    assert {(run.numbers.dtype.name, run.kinds.dtype.name) for run in runs} == {("int64", "int8")}


@every_format
@given(st.sets(st.integers(0, 6)).map(sorted))
def test_chosen_rows(
    name: str, tmp_path_factory: pytest.TempPathFactory, positions: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    read = reader(folder).take(written(folder, table(), name), np.array(positions, np.int64))
    assert read.rows.schema.equals(stored_schema(NEW), check_metadata=True)
    for values, column in (
        (read.rows.column("name").to_pylist(), "name"),
        (read.numbers.tolist(), "_SEQUENCE_NUMBER"),
        (read.kinds.tolist(), "_VALUE_KIND"),
    ):
        assert values == [ROWS[column][row] for row in positions]


def test_row_groups_without_a_chosen_row_are_not_read(tmp_path: Path) -> None:
    file, read = written(tmp_path, table()), reader(tmp_path)
    groups = pq.read_metadata(tmp_path / file.path)
    start = groups.row_group(1).column(0).dictionary_page_offset
    end = groups.row_group(2).column(0).dictionary_page_offset
    whole = (tmp_path / file.path).read_bytes()
    (tmp_path / file.path).write_bytes(whole[:start] + bytes(end - start) + whole[end:])
    assert read.take(file, np.array([0, 2, 6])).numbers.tolist() == [9, 7, 3]
    with pytest.raises(FormatError, match=r"bucket-0/data-0.parquet"):
        read.take(file, np.array([0, 3]))


@pytest.mark.parametrize("positions", [[0, 7], [-1, 2]], ids=str)
def test_rows_that_are_not_there(tmp_path: Path, positions: list[int]) -> None:
    file = written(tmp_path, table())
    problem = f"found {positions[0]} to {positions[1]}, expected 0 to 6"
    with pytest.raises(FormatError, match=problem):
        reader(tmp_path).take(file, np.array(positions))


def test_a_file_without_rows(tmp_path: Path) -> None:
    file, read = written(tmp_path, table().slice(0, 0)), reader(tmp_path)
    assert [len(run) for run in read.runs(file)] == []
    assert len(read.take(file, np.array([], np.int64))) == 0
    assert len(read.keys(file)) == 0


def test_a_file_of_another_number_of_rows_than_its_manifest_says(tmp_path: Path) -> None:
    file = written(tmp_path, table())
    wrong = placed(file.file.name, file.file.size, 8)
    with pytest.raises(FormatError, match=r"bucket-0/data-0.parquet.*found 7, expected 8"):
        reader(tmp_path).keys(wrong)


@pytest.mark.parametrize("column", ["_SEQUENCE_NUMBER", "_VALUE_KIND", "age"])
def test_a_column_that_is_not_there(tmp_path: Path, column: str) -> None:
    file, read = written(tmp_path, table((column,))), reader(tmp_path)
    with pytest.raises(FormatError, match=f"no column {column}"):
        read.keys(file)
    with pytest.raises(FormatError, match=f"no column {column}"):
        next(read.runs(file))


@pytest.mark.parametrize("column", ["_SEQUENCE_NUMBER", "_VALUE_KIND"])
def test_a_row_without_number_or_kind(tmp_path: Path, column: str) -> None:
    file = written(tmp_path, table(more={column: [0, None, 0, 0, 0, 0, 0]}))
    with pytest.raises(FormatError, match=f"row without {column}"):
        next(reader(tmp_path).runs(file))


def test_a_value_that_the_present_type_does_not_have(tmp_path: Path) -> None:
    narrow = replace(NEW, fields=(replace(NEW.fields[0], data_type=DataType("TINYINT")),))
    narrow = replace(narrow, options={"bucket": "1"})
    file = written(tmp_path, table(more={"id": [1, 2, 3, 4, 5, 6, 300]}))
    with pytest.raises(UnsupportedError, match=r"bucket-0/data-0.parquet: column key: .*300"):
        list(reader(tmp_path, narrow).runs(file))


def test_a_sequence_field_that_older_files_do_not_have_is_null(tmp_path: Path) -> None:
    by_added = replace(NEW, options={"bucket": "1", "sequence.field": "added"})
    key_rows = reader(tmp_path, by_added).keys(written(tmp_path, table()))
    assert [column.to_pylist() for column in key_rows.sequence] == [[None] * 7]
    assert [column.type for column in key_rows.sequence] == [pa.float64()]


def test_keys_of_rows_in_memory_are_of_the_types_of_those_in_files(tmp_path: Path) -> None:
    kinds = {"at": "TIMESTAMP(3)", "t": "TIME(6)", "b": "BINARY(4)", "fine": "TIMESTAMP(9)"}
    schema = TableSchema.of(
        [(name, DataType.parse(kind)) for name, kind in kinds.items()],
        ["at", "t", "b"],
        [],
        {"bucket": "1", "sequence.field": "fine"},
    )
    stored = stored_schema(schema)
    values = [
        [datetime(2026, 1, 1)],
        [datetime(2026, 1, 1, 1).time()],
        [b"ab"],
        [1],
    ]  # a nanosecond
    rows = pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(values, stored, strict=True)],
        schema=stored,
    )
    read = reader(tmp_path, schema)
    front = {f"_KEY_{name}": rows.column(name) for name in ("at", "t", "b")}
    system = {"_SEQUENCE_NUMBER": pa.array([0]), "_VALUE_KIND": pa.array([0], pa.int8())}
    columns = {**front, **system, **{name: rows.column(name) for name in kinds}}
    (tmp_path / "bucket-0").mkdir()
    path = tmp_path / "bucket-0" / "data-0.parquet"
    pq.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=True)
    file = placed("data-0.parquet", path.stat().st_size, 1)
    (run,) = read.runs(file)
    in_file, in_memory = read.keys(file), read.keys_of(run)
    for of_file, of_memory in (
        (in_file.keys, in_memory.keys),
        (in_file.sequence, in_memory.sequence),
    ):
        assert [column.type for column in of_file] == [column.type for column in of_memory]
        assert all(column.equals(other) for column, other in zip(of_file, of_memory, strict=True))
    assert in_memory.level == 0
    assert run.rows.equals(rows)
