"""Files that were written before the type of a column was changed."""

from __future__ import annotations

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
from alcid.paimon_metadata.schema import Field, TableSchema
from alcid.tables.conversions import convert
from alcid.types import DataType
from tests.tables.paimon.small_tables import create

Json = Any


def field(kind: Json) -> Field:
    """A column of a type, as a schema file has it."""
    described = {"id": 0, "name": "v", "type": kind}
    empty = {"partitionKeys": [], "primaryKeys": [], "options": {}, "highestFieldId": 0, "id": 0}
    return TableSchema.parse(json.dumps({**empty, "fields": [described]}).encode()).fields[0]


def row(*fields: tuple[int, str, Json]) -> Json:
    """A ROW of fields with ids."""
    described = [{"id": number, "name": name, "type": kind} for number, name, kind in fields]
    return {"type": "ROW", "fields": described}


def converted(own: Json, wanted: Json, values: Sequence[Any], kind: pa.DataType) -> list[Any]:
    """Values of one type as those of another, in two chunks of which one is a slice."""
    found = convert(field(own), field(wanted))
    assert found is not None
    whole = pa.array([None, *values], kind)
    made = pickle.loads(pickle.dumps(found))(pa.chunked_array([whole.slice(1), whole.slice(0, 1)]))
    made.validate(full=True)
    found_values: list[Any] = made.to_pylist()
    assert found_values[-1] is None
    return found_values[:-1]


def change_type(table: PaimonTable, column: str, kind: str) -> None:
    """Change the type of a column, as ALTER TABLE does."""
    described = json.loads(table.folder.latest_schema().to_json())
    described["id"] += 1
    for one in described["fields"]:
        if one["name"] == column:
            one["type"] = kind
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
    found = table.scan("v = 'abcd'").explain()
    left = {stage.name: stage.after.files for stage in found.stages}
    assert left["statistics"] == 0
    assert table.scan("v = 'abc'").to_arrow().to_pydict() == {"id": [1], "v": ["abc"]}


def test_fields_of_a_row_go_by_their_ids() -> None:
    own = row((1, "x", "INT"), (2, "y", "STRING"))
    wanted = row((2, "x", "STRING"), (5, "y", "INT"), (1, "z", "BIGINT"))
    values = [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]
    kind = pa.struct([("x", pa.int32()), ("y", pa.string())])
    assert converted(own, wanted, values, kind) == [
        {"x": "a", "y": None, "z": 1},
        None,
        {"x": "b", "y": None, "z": None},
    ]


def test_rows_within_arrays_and_maps_go_by_ids_too() -> None:
    def nested(inner: Json) -> Json:
        array = {"type": "ARRAY", "element": inner}
        return {"type": "MAP", "key": "STRING NOT NULL", "value": array}

    own, wanted = nested(row((1, "x", "INT"))), nested(row((2, "x", "INT"), (1, "y", "BIGINT")))
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int32())])))
    values = [[("a", [{"x": 7}, None]), ("b", None)], [], None, [("c", [{"x": None}])]]
    assert converted(own, wanted, values, kind) == [
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
def test_a_text_is_not_cut_off(own: str) -> None:
    value, kind = (1234, pa.int32()) if own == "INT" else ("äöüß", pa.string())
    with pytest.raises(UnsupportedError, match=r"value of length 4, expected VARCHAR\(3\)"):
        converted(own, "VARCHAR(3)", [value], kind)


def test_characters_are_counted_and_not_bytes() -> None:
    assert converted("STRING", "VARCHAR(3)", ["äöü", ""], pa.string()) == ["äöü", ""]


def test_bytes_are_not_cut_off() -> None:
    assert converted("BYTES", "VARBINARY(3)", [b"abc"], pa.binary()) == [b"abc"]
    with pytest.raises(UnsupportedError, match=r"value of length 4, expected VARBINARY\(3\)"):
        converted("BYTES", "VARBINARY(3)", [b"abcd"], pa.binary())


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        ("BIGINT", "TIMESTAMP(3)"),  # Paimon takes seconds, and Arrow milliseconds
        ("TIMESTAMP(6)", "BIGINT"),
        ("DOUBLE", "STRING"),  # 1.0E10, and 1e+10
        ("DECIMAL(20, 10)", "STRING"),  # 0.0000000001, and 1E-10
        ("STRING", "CHAR(3)"),  # Paimon pads it
        ("BYTES", "BINARY(3)"),
        ("TIMESTAMP(6)", "DATE"),  # Paimon moves moments before 1970 by a day
        ("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),  # by the zone of the reader
        ("TIME(3)", "STRING"),
        ("INT", {"type": "ARRAY", "element": "INT"}),
    ],
    ids=str,
)
def test_a_change_that_arrow_makes_otherwise_is_refused(own: str, wanted: Json) -> None:
    with pytest.raises(UnsupportedError, match="such a change is not read"):
        converted(own, wanted, [None], DataType.parse(own).to_arrow())


def test_statistics_do_not_lose_a_row_of_a_column_that_was_narrowed(tmp_path: Path) -> None:
    table = create(tmp_path, {"id": "INT", "v": "DOUBLE"})
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "v": [0.1, None]}))
    change_type(table, "v", "FLOAT")
    assert table.scan("v = CAST(0.1 AS FLOAT)").to_arrow().to_pydict()["id"] == [1]


def test_a_text_that_is_too_long_is_an_error_that_names_file_and_column(tmp_path: Path) -> None:
    table = create(tmp_path, {"id": "INT", "v": "VARCHAR(10)"})
    table.append(pa.table({"id": pa.array([1], pa.int32()), "v": ["abcdefgh"]}))
    change_type(table, "v", "VARCHAR(3)")
    assert table.scan(columns=["id"]).to_arrow().num_rows == 1
    expected = r"^bucket-0/data-.*\.parquet: column v: found VARCHAR\(10\) with a value of length 8"
    with pytest.raises(UnsupportedError, match=expected):
        table.scan("v = 'abc'").to_arrow()
