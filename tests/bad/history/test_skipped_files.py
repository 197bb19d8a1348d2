"""Files and row groups that were left out or read by mistake: exact sets of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.scan import Outcome, Scan
from tests.bad.history.asking import (
    file_outcomes,
    files_read,
    fill,
    ids,
    index_of,
    outcomes,
    rows_of,
)
from tests.golden.paimon_tables import unpack_table
from tests.tables.paimon.small_tables import create

BLOOM = {"file-index.bloom-filter.columns": "id"}


def looked_at(scan: Scan) -> list[int]:
    """The number of rows looked at in each row group of the only file."""
    (file,) = file_outcomes(scan)
    return [group.rows_looked_at for group in file.row_groups]


@pytest.mark.parametrize("has_pages", [False, True])
@pytest.mark.parametrize("index_type", ["bitmap", "range-bitmap", "bsi"])
def test_paimon_4806_rows_of_an_index_in_a_later_row_group(
    tmp_path: Path, index_type: str, has_pages: bool
) -> None:
    """Positions were counted from the start of each row group, so those of later ones were lost."""
    values = [row * 7 % 20 for row in range(20)]  # 4 is in row 12, 0 in row 0
    files = {"a.parquet": {"id": range(20), "a": values}}
    table = fill(tmp_path, files, group_rows=5, has_pages=has_pages)
    table.build_indexes({f"file-index.{index_type}.columns": "a"})
    for value, row in ((0, 0), (4, 12), (13, 19), (8, 4), (15, 5)):
        scan = table.scan(f"a = {value}")
        assert ids(scan) == [row]
        assert looked_at(scan) == [int(group == row // 5) for group in range(4)]
    scan = table.scan("a IN (0, 4, 13)")
    assert (ids(scan), looked_at(scan)) == ([0, 12, 19], [1, 0, 1, 1])


def test_paimon_4806_pages_of_a_later_row_group(tmp_path: Path) -> None:
    """The same if pages are read by their offset in the file."""
    path = tmp_path / "a.parquet"
    rows = pa.table({"id": range(40_000), "a": [row * 7 % 40_000 for row in range(40_000)]})
    pq.write_table(rows, path, row_group_size=10_000, data_page_size=2_000, write_page_index=True)
    table = alcid.parquet(tmp_path)
    table.build_indexes({"file-index.bitmap.columns": "a"})
    for row in (0, 9_999, 10_000, 27_123, 39_999):
        scan = table.scan(f"a = {row * 7 % 40_000}")
        assert ids(scan) == [row]
        assert looked_at(scan) == [int(group == row // 10_000) for group in range(4)]
        (file,) = file_outcomes(scan)
        assert file.outcome == Outcome("read", "by pages")


@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts", "none"])
def test_hudi_7032_the_greatest_value_of_long_texts(tmp_path: Path, mode: str) -> None:
    """A maximum that was too small hid the rows above it."""
    begin = "0123456789abcdef"
    names = [f"{begin}-a", f"{begin}-z", f"{begin}\U0010ffff", "\U0010ffff" * 20]
    table = create(tmp_path, options={"metadata.stats-mode": mode})
    table.append(pa.table({"id": range(4), "name": names}))
    for row, name in enumerate(names):
        assert ids(table.scan(alcid.col("name") == name)) == [row]
    assert ids(table.scan(alcid.col("name") > f"{begin}-b")) == [1, 2, 3]
    assert ids(table.scan(alcid.col("name") > "\U0010ffff" * 19)) == [3]


def test_hudi_7032_the_greatest_value_in_a_bundle(tmp_path: Path) -> None:
    """The same for a folder, where bundles keep minimum and maximum."""
    names = ["a" * 300 + "b", "a" * 300 + "c", "\U0010ffff" * 99]
    table = fill(tmp_path, {"a.parquet": {"id": range(3), "name": names}})
    table.build_indexes({"file-index.bitmap.columns": "id"})
    for row, name in enumerate(names):
        assert ids(table.scan(alcid.col("name") == name)) == [row]
    assert ids(table.scan(alcid.col("name") > "a" * 300 + "b")) == [1, 2]


def test_hudi_18754_one_nan_among_the_values(tmp_path: Path) -> None:
    """Bounds of a file with a NaN were taken to be 0 and 0, and its rows were lost."""
    values = {"a": [5.0, float("nan"), 7.0], "b": [1.0, 2.0, 3.0]}
    files = {f"{name}.parquet": {"id": range(3), "n": v} for name, v in values.items()}
    table = fill(tmp_path, files, group_rows=2)
    for is_indexed in (False, True):
        if is_indexed:
            table.build_indexes({"file-index.bitmap.columns": "id"})
        assert ids(table.scan("n = 5")) == [0]
        assert ids(table.scan("n > 2")) == [0, 1, 2, 2]
        assert ids(table.scan("n > 7")) == [1]
        assert ids(table.scan("n < 7")) == [0, 0, 1, 2]


def test_hudi_18755_files_without_statistics(tmp_path: Path) -> None:
    """A column without statistics was treated as a column of nulls, and its rows were lost."""
    rows = pa.table({"id": range(3), "name": ["x", None, "z"]})
    pq.write_table(rows, tmp_path / "a.parquet", write_statistics=False)
    table = alcid.parquet(tmp_path)
    for is_indexed in (False, True):
        if is_indexed:
            table.build_indexes({"file-index.bitmap.columns": "id"})
        assert ids(table.scan("name = 'z'")) == [2]
        assert ids(table.scan("name IS NOT NULL")) == [0, 2]
        assert ids(table.scan("name IS NULL")) == [1]


def test_hudi_11575_a_look_up_keeps_the_file_and_not_only_fewer_files(tmp_path: Path) -> None:
    """A look-up left out every file until a later change was written next to the index."""

    def check(part: int) -> None:
        scan = table.scan(f"id = {part + 40}")
        assert files_read(scan) == [f"{part}.parquet"]
        assert ids(scan) == [part + 40]
        assert outcomes(scan) == [
            ("bloom-filter", "ruled out", parts - 1),
            ("bloom-filter", "may contain it", 1),
        ]

    def columns(part: int) -> dict[str, Any]:
        return {"id": [part + 10 * row for row in range(9)]}

    parts = 4
    table = fill(tmp_path, {f"{part}.parquet": columns(part) for part in range(parts)})
    table.build_indexes(BLOOM)
    check(2)
    fill(tmp_path, {"4.parquet": columns(4)})
    parts = 5
    assert table.build_indexes(BLOOM).bundles == 1  # a second one, next to the first
    check(2)
    check(4)
    assert len(table.clean().merged) == 2
    check(2)
    check(4)


def test_hudi_5808_a_bloom_filter_leaves_out_files(tmp_path: Path) -> None:
    """Bloom filters were written, but they never left out a file."""
    ids_of = {part: [part + 10 * row for row in range(50)] for part in range(6)}
    table = fill(tmp_path, {f"{part}.parquet": {"id": ids_of[part]} for part in range(6)})
    table.build_indexes({**BLOOM, "file-index.bloom-filter.id.fpp": 0.0001})
    scan = table.scan("id = 253")
    (*_, stage) = [stage for stage in scan.explain().stages if stage.name == "file index"]
    assert (stage.before.files, stage.after.files) == (6, 1)
    assert stage.dropped == {"bloom filter": 5}
    assert files_read(scan) == ["3.parquet"]
    assert files_read(table.scan("id IN (253, 254, 9)")) == ["3.parquet", "4.parquet"]
    assert files_read(table.scan("id = 253", use_indexes=False)) == [
        f"{part}.parquet" for part in range(6)
    ]


def test_paimon_8090_an_index_that_is_there_is_asked(tmp_path: Path) -> None:
    """Python read every file although the table had indexes; these are from Paimon's Java."""
    table = alcid.paimon(unpack_table("sidecars", tmp_path))
    scan = table.scan("kind = 'puffin' AND weight = 6", columns=["ring"])
    assert scan.to_arrow().to_pydict() == {"ring": [12]}
    assert outcomes(scan) == [
        ("bitmap", "answered", 6),
        ("range-bitmap", "answered", 6),
        ("bsi", "not needed", 6),
    ]
    assert len(files_read(scan)) == 1
    reasons = [outcome.outcome for outcome in file_outcomes(scan)]
    assert reasons.count(Outcome("file index", "no row in the index")) == 5


