"""Index files of deletion vectors, written anew where rows are marked as deleted.

A table with buckets has one file for each of them, which holds all its vectors. One without has
any number of files: those that hold a vector which changes are replaced, and their other vectors
go to files of their own, so that the next delete need not touch them.

Marks are added to what is there at the moment of the commit. A data file never changes, and a row
that is deleted stays so: two deletes at the same time do not disturb each other.
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

__all__ = ["VectorChanges"]

_Vectors = dict[str, DeletionVector]
"""By the name of the data file."""
_NO_ROWS = DeletionVector()


@dataclass(frozen=True, slots=True)
class _Held:
    """An index file, with its vectors of data files that are live."""

    entry: IndexEntry
    ranges: tuple[DeletionVectorRange, ...]


@dataclass(frozen=True, slots=True)
class _Swap:
    """What becomes of the index files of a bucket."""

    deleted: tuple[IndexEntry, ...] = ()
    added: tuple[IndexEntry, ...] = ()
    rows: int = 0
    files: int = 0


class VectorChanges:
    """Marks rows in a table, whatever its state is when it comes to the commit."""

    def __init__(
        self, storage: Storage, options: TableOptions, deleted: Sequence[DeletedRows]
    ) -> None:
        """Take rows of data files, at least one of each."""
        self._storage, self._options = storage, options
        self._folders: dict[BucketId, str] = {}
        self._marks: dict[BucketId, _Vectors] = {}
        wide = DeletionVector(bits=64 if options.bitmap64 else None)
        for rows in deleted:
            bucket = rows.file.entry.bucket_id
            self._folders[bucket] = rows.file.folder
            self._marks.setdefault(bucket, {})[rows.file.file.name] = rows.rows | wide
        self._unique, self._numbers = uuid.uuid4(), count()
        self._written: list[str] = []
        self._known: dict[tuple[BucketId, tuple[_Held, ...]], _Swap] = {}
        self._swaps: list[_Swap] = []

    @property
    def rows(self) -> int:
        """How many rows the last plan deletes."""
        return sum(swap.rows for swap in self._swaps)

    @property
    def files(self) -> int:
        """How many data files they are of."""
        return sum(swap.files for swap in self._swaps)

    def plan(self, state: TableState) -> Change | None:
        """Write index files for a state; None if the rows are deleted by now.

        Raises:
            ConflictError: A data file is not there any more.
            FormatError: A data file has two vectors, so that nobody knows what is deleted of it.
        """
        for name, problem in duplicate_vectors(state.indexes):
            raise FormatError(f"{problem}, which repair merges", file=name)
        live: dict[BucketId, set[str]] = {}
        for one in state.entries:
            live.setdefault((one.partition, one.bucket), set()).add(one.file.name)
        for bucket, marks in self._marks.items():
            for name in marks.keys() - live.get(bucket, set()):
                raise ConflictError(f"{self._folders[bucket]}{name}: is not there any more")
        held: dict[BucketId, list[_Held]] = {bucket: [] for bucket in self._marks}
        for entry in state.indexes:
            bucket = entry.partition, entry.bucket
            if entry.index_type == DELETION_VECTORS and bucket in held:
                ranges = (one for one in entry.ranges or () if one.data_file in live[bucket])
                held[bucket].append(_Held(entry, tuple(ranges)))
        self._swaps = run_in_threads(
            lambda bucket: self._swap(bucket, tuple(held[bucket])),
            list(self._marks),
            waiting=self._storage.remote,
        )
        added = [entry for swap in self._swaps for entry in swap.added]
        if not added:
            return None
        deleted = [entry for swap in self._swaps for entry in swap.deleted]
        return Change(kind="OVERWRITE", index_deleted=deleted, index_added=added)

    def remove_unused(self) -> None:
        """Remove the index files of plans before the last one; no snapshot names them."""
        used = {
            self._path(bucket, entry)
            for bucket, swap in zip(self._marks, self._swaps, strict=True)
            for entry in swap.added
        }
        self._storage.delete([path for path in self._written if path not in used])

    def remove_all(self) -> None:
        """Remove all index files: nothing is committed."""
        self._storage.delete(self._written)

    def _swap(self, bucket: BucketId, held: tuple[_Held, ...]) -> _Swap:
        """Mark the rows of a bucket; what was written for the same state is taken again."""
        if (bucket, held) not in self._known:
            self._known[bucket, held] = self._new_swap(bucket, held)
        return self._known[bucket, held]

    def _new_swap(self, bucket: BucketId, held: tuple[_Held, ...]) -> _Swap:
        marks, has_buckets = self._marks[bucket], self._options.bucket > 0
        read = [
            (one.entry, self._read(bucket, one))
            for one in held
            if has_buckets or any(place.data_file in marks for place in one.ranges)
        ]
        before = {name: vector for _, vectors in read for name, vector in vectors.items()}
        merged = {name: before.get(name, _NO_ROWS) | rows for name, rows in marks.items()}
        new = {name: len(rows) - len(before.get(name, _NO_ROWS)) for name, rows in merged.items()}
        changed = {name: rows for name, rows in merged.items() if new[name]}
        if not changed:
            return _Swap()
        gone = {
            entry: vectors
            for entry, vectors in read
            if has_buckets or not vectors.keys().isdisjoint(changed)
        }
        left = {
            name: vector
            for vectors in gone.values()
            for name, vector in vectors.items()
            if name not in changed
        }
        added = tuple(self._write(bucket, one) for one in self._packed(changed, left))
        return _Swap(tuple(gone), added, sum(new.values()), len(changed))

    def _packed(self, changed: _Vectors, left: _Vectors) -> Iterator[WrittenVectors]:
        if self._options.bucket > 0:
            yield DeletionVectorFile.write(left | changed)
            return
        for vectors in (changed, left):
            yield from DeletionVectorFile.roll(vectors, target_size=self._options.dv_target_size)

    def _read(self, bucket: BucketId, held: _Held) -> Mapping[str, DeletionVector]:
        if not held.ranges:
            return {}
        source = self._storage.source(self._path(bucket, held.entry), held.entry.size)
        with DeletionVectorFile.open(source) as file:
            return file.read_all(held.ranges)

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
