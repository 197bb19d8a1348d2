"""Golden tables of Paimon with wrong but intact metadata."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from alcid import DeletionVector, DeletionVectorFile
from alcid.storage import Storage
from alcid.tables.paimon.metadata.commit import manifest_meta
from alcid.tables.paimon.metadata.manifest import ManifestEntry, write_manifest, write_manifest_list
from alcid.tables.paimon.metadata.snapshot import Snapshot, snapshot_path
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.tables.paimon.metadata.table_state import (
    DELETION_VECTORS,
    IndexEntry,
    TableState,
    write_index_manifest,
)

Changes = Callable[[ManifestEntry], Iterable[ManifestEntry]]


def state_of(table: Path) -> TableState:
    """The table at its latest snapshot."""
    storage = Storage.open(table)
    return TableState(storage, TableFolder(storage).snapshots.latest())


def snapshot_of(table: Path) -> Snapshot:
    snapshot = state_of(table).snapshot
    assert snapshot is not None
    return snapshot


def same(entry: ManifestEntry) -> list[ManifestEntry]:
    return [entry]


def with_file(**change: Any) -> Changes:
    """Change the description of every file."""
    return lambda entry: [entry.with_file(replace(entry.file, **change))]


def forge(
    table: Path,
    files: Changes = same,
    indexes: Callable[[list[IndexEntry]], Iterable[IndexEntry]] | None = None,
) -> None:
    """Change the entries of the latest snapshot for its files and its index files."""
    state, unique = state_of(table), uuid.uuid4()
    folder, snapshot = TableFolder(Storage.open(table)), snapshot_of(table)

    def put(kind: str, data: bytes) -> str:
        (table / "manifest" / f"{kind}-{unique}").write_bytes(data)
        return f"{kind}-{unique}"

    entries = [new for entry in state.entries for new in files(entry)]
    data = write_manifest(entries, "zstd")
    name = put("manifest", data)
    base = write_manifest_list(
        [manifest_meta(entries, folder.latest_schema(), name, len(data))], "zstd"
    )
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
    """Invert all bits of a byte; a negative offset counts from the end."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def one_file(table: Path, pattern: str) -> Path:
    """The first file by name."""
    return min(table.glob(pattern))


def vector_entries(table: Path) -> list[IndexEntry]:
    """The index files with deletion vectors."""
    return [index for index in state_of(table).indexes if index.index_type == DELETION_VECTORS]


def put_vectors(
    table: Path, vectors: Mapping[str, DeletionVector], number: int = 99999999, **change: Any
) -> str:
    """Add an index file to a table that has some, as another writer might; its path.

    Args:
        table: The table.
        vectors: By the names of data files.
        number: Is in its name.
        change: What its entry is to say otherwise.
    """
    entry = vector_entries(table)[0]
    folder = next(table.rglob(entry.name)).parent
    written = DeletionVectorFile.write(vectors)
    new = replace(
        entry,
        name=f"index-{number:08}-0000-0000-0000-000000000000-0",
        size=len(written.data),
        rows=len(vectors),
        ranges=written.ranges,
    )
    (folder / new.name).write_bytes(written.data)
    forge(table, indexes=lambda every: [*every, replace(new, **change)])
    return (folder / new.name).relative_to(table).as_posix()
