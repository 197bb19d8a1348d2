"""What the snapshots of a table need, in columns, compared with reading every entry."""

from __future__ import annotations

import random
import shutil
import tracemalloc
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.errors import FormatError
from alcid.storage import Storage
from alcid.tables.paimon.metadata import references
from alcid.tables.paimon.metadata.commit import Change, manifest_meta
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    ManifestEntry,
    read_manifest,
    write_manifest,
    write_manifest_list,
)
from alcid.tables.paimon.metadata.references import (
    MetadataReader,
    needed_names,
    read_named_files,
    read_roots,
)
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.paimon_table import PaimonTable
from tests.golden.paimon_tables import table_names, unpack_table
from tests.tables.paimon.small_tables import append, commit, create, write_file

MOST_BYTES_A_FILE = 400
"""What a table takes for each of its files while it is asked which are needed."""


def manifests_of(table: Path) -> list[Path]:
    paths = (table / "manifest").glob("manifest-*")
    return sorted(path for path in paths if not path.name.startswith("manifest-list-"))


@pytest.mark.parametrize("name", table_names())
def test_names_are_those_of_whole_entries(tmp_path: Path, name: str) -> None:
    for path in manifests_of(unpack_table(name, tmp_path)):
        data = path.read_bytes()
        entries = read_manifest(data, file=path.name)
        files = read_named_files(data, file=path.name)
        assert files.is_added.tolist() == [entry.kind == ADD for entry in entries]
        assert files.partitions.to_pylist() == [entry.partition for entry in entries]
        assert files.buckets.tolist() == [entry.bucket for entry in entries]
        assert files.sizes.tolist() == [entry.file.size for entry in entries]
        named = [
            (number, name)
            for number, entry in enumerate(entries)
            for name in (entry.file.name, *entry.file.extra_files)
        ]
        assert [*zip(files.entries.tolist(), files.names.to_pylist(), strict=True)] == named
        identities = files.identities.to_pylist()
        same = {entry.identity: key for entry, key in zip(entries, identities, strict=True)}
        assert [same[entry.identity] for entry in entries] == identities
        assert len(set(identities)) == len(same)


def every_needed_name(storage: Storage) -> set[str]:
    """The names of all files that are needed, found by reading every entry of every root."""
    needed = set[str]()
    for root in read_roots(storage):
        state = TableState(storage, root.snapshot)
        for entry in state.entries:
            needed |= {entry.file.name, *entry.file.extra_files}
        needed |= {meta.name for meta in state.manifests} | {one.name for one in state.indexes}
        needed |= {*root.lists, *root.index_manifests}
        needed |= {root.snapshot.statistics} - {None}  # type: ignore[arg-type]
    return needed


def check_needed(table: Path) -> tuple[int, int]:
    """Compare; how many names are needed, and how many are not."""
    storage = Storage.open(table)
    every = storage.list(hidden=True).paths.to_pylist()
    names = sorted({path.rpartition("/")[2] for path in every})
    source = random.Random(len(names))
    source.shuffle(names)
    names += names[:3]  # it is no matter if one is asked for twice
    needed = needed_names(storage, read_roots(storage), pa.array(names, pa.string()))
    expected = every_needed_name(storage)
    assert {
        name for name, is_needed in zip(names, needed, strict=True) if is_needed
    } == expected & {*names}
    return int(needed.sum()), int((~needed).sum())


@pytest.mark.parametrize("name", table_names())
def test_golden_tables_need_what_every_entry_says(tmp_path: Path, name: str) -> None:
    table = unpack_table(name, tmp_path)
    assert check_needed(table)[0] > 3
    numbers = sorted(int(path.name[9:]) for path in (table / "snapshot").glob("snapshot-*"))
    for number in numbers[:-1]:
        (table / f"snapshot/snapshot-{number}").unlink()
        check_needed(table)


