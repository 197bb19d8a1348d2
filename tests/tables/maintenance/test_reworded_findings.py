"""Findings are typed: even with all messages reworded, a repair does exactly the same."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import alcid
from alcid import DeletionVector
from alcid.formats.puffin import THETA_SKETCH
from alcid.formats.puffin.reader import PuffinReader
from alcid.formats.source import BytesSource
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.maintenance.findings import LABELS, Finding, FindingKind, Findings
from alcid.tables.maintenance.repair import NotRepaired, Repaired, RepairReport
from tests.tables.iceberg.memory_catalog import MemoryCatalog
from tests.tables.iceberg.vector_catalog import VectorCatalog
from tests.tables.maintenance.forging import flip, forge, put_vectors, state_of
from tests.tables.maintenance.repair_kit import (
    INDEXES,
    change_entries,
    damage,
    data_files,
    flipped,
    made,
    rows_of,
)
from tests.tables.paimon.small_tables import VECTORS, create

if TYPE_CHECKING:
    from collections.abc import Iterator

    AnyTable = alcid.ParquetTable | alcid.PaimonTable | IcebergTable


def parquet_indexes(path: Path) -> AnyTable:
    """A damaged index payload, a file that was replaced, and one that cannot be read."""
    path.mkdir()
    for number in range(4):
        pq.write_table(rows_of(range(number * 10, number * 10 + 10)), path / f"{number}.parquet")
    alcid.parquet(path).build_indexes(INDEXES)
    (bundle,) = (path / "_alcid").glob("*.puffin")
    flip(bundle, 10)
    times = (path / "2.parquet").stat()
    flip(path / "2.parquet", -1)
    pq.write_table(rows_of(range(30, 40)).take(list(range(9, -1, -1))), path / "3.parquet")
    for name in ("2.parquet", "3.parquet"):
        os.utime(path / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    return alcid.parquet(path)


def parquet_bundles(path: Path) -> AnyTable:
    """A bundle with partial damage, and another one that cannot be read at all."""
    path.mkdir()
    for number in range(2):
        pq.write_table(rows_of(range(10)), path / f"{number}.parquet")
        alcid.parquet(path).build_indexes(INDEXES)
    first, second = sorted((path / "_alcid").glob("*.puffin"))
    blobs = PuffinReader(BytesSource(first.read_bytes())).blobs
    blob = next(blob for blob in blobs if blob.type == "alcid-directory-v1")
    flip(first, blob.offset + blob.length - 1)
    flip(second, -10)
    return alcid.parquet(path)


def paimon(path: Path, kind: str) -> AnyTable:
    """Two vectors for a file, one for no file, a damaged one, wrong counts, a container."""
    made(path, kind, INDEXES)
    first, second = data_files(path)[:2]
    put_vectors(path, {second: DeletionVector([3]), "gone": DeletionVector([0])}, 1)
    put_vectors(path, {}, 2, ranges=())
    change_entries(path, lambda entry: replace(entry, rows=entry.rows + 1))
    forge(path, lambda entry: [flipped(entry, 0) if entry.file.name == second else entry])
    damage(path, first)
    return alcid.paimon(path)


def paimon_indexes(path: Path) -> AnyTable:
    """An index of another file, and a missing data file."""
    made(path, options=INDEXES)
    first, second = data_files(path)
    indexes = {entry.file.name: entry.file.embedded_index for entry in state_of(path).entries}

    def swapped(entry: Any) -> list[Any]:
        if entry.file.name != first:
            return [entry]
        return [entry.with_file(replace(entry.file, embedded_index=indexes[second]))]

    forge(path, swapped)
    next(path.rglob(second)).unlink()
    return alcid.paimon(path)


def paimon_keys(path: Path) -> AnyTable:
    """Keys that are live twice because their marks are lost, and a missing hash index."""
    options = {**VECTORS, "bucket": "-1", "dynamic-bucket.target-row-num": "10"}
    table = create(path, primary_keys=["id"], options=options)
    table.upsert(rows_of(range(20)))
    table.upsert(rows_of(range(5)))
    hashes = next(index for index in state_of(path).indexes if index.index_type == "HASH")
    forge(path, indexes=lambda every: [entry for entry in every if entry.index_type == "HASH"])
    (path / "index" / hashes.name).unlink()
    return alcid.paimon(path)


def iceberg_statistics(path: Path) -> AnyTable:
    """A damaged index and a damaged sketch, and metadata that contradict the file."""
    catalog = MemoryCatalog(path)
    catalog.add({f"{name}.parquet": {"id": [1, 2], "name": ["x", "y"]} for name in "ab"})
    table = IcebergTable(catalog)
    table.build_indexes(INDEXES)
    table.compute_stats(["name"])
    (puffin,) = catalog.puffins()
    blobs = PuffinReader(BytesSource(puffin.read_bytes())).blobs
    flip(puffin, next(blob for blob in blobs if blob.type != THETA_SKETCH).offset + 10)
    flip(puffin, next(blob for blob in blobs if blob.type == THETA_SKETCH).offset + 10)
    (file,) = catalog.metadata["statistics"]
    file["file-footer-size-in-bytes"] += 1
    catalog.put_statistics(1000, file)
    table.refresh()
    return table


def iceberg_bundle(path: Path) -> AnyTable:
    """A statistics file that cannot be read, and a missing data file."""
    catalog = MemoryCatalog(path)
    catalog.add({f"{name}.parquet": {"id": [1, 2], "name": ["x", "y"]} for name in "ab"})
    table = IcebergTable(catalog)
    table.build_indexes(INDEXES)
    (puffin,) = catalog.puffins()
    flip(puffin, -10)
    (path / "data" / "a.parquet").unlink()
    return IcebergTable(catalog)


def iceberg_vectors(path: Path) -> AnyTable:
    """A vector with a wrong number of rows, and one for a file that is not live."""
    catalog = VectorCatalog(path)
    catalog.add({f"{name}.parquet": {"id": [1, 2, 3], "name": ["x"] * 3} for name in "ab"})
    catalog.open().delete("id = 3", progress=False)
    vectors = [entry for entry in catalog.current if entry["content"] == 1]
    vectors[0]["record_count"] = 2
    vectors[1]["referenced_data_file"] = "/gone.parquet"
    return catalog.open()


SCENARIOS: dict[str, Callable[[Path], AnyTable]] = {
    "parquet, indexes": parquet_indexes,
    "parquet, bundles": parquet_bundles,
    "paimon": partial(paimon, kind="any bucket"),
    "paimon with buckets": partial(paimon, kind="buckets"),
    "paimon with a key": partial(paimon, kind="key"),
    "paimon, indexes": paimon_indexes,
    "paimon, keys": paimon_keys,
    "iceberg, statistics": iceberg_statistics,
    "iceberg, bundle": iceberg_bundle,
    "iceberg, vectors": iceberg_vectors,
}


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}T[\d.]+Z-[0-9a-f]{12}")


@contextmanager
def reworded() -> Iterator[None]:
    """Replace the text of every finding by one that says nothing, or something else."""
    numbers, append = count(), Findings.append

    def append_reworded(findings: Findings, finding: Finding) -> None:
        append(findings, replace(finding, detail=f"deletion vector of x {next(numbers)}"))

    with pytest.MonkeyPatch.context() as patch:
        for number, kind in enumerate(FindingKind):
            patch.setitem(LABELS, kind, f"keys {number}: the manifest says")
        patch.setattr(Findings, "append", append_reworded)
        yield


def decided(report: RepairReport, folder: Path) -> list[tuple[object, ...]]:
    """What a repair did, without the words of the findings."""

    def about(decision: Repaired | NotRepaired) -> tuple[object, ...]:
        finding = decision.finding
        file, data_file = (
            UUID.sub("*", path.replace(str(folder), ""))
            for path in (finding.file, finding.data_file)
        )
        return finding.kind, file, finding.column, finding.index_type, data_file, finding.severity

    repaired = [(*about(repair), repair.done, repair.count) for repair in report.repaired]
    left = [(*about(repair), repair.advice) for repair in report.not_repaired]
    sizes = len(report.removed), len(report.kept)
    return [*repaired, *left, (report.ok, report.commits, sizes, report.dry_run)]


def rows(table: AnyTable) -> list[dict[str, Any]] | None:
    try:
        return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["id"], row["name"]))
    except (alcid.AlcidError, OSError):
        return None


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.filterwarnings("ignore::alcid.errors.AlcidWarning")
def test_a_repair_decides_by_kinds_and_not_by_words(tmp_path: Path, scenario: str) -> None:
    folder = tmp_path / "t"
    table = SCENARIOS[scenario](folder)
    plain = [decided(table.repair(dry_run=True), folder), decided(table.repair(), folder)]
    result = rows(table), table.verify().ok
    shutil.rmtree(folder)
    table = SCENARIOS[scenario](folder)
    with reworded():
        report = table.repair(dry_run=True)
        assert report.repaired
        assert all(": the manifest says" in repair.what for repair in report.repaired)
        other = [decided(report, folder), decided(table.repair(), folder)]
    assert sorted(map(str, other[0])) == sorted(map(str, plain[0]))
    assert sorted(map(str, other[1])) == sorted(map(str, plain[1]))
    assert (rows(table), table.verify().ok) == result


def test_every_kind_has_a_label() -> None:
    assert set(LABELS) == set(FindingKind)
    for kind in FindingKind:
        assert "{" not in Finding(kind, "f", "wrong", "id", "bitmap", "data").what
