"""The columns of a file from Arrow's footer, and as bytes in a bundle."""

from __future__ import annotations

import io
import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid import FormatError
from alcid.datafiles.parquet import read_layout, read_rows
from alcid.datafiles.parquet.columns import FileColumn, file_columns
from alcid.formats.source import BytesSource
from alcid.index.build import index_file
from alcid.index.bundle import FileEntry, FileTable
from alcid.index.bundle.columns import schema_bytes, schema_columns
from alcid.options import parse_options
from alcid.testing import flips
from alcid.types import DataType
from tests.datafiles.parquet.kit import table_of, written

DEEP = pa.struct(
    [
        ("when", pa.list_(pa.timestamp("us"))),
        ("inner", pa.map_(pa.string(), pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))]))),
    ]
)
EVERY = table_of(nested=True).append_column("deep", pa.nulls(1000, DEEP))


def columns_of(data: bytes) -> tuple[FileColumn, ...]:
    return file_columns(pq.read_metadata(io.BytesIO(data)), "a.parquet")


@pytest.mark.parametrize("int96", [False, True])
@pytest.mark.parametrize("store_schema", [False, True])
def test_types_and_leaves_are_those_that_are_read(int96: bool, store_schema: bool) -> None:
    table = EVERY if store_schema else EVERY.drop_columns(["null", "decimal256"])
    data = written(table, use_deprecated_int96_timestamps=int96, store_schema=store_schema)
    columns = columns_of(data)
    read = read_rows(BytesSource(data)).schema
    assert [(column.name, column.arrow_type) for column in columns] == [
        (field.name, field.type) for field in read
    ]
    fields = [column.field for column in read_layout(BytesSource(data)).columns]
    leaf = 0
    for column, field in zip(columns, fields, strict=True):
        assert (column.leaf, column.nested) == (leaf, field.nested)
        leaf += len(field.leaves)
    by_name = {column.name: column for column in columns}
    assert str(by_name["timestamp_ns"].data_type) == (
        "TIMESTAMP(6) WITH LOCAL TIME ZONE" if int96 else "TIMESTAMP(9)"
    )
    assert by_name["timestamp_ns"].has_bounds is not int96
    assert by_name["timestamp_zone"].has_bounds is not int96
    assert by_name["int64"].has_bounds
    assert not by_name["list"].has_bounds


@pytest.mark.parametrize("int96", [False, True])
def test_columns_come_back_from_the_bytes(int96: bool) -> None:
    columns = columns_of(written(EVERY, use_deprecated_int96_timestamps=int96))
    again = schema_columns(schema_bytes(columns), file="a.parquet")
    assert again == columns
    assert [column.has_bounds for column in again] == [column.has_bounds for column in columns]


def test_problems_and_types_of_spark_come_back_from_the_bytes() -> None:
    schema = {
        "fields": [
            {"name": "a", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}},
            {"name": "b", "metadata": {"__COLLATIONS": {"b": "spark.UTF8_LCASE"}}},
        ]
    }
    metadata = {
        "org.apache.spark.sql.parquet.row.metadata": json.dumps(schema),
        "org.apache.spark.legacyDateTime": "",
    }
    moments = pa.array([datetime(1000, 1, 1)], pa.timestamp("us"))
    table = pa.table({"a": ["x    "], "b": ["x"], "c": moments, "d": pa.nulls(1), "ü": [1]})
    columns = columns_of(written(table.replace_schema_metadata(metadata)))
    assert [(column.name, str(column.data_type), column.problem) for column in columns] == [
        ("a", "CHAR(5)", ""),
        ("b", "STRING", "collated by spark.UTF8_LCASE"),
        ("c", "TIMESTAMP(6)", "dates of the old calendar (org.apache.spark.legacyDateTime)"),
        ("d", "None", "Arrow type null has no counterpart among Paimon's types"),
        ("ü", "BIGINT", ""),
    ]
    assert schema_columns(schema_bytes(columns), file="a") == columns


def test_columns_of_one_name_are_kept_apart() -> None:
    data = written(pa.table([[1], ["x"], [2.5]], ["a", "a", "b"]))
    columns = columns_of(data)
    assert [(column.name, column.leaf, str(column.data_type)) for column in columns] == [
        ("a", 0, "BIGINT"),
        ("a", 1, "STRING"),
        ("b", 2, "DOUBLE"),
    ]
    assert schema_columns(schema_bytes(columns), file="a") == columns


def test_encrypted_columns_are_known_by_their_leaves() -> None:
    data = written(pa.table({"s": [{"x": 1, "y": 2}], "a": [1], "b": [2]}))
    columns = file_columns(pq.read_metadata(io.BytesIO(data)), "a.parquet", {0, 3})
    assert [(column.name, column.problem) for column in columns] == [
        ("s", "encrypted"),
        ("a", ""),
        ("b", "encrypted"),
    ]
    assert not columns[2].has_bounds
    (again,) = schema_columns(schema_bytes(columns[2:]), file="a")
    assert (again.problem, again.arrow_type) == ("encrypted", pa.int64())


