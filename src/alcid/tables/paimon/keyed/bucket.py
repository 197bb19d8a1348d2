"""A bucket of a table with a primary key, as one snapshot has it.

    level 0    files as they were written, which may overlap; the newest of them last
    level 1
    ...        each level one sorted run, of files whose keys do not overlap
    top level  the oldest rows

New files go to level 0 and are then lifted to the level below the lowest that is not empty. A lower
level is newer. Of the rows of a key one is live, the others are marked in deletion vectors.

What is to become of a bucket: files that a task has written, and nobody has committed yet.

The deletion vectors of a bucket, and the hashes of its keys: one index file of each kind.

Which bucket a key is in: by its hash alone, or as the hash indexes of its partition say.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.formats.buckets.assigner import UNKNOWN, KnownHashes
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile
from alcid.formats.hash_index import HashIndex
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile, place_files
from alcid.tables.paimon.deletion_vectors import index_path
from alcid.tables.paimon.metadata.manifest import ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_folder import Paths
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, HASH, IndexEntry, TableState
from alcid.tables.paimon.write.new_files import WrittenData
from alcid.tables.parquet_writer import Encoding

__all__ = [
    "NEW_KEY",
    "Bucket",
    "BucketChange",
    "Buckets",
    "KeyedTable",
    "KnownBuckets",
    "Place",
    "Settlement",
    "buckets_of",
    "index_file_path",
    "read_hashes",
    "read_vectors",
    "write_hashes",
    "write_vectors",
]

Place: TypeAlias = tuple[bytes, int]
"""A partition, and the number of a bucket in it."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is in a bucket."""

    partition: bytes
    number: int
    folder: str
    """Where its files lie, with a `/` at its end."""
    files: tuple[PlacedFile, ...] = ()
    """The live ones, in the order in which they were added."""
    vectors: tuple[IndexEntry, ...] = ()
    """Index files with deletion vectors; one, or none."""
    hashes: tuple[IndexEntry, ...] = ()
    """Index files with the hashes of its keys; one, or none."""

    @property
    def place(self) -> Place:
        """What tells it from other buckets."""
        return self.partition, self.number

    @property
    def level_zero(self) -> tuple[PlacedFile, ...]:
        """The files that no compaction has taken in yet."""
        return tuple(one for one in self.files if not one.file.level)

    @property
    def sorted_files(self) -> tuple[PlacedFile, ...]:
        """Those above level 0."""
        return tuple(one for one in self.files if one.file.level)

    @property
    def next_sequence(self) -> int:
        """The least sequence number above those of all its rows."""
        return max((one.file.max_sequence + 1 for one in self.files), default=0)

    def free_level(self, num_levels: int) -> int:
        """The level for a new run: the top one, or that below all runs; 0 if there is none.

        >>> Bucket(b"", 0, "bucket-0/").free_level(6)
        5
        """
        return min((one.file.level for one in self.sorted_files), default=num_levels) - 1

    def index_path(self, entry: IndexEntry, *, beside_data: bool) -> str:
        """Where an index file of the bucket lies."""
        return index_path(entry, self.folder, beside_data=beside_data)

    def is_same(self, other: Bucket, *, besides: Iterable[PlacedFile] = ()) -> bool:
        """Whether another has the same files, vectors and hashes, and those `besides`."""
        expected = {one.entry.identity for one in (*self.files, *besides)}
        return (
            {one.entry.identity for one in other.files} == expected
            and {one.name for one in self.vectors} == {one.name for one in other.vectors}
            and {one.name for one in self.hashes} == {one.name for one in other.hashes}
        )


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The buckets of a table; one that is not there yet is empty."""

    paths: Paths
    partitions: Mapping[bytes, Mapping[int, Bucket]] = field(default_factory=dict)

    def __getitem__(self, place: Place) -> Bucket:
        found = self.of_partition(place[0]).get(place[1])
        return Bucket(*place, self.paths.bucket(*place)) if found is None else found

    def __iter__(self) -> Iterator[Bucket]:
        for buckets in self.partitions.values():
            yield from buckets.values()

    def of_partition(self, partition: bytes) -> Mapping[int, Bucket]:
        """Those of a partition that are there, by their numbers, ascending."""
        return self.partitions.get(partition, {})


def buckets_of(state: TableState, paths: Paths) -> Buckets:
    """The buckets of a table in a state."""
    files: dict[Place, list[ManifestEntry]] = {}
    for entry in state.entries:
        files.setdefault((entry.partition, entry.bucket), []).append(entry)
    indexes: dict[Place, list[IndexEntry]] = {}
    for index in state.indexes:
        indexes.setdefault((index.partition, index.bucket), []).append(index)
    places = sorted(files.keys() | indexes.keys())
    paths.learn(partition for partition, _ in places)
    found: dict[bytes, dict[int, Bucket]] = {}
    for place in places:
        of_place = indexes.get(place, ())
        found.setdefault(place[0], {})[place[1]] = Bucket(
            *place,
            paths.bucket(*place),
            tuple(place_files(files.get(place, ()), paths)),
            tuple(one for one in of_place if one.index_type == DELETION_VECTORS and one.ranges),
            tuple(one for one in of_place if one.index_type == HASH),
        )
    return Buckets(paths, found)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedTable:
    """What work on buckets needs to know of their table; it pickles."""

    storage: Storage
    schema: TableSchema
    """That new files are written with."""
    schemas: Mapping[int, TableSchema]
    """Those of the files that are there, by their ids."""
    options: TableOptions
    specs: tuple[IndexSpec, ...]
    """The indexes of new files."""
    encoding: Encoding


@dataclass(frozen=True, slots=True, eq=False)
class Settlement:
    """What a compaction makes of a bucket: level 0 is lifted, older rows are marked.

    Not one row of level 0 stays behind, see `alcid.tables.paimon.keyed.level_zero`.
    """

    base: Bucket
    """The bucket that it was made for. Files of it that are not in `removed` stay."""
    removed: tuple[PlacedFile, ...] = ()
    added: tuple[PlacedFile, ...] = ()
    """Files that come: the same ones on another level, or new ones."""
    vectors: IndexEntry | None = None
    """The new index file of all deletion vectors of the bucket; None: there are none."""
    written: tuple[str, ...] = ()
    """Paths of what was written for it, to be removed if it does not come to a commit."""
    marked: int = 0
    """Rows that are not live any more."""


@dataclass(frozen=True, slots=True, eq=False)
class BucketChange:
    """What an upsert makes of a bucket."""

    base: Bucket
    """The bucket that it was made for."""
    upserts: tuple[WrittenData, ...] = ()
    """Files of rows that are live, one sorted run; on level 0."""
    deletes: tuple[WrittenData, ...] = ()
    """Files of rows that delete, apart from the others: so those need not be written again."""
    hashes: IndexEntry | None = None
    """The new hash index; None: no key is new."""
    settlement: Settlement | None = None
    """What the compaction is to do. None: it has to be worked out when it comes to it."""
    written: tuple[str, ...] = ()
    """Paths of all that was written, the settlement's included."""


