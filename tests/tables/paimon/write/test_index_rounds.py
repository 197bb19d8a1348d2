"""Listing, building and dropping the indexes of many files: in rounds, in bounded memory."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid import FileIndex
from alcid.storage import Storage
from alcid.storage.backend import FileHead
from alcid.tables.paimon.indexes import given_specs
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.write import index_plan
from alcid.tables.paimon.write.build import build, drop, indexes
from alcid.tables.paimon.write.index_plan import IndexItem, containers_of, plan_files
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.reports import SkippedCounter
from tests.tables.paimon import small_tables

FILES = 20_000
_CONTAINER = 16 << 10
_PER_FILE = 700
"""Bytes of a file that a plan may hold while it is made; its container is not among them."""
_PER_ITEM = 400
"""Bytes of a file when its item is sent to a task."""
BLOOM = {"file-index.bloom-filter.columns": "id"}
BOTH = {**BLOOM, "file-index.bitmap.columns": "name"}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> PaimonTable:
    """A table whose manifests name many files with index files, none of which is there."""
    table = small_tables.create(tmp_path_factory.mktemp("many") / "t", options={})
    entry = small_tables.write_file(table, small_tables.rows_of(range(3)))
    entries = []
    for number in range(FILES):
        name = f"data-{number:032}-0.parquet"
        file = replace(entry.file, name=name, extra_files=(f"{name}.index",))
        entries.append(entry.with_file(file))
    small_tables.commit(table, Change(kind="APPEND", added=entries))
    return alcid.paimon(table.location)


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each index file has a bloom filter, and its first 16 KiB are an object of its own."""
    ids = pa.table({"id": pa.array(np.arange(10_000) * 7)})
    data = FileIndex.build(ids, {**BLOOM, "file-index.bloom-filter.id.fpp": "0.00001"}).to_bytes()

    assert len(data) > _CONTAINER

    def read_heads(
        _storage: Storage, paths: Sequence[str], most: int, _sizes: Mapping[str, int]
    ) -> list[FileHead]:
        assert len(paths) <= index_plan.ROUND
        return [FileHead(len(data), bytes(bytearray(data[:most]))) for _ in paths]

    monkeypatch.setattr(Storage, "read_heads", read_heads)


@pytest.mark.usefixtures("containers")
@pytest.mark.parametrize(
    "plan",
    [
        lambda table: [one.fresh for one in indexes(table)] == [FILES],
        lambda table: build(table, BOTH, dry_run=True).indexed == FILES,
        lambda table: drop(table, ["id"], dry_run=True) == FILES,
    ],
    ids=["indexes", "build", "drop"],
)
def test_memory_is_that_of_a_round(
    many: PaimonTable, plan: Callable[[PaimonTable], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All containers at once would take 17 KiB a file: 340 MB."""
    monkeypatch.setattr(PaimonTable, "refresh", lambda _: None)  # its manifests are not measured
    tracemalloc.start()
    try:
        assert plan(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * index_plan.ROUND * _CONTAINER + FILES * _PER_FILE


def test_items_of_a_task_are_small_however_many_columns_have_statistics(tmp_path: Path) -> None:
    columns = {f"c{number}": "BIGINT" for number in range(100)}
    table = small_tables.create(tmp_path / "t", columns, options={})
    rows = pa.table({name: pa.array([1, 2], pa.int64()) for name in columns})
    entry = small_tables.write_file(table, rows)
    entries = [
        entry.with_file(replace(entry.file, name=f"data-{number:036}-0.parquet"))
        for number in range(500)
    ]
    small_tables.commit(table, Change(kind="APPEND", added=entries))
    files = table.snapshot
    containers = containers_of(table.storage, index_plan.indexable_files(files)[0])
    specs = given_specs(files.schema, {"file-index.bloom-filter.columns": "c1,c2"})
    plans = plan_files(files, containers, specs, SkippedCounter(), rebuild=False)
    items = [IndexItem(number, one, 0) for number, one in enumerate(plans)]
    sent = pickle.dumps(items)
    assert len(sent) < len(items) * _PER_ITEM
    received = pickle.loads(sent)
    assert [one.file_plan.placed.path for one in received] == [one.placed.path for one in plans]
    assert [one.file_plan.build for one in received] == [one.build for one in plans]


@pytest.mark.parametrize("files_of_a_round", [1, 3, 100])
def test_rounds_of_any_size_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_of_a_round: int
) -> None:
    table = small_tables.create(tmp_path / "t", options={})
    for first in range(7):
        small_tables.append(table, range(first, first + 5))
    table.refresh()
    assert table.build_indexes({**BLOOM, "file-index.in-manifest-threshold": "1 b"}).indexed == 7
    small_tables.append(table, [1])
    table.refresh()
    damaged = sorted((tmp_path / "t" / "bucket-0").glob("*.index"))[2]
    damaged.write_bytes(b"damaged")
    expected = _everything(table)
    monkeypatch.setattr(index_plan, "ROUND", files_of_a_round)
    assert _everything(table) == expected


def _everything(table: PaimonTable) -> tuple[object, ...]:
    built = table.build_indexes(BOTH, dry_run=True)
    return table.indexes(), built.missing, built.dropped, built.indexed, drop(table, dry_run=True)
