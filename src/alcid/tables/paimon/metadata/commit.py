"""A commit: manifests are written under new names, then one new snapshot, exclusively.

The number of a snapshot is taken by whoever writes its file first. Who comes second has lost, looks
at what the winner did, plans again, and tries the next number. Until the file of the snapshot is
there, nothing of a commit can be seen; what is left of one that was killed are files that no
snapshot names.

A manifest is read again before it is put in its place: what reads as something else, or as nothing,
would end the table.

Entries by which files go are written before those by which files come: when a snapshot expires,
Paimon removes what went and did not come again *after* it.

What a commit does to a table, and whether it goes with a state of it.

The moment of a commit: a snapshot gets its number, or another was faster.

Few manifests in place of many, so that a table of a thousand commits is still read in a moment.

A file that came and went within those that are merged is left out of both. One that went, but came
in a manifest that is not merged, stays deleted.
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

__all__ = [
    "BATCH",
    "Change",
    "Committer",
    "SnapshotMaker",
    "check",
    "describe",
    "discard",
    "is_in",
    "merge_entries",
    "merge_manifests",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a commit does to a table."""

    kind: str
    """APPEND, COMPACT, OVERWRITE or ANALYZE."""
    deleted: Sequence[ManifestEntry] = ()
    """Live files that go."""
    added: Sequence[ManifestEntry] = ()
    index_deleted: Sequence[IndexEntry] = ()
    index_added: Sequence[IndexEntry] = ()
    statistics: str | None = None
    """The name of a new statistics file."""
    properties: Mapping[str, str | None] = field(default_factory=dict)
    """What the snapshot is to say besides what those before it said; None: no more of that."""


