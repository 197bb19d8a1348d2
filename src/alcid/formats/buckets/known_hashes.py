"""Which bucket each hash is in: a map of arrays, asked and extended by whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from alcid.formats.arrays import changes

__all__ = ["UNKNOWN", "Buckets", "HashArray", "KnownHashes"]

HashArray: TypeAlias = npt.NDArray[np.int32]
Buckets: TypeAlias = npt.NDArray[np.int16]

UNKNOWN: Final = -1
_PLACE_BITS: Final = 16
_RATIO: Final = 4  # of more, a batch is merged into more; of less, more runs are asked


class _Run(NamedTuple):
    """Hashes, ascending, and their buckets."""

    hashes: HashArray
    buckets: Buckets

    def merge(self, other: _Run) -> _Run:
        """The hashes of both, none of which both have."""
        places = np.searchsorted(self.hashes, other.hashes) + np.arange(len(other.hashes))
        is_own = np.ones(len(self.hashes) + len(other.hashes), bool)
        is_own[places] = False
        hashes, buckets = np.empty(len(is_own), np.int32), np.empty(len(is_own), np.int16)
        hashes[is_own], hashes[places] = self.hashes, other.hashes
        buckets[is_own], buckets[places] = self.buckets, other.buckets
        return _Run(hashes, buckets)


class KnownHashes:
    """Sorted runs of hashes, each more than four times as long as the next.

    So a batch is added without touching most of what is known, and few runs need to be asked. It
    takes 6 bytes a hash.

    >>> known = KnownHashes()
    >>> known.add(np.array([-5, 7], np.int32), np.array([0, 1], np.int16))
    >>> known.find(np.array([-5, 3, 7], np.int32)).tolist()
    [0, -1, 1]
    """

    def __init__(self) -> None:
        """Start with none."""
        self._runs: list[_Run] = []

    def find(self, hashes: HashArray) -> Buckets:
        """The bucket of each hash, or `UNKNOWN`; faster if they are ascending."""
        found = np.full(len(hashes), UNKNOWN, np.int16)
        left = np.arange(len(hashes))
        for run in self._runs:
            asked = hashes[left]
            places = np.searchsorted(run.hashes, asked)
            places[places == len(run.hashes)] = 0
            hit = run.hashes[places] == asked
            found[left[hit]] = run.buckets[places[hit]]
            left = left[~hit]
        return found

    def add(self, hashes: HashArray, buckets: Buckets) -> None:
        """Take hashes that are not known yet, ascending and each once."""
        if not len(hashes):
            return
        run = _Run(hashes, buckets)
        while self._runs and len(self._runs[-1].hashes) <= _RATIO * len(run.hashes):
            run = self._runs.pop().merge(run)
        self._runs.append(run)

    def load(self, by_bucket: Mapping[int, HashArray]) -> int:
        """Start with the hashes of whole buckets.

        A hash should be in one bucket. Of several, the last counts, as in Paimon; how many there
        are is returned.
        """
        places = enumerate(by_bucket.values())
        packed = np.concatenate(
            [hashes.astype(np.int64) << _PLACE_BITS | place for place, hashes in places]
        )
        packed.sort()
        hashes = (packed >> _PLACE_BITS).astype(np.int32)
        last = np.append(changes(hashes)[1:], True)[: len(hashes)]
        buckets = np.array(list(by_bucket), np.int16)[packed & (1 << _PLACE_BITS) - 1]
        self.add(hashes[last], buckets[last])
        return len(hashes) - int(last.sum())
