"""Clean of a Paimon table: files that no snapshot needs, which `verify` lists and `clean` removes.

    dt=1/bucket-0/data-<uuid>-0.parquet    of a commit that was killed, or that another was before
    dt=1/bucket-0/data-<uuid>-0.parquet-1.index   replaced by a newer index, and .replaced
    index/index-<uuid>-0   manifest/manifest-<uuid>-0   statistics/stats-<uuid>-0
    _alcid/statistics-....puffin           when there are newer ones

Only files with such names in such folders are ever removed. A commit that is under way has files
that no snapshot names yet, so that young files are kept.

Snapshots, tags and changelogs, of the table and of its branches, need files. A data file, with its
indexes, is needed where it is live in one of them: an entry by which it was deleted does not keep
it. A newer Paimon names files in fields that are not known here, in lists, maps or bytes. Files
that `clean` removes have a UUID in their names: all whose UUID occurs in such a field are needed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np

from alcid._arrays import BoolArray, Int64Array
from alcid.errors import FileGoneError, FormatError
from alcid.storage import Storage, retry
from alcid.storage.threads import run_in_threads
from alcid.tables.bundle_folder import FOLDER, BundleFolder
from alcid.tables.maintenance.clean import (
    CleanReport,
    Leftover,
    ListedFile,
    check_age,
    is_unfinished,
    list_files,
    old_statistics,
    remove_old,
)
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    Identity,
    ManifestMeta,
    read_manifest,
    read_manifest_list,
)
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.tables.paimon.metadata.table_state import (
    MANIFEST_FOLDER,
    IndexEntry,
    read_index_manifest,
)

_T = TypeVar("_T")

_ROOT = re.compile(
    r"(branch/branch-[^/]+/)?(snapshot/snapshot-\d+|tag/tag-[^/]+|changelog/changelog-\d+)"
)
_CHANGELOG = re.compile(r"(^|/)changelog/")
UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FOLDERS = ("snapshot", "tag", "changelog", "branch")
_ATTEMPTS = 10
_BATCH = 64  # manifests that are in memory at a time


@dataclass(frozen=True, slots=True)
class NeededFiles:
    """Files that must stay: by their names, or by a UUID in their names."""

    names: frozenset[str] = frozenset()
    uuids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: Iterable[str]) -> NeededFiles:
        """Files of these names, or at these paths."""
        return cls(frozenset(name.rpartition("/")[2] for name in names))

    @classmethod
    def within(cls, *values: Any) -> NeededFiles:
        """Files whose names occur somewhere in the values of fields."""
        return cls(uuids=frozenset(_uuids(values)))

    def __or__(self, other: NeededFiles) -> NeededFiles:
        return NeededFiles(self.names | other.names, self.uuids | other.uuids)

    def __contains__(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return name in self.names or not self.uuids.isdisjoint(_uuids([name]))


@dataclass(slots=True)
class _Root:
    """A snapshot, tag or changelog, which needs files."""

    path: str
    snapshot: Snapshot

    @property
    def may_be_incomplete(self) -> bool:
        """Whether files of it may be gone: a changelog outlives its snapshot."""
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
        return [name for names in self.states for name in names]

    @property
    def indexes(self) -> list[str]:
        """The index manifest, if there is one."""
        name = self.snapshot.index_manifest
        return [] if name is None else [name]


@dataclass(slots=True)
class _Manifest:
    """The data files of a manifest, by their numbers."""

    added: Int64Array
    deleted: Int64Array


@dataclass(slots=True)
class _Entries:
    """All entries of all manifests: an identity is its number."""

    numbers: dict[Identity, int] = field(default_factory=dict)
    names: list[tuple[str, ...]] = field(default_factory=list)
    """The data file, and the files beside it."""
    unknown: dict[int, NeededFiles] = field(default_factory=dict)
    """The files that unknown fields of an entry name, if there are any."""

    def manifest(self, data: bytes, file: str) -> _Manifest:
        """Enter a manifest."""
        added, deleted = list[int](), list[int]()
        for entry in read_manifest(data, file=file):
            number = self.numbers.setdefault(entry.identity, len(self.names))
            if number == len(self.names):
                self.names.append((entry.file.name, *entry.file.extra_files))
            for unknown in (*entry.unknown, *entry.file.unknown):
                before = self.unknown.get(number, NeededFiles())
                self.unknown[number] = before | NeededFiles.within(unknown.value)
            (added if entry.kind == ADD else deleted).append(number)
        return _Manifest(np.array(added, np.int64), np.array(deleted, np.int64))


def needed_files(storage: Storage, sizes: Mapping[str, int]) -> NeededFiles:
    """All files that a snapshot, tag, changelog or branch needs.

    Names are enough: they are unique in a table.

    Args:
        storage: The folder of the table.
        sizes: Of its files by their paths, as they were listed; those of others are requested.

    Raises:
        FormatError: Something that names files is damaged, or gone, so that it is not known which
            of them are needed.
    """
    return retry(partial(_needed_files, storage, sizes), on=FileGoneError, attempts=_ATTEMPTS)


def _needed_files(storage: Storage, sizes: Mapping[str, int]) -> NeededFiles:
    roots = _roots(storage)
    try:
        return _Reader(storage, sizes).needed(roots)
    except FileGoneError as error:
        if all(storage.exists(root.path) for root in roots):
            problem = "a snapshot names it, and it is not there"
            raise FormatError(problem, file=error.file) from None
        raise  # a snapshot has expired meanwhile, and with it what it named


def _roots(storage: Storage) -> list[_Root]:
    paths = [path for folder in _FOLDERS for path in storage.list(folder).paths.to_pylist()]

    def read(path: str) -> _Root | None:
        try:
            source = storage.source(path)
            return _Root(path, Snapshot.parse(source.read(0, source.size), file=source.name))
        except FileGoneError:  # expired since
            return None

    chosen = [path for path in paths if _ROOT.fullmatch(path)]
    chosen += _unlisted(storage, set(chosen))
    return [root for root in run_in_threads(read, chosen, waiting=storage.remote) if root]


def _unlisted(storage: Storage, listed: Set[str]) -> list[str]:
    """Newer snapshots than a listing knows, where listings are behind: their files are needed."""
    latest = SnapshotFolder(storage).latest()
    paths: list[str] = []
    for number in range(0 if latest is None else latest.id, 0, -1):
        path = snapshot_path(number)
        if path in listed or not storage.exists(path):
            break
        paths.append(path)
    return paths


class _Reader:
    """Reads files of the manifest folder, each once."""

    def __init__(self, storage: Storage, sizes: Mapping[str, int]) -> None:
        self._storage, self._sizes = storage, sizes

    def needed(self, roots: Sequence[_Root]) -> NeededFiles:
        """All files that some of these need."""
        entries = _Entries()
        lists = self._read(roots, lambda root: root.lists, _read_list)
        manifests = self._read(
            roots,
            lambda root: [meta.name for name in root.lists for meta in lists.get(name, ())],
            entries.manifest,
        )
        indexes = self._read(roots, lambda root: root.indexes, _read_indexes)
        live = np.zeros(len(entries.names), bool)
        for root in roots:
            for names in root.states:
                metas = (meta for name in names for meta in lists.get(name, ()))
                present = [manifests[meta.name] for meta in metas if meta.name in manifests]
                live |= _live(present, len(live))
        parts = [NeededFiles.of((*lists, *manifests, *indexes))]
        parts += map(_of_snapshot, roots)
        parts += (_of_manifest(meta) for metas in lists.values() for meta in metas)
        parts += (_of_index(entry) for index_entries in indexes.values() for entry in index_entries)
        parts.append(
            NeededFiles.of(
                name for number in np.flatnonzero(live) for name in entries.names[number]
            )
        )
        parts += (files for number, files in entries.unknown.items() if live[number])
        return NeededFiles(
            frozenset(chain.from_iterable(part.names for part in parts)),
            frozenset(chain.from_iterable(part.uuids for part in parts)),
        )

    def _read(
        self,
        roots: Sequence[_Root],
        names: Callable[[_Root], Iterable[str]],
        parse: Callable[[bytes, str], _T],
    ) -> dict[str, _T]:
        """The contents of the files that these name; what a changelog names may be gone."""
        needed = {name for root in roots if not root.may_be_incomplete for name in names(root)}
        others = {name for root in roots if root.may_be_incomplete for name in names(root)} - needed
        present = {name for name in others if self._storage.exists(_path(name))}
        every, contents = sorted(needed | present), dict[str, _T]()
        for start in range(0, len(every), _BATCH):
            batch = every[start : start + _BATCH]
            parts = self._storage.read_many((_path(name), 0, self._size(name)) for name in batch)
            for name, data in zip(batch, parts, strict=True):
                contents[name] = parse(data, _path(name))
        return contents

    def _size(self, name: str) -> int:
        size = self._sizes.get(_path(name))
        return self._storage.source(_path(name)).size if size is None else size


def _path(name: str) -> str:
    return f"{MANIFEST_FOLDER}/{name}"


def _live(manifests: Sequence[_Manifest], count: int) -> BoolArray:
    """Which entries are live: added in one of them, and deleted in none."""
    live = np.zeros(count, bool)
    for manifest in manifests:
        live[manifest.added] = True
    for manifest in manifests:
        live[manifest.deleted] = False
    return live


def _read_list(data: bytes, file: str) -> list[ManifestMeta]:
    return read_manifest_list(data, file=file)


def _read_indexes(data: bytes, file: str) -> list[IndexEntry]:
    return read_index_manifest(data, file=file)


def _of_snapshot(root: _Root) -> NeededFiles:
    snapshot = root.snapshot
    statistics = NeededFiles.of([] if snapshot.statistics is None else [snapshot.statistics])
    return statistics | NeededFiles.within(snapshot.extra, snapshot.properties)


def _of_manifest(meta: ManifestMeta) -> NeededFiles:
    others = [unknown.value for unknown in meta.unknown if unknown.value != meta.extra_files]
    return NeededFiles.of((meta.name, *meta.extra_files)) | NeededFiles.within(others)


def _of_index(entry: IndexEntry) -> NeededFiles:
    names = [entry.name, *([] if entry.external_path is None else [entry.external_path])]
    others = [unknown.value for unknown in entry.unknown]
    return NeededFiles.of(names) | NeededFiles.within(entry.global_index, others)


def _uuids(values: Iterable[Any]) -> Iterator[str]:
    """The UUIDs in texts and bytes, however deep within lists and maps."""
    for value in values:
        match value:
            case str():
                yield from UUID.findall(value)
            case bytes():
                yield from UUID.findall(value.decode("latin-1"))
            case Mapping():
                yield from _uuids(value.keys())
                yield from _uuids(value.values())
            case list() | tuple():
                yield from _uuids(value)


_REASONS = {"manifest": "manifest", "index": "index file", "statistics": "statistics"}
"""The files of the folders beside those of the data."""


def clean(
    storage: Storage,
    *,
    older_than: timedelta = timedelta(days=1),
    dry_run: bool = False,
) -> CleanReport:
    """Remove files that no snapshot, tag, changelog or branch needs.

    Where a storage does not have the time of a file, as s3fs does not, the file is kept.

    Args:
        storage: The folder of the table.
        older_than: What is younger is kept: it may be of a commit that is under way. Give no less
            than the longest of your jobs takes, from its first file to its commit.
        dry_run: Change nothing, and say what would be done.

    Raises:
        OptionError: An age below 0.
        FormatError: The metadata of a snapshot is damaged, so that it is not known what it needs:
            nothing was removed.
    """
    check_age(older_than)
    begin = time.monotonic()
    schema = TableFolder(storage).latest_schema()
    options = TableOptions.parse(schema.options, has_primary_key=bool(schema.primary_keys))
    orphans = find_orphans(storage, list_files(storage), schema, options)
    removed, kept = remove_old(orphans, older_than=older_than, dry_run=dry_run)
    return CleanReport(dry_run, (), (), removed, kept, time.monotonic() - begin)


def find_orphans(
    storage: Storage, files: list[ListedFile], schema: TableSchema, options: TableOptions
) -> list[Leftover]:
    """The files that nothing needs, by path.

    Args:
        storage: The folder of the table.
        files: All of its files. They must be listed before this is called: of a commit that comes
            after the listing no file is among them.
        schema: Of the table.
        options: Of the table.

    Raises:
        FormatError: It is not known what a snapshot needs.
    """
    needed = needed_files(storage, {file.path: file.size for file in files})
    bucket = _bucket_folder(schema, options)
    orphans = [
        Leftover(file.path, reason, file.size, file.changed, storage)
        for file in files
        if (reason := _reason(file.path, bucket)) and file.path not in needed
    ]
    begin = len(FOLDER) + 1
    own = [
        ListedFile(file.path, file.path[begin:], file.size, file.changed)
        for file in files
        if file.path.startswith(f"{FOLDER}/")
    ]
    orphans += old_statistics(BundleFolder(storage, FOLDER), own)
    return sorted(orphans, key=lambda orphan: orphan.path)


def _reason(path: str, bucket: re.Pattern[str]) -> str | None:
    """What a file is, if it is one that may be removed."""
    folder, _, name = path.rpartition("/")
    in_bucket = bucket.fullmatch(folder) is not None
    if is_unfinished(name) and (in_bucket or folder in (*_REASONS, FOLDER)):
        return "unfinished"
    if not UUID.search(name):
        return None
    if not in_bucket:
        return _REASONS.get(folder)
    if name.endswith((".index", ".replaced")):
        return "file index"
    return "index file" if name.startswith("index-") else "data file"


def _bucket_folder(schema: TableSchema, options: TableOptions) -> re.Pattern[str]:
    """What the folders of buckets are called."""
    directory = options.data_file_path_directory
    begin = re.escape(f"{directory}/") if directory else ""
    return re.compile(
        begin + "[^/]+=[^/]*/" * len(schema.partition_keys) + r"bucket-(\d+|postpone)"
    )