def check(change: Change, state: TableState) -> None:
    """See that a change goes with a state.

    Raises:
        ConflictError: A file that is to go is not live, one that is to come was deleted once, or
            a data file would get a second deletion vector, or one that is not live has one.
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
    live = {(one.partition, one.bucket, one.name) for one in state.indexes}
    gone = {(one.partition, one.bucket, one.name) for one in change.index_deleted}
    for partition_bucket_name in gone - live:
        raise ConflictError(f"{partition_bucket_name[2]}: is not there any more")
    _check_vectors(change, state, gone)


def _check_vectors(change: Change, state: TableState, gone: set[tuple[bytes, int, str]]) -> None:
    files = {(one.partition, one.bucket, one.file.name) for one in state.entries}
    files -= {(one.partition, one.bucket, one.file.name) for one in change.deleted}
    files |= {(one.partition, one.bucket, one.file.name) for one in change.added}
    kept = [one for one in state.indexes if (one.partition, one.bucket, one.name) not in gone]
    before = _count_vectors(state.indexes)
    for place, count in _count_vectors([*kept, *change.index_added]).items():
        if count > max(before[place], 1):
            raise ConflictError(f"{place[2]}: has another deletion vector by now")
    for entry in change.index_added:
        for vector in entry.ranges or ():
            if (entry.partition, entry.bucket, vector.data_file) not in files:
                raise ConflictError(f"{vector.data_file}: is not there any more")


def _count_vectors(entries: Iterable[IndexEntry]) -> Counter[tuple[bytes, int, str]]:
    """How many vectors each data file has; a table that another has damaged may have two of one."""
    return Counter(
        (entry.partition, entry.bucket, vector.data_file)
        for entry in entries
        for vector in entry.ranges or ()
    )


def is_in(change: Change, state: TableState) -> bool:
    """Whether something that a change has added is known in a later state."""
    known = state.live.keys() | state.deleted
    if any(entry.identity in known for entry in change.added):
        return True
    indexes = {(one.name, one.ranges) for one in state.indexes}
    return any((entry.name, entry.ranges) in indexes for entry in change.index_added)


class SnapshotMaker:
    """Makes the files of snapshots, and sees whether they stay."""

    def __init__(self, storage: Storage) -> None:
        """Take the folder of a table."""
        self._storage, self._snapshots = storage, SnapshotFolder(storage)

    def make(self, snapshot: Snapshot, change: Change, before: Snapshot | None) -> bool:
        """Write the file of a snapshot; False if its number, or the one before, is another's."""
        if before is not None and not self._is_there(before):
            return False
        try:
            self._storage.create(snapshot_path(snapshot.id), snapshot.to_json())
        except NameTakenError:
            return False
        except StorageError as error:
            if not self._is_made(snapshot, error):
                raise
        if self._is_stale(snapshot, change, before):
            self._storage.delete([snapshot_path(snapshot.id)])
            return False
        return True

    def _is_made(self, snapshot: Snapshot, error: StorageError) -> bool:
        """Whether a snapshot is there, though it could not be written: an answer may get lost.

        Raises:
            StorageError: That cannot be known.
        """
        try:
            return self._is_there(snapshot)
        except AlcidError:
            problem = f"whether this commit was made is not known: {error.problem}"
            raise StorageError(problem, file=error.file, tries=error.tries) from error

    def _is_there(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is still the one of its number; see `is_final`."""
        try:
            return _is_same(self._snapshots.get(snapshot.id), snapshot)
        except FileGoneError:
            return False

    def _is_stale(self, made: Snapshot, change: Change, before: Snapshot | None) -> bool:
        """Whether a new snapshot took the number of one that has expired, far behind the latest.

        That happens to who was asleep between plan and commit. Nobody would ever read what was
        committed there.
        """
        try:
            # The oldest expire first: what stands behind one that is there has not expired.
            if before is not None and self._storage.exists(snapshot_path(before.id)):
                return False
            latest = self._snapshots.latest()
            if latest is None or latest.id <= made.id or not self._is_there(made):
                return False
            if not self._storage.exists(snapshot_path(made.id + 1)):
                return True
            return not is_in(change, TableState(self._storage, self._snapshots.get(made.id + 1)))
        except StorageError:  # it is made, as far as can be known
            return False

    def is_final(self, made: Snapshot, change: Change) -> bool:
        """Whether a snapshot stays; and say that it is the latest.

        On a disk, Paimon's Java looks whether a name is free, and then renames its own file: what
        came between is replaced. Nobody can prevent that, but most times it can be seen.
        """
        with suppress(StorageError):  # a hint is only a hint
            self._snapshots.hint(made)
        try:
            if _is_same(self._snapshots.get(made.id), made):
                return True
            return is_in(change, TableState(self._storage, self._snapshots.latest()))
        except StorageError:  # expired by now, as others went on from it; or not to be known
            return True


def _is_same(found: Snapshot, expected: Snapshot) -> bool:
    """Whether two snapshots are of one commit: the names of its manifests are its own."""
    return found.base_manifest_list == expected.base_manifest_list


def merge_manifests(
    state: TableState,
    options: TableOptions,
    write: Callable[[Sequence[ManifestEntry]], list[ManifestMeta]],
) -> list[ManifestMeta]:
    """The manifests of a state, or fewer ones that say the same.

    Small ones that stand next to each other become one when there are many. All are written anew,
    with live files only, when a large table has as much that went as what is live.

    Args:
        state: The table.
        options: Of the table: what is small, and what is many.
        write: Writes entries as a manifest, or as several where one would be too large.
    """
    metas, target = state.manifests, options.manifest_target_file_size
    went, came = sum(meta.deleted for meta in metas), sum(meta.added for meta in metas)
    if 2 * went >= came and sum(meta.size for meta in metas) >= target:
        return _rewritten(metas, state, target, write)
    # What was cut to the size is not merged again, though it may be a bit smaller.
    is_small = [2 * meta.size < target for meta in metas]
    if sum(is_small) < max(options.manifest_merge_min_count, 2):
        return list(metas)
    merged: list[ManifestMeta] = []
    for small, group in groupby(range(len(metas)), is_small.__getitem__):
        some = [metas[place] for place in group]
        merged += _rewritten(some, state, target, write) if small and len(some) > 1 else some
    return merged


def _rewritten(
    metas: Sequence[ManifestMeta],
    state: TableState,
    target: int,
    write: Callable[[Sequence[ManifestEntry]], list[ManifestMeta]],
) -> list[ManifestMeta]:
    """What manifests say, without files that came and went within them, cut to a size."""
    entries = merge_entries(chain.from_iterable(state.read(metas)))
    count = sum(meta.added + meta.deleted for meta in metas)
    step = max(target * count // max(sum(meta.size for meta in metas), 1), 1)
    return [
        meta
        for start in range(0, len(entries), step)
        for meta in write(entries[start : start + step])
    ]


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Entries that say the same: what went and did not come here, then what came and stays.

    As for readers, the order plays no role: what went is gone, even if it seems to come again.
    """
    added: dict[Identity, ManifestEntry] = {}
    deleted: dict[Identity, ManifestEntry] = {}
    for entry in entries:
        (added if entry.kind == ADD else deleted)[entry.identity] = entry
    went = [entry for identity, entry in deleted.items() if identity not in added]
    return went + [entry for identity, entry in added.items() if identity not in deleted]


def describe(
    entries: Sequence[ManifestEntry], schema: TableSchema, name: str, size: int
) -> ManifestMeta:
    """What a list says of a manifest of these entries."""
    buckets, levels = [one.bucket for one in entries], [one.file.level for one in entries]
    added = sum(one.kind == ADD for one in entries)
    return ManifestMeta(
        name,
        size,
        added,
        len(entries) - added,
        _partition_stats([one.partition for one in entries], schema, name),
        schema.id,
        (min(buckets), max(buckets), min(levels), max(levels), None, None),
    )


def _partition_stats(partitions: Sequence[bytes], schema: TableSchema, file: str) -> RowStats:
    types, counts = schema.partition_types, Counter(partitions)
    columns = unpack_rows(list(counts), types, file=file)
    rows = pa.table(dict(zip(schema.partition_keys, columns, strict=True)))
    found = collect(rows, types, [FULL] * len(types))
    nulls = tuple(
        sum(
            count
            for count, value in zip(counts.values(), column, strict=True)
            if not value.is_valid
        )
        for column in columns
    )
    return RowStats(found.minimum, found.maximum, nulls)


BATCH = (1 << 63) - 1
"""The identifier of a commit that is none of a series."""

_TRIES = 200
_WAIT, _LONGEST_WAIT = 0.01, 0.5  # seconds
_LARGEST_MANIFEST = 256 << 20  # bytes without compression; readers take 1 GiB
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _LostRaceError(ConflictError):
    """Another writer has committed the snapshot of the same number."""


class Committer:
    """Makes snapshots of a table."""

    def __init__(self, storage: Storage, schema: TableSchema, options: TableOptions) -> None:
        """Take the folder of a table, and its schema, by which data files were written."""
        self._storage, self._schema, self._options = storage, schema, options
        self._snapshots, self._maker = SnapshotFolder(storage), SnapshotMaker(storage)

    def commit(
        self,
        plan: Callable[[TableState], Change | None],
        *,
        cached: TableState | None = None,
        user: str | None = None,
        identifier: int = BATCH,
    ) -> Snapshot | None:
        """Make a snapshot.

        Args:
            plan: Says what to do to a table in this state; None for nothing. It is called again
                with the new state where another was faster, and raises ConflictError where what it
                was to do makes no sense any more.
            cached: An earlier state, whose manifests are not read again.
            user: Who commits; by default a new name.
            identifier: The number of the commit in the series of its user.

        Raises:
            ConflictError: The change does not go with the state of the table.
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
            if snapshot is None or not self._maker.is_final(snapshot, change):
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
        """A name for who commits, for two commits that belong together."""
        prefix = self._options.commit_user_prefix
        return f"{prefix}_{uuid.uuid4()}" if prefix else str(uuid.uuid4())

    def _is_latest(self, state: TableState) -> bool:
        latest = self._snapshots.latest()
        return latest == state.snapshot

    def _check_schema(self) -> None:
        """See that files are of the schema that the table has."""
        if self._storage.exists(f"schema/schema-{self._schema.id + 1}"):
            raise ConflictError(
                f"{self._storage.location}: its schema has changed since it was opened"
            )

    def _try(
        self, change: Change, state: TableState, user: str, identifier: int
    ) -> Snapshot | None:
        """Write all that a snapshot names, then the snapshot; None if its number was taken."""
        draft = _Draft(self._storage, self._options.manifest_compression)
        try:
            snapshot = self._write(draft, change, state, user, identifier)
            is_made = self._maker.make(snapshot, change, state.snapshot)
        except (FileGoneError, UnsupportedError):
            draft.remove()
            raise
        if not is_made:
            draft.remove()
            return None
        return snapshot

    def _write(
        self, draft: _Draft, change: Change, state: TableState, user: str, identifier: int
    ) -> Snapshot:
        before, schema = state.snapshot, self._schema
        entries = [*(one.deleted() for one in change.deleted), *change.added]
        metas = draft.manifests(entries, schema)
        base = merge_manifests(state, self._options, lambda some: draft.manifests(some, schema))
        delta_list, delta_size = draft.list(metas)
        base_list, base_size = draft.list(base)
        rows = sum(one.file.rows if one.kind == ADD else -one.file.rows for one in entries)
        total = 0 if before is None else before.total_record_count or 0
        same_schema = before is not None and before.schema_id == schema.id
        return Snapshot(
            id=1 if before is None else before.id + 1,
            schema_id=schema.id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            index_manifest=self._index_manifest(draft, change, state),
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

    def _index_manifest(self, draft: _Draft, change: Change, state: TableState) -> str | None:
        before = None if state.snapshot is None else state.snapshot.index_manifest
        if not change.index_deleted and not change.index_added:
            return before
        gone = {(one.partition, one.bucket, one.name) for one in change.index_deleted}
        left = [
            one
            for one in state.indexes
            # Without ranges there is nothing in it, and writers of Java would not open the bucket.
            if (one.partition, one.bucket, one.name) not in gone
            and (one.index_type != DELETION_VECTORS or one.ranges)
        ]
        entries = [*left, *change.index_added]
        if not entries:
            return None
        return draft.indexes(entries)


def _properties(before: Snapshot | None, change: Change) -> dict[str, str]:
    known = {**((before and before.properties) or {}), **change.properties}
    return {key: value for key, value in known.items() if value is not None}


class _Read(Protocol[_T_co]):
    """Reads what a file of the manifest folder says."""

    def __call__(self, data: bytes, *, file: str) -> Sequence[_T_co]: ...


class _Draft:
    """The files of a commit that no snapshot names yet."""

    def __init__(self, storage: Storage, compression: str) -> None:
        self._storage, self.compression = storage, compression
        self._unique, self._paths = uuid.uuid4(), list[str]()

    def manifests(
        self, entries: Sequence[ManifestEntry], schema: TableSchema
    ) -> list[ManifestMeta]:
        """Write entries as manifests, as few as readers take."""
        sizes = np.cumsum([one.bytes_about for one in entries], dtype=np.int64) // _LARGEST_MANIFEST
        cuts = (np.flatnonzero(np.diff(sizes)) + 1).tolist()
        return [
            self._manifest(entries[start:end], schema)
            for start, end in pairwise([0, *cuts, len(entries)])
            if start < end
        ]

    def _manifest(self, entries: Sequence[ManifestEntry], schema: TableSchema) -> ManifestMeta:
        name, size = self._put("manifest", entries, write_manifest, read_manifest)
        return describe(entries, schema, name, size)

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
        """Write a file, if it reads as what it is to say; its name and size.

        Raises:
            FormatError: It does not: nobody could read the table any more.
        """
        name = f"{kind}-{self._unique}-{len(self._paths)}"
        path = f"{MANIFEST_FOLDER}/{name}"
        data = write(records, self.compression)
        again = read(data, file=path)
        if again != [*records]:
            wrong = sum(one != other for one, other in zip(again, records, strict=False))
            raise FormatError(
                f"{kind} to be written reads as something else",
                file=path,
                found=f"{len(again)} records, {wrong} of them others",
                expected=f"{len(records)} records",
            )
        self._paths.append(path)
        self._storage.put(path, data)
        return name, len(data)

    def remove(self) -> None:
        """Take all back: another has made the snapshot."""
        discard(self._storage, self._paths)


def discard(storage: Storage, paths: Iterable[str]) -> None:
    """Delete files that no snapshot will have; `clean` removes later what cannot be deleted now."""
    with suppress(StorageError):
        storage.delete(paths)
