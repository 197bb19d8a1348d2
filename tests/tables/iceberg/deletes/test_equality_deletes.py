"""Equality deletes: the rows of a data file that have the values of a deleted one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.iceberg.deletes.files import EqualityDeletes, equal_rows
from alcid.tables.iceberg.deletes.plan import DeletePlan
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Field
from alcid.types import DataType
from tests.tables.iceberg.deletes.delete_files import data_file, deletes_of, entries_of, write_keys
from tests.tables.iceberg.deletes.test_plan import SPECS

LONG = Field(1, "id", "long", DataType("BIGINT"))
TEXT = Field(2, "name", "string", DataType.parse("STRING"))

NANS = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48)]


def rows_deleted(rows: Sequence[Any], deleted: Sequence[Any], kind: Any) -> list[int]:
    return list(equal_rows([pa.array(rows, kind)], [[pa.array(deleted, kind)]]))


@pytest.mark.parametrize(
    ("rows", "deleted", "kind", "expected"),
    [
        ([1, 2, None, 3], [2, None, 9], pa.int64(), [1, 2]),
        (["a", "b", "", None], ["", "b"], pa.string(), [1, 2]),
        ([1.5, NANS[0], 0.0, -0.0], [NANS[1], -0.0], pa.float64(), [1, 3]),
        ([True, False, None], [False], pa.bool_(), [1]),
        ([Decimal("1.50"), Decimal("-1.50")], [Decimal("-1.50")], pa.decimal128(20, 2), [1]),
        ([date(2024, 2, 29), date(2024, 3, 1)], [date(2024, 2, 29)], pa.date32(), [0]),
        (
            [datetime(2024, 1, 1, tzinfo=UTC), None],
            [datetime(2024, 1, 1, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
            [0],
        ),
        ([b"\x00", b"\x00\x00"], [b"\x00\x00"], pa.binary(), [1]),
        ([], [1], pa.int64(), []),
        ([1], [], pa.int64(), []),
    ],
    ids=["long", "text", "double", "boolean", "decimal", "date", "moment", "bytes", "none", "no"],
)
def test_rows_that_are_equal(
    rows: list[Any], deleted: list[Any], kind: Any, expected: list[int]
) -> None:
    assert rows_deleted(rows, deleted, kind) == expected


def test_all_columns_must_be_equal() -> None:
    rows = [pa.array([1, 1, 2, None]), pa.array(["x", "y", "x", None])]
    first = [pa.array([1, 2]), pa.array(["y", "y"])]
    second = [pa.array([None], pa.int64()), pa.array([None], pa.string())]
    assert equal_rows(rows, [first, second]) == DeletionVector([1, 3])


VALUES = st.lists(st.tuples(st.none() | st.integers(0, 4), st.sampled_from(["a", "", "b"])))


@given(VALUES, st.lists(VALUES, max_size=3))
def test_any_rows(rows: list[Any], deleted: list[list[Any]]) -> None:
    def columns(some: list[Any]) -> list[pa.Array]:
        numbers = pa.array([number for number, _ in some], pa.int64())
        return [numbers, pa.array([two for _, two in some], pa.string())]

    gone = {pair for some in deleted for pair in some}
    expected = [row for row, pair in enumerate(rows) if pair in gone]
    assert list(equal_rows(columns(rows), [columns(some) for some in deleted])) == expected


class DataFile:
    """Counts what is read from data files, which all have the same rows."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[str, ...]]] = []

    def __call__(self, file: int, fields: Sequence[Field]) -> pa.Table:
        self.asked.append((file, tuple(field.name for field in fields)))
        columns = {"id": pa.array([1, 2, 3, None]), "name": pa.array(["x", "y", None, "x"])}
        return pa.table({field.name: columns[field.name] for field in fields})


def equality(entries: Entries, read: DataFile) -> EqualityDeletes:
    plan, fields = DeletePlan(entries, SPECS), {1: LONG, 2: TEXT}
    return EqualityDeletes(entries.deletes, plan, fields, FileIO(), read, remote=False)


def test_delete_files_by_field_ids_and_with_narrower_types(tmp_path: Path) -> None:
    first, two, three = (tmp_path / f"{number}.parquet" for number in range(3))
    sizes = [
        write_keys(first, was=(1, pa.array([2, 9], pa.int32()))),
        write_keys(two, name=(1, pa.array([None], pa.int32())), rest=(7, pa.array([0]))),
        write_keys(three, id=(2, pa.array(["x", None])), n=(1, pa.array([1, 2]))),
    ]
    ids = [[1], [1], [2, 1]]
    deletes = [
        deletes_of(str(path), age, 2, equality_ids=some, file_size_in_bytes=size)
        for age, (path, some, size) in enumerate(
            zip([first, two, three], ids, sizes, strict=True), 2
        )
    ]
    entries = entries_of([data_file("a", 1), data_file("b", 2), data_file("c", 4), *deletes])
    read = DataFile()
    deleted = equality(entries, read)
    assert deleted.find([0, 1, 2]) == [
        DeletionVector([0, 1, 3]),
        DeletionVector([0, 3]),
        DeletionVector(),
    ]
    assert sorted(read.asked) == [
        (0, ("id",)),
        (0, ("id", "name")),
        (1, ("id",)),
        (1, ("id", "name")),
    ]
    for path in (first, two, three):
        path.unlink()
    assert deleted.find([1]) == [DeletionVector([0, 3])]  # each delete file was read once


def test_a_delete_file_without_a_column_is_an_error(tmp_path: Path) -> None:
    size = write_keys(tmp_path / "d", id=(3, pa.array([1])))
    row = deletes_of(str(tmp_path / "d"), 2, 2, equality_ids=[1], file_size_in_bytes=size)
    with pytest.raises(FormatError, match="field ids 3, expected 1 of type int64"):
        equality(entries_of([data_file("a", 1), row]), DataFile()).find([0])


def test_a_column_of_another_type_is_an_error(tmp_path: Path) -> None:
    size = write_keys(tmp_path / "d", id=(1, pa.array(["one"])))
    row = deletes_of(str(tmp_path / "d"), 2, 2, equality_ids=[1], file_size_in_bytes=size)
    with pytest.raises(FormatError, match="field id 1: found string, expected int64"):
        equality(entries_of([data_file("a", 1), row]), DataFile()).find([0])
