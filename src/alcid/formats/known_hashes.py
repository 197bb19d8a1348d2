"""Which bucket each hash is in: a map of arrays, asked and extended by whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from alcid.formats.keys import changes

__all__ = ["UNKNOWN", "Buckets", "HashArray", "KnownHashes"]

HashArray: TypeAlias = npt.NDArray[np.int32]
Buckets: TypeAlias = npt.NDArray[np.int16]

UNKNOWN: Final = -1
_BUCKET_BITS: Final = 16
_BUCKET: Final = (1 << _BUCKET_BITS) - 1


class KnownHashes:
    """Sorted runs of hashes, each more than twice as long as the one after it.

    So a batch is added without touching most of what is known, and few runs need to be asked. It
    takes 6 bytes a hash.

    >>> known = KnownHashes()
    >>> known.add(np.array([7, -5], np.int32), np.array([0, 1], np.int16))
    >>> known.find(np.array([-5, 3, 7], np.int32)).tolist()
    [1, -1, 0]
    """

    def __init__(self) -> None:
        """Start with none."""
        self._runs: list[tuple[HashArray, Buckets]] = []

    def find(self, hashes: HashArray) -> Buckets:
        """The bucket of each hash, or `UNKNOWN`; faster if they are ascending."""
        found = np.full(len(hashes), UNKNOWN, np.int16)
        left = np.arange(len(hashes))
        for known, buckets in self._runs:
            asked = hashes[left]
            places = np.searchsorted(known, asked)
            places[places == len(known)] = 0
            hit = known[places] == asked
            found[left[hit]] = buckets[places[hit]]
            left = left[~hit]
        return found

    def add(self, hashes: HashArray, buckets: Buckets) -> None:
        """Take hashes that are not known yet, each once."""
        packed = hashes.astype(np.int64) << _BUCKET_BITS | buckets
        while self._runs and len(self._runs[-1][0]) <= 2 * len(packed):
            older, older_buckets = self._runs.pop()
            older_packed = older.astype(np.int64) << _BUCKET_BITS | older_buckets
            packed = np.concatenate((packed, older_packed))
        packed.sort()
        run = (packed >> _BUCKET_BITS).astype(np.int32), (packed & _BUCKET).astype(np.int16)
        self._runs.append(run)

    def load(self, by_bucket: Mapping[int, HashArray]) -> None:
        """Take the hashes of whole buckets; those known keep their bucket.

        A hash should be in one bucket. Of several, the last counts, as in Paimon.
        """
        packed = np.concatenate(
            [
                hashes.astype(np.int64) << _BUCKET_BITS | place
                for place, hashes in enumerate(by_bucket.values())
            ]
        )
        packed.sort()
        last = np.ones(len(packed), bool)
        last[:-1] = changes(packed >> _BUCKET_BITS)[1:]
        packed = packed[last]
        hashes = (packed >> _BUCKET_BITS).astype(np.int32)
        buckets = np.array(list(by_bucket), np.int16)[packed & _BUCKET]
        fresh = self.find(hashes) == UNKNOWN
        self.add(hashes[fresh], buckets[fresh])
