"""A layout is stored as plain arrays and bytes, and rows are read with it without the footer."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from alcid.datafiles.parquet import (
    ColumnLayout,
    Field,
    FileLayout,
    LeafLayout,
    read_layout,
    read_rows,
    restore_field,
)
from alcid.errors import ColumnError, FormatError
from tests.datafiles.parquet.kit import (
    NESTED,
    PAGED,
    ROWS,
    assert_same,
    counted,
    plain_read,
    table_of,
    written,
)

DATA = written(table_of(nested=True), **PAGED, row_group_size=300)
POSITIONS = [0, 299, 300, 512, 999]


def rebuilt(layout: FileLayout) -> FileLayout:
    """The layout rebuilt from arrays, bytes and text alone."""
    columns: list[ColumnLayout] = []
    for column in layout.columns:
        field = column.field
        kept = [bytes(element) for element in field.elements]
        restored = restore_field(kept, bytes(field.arrow), bytes(field.created_by), file="kept")
        leaves = tuple(
            LeafLayout(
                np.frombuffer(leaf.groups.tobytes(), np.int64).reshape(4, -1),
                np.frombuffer(leaf.pieces.tobytes(), np.int64).reshape(3, -1),
            )
            for leaf in column.leaves
        )
        columns.append(ColumnLayout(restored, leaves, column.whole))
    return FileLayout(np.array(layout.starts.tolist()), tuple(columns), "kept")


def test_a_layout_survives_as_plain_arrays_and_bytes() -> None:
    layout = read_layout(counted(DATA))
    kept = rebuilt(layout)
    assert [column.field for column in kept.columns] == [column.field for column in layout.columns]
    source = counted(DATA)
    table = read_rows(source, POSITIONS, layout=kept)
    assert_same(table, plain_read(DATA, POSITIONS))
    assert max(offset + length for offset, length in source.take()) <= layout.end < len(DATA)


def test_a_layout_can_be_sent_to_another_process() -> None:
    layout = pickle.loads(pickle.dumps(read_layout(counted(DATA))))
    assert_same(read_rows(counted(DATA), POSITIONS, layout=layout), plain_read(DATA, POSITIONS))


def test_a_layout_says_what_is_where() -> None:
    layout = read_layout(counted(DATA))
    assert layout.rows == ROWS
    assert layout.starts.tolist() == [0, 300, 600, 900, 1000]
    assert layout.names == tuple(table_of(nested=True).column_names)
    number = layout.column("int64")
    assert (number.whole, number.field.nested) == ("", False)
    assert number.leaves[0].pieces[2].tolist() == list(range(0, ROWS, 10))
    assert number.leaves[0].groups[:2].tolist() == [[1] * 4, [300, 300, 300, 100]]  # snappy
    struct = layout.column("struct")
    assert (struct.whole, len(struct.leaves)) == ("nested", 2)
    assert [leaf.path for leaf in struct.field.leaves] == [
        (b"struct", b"a"),
        (b"struct", b"b", b"list", b"element"),
    ]
    assert {name for name in layout.names if layout.column(name).whole} == set(NESTED)


def test_a_layout_of_some_columns_has_only_those() -> None:
    layout = read_layout(counted(DATA), ["string", "bool"])
    assert layout.names == ("bool", "string")
    table = read_rows(counted(DATA), [5], ["string"], layout=layout)
    assert_same(table, plain_read(DATA, [5], ["string"]))
    with pytest.raises(ColumnError, match="column int8: found no such column"):
        read_rows(counted(DATA), [5], ["int8"], layout=layout)


def test_equal_columns_of_two_files_are_equal_fields() -> None:
    table = pa.table({"a": [1], "b": ["x"]})
    first, two = (
        read_layout(counted(written(table, compression=codec))) for codec in ("none", "zstd")
    )
    fields: list[tuple[Field, ...]] = [
        tuple(column.field for column in layout.columns) for layout in (first, two)
    ]
    assert fields[0] == fields[1]
    assert hash(fields[0]) == hash(fields[1])
    assert fields[0][0] != fields[0][1]


def test_elements_of_two_columns_are_no_field() -> None:
    layout = read_layout(counted(written(pa.table({"a": [1], "b": ["x"]}))))
    elements = [element for column in layout.columns for element in column.field.elements]
    with pytest.raises(FormatError, match="kept: schema elements left over: found 2, expected 1"):
        restore_field(elements, file="kept")
    with pytest.raises(FormatError, match="kept: schema elements are missing"):
        restore_field([], file="kept")
