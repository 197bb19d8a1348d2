from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alcid import ColumnError, FormatError, UnsupportedError
from alcid.tables.paimon.metadata.statistics import (
    EMPTY,
    pack_rows,
    salvage_packed,
    unpack_column,
    unpack_rows,
)
from alcid.types import DataType

TYPES = [DataType("INT"), DataType.parse("STRING")]
COLUMNS = [pa.array([-1, None], pa.int32()), pa.array(["a longer text", "fig"])]
PACKED = [
    bytes.fromhex(
        "00000002"
        "0000000000000000 ffffffff00000000 0d00000018000000"
        "61206c6f6e67657220746578740000 00"
    ),
    bytes.fromhex("00000002 0001000000000000 0000000000000000 6669670000000083"),
]


def test_rows_are_packed_behind_the_number_of_their_columns() -> None:
    assert pack_rows(COLUMNS, TYPES) == PACKED


@pytest.mark.parametrize("form", [list, tuple, lambda rows: pa.array(rows, pa.binary())])
def test_rows_are_unpacked(form: Any) -> None:
    assert unpack_rows(form(PACKED), TYPES) == COLUMNS
    assert unpack_column(form(PACKED), 1, TYPES) == COLUMNS[1]
    values, damaged = salvage_packed(form(PACKED), 1, TYPES)
    assert values == COLUMNS[1]
    assert damaged.tolist() == [False, False]


def test_the_row_of_a_table_without_partitions() -> None:
    no_columns = pa.table({"a": [1, 2]}).select([])
    assert pack_rows(no_columns, []) == [EMPTY, EMPTY] == [bytes(12)] * 2
    assert unpack_rows([EMPTY, EMPTY], []) == []


def test_rows_that_are_missing_have_no_values() -> None:
    assert unpack_column([None, PACKED[0], None], 1, TYPES).to_pylist() == [
        None,
        "a longer text",
        None,
    ]
    values, damaged = salvage_packed([None, PACKED[0]], 1, TYPES)
    assert (values.to_pylist(), damaged.tolist()) == ([None, "a longer text"], [False, False])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (EMPTY, "row 1: number of columns: found 0, expected 2"),
        (b"\x80\0\0\2" + PACKED[0][4:], "row 1: number of columns: found 2147483650, expected 2"),
        (b"", "row 1: bytes: found 0, expected at least 12"),
        (b"\0\0\0", "row 1: bytes: found 3, expected at least 12"),
        (PACKED[0][:11], "row 1: bytes: found 11, expected at least 12"),
        (PACKED[0][:27], "row 1, column 0, INT: a row too short at offset 8: found 23, ... 24"),
        (PACKED[0][:-4], "row 1, column 1, STRING: the end of its bytes at offset 16: ... 36"),
    ],
    ids=["no columns", "most columns", "nothing", "no head", "no null bits", "no slots", "no end"],
)
def test_a_row_that_is_not_one_of_these_columns(row: bytes, problem: str) -> None:
    begin, _, end = problem.partition("...")
    rows = [PACKED[1], row, PACKED[0]]
    with pytest.raises(FormatError) as caught:
        unpack_rows(rows, TYPES, file="manifest-1")
    assert str(caught.value).startswith(f"manifest-1: {begin}")
    assert str(caught.value).endswith(end)
    with pytest.raises(FormatError):
        unpack_column(rows, 1, TYPES, file="manifest-1")
    values, damaged = salvage_packed(rows, 1, TYPES)
    assert values.to_pylist() == ["fig", None, "a longer text"]
    assert damaged.tolist() == [False, True, False]


def test_a_row_of_no_columns_must_be_whole() -> None:
    with pytest.raises(FormatError, match="bytes: found 11, expected at least 12"):
        unpack_rows([bytes(11)], [])


def test_columns_that_cannot_be_had() -> None:
    types = [*TYPES, DataType.parse("MAP<INT, INT>")]
    with pytest.raises(UnsupportedError, match="column 2: MAP<INT, INT> has no order"):
        unpack_column([], 2, types)
    with pytest.raises(ColumnError, match="column 3: the rows have 3"):
        salvage_packed([], 3, types)