def index_file_path(keyed: KeyedTable, bucket: Bucket, entry: IndexEntry) -> str:
    """Where an index file of a bucket lies, below the folder of the table."""
    return bucket.index_path(entry, beside_data=keyed.options.index_file_in_data_file_dir)


def read_vectors(keyed: KeyedTable, bucket: Bucket) -> dict[str, DeletionVector]:
    """The vectors of live files, by the names of these.

    Raises:
        FormatError: One is damaged, or of rows that its file does not have, or a file has two.
    """
    rows = {one.file.name: one.file.rows for one in bucket.files}
    found: dict[str, DeletionVector] = {}
    for entry in bucket.vectors:
        ranges = [one for one in entry.ranges or () if one.data_file in rows]
        if not ranges:
            continue
        path = index_file_path(keyed, bucket, entry)
        with DeletionVectorFile.open(keyed.storage.source(path, entry.size)) as opened:
            vectors = opened.read_all(ranges)
        for name, vector in vectors.items():
            if name in found:
                raise FormatError(f"two deletion vectors of {name}", file=path)
            if vector.last is not None and vector.last >= rows[name]:
                raise FormatError(
                    f"deleted row of {name}",
                    file=path,
                    found=vector.last,
                    expected=f"below {rows[name]}",
                )
            found[name] = vector
    return found