@pytest.mark.parametrize("seed", range(8))
def test_random_histories_need_what_every_entry_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Files come, go, change their index and level; snapshots expire, and tags are made."""
    monkeypatch.setattr(references, "ROUND_FILES", 3)
    source = random.Random(seed)
    table = create(tmp_path)
    live: list[ManifestEntry] = []
    unneeded = 0
    for step in range(25):
        deleted = source.sample(live, source.randint(0, len(live) // 2))
        added = [write_file(table, _rows(step)) for _ in range(source.randint(1, 3))]
        for entry in [one for one in deleted if source.random() < 0.5]:
            extra = source.choice([entry.file.extra_files, (f"{uuid.uuid4()}.index",)])
            file = replace(entry.file, extra_files=extra, level=entry.file.level + 1)
            for name in extra:
                (tmp_path / "bucket-0" / name).write_bytes(b"index")
            added.append(entry.with_file(file))
        commit(table, Change(kind="OVERWRITE", deleted=deleted, added=added))
        live = [one for one in live if one not in deleted] + added
        if source.random() < 0.2:
            (tmp_path / "tag").mkdir(exist_ok=True)
            numbers = table.folder.snapshots.numbers()
            shutil.copy(
                tmp_path / f"snapshot/snapshot-{source.choice(numbers)}",
                tmp_path / f"tag/tag-{step}",
            )
        if source.random() < 0.3:
            for number in table.folder.snapshots.numbers()[: source.randint(0, 6)][:-1]:
                (tmp_path / f"snapshot/snapshot-{number}").unlink()
        unneeded += check_needed(tmp_path)[1]
    assert unneeded > 50


def _rows(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "name": ["x"]})


def test_a_manifest_of_another_size_than_its_list_says_is_damaged(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = append(table, [1])
    (meta,) = table.snapshot.state.delta
    path = tmp_path / "manifest" / meta.name
    path.write_bytes(path.read_bytes() + b"x")
    storage = Storage.open(tmp_path)
    with pytest.raises(FormatError, match=rf"size of a manifest: found {meta.size + 1}, expected"):
        needed_names(storage, read_roots(storage), pa.array([entry.file.name]))


def test_manifests_are_read_in_rounds_of_so_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path)
    for number in range(20):
        append(table, [number])
    sizes: dict[str, int | None] = {meta.name: meta.size for meta in table.snapshot.state.manifests}
    largest = max(size for size in sizes.values() if size)
    monkeypatch.setattr(references, "ROUND_BYTES", 3 * largest)
    read: list[int] = []
    real = Storage.read_many

    def read_many(self: Storage, requests: Any) -> Any:
        every = list(requests)
        read.append(sum(length for _, _, length in every))
        return real(self, every)

    monkeypatch.setattr(Storage, "read_many", read_many)
    reader = MetadataReader(Storage.open(tmp_path))
    names = [name for manifests in reader.read_entries(sizes) for name, _ in manifests]
    assert sorted(names) == sorted(sizes)
    assert 5 < len(read) <= 10
    assert max(read) <= 3 * largest
    monkeypatch.setattr(references, "ROUND_BYTES", 1)  # one at a time, however large
    read.clear()
    assert len([*reader.read_entries(sizes)]) == len(sizes)
    assert len(read) == len(sizes)


def made_up_table(folder: Path, manifests: int, files: int) -> list[str]:
    """A table of so many files in each manifest, which are not there; their names."""
    table = create(folder)
    entry = write_file(table, _rows(0))
    metas, names = [], []
    for number in range(manifests):
        entries = [
            replace(entry, file=replace(entry.file, name=f"data-{uuid.uuid4()}-{number}.parquet"))
            for _ in range(files)
        ]
        names += [one.file.name for one in entries]
        data = write_manifest(entries, "zstd")
        name = f"manifest-{uuid.uuid4()}-0"
        table.storage.put(f"manifest/{name}", data)
        metas.append(manifest_meta(entries[:2], table.snapshot.schema, name, len(data)))
    lists = {"manifest-list-base": metas, "manifest-list-delta": []}
    for name, part in lists.items():
        table.storage.put(f"manifest/{name}", write_manifest_list(part, "zstd"))
    snapshot = Snapshot(
        id=1,
        schema_id=0,
        base_manifest_list="manifest-list-base",
        delta_manifest_list="manifest-list-delta",
        commit_user="u",
        commit_identifier=1,
        commit_kind="APPEND",
        time_millis=0,
    )
    table.storage.put("snapshot/snapshot-1", snapshot.to_json())
    return names


def test_memory_for_each_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = made_up_table(tmp_path, 8, 5_000)
    storage = Storage.open(tmp_path)
    roots = read_roots(storage)
    asked = pa.array([*names, "other"], pa.string())
    monkeypatch.setattr(references, "ROUND_BYTES", 1)
    default = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(default)  # which counts from here on
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        needed = needed_names(storage, roots, asked)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(default)
    assert np.flatnonzero(~needed).tolist() == [len(names)]
    # Of Python's objects only those of one manifest are there at a time.
    of_one = 5_000 * 2_000
    assert peak < of_one + MOST_BYTES_A_FILE * len(names), peak
    most = pool.max_memory()
    assert most is not None
    assert most < MOST_BYTES_A_FILE * len(names), most


def test_a_table_whose_latest_snapshot_is_named_by_nothing_needs_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    append(table, [1])
    assert [root.path for root in read_roots(table.storage)] == ["snapshot/snapshot-1"]
    assert PaimonTable(table.storage).count() == 1
