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
    return pa.table({"id": pa.array(keys, pa.int64()), "name": [f"n{one % 5}" for one in keys]})


def made(path: Path, kind: str = "any bucket", options: Mapping[str, str] = {}) -> PaimonTable:
    """Two files, of ids 0 to 9 and 10 to 19; 1 and 11 are deleted."""
    given = KINDS[kind]
    table = create(path, **{**given, "options": {**VECTORS, **given.get("options", {}), **options}})
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
    return [one for one in range(20) if one not in gone]


def data_files(path: Path) -> list[str]:
    """The names of the data files that hold 0 and 10."""
    table = alcid.paimon(path)
    found = {
        one.file.name: pa.parquet.read_table(path / one.path, partitioning=None)["id"][0].as_py()
        for one in table.snapshot.placed
        if one.file.delete_rows == 0 or one.file.delete_rows is None
    }
    return sorted(found, key=lambda name: found[name])


def change_entries(path: Path, change: Callable[[IndexEntry], IndexEntry]) -> None:
    """Let the index manifest say otherwise of all files of vectors."""
    forge(path, indexes=lambda every: [change(one) if one.ranges else one for one in every])


def told(report: RepairReport) -> list[tuple[str, str, str, str]]:
    return sorted((one.file, one.what, one.problem, one.done) for one in report.repaired)


def repaired(table: PaimonTable, *, commits: int = 1) -> RepairReport:
    """Repair: a dry run says the same and changes nothing, and nothing is left to a second one."""
    files = {one: one.stat().st_mtime_ns for one in Path(table.location).rglob("*")}
    before, forged = table.snapshot_id, {one.path for one in table.verify().leftovers}
    trial = table.repair(dry_run=True)
    assert {one: one.stat().st_mtime_ns for one in Path(table.location).rglob("*")} == files
    report = table.repair()
    assert (told(trial), trial.not_repaired, trial.commits, trial.dry_run) == (
        told(report),
        report.not_repaired,
        commits,
        True,
    )
    assert (report.commits, report.dry_run) == (commits, False)
    assert table.snapshot_id == (before or 0) + commits
    again = table.repair()
    assert (again.repaired, again.commits, again.snapshot_id) == ((), 0, None)
    assert again.not_repaired == report.not_repaired
    found = table.verify()
    assert [(one.file, one.what, one.problem) for one in found.problems] == [
        (one.file, one.what, one.problem) for one in report.not_repaired
    ]
    assert {one.path for one in found.leftovers} == forged
    return report


def damage(path: Path, data_file: str) -> tuple[Path, bytes]:
    """Flip a bit in the vector of a data file; its index file, and what that was."""
    for entry in vector_entries(path):
        for place in entry.ranges or ():
            if place.data_file == data_file:
                found = next(path.rglob(entry.name))
                before = found.read_bytes()
                flip(found, place.offset + 12)
                return found, before
    raise AssertionError(data_file)


def ranges_of(entry: IndexEntry) -> Sequence[DeletionVectorRange]:
    return entry.ranges or ()


def flipped(entry: Any, offset: int) -> Any:
    data = bytearray(entry.file.embedded_index)
    data[offset] ^= 0xFF
    return entry.with_file(replace(entry.file, embedded_index=bytes(data)))
