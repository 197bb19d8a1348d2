"""New index files of deletion vectors, where rows of data files are deleted.

A bucket has one file with all of its vectors. A table without buckets has any number of files:
those with a vector that changes are replaced, and their other vectors go to files of their own, so
that the next delete need not touch them.

Rows are added to the vectors of the state that is committed to. A data file never changes, and a
deleted row stays deleted: two deletes at the same time do not interfere.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from alcid.errors import ConflictError, FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.formats.deletion_vector.file import WrittenVectors
from alcid.storage import Storage
from alcid.storage.threads import run_in_threads
from alcid.tables.paimon.deletion_vectors import DeletedRows, duplicate_vectors, index_path
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, IndexEntry, TableState

_Vectors = dict[str, DeletionVector]
"""Deletion vectors by the name of their data file."""
_NO_ROWS = DeletionVector()


@dataclass(frozen=True, slots=True)
class _IndexFile:
    """An index file, and its vectors of live data files."""

    entry: IndexEntry
    ranges: tuple[DeletionVectorRange, ...]


@dataclass(frozen=True, slots=True)
class _Swap:
    """The index files of a bucket to delete and to add."""

    deleted: tuple[IndexEntry, ...] = ()
    added: tuple[IndexEntry, ...] = ()
    rows: int = 0
    files: int = 0


class VectorChanges:
    """Deletes rows of a table in whatever state it is at the commit."""

    def __init__(
        self, storage: Storage, options: TableOptions, deleted: Sequence[DeletedRows]
    ) -> None:
        """Take the rows to delete, at least one of each data file."""
        self._storage, self._options = storage, options
        self._folders: dict[BucketId, str] = {}
        self._deleted: dict[BucketId, _Vectors] = {}
        wide = DeletionVector(bits=64 if options.bitmap64 else None)
        for rows in deleted:
            bucket = rows.file.entry.bucket_id
            self._folders[bucket] = rows.file.folder
            self._deleted.setdefault(bucket, {})[rows.file.file.name] = rows.rows | wide
        self._unique, self._numbers = uuid.uuid4(), count()
        self._written: list[str] = []
        self._planned: dict[tuple[BucketId, tuple[_IndexFile, ...]], _Swap] = {}
        self._swaps: list[_Swap] = []

    @property
    def rows(self) -> int:
        """How many rows the last plan deletes."""
        return sum(swap.rows for swap in self._swaps)

    @property
    def files(self) -> int:
        """The number of their data files."""
        return sum(swap.files for swap in self._swaps)

    def plan(self, state: TableState) -> Change | None:
        """Write index files for a state; None if the rows are deleted by now.

        Raises:
            ConflictError: A data file is not live any more.
            FormatError: A data file has two vectors, so that its deleted rows are unknown.
        """
        for name, problem in duplicate_vectors(state.indexes):
            raise FormatError(f"{problem}, which repair merges", file=name)
        live: dict[BucketId, set[str]] = {}
        for entry in state.entries:
            live.setdefault(entry.bucket_id, set()).add(entry.file.name)
        for bucket, deleted in self._deleted.items():
            for name in deleted.keys() - live.get(bucket, set()):
                raise ConflictError(f"{self._folders[bucket]}{name}: is not there any more")
        existing: dict[BucketId, list[_IndexFile]] = {bucket: [] for bucket in self._deleted}
        for index in state.indexes:
            bucket = index.bucket_id
            if index.index_type == DELETION_VECTORS and bucket in existing:
                ranges = (
                    vector for vector in index.ranges or () if vector.data_file in live[bucket]
                )
                existing[bucket].append(_IndexFile(index, tuple(ranges)))
        self._swaps = run_in_threads(
            lambda bucket: self._swap(bucket, tuple(existing[bucket])),
            list(self._deleted),
            waiting=self._storage.remote,
        )
        added = [entry for swap in self._swaps for entry in swap.added]
        if not added:
            return None
        replaced = [entry for swap in self._swaps for entry in swap.deleted]
        return Change(kind="OVERWRITE", index_deleted=replaced, index_added=added)

    def remove_unused(self) -> None:
        """Remove the index files of plans before the last one, which are not committed."""
        used = {
            self._path(bucket, entry)
            for bucket, swap in zip(self._deleted, self._swaps, strict=True)
            for entry in swap.added
        }
        self._storage.delete([path for path in self._written if path not in used])

    def remove_all(self) -> None:
        """Remove all new index files: nothing is committed."""
        self._storage.delete(self._written)

    def _swap(self, bucket: BucketId, existing: tuple[_IndexFile, ...]) -> _Swap:
        """Delete the rows of a bucket; what was written for the same state is used again."""
        if (bucket, existing) not in self._planned:
            self._planned[bucket, existing] = self._new_swap(bucket, existing)
        return self._planned[bucket, existing]

    def _new_swap(self, bucket: BucketId, existing: tuple[_IndexFile, ...]) -> _Swap:
        deleted, has_buckets = self._deleted[bucket], self._options.bucket > 0
        read = [
            (file.entry, self._read(bucket, file))
            for file in existing
            if has_buckets or any(vector.data_file in deleted for vector in file.ranges)
        ]
        before = {name: vector for _, vectors in read for name, vector in vectors.items()}
        merged = {name: before.get(name, _NO_ROWS) | rows for name, rows in deleted.items()}
        new = {name: len(rows) - len(before.get(name, _NO_ROWS)) for name, rows in merged.items()}
        changed = {name: rows for name, rows in merged.items() if new[name]}
        if not changed:
            return _Swap()
        replaced = {
            entry: vectors
            for entry, vectors in read
            if has_buckets or not vectors.keys().isdisjoint(changed)
        }
        left = {
            name: vector
            for vectors in replaced.values()
            for name, vector in vectors.items()
            if name not in changed
        }
        added = tuple(self._write(bucket, file) for file in self._pack(changed, left))
        return _Swap(tuple(replaced), added, sum(new.values()), len(changed))

    def _pack(self, changed: _Vectors, left: _Vectors) -> Iterator[WrittenVectors]:
        if self._options.bucket > 0:
            yield DeletionVectorFile.write(left | changed)
            return
        for vectors in (changed, left):
            yield from DeletionVectorFile.roll(vectors, target_size=self._options.dv_target_size)

    def _read(self, bucket: BucketId, file: _IndexFile) -> Mapping[str, DeletionVector]:
        if not file.ranges:
            return {}
        source = self._storage.source(self._path(bucket, file.entry), file.entry.size)
        with DeletionVectorFile.open(source) as opened:
            return opened.read_all(file.ranges)

    def _write(self, bucket: BucketId, written: WrittenVectors) -> IndexEntry:
        entry = IndexEntry(
            *bucket,
            DELETION_VECTORS,
            f"index-{self._unique}-{next(self._numbers)}",
            len(written.data),
            len(written.ranges),
            written.ranges,
        )
        path = self._path(bucket, entry)
        self._written.append(path)
        self._storage.put(path, written.data)
        return entry

    def _path(self, bucket: BucketId, entry: IndexEntry) -> str:
        beside = self._options.index_file_in_data_file_dir
        return index_path(entry, self._folders[bucket], beside_data=beside)
