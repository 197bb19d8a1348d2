"""Commits: a change is checked against the state of the table, and becomes the next snapshot.

Manifests are written under new names first, then the snapshot, exclusively: its number belongs to
whoever writes its file first. Whoever loses reads what the winner did, plans again, and tries the
next number. Until the file of the snapshot exists nothing of a commit is visible; a commit that is
killed leaves files that no snapshot has.

A manifest is read back before it is put: one that reads as something else would destroy the table.
Entries that delete files are written before those that add: when a snapshot expires, Paimon removes
what was deleted and not added *after* it.

Many small manifests are merged into few, so that a table of a thousand commits still opens fast.
Files that were added and deleted within the merged manifests are omitted; one that was deleted, but
added in a manifest that is not merged, stays deleted.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from alcid.errors import (
    AlcidError,
    ConflictError,
    FileGoneError,
    FormatError,
    NameTakenError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Storage, retry
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    Identity,
    ManifestEntry,
    ManifestMeta,
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.tables.paimon.metadata.statistics import FULL, RowStats, collect, unpack_rows
from alcid.tables.paimon.metadata.table_state import (
    DELETION_VECTORS,
    MANIFEST_FOLDER,
    IndexEntry,
    TableState,
    read_index_manifest,
    write_index_manifest,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a commit adds and deletes."""

    kind: str
    """APPEND, COMPACT, OVERWRITE or ANALYZE."""
    deleted: Sequence[ManifestEntry] = ()
    """Live data files to delete."""
    added: Sequence[ManifestEntry] = ()
    index_deleted: Sequence[IndexEntry] = ()
    index_added: Sequence[IndexEntry] = ()
    statistics: str | None = None
    """The name of a new statistics file."""
    properties: Mapping[str, str | None] = field(default_factory=dict)
    """Properties to set, in addition to those of the snapshot before; None: to remove."""


def check(change: Change, state: TableState) -> None:
    """Check that a change can be applied to a state.

    Raises:
        ConflictError: A deleted file is not live, an added one was deleted before, or a data file
            would get a second deletion vector, or a vector without being live.
    """
    if change.deleted:
        for entry in change.deleted:
            if entry.identity not in state.live:
                raise ConflictError(f"{entry.file.name}: is not there any more, or was changed")
        for entry in change.added:
            if entry.identity in state.deleted or entry.identity in state.live:
                raise ConflictError(f"{entry.file.name}: is there, or was, exactly as it would be")
    if not change.index_deleted and not change.index_added:
        return
    live = {(*index.bucket_id, index.name) for index in state.indexes}
    deleted = {(*index.bucket_id, index.name) for index in change.index_deleted}
    for *_, name in deleted - live:
        raise ConflictError(f"{name}: is not there any more")
    _check_vectors(change, state, deleted)


def _check_vectors(change: Change, state: TableState, deleted: set[tuple[bytes, int, str]]) -> None:
    files = {(*entry.bucket_id, entry.file.name) for entry in state.entries}
    files -= {(*entry.bucket_id, entry.file.name) for entry in change.deleted}
    files |= {(*entry.bucket_id, entry.file.name) for entry in change.added}
    left = [index for index in state.indexes if (*index.bucket_id, index.name) not in deleted]
    before = _count_vectors(state.indexes)
    for data_file, count in _count_vectors([*left, *change.index_added]).items():
        if count > max(before[data_file], 1):
            raise ConflictError(f"{data_file[2]}: has another deletion vector by now")
    for entry in change.index_added:
        for vector in entry.ranges or ():
            if (*entry.bucket_id, vector.data_file) not in files:
                raise ConflictError(f"{vector.data_file}: is not there any more")


def _count_vectors(entries: Iterable[IndexEntry]) -> Counter[tuple[bytes, int, str]]:
    """How many deletion vectors each data file has: two, if another writer damaged the table."""
    return Counter(
        (*entry.bucket_id, vector.data_file) for entry in entries for vector in entry.ranges or ()
    )


def is_in(change: Change, state: TableState) -> bool:
    """Whether a later state has something that a change added."""
    identities = state.live.keys() | state.deleted
    if any(entry.identity in identities for entry in change.added):
        return True
    indexes = {(index.name, index.ranges) for index in state.indexes}
    return any((entry.name, entry.ranges) in indexes for entry in change.index_added)


