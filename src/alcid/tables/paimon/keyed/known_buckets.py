"""Which bucket a key is in: by its hash alone, or as the hash indexes of its partition say."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from alcid.formats.buckets.known_hashes import UNKNOWN, KnownHashes
from alcid.tables.paimon.keyed.bucket import Buckets
from alcid.tables.paimon.keyed.bucket_vectors import read_hashes
from alcid.tables.paimon.keyed.changes import KeyedTable

__all__ = ["NEW_KEY", "KnownBuckets"]

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
