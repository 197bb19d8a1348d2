"""The commits of an upsert: rows are appended to level 0, then compacted.

    APPEND    new files on level 0, and the hash indexes that grew
    COMPACT   the same files on higher levels, and deletion vectors of the rows that they supersede

Batch readers skip level 0, so they see the whole upsert with the second snapshot; streaming readers
read the first. Where all buckets were empty nothing is superseded, and one snapshot is enough.

An upsert that is killed between its snapshots loses nothing. Its first snapshot has a property,
which the second removes:

    "properties": {"alcid.level-0.<commit user>#<commit identifier>": "APPEND"}

Whoever compacts next also compacts the upserts that are pending by these properties, so that batch
readers see the whole of an upsert at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from alcid.errors import ConflictError, FileGoneError
from alcid.storage import retry
from alcid.tables.paimon.data_files import PlacedFile, table_paths
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketChange,
    BucketCompaction,
    Buckets,
    KeyedTable,
    buckets_of,
)
from alcid.tables.paimon.keyed.bucket_compaction import (
    compact_buckets,
    count_levels,
    discard_compactions,
)
from alcid.tables.paimon.metadata.commit import BATCH, Change, discard
from alcid.tables.paimon.metadata.manifest import BucketId, ManifestEntry
from alcid.tables.paimon.metadata.snapshot import SnapshotFolder
from alcid.tables.paimon.metadata.table_state import IndexEntry, TableState
from alcid.tables.paimon.new_files import WrittenData, writing_options

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

UpsertId: TypeAlias = tuple[str, int]
"""The commit user and the commit identifier of an upsert."""

_PENDING_PREFIX = "alcid.level-0."
_TRIES = 20
_WAIT, _LONGEST_WAIT = 0.02, 0.5  # seconds


def pending_property(upsert: UpsertId) -> str:
    """The snapshot property of a pending upsert.

    >>> pending_property(("nightly", 7))
    'alcid.level-0.nightly#7'
    """
    user, identifier = upsert
    return f"{_PENDING_PREFIX}{user}#{identifier}"


def pending_upserts(state: TableState) -> list[UpsertId]:
    """The upserts whose second snapshot is missing."""
    properties = (state.snapshot and state.snapshot.properties) or {}
    parts = (
        key.removeprefix(_PENDING_PREFIX).rpartition("#")
        for key in properties
        if key.startswith(_PENDING_PREFIX)
    )
    return [
        (user, int(number)) for user, _, number in parts if number.isascii() and number.isdecimal()
    ]


def pending_buckets(
    snapshots: SnapshotFolder, state: TableState, upsert: UpsertId
) -> set[BucketId]:
    """The buckets with files of an upsert on level 0; all that may have some, if it has expired."""
    level_zero = [entry for entry in state.entries if not entry.file.level]
    for snapshot in snapshots.history(state.snapshot) if level_zero else ():
        if (snapshot.commit_user, snapshot.commit_identifier) == upsert:
            if snapshot.commit_kind != "APPEND":
                return set()
            committed = state.at(snapshot)
            # By name, as they may have other indexes by now.
            added = {_name(entry) for part in committed.read(committed.delta) for entry in part}
            level_zero = [entry for entry in level_zero if _name(entry) in added]
            break
    return {entry.bucket_id for entry in level_zero}


def _name(entry: ManifestEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.file.name


def compact_change(compactions: Iterable[BucketCompaction]) -> Change:
    """The commit of compactions: removed files, added files, one index file for each bucket.

    A compaction that keeps the deletion vectors of its bucket leaves their index file alone.

    >>> from alcid.tables.paimon.keyed.bucket import Bucket
    >>> compact_change([BucketCompaction(Bucket(b"", 0, "bucket-0/"))]).kind
    'COMPACT'
    """
    compactions = list(compactions)
    vectors = [_vector_files(compaction) for compaction in compactions]
    return Change(
        kind="COMPACT",
        deleted=[file.entry for compaction in compactions for file in compaction.removed],
        added=[file.entry for compaction in compactions for file in compaction.added],
        index_deleted=[entry for deleted, _ in vectors for entry in deleted],
        index_added=[entry for _, added in vectors for entry in added],
    )


def _vector_files(
    compaction: BucketCompaction,
) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...]]:
    """The index files of deletion vectors to delete, and to add."""
    before = compaction.base.vectors
    after = () if compaction.vectors is None else (compaction.vectors,)
    return ((), ()) if after == before else (before, after)


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Who commits, and what the snapshots carry."""

    user: str
    identifier: int = BATCH
    properties: Callable[[TableState], Mapping[str, str]] = lambda _state: {}
    """Properties of a snapshot that follows a state."""
    check: Callable[[TableState], None] = lambda _state: None
    """Raises ConflictError where the rows must not be committed on top of a state. Once committed,
    they are compacted in any case."""

    @property
    def upsert(self) -> UpsertId:
        """The commit user and the commit identifier."""
        return self.user, self.identifier


