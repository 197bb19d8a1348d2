"""The manifests of the latest snapshot, each of them read: which are damaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from alcid.errors import FileGoneError, FormatError, StorageError
from alcid.paimon_metadata.index_manifest import read_index_manifest
from alcid.paimon_metadata.manifest import ADD, ManifestEntry, read_manifest
from alcid.paimon_metadata.manifest_list import read_manifest_list
from alcid.paimon_metadata.snapshot import Snapshot
from alcid.paimon_metadata.table_folder import TableFolder
from alcid.paimon_metadata.table_state import MANIFEST_FOLDER, TableState
from alcid.storage import Storage
from alcid.tables.verify_report import Findings

__all__ = ["read_state"]

_TRIES = 5


def read_state(folder: TableFolder, findings: Findings) -> TableState | None:
    """The table at its latest snapshot; None if it cannot be told, as its metadata is damaged.

    Args:
        folder: The schemas and snapshots of a branch of it.
        findings: Collects what is wrong.
    """
    storage, snapshots = folder.storage, folder.snapshots
    for left in reversed(range(_TRIES)):
        try:
            snapshot = snapshots.latest()
        except FormatError as error:
            findings.add(error.file or "", "snapshot", error)
            return None
        state = TableState(storage, snapshot)
        try:
            _ = state.indexes
            _check_counts(state, state.read(state.manifests), findings)
        except (FormatError, StorageError):
            if left and snapshot and not storage.exists(snapshots.path(snapshot.id)):
                continue  # it has expired while it was read
            if snapshot is None or not _find_damage(storage, snapshot, findings):
                raise
            return None
        return state
    raise AssertionError("the last try returns or raises")


def _check_counts(
    state: TableState, manifests: Iterable[list[ManifestEntry]], findings: Findings
) -> None:
    """See that manifests are of as many entries as their lists say."""
    for meta, entries in zip(state.manifests, manifests, strict=True):
        added = sum(entry.kind == ADD for entry in entries)
        found, expected = (meta.added, meta.deleted), (added, len(entries) - added)
        if found != expected:
            problem = f"found {found[0]} added and {found[1]} deleted, expected {expected[0]} and "
            path = f"{MANIFEST_FOLDER}/{meta.name}"
            findings.add(path, "counts in its list", f"{problem}{expected[1]}")


def _find_damage(storage: Storage, snapshot: Snapshot, findings: Findings) -> bool:
    """Look at each file by itself, and tell which are damaged; whether there are any."""
    before = findings.count
    manifests: dict[str, int] = {}

    def read_list(data: bytes, *, file: str) -> None:
        found = read_manifest_list(data, file=file)
        manifests.update((meta.name, meta.size) for meta in found)

    for name, size in (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    ):
        _look(storage, name, size, read_list, findings)
    for name, size in manifests.items():
        _look(storage, name, size, read_manifest, findings)
    if snapshot.index_manifest is not None:
        _look(storage, snapshot.index_manifest, None, read_index_manifest, findings)
    return findings.count > before


class _Read(Protocol):
    def __call__(self, data: bytes, *, file: str) -> object: ...


def _look(storage: Storage, name: str, size: int | None, read: _Read, findings: Findings) -> None:
    path = f"{MANIFEST_FOLDER}/{name}"
    source = storage.source(path)
    try:
        if size is not None and source.size != size:
            findings.add(path, "size", f"found {source.size} bytes, expected {size}")
        else:
            read(source.read(0, source.size), file=path)
    except FileGoneError:
        findings.add(path, "", "is not there")
    except FormatError as error:
        findings.add(path, "", error)
