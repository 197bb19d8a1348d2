"""Indexes that failed or gave wrong rows: nulls, limits of types, parts of a predicate."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from alcid import FileIndex, UnsupportedError, col
from alcid.errors import AlcidWarning
from tests.bad.history.asking import fill, ids, index_of, outcomes, rows_of
from tests.tables.paimon.small_tables import create

LEAST, MOST = -(2**63), 2**63 - 1


def test_paimon_9140_all_null_range_bitmap(tmp_path: Path) -> None:
    """IS NULL on a column of nulls returned only its first and last row."""
    index = index_of(pa.nulls(5, pa.int32()), "range-bitmap")
    assert rows_of(index, "a IS NULL") == [0, 1, 2, 3, 4]
    assert rows_of(index, "a IS NULL OR a = 7") == [0, 1, 2, 3, 4]
    assert rows_of(index, "a IS NOT NULL") == rows_of(index, "a <> 7") == []
    table = fill(tmp_path, {"a.parquet": {"id": range(9), "a": pa.nulls(9, pa.int32())}})
    table.build_indexes({"file-index.range-bitmap.columns": "a"})
    assert ids(table.scan("a IS NULL")) == list(range(9))


def test_paimon_9280_tied_nulls_of_a_second_sort_key(tmp_path: Path) -> None:
    """Top-n with a second key kept two of three tied nulls, so the key chose from wrong rows."""
    first = pa.array([None, None, None, 7, 8], pa.int64())
    index = index_of(first, "range-bitmap")
    assert list(index.top_n("a", 2, descending=False, nulls="first").rows or ()) == [0, 1, 2]
    table = fill(tmp_path, {"a.parquet": {"id": range(5), "a": first}}, group_rows=2)
    table.build_indexes({"file-index.range-bitmap.columns": "a"})
    scan = table.scan(order_by="a ASC NULLS FIRST, id DESC", limit=2)
    assert ids(scan) == [2, 1]
    assert outcomes(scan) == [("range-bitmap", "answered", 1)]


def test_paimon_10019_a_file_of_nulls_takes_no_place_of_the_best(tmp_path: Path) -> None:
    """Top-n with nulls last preferred a file of nulls, because it has no bounds."""
    nothing, values = pa.nulls(4, pa.int64()), pa.array([1, 9, None, 5], pa.int64())
    files = {f"{part}.parquet": {"id": nothing} for part in range(9)}
    table = fill(tmp_path, files | {"9.parquet": {"id": values}})
    for is_indexed in (False, True):
        if is_indexed:
            table.build_indexes({"file-index.range-bitmap.columns": "id"})
        assert ids(table.scan(order_by="id DESC NULLS LAST", limit=1)) == [9]
        assert ids(table.scan(order_by="id ASC NULLS LAST", limit=2)) == [1, 5]
        assert ids(table.scan(order_by="id DESC NULLS FIRST", limit=38)) == [None] * 37 + [9]


@pytest.mark.parametrize("index_type", ["bsi", "range-bitmap", "bitmap"])
def test_paimon_8150_the_least_long(index_type: str) -> None:
    """The smallest long has no absolute value: a bsi gave wrong rows for it."""
    index = index_of(pa.array([LEAST + 1, -1, None, MOST]), index_type)
    assert rows_of(index, col("a") == LEAST) == []
    assert rows_of(index, col("a") != LEAST) == [0, 1, 3]
    assert rows_of(index, col("a") >= LEAST) == [0, 1, 3]
    if index_type != "bitmap":
        assert rows_of(index, col("a") < LEAST) == rows_of(index, col("a") <= LEAST) == []
        assert rows_of(index, col("a") > LEAST) == [0, 1, 3]
        assert rows_of(index, col("a") <= LEAST + 1) == [0]


def test_paimon_8150_the_least_long_as_a_value(tmp_path: Path) -> None:
    """A bsi cannot hold it, so it is left out with a warning, and the row is found."""
    values = pa.array([LEAST, 4, None])
    with pytest.warns(AlcidWarning, match=f"bsi of 'a' left out: .* cannot hold {LEAST}"):
        FileIndex.build(pa.table({"a": values}), {"file-index.bsi.columns": "a"})
    table = fill(tmp_path, {"a.parquet": {"id": range(3), "a": values}})
    report = table.build_indexes({"file-index.bsi.columns": "a"})
    assert [skip.what for skip in report.skipped] == ["bsi of 'a'"]
    assert ids(table.scan(col("a") == LEAST)) == [0]
    assert ids(table.scan(col("a") < 4)) == [0]


def test_paimon_4631_values_beyond_a_bsi_without_statistics(tmp_path: Path) -> None:
    """With statistics off, literals beyond the values of a bsi gave wrong rows."""
    options = {"metadata.stats-mode": "none", "file-index.bsi.columns": "id"}
    table = create(tmp_path, {"id": "BIGINT"}, options=options)
    table.append(pa.table({"id": pa.array([10, 20, None, 30, -40])}))
    for where, ids_of_rows in {
        "id > 1000": [],
        "id < 1000": [10, 20, 30, -40],
        "id <> 1000": [10, 20, 30, -40],
        "id = 31": [],
        "id > -1000": [10, 20, 30, -40],
        "id < -41": [],
        "id <= -40": [-40],
        "id BETWEEN -1000 AND 1000": [10, 20, 30, -40],
    }.items():
        scan = table.scan(where)
        assert ids(scan) == ids_of_rows, where
        assert outcomes(scan) == [("bsi", "answered", 1)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("nulls", [0, 1, 3])
def test_paimon_3911_offsets_of_bitmaps_beside_single_rows(version: int, nulls: int) -> None:
    """Values of a single row have no bitmap: those behind them were read at a wrong offset."""
    values = [5, 1, 2, 1, 3, 2, *[None] * nulls, 1, 4]
    index = index_of(pa.array(values, pa.int32()), "bitmap", version=version)
    for value in range(7):
        assert rows_of(index, f"a = {value}") == [row for row, v in enumerate(values) if v == value]
    assert rows_of(index, "a IS NULL") == list(range(6, 6 + nulls))


def test_paimon_5324_or_with_an_answer_that_is_no_bitmap() -> None:
    """OR with "any row" gave the rows of the bitmap alone."""
    rows = pa.table({"a": [1, 2, 1], "b": [10, 20, 30], "c": [7, 8, 9]})
    options = {"file-index.bitmap.columns": "a", "file-index.bloom-filter.columns": "b"}
    index = FileIndex.build(rows, options)
    assert rows_of(index, "a = 1 OR b = 20") is None
    assert rows_of(index, "b = 20 OR a = 1") is None
    assert rows_of(index, "a = 1 OR c = 8") is None
    assert rows_of(index, "a = 1 OR b = 21") == [0, 2]
    assert rows_of(index, "(a = 2 OR b = 20) AND a = 1") == [0, 2]
    assert rows_of(index, "a = 1 OR a = 2") == [0, 1, 2]
    assert rows_of(index, "a = 1") == [0, 2]  # and no answer has changed the index


@pytest.mark.parametrize("index_type", ["bloom-filter", "bitmap", "range-bitmap"])
def test_paimon_9143_is_nan_with_an_index(tmp_path: Path, index_type: str) -> None:
    """IS NAN failed as soon as its column had an index."""
    values = pa.array([1.0, float("nan"), None, -0.0])
    table = fill(tmp_path, {"a.parquet": {"id": range(4), "a": values}})
    table.build_indexes({f"file-index.{index_type}.columns": "a"})
    assert ids(table.scan("isnan(a)")) == [1]
    assert ids(table.scan("NOT isnan(a)")) == [0, 2, 3]
    assert ids(table.scan("isnan(a) OR a = 1")) == [0, 1]
    rows = rows_of(index_of(values, index_type), "isnan(a)")
    assert rows == (None if index_type == "bloom-filter" else [1])


@pytest.mark.parametrize("index_type", ["bitmap", "range-bitmap"])
def test_paimon_5013_booleans(index_type: str) -> None:
    """A bitmap of booleans took them for bytes, and failed."""
    index = index_of(pa.array([True, None, False, True]), index_type)
    assert rows_of(index, "a") == rows_of(index, "a = true") == [0, 3]
    assert rows_of(index, "NOT a") == rows_of(index, "a <> true") == [2]
    assert rows_of(index, "a IS NULL") == [1]
    assert rows_of(index, "a IN (true, false)") == [0, 2, 3]


@pytest.mark.parametrize("index_type", ["bloom-filter", "bsi"])
def test_paimon_5013_booleans_that_an_index_does_not_take(index_type: str) -> None:
    """An index that does not take booleans says so, and not only when values are cast."""
    message = f"column a: {index_type} does not take BOOLEAN; use bitmap or range-bitmap"
    with pytest.raises(UnsupportedError, match=message):
        index_of(pa.array([True]), index_type)


@pytest.mark.parametrize("length", [16_368, 16_369, 100_000])
def test_paimon_9613_a_value_longer_than_a_block(tmp_path: Path, length: int) -> None:
    """A single value longer than the block size of a bitmap made the write of the file fail."""
    table = create(tmp_path, options={"file-index.bitmap.columns": "name"})
    names = ["a", "x" * length, "z", "x" * length, "x" * (length - 1)]
    assert table.append(pa.table({"id": range(5), "name": names})).rows == 5
    for name, rows in (("x" * length, [1, 3]), ("x" * (length - 1), [4]), ("y", []), ("z", [2])):
        scan = table.scan(col("name") == name)
        assert ids(scan) == rows
        assert outcomes(scan) == [("bitmap", "answered", 1)]


def test_starrocks_457_a_number_beyond_53_bits() -> None:
    """A bitmap found no row for a number that is not a double."""
    number = 2_012_220_000_010_037_602
    index = index_of(pa.array([number - 1, number, number + 1]), "bitmap")
    assert [rows_of(index, f"a = {number + step}") for step in (-2, -1, 0, 1)] == [
        [],
        [0],
        [1],
        [2],
    ]


@pytest.mark.parametrize("options", [{"index_block_size": "64b"}, {"version": 1}, {}])
def test_starrocks_3299_many_values_of_a_bitmap(options: dict[str, str | int]) -> None:
    """A bitmap of very many values returned no row for an existing value."""
    count = 20_000
    values = pa.array([3 * (row * 7919 % count) for row in range(count)], pa.int32())
    index = index_of(values, "bitmap", **options)
    positions = {value: row for row, value in enumerate(values.to_pylist())}
    for value in (0, 3, 29_997, 3 * count - 3, *range(300, 60_000, 5_979)):
        assert rows_of(index, f"a = {value}") == [positions[value]]
        assert rows_of(index, f"a = {value + 1}") == []


def test_doris_7788_a_range_that_begins_before_all_values() -> None:
    """A range that began below the first value returned no row if the dictionary had two levels."""
    values = pa.array(range(1_000, 9_000, 2), pa.int32())
    index = index_of(values, "range-bitmap", chunk_size="64b")
    every = list(range(4_000))
    assert rows_of(index, "a > 0") == rows_of(index, "a >= 1000") == every
    assert rows_of(index, "a > 1000") == every[1:]
    assert rows_of(index, "a < 1000") == rows_of(index, "a > 8998") == []
    assert rows_of(index, "a < 999999") == every
    assert rows_of(index, "a BETWEEN 0 AND 1003") == [0, 1]
