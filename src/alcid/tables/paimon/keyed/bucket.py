"""A bucket of a table with a primary key, as one snapshot has it.

    level 0    files as they were written, which may overlap; the newest of them last
    level 1
    ...        each level one sorted run, of files whose keys do not overlap
    top level  the oldest rows

New files go to level 0 and are then lifted to the level below the lowest that is not empty. A lower
level is newer. Of the rows of a key one is live, the others are marked in deletion vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from alcid.paimon_metadata.index_manifest import DELETION_VECTORS, HASH, IndexEntry
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.paimon_metadata.paths import Paths
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.paimon.data_files import PlacedFile, place_files
from alcid.tables.paimon.vectors import index_path

__all__ = ["Bucket", "Buckets", "Place", "buckets_of"]

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