@dataclass(frozen=True, slots=True, eq=False)
class AppendCommit:
    """The first snapshot of an upsert."""

    snapshot_id: int
    is_complete: bool
    """Whether there is nothing left to compact."""


@dataclass(frozen=True, slots=True, eq=False)
class CompactCommit:
    """The second snapshot of an upsert."""

    snapshot_id: int
    superseded: int
    """Rows that readers do not see any more."""


def commit_append(
    table: OpenPaimonTable,
    changes: Sequence[BucketChange],
    commit: CommitIdentity,
    *,
    compacts: bool,
) -> AppendCommit | None:
    """Commit the files that were written for an upsert; None if there are none.

    Args:
        table: The table as it was when they were written.
        changes: What was written.
        commit: Who commits.
        compacts: Whether `commit_compact` follows; otherwise files stay on level 0.

    Raises:
        ConflictError: Another writer has changed one of the buckets, or assigned buckets to keys of
            a partition: everything has to be written anew.
    """
    planned = table.snapshot.state
    is_complete = (
        compacts
        and all(not change.base.files and not change.deletes for change in changes)
        and not pending_upserts(planned)  # which the second snapshot finishes
    )
    levels = table.snapshot.options.num_levels
    added = [
        file.entry.on_level(count_levels(change.base, levels) - 1) if is_complete else file.entry
        for change in changes
        for file in _files(change)
    ]
    grown = [change for change in changes if change.hashes is not None]
    if not added and not grown:
        return None
    pending = {pending_property(commit.upsert): "APPEND"} if compacts and not is_complete else {}

    def plan(state: TableState) -> Change:
        commit.check(state)
        if state.snapshot != planned.snapshot:
            paths = table_paths(table.snapshot.schema, table.snapshot.options)
            _check_unchanged(changes, buckets_of(planned, paths), buckets_of(state, paths))
        return Change(
            kind="APPEND",
            added=added,
            index_deleted=[entry for change in grown for entry in change.base.hashes],
            index_added=[change.hashes for change in grown if change.hashes is not None],
            properties={**commit.properties(state), **pending},
        )

    snapshot = table.committer().commit(
        plan, cached=planned, user=commit.user, identifier=commit.identifier
    )
    if snapshot is None:
        raise AssertionError("a plan that always has a change was not committed")
    return AppendCommit(snapshot.id, is_complete)


def commit_compact(
    table: OpenPaimonTable,
    keyed: KeyedTable,
    changes: Iterable[BucketChange],
    commit: CommitIdentity,
) -> CompactCommit | None:
    """Compact the files of an upsert; None if others have compacted them already.

    Raises:
        ConflictError: Others were faster every time. The rows are committed nevertheless.
    """
    return _UpsertCompaction(
        table, keyed, {change.base.id: change for change in changes}, commit
    ).run()


def finish_upsert(
    table: OpenPaimonTable,
    keyed: KeyedTable,
    buckets: Collection[BucketId],
    commit: CommitIdentity,
) -> CompactCommit | None:
    """Compact level 0 of some buckets, as an upsert that was killed has left it."""
    return _UpsertCompaction(table, keyed, dict.fromkeys(buckets), commit).run()


