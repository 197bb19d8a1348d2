"""What Paimon's Java gets wrong or fails at, and Alcid does not."""

from __future__ import annotations

from datetime import time

import numpy as np
import pyarrow as pa
import pytest

from alcid import FileIndex, col

NANOS = np.array([1_000_001, 1_000_002, 5_000_000], np.int64)  # two in the same microsecond


def index_of(array: pa.Array, index_type: str, **options: str) -> FileIndex:
    table = pa.table({"a": array})
    keys = {f"file-index.{index_type}.a.{key.replace('_', '-')}": v for key, v in options.items()}
    return FileIndex.build(table, {f"file-index.{index_type}.columns": "a", **keys})


def rows(index: FileIndex, predicate: object) -> list[int] | None:
    matching = index.evaluate(predicate).rows  # type: ignore[arg-type]
    return None if matching is None else list(matching)


@pytest.mark.parametrize("index_type", ["bitmap", "bsi"])
def test_not_equal_on_nanoseconds_loses_no_row_of_the_same_microsecond(index_type: str) -> None:
    index = index_of(pa.array(NANOS).view(pa.timestamp("ns")), index_type)
    literal = np.datetime64(1_000_001, "ns")
    assert rows(index, col("a") == literal) == [0, 1]
    assert rows(index, col("a") != literal) == [0, 1, 2]
    assert rows(index, ~col("a").isin([literal])) == [0, 1, 2]


def test_ranges_on_nanoseconds_lose_no_row_of_the_same_microsecond() -> None:
    index = index_of(pa.array(NANOS).view(pa.timestamp("ns")), "bsi")
    assert rows(index, col("a") < np.datetime64(1_000_002, "ns")) == [0, 1]
    assert rows(index, col("a") > np.datetime64(1_000_001, "ns")) == [0, 1, 2]
    assert rows(index, col("a") > np.datetime64(1_001_000, "ns")) == [2]


@pytest.mark.parametrize("index_type", ["bitmap", "bsi", "range-bitmap"])
def test_times_finer_than_milliseconds_lose_no_row(index_type: str) -> None:
    index = index_of(pa.array([1_001, 1_002, 5_000], pa.int64()).view(pa.time64("us")), index_type)
    assert rows(index, col("a") == time(0, 0, 0, 1_001)) == [0, 1]
    assert rows(index, col("a") != time(0, 0, 0, 1_001)) == [0, 1, 2]
    if index_type != "bitmap":
        assert rows(index, col("a") > time(0, 0, 0, 1_001)) == [0, 1, 2]
        assert rows(index, col("a") < time(0, 0, 0, 1_001)) == [0, 1]


def test_top_n_on_times_finer_than_milliseconds_keeps_all_of_the_last_millisecond() -> None:
    array = pa.array([1_001, 1_002, 5_000], pa.int64()).view(pa.time64("us"))
    index = index_of(array, "range-bitmap")
    assert list(index.top_n("a", 1, descending=False, ties=False).rows or ()) == [0, 1]


@pytest.mark.parametrize("length", [16368, 16369, 100_000])
def test_a_value_larger_than_the_block_is_written(length: int) -> None:
    long = "x" * length
    index = index_of(pa.array(["a", long, "z", long]), "bitmap")
    assert rows(index, col("a") == long) == [1, 3]
    assert rows(index, "a = 'z'") == [2]
    assert rows(index, "a = 'y'") == []


def test_the_smallest_block_holds_one_value_each() -> None:
    index = index_of(pa.array([3, 1, 2, 1], pa.int64()), "bitmap", index_block_size="1b")
    assert [rows(index, f"a = {value}") for value in range(5)] == [[], [1, 3], [2], [0], []]


@pytest.mark.parametrize("index_type", ["bitmap", "range-bitmap", "bsi"])
def test_long_min_as_a_literal_does_not_crash(index_type: str) -> None:
    index = index_of(pa.array([-5, None, 0, 5], pa.int64()), index_type)
    least = -(2**63)
    assert rows(index, col("a") == least) == []
    assert rows(index, col("a") != least) == [0, 2, 3]
    assert rows(index, col("a").isin([least, 5])) == [3]
    assert rows(index, col("a") >= least) == [0, 2, 3]
    if index_type != "bitmap":
        assert rows(index, col("a") < least) == []
        assert rows(index, col("a") <= least) == []
        assert rows(index, col("a") > least) == [0, 2, 3]


