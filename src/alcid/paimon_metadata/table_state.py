"""A table at one snapshot: its live data files, and its live index files."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property

from alcid.paimon_metadata.index_manifest import IndexEntry, read_index_manifest
from alcid.paimon_metadata.manifest import ADD, Identity, ManifestEntry, read_manifest
from alcid.paimon_metadata.manifest_list import ManifestMeta, read_manifest_list
from alcid.paimon_metadata.snapshot import Snapshot
from alcid.paimon_metadata.uncollected import uncollected
from alcid.storage import Storage

__all__ = ["MANIFEST_FOLDER", "TableState"]

MANIFEST_FOLDER = "manifest"


class TableState:
    """What the manifests of a snapshot say; each part is read when it is first asked for.

    Reading raises FileGoneError where a file is gone, as the snapshot has expired since, and
    FormatError where one is damaged.
    """

    def __init__(self, storage: Storage, snapshot: Snapshot | None) -> None:
        """Take a snapshot; None: before the first commit, when there is nothing."""
        self._storage, self.snapshot = storage, snapshot
        self._held: dict[str, list[ManifestEntry]] = {}

    def at(self, snapshot: Snapshot | None) -> TableState:
        """The same table at another snapshot: manifests that both have are not read again."""
        if snapshot == self.snapshot:
            return self
        other = TableState(self._storage, snapshot)
        other._held = self._held
        return other

    @cached_property
    def manifests(self) -> tuple[ManifestMeta, ...]:
        """The manifests, the oldest first."""
        if self.snapshot is None:
            return ()
        base = self.snapshot.base_manifest_list, self.snapshot.base_manifest_list_size
        return (*self._list(*base), *self.delta)

    @cached_property
    def delta(self) -> tuple[ManifestMeta, ...]:
        """Those that the commit of this snapshot added."""
        if self.snapshot is None:
            return ()
        return self._list(self.snapshot.delta_manifest_list, self.snapshot.delta_manifest_list_size)

    @cached_property
    def entries(self) -> tuple[ManifestEntry, ...]:
        """The live data files, in the order in which they were added."""
        added, deleted = self._all
        return tuple(entry for identity, entry in added.items() if identity not in deleted)

    @property
    def deleted(self) -> Set[Identity]:
        """What must not be added again: it would stay deleted."""
        return self._all[1]

    @cached_property
    def live(self) -> dict[Identity, ManifestEntry]:
        """The live data files by what they are."""
        return {entry.identity: entry for entry in self.entries}

    @cached_property
    def indexes(self) -> tuple[IndexEntry, ...]:
        """The live index files."""
        if self.snapshot is None or self.snapshot.index_manifest is None:
            return ()
        name = self.snapshot.index_manifest
        (data,) = self._read([(name, None)])
        return tuple(read_index_manifest(data, file=f"{MANIFEST_FOLDER}/{name}"))

    @uncollected()
    def read(self, manifests: Sequence[ManifestMeta]) -> list[list[ManifestEntry]]:
        """The entries of some manifests; those that are not known yet in one round of reads."""
        missing = [meta for meta in manifests if meta.name not in self._held]
        parts = self._read([(meta.name, meta.size) for meta in missing])
        found = {
            meta.name: read_manifest(data, file=f"{MANIFEST_FOLDER}/{meta.name}")
            for meta, data in zip(missing, parts, strict=True)
        }
        return [found[m.name] if m.name in found else self._held[m.name] for m in manifests]

    @cached_property
    @uncollected()
    def _all(self) -> tuple[dict[Identity, ManifestEntry], set[Identity]]:
        added: dict[Identity, ManifestEntry] = {}
        deleted: set[Identity] = set()
        parts = self.read(self.manifests)
        self._held = {meta.name: part for meta, part in zip(self.manifests, parts, strict=True)}
        for entries in parts:
            for entry in entries:
                if entry.kind == ADD:
                    added[entry.identity] = entry
                else:
                    deleted.add(entry.identity)
        return added, deleted

    def _list(self, name: str, size: int | None) -> tuple[ManifestMeta, ...]:
        (data,) = self._read([(name, size)])
        return tuple(read_manifest_list(data, file=f"{MANIFEST_FOLDER}/{name}"))

    def _read(self, files: Sequence[tuple[str, int | None]]) -> list[bytes]:
        """Whole files of the manifest folder."""
        paths = [f"{MANIFEST_FOLDER}/{name}" for name, _ in files]
        sources = [
            self._storage.source(path, size) for path, (_, size) in zip(paths, files, strict=True)
        ]
        return self._storage.read_many(
            (path, 0, source.size) for path, source in zip(paths, sources, strict=True)
        )
