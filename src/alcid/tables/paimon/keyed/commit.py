"""An upsert becomes two snapshots: rows come to level 0, then they are lifted, older ones marked.

    APPEND    files on level 0, and the hash indexes that grew
    COMPACT   the same files on their levels, and the deletion vectors of what they replace

Batch readers pass over level 0, so that they see the whole upsert with the second snapshot;
streaming readers read the first. Whoever is killed between them has lost nothing: the next upsert
finishes it, and any compaction lifts what it finds on level 0.

Where all buckets were empty there is nothing to be marked, and one snapshot is enough.

What compactions made of buckets, as one change of their table.

Changes of buckets are written and committed; again from the start where another was faster.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from alcid.errors import ConflictError, FileGoneError, StorageError
from alcid.tables.paimon.data_files import PlacedFile, table_paths
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketChange,
    Buckets,
    KeyedTable,
    Place,
    Settlement,
    buckets_of,
)
from alcid.tables.paimon.keyed.key_files import count_levels
from alcid.tables.paimon.keyed.level_zero import (
    Upsert,
    mark_of,
    places_of,
    remove_written,
    settle_buckets,
    told,
)
from alcid.tables.paimon.metadata.commit import BATCH, Change
from alcid.tables.paimon.metadata.table_state import IndexEntry, TableState
from alcid.tables.paimon.write.new_files import WrittenData
from alcid.tables.paimon.write.writable import writing_options

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = [
    "Applied",
    "Changing",
    "CommitAs",
    "Compacted",
    "UpsertCommit",
    "apply_changes",
    "commit_append",
    "commit_compact",
    "compact_change",
    "finish",
]


def compact_change(settlements: Iterable[Settlement]) -> Change:
    """The commit of settlements: what goes, then what comes, and one index file for each bucket.

    A settlement whose vectors are those of its base leaves the index file alone.

    >>> from alcid.tables.paimon.keyed.bucket import Bucket
    >>> compact_change([Settlement(Bucket(b"", 0, "bucket-0/"))]).kind
    'COMPACT'
    """
    every = list(settlements)
    swaps = [_vectors(one) for one in every]
    return Change(
        kind="COMPACT",
        deleted=[placed.entry for one in every for placed in one.removed],
        added=[placed.entry for one in every for placed in one.added],
        index_deleted=[entry for gone, _ in swaps for entry in gone],
        index_added=[entry for _, come in swaps for entry in come],
    )


def _vectors(settlement: Settlement) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...]]:
    """The index files of vectors that go, and that come."""
    before = settlement.base.vectors
    after = () if settlement.vectors is None else (settlement.vectors,)
    return ((), ()) if after == before else (before, after)


@dataclass(frozen=True, slots=True)
class CommitAs:
    """In whose name commits are made."""

    user: str
    identifier: int = BATCH
    properties: Callable[[TableState], Mapping[str, str]] = lambda _state: {}
    """What a snapshot after a state is to say."""
    check: Callable[[TableState], None] = lambda _state: None
    """Raises ConflictError where the rows must not be committed to a state. Once they are, they are
    lifted in any case."""

    @property
    def upsert(self) -> Upsert:
        """What tells the upsert from others."""
        return self.user, self.identifier


@dataclass(frozen=True, slots=True, eq=False)
class UpsertCommit:
    """The first snapshot of an upsert."""

    snapshot_id: int
    is_whole: bool
    """Whether there is nothing left to be compacted."""


@dataclass(frozen=True, slots=True, eq=False)
class Compacted:
    """The second snapshot of an upsert."""

    snapshot_id: int
    replaced: int
    """Rows that readers do not see any more."""


def commit_append(
    table: OpenPaimonTable,
    changes: Sequence[BucketChange],
    commit: CommitAs,
    *,
    compacts: bool,
) -> UpsertCommit | None:
    """Let files count that were written for an upsert; None if there are none.

    Args:
        table: As it was when they were written.
        changes: What was written.
        commit: Whose commit it is.
        compacts: Whether `commit_compact` follows; otherwise files stay on level 0.

    Raises:
        ConflictError: Another has written to a bucket, or given buckets to keys of a partition:
            all that was written has to be written anew.
    """
    is_first = (
        compacts
        and all(not one.base.files and not one.deletes for one in changes)
        and not told(table.snapshot.state)  # whom the second snapshot finishes
    )
    levels = table.snapshot.options.num_levels
    added = [
        one.entry.on_level(count_levels(change.base, levels) - 1) if is_first else one.entry
        for change in changes
        for one in _files(change)
    ]
    grown = [change for change in changes if change.hashes is not None]
    if not added and not grown:
        return None
    marks = {mark_of(commit.upsert): "APPEND"} if compacts and not is_first else {}
    planned = table.snapshot.state

    def plan(state: TableState) -> Change:
        commit.check(state)
        if state.snapshot != planned.snapshot:
            paths = table_paths(table.snapshot.schema, table.snapshot.options)
            _check_same(changes, buckets_of(planned, paths), buckets_of(state, paths))
        return Change(
            kind="APPEND",
            added=added,
            index_deleted=[entry for one in grown for entry in one.base.hashes],
            index_added=[one.hashes for one in grown if one.hashes is not None],
            properties={**commit.properties(state), **marks},
        )

    made = table.committer().commit(
        plan, known=table.snapshot.state, user=commit.user, identifier=commit.identifier
    )
    if made is None:  # a plan that always plans something
        raise AssertionError("an upsert was not committed")
    return UpsertCommit(made.id, is_first)


def commit_compact(
    table: OpenPaimonTable,
    keyed: KeyedTable,
    changes: Iterable[BucketChange],
    commit: CommitAs,
) -> Compacted | None:
    """Lift the files of an upsert, and mark the older rows; None if others have done it already.

    Raises:
        ConflictError: Others were faster every time. The rows are committed nevertheless.
    """
    return _Compaction(table, keyed, {one.base.place: one for one in changes}, commit).run()


def finish(
    table: OpenPaimonTable, keyed: KeyedTable, places: Collection[Place], commit: CommitAs
) -> Compacted | None:
    """Lift what lies on level 0 of some buckets, as an upsert that was killed has left it."""
    return _Compaction(table, keyed, dict.fromkeys(places), commit).run()


class _Compaction:
    """The second snapshot of an upsert."""

    def __init__(
        self,
        table: OpenPaimonTable,
        keyed: KeyedTable,
        changes: Mapping[Place, BucketChange | None],
        commit: CommitAs,
    ) -> None:
        self._table, self._keyed, self._changes, self._commit = table, keyed, changes, commit
        self._paths = table_paths(keyed.schema, keyed.options)
        self._known: dict[Place, list[Settlement]] = {
            place: [one.settlement]
            for place, one in changes.items()
            if one is not None and one.settlement is not None
        }
        self._used: list[Settlement] = []

    def run(self) -> Compacted | None:
        """Make the snapshot."""
        table, commit = self._table, self._commit
        made = table.committer().commit(
            self._plan, known=table.snapshot.state, user=commit.user, identifier=commit.identifier
        )
        used = {id(one) for one in self._used} if made else set()
        every = (one for some in self._known.values() for one in some)
        remove_written(table.storage, (one for one in every if id(one) not in used))
        return None if made is None else Compacted(made.id, sum(one.marked for one in self._used))

    def _plan(self, state: TableState) -> Change | None:
        now = buckets_of(state, self._paths)
        # Those of others who were killed, too.
        unfinished = told(state)
        left = {
            place: None
            for upsert in unfinished
            if upsert != self._commit.upsert
            for place in places_of(self._table.folder.snapshots, state, upsert)
        }
        self._used, unprepared = [], list[Bucket]()
        for place, change in (left | dict(self._changes)).items():
            bucket = now[place]
            if not bucket.level_zero:
                continue  # another has lifted it
            prepared = self._prepared(bucket, change)
            if prepared is None:
                unprepared.append(bucket)
            else:
                self._used.append(prepared)
        if unprepared:
            made = settle_buckets(self._table.engine, self._keyed, unprepared, full=False)
            new = [one for one in made if one is not None]
            for one in new:
                self._known.setdefault(one.base.place, []).append(one)
            self._used.extend(new)
        if not self._used:
            return None
        marks = dict.fromkeys(map(mark_of, unfinished))
        return replace(
            compact_change(self._used), properties={**self._commit.properties(state), **marks}
        )

    def _prepared(self, bucket: Bucket, change: BucketChange | None) -> Settlement | None:
        """What was worked out for a bucket as it is now."""
        for one in self._known.get(bucket.place, ()):
            base, besides = one.base, list[PlacedFile]()
            if change is not None and one is change.settlement:
                besides = [file.placed for file in _files(change)]
                if change.hashes is not None:
                    base = replace(base, hashes=(change.hashes,))
            if base.is_same(bucket, besides=besides):
                return one
        return None


def _files(change: BucketChange) -> tuple[WrittenData, ...]:
    return (*change.upserts, *change.deletes)


def _check_same(changes: Iterable[BucketChange], before: Buckets, now: Buckets) -> None:
    """See that keys would still get the same buckets, and rows the same sequence numbers.

    Raises:
        ConflictError: They would not.
    """
    for change in changes:
        place, base = change.base.place, change.base
        found = now[place]
        others = found.next_sequence != base.next_sequence or found.hashes != base.hashes
        if change.settlement is not None:  # rows were left out, by what was in these files
            others |= _contents(found) != _contents(base)
        if change.hashes is not None and not others:
            partition = base.partition
            others = _hashes(before, partition) != _hashes(now, partition)
        if others:
            raise ConflictError(f"{base.folder}: another has written to it meanwhile")


def _contents(bucket: Bucket) -> tuple[set[str], set[str]]:
    """Data files, and index files of deletion vectors."""
    return {one.file.name for one in bucket.files}, {one.name for one in bucket.vectors}


def _hashes(buckets: Buckets, partition: bytes) -> list[object]:
    return [bucket.hashes for bucket in buckets.of_partition(partition).values() if bucket.hashes]


_TRIES = 20
_PAUSE = 0.5  # seconds at most between two tries


@dataclass(frozen=True, slots=True, eq=False)
class Changing:
    """Work that changes buckets, planned for the table as it is."""

    keyed: KeyedTable
    compacts: bool
    """Whether the files are to be lifted from level 0."""
    write: Callable[[], Iterable[BucketChange]]
    """Writes files, and tells of each bucket."""


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """What came of it."""

    changes: Sequence[BucketChange]
    snapshot_id: int | None
    """The last snapshot; None: nothing was to be changed."""
    replaced: int | None
    """Older rows that are gone; None: not known."""
    is_compacted: bool


def apply_changes(
    table: OpenPaimonTable, plan: Callable[[], Changing], commit: CommitAs | None = None
) -> Applied:
    """Change buckets of a table.

    Args:
        table: It is read anew before each try; nobody else may do that meanwhile.
        plan: Plans the work on the table as it is now. What it has written is removed if it
            raises, or if it comes too late.
        commit: In whose name; by default in a new one.

    Raises:
        ConflictError: Others were faster again and again. What is committed by then stays on level
            0, for the next to lift.
    """
    own = commit or CommitAs(table.committer().new_user())
    for attempt in count(1):
        table.refresh()
        own.check(table.snapshot.state)
        try:
            work = plan()
            changes, made = _write(table, work, own)
            break
        except (ConflictError, FileGoneError) as error:
            if attempt == _TRIES or (isinstance(error, FileGoneError) and _is_latest(table)):
                raise
        time.sleep(random.uniform(0, min(_PAUSE, 0.01 * 2**attempt)))
    else:
        raise AssertionError("the last try ends the loop")
    # Who does again what was killed between its snapshots finds nothing to do but the second.
    if made is None and not (work.compacts and told(table.snapshot.state)):
        return Applied(changes, None, 0, is_compacted=True)
    if made is not None and (made.is_whole or not work.compacts):
        replaced = 0 if made.is_whole else None
        return Applied(changes, made.snapshot_id, replaced, is_compacted=made.is_whole)
    compacted = _compacted(table, work.keyed, changes, own)
    if compacted is None:  # another has done it
        snapshot_id, replaced = (None, 0) if made is None else (made.snapshot_id, None)
        return Applied(changes, snapshot_id, replaced, is_compacted=True)
    return Applied(changes, compacted.snapshot_id, compacted.replaced, is_compacted=True)


def _compacted(
    table: OpenPaimonTable, keyed: KeyedTable, changes: Sequence[BucketChange], commit: CommitAs
) -> Compacted | None:
    """Lift what is committed, also in a table whose schema was changed since."""
    try:
        return commit_compact(table, keyed, changes, commit)
    except ConflictError:
        table.refresh()
        files = table.snapshot
        schemas = {**keyed.schemas, **files.schemas, files.schema.id: files.schema}
        options = writing_options(files.options, files.state.entries, files.schemas)
        now = replace(keyed, schema=files.schema, schemas=schemas, options=options)
        return commit_compact(table, now, changes, commit)


def _is_latest(table: OpenPaimonTable) -> bool:
    """Whether nobody has committed since the table was read: then nobody has replaced a file."""
    return table.folder.snapshots.latest() == table.snapshot.state.snapshot


def _write(
    table: OpenPaimonTable, work: Changing, commit: CommitAs
) -> tuple[list[BucketChange], UpsertCommit | None]:
    changes: list[BucketChange] = []
    try:
        changes.extend(work.write())
    except BaseException:
        _remove(table, changes)
        raise
    try:
        return changes, commit_append(table, changes, commit, compacts=work.compacts)
    except ConflictError:  # after another error the snapshot may be there
        _remove(table, changes)
        raise


def _remove(table: OpenPaimonTable, changes: Iterable[BucketChange]) -> None:
    """Take back files that no snapshot will name."""
    with suppress(StorageError):  # `clean` removes them later
        table.storage.delete(path for one in changes for path in one.written)
