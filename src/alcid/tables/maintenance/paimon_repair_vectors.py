"""Repair of the index files of Paimon buckets: deletion vectors, keys that are live twice, hashes.

| wrong                                  | becomes                                                |
|----------------------------------------|--------------------------------------------------------|
| two vectors of a data file             | one, of the rows of both                               |
| a vector of a file that is not live    | nothing                                                |
| another number of rows than it has     | the same vector with its own number                    |
| an index file without ranges           | as an older snapshot has it; nothing, if none does     |
| a vector that cannot be read           | stays as it is: rows that were deleted must not return |
| a superseded row of a key that is live | a mark in the vector of its file                       |
| a hash index that is damaged, or wrong | another, made from the keys                            |

No data is written, only index files. Vectors that can be read go to new index files. Those that
cannot are left where they are, under the name of their file, so that it can be restored.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from alcid._text import count_text
from alcid.errors import FileGoneError, FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.formats.hash_index import HashIndex
from alcid.storage import Storage
from alcid.tables.engine import Engine
from alcid.tables.maintenance.findings import Finding, FindingKind
from alcid.tables.maintenance.paimon_hash_indexes import has_hash_indexes
from alcid.tables.maintenance.paimon_keys import BucketKeys, check_bucket_keys
from alcid.tables.maintenance.repair import Repaired
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

_NO_ROWS = DeletionVector()
_NO_VECTORS = 1  # bytes of an index file that has nothing but its version


@dataclass(frozen=True, slots=True, eq=False)
class BucketRepair:
    """New index files of a bucket, in place of others; nothing is committed."""

    bucket_id: BucketId
    deleted: tuple[IndexEntry, ...] = ()
    added: tuple[IndexEntry, ...] = ()
    repaired: tuple[Repaired, ...] = ()

    def then(self, other: BucketRepair) -> BucketRepair:
        """This one, and another that was made for the bucket as this one leaves it."""
        return BucketRepair(
            self.bucket_id,
            (*self.deleted, *(entry for entry in other.deleted if entry not in self.added)),
            (*(entry for entry in self.added if entry not in other.deleted), *other.added),
            (*self.repaired, *other.repaired),
        )


@dataclass(slots=True, eq=False)
class _ReadFile:
    """An index file, as far as it can be read."""

    entry: IndexEntry
    path: str
    vectors: list[tuple[DeletionVectorRange, DeletionVector]]
    """Those of live data files."""
    unreadable: list[DeletionVectorRange]
    """Those of live data files that cannot be read, or are of rows that there are not."""
    snapshot_id: int | None = None
    """The snapshot that has its ranges, if its own entry has lost them."""


class VectorRepairer:
    """Repairs the index files of a table with deletion vectors, bucket by bucket."""

    def __init__(self, storage: Storage, options: TableOptions, *, has_key: bool) -> None:
        """Take a table; with a key, or buckets, each bucket has one index file."""
        self._storage, self._options = storage, options
        self._is_single = has_key or options.bucket > 0

    def repair(
        self,
        bucket: Bucket,
        entries: Sequence[IndexEntry],
        wrong: Mapping[str, Sequence[Finding]],
        twice: Collection[str],
    ) -> BucketRepair:
        """Write new index files.

        Args:
            bucket: The bucket.
            entries: Its index files with vectors, those without ranges too.
            wrong: The findings of index files, by their paths.
            twice: Data files with two vectors, by their names.
        """
        files = [
            self._read(bucket, entry) for entry in self._affected(bucket, entries, wrong, twice)
        ]
        # Two vectors of which one cannot be read stay two.
        unreadable = {vector_range.data_file for file in files for vector_range in file.unreadable}
        vectors: dict[str, DeletionVector] = {}
        kept_entries: list[IndexEntry] = []
        for file in files:
            kept = list(file.unreadable)
            for vector_range, vector in file.vectors:
                name = vector_range.data_file
                if name in unreadable:
                    kept.append(vector_range)
                else:
                    vectors[name] = vectors.get(name, _NO_ROWS) | vector
            if kept:
                kept_entries.append(replace(file.entry, rows=len(kept), ranges=tuple(kept)))
        repaired: list[Repaired] = []
        for file in files:
            repaired += self._repaired(file, unreadable, wrong.get(file.path, ()))
        repaired += self._merged(files, vectors, twice)
        if not repaired:
            return BucketRepair(bucket.id)
        deleted = [file.entry for file in files if file.entry not in kept_entries]
        added = [entry for entry in kept_entries if entry not in entries]
        added += self._write(bucket, vectors)
        return BucketRepair(bucket.id, tuple(deleted), tuple(added), tuple(repaired))

    def _affected(
        self,
        bucket: Bucket,
        entries: Sequence[IndexEntry],
        wrong: Mapping[str, Sequence[Finding]],
        twice: Collection[str],
    ) -> Iterator[IndexEntry]:
        for entry in entries:
            if entry.external_path is not None:
                continue
            has_two = any(vector_range.data_file in twice for vector_range in entry.ranges or ())
            if self._is_single or has_two or self._path(bucket, entry) in wrong:
                yield entry

    def _read(self, bucket: Bucket, entry: IndexEntry) -> _ReadFile:
        """Read all that can be read of an index file."""
        rows = {file.file.name: file.file.rows for file in bucket.files}
        ranges, snapshot = entry.ranges, None
        if not ranges and entry.size > _NO_VECTORS:
            ranges, snapshot = self._ranges_before(entry)
        live = [vector_range for vector_range in ranges or () if vector_range.data_file in rows]
        result = _ReadFile(entry, self._path(bucket, entry), [], [], snapshot)
        try:
            with DeletionVectorFile.open(self._storage.source(result.path)) as file:
                for vector_range in live:
                    vector = _read_vector(file, vector_range, rows[vector_range.data_file])
                    if vector is None:
                        result.unreadable.append(vector_range)
                    else:
                        result.vectors.append((vector_range, vector))
        except (FileGoneError, FormatError):
            result.vectors, result.unreadable = [], live
        return result

    def _ranges_before(
        self, entry: IndexEntry
    ) -> tuple[tuple[DeletionVectorRange, ...], int | None]:
        """The ranges of an index file in the last snapshot that has any, and that snapshot."""
        snapshots, seen = TableFolder(self._storage).snapshots, set[str]()
        for number in reversed(snapshots.numbers()):
            try:
                name = snapshots.get(number).index_manifest
                if name is None or name in seen:
                    continue
                seen.add(name)
                path = f"{MANIFEST_FOLDER}/{name}"
                source = self._storage.source(path)
                entries = read_index_manifest(source.read(0, source.size), file=path)
            except (FileGoneError, FormatError):  # it does not have them either
                continue
            for older in entries:
                if older.name == entry.name and older.size == entry.size and older.ranges:
                    return older.ranges, number
        return (), None

    def _repaired(
        self, file: _ReadFile, unreadable: Collection[str], findings: Sequence[Finding]
    ) -> Iterator[Repaired]:
        """How the findings of an index file are repaired."""
        counts = {vector_range.data_file: len(vector) for vector_range, vector in file.vectors}
        live = {*counts, *(vector_range.data_file for vector_range in file.unreadable)}
        for finding in findings:
            name = finding.data_file
            if not file.entry.ranges:
                done = "no vector in use: dropped"
                if file.snapshot_id is not None:
                    done = f"taken as snapshot {file.snapshot_id} has it"
                yield Repaired(finding, done)
            elif not name:  # of the file as such
                if counts.keys() - unreadable or not live:
                    yield Repaired(finding, "written anew")
            elif name not in live:
                yield Repaired(finding, "dropped")
            elif name not in unreadable:
                rows = count_text(counts[name], "row")
                yield Repaired(finding, f"written anew, of {rows}", counts[name])

    def _merged(
        self,
        files: Sequence[_ReadFile],
        vectors: Mapping[str, DeletionVector],
        twice: Collection[str],
    ) -> Iterator[Repaired]:
        for name in twice:
            ranges = (
                (file, vector_range) for file in files for vector_range in file.entry.ranges or ()
            )
            names = [
                file.entry.name for file, vector_range in ranges if vector_range.data_file == name
            ]
            if names and name in vectors:
                rows = count_text(len(vectors[name]), "row")
                problem = f"two vectors, in {' and '.join(names)}"
                finding = Finding(FindingKind.VECTORS_TWICE, name, problem)
                yield Repaired(finding, f"merged to one, of {rows}")

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
    file: DeletionVectorFile, vector_range: DeletionVectorRange, rows: int
) -> DeletionVector | None:
    """A vector whose bytes are whole, however many rows its range says that it has."""
    try:
        vector = file.read(replace(vector_range, cardinality=None))
    except FormatError:
        return None
    return vector if vector.last is None or vector.last < rows else None


def repair_keys(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Buckets,
    chosen: Collection[BucketId],
    indexes: Sequence[IndexEntry],
    broken: Collection[str] = (),
) -> list[BucketRepair]:
    """Write the index files that repair the keys of some buckets.

    These are rows that are live beside another of their key, and hashes that are missing in a hash
    index or in one too many. Different keys of the same hash that are in several buckets stay
    there. A bucket with a file that cannot be read is passed over.

    Args:
        engine: What reads the keys.
        keyed: The table.
        buckets: All of it.
        chosen: Those to repair.
        indexes: The index files of the table, that which was committed last at the end.
        broken: Hash indexes that are to be made again, by their names.
    """
    readable = {
        bucket.id: replace(bucket, hashes=tuple(e for e in bucket.hashes if e.name not in broken))
        for bucket in buckets
    }
    partitions = {
        partition: {number: readable[partition, number] for number in numbers}
        for partition, numbers in buckets.partitions.items()
    }
    wrong = check_bucket_keys(
        engine,
        keyed,
        Buckets(buckets.paths, partitions),
        [readable[bucket_id] for bucket_id in chosen if bucket_id in readable],
        indexes,
    )
    repairs = (_repair_bucket(keyed, keys, buckets[keys.bucket.id]) for keys in wrong)
    return [repair for repair in repairs if repair.repaired]


def _repair_bucket(keyed: KeyedTable, keys: BucketKeys, before: Bucket) -> BucketRepair:
    """Write the vectors, and the hash index, of a bucket anew; `before` has what is broken too."""
    bucket, ownership = keys.bucket, keys.ownership
    deleted: list[IndexEntry] = []
    added: list[IndexEntry] = []
    if keys.twice or keys.elsewhere:
        marked = read_vectors(keyed, bucket)
        for marks in (keys.twice, keys.elsewhere):
            marked |= {name: marked.get(name, _NO_ROWS) | rows for name, rows in marks.items()}
        vectors = write_vectors(keyed, bucket, marked)
        deleted += bucket.vectors
        added += [] if vectors is None else [vectors]
    if len(ownership.added) or len(ownership.dropped):
        hashes = read_hashes(keyed, bucket).hashes
        kept = HashIndex(hashes[~HashIndex(ownership.dropped).contains(hashes)])
        deleted += before.hashes
        if len(kept) or len(ownership.added):
            added.append(write_hashes(keyed, bucket, kept.union(ownership.added)))
    repaired = tuple(_repaired_keys(keys))
    return BucketRepair(bucket.id, tuple(deleted), tuple(added), repaired)


def _repaired_keys(keys: BucketKeys) -> Iterator[Repaired]:
    findings = list(keys.findings())
    counts = [len(rows) for marks in (keys.twice, keys.elsewhere) for rows in marks.values()]
    for finding, count in zip(findings, counts, strict=False):
        yield Repaired(finding, "marked as deleted", count)
    added, dropped = len(keys.ownership.added), len(keys.ownership.dropped)
    if added or dropped:
        details = ", ".join(finding.detail for finding in findings[len(counts) :])
        finding = Finding(FindingKind.KEY_HASHES, keys.bucket.folder, details)
        done = f"{added:,} put in, {dropped:,} taken out"
        yield Repaired(finding, done, added + dropped)


def is_unchanged(keyed: KeyedTable, bucket_id: BucketId, before: Buckets, now: Buckets) -> bool:
    """Whether nobody has changed a bucket since a repair of it was made."""
    if not has_hash_indexes(keyed.schema, keyed.options):
        return before[bucket_id].is_same(now[bucket_id])
    # Which bucket owns a key depends on the whole partition.
    own, others = (state.of_partition(bucket_id[0]) for state in (before, now))
    return own.keys() == others.keys() and all(
        bucket.is_same(others[number]) for number, bucket in own.items()
    )