def test_a_file_without_columns_has_none() -> None:
    assert schema_columns(schema_bytes(()), file="a") == ()


def test_a_type_of_a_later_version_is_unknown_here() -> None:
    field = pa.field("a", pa.int64(), metadata={"alcid.type": "HYPERCUBE(3)"})
    data = pa.schema([field]).serialize().to_pybytes()
    (column,) = schema_columns(data, file="a")
    assert column.data_type is None
    assert "HYPERCUBE" in column.problem
    data = pa.schema([pa.field("a", pa.int64())]).serialize().to_pybytes()
    assert schema_columns(data, file="a") == (FileColumn("a", 0, pa.int64(), None, "no type"),)


def test_damaged_bytes_give_an_error_that_names_the_file() -> None:
    data = schema_bytes(columns_of(written(pa.table({"a": [1], "b": [["x"]]}))))
    errors = []
    for damage in [*(flip.data for flip in flips(data)), *(data[:end] for end in range(len(data)))]:
        try:
            schema_columns(damage, file="x.puffin")
        except FormatError as error:
            errors.append(str(error))
    assert [error for error in errors if not error.startswith("x.puffin: damaged schema")] == []
    assert len(errors) > len(data) // 2


def test_an_entry_has_the_schema_of_its_file() -> None:
    data = written(EVERY)
    specs = parse_options({"file-index.bitmap.columns": "int32"})
    file = index_file(BytesSource(data, "a"), specs, path="a", size=len(data), version="1")
    assert file.entry.schema is not None
    assert schema_columns(file.entry.schema, file="a") == columns_of(data)
    assert file.read == {"int32"}
    less = file.only_indexes()
    assert (list(less.entry.statistics), list(map(str, less.payloads))) == (
        ["int32"],
        ["bitmap of 'int32'"],
    )


def test_a_table_of_files_without_schemas_is_read_as_before() -> None:
    table = FileTable.of([FileEntry("a", 1, "1", 2, schema=b"x"), FileEntry("b", 1, "1", 2)])
    sink = pa.BufferOutputStream()
    older = table.table.drop_columns(["schema"])
    with pa.ipc.new_stream(sink, older.schema) as writer:
        writer.write_table(older)
    file_table = FileTable.from_bytes(sink.getvalue().to_pybytes())
    assert file_table.schemas.to_pylist() == [None, None]
    assert FileTable.from_bytes(table.to_bytes()).schemas.to_pylist() == [b"x", None]
    assert file_table.paths.to_pylist() == ["a", "b"]


def test_a_column_schema_of_another_type_is_refused() -> None:
    table = FileTable.of([FileEntry("a", 1, "1", 2)]).table
    other = table.set_column(5, "schema", pa.array(["text"]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, other.schema) as writer:
        writer.write_table(other)
    with pytest.raises(FormatError, match="bad column 'schema' at offset 0"):
        FileTable.from_bytes(sink.getvalue().to_pybytes())


def test_schemas_are_kept_once_however_many_files_have_them() -> None:
    entries = [FileEntry(str(n), 1, "1", 2, schema=bytes([n % 2]) * 5000) for n in range(100)]
    table = FileTable.of(entries)
    assert table.schemas.to_pylist() == [entry.schema for entry in entries]
    assert len(table.to_bytes()) < 20_000


def test_the_type_of_a_column_is_that_of_arrow() -> None:
    (column,) = columns_of(written(pa.table({"a": pa.array(["x"]).dictionary_encode()})))
    assert column == FileColumn(
        "a", 0, pa.dictionary(pa.int32(), pa.string()), DataType.parse("STRING")
    )


def test_field_ids_of_a_file_are_kept_also_those_within_columns() -> None:
    def numbered(name: str, arrow_type: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, arrow_type, metadata={"PARQUET:field_id": str(number)})

    inner = pa.struct([numbered("b", pa.int32(), 7)])
    schema = pa.schema([numbered("a", pa.int64(), 5), numbered("s", inner, 6)])
    first = columns_of(written(schema.empty_table()))
    again = schema_columns(schema_bytes(first), file="a")
    for columns in (first, again):
        assert [column.field_id for column in columns] == [5, 6]
        assert columns[1].arrow_type.field(0).metadata == {b"PARQUET:field_id": b"7"}
    assert again == first


def test_schema_bytes_of_a_file_without_ids_say_nothing_of_them() -> None:
    columns = columns_of(written(pa.table({"a": [1], "s": [{"b": 2}]})))
    assert [column.field_id for column in columns] == [None, None]
    assert b"field_id" not in schema_bytes(columns)
