"""Changes of buckets are written and committed; again from the start where another was faster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from alcid.errors import ConflictError, FileGoneError, StorageError
from alcid.tables.paimon.keyed.changes import BucketChange, KeyedTable
from alcid.tables.paimon.keyed.committing import (
    CommitAs,
    Compacted,
    UpsertCommit,
    commit_append,
    commit_compact,
)
from alcid.tables.paimon.keyed.unsettled import told
from alcid.tables.paimon.writable import writing_options

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["Applied", "Changing", "apply_changes"]

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
    table: PaimonTable, plan: Callable[[], Changing], commit: CommitAs | None = None
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
    table: PaimonTable, keyed: KeyedTable, changes: Sequence[BucketChange], commit: CommitAs
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


def _is_latest(table: PaimonTable) -> bool:
    """Whether nobody has committed since the table was read: then nobody has replaced a file."""
    return table.folder.snapshots.latest() == table.snapshot.state.snapshot


def _write(
    table: PaimonTable, work: Changing, commit: CommitAs
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


def _remove(table: PaimonTable, changes: Iterable[BucketChange]) -> None:
    """Take back files that no snapshot will name."""
    with suppress(StorageError):  # `clean` removes them later
        table.storage.delete(path for one in changes for path in one.written)
