"""Explanations that were wrong: numbers counted twice, or numbers of something else."""

from __future__ import annotations

from pathlib import Path

import pytest

import alcid
from alcid import DamagedIndexWarning, DeletionVector
from alcid.scan import Stage
from tests.bad.history.asking import fill, ids, outcomes
from tests.scan.test_explanation import check
from tests.tables.paimon.index_contents import entries
from tests.tables.paimon.small_tables import append, create

ROWS = 4_000


def stage_of(scan: alcid.scan.Scan, name: str) -> Stage:
    """A stage of a scan, by its name; its numbers belong to those of the others."""
    explanation = scan.explain()
    check(explanation)
    (named,) = (stage for stage in explanation.stages if stage.name == name)
    return named


def test_datafusion_22030_pages_count_once_for_several_predicates(tmp_path: Path) -> None:
    """Each predicate counted the pages again: 20 of 10 pages existed, and 10 of 5 matched."""
    table = fill(tmp_path, {"a.parquet": {"id": range(ROWS), "v": range(ROWS)}}, group_rows=2_000)
    table.build_indexes({"file-index.range-bitmap.columns": "id, v"})
    for where, pages, rows in (
        ("id > 3990", 10, 9),  # two rows a page, of two columns
        ("id > 3990 AND v > 3990", 10, 9),
        ("id > 3990 AND id > 3985 AND v >= 3991", 10, 9),
        ("id > 3990 AND v > 3995", 4, 4),
    ):
        scan = table.scan(where)
        assert ids(scan) == list(range(ROWS - rows, ROWS))
        stage = stage_of(scan, "pages")
        assert (stage.before.pages, stage.after.pages) == (2_000, pages), where
        groups = stage_of(scan, "row groups")
        assert (groups.before.row_groups, groups.after.row_groups) == (2, 1)


def test_doris_31187_rows_that_an_index_left_out(tmp_path: Path) -> None:
    """Rows that other stages had left out were attributed to the index."""
    files = {f"{part}.parquet": {"id": range(10 * part, 10 * part + 10)} for part in range(4)}
    folder = fill(tmp_path, files)
    folder.build_indexes({"file-index.bitmap.columns": "id"})
    table = folder.with_deletions({"1.parquet": DeletionVector([2, 3, 4])})
    scan = table.scan("id IN (11, 12, 13, 25)")
    assert ids(scan) == [11, 25]
    for name, before, after in (
        ("statistics", (4, 40), (2, 20)),
        ("file index", (2, 20), (2, 4)),
        ("deletion vectors", (2, 4), (2, 2)),
        ("rows", (2, 2), (2, 2)),
    ):
        stage = stage_of(scan, name)
        assert (stage.before.files, stage.before.rows) == before, name
        assert (stage.after.files, stage.after.rows) == after, name


def test_datafusion_8685_whether_a_bloom_filter_did_anything(tmp_path: Path) -> None:
    """Nothing said whether a bloom filter existed, was asked or had left out any file."""
    files = {f"{part}.parquet": {"id": [part, part + 100]} for part in range(4)}
    table = fill(tmp_path, files)
    assert outcomes(table.scan("id = 50")) == [("", "absent", 4)]
    table.build_indexes({"file-index.bloom-filter.columns": "id"})
    fill(tmp_path, {"4.parquet": {"id": [4, 104]}, "0.parquet": {"id": [0, 99]}})
    table.refresh()
    scan = table.scan("id = 50")
    assert ids(scan) == []
    assert sorted(outcomes(scan)) == [
        ("bloom-filter", "absent", 1),
        ("bloom-filter", "ruled out", 3),
        ("bloom-filter", "stale", 1),
    ]
    assert stage_of(scan, "file index").dropped == {"bloom filter": 3}
    assert sorted(outcomes(table.scan("id > 50"))) == [
        ("bloom-filter", "absent", 1),
        ("bloom-filter", "stale", 1),
        ("bloom-filter", "unsupported predicate", 3),
    ]


def test_hyperspace_253_why_an_index_was_not_used(tmp_path: Path) -> None:
    """An index that could not be read was skipped silently."""
    table = create(tmp_path, options={"file-index.bitmap.columns": "name"})
    append(table, range(10))
    table.build_indexes(
        {"file-index.bitmap.columns": "name", "file-index.in-manifest-threshold": "1 b"}
    )
    (entry,) = entries(table)
    path = tmp_path / "bucket-0" / entry.file.extra_files[0]
    path.write_bytes(path.read_bytes()[:-30])
    scan = alcid.paimon(tmp_path).scan("name = 'n3'")
    with pytest.warns(DamagedIndexWarning, match=f"not used: {path}: "):
        assert ids(scan) == [3, 8]
    assert outcomes(scan) == [("", "damaged", 1)]
    strict = alcid.paimon(tmp_path, strict=True)
    with pytest.raises(alcid.FormatError, match=f"{path}: "):
        strict.scan("name = 'n3'").to_arrow()
