"""One schema for several files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alcid import ColumnError, DataType, UnsupportedError
from alcid.scan import Column
from alcid.tables.schema import merge_schemas


def column(name: str, arrow_type: Any) -> Column:
    return Column(name, arrow_type, DataType.from_arrow(arrow_type))


def merged(first: Any, other: Any) -> Any:
    schemas = [("one.parquet", [column("c", first)]), ("two.parquet", [column("c", other)])]
    (merged_column,) = merge_schemas(schemas)
    assert merged_column.data_type == DataType.from_arrow(merged_column.arrow_type)
    return merged_column.arrow_type


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.uint8(), pa.uint32(), pa.uint32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(12, 6), pa.decimal128(13, 6)),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
        (pa.binary(), pa.large_binary(), pa.large_binary()),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (
            pa.list_(pa.field("x", pa.struct([pa.field("a", pa.int8(), nullable=False)]))),
            pa.list_(pa.field("x", pa.struct([pa.field("a", pa.int8())]), nullable=False)),
            pa.list_(pa.struct([pa.field("a", pa.int8())])),
        ),
        (
            pa.map_(pa.string(), pa.field("v", pa.int8(), nullable=False)),
            pa.map_(pa.string(), pa.int8()),
            pa.map_(pa.string(), pa.int8()),
        ),
    ],
    ids=str,
)
def test_types_without_loss_become_the_wider(first: Any, other: Any, expected: Any) -> None:
    assert merged(first, other) == expected
    assert merged(other, first) == expected


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.int32(), pa.uint32()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.decimal128(38, 0), pa.decimal128(38, 10)),
        (pa.date32(), pa.timestamp("us")),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_other_types_are_refused_with_both_files_named(first: Any, other: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"two\.parquet: column c: .* one\.parquet"):
        merged(first, other)


def test_a_column_of_nulls_takes_the_type_of_other_files() -> None:
    nulls, numbers = Column("c", pa.null(), problem="no type"), column("c", pa.int32())
    for first, other in ((nulls, numbers), (numbers, nulls)):
        assert merge_schemas([("a", [first]), ("b", [other])]) == [numbers]


def test_columns_come_in_the_order_in_which_files_bring_them() -> None:
    columns = merge_schemas(
        [
            ("a", [column("b", pa.int32()), column("a", pa.string())]),
            ("b", [column("new", pa.int8()), column("B", pa.int64())]),
        ]
    )
    assert [(column.name, str(column.arrow_type)) for column in columns] == [
        ("b", "int64"),
        ("a", "string"),
        ("new", "int8"),
    ]


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ColumnError, match=r"a\.parquet: column id"):
        merge_schemas([("a.parquet", [column("id", pa.int8()), column("ID", pa.int8())])])


def test_char_of_two_lengths_is_text_of_any_length() -> None:
    schemas = [
        (f"{length}.parquet", [Column("c", pa.string(), DataType.parse(f"CHAR({length})"))])
        for length in (3, 5)
    ]
    (merged_column,) = merge_schemas(schemas)
    assert str(merged_column.data_type) == "STRING"
