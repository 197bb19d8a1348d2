"""Bounds from the partitions of data files, under changing specs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.expressions import AnyRow, InIntervals, NotInIntervals
from alcid.index.bundle import Statistics
from alcid.index.bundle.statistics import statistics_type
from alcid.tables.iceberg.bounds import BucketedBounds, Buckets, FilePartitions
from alcid.tables.iceberg.metadata.schema import PartitionField, PartitionSpec
from alcid.tables.iceberg.metadata.transforms import bucket_of
from alcid.types import DataType

BIGINT, STRING = DataType("BIGINT"), DataType.parse("STRING")


def spec(number: int, *fields: tuple[int, int, str, str]) -> PartitionSpec:
    return PartitionSpec(number, tuple(PartitionField(*field) for field in fields))


def parted(
    specs: Sequence[PartitionSpec], spec_of: Sequence[int], **values: pa.Array
) -> FilePartitions:
    fields = pa.StructArray.from_arrays(list(values.values()), list(values))
    data = pa.table({"spec_id": pa.array(spec_of, pa.int32()), "partition": fields})
    return FilePartitions({spec.id: spec for spec in specs}, data)


def statistics_of(data_type: DataType, *files: dict[str, Any] | None) -> Statistics:
    whole = {"min_exact": True, "max_exact": True, "has_nan": False}
    rows = [None if file is None else whole | file for file in files]
    return Statistics("a", data_type, pa.array(rows, statistics_type(data_type)))


def narrowed(partitions: FilePartitions, statistics: Statistics, rows: Sequence[int]) -> list[Any]:
    values = partitions.narrow(1, statistics, np.array(rows)).values
    return [
        None if value is None else (value["min"], value["max"], value["nulls"])
        for value in values.to_pylist()
    ]


def test_bounds_of_partitions_and_manifests_are_taken_together() -> None:
    partitions = parted(
        [spec(0, (1, 1000, "a_ten", "truncate[10]"))],
        [0] * 5,
        a_ten=pa.array([10, 10, 10, 20, None], pa.int64()),
    )
    statistics = statistics_of(
        BIGINT,
        {"min": 5, "max": 15, "nulls": 0},
        {"min": 12, "max": 50, "nulls": 2},
        None,
        {"min": 1, "max": 2, "nulls": 0},
        {"min": None, "max": None, "nulls": None},
    )
    assert narrowed(partitions, statistics, [9, 9, 9, 9, 9]) == [
        (10, 15, 0),
        (12, 19, 2),
        (10, 19, None),
        (None, None, 0),  # they contradict each other
        (None, None, 9),
    ]


def test_a_bound_of_a_partition_is_not_exact() -> None:
    partitions = parted(
        [spec(0, (1, 1000, "a_ten", "truncate[10]"))], [0], a_ten=pa.array([10], pa.int64())
    )
    statistics = statistics_of(BIGINT, {"min": 5, "max": 15, "nulls": 0})
    (value,) = partitions.narrow(1, statistics, np.array([9])).values.to_pylist()
    assert (value["min_exact"], value["max_exact"]) == (False, True)


def test_values_count_only_for_files_whose_spec_has_the_field() -> None:
    specs = [
        spec(0, (1, 1000, "old", "identity"), (2, 1001, "b", "bucket[4]")),
        spec(1, (2, 1001, "b", "bucket[4]")),
        spec(2, (1, 1000, "new", "identity")),  # the same field, renamed
    ]
    partitions = parted(
        specs,
        [0, 1, 2],
        new=pa.array(["x", None, None]),
        b=pa.array([1, 2, None], pa.int32()),
    )
    unknown = statistics_of(STRING, None, None, None)
    assert narrowed(partitions, unknown, [5, 5, 5]) == [
        (b"x", b"x", None),
        None,
        (None, None, 5),
    ]
    assert {number: values.to_pylist() for number, values in partitions.identities.items()} == {
        1: [{"value": "x"}, None, {"value": None}]
    }
    assert partitions.columns({1: STRING}) == {}
    (buckets,) = partitions.buckets(2)
    assert (buckets.count, buckets.files.tolist()) == (4, [True, True, False])
    assert buckets.numbers.tolist() == [1, 2, -1]


def test_columns_of_partitions_are_those_of_all_files_and_no_floats() -> None:
    fields = [(1, 1000, "a", "identity"), (2, 1001, "f", "identity"), (3, 1002, "v", "void")]
    partitions = parted(
        [spec(0, *fields), spec(1, *fields[:1])],
        [0, 0],
        a=pa.array([1, None], pa.int32()),
        f=pa.array([0.0, -0.0]),
        v=pa.array(["x", "y"]),
    )
    types = {1: BIGINT, 2: DataType("DOUBLE"), 3: STRING}
    columns = partitions.columns(types)
    assert {number: (column.type, column.to_pylist()) for number, column in columns.items()} == {
        1: (pa.int64(), [1, None])
    }
    assert set(partitions.identities) == {1, 2}


def test_a_partition_field_whose_column_was_dropped_says_nothing() -> None:
    partitions = parted([spec(0, (9, 1000, "gone", "identity"))], [0], other=pa.array([1]))
    assert partitions.identities == {}
    assert partitions.buckets(9) == []


def test_a_table_without_files_has_no_partitions() -> None:
    data = pa.table(
        {
            "spec_id": pa.array([], pa.int32()),
            "partition": pa.array([], pa.struct([("a", "int32")])),
        }
    )
    partitions = FilePartitions({0: spec(0, (1, 1000, "a", "identity"))}, data)
    assert partitions.identities == {}
    assert partitions.columns({1: BIGINT}) == {}


@pytest.mark.parametrize(
    ("data_type", "values", "keys"),
    [
        (BIGINT, [34, 35], [34, 35]),
        (STRING, ["iceberg", "a"], [b"iceberg", b"a"]),
        (DataType("DATE"), [date(2017, 11, 16)], [17486]),
        (DataType("DECIMAL", precision=30, scale=2), [Decimal("14.20")], [1420]),
        (DataType("TIMESTAMP", precision=6), [1510871468000001], [1510871468000001]),
    ],
    ids=lambda value: str(value) if isinstance(value, DataType) else "",
)
def test_only_files_of_the_buckets_of_values_are_left(
    data_type: DataType, values: list[Any], keys: list[Any]
) -> None:
    numbers = bucket_of(pa.array(values, data_type.to_arrow()), data_type, 16).astype(np.int64)
    other = next(number for number in range(16) if number not in numbers)
    files = [*numbers.tolist(), other, -1, other]
    mask = np.array([True] * (len(files) - 1) + [False])  # the last has no buckets
    unknown = statistics_of(data_type, *[None] * len(files))
    bounds = BucketedBounds(
        unknown, np.full(len(files), 9), [Buckets(16, mask, np.array(files, np.int64))]
    )
    intervals = tuple((key, key + (b"\0" if isinstance(key, bytes) else 1)) for key in sorted(keys))
    here = [True] * len(values)
    assert bounds.evaluate(InIntervals(intervals)).may_match.tolist() == [*here, False, False, True]
    everywhere = [True] * len(files)
    assert bounds.evaluate(NotInIntervals(intervals)).may_match.tolist() == everywhere
    assert bounds.evaluate(InIntervals(((None, intervals[0][1]),))).may_match.tolist() == everywhere
    assert bounds.evaluate(AnyRow()).may_match.tolist() == everywhere
