"""Files that were written before a column changed its type."""

from __future__ import annotations

import datetime
import json
import pickle
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid import PaimonTable
from alcid.errors import UnsupportedError
from alcid.tables.casts import convert
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from alcid.types import DataType
from tests.tables.paimon.small_tables import create

Json = Any


def field(kind: Json) -> Field:
    """A column of a type, as in a schema file."""
    described = {"id": 0, "name": "v", "type": kind}
    empty = {"partitionKeys": [], "primaryKeys": [], "options": {}, "highestFieldId": 0, "id": 0}
    return TableSchema.parse(json.dumps({**empty, "fields": [described]}).encode()).fields[0]


def row(*fields: tuple[int, str, Json]) -> Json:
    """A ROW of fields with ids."""
    described = [{"id": number, "name": name, "type": kind} for number, name, kind in fields]
    return {"type": "ROW", "fields": described}


def converted(own: Json, current: Json, values: Sequence[Any], kind: pa.DataType) -> list[Any]:
    """Values of one type converted to another, in two chunks, one of them a slice."""
    convert_column = convert(field(own), field(current))
    assert convert_column is not None
    whole = pa.array([None, *values], kind)
    made = pickle.loads(pickle.dumps(convert_column))(
        pa.chunked_array([whole.slice(1), whole.slice(0, 1)])
    )
    made.validate(full=True)
    found_values: list[Any] = made.to_pylist()
    assert found_values[-1] is None
    return found_values[:-1]


def change_type(table: PaimonTable, column: str, kind: str) -> None:
    """Change the type of a column, as ALTER TABLE does."""
    described = json.loads(table.folder.latest_schema().to_json())
    described["id"] += 1
    for field in described["fields"]:
        if field["name"] == column:
            field["type"] = kind
    path = f"schema/schema-{described['id']}"
    table.storage.create(path, json.dumps(described).encode())
    table.refresh()


def test_the_same_type_is_not_converted() -> None:
    kind = row((3, "x", "INT"), (4, "y", {"type": "ARRAY", "element": "STRING"}))
    assert convert(field(kind), field(kind)) is None


def test_a_text_that_may_be_longer_is_not_converted_and_keeps_its_statistics(
    tmp_path: Path,
) -> None:
    assert convert(field("VARCHAR(3)"), field("STRING")) is None
    table = create(tmp_path, {"id": "INT", "v": "VARCHAR(3)"})
    table.append(pa.table({"id": pa.array([1], pa.int32()), "v": ["abc"]}))
    change_type(table, "v", "VARCHAR(9)")
    explanation = table.scan("v = 'abcd'").explain()
    left = {stage.name: stage.after.files for stage in explanation.stages}
    assert left["statistics"] == 0
    assert table.scan("v = 'abc'").to_arrow().to_pydict() == {"id": [1], "v": ["abc"]}


def test_fields_of_a_row_go_by_their_ids() -> None:
    own = row((1, "x", "INT"), (2, "y", "STRING"))
    current = row((2, "x", "STRING"), (5, "y", "INT"), (1, "z", "BIGINT"))
    values = [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]
    kind = pa.struct([("x", pa.int32()), ("y", pa.string())])
    assert converted(own, current, values, kind) == [
        {"x": "a", "y": None, "z": 1},
        None,
        {"x": "b", "y": None, "z": None},
    ]


def test_rows_within_arrays_and_maps_go_by_ids_too() -> None:
    def nested(inner: Json) -> Json:
        array = {"type": "ARRAY", "element": inner}
        return {"type": "MAP", "key": "STRING NOT NULL", "value": array}

    own, current = nested(row((1, "x", "INT"))), nested(row((2, "x", "INT"), (1, "y", "BIGINT")))
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int32())])))
    values = [[("a", [{"x": 7}, None]), ("b", None)], [], None, [("c", [{"x": None}])]]
    assert converted(own, current, values, kind) == [
        [("a", [{"x": None, "y": 7}, None]), ("b", None)],
        [],
        None,
        [("c", [{"x": None, "y": None}])],
    ]


def test_decimals_become_the_nearest_floats() -> None:
    values, kind = [Decimal("1.2345"), Decimal("-7.5000")], pa.decimal128(10, 4)
    assert converted("DECIMAL(10, 4)", "DOUBLE", values, kind) == [1.2345, -7.5]
    assert converted("DECIMAL(10, 4)", "FLOAT", values, kind) == [1.2345000505447388, -7.5]


@pytest.mark.parametrize("own", ["VARCHAR(9)", "CHAR(9)", "INT"])
def test_a_text_is_cut_off(own: str) -> None:
    value, kind = (1234, pa.int32()) if own == "INT" else ("äöüß", pa.string())
    assert converted(own, "VARCHAR(3)", [value], kind) == ["123" if own == "INT" else "äöü"]


def test_characters_are_counted_and_not_bytes() -> None:
    assert converted("STRING", "VARCHAR(3)", ["äöü", ""], pa.string()) == ["äöü", ""]


def test_bytes_are_cut_off_but_not_where_they_become_a_text() -> None:
    values = [b"abc", b"abcd"]
    assert converted("BYTES", "VARBINARY(3)", values, pa.binary()) == [b"abc", b"abc"]
    assert converted("BYTES", "VARCHAR(3)", values, pa.binary()) == ["abc", "abcd"]


