"""Which bucket owns a key: the hash indexes of partitions, looked up with bounded memory.

The hash index of a partition is cut into ranges of hashes, so many that each takes at most
`hash_bytes`. One range at a time is in memory, or several if together they take no more:

    hashes        -2^31 ............ 0 ............ 2^31 - 1
    ranges        |    0    |    1    |    2    |    3    |
    bucket 0           ***       *         ****      **        in each range, the hashes of every
    bucket 1         *      **        *         ***            bucket that are in it

Files are per bucket and in no order, so a range reads all files of its partition, and the whole
look-up as many bytes as there are ranges times the size of the index. On Spark rows are therefore
shuffled by range before they are looked up, unless all hash indexes of the table fit `hash_bytes`:

| keys of the partition | index  | ranges | bytes read | memory of a task | if it is loaded whole |
|-----------------------|--------|--------|------------|------------------|------------------------|
| 10 million            | 40 MB  | 1      | 40 MB      | 120 MB           | 60 MB                  |
| 100 million           | 400 MB | 6      | 2.4 GB     | 200 MB           | 600 MB                 |
| 1 billion             | 4 GB   | 60     | 240 GB     | 200 MB           | 6 GB in each task      |

To read 4 GB takes a task some seconds, and all ranges are read at the same time. The alternative
is a join: each file is read once, and its hashes are shuffled. That is 4 GB read and 4 GB shuffled,
which would be less from a billion keys on. But the join cannot know which partitions the rows
belong to: of a table of a thousand days it would read and shuffle all of them, where the look-up
reads those that rows are of.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from alcid._arrays import Int16Array, Int32Array, Int64Array, split_by
from alcid.formats.buckets.assigner import UNKNOWN, KnownHashes
from alcid.formats.hash_index import read_hashes_between
from alcid.storage.threads import wait_for_each
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, KeyedTable, index_file_path

NEW_KEY: Final = UNKNOWN
"""Stands for the bucket of a key that is in none yet."""

_HASHES: Final = 1 << 32
_LEAST: Final = -(1 << 31)


class HashIndexes:
    """The hash indexes of partitions, which say which bucket owns a key; loaded at first use."""

    def __init__(self, keyed: KeyedTable, buckets: Buckets) -> None:
        """Take the table and its buckets."""
        self._keyed, self._buckets = keyed, buckets
        self._sizes = {partition: _size(own) for partition, own in buckets.partitions.items()}
        counts = [self._count(size) for size in self._sizes.values()]
        self._first = dict(zip(self._sizes, np.cumsum([0, *counts]).tolist(), strict=False))
        self.ranges = sum(counts)
        """How many ranges there are in all partitions."""
        self._loaded: dict[tuple[bytes, int], _RangeHashes] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without what is loaded."""
        return HashIndexes, (self._keyed, self._buckets)

    @property
    def fits(self) -> bool:
        """Whether one task may load all of them."""
        return sum(self._sizes.values()) <= self._keyed.memory.hash_bytes

    def range_numbers(self, partition: bytes, hashes: Int32Array) -> Int64Array:
        """The ranges of keys, numbered through all partitions; 0 where none has a hash index."""
        first = self._first.get(partition, 0)
        numbers: Int64Array = first + self._ranges_of(
            hashes, self._count(self._sizes.get(partition, 0))
        )
        return numbers

    def find(self, partition: bytes, hashes: Int32Array) -> Int16Array:
        """The bucket of each key of a partition, or `NEW_KEY`."""
        buckets = np.full(len(hashes), NEW_KEY, np.int16)
        size = self._sizes.get(partition, 0)
        if not size or not len(hashes):
            return buckets
        count = self._count(size)
        if count == 1:
            return self._load(partition, 0, count).find(hashes)
        numbers = self._ranges_of(hashes, count)
        order = np.argsort(numbers, kind="stable")
        for rows in split_by(order, numbers[order]):
            loaded = self._load(partition, int(numbers[rows[0]]), count)
            buckets[rows] = loaded.find(hashes[rows])
        return buckets

    def _count(self, size: int) -> int:
        """How many ranges a hash index of so many bytes has."""
        return max(-(-size // self._keyed.memory.hash_bytes), 1)

    def _ranges_of(self, hashes: Int32Array, count: int) -> Int64Array:
        return (hashes.astype(np.int64) - _LEAST) * count // _HASHES

    def _load(self, partition: bytes, number: int, count: int) -> _RangeHashes:
        """A range of a partition; others are forgotten, the oldest first, where it needs room."""
        key = partition, number
        if key not in self._loaded:
            size = self._sizes[partition] // count
            room = self._keyed.memory.hash_bytes - size
            while self._loaded and sum(hashes.size for hashes in self._loaded.values()) > room:
                del self._loaded[next(iter(self._loaded))]
            self._loaded[key] = self._read(partition, number, count, size)
        return self._loaded[key]

    def _read(self, partition: bytes, number: int, count: int, size: int) -> _RangeHashes:
        buckets = self._buckets.of_partition(partition).values()
        indexed = [bucket for bucket in buckets if bucket.hashes]
        least = _LEAST - (-number * _HASHES // count)  # the first hash whose range it is
        beyond = _LEAST - (-(number + 1) * _HASHES // count)
        hashes = wait_for_each(
            partial(self._read_bucket, least=least, greatest=beyond - 1),
            indexed,
            remote=self._keyed.storage.remote,
        )
        numbers = [bucket.number for bucket in indexed]
        return _RangeHashes(dict(zip(numbers, hashes, strict=True)), size)

    def _read_bucket(self, bucket: Bucket, *, least: int, greatest: int) -> Int32Array:
        parts = []
        for entry in bucket.hashes:
            path = index_file_path(self._keyed, bucket, entry)
            source = self._keyed.storage.source(path, entry.size)
            parts.append(read_hashes_between(source, least, greatest))
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def _size(buckets: Mapping[int, Bucket]) -> int:
    """The bytes of the hash indexes of a partition."""
    return sum(entry.size for bucket in buckets.values() for entry in bucket.hashes)


class _RangeHashes:
    """The hashes of the buckets of a partition, or of a range of them.

    Each bucket is searched, as most upserts have few of the keys. Once the probes are as many as
    there are hashes, one map of all hashes is built.
    """

    def __init__(self, by_bucket: dict[int, Int32Array], size: int) -> None:
        """Take the ascending hashes of each bucket, and the expected bytes of all."""
        self.size = size
        self._by_bucket = by_bucket
        self._probes_left = sum(map(len, by_bucket.values()))
        self._map: KnownHashes | None = None

    def find(self, hashes: Int32Array) -> Int16Array:
        """The bucket of each hash; of several, the last, as in Paimon."""
        self._probes_left -= len(hashes) * len(self._by_bucket)
        if self._probes_left < 0 and self._map is None and self._by_bucket:
            self._map = _map_of(self._by_bucket)
            self._by_bucket = {}
        if self._map is not None:
            return self._map.find(hashes)
        order = np.argsort(hashes)  # sorted probes are much faster
        probes = hashes[order]
        buckets = np.full(len(hashes), NEW_KEY, np.int16)
        for number, own in self._by_bucket.items():
            positions = np.searchsorted(own, probes)
            positions[positions == len(own)] = 0
            if len(own):
                buckets[order[own[positions] == probes]] = number
        return buckets


_CUTS: Final = 16


def _map_of(by_bucket: Mapping[int, Int32Array]) -> KnownHashes:
    """One map of the hashes of all buckets, sorted a part at a time: that needs room besides."""
    count = sum(map(len, by_bucket.values()))
    hashes, buckets, filled = np.empty(count, np.int32), np.empty(count, np.int16), 0
    bounds = [_LEAST + number * _HASHES // _CUTS for number in range(1, _CUTS)]
    cuts = {
        number: [0, *np.searchsorted(own, np.array(bounds, np.int32)).tolist(), len(own)]
        for number, own in by_bucket.items()
    }
    for cut in range(_CUTS):
        part = KnownHashes()
        slices = {number: slice(*own[cut : cut + 2]) for number, own in cuts.items()}
        part.load({number: own[slices[number]] for number, own in by_bucket.items()})
        for run in part.runs:
            end = filled + len(run.hashes)
            hashes[filled:end], buckets[filled:end] = run
            filled = end
    known = KnownHashes()
    known.add(hashes[:filled], buckets[:filled])
    return known
