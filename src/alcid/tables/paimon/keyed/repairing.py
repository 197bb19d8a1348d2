"""Keys that are live twice are mended: one row of each stays, and hash indexes tell where it is.

No data is written, only index files, and one snapshot of kind COMPACT: a row that is one too many
is marked in the deletion vectors of its bucket. Which row it is, `doubles` says for a bucket, and
`key_homes` for keys in several buckets.

What another changes at the same time is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from alcid.errors import ConflictError, FileGoneError, StorageError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.paimon_metadata.commit import Change
from alcid.paimon_metadata.index_manifest import DELETION_VECTORS, IndexEntry
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, Place, buckets_of
from alcid.tables.paimon.keyed.bucket_vectors import (
    index_file_path,
    read_hashes,
    read_vectors,
    write_hashes,
    write_vectors,
)
from alcid.tables.paimon.keyed.key_homes import has_hash_indexes
from alcid.tables.paimon.keyed.key_look import KeyFindings, keyed_for_reading, look_at_keys

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["repair"]

_TRIES: Final = 10
_NONE: Final = DeletionVector()


def repair(table: PaimonTable) -> int:
    """Mend the keys of a table, and remove index files of no vectors; how many things were mended.

    These are rows that were live beside another of their key, hashes that were missing in a hash
    index or in one too many, and index files without vectors, on which writers of Paimon's Java may
    fail. Different keys of the same hash that are in several buckets stay there.

    Raises:
        UnsupportedError: The table has no primary key, or an option that is not followed.
        ConflictError: Others have changed the same buckets every time.
    """
    mended, left = 0, None
    with table.engine.settings():
        for attempt in range(_TRIES):
            table.refresh()
            try:
                done = _Repair(table, left).run()
            except (ConflictError, FileGoneError):
                if attempt == _TRIES - 1:
                    raise
                continue
            mended, left = mended + done.mended, done.left
            if not left:
                table.refresh()
                return mended
    raise ConflictError(f"{table.location}: others have changed the same buckets every time")


@dataclass(frozen=True, slots=True)
class _Done:
    mended: int
    left: frozenset[Place]
    """Buckets that another has changed meanwhile."""


@dataclass(frozen=True, slots=True, eq=False)
class _Mended:
    """The index files of a bucket, written anew; nothing is committed."""

    base: Bucket
    deleted: tuple[IndexEntry, ...]
    added: tuple[IndexEntry, ...]
    count: int


class _Repair:
    """One try."""

    def __init__(self, table: PaimonTable, places: Iterable[Place] | None) -> None:
        files = table.snapshot
        if not files.schema.primary_keys:
            raise UnsupportedError("repair: the table has no primary key")
        files.options.require_writable("compact")
        self._table, self._places = table, None if places is None else frozenset(places)
        self._keyed = keyed_for_reading(
            table.storage, files.schema, dict(files.schemas), files.options
        )
        self._paths = table_paths(files.schema, files.options)
        self._base = buckets_of(files.state, self._paths)
        self._mended: list[_Mended] = []
        self._used: list[_Mended] = []
        self._empty: list[IndexEntry] = []

    def run(self) -> _Done:
        """Look at the buckets, write what mends them, and commit it."""
        state = self._table.snapshot.state
        committer = self._table.committer()
        chosen = [one for one in self._base if self._places is None or one.place in self._places]
        found = look_at_keys(self._table.engine, self._keyed, self._base, chosen, state.indexes)
        try:
            for one in found:
                self._mend(one)
            made = committer.commit(self._plan, known=state)
        except (ConflictError, FileGoneError):  # after another error the snapshot may be there
            self._remove(self._mended)
            raise
        if made is None:
            self._used = []
        used = {one.base.place for one in self._used}
        unused = [one for one in self._mended if one.base.place not in used]
        self._remove(unused)
        count = sum(one.count for one in self._used) + (0 if made is None else len(self._empty))
        return _Done(count, frozenset(one.base.place for one in unused))

    def _mend(self, found: KeyFindings) -> None:
        """Write the vectors, and the hash index, of a bucket anew."""
        keyed, bucket, verdict = self._keyed, found.bucket, found.verdict
        deleted: list[IndexEntry] = []
        added: list[IndexEntry] = []
        count = len(verdict.added) + len(verdict.dropped)
        if found.twice or found.elsewhere:
            marked = read_vectors(keyed, bucket)
            before = sum(map(len, marked.values()))
            for marks in (found.twice, found.elsewhere):
                marked |= {name: marked.get(name, _NONE) | rows for name, rows in marks.items()}
            count += sum(map(len, marked.values())) - before
            vectors = write_vectors(keyed, bucket, marked)
            deleted += bucket.vectors
            added += [] if vectors is None else [vectors]
        if len(verdict.added) or len(verdict.dropped):
            known = read_hashes(keyed, bucket).hashes
            kept = HashIndex(known[~HashIndex(verdict.dropped).contains(known)])
            deleted += bucket.hashes
            if len(kept) or len(verdict.added):
                added.append(write_hashes(keyed, bucket, kept.union(verdict.added)))
        if count:
            self._mended.append(_Mended(bucket, tuple(deleted), tuple(added), count))

    def _plan(self, state: TableState) -> Change | None:
        """What goes with a state: what was made for buckets that are as they were."""
        now = buckets_of(state, self._paths)
        self._used = [one for one in self._mended if self._is_unchanged(one.base, now)]
        self._empty = [
            one for one in state.indexes if one.index_type == DELETION_VECTORS and not one.ranges
        ]
        if not self._used and not self._empty:
            return None
        return Change(
            kind="COMPACT",
            index_deleted=[entry for one in self._used for entry in one.deleted] + self._empty,
            index_added=[entry for one in self._used for entry in one.added],
        )

    def _is_unchanged(self, bucket: Bucket, now: Buckets) -> bool:
        if not has_hash_indexes(self._keyed.schema, self._keyed.options):
            return bucket.is_same(now[bucket.place])
        # Where a key belongs was found by a look at the whole partition.
        before, after = (one.of_partition(bucket.partition) for one in (self._base, now))
        same = (one.is_same(now[one.place]) for one in before.values())
        return before.keys() == after.keys() and all(same)

    def _remove(self, unused: Sequence[_Mended]) -> None:
        paths = [
            index_file_path(self._keyed, one.base, entry) for one in unused for entry in one.added
        ]
        with suppress(StorageError):  # `clean` removes them later
            self._keyed.storage.delete(paths)
