"""The index files of a bucket with deletion vectors, written anew where something is wrong.

| wrong                                  | becomes                                                |
|----------------------------------------|--------------------------------------------------------|
| two vectors of a data file             | one, of the rows of both                               |
| a vector of a file that is not live    | nothing                                                |
| another number of rows than it has     | the same vector with its own number                    |
| an index file without ranges           | as an older snapshot has it; nothing, if none does     |
| a vector that cannot be read           | stays as it is: rows that were deleted must not return |

Vectors that can be read go to new index files. Those that cannot are left where they are, under the
name of their file, so that it can be restored.

Keys that are live twice are mended: one row of each stays, and hash indexes tell where it is.

No data is written, only index files: a row that is one too many is marked in the deletion vectors
of its bucket. Which row it is, `doubles` says for a bucket, and `key_homes` for keys in several
buckets. A hash index that cannot be read is made again from the keys.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from alcid._text import count_text
from alcid.errors import FileGoneError, FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.formats.hash_index import HashIndex
from alcid.storage import Storage
from alcid.tables.engine import Engine
from alcid.tables.maintenance.findings import Finding, Mended
from alcid.tables.maintenance.paimon_hash_indexes import has_hash_indexes
from alcid.tables.maintenance.paimon_keys import KeyFindings, look_at_keys
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    Buckets,
    KeyedTable,
    read_hashes,
    read_vectors,
    write_hashes,
    write_vectors,
)
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.table_folder import TableFolder
from alcid.tables.paimon.metadata.table_state import (
    DELETION_VECTORS,
    MANIFEST_FOLDER,
    IndexEntry,
    read_index_manifest,
)

__all__ = ["KeyRepair", "VectorMender", "VectorRepair", "is_unchanged", "mend_keys"]

_NO_ROWS = DeletionVector()
_NO_VECTORS = 1  # bytes of an index file that has nothing but its version


@dataclass(frozen=True, slots=True, eq=False)
class VectorRepair:
    """What becomes of the index files of a bucket; nothing is committed."""

    deleted: tuple[IndexEntry, ...] = ()
    added: tuple[IndexEntry, ...] = ()
    mended: tuple[Mended, ...] = ()


@dataclass(slots=True, eq=False)
class _Held:
    """An index file, as far as it can be read."""

    entry: IndexEntry
    path: str
    vectors: list[tuple[DeletionVectorRange, DeletionVector]]
    """Those of live data files."""
    stuck: list[DeletionVectorRange]
    """Those of live data files that cannot be read, or are of rows that there are not."""
    filled_by: int | None = None
    """The snapshot that knew its ranges, if it has lost them."""


class VectorMender:
    """Mends index files of a table; many buckets may be given to it."""

    def __init__(self, storage: Storage, options: TableOptions, *, has_key: bool) -> None:
        """Take a table; with a key, or buckets, each bucket has one index file."""
        self._storage, self._options = storage, options
        self._is_single = has_key or options.bucket > 0

    def mend(
        self,
        bucket: Bucket,
        entries: Sequence[IndexEntry],
        wrong: Mapping[str, Sequence[Finding]],
        twice: Collection[str],
    ) -> VectorRepair:
        """Write new index files.

        Args:
            bucket: The bucket.
            entries: Its index files with vectors, those without ranges too.
            wrong: What was found of index files, by their paths.
            twice: Data files with two vectors, by their names.
        """
        held = [self._read(bucket, one) for one in self._touched(bucket, entries, wrong, twice)]
        # Two vectors of which one cannot be read stay two.
        stuck = {place.data_file for one in held for place in one.stuck}
        vectors: dict[str, DeletionVector] = {}
        stays: list[IndexEntry] = []
        for one in held:
            kept = list(one.stuck)
            for place, vector in one.vectors:
                if place.data_file in stuck:
                    kept.append(place)
                else:
                    name = place.data_file
                    vectors[name] = vectors.get(name, _NO_ROWS) | vector
            if kept:
                stays.append(replace(one.entry, rows=len(kept), ranges=tuple(kept)))
        mended = [
            *(told for one in held for told in self._told(one, stuck, wrong.get(one.path, ()))),
            *self._merged(held, vectors, twice),
        ]
        if not mended:
            return VectorRepair()
        deleted = [one.entry for one in held if one.entry not in stays]
        added = [one for one in stays if one not in entries]
        return VectorRepair(tuple(deleted), (*added, *self._write(bucket, vectors)), tuple(mended))

    def _touched(
        self,
        bucket: Bucket,
        entries: Sequence[IndexEntry],
        wrong: Mapping[str, Sequence[Finding]],
        twice: Collection[str],
    ) -> Iterator[IndexEntry]:
        for entry in entries:
            if entry.external_path is not None:
                continue
            has_two = any(place.data_file in twice for place in entry.ranges or ())
            if self._is_single or has_two or self._path(bucket, entry) in wrong:
                yield entry

    def _read(self, bucket: Bucket, entry: IndexEntry) -> _Held:
        """Read all that can be read of an index file."""
        rows = {one.file.name: one.file.rows for one in bucket.files}
        ranges, snapshot = entry.ranges, None
        if not ranges and entry.size > _NO_VECTORS:
            ranges, snapshot = self._ranges_before(entry)
        live = [place for place in ranges or () if place.data_file in rows]
        held = _Held(entry, self._path(bucket, entry), [], [], snapshot)
        try:
            with DeletionVectorFile.open(self._storage.source(held.path)) as file:
                for place in live:
                    vector = _read_vector(file, place, rows[place.data_file])
                    if vector is None:
                        held.stuck.append(place)
                    else:
                        held.vectors.append((place, vector))
        except (FileGoneError, FormatError):
            held.vectors, held.stuck = [], live
        return held

    def _ranges_before(
        self, entry: IndexEntry
    ) -> tuple[tuple[DeletionVectorRange, ...], int | None]:
        """What the last snapshot says of an index file that tells of vectors in it."""
        snapshots, looked_at = TableFolder(self._storage).snapshots, set[str]()
        for number in reversed(snapshots.numbers()):
            try:
                name = snapshots.get(number).index_manifest
                if name is None or name in looked_at:
                    continue
                looked_at.add(name)
                path = f"{MANIFEST_FOLDER}/{name}"
                source = self._storage.source(path)
                known = read_index_manifest(source.read(0, source.size), file=path)
            except (FileGoneError, FormatError):  # it does not know either
                continue
            for one in known:
                if one.name == entry.name and one.size == entry.size and one.ranges:
                    return one.ranges, number
        return (), None

    def _told(
        self, held: _Held, stuck: Collection[str], findings: Sequence[Finding]
    ) -> Iterator[Mended]:
        """What becomes of what was found of an index file."""
        counts = {place.data_file: len(vector) for place, vector in held.vectors}
        of_live = {*counts, *(place.data_file for place in held.stuck)}
        for finding in findings:
            name = finding.what.removeprefix("vector of ")
            if not held.entry.ranges:
                done = "no vector in use: dropped"
                if held.filled_by is not None:
                    done = f"taken as snapshot {held.filled_by} has it"
                yield Mended.of(finding, done)
            elif name == finding.what:  # of the file as such
                if counts.keys() - stuck or not of_live:
                    yield Mended.of(finding, "written anew")
            elif name not in of_live:
                yield Mended.of(finding, "dropped")
            elif name not in stuck:
                rows = count_text(counts[name], "row")
                yield Mended.of(finding, f"written anew, of {rows}", counts[name])

    def _merged(
        self,
        held: Sequence[_Held],
        vectors: Mapping[str, DeletionVector],
        twice: Collection[str],
    ) -> Iterator[Mended]:
        for name in twice:
            places = ((one, place) for one in held for place in one.entry.ranges or ())
            files = [one.entry.name for one, place in places if place.data_file == name]
            if files and name in vectors:
                rows = count_text(len(vectors[name]), "row")
                problem = f"two vectors, in {' and '.join(files)}"
                yield Mended(name, "deletion vectors", problem, f"merged to one, of {rows}")

    def _write(self, bucket: Bucket, vectors: Mapping[str, DeletionVector]) -> Iterator[IndexEntry]:
        if not vectors:
            return
        wide = DeletionVector(bits=64 if self._options.bitmap64 else None)
        kept = {name: vector | wide for name, vector in vectors.items()}
        files = (
            [DeletionVectorFile.write(kept)]
            if self._is_single
            else DeletionVectorFile.roll(kept, target_size=self._options.dv_target_size)
        )
        unique = uuid.uuid4()
        for number, written in enumerate(files):
            entry = IndexEntry(
                *bucket.id,
                DELETION_VECTORS,
                f"index-{unique}-{number}",
                len(written.data),
                len(written.ranges),
                written.ranges,
            )
            self._storage.put(self._path(bucket, entry), written.data)
            yield entry

    def _path(self, bucket: Bucket, entry: IndexEntry) -> str:
        return bucket.index_path(entry, beside_data=self._options.index_file_in_data_file_dir)


def _read_vector(
    file: DeletionVectorFile, place: DeletionVectorRange, rows: int
) -> DeletionVector | None:
    """A vector whose bytes are whole, however many rows its range says that it has."""
    try:
        vector = file.read(replace(place, cardinality=None))
    except FormatError:
        return None
    return vector if vector.last is None or vector.last < rows else None


_NONE: Final = DeletionVector()


@dataclass(frozen=True, slots=True, eq=False)
class KeyRepair:
    """The index files of a bucket, written anew; nothing is committed."""

    place: BucketId
    deleted: tuple[IndexEntry, ...]
    added: tuple[IndexEntry, ...]
    mended: tuple[Mended, ...]


def mend_keys(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Buckets,
    chosen: Collection[BucketId],
    indexes: Sequence[IndexEntry],
    broken: Collection[str] = (),
) -> list[KeyRepair]:
    """Write the index files that mend the keys of some buckets.

    These are rows that are live beside another of their key, and hashes that are missing in a hash
    index or in one too many. Different keys of the same hash that are in several buckets stay
    there. A bucket with a file that cannot be read is passed over.

    Args:
        engine: What looks at the keys.
        keyed: The table.
        buckets: All of it.
        chosen: Those to look at.
        indexes: The index files of the table, that which was committed last at the end.
        broken: Hash indexes that are to be made again, by their names.
    """
    whole = {
        one.id: replace(one, hashes=tuple(e for e in one.hashes if e.name not in broken))
        for one in buckets
    }
    partitions = {
        partition: {number: whole[partition, number] for number in known}
        for partition, known in buckets.partitions.items()
    }
    found = look_at_keys(
        engine,
        keyed,
        Buckets(buckets.paths, partitions),
        [whole[place] for place in chosen if place in whole],
        indexes,
    )
    made = (_mend(keyed, one, buckets[one.bucket.id]) for one in found)
    return [one for one in made if one is not None]


def _mend(keyed: KeyedTable, found: KeyFindings, before: Bucket) -> KeyRepair | None:
    """Write the vectors, and the hash index, of a bucket anew; `before` has what is broken too."""
    bucket, verdict = found.bucket, found.verdict
    deleted: list[IndexEntry] = []
    added: list[IndexEntry] = []
    if found.twice or found.elsewhere:
        marked = read_vectors(keyed, bucket)
        for marks in (found.twice, found.elsewhere):
            marked |= {name: marked.get(name, _NONE) | rows for name, rows in marks.items()}
        vectors = write_vectors(keyed, bucket, marked)
        deleted += bucket.vectors
        added += [] if vectors is None else [vectors]
    if len(verdict.added) or len(verdict.dropped):
        known = read_hashes(keyed, bucket).hashes
        kept = HashIndex(known[~HashIndex(verdict.dropped).contains(known)])
        deleted += before.hashes
        if len(kept) or len(verdict.added):
            added.append(write_hashes(keyed, bucket, kept.union(verdict.added)))
    mended = tuple(_told(found))
    return KeyRepair(bucket.id, tuple(deleted), tuple(added), mended) if mended else None


def _told(found: KeyFindings) -> Iterator[Mended]:
    every = list(found.problems())
    counts = [len(rows) for marks in (found.twice, found.elsewhere) for rows in marks.values()]
    for (path, what, problem), count in zip(every, counts, strict=False):
        yield Mended(path, what, problem, "marked as deleted", count)
    added, dropped = len(found.verdict.added), len(found.verdict.dropped)
    if added or dropped:
        problems = ", ".join(problem for _, _, problem in every[len(counts) :])
        done = f"{added:,} put in, {dropped:,} taken out"
        yield Mended(found.bucket.folder, "hashes of keys", problems, done, added + dropped)


def is_unchanged(keyed: KeyedTable, place: BucketId, before: Buckets, now: Buckets) -> bool:
    """Whether what was made for a bucket still holds: nobody has changed it meanwhile."""
    if not has_hash_indexes(keyed.schema, keyed.options):
        return before[place].is_same(now[place])
    # Where a key belongs was found by a look at the whole partition.
    own, others = (one.of_partition(place[0]) for one in (before, now))
    return own.keys() == others.keys() and all(
        one.is_same(others[number]) for number, one in own.items()
    )