class SnapshotWriter:
    """Writes the files of snapshots, and checks whether they stay."""

    def __init__(self, storage: Storage) -> None:
        """Take the folder of a table."""
        self._storage, self._snapshots = storage, SnapshotFolder(storage)

    def write(self, snapshot: Snapshot, change: Change, before: Snapshot | None) -> bool:
        """Write the file of a snapshot; False if its number, or the one before, is taken."""
        if before is not None and not self._exists(before):
            return False
        try:
            self._storage.create(snapshot_path(snapshot.id), snapshot.to_json())
        except NameTakenError:
            return False
        except StorageError as error:
            if not self._was_written(snapshot, error):
                raise
        if self._is_stale(snapshot, change, before):
            self._storage.delete([snapshot_path(snapshot.id)])
            return False
        return True

    def _was_written(self, snapshot: Snapshot, error: StorageError) -> bool:
        """Whether a snapshot exists although writing it failed: a response may get lost.

        Raises:
            StorageError: That is unknown.
        """
        try:
            return self._exists(snapshot)
        except AlcidError:
            problem = f"whether this commit was made is not known: {error.problem}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error

    def _exists(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is still the one with its number, see `is_final`."""
        try:
            return _is_same(self._snapshots.get(snapshot.id), snapshot)
        except FileGoneError:
            return False

    def _is_stale(self, written: Snapshot, change: Change, before: Snapshot | None) -> bool:
        """Whether a new snapshot has the number of one that has expired, far behind the latest.

        That happens to a writer that slept between plan and commit. Nobody would ever read what it
        has committed there.
        """
        try:
            # The oldest expire first, so none behind an existing one has.
            if before is not None and self._storage.exists(snapshot_path(before.id)):
                return False
            latest = self._snapshots.latest()
            if latest is None or latest.id <= written.id or not self._exists(written):
                return False
            if not self._storage.exists(snapshot_path(written.id + 1)):
                return True
            return not is_in(change, TableState(self._storage, self._snapshots.get(written.id + 1)))
        except StorageError:  # assume that it was committed
            return False

    def is_final(self, written: Snapshot, change: Change) -> bool:
        """Update the hints, and check whether a snapshot stays.

        On a local disk Paimon's Java checks whether a name is free and then renames its own file,
        which replaces what came between. Nobody can prevent that, but mostly it can be noticed.
        """
        with suppress(StorageError):  # a hint is only a hint
            self._snapshots.hint(written)
        try:
            if _is_same(self._snapshots.get(written.id), written):
                return True
            return is_in(change, TableState(self._storage, self._snapshots.latest()))
        except StorageError:  # expired by now, as others built on it; or unknown
            return True


def _is_same(snapshot: Snapshot, expected: Snapshot) -> bool:
    """Whether two snapshots are of one commit, by the unique names of its manifests."""
    return snapshot.base_manifest_list == expected.base_manifest_list


def merge_manifests(
    state: TableState,
    options: TableOptions,
    write: Callable[[Sequence[ManifestEntry]], list[ManifestMeta]],
) -> list[ManifestMeta]:
    """The manifests of a state, or fewer ones with the same content.

    Consecutive small ones are merged when there are many. All are rewritten, with live files only,
    when a large table has as many deleted files as live ones.

    Args:
        state: The table.
        options: Options of the table: what is small, and what is many.
        write: Writes entries as a manifest, or as several where one would be too large.
    """
    metas, target = state.manifests, options.manifest_target_file_size
    deleted, added = sum(meta.deleted for meta in metas), sum(meta.added for meta in metas)
    if 2 * deleted >= added and sum(meta.size for meta in metas) >= target:
        return _rewrite(metas, state, target, write)
    # One that was cut to the target size is a bit smaller, and not merged again.
    is_small = [2 * meta.size < target for meta in metas]
    if sum(is_small) < max(options.manifest_merge_min_count, 2):
        return list(metas)
    merged: list[ManifestMeta] = []
    for small, group in groupby(range(len(metas)), is_small.__getitem__):
        run = [metas[number] for number in group]
        merged += _rewrite(run, state, target, write) if small and len(run) > 1 else run
    return merged


def _rewrite(
    metas: Sequence[ManifestMeta],
    state: TableState,
    target: int,
    write: Callable[[Sequence[ManifestEntry]], list[ManifestMeta]],
) -> list[ManifestMeta]:
    """The entries of manifests, without files that were added and deleted, cut to a size."""
    entries = merge_entries(chain.from_iterable(state.read(metas)))
    count = sum(meta.added + meta.deleted for meta in metas)
    step = max(target * count // max(sum(meta.size for meta in metas), 1), 1)
    return [
        meta
        for start in range(0, len(entries), step)
        for meta in write(entries[start : start + step])
    ]


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Merge entries: files that were deleted and not added here, then those added and not deleted.

    As for readers, the order does not matter: a deleted file stays deleted.
    """
    added: dict[Identity, ManifestEntry] = {}
    deleted: dict[Identity, ManifestEntry] = {}
    for entry in entries:
        (added if entry.kind == ADD else deleted)[entry.identity] = entry
    gone = [entry for identity, entry in deleted.items() if identity not in added]
    return gone + [entry for identity, entry in added.items() if identity not in deleted]


def manifest_meta(
    entries: Sequence[ManifestEntry], schema: TableSchema, name: str, size: int
) -> ManifestMeta:
    """The entry of a manifest in a manifest list."""
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    added = sum(entry.kind == ADD for entry in entries)
    return ManifestMeta(
        name,
        size,
        added,
        len(entries) - added,
        _partition_stats([entry.partition for entry in entries], schema, name),
        schema.id,
        (min(buckets), max(buckets), min(levels), max(levels), None, None),
    )


def _partition_stats(partitions: Sequence[bytes], schema: TableSchema, file: str) -> RowStats:
    types, counts = schema.partition_types, Counter(partitions)
    columns = unpack_rows(list(counts), types, file=file)
    rows = pa.table(dict(zip(schema.partition_keys, columns, strict=True)))
    stats = collect(rows, types, [FULL] * len(types))
    nulls = tuple(
        sum(
            count
            for count, value in zip(counts.values(), column, strict=True)
            if not value.is_valid
        )
        for column in columns
    )
    return RowStats(stats.minimum, stats.maximum, nulls)


BATCH = (1 << 63) - 1
"""The commit identifier of a batch job."""

_TRIES = 200
_WAIT, _LONGEST_WAIT = 0.01, 0.5  # seconds
_LARGEST_MANIFEST = 256 << 20  # bytes without compression; readers accept 1 GiB
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _LostRaceError(ConflictError):
    """Another writer has committed the snapshot of the same number."""


class Committer:
    """Commits snapshots of a table."""

    def __init__(self, storage: Storage, schema: TableSchema, options: TableOptions) -> None:
        """Take the folder of a table, and the schema that new data files have."""
        self._storage, self._schema, self._options = storage, schema, options
        self._snapshots, self._writer = SnapshotFolder(storage), SnapshotWriter(storage)

    def commit(
        self,
        plan: Callable[[TableState], Change | None],
        *,
        cached: TableState | None = None,
        user: str | None = None,
        identifier: int = BATCH,
    ) -> Snapshot | None:
        """Commit a snapshot.

        Args:
            plan: Returns the change for a state of the table; None for nothing. It is called again
                with the new state where another writer was faster, and raises ConflictError where
                its change cannot be made any more.
            cached: An earlier state, whose manifests are not read again.
            user: The commit user; by default a new one.
            identifier: The commit identifier in the series of its user.

        Raises:
            ConflictError: The change cannot be applied to the state of the table.
        """
        user = self.new_user() if user is None else user
        state = TableState(self._storage, None) if cached is None else cached

        def attempt() -> Snapshot | None:
            nonlocal state
            state = state.at(self._snapshots.latest())
            change = plan(state)
            if change is None:
                return None
            self._check_schema()
            check(change, state)
            snapshot = self._try(change, state, user, identifier)
            if snapshot is None or not self._writer.is_final(snapshot, change):
                raise _LostRaceError(
                    f"{self._storage.location}: others were faster {_TRIES} times in a row"
                )
            return snapshot

        def is_conflict(error: Exception) -> bool:
            if isinstance(error, FileGoneError):  # a snapshot may expire while it is read
                return not self._is_latest(state)
            return isinstance(error, _LostRaceError)

        return retry(
            attempt, on=is_conflict, attempts=_TRIES, wait=_WAIT, longest_wait=_LONGEST_WAIT
        )

    def new_user(self) -> str:
        """A new commit user, for commits that belong together."""
        prefix = self._options.commit_user_prefix
        return f"{prefix}_{uuid.uuid4()}" if prefix else str(uuid.uuid4())

    def _is_latest(self, state: TableState) -> bool:
        latest = self._snapshots.latest()
        return latest == state.snapshot

    def _check_schema(self) -> None:
        """Check that new files have the current schema of the table."""
        if self._storage.exists(f"schema/schema-{self._schema.id + 1}"):
            raise ConflictError(
                f"{self._storage.location}: its schema has changed since it was opened"
            )

    def _try(
        self, change: Change, state: TableState, user: str, identifier: int
    ) -> Snapshot | None:
        """Write all files of a snapshot, then the snapshot; None if its number was taken."""
        files = _CommitFiles(self._storage, self._options.manifest_compression)
        try:
            snapshot = self._write(files, change, state, user, identifier)
            is_written = self._writer.write(snapshot, change, state.snapshot)
        except (FileGoneError, UnsupportedError):
            files.remove()
            raise
        if not is_written:
            files.remove()
            return None
        return snapshot

    def _write(
        self, files: _CommitFiles, change: Change, state: TableState, user: str, identifier: int
    ) -> Snapshot:
        before, schema = state.snapshot, self._schema
        entries = [*(entry.deleted() for entry in change.deleted), *change.added]
        delta = files.manifests(entries, schema)
        base = merge_manifests(state, self._options, lambda merged: files.manifests(merged, schema))
        delta_list, delta_size = files.list(delta)
        base_list, base_size = files.list(base)
        rows = sum(entry.file.rows if entry.kind == ADD else -entry.file.rows for entry in entries)
        total = 0 if before is None else before.total_record_count or 0
        same_schema = before is not None and before.schema_id == schema.id
        return Snapshot(
            id=1 if before is None else before.id + 1,
            schema_id=schema.id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            index_manifest=self._index_manifest(files, change, state),
            commit_user=user,
            commit_identifier=identifier,
            commit_kind=change.kind,
            time_millis=int(time.time() * 1000),
            total_record_count=total + rows,
            delta_record_count=rows,
            watermark=None if before is None else before.watermark,
            statistics=change.statistics
            or (before.statistics if before is not None and same_schema else None),
            next_row_id=0 if before is None else before.next_row_id,
            properties=_properties(before, change) or None,
            extra={} if before is None else before.inherited,
        )

    def _index_manifest(self, files: _CommitFiles, change: Change, state: TableState) -> str | None:
        before = None if state.snapshot is None else state.snapshot.index_manifest
        if not change.index_deleted and not change.index_added:
            return before
        deleted = {(*index.bucket_id, index.name) for index in change.index_deleted}
        left = [
            index
            for index in state.indexes
            # Without ranges it is empty, and Paimon's Java would not open the bucket.
            if (*index.bucket_id, index.name) not in deleted
            and (index.index_type != DELETION_VECTORS or index.ranges)
        ]
        entries = [*left, *change.index_added]
        if not entries:
            return None
        return files.indexes(entries)


def _properties(before: Snapshot | None, change: Change) -> dict[str, str]:
    properties = {**((before and before.properties) or {}), **change.properties}
    return {key: value for key, value in properties.items() if value is not None}


class _Read(Protocol[_T_co]):
    """Reads the records of a file in the manifest folder."""

    def __call__(self, data: bytes, *, file: str) -> Sequence[_T_co]: ...


class _CommitFiles:
    """The files of a commit, which no snapshot has yet."""

    def __init__(self, storage: Storage, compression: str) -> None:
        self._storage, self.compression = storage, compression
        self._unique, self._paths = uuid.uuid4(), list[str]()

    def manifests(
        self, entries: Sequence[ManifestEntry], schema: TableSchema
    ) -> list[ManifestMeta]:
        """Write entries as manifests, as few as readers accept."""
        sizes = (
            np.cumsum([entry.bytes_about for entry in entries], dtype=np.int64) // _LARGEST_MANIFEST
        )
        cuts = (np.flatnonzero(np.diff(sizes)) + 1).tolist()
        return [
            self._manifest(entries[start:end], schema)
            for start, end in pairwise([0, *cuts, len(entries)])
            if start < end
        ]

    def _manifest(self, entries: Sequence[ManifestEntry], schema: TableSchema) -> ManifestMeta:
        name, size = self._put("manifest", entries, write_manifest, read_manifest)
        return manifest_meta(entries, schema, name, size)

    def list(self, metas: Sequence[ManifestMeta]) -> tuple[str, int]:
        """Write a manifest list; its name and size."""
        return self._put("manifest-list", metas, write_manifest_list, read_manifest_list)

    def indexes(self, entries: Sequence[IndexEntry]) -> str:
        """Write an index manifest; its name."""
        name, _ = self._put("index-manifest", entries, write_index_manifest, read_index_manifest)
        return name

    def _put(
        self,
        kind: str,
        records: Sequence[_T],
        write: Callable[[Sequence[_T], str], bytes],
        read: _Read[_T],
    ) -> tuple[str, int]:
        """Write a file, after it was read back as the same records; its name and size.

        Raises:
            FormatError: It reads as something else: nobody could read the table any more.
        """
        name = f"{kind}-{self._unique}-{len(self._paths)}"
        path = f"{MANIFEST_FOLDER}/{name}"
        data = write(records, self.compression)
        read_back = read(data, file=path)
        if read_back != [*records]:
            wrong = sum(left != right for left, right in zip(read_back, records, strict=False))
            raise FormatError(
                f"{kind} to be written reads as something else",
                file=path,
                found=f"{len(read_back)} records, {wrong} of them others",
                expected=f"{len(records)} records",
            )
        self._paths.append(path)
        self._storage.put(path, data)
        return name, len(data)

    def remove(self) -> None:
        """Remove everything: the commit is lost."""
        discard(self._storage, self._paths)


def discard(storage: Storage, paths: Iterable[str]) -> None:
    """Delete files that no snapshot will have; `clean` removes later what cannot be deleted now."""
    with suppress(StorageError):
        storage.delete(paths)
