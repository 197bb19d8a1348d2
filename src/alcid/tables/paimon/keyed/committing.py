"""An upsert becomes two snapshots: rows come to level 0, then they are lifted, older ones marked.

    APPEND    files on level 0, and the hash indexes that grew
    COMPACT   the same files on their levels, and the deletion vectors of what they replace

Batch readers pass over level 0, so that they see the whole upsert with the second snapshot;
streaming readers read the first. Whoever is killed between them has lost nothing: the next upsert
finishes it, and any compaction lifts what it finds on level 0.

Where all buckets were empty there is nothing to be marked, and one snapshot is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alcid.errors import ConflictError
from alcid.paimon_metadata.commit import BATCH, Change
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.paimon.data_files import PlacedFile, table_paths
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, Place, buckets_of
from alcid.tables.paimon.keyed.changes import BucketChange, KeyedTable, Settlement
from alcid.tables.paimon.keyed.compact_change import compact_change
from alcid.tables.paimon.keyed.runs import count_levels
from alcid.tables.paimon.keyed.settle_work import remove_written, settle_buckets
from alcid.tables.paimon.keyed.unsettled import Upsert, mark_of, places_of, told
from alcid.tables.paimon.new_files import WrittenData

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["CommitAs", "Compacted", "UpsertCommit", "commit_append", "commit_compact", "finish"]


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
    table: PaimonTable,
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
    table: PaimonTable,
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
    table: PaimonTable, keyed: KeyedTable, places: Collection[Place], commit: CommitAs
) -> Compacted | None:
    """Lift what lies on level 0 of some buckets, as an upsert that was killed has left it."""
    return _Compaction(table, keyed, dict.fromkeys(places), commit).run()


class _Compaction:
    """The second snapshot of an upsert."""

    def __init__(
        self,
        table: PaimonTable,
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
