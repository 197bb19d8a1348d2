"""What a commit does to a table, and whether it goes with a state of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from alcid.errors import ConflictError
from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.paimon_metadata.table_state import TableState

__all__ = ["Change", "check", "is_in"]


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
