"""A bucket of a table with a primary key: its files, deletion vectors and hash index.

    level 0    files as they were written, whose keys may overlap; the newest file last
    level 1
    ...        each level one sorted run, of files whose keys do not overlap
    top level  the oldest rows

New files are written to level 0 and then move to the level below the lowest one that is not empty.
Lower levels are newer. Of the rows of a key one is live; deletion vectors delete the others. Each
bucket has one index file with all of its deletion vectors and, if buckets are dynamic, one with the
hashes of all of its keys.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile
from alcid.formats.hash_index import HashIndex
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile, place_files
from alcid.tables.paimon.deletion_vectors import index_path
from alcid.tables.paimon.keyed.memory import DEFAULT_MEMORY, MemoryBounds
from alcid.tables.paimon.metadata.manifest import BucketId, ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_folder import Paths
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, HASH, IndexEntry, TableState
from alcid.tables.paimon.new_files import WrittenData
from alcid.tables.parquet_writer import Encoding


@dataclass(frozen=True, slots=True)
class Bucket:
    """The files of a bucket at one snapshot."""

    partition: bytes
    number: int
    folder: str
    """The folder of its files, which ends with `/`."""
    files: tuple[PlacedFile, ...] = ()
    """The live data files, in the order in which they were added."""
    vectors: tuple[IndexEntry, ...] = ()
    """Index files with deletion vectors; one, or none."""
    hashes: tuple[IndexEntry, ...] = ()
    """Index files with the hashes of its keys; one, or none."""

    @property
    def id(self) -> BucketId:
        """Its partition and number."""
        return self.partition, self.number

    @property
    def level_zero(self) -> tuple[PlacedFile, ...]:
        """The files that are not compacted yet."""
        return tuple(file for file in self.files if not file.file.level)

    @property
    def sorted_files(self) -> tuple[PlacedFile, ...]:
        """The files above level 0."""
        return tuple(file for file in self.files if file.file.level)

    @property
    def next_sequence(self) -> int:
        """The next sequence number."""
        return max((file.file.max_sequence + 1 for file in self.files), default=0)

    def free_level(self, num_levels: int) -> int:
        """The level for a new run: the top one, or that below all runs; 0 if there is none.

        >>> Bucket(b"", 0, "bucket-0/").free_level(6)
        5
        """
        return min((file.file.level for file in self.sorted_files), default=num_levels) - 1

    def index_path(self, entry: IndexEntry, *, beside_data: bool) -> str:
        """The path of an index file of the bucket."""
        return index_path(entry, self.folder, beside_data=beside_data)

    def is_same(self, other: Bucket, *, besides: Iterable[PlacedFile] = ()) -> bool:
        """Whether another has the same files, vectors and hashes, and the files `besides`."""
        expected = {file.entry.identity for file in (*self.files, *besides)}
        return (
            {file.entry.identity for file in other.files} == expected
            and {entry.name for entry in self.vectors} == {entry.name for entry in other.vectors}
            and {entry.name for entry in self.hashes} == {entry.name for entry in other.hashes}
        )


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The buckets of a table; one that does not exist yet is empty."""

    paths: Paths
    partitions: Mapping[bytes, Mapping[int, Bucket]] = field(default_factory=dict)

    def __getitem__(self, bucket_id: BucketId) -> Bucket:
        partition, number = bucket_id
        bucket = self.of_partition(partition).get(number)
        return bucket or Bucket(partition, number, self.paths.bucket(partition, number))

    def __iter__(self) -> Iterator[Bucket]:
        for buckets in self.partitions.values():
            yield from buckets.values()

    def of_partition(self, partition: bytes) -> Mapping[int, Bucket]:
        """The existing buckets of a partition by number, ascending."""
        return self.partitions.get(partition, {})


def buckets_of(state: TableState, paths: Paths) -> Buckets:
    """The buckets of a table at a snapshot."""
    files: dict[BucketId, list[ManifestEntry]] = {}
    for entry in state.entries:
        files.setdefault(entry.bucket_id, []).append(entry)
    indexes: dict[BucketId, list[IndexEntry]] = {}
    for index in state.indexes:
        indexes.setdefault(index.bucket_id, []).append(index)
    bucket_ids = sorted(files.keys() | indexes.keys())
    paths.learn(partition for partition, _ in bucket_ids)
    partitions: dict[bytes, dict[int, Bucket]] = {}
    for bucket_id in bucket_ids:
        partition, number = bucket_id
        own = indexes.get(bucket_id, ())
        partitions.setdefault(partition, {})[number] = Bucket(
            partition,
            number,
            paths.bucket(partition, number),
            tuple(place_files(files.get(bucket_id, ()), paths)),
            tuple(index for index in own if index.index_type == DELETION_VECTORS and index.ranges),
            tuple(index for index in own if index.index_type == HASH),
        )
    return Buckets(paths, partitions)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedTable:
    """The table that work on buckets is for; it can be pickled."""

    storage: Storage
    schema: TableSchema
    """The schema of new files."""
    schemas: Mapping[int, TableSchema]
    """The schemas of existing files, by id."""
    options: TableOptions
    specs: tuple[IndexSpec, ...]
    """The indexes of new files."""
    encoding: Encoding
    memory: MemoryBounds = DEFAULT_MEMORY