def test_lance_5130_one_file_is_read_and_not_every_one(tmp_path: Path) -> None:
    """Bounds that could leave out files were ignored: 3,000 files were read for one row."""
    every = {f"{part:02}.parquet": {"id": range(4 * part, 4 * part + 4)} for part in range(30)}
    scan = fill(tmp_path, every).scan("id = 42")
    assert (ids(scan), files_read(scan)) == ([42], ["10.parquet"])
    table = alcid.parquet(tmp_path)
    table.build_indexes(BLOOM)
    scan = table.scan("id BETWEEN 42 AND 44")
    assert (ids(scan), files_read(scan)) == ([42, 43, 44], ["10.parquet", "11.parquet"])
    stages = {stage.name: stage for stage in scan.explain().stages}
    assert stages["statistics"].dropped == {"ruled out by min/max or null counts": 28}
    assert stages["row groups"].before.files == 2  # no other is opened


def test_hudi_2178_a_bloom_filter_of_few_values_is_small() -> None:
    """Every file had a filter for a million values, however few values it had."""
    index = index_of(pa.array(range(1_000)), "bloom-filter")
    (entry,) = index.entries
    assert entry.length == 1236
    assert all(rows_of(index, f"a = {value}") is None for value in (0, 500, 999))
    assert all(index.evaluate(f"a = {value}").skip for value in range(2_000, 2_100))
