"""Columns of data files by field ids, without Spark."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.datafiles.parquet import ParquetScan
from alcid.datafiles.parquet.columns import file_columns
from alcid.datafiles.parquet.row_groups import open_scan
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import FileSource
from alcid.tables.iceberg.data_files import ConformedScan, IdFiles
from alcid.tables.iceberg.field_ids import NameMapping, ProjectedField, columns_by_id
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.iceberg_table import IcebergTable
from alcid.types import DataType
from tests.tables.iceberg.memory_catalog import MemoryCatalog

BLOOM = {"file-index.bloom-filter.columns": "name", "file-index.bitmap.columns": "name"}


def numbered(name: str, arrow_type: Any, number: int) -> pa.Field:
    return pa.field(name, arrow_type, metadata={"PARQUET:field_id": str(number)})


def projected(
    number: int, name: str, text: str, *inner: int, default: Any = None
) -> ProjectedField:
    return ProjectedField(number, name, DataType.parse(text), inner, default)


@pytest.fixture
def scan(tmp_path: Path) -> ParquetScan:
    """Three rows in two row groups; no table has these names."""
    inner = pa.struct([numbered("p", pa.int32(), 4), numbered("q", pa.string(), 5)])
    schema = pa.schema(
        [
            numbered("one", pa.int32(), 1),
            numbered("two", pa.string(), 2),
            numbered("three", inner, 3),
            numbered("four", pa.list_(pa.field("element", inner)), 6),
        ]
    )
    structs = [{"p": 1, "q": "a"}, None, {"p": 3, "q": None}]
    rows = pa.table([[1, 2, None], ["x", "y", "z"], structs, [structs, [], None]], schema=schema)
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=2)
    return open_scan(FileSource(tmp_path / "a.parquet"))


def conformed(
    scan: ParquetScan, *fields: ProjectedField, constants: dict[int, Any] | None = None
) -> ConformedScan:
    return ConformedScan(scan, {field.name: field for field in fields}, None, constants or {})


def test_columns_are_found_by_their_ids_and_made_what_the_table_has(scan: ParquetScan) -> None:
    conformed_scan = conformed(
        scan,
        projected(2, "one", "STRING"),
        projected(1, "number", "BIGINT"),
        projected(3, "s", "ROW<`q` BIGINT, `new` DATE>", 4, 9),
        projected(6, "l", "ARRAY<ROW<`text` STRING>>", 5),
    )
    assert conformed_scan.read().to_pydict() == {
        "one": ["x", "y", "z"],
        "number": [1, 2, None],
        "s": [{"q": 1, "new": None}, None, {"q": 3, "new": None}],
        "l": [[{"text": "a"}, None, {"text": None}], [], None],
    }
    assert conformed_scan.read([1], ["number"]).to_pydict() == {"number": [None]}
    assert conformed_scan.read(None, []).num_rows == 3
    assert conformed_scan.group_rows == (2, 1)
    assert conformed_scan.column_sizes(["one"]).tolist() == scan.column_sizes(["two"]).tolist()


def test_what_a_file_lacks_is_the_partition_value_else_the_default_else_null(
    scan: ParquetScan,
) -> None:
    conformed_scan = conformed(
        scan,
        projected(7, "parted", "BIGINT", default=pa.scalar(1, pa.int64())),
        projected(8, "default", "STRING", default=pa.scalar("old")),
        projected(9, "nothing", "DATE"),
        projected(1, "own", "INT", default=pa.scalar(5, pa.int32())),
        constants={7: pa.scalar(70, pa.int32())},
    )
    rows = conformed_scan.read([1])
    assert rows.to_pydict() == {
        "parted": [70],
        "default": ["old"],
        "nothing": [None],
        "own": [None],
    }
    assert rows.schema.types == [pa.int64(), pa.string(), pa.date32(), pa.int32()]


def test_footers_are_trusted_only_for_columns_of_the_same_type(scan: ParquetScan) -> None:
    conformed_scan = conformed(
        scan, projected(1, "a", "BIGINT"), projected(1, "b", "INT"), projected(9, "c", "INT")
    )
    assert {
        name: column.name for name, column in conformed_scan.described(["a", "b", "c"]).items()
    } == {"b": "one"}


def test_a_change_that_cannot_be_names_file_and_column(scan: ParquetScan) -> None:
    conformed_scan = conformed(scan, projected(2, "n", "BOOLEAN"))
    with pytest.raises(UnsupportedError, match=r"a\.parquet: column n: found STRING"):
        conformed_scan.read()


def without_ids(folder: Path) -> ParquetScan:
    inner = pa.struct([("p", pa.int32()), ("q", pa.map_(pa.string(), pa.struct([("r", "int8")])))])
    schema = pa.schema([("a", pa.int64()), ("s", inner), ("other", pa.int64())])
    pq.write_table(schema.empty_table(), folder / "b.parquet")
    return open_scan(FileSource(folder / "b.parquet"))


MAPPING = """[{"field-id": 1, "names": ["b", "a"]},
 {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["p"]},
  {"field-id": 4, "names": ["q"], "fields": [{"names": ["key"]}, {"field-id": 6,
   "names": ["value"], "fields": [{"field-id": 7, "names": ["r"]}]}]}]}]"""


def test_names_mean_columns_where_files_have_no_ids(tmp_path: Path) -> None:
    scan = without_ids(tmp_path)
    mapping = NameMapping.of({"schema.name-mapping.default": MAPPING})
    columns = columns_by_id(file_columns(scan.metadata, "b"), mapping, "b")
    assert {number: (column.name, column.inner_ids) for number, column in columns.items()} == {
        1: ("a", ()),
        2: ("s", (3, 4, 7)),
    }


def test_ids_of_a_file_count_more_than_names(scan: ParquetScan) -> None:
    mapping = NameMapping.of({"schema.name-mapping.default": '[{"field-id":9,"names":["one"]}]'})
    columns = columns_by_id(file_columns(scan.metadata, "a"), mapping, "a")
    assert {number: column.name for number, column in columns.items()} == {
        1: "one",
        2: "two",
        3: "three",
        6: "four",
    }
    assert columns[6].inner_ids == (4, 5)


def test_positions_are_ids_without_ids_and_mapping(tmp_path: Path) -> None:
    scan = without_ids(tmp_path)
    assert NameMapping.of({}) is None
    columns = columns_by_id(file_columns(scan.metadata, "b"), None, "b")
    assert {number: (column.name, column.inner_ids) for number, column in columns.items()} == {
        1: ("a", ()),
        2: ("s", (-1, -2, -3)),
        3: ("other", ()),
    }
    with pytest.raises(UnsupportedError, match="column s: a map of structs without field ids"):
        assert columns[2].data_type is not None


@pytest.mark.parametrize(
    "text", ["[", "{}x", '[{"names": 5}]', '[{"names": ["a"], "field-id": []}]']
)
def test_a_damaged_mapping_is_said(text: str) -> None:
    with pytest.raises(FormatError, match=r"property schema\.name-mapping\.default"):
        NameMapping.of({"schema.name-mapping.default": text})


def test_an_id_that_is_there_twice_is_said(tmp_path: Path) -> None:
    schema = pa.schema([numbered("a", pa.int32(), 1), numbered("b", pa.int32(), 1)])
    pq.write_table(schema.empty_table(), tmp_path / "c.parquet")
    metadata = pq.read_metadata(tmp_path / "c.parquet")
    with pytest.raises(FormatError, match="column b: found field id 1 again"):
        columns_by_id(file_columns(metadata, "c"), None, "c")


@pytest.mark.parametrize(
    ("text", "json_value", "expected"),
    [
        ("BOOLEAN", True, True),
        ("INT", 5, 5),
        ("BIGINT", 2**40, 2**40),
        ("DOUBLE", 2.5, 2.5),
        ("FLOAT", 3, 3.0),
        ("DECIMAL(9, 2)", "-14.20", Decimal("-14.20")),
        ("DATE", "2024-02-29", date(2024, 2, 29)),
        ("TIMESTAMP(6)", "2024-02-29T12:30:00.000001", datetime(2024, 2, 29, 12, 30, 0, 1)),
        (
            "TIMESTAMP_LTZ(6)",
            "2024-02-29T12:30:00.5+00:00",
            datetime(2024, 2, 29, 12, 30, 0, 500_000, UTC),
        ),
        ("STRING", "old", "old"),
        ("BYTES", "00ff", b"\x00\xff"),
    ],
)
def test_defaults_are_read_as_iceberg_writes_them(
    text: str, json_value: Any, expected: Any
) -> None:
    field = Field(1, "a", "any", DataType.parse(text), initial_default=json_value)
    projected_field = ProjectedField.of(field)
    assert projected_field.missing(2).to_pylist() == [expected] * 2
    assert projected_field.missing(2).type == projected_field.arrow_type


@pytest.mark.parametrize(
    ("text", "json_value"),
    [
        ("INT", "x"),
        ("INT", 2**31),
        ("DATE", "2024-02-30"),
        ("BYTES", "0g"),
        ("DECIMAL(3, 1)", "5x"),
    ],
)
def test_a_default_that_cannot_be_is_said(text: str, json_value: Any) -> None:
    field = Field(1, "a", "any", DataType.parse(text), initial_default=json_value)
    with pytest.raises(FormatError, match="column a: initial-default"):
        ProjectedField.of(field)


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    """Two files; their column `name` was dropped later, and another column has the name now."""
    made = MemoryCatalog(tmp_path / "t")
    made.add({"a.parquet": {"id": [1, 2], "name": ["x", "y"]}})
    made.add({"b.parquet": {"id": [3], "name": ["x"]}})
    return made


def rows_of(table: IcebergTable, where: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan(where).to_arrow().to_pylist()
    return rows


def test_the_index_of_a_dropped_column_is_not_asked_for_another_of_its_name(
    catalog: MemoryCatalog,
) -> None:
    IcebergTable(catalog).build_indexes(BLOOM, progress=False)
    catalog.set_fields([("id", 1, "long"), ("name", 5, "string")])
    catalog.add({"c.parquet": {"id": [4], "name": ["x"]}}, ids={"id": 1, "name": 5})
    table = IcebergTable(catalog)
    assert rows_of(table, "name = 'x'") == [{"id": 4, "name": "x"}]
    assert rows_of(table, "name IS NULL") == [{"id": i, "name": None} for i in (1, 2, 3)]
    table.build_indexes(BLOOM, progress=False)
    assert rows_of(table, "name = 'x'") == [{"id": 4, "name": "x"}]
    assert table.count("name IS NULL") == 3


def test_the_index_of_a_dropped_column_is_not_asked_where_the_new_one_has_a_default(
    catalog: MemoryCatalog,
) -> None:
    IcebergTable(catalog).build_indexes(BLOOM, progress=False)
    catalog.set_fields([("id", 1, "long"), ("name", 5, "string")])
    catalog.metadata["schemas"][-1]["fields"][1]["initial-default"] = "old"
    catalog.add({"c.parquet": {"id": [4], "name": ["x"]}}, ids={"id": 1, "name": 5})
    table = IcebergTable(catalog)
    assert rows_of(table, "name = 'x'") == [{"id": 4, "name": "x"}]
    assert [row["id"] for row in rows_of(table, "name = 'old'")] == [1, 2, 3]


def test_a_renamed_column_is_found_by_its_index_in_old_and_new_files(
    catalog: MemoryCatalog,
) -> None:
    catalog.set_fields([("id", 1, "long"), ("called", 2, "string")])
    catalog.add({"c.parquet": {"id": [4, 5], "called": ["z", "x"]}}, ids={"id": 1, "called": 2})
    table = IcebergTable(catalog)
    table.build_indexes({"file-index.bloom-filter.columns": "called"}, progress=False)
    assert [row["id"] for row in rows_of(table, "called = 'x'")] == [1, 3, 5]
    explanation = table.explain("called = 'xx'", columns=["id"])
    assert [(index.index, index.outcome, index.files) for index in explanation.indexes] == [
        ("bloom-filter", "ruled out", 2)
    ]
    (stage,) = (stage for stage in explanation.stages if stage.name == "file index")
    assert stage.dropped == {"bloom filter": 2}


def test_pages_are_read_of_files_that_a_bundle_knows_only(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({"a.parquet": {"id": range(1000), "name": ["x"] * 1000}})
    before = IcebergTable(catalog).snapshot
    assert not before.has_pages(0)
    table = IcebergTable(catalog)
    table.build_indexes({"file-index.range-bitmap.columns": "id"}, progress=False)
    assert table.snapshot.has_pages(0)
    assert rows_of(table, "id = 17") == [{"id": 17, "name": "x"}]


def test_a_part_of_the_files_pickles_without_bundles_and_reads_the_same(
    catalog: MemoryCatalog,
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM, progress=False)
    catalog.add({"c.parquet": {"id": [4], "name": ["w"]}})
    table.refresh()
    part = table.snapshot.part(np.array([1, 2]))
    again = pickle.loads(pickle.dumps(part))
    assert type(again) is IdFiles
    assert [again.has_pages(file) for file in (0, 1)] == [True, False]
    read = [scan.read(None, ["id", "name"]).to_pydict() for scan in again.open([0, 1])]
    assert read == [{"id": [3], "name": ["x"]}, {"id": [4], "name": ["w"]}]


def test_a_file_without_ids_is_read_by_the_places_of_its_columns(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({"a.parquet": {"some": [1, 2], "other": ["x", "y"], "more": [3, 4]}}, ids={})
    catalog.add({"b.parquet": {"some": [5]}}, ids={})
    expected = [
        {"id": 1, "name": "x"},
        {"id": 2, "name": "y"},
        {"id": 5, "name": None},
    ]
    table = IcebergTable(catalog)
    assert table.scan().to_arrow().to_pylist() == expected
    assert rows_of(table, "name = 'y'") == expected[1:2]
    table.build_indexes(BLOOM, progress=False)
    assert rows_of(table, "id = 5") == expected[2:]
    assert rows_of(table, "id = 6") == []
    assert not table.verify().problems


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"file_format": "AVRO"}, "data files in AVRO"),
        ({"key_metadata": b"k"}, "encrypted data files"),
    ],
)
def test_what_is_not_read_here_is_handed_over(
    catalog: MemoryCatalog, change: dict[str, Any], reason: str
) -> None:
    for file in catalog.files[1001]:
        file.update(change)
    table = IcebergTable(catalog)
    assert table.snapshot.delegated_reason == reason
    scan = table.scan("id = 1", order_by="name DESC", limit=3)
    assert scan.explain().notes == (f"rows are read by Iceberg's own scan: {reason}",)
    with pytest.raises(NotImplementedError) as caught:
        scan.to_arrow()
    assert str(caught.value) == (
        "OwnQuery(version=1001, where='id = 1', columns=['id', 'name'],"
        " order_by=['`name` DESC NULLS LAST'], limit=3, is_filtered_above=False)"
    )


@pytest.mark.parametrize(
    ("where", "is_filtered_above"),
    [
        ("id = 1", False),
        ("id IN (1, 2) OR name >= 'b' AND id IS NOT NULL", False),
        ("id <> 1", True),
        ("NOT (id = 1 AND name = 'a')", True),
        ("id NOT IN (1, 2)", True),
        ("name LIKE 'a%'", True),
        ("upper(name) = 'A'", True),
        ("score > 1", True),
    ],
)
def test_iceberg_sees_no_filter_that_it_means_otherwise(
    catalog: MemoryCatalog, where: str, is_filtered_above: bool
) -> None:
    for file in catalog.files[1001]:
        file["file_format"] = "AVRO"
    catalog.set_fields([("id", 1, "long"), ("name", 2, "string"), ("score", 3, "double")])
    with pytest.raises(NotImplementedError, match=f"is_filtered_above={is_filtered_above}"):
        IcebergTable(catalog).scan(where).to_arrow()


def test_a_scan_is_handed_over_only_for_columns_that_are_not_read_here(
    catalog: MemoryCatalog,
) -> None:
    catalog.set_fields([("id", 1, "long"), ("u", 7, "uuid")])
    table = IcebergTable(catalog)
    note = "rows are read by Iceberg's own scan: column u: uuid is not read natively"
    assert table.explain("id = 1").notes == (note,)
    assert table.explain("u = 'a'", columns=["id"]).notes == (note,)
    assert table.explain("id = 1", columns=["id"], order_by="u").notes == (note,)
    assert table.scan("id = 1", columns=["id"]).to_arrow().to_pydict() == {"id": [1]}
    assert table.count("id > 1") == 2


def test_a_key_of_a_map_is_asked_of_files_that_no_bundle_knows(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({"a.parquet": {"id": [1, 2]}})
    kind = {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "string"}
    fields = catalog.metadata["schemas"][0]["fields"]
    fields[1] = {"id": 7, "name": "tags", "type": kind | {"value-required": False}} | {
        "required": False
    }
    table = IcebergTable(catalog)
    assert table.count("tags['k'] = 'v7'") == 0
    assert rows_of(table, "tags['k'] IS NULL") == [
        {"id": 1, "tags": None},
        {"id": 2, "tags": None},
    ]


def test_a_decimal_of_more_digits_is_found_by_the_bounds_and_indexes_of_older_files(
    tmp_path: Path,
) -> None:
    catalog = MemoryCatalog(tmp_path / "t", [("id", 1, "long"), ("d", 2, "decimal(4, 2)")])
    values = pa.array([Decimal("1.50"), Decimal("99.99")], pa.decimal128(4, 2))
    catalog.add({"a.parquet": {"id": [1, 2], "d": values}}, ids={"id": 1, "d": 2})
    IcebergTable(catalog).build_indexes({"file-index.range-bitmap.columns": "d"}, progress=False)
    catalog.set_fields([("id", 1, "long"), ("d", 2, "decimal(9, 2)")])
    table = IcebergTable(catalog)
    assert table.explain("d = 100").stages[1].after.files == 0
    assert table.explain("d < 1.495").stages[1].after.files == 0
    assert [row["id"] for row in rows_of(table, "d > 1.505")] == [2]
    assert table.schema.field("d").type == pa.decimal128(9, 2)
    assert [row["id"] for row in rows_of(table, "d = 1.5")] == [1]
