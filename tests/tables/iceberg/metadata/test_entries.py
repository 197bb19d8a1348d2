from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alcid import FormatError
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES, POSITION_DELETES, Entries

COLUMNS = [
    *("sequence_number", "content", "file_path", "file_format", "spec_id", "record_count"),
    *("file_size_in_bytes", "partition", "column_sizes", "value_counts", "null_value_counts"),
    *("nan_value_counts", "lower_bounds", "upper_bounds", "key_metadata", "split_offsets"),
    *("equality_ids", "sort_order_id", "first_row_id", "referenced_data_file", "content_offset"),
    "content_size_in_bytes",
]


def given_entries(count: int = 4, **changes: Any) -> pa.Table:
    """As Spark returns them: the contents of maps and lists are not nullable."""
    bounds = pa.map_(pa.int32(), pa.field("value", pa.binary(), nullable=False))
    columns = {
        "sequence_number": pa.array([4, 3, 2, 1]),
        "content": pa.array([0, 1, 2, 0], pa.int32()),
        "file_path": pa.array(["b", "d.puffin", "e", "a"]),
        "file_format": pa.array(["PARQUET", "PUFFIN", "PARQUET", "PARQUET"]),
        "spec_id": pa.array([0, 0, 0, 0], pa.int32()),
        "partition": pa.array([{"p": 5}, {"p": 5}, {"p": None}, {"p": 6}]),
        "record_count": pa.array([10, 2, 3, 20]),
        "file_size_in_bytes": pa.array([100, 20, 30, 200]),
        "lower_bounds": pa.array([[(1, b"x")], None, [], [(1, b"y"), (2, b"z")]], bounds),
        "equality_ids": pa.array(
            [None, None, [1, 2], None],
            pa.list_(pa.field("element", pa.int32(), nullable=False)),
        ),
        "content_offset": pa.array([None, 4, None, None], pa.int64()),
    }
    return pa.table(columns | changes).slice(0, count)


def test_files_are_parted_and_data_files_are_in_order() -> None:
    entries = Entries.of(given_entries())
    assert entries.data["file_path"].to_pylist() == ["a", "b"]
    assert entries.data["record_count"].to_pylist() == [20, 10]
    assert entries.data["lower_bounds"].to_pylist() == [[(1, b"y"), (2, b"z")], [(1, b"x")]]
    assert entries.data["partition"].to_pylist() == [{"p": 6}, {"p": 5}]
    assert entries.deletes["content"].to_pylist() == [POSITION_DELETES, EQUALITY_DELETES]
    assert entries.deletes["equality_ids"].to_pylist() == [None, [1, 2]]
    assert entries.deletes["content_offset"].to_pylist() == [4, None]


@pytest.mark.parametrize("count", [4, 1, 0])
def test_every_column_is_there_in_one_chunk(count: int) -> None:
    whole = given_entries(count)
    table = pa.concat_tables([whole.slice(0, 2), whole.slice(2)]) if count > 2 else whole
    entries = Entries.of(table)
    for part in (entries.data, entries.deletes):
        assert part.column_names == COLUMNS
        assert {column.num_chunks for column in part.columns} == {1}
    assert len(entries.data) + len(entries.deletes) == count
    assert entries.data["upper_bounds"].null_count == len(entries.data)


def test_a_table_without_rows_and_chunks() -> None:
    empty = given_entries().schema.empty_table()
    entries = Entries.of(
        pa.table([pa.chunked_array([], column.type) for column in empty], empty.schema)
    )
    assert len(entries.data) == len(entries.deletes) == 0
    assert {column.num_chunks for column in entries.data.columns} == {1}


def test_no_files() -> None:
    entries, expected = Entries.none(), Entries.of(given_entries(0))
    for part in (entries.data, entries.deletes):
        assert part.drop_columns("partition").equals(expected.data.drop_columns("partition"))
        assert {column.num_chunks for column in part.columns} == {1}


def test_an_unpartitioned_table_has_partitions_without_values() -> None:
    entries = Entries.of(given_entries().drop_columns("partition"))
    assert entries.data["partition"].to_pylist() == [{}, {}]
    assert entries.deletes["partition"].to_pylist() == [{}, {}]


def test_wide_texts_become_narrow() -> None:
    wide = pa.array(["b", "d", "e", "a"], pa.large_string())
    entries = Entries.of(given_entries(file_path=wide))
    assert entries.data.schema.field("file_path").type == pa.string()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": pa.array([0, 3, 0, 0])}, "content: found 3, expected 0, 1 or 2"),
        ({"content": pa.array([0, -1, 0, 0])}, "content: found -1, expected 0, 1 or 2"),
        ({"record_count": pa.array([0, -1, 0, 0])}, "record_count: found -1, expected 0 or more"),
        ({"content_offset": pa.array([-4, 0, 0, 0])}, "content_offset: found -4, expected 0 or"),
        ({"file_path": pa.array(["a", None, "b", "c"])}, "file_path: found null, expected a val"),
        ({"sequence_number": pa.array([1, 1, None, 1])}, "sequence_number: found null, expected"),
        ({"spec_id": pa.array(["x"] * 4)}, "spec_id: found string, expected int32"),
        ({"lower_bounds": pa.array([1] * 4)}, "lower_bounds: found int64, expected map<int32, "),
        ({"partition": pa.array([1] * 4)}, "partition: found int64, expected a struct"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damage(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        Entries.of(given_entries(**changes), name="lake.db.t")
    assert str(caught.value).startswith(f"entries of lake.db.t: {message}")


def test_a_column_that_must_be_there() -> None:
    with pytest.raises(FormatError, match=r"^entries of t: column record_count is missing$"):
        Entries.of(given_entries().drop_columns("record_count"), name="t")