@dataclass(frozen=True, slots=True, eq=False)
class BucketCompaction:
    """The outcome of compacting a bucket, which is not committed yet."""

    base: Bucket
    """The bucket before. Files of it that are not in `removed` stay."""
    removed: tuple[PlacedFile, ...] = ()
    added: tuple[PlacedFile, ...] = ()
    """New files, and removed ones on another level."""
    vectors: IndexEntry | None = None
    """The new index file of all deletion vectors of the bucket; None: there are none."""
    written: tuple[str, ...] = ()
    """Paths of new files, to be deleted if the compaction is not committed."""
    superseded: int = 0
    """Rows that are not live any more."""


@dataclass(frozen=True, slots=True, eq=False)
class BucketChange:
    """What an upsert has written to a bucket, which is not committed yet."""

    base: Bucket
    """The bucket before."""
    upserts: tuple[WrittenData, ...] = ()
    """Files of live rows, one sorted run; on level 0."""
    deletes: tuple[WrittenData, ...] = ()
    """Files of rows that delete: apart from the others, which then need not be rewritten."""
    hashes: IndexEntry | None = None
    """The new hash index; None: no key is new."""
    compaction: BucketCompaction | None = None
    """The compaction to commit after the rows; None: it is prepared at its commit."""
    written: tuple[str, ...] = ()
    """Paths of all new files, those of the compaction included."""


def index_file_path(keyed: KeyedTable, bucket: Bucket, entry: IndexEntry) -> str:
    """The path of an index file of a bucket, relative to the table."""
    return bucket.index_path(entry, beside_data=keyed.options.index_file_in_data_file_dir)


def read_vectors(keyed: KeyedTable, bucket: Bucket) -> dict[str, DeletionVector]:
    """The deletion vectors of live files, by file name.

    Raises:
        FormatError: One is damaged or has rows that its file does not have, or a file has two.
    """
    rows = {file.file.name: file.file.rows for file in bucket.files}
    vectors: dict[str, DeletionVector] = {}
    for entry in bucket.vectors:
        ranges = [vector for vector in entry.ranges or () if vector.data_file in rows]
        if not ranges:
            continue
        path = index_file_path(keyed, bucket, entry)
        with DeletionVectorFile.open(keyed.storage.source(path, entry.size)) as opened:
            of_file = opened.read_all(ranges)
        for name, vector in of_file.items():
            if name in vectors:
                raise FormatError(f"two deletion vectors of {name}", file=path)
            if vector.last is not None and vector.last >= rows[name]:
                raise FormatError(
                    f"deleted row of {name}",
                    file=path,
                    found=vector.last,
                    expected=f"below {rows[name]}",
                )
            vectors[name] = vector
    return vectors


def write_vectors(
    keyed: KeyedTable, bucket: Bucket, vectors: Mapping[str, DeletionVector]
) -> IndexEntry | None:
    """Write all deletion vectors of a bucket as one file; None, and no file, if all are empty."""
    wide = DeletionVector(bits=64 if keyed.options.bitmap64 else None)
    filled = {name: vector | wide for name, vector in vectors.items() if vector}
    if not filled:
        return None
    written = DeletionVectorFile.write(filled)
    entry = IndexEntry(
        *bucket.id,
        DELETION_VECTORS,
        _new_name(),
        len(written.data),
        len(filled),
        written.ranges,
    )
    keyed.storage.put(index_file_path(keyed, bucket, entry), written.data)
    return entry


def read_hashes(keyed: KeyedTable, bucket: Bucket) -> HashIndex:
    """The hashes of all keys of a bucket."""
    hashes = HashIndex()
    for entry in bucket.hashes:
        source = keyed.storage.source(index_file_path(keyed, bucket, entry), entry.size)
        hashes |= HashIndex.from_bytes(source.read(0, source.size), name=source.name)
    return hashes


def write_hashes(keyed: KeyedTable, bucket: Bucket, hashes: HashIndex) -> IndexEntry:
    """Write the hashes of all keys of a bucket."""
    data = hashes.to_bytes()
    entry = IndexEntry(*bucket.id, HASH, _new_name(), len(data), len(hashes))
    keyed.storage.put(index_file_path(keyed, bucket, entry), data)
    return entry


def _new_name() -> str:
    return f"index-{uuid.uuid4()}-0"
