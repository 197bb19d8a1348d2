"""Repair of file indexes and hash indexes: rebuilt from the data, as the table's options say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alcid import PaimonTable
from alcid.tables.maintenance.repair import ROLL_BACK
from tests.tables.maintenance.forging import (
    flip,
    forge,
    state_of,
)
from tests.tables.maintenance.repair_kit import (
    INDEXES,
    data_files,
    flipped,
    ids,
    made,
    repair_lines,
    repaired,
    rows_of,
)
from tests.tables.paimon.small_tables import VECTORS, create


def index_sizes(table: PaimonTable) -> dict[str, int]:
    return {f"{index.index_type} of {index.column}": index.fresh for index in table.indexes()}


@pytest.mark.parametrize("threshold", ["500 b", "0 b"], ids=["embedded", "sidecar"])
def test_a_container_that_cannot_be_read_is_built_as_the_table_asks(
    tmp_path: Path, threshold: str
) -> None:
    table = made(tmp_path, options={**INDEXES, "file-index.in-manifest-threshold": threshold})
    first, second = data_files(tmp_path)
    if threshold == "0 b":
        flip(next(tmp_path.rglob(f"{first}.index")), 0)
    else:
        forge(tmp_path, lambda entry: [flipped(entry, 0) if entry.file.name == first else entry])
    other = next(entry for entry in state_of(tmp_path).entries if entry.file.name == second)
    table.refresh()
    report = repaired(table)
    assert [(repair.file, repair.what, repair.done) for repair in report.repaired] == [
        (f"bucket-0/{first}", "index", "built anew")
    ]
    assert index_sizes(table) == {"bitmap of name": 2, "bloom-filter of id": 2}
    assert other in state_of(tmp_path).entries  # unchanged
    assert table.scan("name = 'n3' AND id < 10").to_arrow()["id"].to_pylist() == [3, 8]


def test_a_wrong_index_is_rebuilt_and_the_others_are_kept(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.build_indexes(  # which the options of the table do not request
        {
            "file-index.bitmap.columns": "name",
            "file-index.range-bitmap.columns": "id",
            "file-index.in-manifest-threshold": "10 kb",
        }
    )
    first, second = data_files(tmp_path)
    indexes = {entry.file.name: entry.file.embedded_index for entry in state_of(tmp_path).entries}

    def swapped(entry: Any) -> list[Any]:
        if entry.file.name != first:
            return [entry]
        return [entry.with_file(replace(entry.file, embedded_index=indexes[second]))]

    forge(tmp_path, swapped)
    table.refresh()
    (wrong,) = (index for index in table.verify().indexes if index.differing)
    assert (wrong.column, wrong.index_type, wrong.false_negatives) == ("id", "range-bitmap", 10)
    report = repaired(table)
    assert [(repair.file, repair.what, repair.done) for repair in report.repaired] == [
        (f"bucket-0/{first}", "range-bitmap of 'id'", "built anew")
    ]
    assert table.count("id = 3") == 1
    assert index_sizes(table) == {"bitmap of name": 2, "range-bitmap of id": 2}


def test_an_index_of_a_damaged_data_file_is_reported(tmp_path: Path) -> None:
    table = made(tmp_path, options=INDEXES)
    first, _ = data_files(tmp_path)
    forge(tmp_path, lambda entry: [flipped(entry, 0) if entry.file.name == first else entry])
    flip(next(tmp_path.rglob(first)), 4)
    table.refresh()
    report = table.repair()
    assert {(repair.what, repair.advice) for repair in report.not_repaired} == {
        ("index", "its data cannot be read for another: restore the data file"),
        ("column 'id'", ROLL_BACK),
    }
    assert report.commits == 0


def test_an_index_that_the_table_does_not_ask_for_and_cannot_be_read_is_dropped(
    tmp_path: Path,
) -> None:
    table = made(tmp_path)
    table.build_indexes(INDEXES)
    first, _ = data_files(tmp_path)
    forge(tmp_path, lambda entry: [flipped(entry, 0) if entry.file.name == first else entry])
    table.refresh()
    assert [repair.done for repair in repaired(table).repaired] == ["dropped"]
    assert index_sizes(table) == {"bitmap of name": 1, "bloom-filter of id": 1}


def dynamic(path: Path) -> PaimonTable:
    """A table with dynamic buckets, of ten keys each."""
    options = {**VECTORS, "bucket": "-1", "dynamic-bucket.target-row-num": "10"}
    table = create(path, primary_keys=["id"], options=options)
    table.upsert(rows_of(range(20)))
    return table


@pytest.mark.parametrize("wrong", ["cut", "gone", "count"])
def test_a_hash_index_is_made_again_from_the_keys(tmp_path: Path, wrong: str) -> None:
    table = dynamic(tmp_path)
    entry = next(index for index in state_of(tmp_path).indexes if index.index_type == "HASH")
    path = tmp_path / "index" / entry.name
    hashes = path.read_bytes()
    if wrong == "cut":
        path.write_bytes(hashes[:-3])
    elif wrong == "gone":
        path.unlink()
    else:
        new = replace(entry, rows=entry.rows + 1)
        forge(
            tmp_path,
            indexes=lambda every: [
                new if each_entry == entry else each_entry for each_entry in every
            ],
        )
    table.refresh()
    report = repaired(table)
    ((file, what, problem, done),) = repair_lines(report)
    assert (file, what) == (f"bucket-{entry.bucket}/", "hashes of keys")
    assert problem == f"{entry.rows} not in its hash index"
    assert done == f"{entry.rows} put in, 0 taken out"
    (now,) = (index for index in state_of(tmp_path).indexes if index.bucket == entry.bucket)
    data = (tmp_path / "index" / now.name).read_bytes()
    words = {data[at : at + 4] for at in range(0, len(data), 4)}
    assert words == {hashes[at : at + 4] for at in range(0, len(hashes), 4)}
    table.upsert(rows_of(range(20)))  # each key is found in its bucket
    assert ids(table) == list(range(20))
