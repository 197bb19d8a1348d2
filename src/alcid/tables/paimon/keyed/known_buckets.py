"""Which bucket a key is in: by its hash alone, or as the hash indexes of its partition say."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from alcid.formats.buckets.known_hashes import UNKNOWN, KnownHashes
from alcid.formats.hash_index import HashIndex
from alcid.tables.paimon.keyed.bucket import Buckets
from alcid.tables.paimon.keyed.bucket_vectors import read_hashes
from alcid.tables.paimon.keyed.changes import KeyedTable

__all__ = ["NEW_KEY", "KnownBuckets"]

NEW_KEY: Final = UNKNOWN
"""In place of the bucket of a key that is in none."""


class KnownBuckets:
    """The hash indexes of partitions, each read when it is first asked for.

    It holds 6 bytes for each key of the partitions that were asked for.
    """

    def __init__(self, keyed: KeyedTable, buckets: Buckets) -> None:
        """Read nothing yet."""
        self._keyed, self._buckets = keyed, buckets
        self._known: dict[bytes, KnownHashes] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """What was read stays here."""
        return KnownBuckets, (self._keyed, self._buckets)

    def find(self, partition: bytes, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int16]:
        """The bucket of each key of a partition, or `NEW_KEY`."""
        if partition not in self._known:
            self._known[partition] = self._load(partition)
        return self._known[partition].find(hashes)

    def _load(self, partition: bytes) -> KnownHashes:
        indexes: dict[int, HashIndex] = {
            number: read_hashes(self._keyed, bucket)
            for number, bucket in self._buckets.of_partition(partition).items()
            if bucket.hashes
        }
        known = KnownHashes()
        if indexes:
            known.load({number: index.hashes for number, index in indexes.items()})
        return known
