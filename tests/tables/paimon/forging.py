"""Golden tables of Paimon that say what is not so, with metadata that is whole."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from alcid.paimon_metadata.index_manifest import IndexEntry, write_index_manifest
from alcid.paimon_metadata.manifest import ManifestEntry, write_manifest
from alcid.paimon_metadata.manifest_list import write_manifest_list
from alcid.paimon_metadata.manifest_merging import describe
from alcid.paimon_metadata.snapshot import Snapshot, snapshot_path
from alcid.paimon_metadata.table_folder import TableFolder
from alcid.paimon_metadata.table_state import TableState
from alcid.storage import Storage

Changes = Callable[[ManifestEntry], Iterable[ManifestEntry]]


def state_of(table: Path) -> TableState:
    """The table at its latest snapshot."""
    storage = Storage.open(table)
    return TableState(storage, TableFolder(storage).snapshots.latest())


def snapshot_of(table: Path) -> Snapshot:
    found = state_of(table).snapshot
    assert found is not None
    return found


def same(entry: ManifestEntry) -> list[ManifestEntry]:
    return [entry]


def with_file(**change: Any) -> Changes:
    """Every file otherwise described."""
    return lambda entry: [entry.with_file(replace(entry.file, **change))]


def forge(
    table: Path,
    files: Changes = same,
    indexes: Callable[[list[IndexEntry]], Iterable[IndexEntry]] | None = None,
) -> None:
    """Let the latest snapshot say otherwise of its files, and of its index files."""
    state, unique = state_of(table), uuid.uuid4()
    folder, snapshot = TableFolder(Storage.open(table)), snapshot_of(table)

    def put(kind: str, data: bytes) -> str:
        (table / "manifest" / f"{kind}-{unique}").write_bytes(data)
        return f"{kind}-{unique}"

    entries = [new for entry in state.entries for new in files(entry)]
    data = write_manifest(entries, "zstd")
    name = put("manifest", data)
    base = write_manifest_list([describe(entries, folder.latest_schema(), name, len(data))], "zstd")
    delta = write_manifest_list([], "zstd")
    new = replace(
        snapshot,
        base_manifest_list=put("manifest-list-base", base),
        base_manifest_list_size=len(base),
        delta_manifest_list=put("manifest-list-delta", delta),
        delta_manifest_list_size=len(delta),
    )
    if indexes is not None:
        written = write_index_manifest(indexes(list(state.indexes)), "zstd")
        new = replace(new, index_manifest=put("index-manifest", written))
    (table / snapshot_path(new.id)).write_bytes(new.to_json())


def flip(path: Path, offset: int) -> None:
    """Turn all bits of a byte; a negative offset counts from the end."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def one_file(table: Path, pattern: str) -> Path:
    """The first file by name."""
    return min(table.glob(pattern))
