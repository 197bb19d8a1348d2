"""A commit: manifests are written under new names, then one new snapshot, exclusively.

The number of a snapshot is taken by whoever writes its file first. Who comes second has lost, looks
at what the winner did, plans again, and tries the next number. Until the file of the snapshot is
there, nothing of a commit can be seen; what is left of one that was killed are files that no
snapshot names.

A manifest is read again before it is put in its place: what reads as something else, or as nothing,
would end the table.

Entries by which files go are written before those by which files come: when a snapshot expires,
Paimon removes what went and did not come again *after* it.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from alcid.errors import ConflictError, FileGoneError, FormatError, StorageError, UnsupportedError
from alcid.paimon_metadata.change import Change, check
from alcid.paimon_metadata.index_manifest import (
    DELETION_VECTORS,
    IndexEntry,
    read_index_manifest,
    write_index_manifest,
)
from alcid.paimon_metadata.manifest import ADD, ManifestEntry, read_manifest, write_manifest
from alcid.paimon_metadata.manifest_list import (
    ManifestMeta,
    read_manifest_list,
    write_manifest_list,
)
from alcid.paimon_metadata.manifest_merging import describe, merge_manifests
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.snapshot import Snapshot, SnapshotFolder
from alcid.paimon_metadata.snapshot_making import SnapshotMaker
from alcid.paimon_metadata.table_options import TableOptions
from alcid.paimon_metadata.table_state import MANIFEST_FOLDER, TableState
from alcid.storage import Storage

__all__ = ["BATCH", "Change", "Committer"]

BATCH = (1 << 63) - 1
"""The identifier of a commit that is none of a series."""

_TRIES = 200
_PAUSE = 0.5  # seconds at most between two tries
_LARGEST_MANIFEST = 256 << 20  # bytes without compression; readers take 1 GiB
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


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
        known: TableState | None = None,
        user: str | None = None,
        identifier: int = BATCH,
    ) -> Snapshot | None:
        """Make a snapshot.

        Args:
            plan: Says what to do to a table in this state; None for nothing. It is called again
                with the new state where another was faster, and raises ConflictError where what it
                was to do makes no sense any more.
            known: An earlier state, if there is one: what it has read is not read again.
            user: Who commits; by default a new name.
            identifier: The number of the commit in the series of its user.

        Raises:
            ConflictError: The change does not go with the state of the table.
        """
        user = self.new_user() if user is None else user
        state = TableState(self._storage, None) if known is None else known
        for attempt in range(_TRIES):
            state = state.at(self._snapshots.latest())
            try:
                change = plan(state)
                if change is None:
                    return None
                self._check_schema()
                check(change, state)
                snapshot = self._try(change, state, user, identifier)
                if snapshot is not None and self._maker.is_final(snapshot, change):
                    return snapshot
            except FileGoneError:  # the snapshot has expired while it was read
                if self._is_latest(state):
                    raise
            time.sleep(random.uniform(0, min(_PAUSE, 0.01 * (attempt + 1))))
        raise ConflictError(f"{self._storage.location}: others were faster {_TRIES} times in a row")

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
        with suppress(StorageError):
            self._storage.delete(self._paths)