class _UpsertCompaction:
    """The second snapshot of an upsert."""

    def __init__(
        self,
        table: OpenPaimonTable,
        keyed: KeyedTable,
        changes: Mapping[BucketId, BucketChange | None],
        commit: CommitIdentity,
    ) -> None:
        self._table, self._keyed, self._changes, self._commit = table, keyed, changes, commit
        self._paths = table_paths(keyed.schema, keyed.options)
        self._prepared: dict[BucketId, list[BucketCompaction]] = {
            bucket_id: [change.compaction]
            for bucket_id, change in changes.items()
            if change is not None and change.compaction is not None
        }
        self._used: list[BucketCompaction] = []

    def run(self) -> CompactCommit | None:
        """Commit the snapshot."""
        table, commit = self._table, self._commit
        snapshot = table.committer().commit(
            self._plan, cached=table.snapshot.state, user=commit.user, identifier=commit.identifier
        )
        used = {id(compaction) for compaction in self._used} if snapshot else set()
        discard_compactions(
            table.storage,
            (
                compaction
                for compactions in self._prepared.values()
                for compaction in compactions
                if id(compaction) not in used
            ),
        )
        if snapshot is None:
            return None
        return CompactCommit(snapshot.id, sum(compaction.superseded for compaction in self._used))

    def _plan(self, state: TableState) -> Change | None:
        buckets, pending = buckets_of(state, self._paths), pending_upserts(state)
        of_others = {
            bucket_id: None
            for upsert in pending
            if upsert != self._commit.upsert
            for bucket_id in pending_buckets(self._table.folder.snapshots, state, upsert)
        }
        self._used, unprepared = [], list[Bucket]()
        for bucket_id, change in (of_others | dict(self._changes)).items():
            bucket = buckets[bucket_id]
            if not bucket.level_zero:
                continue  # another writer has compacted it
            prepared = self._find_prepared(bucket, change)
            if prepared is None:
                unprepared.append(bucket)
            else:
                self._used.append(prepared)
        for compaction in compact_buckets(self._table.engine, self._keyed, unprepared, full=False):
            if compaction is not None:
                self._prepared.setdefault(compaction.base.id, []).append(compaction)
                self._used.append(compaction)
        if not self._used:
            return None
        finished = dict.fromkeys(map(pending_property, pending))
        return replace(
            compact_change(self._used), properties={**self._commit.properties(state), **finished}
        )

    def _find_prepared(
        self, bucket: Bucket, change: BucketChange | None
    ) -> BucketCompaction | None:
        """A compaction that was prepared for a bucket as it is now."""
        for compaction in self._prepared.get(bucket.id, ()):
            base, besides = compaction.base, list[PlacedFile]()
            if change is not None and compaction is change.compaction:
                besides = [file.placed for file in _files(change)]
                if change.hashes is not None:
                    base = replace(base, hashes=(change.hashes,))
            if base.is_same(bucket, besides=besides):
                return compaction
        return None


def _files(change: BucketChange) -> tuple[WrittenData, ...]:
    return (*change.upserts, *change.deletes)


def _check_unchanged(changes: Iterable[BucketChange], before: Buckets, now: Buckets) -> None:
    """Check that keys still belong to the same buckets, and rows get the same sequence numbers.

    Raises:
        ConflictError: They do not.
    """
    for change in changes:
        base, bucket = change.base, now[change.base.id]
        is_changed = bucket.next_sequence != base.next_sequence or bucket.hashes != base.hashes
        if change.compaction is not None:  # rows were left out, by what these files contain
            is_changed |= _file_names(bucket) != _file_names(base)
        if change.hashes is not None and not is_changed:
            is_changed = _hash_indexes(before, base.partition) != _hash_indexes(now, base.partition)
        if is_changed:
            raise ConflictError(f"{base.folder}: another has written to it meanwhile")


def _file_names(bucket: Bucket) -> tuple[set[str], set[str]]:
    """Data files, and index files of deletion vectors."""
    return {file.file.name for file in bucket.files}, {entry.name for entry in bucket.vectors}


def _hash_indexes(buckets: Buckets, partition: bytes) -> list[object]:
    return [bucket.hashes for bucket in buckets.of_partition(partition).values() if bucket.hashes]


@dataclass(frozen=True, slots=True, eq=False)
class BucketWork:
    """A change of buckets, planned for the table as it is."""

    keyed: KeyedTable
    compacts: bool
    """Whether the new files are compacted, too."""
    write: Callable[[], Iterable[BucketChange]]
    """Writes the files, and returns the change of each bucket."""


