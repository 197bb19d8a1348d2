from __future__ import annotations

from typing import Any

import pytest

from alcid import ColumnError, FormatError
from alcid.tables.iceberg.metadata.schema import Field, Schema
from alcid.types import DataType


def column(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **more}


def schema(*columns: dict[str, Any]) -> Schema:
    return Schema.from_json({"type": "struct", "schema-id": 4, "fields": list(columns)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boolean", "BOOLEAN"),
        ("int", "INT"),
        ("long", "BIGINT"),
        ("float", "FLOAT"),
        ("double", "DOUBLE"),
        ("decimal(10, 2)", "DECIMAL(10, 2)"),
        ("decimal(38,38)", "DECIMAL(38, 38)"),
        ("date", "DATE"),
        ("timestamp", "TIMESTAMP(6)"),
        ("timestamptz", "TIMESTAMP_LTZ(6)"),
        ("string", "STRING"),
        ("binary", "BYTES"),
        ("fixed[16]", "BYTES"),
    ],
)
def test_types_that_are_read(text: str, expected: str) -> None:
    parsed = schema(column(1, "a", text)).field("a")
    assert parsed == Field(1, "a", text, DataType.parse(expected))


@pytest.mark.parametrize(
    "text", ["uuid", "time", "timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry"]
)
def test_types_that_are_not_read(text: str) -> None:
    parsed = schema(column(1, "a", text)).field("a")
    assert parsed == Field(1, "a", text, None, problem=f"column a: {text} is not read natively")


def test_an_impossible_decimal() -> None:
    parsed = schema(column(1, "a", "decimal(39, 2)")).field("a")
    assert parsed.data_type is None
    assert parsed.problem == "column a: DECIMAL(39, 2): precision must be 1 to 38"


def test_nested_types_have_the_ids_of_fields_within() -> None:
    point = {"type": "struct", "fields": [column(6, "x", "int"), column(7, "y", "long")]}
    points = {"type": "list", "element-id": 5, "element-required": True, "element": point}
    by_name = {
        "type": "map",
        "key-id": 3,
        "key": "string",
        "value-id": 4,
        "value-required": False,
        "value": points,
    }
    owner = {"type": "struct", "fields": [column(2, "m", by_name), column(8, "n", "date")]}
    parsed = schema(column(1, "s", owner, required=True)).field("s")
    kind = DataType.parse("ROW<m MAP<STRING, ARRAY<ROW<x INT, y BIGINT>>>, n DATE>")
    text = "struct<m: map<string, list<struct<x: int, y: long>>>, n: date>"
    assert parsed == Field(1, "s", text, kind, (2, 6, 7, 8), required=True)


def test_the_key_of_a_map_comes_before_its_value() -> None:
    struct = {"type": "struct", "fields": [column(4, "k", "int")]}
    other = {"type": "struct", "fields": [column(5, "v", "int")]}
    kind = {"type": "map", "key": struct, "value": other}
    assert schema(column(1, "m", kind)).field("m").inner_ids == (4, 5)


def test_one_type_within_that_is_not_read_hinders_the_whole_column() -> None:
    struct = {"type": "struct", "fields": [column(2, "x", "int"), column(3, "u", "uuid")]}
    parsed = schema(column(1, "a", {"type": "list", "element": struct})).field("a")
    assert parsed.data_type is None
    assert parsed.inner_ids == (2, 3)
    assert parsed.problem == "column a.element.u: uuid is not read natively"


def test_a_default_within_a_column_hinders_it() -> None:
    struct = {"type": "struct", "fields": [column(2, "x", "int", **{"initial-default": 5})]}
    parsed = schema(column(1, "a", struct)).field("a")
    problem = "column a.x: an initial default within a column is not read natively"
    assert parsed == Field(1, "a", "struct<x: int>", None, (2,), problem=problem)


def test_the_value_of_rows_before_a_column_was_there() -> None:
    parsed = schema(column(1, "a", "int", **{"initial-default": 0, "write-default": 5}))
    assert parsed.field("a").initial_default == 0
    assert schema(column(1, "a", "int")).field("a").initial_default is None


def test_columns_are_found_by_id_and_by_name() -> None:
    parsed = schema(column(7, "b", "int"), column(3, "a", "string"))
    assert parsed.id == 4
    assert parsed.names == ("b", "a")
    assert parsed.by_id[3] is parsed.by_name["a"] is parsed.field("a")
    with pytest.raises(ColumnError, match=r"^no column A, found b, a$"):
        parsed.field("A")


def test_the_schema_of_the_oldest_tables_has_no_number() -> None:
    assert Schema.from_json({"type": "struct", "fields": []}) == Schema(0, ())


DEEP: Any = "int"
for _ in range(70):
    DEEP = {"type": "list", "element": DEEP}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([column(1, "a", "int"), column(1, "b", "int")], "field id 1 occurs twice in a schema"),
        ([column(1, "a", "int"), column(2, "a", "int")], "name a occurs twice in a schema"),
        ([column(True, "a", "int")], "id: found True, expected a whole number"),
        ([column(1 << 63, "a", "int")], "id: found 9223372036854775808, expected a whole number"),
        ([{"id": 1, "name": "a", "type": "int"}], "required is missing"),
        ([{"id": 1, "required": True, "type": "int"}], "name is missing"),
        ([column(1, "a", 3)], "type: found 3, expected an object"),
        ([column(1, "a", None)], "type is missing"),
        ([column(1, "a", {"type": "set"})], "column a: type: found 'set', expected struct"),
        ([column(1, "a", {"type": "list"})], "element is missing"),
        ([column(1, "a", {"type": "struct", "fields": [7]})], "fields: found 7, expected an obj"),
        ([column(1, "a", DEEP)], "more than 64 nested types"),
        ([7], "fields: found 7, expected an object"),
    ],
    ids=str,
)
def test_damage(columns: list[Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        Schema.from_json({"schema-id": 0, "fields": columns}, file="metadata of t")
    assert str(caught.value).startswith("metadata of t: ")
    assert message in str(caught.value)


def test_no_schema_at_all() -> None:
    with pytest.raises(FormatError, match="schema: found None, expected an object"):
        Schema.from_json(None)  # type: ignore[arg-type]