@pytest.mark.parametrize("index_type", ["bloom-filter", "bitmap", "range-bitmap", "bsi"])
def test_null_literals_match_no_row_and_do_not_crash(index_type: str) -> None:
    index = index_of(pa.array([1, None, 2], pa.int64()), index_type)
    for op in ("=", "<>", "<", "<=", ">", ">="):
        assert rows(index, f"a {op} NULL") == []
    assert rows(index, "a NOT IN (1, NULL)") == []
    assert rows(index, "a IN (NULL)") == []
    assert rows(index, "a IN (7, NULL)") == []
    assert rows(index, "a BETWEEN NULL AND 1") == []
    if index_type != "bloom-filter":
        assert rows(index, "a IN (1, NULL)") == [0]
        assert rows(index, "a <=> NULL") == [1]


@pytest.mark.parametrize("index_type", ["bloom-filter", "bitmap", "range-bitmap", "bsi"])
def test_an_empty_list_matches_no_row_and_does_not_crash(index_type: str) -> None:
    index = index_of(pa.array([1, None, 2], pa.int64()), index_type)
    assert rows(index, col("a").isin([])) == []


FLOATS = [0.0, -0.0, None, float("nan"), 1.0, -1.0]


@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("index_type", ["bitmap", "range-bitmap"])
@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
def test_both_zeros_are_equal(index_type: str, arrow_type: pa.DataType, zero: float) -> None:
    index = index_of(pa.array(FLOATS, arrow_type), index_type)
    assert rows(index, col("a") == zero) == [0, 1]
    assert rows(index, col("a") != zero) == [3, 4, 5]
    assert rows(index, col("a").isin([zero, 1.0])) == [0, 1, 4]
    if index_type == "range-bitmap":
        assert rows(index, col("a") < zero) == [5]
        assert rows(index, col("a") <= zero) == [0, 1, 5]
        assert rows(index, col("a") > zero) == [3, 4]
        assert rows(index, col("a") >= zero) == [0, 1, 3, 4]


def test_a_bloom_filter_finds_a_zero_of_the_other_sign() -> None:
    for stored, asked in ((0.0, -0.0), (-0.0, 0.0)):
        index = index_of(pa.array([stored, 7.0]), "bloom-filter")
        assert rows(index, col("a") == asked) is None


@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("index_type", ["bitmap", "range-bitmap"])
def test_nan_equals_nan_and_is_above_every_number(index_type: str, arrow_type: pa.DataType) -> None:
    index = index_of(pa.array(FLOATS, arrow_type), index_type)
    nan = float("nan")
    assert rows(index, col("a") == nan) == [3]
    assert rows(index, col("a") != nan) == [0, 1, 4, 5]
    if index_type == "range-bitmap":
        assert rows(index, col("a") > float("inf")) == [3]
        assert rows(index, col("a") > nan) == []
        assert rows(index, col("a") < nan) == [0, 1, 4, 5]
        assert rows(index, col("a") > 0.5) == [3, 4]


def test_top_n_counts_both_zeros_as_ties() -> None:
    index = index_of(pa.array([-0.0, 0.0, -1.0, 0.0, None]), "range-bitmap")
    assert list(index.top_n("a", 1).rows or ()) == [0, 1, 3]
    assert list(index.top_n("a", 2, descending=False).rows or ()) == [0, 1, 2, 3]
    assert list(index.top_n("a", 1, among=[0, 2, 4]).rows or ()) == [0]


def test_top_n_puts_nan_on_top() -> None:
    index = index_of(pa.array([1.0, float("nan"), float("inf")]), "range-bitmap")
    assert list(index.top_n("a", 1).rows or ()) == [1]
    assert list(index.top_n("a", 2, descending=False).rows or ()) == [0, 2]


def test_top_n_of_only_nulls_honours_limit_and_choice() -> None:
    index = index_of(pa.array([None] * 5, pa.int32()), "range-bitmap")
    assert list(index.top_n("a", 2, ties=False).rows or ()) == [0, 1]
    assert list(index.top_n("a", 2, among=[1, 3, 4], ties=False).rows or ()) == [1, 3]
    assert list(index.top_n("a", 2, among=[1, 3, 4]).rows or ()) == [1, 3, 4]