@dataclass(frozen=True, slots=True, eq=False)
class AppliedChanges:
    """Changes of buckets that are committed."""

    changes: Sequence[BucketChange]
    snapshot_id: int | None
    """The last snapshot; None: there was nothing to change."""
    superseded: int | None
    """Older rows that readers do not see any more; None: unknown."""
    is_compacted: bool


def apply_changes(
    table: OpenPaimonTable, plan: Callable[[], BucketWork], commit: CommitIdentity | None = None
) -> AppliedChanges:
    """Change buckets of a table, again from the start where another writer was faster.

    Args:
        table: The table, which is refreshed before each try; nobody else may do so meanwhile.
        plan: Plans the work for the table as it is. What it has written is removed if it raises, or
            if the commit is lost.
        commit: Who commits; by default a new commit user.

    Raises:
        ConflictError: Others were faster every time. What is committed by then stays on level 0 and
            is compacted by the next upsert.
    """
    identity = commit or CommitIdentity(table.committer().new_user())

    is_planning = False

    def attempt() -> tuple[BucketWork, list[BucketChange], AppendCommit | None]:
        nonlocal is_planning
        is_planning = False
        table.refresh()
        identity.check(table.snapshot.state)
        is_planning = True
        return _append(table, plan(), identity)

    def is_conflict(error: Exception) -> bool:
        if isinstance(error, FileGoneError):
            return is_planning and not _is_latest(table)
        return is_planning and isinstance(error, ConflictError)

    work, changes, appended = retry(
        attempt, on=is_conflict, attempts=_TRIES, wait=_WAIT, longest_wait=_LONGEST_WAIT
    )
    # Repeating an upsert that was killed between its snapshots leaves only the second to do.
    if appended is None and not (work.compacts and pending_upserts(table.snapshot.state)):
        return AppliedChanges(changes, None, 0, is_compacted=True)
    if appended is not None and (appended.is_complete or not work.compacts):
        superseded = 0 if appended.is_complete else None
        return AppliedChanges(
            changes, appended.snapshot_id, superseded, is_compacted=appended.is_complete
        )
    compacted = _compact(table, work.keyed, changes, identity)
    if compacted is None:  # another writer has done it
        snapshot_id, superseded = (None, 0) if appended is None else (appended.snapshot_id, None)
        return AppliedChanges(changes, snapshot_id, superseded, is_compacted=True)
    return AppliedChanges(changes, compacted.snapshot_id, compacted.superseded, is_compacted=True)


def _append(
    table: OpenPaimonTable, work: BucketWork, commit: CommitIdentity
) -> tuple[BucketWork, list[BucketChange], AppendCommit | None]:
    """Write the files and commit them; what is not committed is removed."""
    changes: list[BucketChange] = []
    try:
        changes.extend(work.write())
    except BaseException:
        _discard(table, changes)
        raise
    try:
        return work, changes, commit_append(table, changes, commit, compacts=work.compacts)
    except ConflictError:  # after another error the snapshot may exist
        _discard(table, changes)
        raise


def _compact(
    table: OpenPaimonTable,
    keyed: KeyedTable,
    changes: Sequence[BucketChange],
    commit: CommitIdentity,
) -> CompactCommit | None:
    """Compact what is committed, even if the schema of the table has changed since."""
    try:
        return commit_compact(table, keyed, changes, commit)
    except ConflictError:
        table.refresh()
        files = table.snapshot
        schemas = {**keyed.schemas, **files.schemas, files.schema.id: files.schema}
        options = writing_options(files.options, files.state.entries, files.schemas)
        current = replace(keyed, schema=files.schema, schemas=schemas, options=options)
        return commit_compact(table, current, changes, commit)


def _is_latest(table: OpenPaimonTable) -> bool:
    """Whether nobody has committed since the table was read: then nobody has replaced a file."""
    return table.folder.snapshots.latest() == table.snapshot.state.snapshot


def _discard(table: OpenPaimonTable, changes: Iterable[BucketChange]) -> None:
    discard(table.storage, (path for change in changes for path in change.written))