def test_floats_become_the_nearest_integers_towards_zero() -> None:
    values = [1.9, -1.9, 2.0**31, -1e300, float("nan"), 128.5]
    assert converted("DOUBLE", "INT", values, pa.float64()) == [
        *(1, -1, 2**31 - 1, -(2**31), 0, 128),
    ]
    assert converted("DOUBLE", "TINYINT", values, pa.float64()) == [1, -1, -1, 0, 0, -128]
    assert converted("FLOAT", "BIGINT", [1e19, -1.5], pa.float32()) == [2**63 - 1, -1]


def test_moments_before_1970_are_cast_towards_zero() -> None:
    values, kind = [-1, -1_500_000, 1_999_999], pa.timestamp("us")
    assert converted("TIMESTAMP(6)", "BIGINT", values, kind) == [0, -1, 1]
    assert converted("TIMESTAMP(6)", "DATE", values, kind) == [datetime.date(1970, 1, 1)] * 3
    texts = ["1969-12-31 23:59:59.9999", "1969-12-31 23:59:58.5000", "1970-01-01 00:00:01.9999"]
    assert converted("TIMESTAMP(4)", "STRING", values, kind) == texts
    assert converted("BIGINT", "TIMESTAMP(3)", [-1], pa.int64()) == [
        datetime.datetime(1969, 12, 31, 23, 59, 59)
    ]


def test_decimals_are_written_with_all_digits() -> None:
    values = [Decimal("0.0000000001"), Decimal("-1234567890.5"), Decimal(0)]
    assert converted("DECIMAL(20, 10)", "STRING", values, pa.decimal128(20, 10)) == [
        *("0.0000000001", "-1234567890.5000000000", "0.0000000000"),
    ]


@pytest.mark.parametrize(
    ("own", "current", "value", "kind", "problem"),
    [
        ("INT", "DECIMAL(5, 2)", 1000, pa.int32(), r"too many digits, expected DECIMAL\(5, 2\)"),
        (
            "DECIMAL(5, 2)",
            "DECIMAL(3, 1)",
            Decimal("99.95"),
            pa.decimal128(5, 2),
            "too many digits",
        ),
        ("DECIMAL(38, 0)", "INT", Decimal(2**64), pa.decimal128(38, 0), "BIGINT|Integer|int64"),
        ("TIMESTAMP(6)", "STRING", 2**58, pa.timestamp("us"), "years 1 to 9999"),
        ("BIGINT", "TIMESTAMP(9)", 2**40, pa.int64(), "out of bounds"),
        ("STRING", "INT", "0x10", pa.string(), "with '0x10', expected INT"),
        ("STRING", "TINYINT", "300", pa.string(), "300"),
        ("STRING", "BOOLEAN", "on", pa.string(), "with 'on', expected BOOLEAN"),
    ],
    ids=str,
)
def test_a_value_that_java_does_not_read_either_is_an_error(
    own: str, current: str, value: Any, kind: pa.DataType, problem: str
) -> None:
    with pytest.raises(UnsupportedError, match=problem):
        converted(own, current, [value], kind)


@pytest.mark.parametrize(
    ("own", "current"),
    [
        ("DOUBLE", "STRING"),  # 1.0E10, and 1e+10
        ("STRING", "CHAR(3)"),  # Paimon pads it
        ("BYTES", "BINARY(3)"),
        ("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),  # in the zone of the reader
        ("TIME(3)", "STRING"),
        ("INT", {"type": "ARRAY", "element": "INT"}),
    ],
    ids=str,
)
def test_a_change_that_arrow_makes_otherwise_is_refused(own: str, current: Json) -> None:
    with pytest.raises(UnsupportedError, match="such a change is not read"):
        converted(own, current, [None], DataType.parse(own).to_arrow())


def test_statistics_do_not_lose_a_row_of_a_column_that_was_narrowed(tmp_path: Path) -> None:
    table = create(tmp_path, {"id": "INT", "v": "DOUBLE"})
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "v": [0.1, None]}))
    change_type(table, "v", "FLOAT")
    assert table.scan("v = CAST(0.1 AS FLOAT)").to_arrow().to_pydict()["id"] == [1]


def test_statistics_and_indexes_of_the_older_type_leave_out_nothing(tmp_path: Path) -> None:
    options = {"file-index.bitmap.columns": "v"}
    table = create(tmp_path, {"id": "INT", "v": "DOUBLE"}, options=options)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "v": [11.1, 3e9]}))
    change_type(table, "v", "INT")
    for where, ids in (("v = 11", [1]), ("v <= 11", [1]), ("v = 2147483647", [2])):
        assert table.scan(where).to_arrow().to_pydict()["id"] == ids


def test_a_value_that_is_not_cast_is_an_error_that_names_file_and_column(tmp_path: Path) -> None:
    table = create(tmp_path, {"id": "INT", "v": "VARCHAR(10)"})
    table.append(pa.table({"id": pa.array([1], pa.int32()), "v": ["abcdefgh"]}))
    change_type(table, "v", "INT")
    assert table.scan(columns=["id"]).to_arrow().num_rows == 1
    expected = (
        r"^bucket-0/data-.*\.parquet: column v: found VARCHAR\(10\) with 'abcdefgh', expected INT"
    )
    with pytest.raises(UnsupportedError, match=expected):
        table.scan("v = 5").to_arrow()
