"""Small Paimon tables to damage and to repair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.formats.deletion_vector import DeletionVectorRange
from alcid.tables.maintenance.repair import RepairReport
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.tables.maintenance.forging import (
    flip,
    forge,
    vector_entries,
)
from tests.tables.paimon.small_tables import VECTORS, create

KINDS: dict[str, dict[str, Any]] = {
    "any bucket": {},
    "buckets": {"options": {"bucket": "1", "bucket-key": "id"}},
    "key": {"options": {"bucket": "1"}, "primary_keys": ["id"]},
    "beside the data": {"options": {"index-file-in-data-file-dir": "true"}},
    "64 bits": {"options": {"deletion-vectors.bitmap64": "true"}},
}
every_kind = pytest.mark.parametrize("kind", KINDS)

INDEXES = {"file-index.bitmap.columns": "name", "file-index.bloom-filter.columns": "id"}


def rows_of(ids: Iterable[int]) -> pa.Table:
    keys = list(ids)
    return pa.table({"id": pa.array(keys, pa.int64()), "name": [f"n{key % 5}" for key in keys]})


def made(path: Path, kind: str = "any bucket", options: Mapping[str, str] = {}) -> PaimonTable:
    """Two files, with ids 0 to 9 and 10 to 19; 1 and 11 are deleted."""
    settings = KINDS[kind]
    table = create(
        path, **{**settings, "options": {**VECTORS, **settings.get("options", {}), **options}}
    )
    write = table.upsert if table.snapshot.schema.primary_keys else table.append
    for first in (0, 10):
        write(rows_of(range(first, first + 10)))
    table.delete("id IN (1, 11)")
    assert ids(table) == without(1, 11)
    return table


def ids(table: PaimonTable) -> list[int]:
    table.refresh()
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def without(*gone: int) -> list[int]:
    return [key for key in range(20) if key not in gone]


def data_files(path: Path) -> list[str]:
    """The names of the data files with ids 0 and 10."""
    table = alcid.paimon(path)
    keys_by_name = {
        placed.file.name: pa.parquet.read_table(path / placed.path, partitioning=None)["id"][
            0
        ].as_py()
        for placed in table.snapshot.placed
        if placed.file.delete_rows == 0 or placed.file.delete_rows is None
    }
    return sorted(keys_by_name, key=lambda name: keys_by_name[name])


def change_entries(path: Path, change: Callable[[IndexEntry], IndexEntry]) -> None:
    """Change the index manifest's entries for all files of vectors."""
    forge(path, indexes=lambda every: [change(entry) if entry.ranges else entry for entry in every])


def repair_lines(report: RepairReport) -> list[tuple[str, str, str, str]]:
    return sorted(
        (repair.file, repair.what, repair.problem, repair.done) for repair in report.repaired
    )


def repaired(table: PaimonTable, *, commits: int = 1) -> RepairReport:
    """Repair: a dry run says the same and changes nothing, and a second run has nothing to do."""
    files = {path: path.stat().st_mtime_ns for path in Path(table.location).rglob("*")}
    before, forged = table.snapshot_id, {leftover.path for leftover in table.verify().leftovers}
    trial = table.repair(dry_run=True)
    assert {path: path.stat().st_mtime_ns for path in Path(table.location).rglob("*")} == files
    report = table.repair()
    assert (repair_lines(trial), trial.not_repaired, trial.commits, trial.dry_run) == (
        repair_lines(report),
        report.not_repaired,
        commits,
        True,
    )
    assert (report.commits, report.dry_run) == (commits, False)
    assert table.snapshot_id == (before or 0) + commits
    again = table.repair()
    assert (again.repaired, again.commits, again.snapshot_id) == ((), 0, None)
    assert again.not_repaired == report.not_repaired
    report_after = table.verify()
    assert [(problem.file, problem.what, problem.problem) for problem in report_after.problems] == [
        (repair.file, repair.what, repair.problem) for repair in report.not_repaired
    ]
    assert {leftover.path for leftover in report_after.leftovers} == forged
    return report


def damage(path: Path, data_file: str) -> tuple[Path, bytes]:
    """Flip a bit in the vector of a data file; returns its index file and the original bytes."""
    for entry in vector_entries(path):
        for vector_range in entry.ranges or ():
            if vector_range.data_file == data_file:
                index_file = next(path.rglob(entry.name))
                before = index_file.read_bytes()
                flip(index_file, vector_range.offset + 12)
                return index_file, before
    raise AssertionError(data_file)


def ranges_of(entry: IndexEntry) -> Sequence[DeletionVectorRange]:
    return entry.ranges or ()


def flipped(entry: Any, offset: int) -> Any:
    data = bytearray(entry.file.embedded_index)
    data[offset] ^= 0xFF
    return entry.with_file(replace(entry.file, embedded_index=bytes(data)))
