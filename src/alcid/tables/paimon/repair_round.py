"""One look at what is wrong with a Paimon table, and one commit that mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from alcid.errors import ConflictError, FileGoneError, StorageError, UnsupportedError
from alcid.paimon_metadata.commit import Change
from alcid.paimon_metadata.index_manifest import DELETION_VECTORS, IndexEntry
from alcid.paimon_metadata.snapshot import Snapshot
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.index_file_check import vectors_twice
from alcid.tables.paimon.index_swap import is_possible
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, Place, buckets_of
from alcid.tables.paimon.keyed.key_look import keyed_for_reading
from alcid.tables.paimon.keyed.repairing import KeyRepair, is_unchanged, mend_keys
from alcid.tables.paimon.repair_indexes import IndexRepair, is_of_index, mend_indexes
from alcid.tables.paimon.repair_vectors import VectorMender, VectorRepair
from alcid.tables.repair_report import Mended
from alcid.tables.verify_report import Finding, VerifyReport

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["RepairRound", "RoundDone"]


@dataclass(frozen=True, slots=True)
class RoundDone:
    """What came of it."""

    mended: tuple[Mended, ...]
    snapshot: Snapshot | None
    has_lost: bool
    """Whether another has changed meanwhile what was to be mended."""


@dataclass(frozen=True, slots=True, eq=False)
class _BucketRepair:
    """Other index files for a bucket."""

    place: Place
    deleted: tuple[IndexEntry, ...]
    added: tuple[IndexEntry, ...]
    mended: tuple[Mended, ...]


class RepairRound:
    """One try, for the table as it is known."""

    def __init__(self, table: PaimonTable, found: VerifyReport) -> None:
        """Take what is wrong; nothing is done yet."""
        files = table.snapshot
        self._table, self._state, self._options = table, files.state, files.options
        self._has_key = bool(files.schema.primary_keys)
        self._keyed = keyed_for_reading(
            table.storage, files.schema, dict(files.schemas), files.options
        )
        self._paths = table_paths(files.schema, files.options)
        self._base = buckets_of(files.state, self._paths)
        self._wrong: dict[str, list[Finding]] = {}
        for finding in (*found.problems, *found.warnings):
            self._wrong.setdefault(finding.file, []).append(finding)
        self._written: list[str] = []
        self._buckets: list[_BucketRepair] = []
        self._indexes: list[IndexRepair] = []
        self._used: list[_BucketRepair] = []
        self._swapped: list[IndexRepair] = []

    def run(self) -> RoundDone:
        """Write what mends the table, and commit it.

        Raises:
            ConflictError: The schema of the table was changed meanwhile.
            FileGoneError: Another has replaced a file, and it is gone.
        """
        try:
            self._buckets = self._mend_buckets()
            self._indexes = self._mend_indexes()
            if not self._buckets and not self._indexes:
                return RoundDone((), None, has_lost=False)
            made = self._table.committer().commit(self._plan, known=self._state)
        except (ConflictError, FileGoneError):  # after another error the snapshot may be there
            self._remove(self._written)
            raise
        if made is None:
            self._used, self._swapped = [], []
        self._remove_unused()
        done = [*(one.mended for one in self._used), *(one.mended for one in self._swapped)]
        has_lost = len(done) < len(self._buckets) + len(self._indexes)
        return RoundDone(tuple(chain.from_iterable(done)), made, has_lost)

    def _mend_buckets(self) -> list[_BucketRepair]:
        vectors = self._mend_vectors()
        keys = {one.place: one for one in self._mend_keys(vectors)} if self._has_key else {}
        return [
            _composed(place, vectors.get(place, VectorRepair()), keys.get(place))
            for place in dict.fromkeys((*vectors, *keys))
        ]

    def _mend_vectors(self) -> dict[Place, VectorRepair]:
        mender = VectorMender(self._table.storage, self._options, has_key=self._has_key)
        held: dict[Place, list[IndexEntry]] = {}
        for entry in self._state.indexes:
            if entry.index_type == DELETION_VECTORS:
                held.setdefault((entry.partition, entry.bucket), []).append(entry)
        found = {}
        for place, entries in held.items():
            bucket = self._base[place]
            twice = [name for name, _ in vectors_twice(entries)]
            if twice or any(self._path(bucket, one) in self._wrong for one in entries):
                made = mender.mend(bucket, entries, self._wrong, twice)
                self._note(bucket, made.added)
                if made.mended:
                    found[place] = made
        return found

    def _mend_keys(self, vectors: Mapping[Place, VectorRepair]) -> list[KeyRepair]:
        """Mend the keys of buckets that something was found of, as their vectors are to be."""
        broken = {
            entry.name: bucket.place
            for bucket in self._base
            for entry in bucket.hashes
            if self._path(bucket, entry) in self._wrong
        }
        folders = {
            f"{path.rpartition('/')[0]}/"
            for path, found in self._wrong.items()
            if any(one.what in ("keys", "hashes of keys") for one in found)
        }
        chosen = {one.place for one in self._base if one.folder in folders}
        chosen |= {*vectors, *broken.values()}
        if not chosen:
            return []
        try:
            self._options.require_writable("compact")
        except UnsupportedError:  # which is told of what stays wrong
            return []
        partitions: dict[bytes, dict[int, Bucket]] = {}
        for bucket in self._base:
            now = _with_vectors(bucket, vectors.get(bucket.place, VectorRepair()))
            partitions.setdefault(bucket.partition, {})[bucket.number] = now
        buckets = Buckets(self._paths, partitions)
        indexes = self._state.indexes
        made = mend_keys(self._table.engine, self._keyed, buckets, chosen, indexes, broken.keys())
        for one in made:
            self._note(self._base[one.place], one.added)
        return made

    def _mend_indexes(self) -> list[IndexRepair]:
        wrong = {
            path: [one for one in found if is_of_index(one)] for path, found in self._wrong.items()
        }
        made = mend_indexes(self._table, {path: found for path, found in wrong.items() if found})
        self._written += [path for one in made for path in one.swap.written]
        return made

    def _plan(self, state: TableState) -> Change | None:
        """What goes with a state: what was made for what is as it was."""
        now = buckets_of(state, self._paths)
        self._used = [one for one in self._buckets if self._holds(one, state, now)]
        self._swapped = [one for one in self._indexes if is_possible(one.swap, state)]
        if not self._used and not self._swapped:
            return None
        return Change(
            kind="COMPACT",
            deleted=[one.swap.placed.entry for one in self._swapped],
            added=[one.swap.added for one in self._swapped],
            index_deleted=[entry for one in self._used for entry in one.deleted],
            index_added=[entry for one in self._used for entry in one.added],
        )

    def _holds(self, repair: _BucketRepair, state: TableState, now: Buckets) -> bool:
        if self._has_key:
            return is_unchanged(self._keyed, repair.place, self._base, now)
        live = {one.file.name for one in now[repair.place].files}
        named = {place.data_file for one in repair.added for place in one.ranges or ()}
        return named <= live and all(one in state.indexes for one in repair.deleted)

    def _note(self, bucket: Bucket, added: Sequence[IndexEntry]) -> None:
        """Take note of new files; what stays of an index file has the name of that."""
        known = {one.name for one in self._state.indexes}
        self._written += [self._path(bucket, one) for one in added if one.name not in known]

    def _remove_unused(self) -> None:
        """Remove what no snapshot names."""
        used = {
            self._path(self._base[one.place], entry) for one in self._used for entry in one.added
        }
        used |= {path for one in self._swapped for path in one.swap.written}
        self._remove([path for path in self._written if path not in used])

    def _remove(self, paths: Sequence[str]) -> None:
        with suppress(StorageError):  # `clean` removes them later
            self._table.storage.delete(paths)

    def _path(self, bucket: Bucket, entry: IndexEntry) -> str:
        if entry.external_path is not None:  # outside of the table, where nothing is looked at
            return entry.external_path
        return bucket.index_path(entry, beside_data=self._options.index_file_in_data_file_dir)


def _with_vectors(bucket: Bucket, repair: VectorRepair) -> Bucket:
    """A bucket as it is to be."""
    kept = (one for one in bucket.vectors if one not in repair.deleted)
    return replace(bucket, vectors=(*kept, *repair.added))


def _composed(place: Place, vectors: VectorRepair, keys: KeyRepair | None) -> _BucketRepair:
    """What is left of both, as the second was made for what the first makes."""
    if keys is None:
        return _BucketRepair(place, vectors.deleted, vectors.added, vectors.mended)
    return _BucketRepair(
        place,
        (*vectors.deleted, *(one for one in keys.deleted if one not in vectors.added)),
        (*(one for one in vectors.added if one not in keys.deleted), *keys.added),
        (*vectors.mended, *keys.mended),
    )