def write_vectors(
    keyed: KeyedTable, bucket: Bucket, vectors: Mapping[str, DeletionVector]
) -> IndexEntry | None:
    """Write all vectors of a bucket as one file; None if there is none: no file is written then."""
    wide = DeletionVector(bits=64 if keyed.options.bitmap64 else None)
    kept = {name: vector | wide for name, vector in vectors.items() if vector}
    if not kept:
        return None
    written = DeletionVectorFile.write(kept)
    entry = IndexEntry(
        *bucket.place,
        DELETION_VECTORS,
        _new_name(),
        len(written.data),
        len(kept),
        written.ranges,
    )
    keyed.storage.put(index_file_path(keyed, bucket, entry), written.data)
    return entry


def read_hashes(keyed: KeyedTable, bucket: Bucket) -> HashIndex:
    """The hashes of all keys of a bucket."""
    known = HashIndex()
    for entry in bucket.hashes:
        source = keyed.storage.source(index_file_path(keyed, bucket, entry), entry.size)
        known |= HashIndex.from_bytes(source.read(0, source.size), name=source.name)
    return known


def write_hashes(keyed: KeyedTable, bucket: Bucket, hashes: HashIndex) -> IndexEntry:
    """Write the hashes of all keys of a bucket."""
    data = hashes.to_bytes()
    entry = IndexEntry(*bucket.place, HASH, _new_name(), len(data), len(hashes))
    keyed.storage.put(index_file_path(keyed, bucket, entry), data)
    return entry


def _new_name() -> str:
    return f"index-{uuid.uuid4()}-0"


NEW_KEY: Final = UNKNOWN
"""In place of the bucket of a key that is in none."""


class KnownBuckets:
    """The hash indexes of partitions, each read when it is first asked for.

    It holds 4 to 6 bytes for each key of the partitions that were asked for.
    """

    def __init__(self, keyed: KeyedTable, buckets: Buckets) -> None:
        """Read nothing yet."""
        self._keyed, self._buckets = keyed, buckets
        self._known: dict[bytes, _Partition] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """What was read stays here."""
        return KnownBuckets, (self._keyed, self._buckets)

    def find(self, partition: bytes, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int16]:
        """The bucket of each key of a partition, or `NEW_KEY`."""
        if partition not in self._known:
            self._known[partition] = self._load(partition)
        return self._known[partition].find(hashes)

    def _load(self, partition: bytes) -> _Partition:
        return _Partition(
            {
                number: read_hashes(self._keyed, bucket).hashes
                for number, bucket in self._buckets.of_partition(partition).items()
                if bucket.hashes
            }
        )


class _Partition:
    """The hashes of the buckets of a partition.

    Every bucket is asked, as few keys of many are mostly wanted; once that has come to as many
    questions as there are hashes, one map is made of them all.
    """

    def __init__(self, by_bucket: dict[int, npt.NDArray[np.int32]]) -> None:
        """Take the hashes of each bucket, ascending."""
        self._by_bucket = by_bucket
        self._left = sum(map(len, by_bucket.values()))
        self._all: KnownHashes | None = None

    def find(self, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int16]:
        """The bucket of each hash; of several, the last counts, as in Paimon."""
        self._left -= len(hashes) * len(self._by_bucket)
        if self._left < 0 and self._all is None and self._by_bucket:
            every = KnownHashes()
            every.load(self._by_bucket)
            self._all, self._by_bucket = every, {}
        if self._all is not None:
            return self._all.find(hashes)
        order = np.argsort(hashes)  # neighbours are found near each other, and so much faster
        asked = hashes[order]
        found = np.full(len(hashes), NEW_KEY, np.int16)
        for number, known in self._by_bucket.items():
            places = np.searchsorted(known, asked)
            places[places == len(known)] = 0
            if len(known):
                found[order[known[places] == asked]] = number
        return found
