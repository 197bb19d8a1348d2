"""Given columns fitted to a table: by name, widened, null if they are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from alcid.config import Settings, using
from alcid.errors import ColumnError, UnsupportedError
from alcid.tables.schema import fit_columns


def test_a_table_without_files_takes_what_is_given() -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("dt", pa.date32()),
            ("tags", pa.list_(pa.field("x", pa.large_string(), nullable=False))),
        ]
    )
    fitted = fit_columns(schema, None, ["dt"])
    expected = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    assert fitted.schema == expected
    assert (fitted.sources, fitted.partitions, fitted.partition_sources) == ((0, 2), ("dt",), (1,))


def test_columns_go_by_name_in_the_order_and_spelling_of_the_table() -> None:
    schema = pa.schema([("NAME", pa.string()), ("DT", pa.int32()), ("ID", pa.int32())])
    table = {"id": pa.int64(), "gone": pa.date32(), "name": pa.large_string()}
    fitted = fit_columns(schema, table, ["dt"])
    assert fitted.schema == pa.schema(
        [("id", pa.int64()), ("gone", pa.date32()), ("name", pa.string())]
    )
    assert (fitted.sources, fitted.partition_sources) == ((2, None, 0), (1,))
    rows = fitted.rows([pa.array([1, None], pa.int32()), pa.array(["a", "b"])])
    assert rows.to_pydict() == {"id": [1, None], "gone": [None, None], "name": ["a", "b"]}
    assert rows.schema == fitted.schema


def test_the_case_rule_of_the_session_counts() -> None:
    schema, table = pa.schema([("ID", pa.int64())]), {"id": pa.int64()}
    assert fit_columns(schema, table, []).sources == (0,)
    with using(Settings("UTC", case_sensitive=True)), pytest.raises(ColumnError, match="column ID"):
        fit_columns(schema, table, [])


STRUCT = pa.struct([("a", pa.int32())])


@pytest.mark.parametrize(
    ("arrow_type", "table_type"),
    [
        (pa.int8(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 4)),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Vienna")),
        (pa.list_(pa.int32()), pa.list_(pa.field("x", pa.int64(), nullable=False))),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int16())),
        (pa.struct([("a", pa.int8())]), STRUCT),
        (pa.null(), pa.int32()),
    ],
    ids=str,
)
def test_narrower_types_are_widened(arrow_type: Any, table_type: Any) -> None:
    fitted = fit_columns(pa.schema([("c", arrow_type)]), {"c": table_type}, [])
    values = fitted.rows([pa.nulls(3, arrow_type)])["c"]
    assert (values.type, values.null_count) == (fitted.schema.field("c").type, 3)


@pytest.mark.parametrize(
    ("arrow_type", "table_type"),
    [
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.string()),
        (pa.int32(), pa.float64()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(9, 4), pa.decimal128(9, 2)),
        (pa.decimal128(10, 2), pa.decimal128(9, 2)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.int64(), pa.uint32()),
        (pa.list_(pa.int64()), pa.list_(pa.int32())),
        (pa.struct([("b", pa.int32())]), STRUCT),
        (STRUCT, pa.int32()),
    ],
    ids=str,
)
def test_types_that_could_lose_values_are_refused(arrow_type: Any, table_type: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"column c: .* does not go into"):
        fit_columns(pa.schema([("c", arrow_type)]), {"c": table_type}, [])


def test_a_value_that_does_not_fit_names_its_column() -> None:
    arrow_type = pa.timestamp("us", "UTC")
    fitted = fit_columns(pa.schema([("at", arrow_type)]), {"at": pa.timestamp("ns", "UTC")}, [])
    with pytest.raises(UnsupportedError, match="column at: "):
        fitted.rows([pa.array([2**62], pa.int64()).cast(arrow_type)])


@pytest.mark.parametrize(
    ("names", "table", "partitions", "problem"),
    [
        (["a", "A"], None, [], "fits more than one"),
        (["a", "idd"], ["a", "id"], [], "column idd: not in the table; did you mean id"),
        (["a"], None, ["b"], "column b: not in the table"),
        (["a", "b"], None, ["a", "A"], "a column twice"),
        (["a"], None, ["a"], "no column is left"),
        (["p"], ["a"], ["p"], "no column is left"),
    ],
)
def test_impossible_columns(
    names: list[str], table: list[str] | None, partitions: list[str], problem: str
) -> None:
    types = None if table is None else dict.fromkeys(table, pa.int64())
    with pytest.raises(ColumnError, match=problem):
        fit_columns(pa.schema([(name, pa.int64()) for name in names]), types, partitions)


def test_a_column_of_unknown_type_is_left_out_until_it_is_known() -> None:
    table = {"id": pa.int64(), "void": pa.null()}
    fitted = fit_columns(pa.schema([("id", pa.int64())]), table, [])
    assert fitted.schema.names == ["id"]
    other = fit_columns(pa.schema([("id", pa.int64()), ("void", pa.string())]), table, [])
    assert other.schema.field("void").type == pa.string()
    with pytest.raises(UnsupportedError, match="column void"):
        fit_columns(pa.schema([("void", pa.null())]), None, [])


@pytest.mark.parametrize(
    ("arrow_type", "table_type"),
    [
        (pa.timestamp("ns"), pa.timestamp("ms")),
        (pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("s", "UTC")),
        (pa.time64("ns"), pa.time32("ms")),
        (pa.list_(pa.timestamp("us")), pa.list_(pa.timestamp("ms"))),
        (pa.binary(3), pa.binary()),
    ],
    ids=str,
)
def test_with_any_unit_the_values_decide(arrow_type: Any, table_type: Any) -> None:
    fitted = fit_columns(pa.schema([("c", arrow_type)]), {"c": table_type}, [], any_unit=True)
    assert fitted.rows([pa.nulls(2, arrow_type)])["c"].null_count == 2


def test_with_any_unit_instants_are_still_no_times_of_a_clock() -> None:
    for arrow_type in (pa.timestamp("us", "UTC"), pa.date32(), pa.time32("ms")):
        schema, types = pa.schema([("c", arrow_type)]), {"c": pa.timestamp("us")}
        with pytest.raises(UnsupportedError, match="does not go into"):
            fit_columns(schema, types, [], any_unit=True)


def test_a_value_that_is_finer_than_the_unit_of_the_table_is_refused() -> None:
    arrow_type = pa.timestamp("us")
    fitted = fit_columns(
        pa.schema([("at", arrow_type)]), {"at": pa.timestamp("ms")}, [], any_unit=True
    )
    rows = fitted.rows([pa.array([5000], arrow_type)])
    assert rows["at"].cast(pa.int64()).to_pylist() == [5]
    with pytest.raises(UnsupportedError, match=r"column at: .* would lose data"):
        fitted.rows([pa.array([5001], arrow_type)])


def test_null_is_refused_where_the_table_has_none() -> None:
    fitted = fit_columns(pa.schema([("id", pa.int64())]), {"id": pa.int64()}, [])
    strict = replace(fitted, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    assert strict.rows([pa.array([1])]).schema == strict.schema
    with pytest.raises(UnsupportedError, match="column id: found null, expected NOT NULL"):
        strict.rows([pa.array([1, None])])
