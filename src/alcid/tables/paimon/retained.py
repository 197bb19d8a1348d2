"""The files that some snapshot of a Paimon table needs, by their names.

    snapshot/snapshot-<n>   tag/tag-<name>   changelog/changelog-<n>
    branch/branch-<name>/   the same three again

All of these keep files. A data file, with its indexes, is needed where it is live in one of them:
an entry by which it went does not keep it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from alcid.errors import FileGoneError, FormatError
from alcid.paimon_metadata.index_manifest import read_index_manifest
from alcid.paimon_metadata.manifest import ADD, Identity, read_manifest
from alcid.paimon_metadata.manifest_list import read_manifest_list
from alcid.paimon_metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.paimon_metadata.table_state import MANIFEST_FOLDER
from alcid.plan.threads import run_in_threads
from alcid.storage import Storage

__all__ = ["needed_names"]

_T = TypeVar("_T")
Integers = npt.NDArray[np.int64]

_KEEPER = re.compile(
    r"(branch/branch-[^/]+/)?(snapshot/snapshot-\d+|tag/tag-[^/]+|changelog/changelog-\d+)"
)
_CHANGELOG = re.compile(r"(^|/)changelog/")
_FOLDERS = ("snapshot", "tag", "changelog", "branch")
_TRIES = 10
_TOGETHER = 64  # manifests that are in memory at a time


@dataclass(slots=True)
class _Kept:
    """What one snapshot names."""

    path: str
    snapshot: Snapshot

    @property
    def may_lack(self) -> bool:
        """Whether some of it may be gone: a changelog outlives its snapshot."""
        return _CHANGELOG.search(self.path) is not None

    @property
    def states(self) -> list[list[str]]:
        """Lists of manifests: those that together are its data files, and that of changes."""
        changes = self.snapshot.changelog_manifest_list
        data = [self.snapshot.base_manifest_list, self.snapshot.delta_manifest_list]
        return [data] if changes is None else [data, [changes]]

    @property
    def lists(self) -> list[str]:
        """All lists of manifests."""
        return [name for some in self.states for name in some]

    @property
    def indexes(self) -> list[str]:
        """The index manifest, if there is one."""
        name = self.snapshot.index_manifest
        return [] if name is None else [name]


@dataclass(slots=True)
class _Manifest:
    """The data files of a manifest, by their numbers."""

    added: Integers
    deleted: Integers


@dataclass(slots=True)
class _Entries:
    """All entries of all manifests: an identity is its number."""

    numbers: dict[Identity, int] = field(default_factory=dict)
    names: list[tuple[str, ...]] = field(default_factory=list)
    """The data file, and the files beside it."""

    def manifest(self, data: bytes, file: str) -> _Manifest:
        """Enter a manifest."""
        added, deleted = list[int](), list[int]()
        for entry in read_manifest(data, file=file):
            number = self.numbers.setdefault(entry.identity, len(self.names))
            if number == len(self.names):
                self.names.append((entry.file.name, *entry.file.extra_files))
            (added if entry.kind == ADD else deleted).append(number)
        return _Manifest(np.array(added, np.int64), np.array(deleted, np.int64))


def needed_names(storage: Storage, sizes: Mapping[str, int]) -> set[str]:
    """The names of all files that a snapshot, tag, changelog or branch needs.

    Names are enough: they are unique in a table.

    Args:
        storage: The folder of the table.
        sizes: Of its files by their paths, as they were listed; others are asked for.

    Raises:
        FormatError: Something that names files is damaged, or gone: which of them are needed
            cannot be told.
    """
    for left in reversed(range(_TRIES)):
        kept = _keepers(storage)
        try:
            return _Reader(storage, sizes).names(kept)
        except FileGoneError as error:
            # Or a snapshot has expired meanwhile, and what it named with it.
            if not left or all(storage.exists(one.path) for one in kept):
                problem = "a snapshot names it, and it is not there"
                raise FormatError(problem, file=error.file) from None
    raise AssertionError("the last try returns or raises")


def _keepers(storage: Storage) -> list[_Kept]:
    paths = [path for folder in _FOLDERS for path in storage.list(folder).paths.to_pylist()]

    def read(path: str) -> _Kept | None:
        try:
            source = storage.source(path)
            return _Kept(path, Snapshot.parse(source.read(0, source.size), file=source.name))
        except FileGoneError:  # expired since
            return None

    chosen = [path for path in paths if _KEEPER.fullmatch(path)]
    chosen += _unlisted(storage, set(chosen))
    return [one for one in run_in_threads(read, chosen, waiting=storage.remote) if one]


def _unlisted(storage: Storage, listed: Set[str]) -> list[str]:
    """Newer snapshots than a listing knows, where listings are behind: their files are needed."""
    latest = SnapshotFolder(storage).latest()
    found: list[str] = []
    for number in range(0 if latest is None else latest.id, 0, -1):
        path = snapshot_path(number)
        if path in listed or not storage.exists(path):
            break
        found.append(path)
    return found


class _Reader:
    """Reads files of the manifest folder, each once."""

    def __init__(self, storage: Storage, sizes: Mapping[str, int]) -> None:
        self._storage, self._sizes = storage, sizes

    def names(self, kept: Sequence[_Kept]) -> set[str]:
        """All names that some of these need."""
        entries = _Entries()
        lists = self._of(kept, lambda one: one.lists, _manifest_names)
        manifests = self._of(
            kept,
            lambda one: [name for some in one.lists for name in lists.get(some, ())],
            entries.manifest,
        )
        indexes = self._of(kept, lambda one: one.indexes, _index_names)
        needed = {*lists, *manifests, *indexes}
        needed.update(name for names in indexes.values() for name in names)
        needed.update(name for one in kept if (name := one.snapshot.statistics))
        live = np.zeros(len(entries.names), bool)
        for one in kept:
            for some in one.states:
                named = [name for part in some for name in lists.get(part, ())]
                found = [manifests[name] for name in named if name in manifests]
                live |= _live(found, len(live))
        for number in np.flatnonzero(live).tolist():
            needed.update(entries.names[number])
        return needed

    def _of(
        self,
        kept: Sequence[_Kept],
        names: Callable[[_Kept], Iterable[str]],
        parse: Callable[[bytes, str], _T],
    ) -> dict[str, _T]:
        """What is in the files that these name; what a changelog names may be gone."""
        needed = {name for one in kept if not one.may_lack for name in names(one)}
        others = {name for one in kept if one.may_lack for name in names(one)} - needed
        there = {name for name in others if self._storage.exists(_path(name))}
        every, found = sorted(needed | there), dict[str, _T]()
        for start in range(0, len(every), _TOGETHER):
            some = every[start : start + _TOGETHER]
            parts = self._storage.read_many((_path(name), 0, self._size(name)) for name in some)
            for name, data in zip(some, parts, strict=True):
                found[name] = parse(data, _path(name))
        return found

    def _size(self, name: str) -> int:
        size = self._sizes.get(_path(name))
        return self._storage.source(_path(name)).size if size is None else size


def _path(name: str) -> str:
    return f"{MANIFEST_FOLDER}/{name}"


def _live(manifests: Sequence[_Manifest], count: int) -> npt.NDArray[np.bool_]:
    """Which entries are live: added in one of them, and deleted in none."""
    live = np.zeros(count, bool)
    for one in manifests:
        live[one.added] = True
    for one in manifests:
        live[one.deleted] = False
    return live


def _manifest_names(data: bytes, file: str) -> list[str]:
    return [meta.name for meta in read_manifest_list(data, file=file)]


def _index_names(data: bytes, file: str) -> list[str]:
    return [entry.name for entry in read_index_manifest(data, file=file)]
