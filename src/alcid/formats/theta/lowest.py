"""The lowest hashes of all, and those of sketches that are united.

Which of the hashes that arrive are the lowest does not depend on their order, nor on who met them:
sketches of parts, united, keep what one sketch of the whole would keep.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from alcid.formats.same_length import Hashes
from alcid.formats.theta.compact import MAX_THETA, CompactTheta

__all__ = ["NOMINAL_ENTRIES", "lowest_hashes", "unite"]

NOMINAL_ENTRIES = 4096
"""How many hashes a sketch aims to keep, in Iceberg."""

_FIRST_BLOCK, _BLOCK = 1 << 14, 1 << 16


def lowest_hashes(parts: Iterable[Hashes], nominal_entries: int = NOMINAL_ENTRIES) -> CompactTheta:
    """The k lowest distinct hashes of all parts; theta is the next one, if there is any.

    >>> parts = np.array([9, 5, 9], np.uint64), np.array([7, 5, 8, 0], np.uint64)
    >>> kept = lowest_hashes(parts, nominal_entries=2)
    >>> kept.hashes.tolist(), kept.theta
    ([5, 7], 8)
    """
    kept = CompactTheta(MAX_THETA, np.empty(0, np.uint64))
    size = _FIRST_BLOCK  # small at first, while theta is high: few of the others are below it
    for hashes in parts:
        start = 0
        while start < len(hashes):
            block = hashes[start : start + size]
            below = block[block < np.uint64(kept.theta)]
            if len(below):
                kept = unite(kept, CompactTheta(kept.theta, below), nominal_entries)
            start, size = start + size, _BLOCK
    return kept


def unite(
    first: CompactTheta, second: CompactTheta, nominal_entries: int = NOMINAL_ENTRIES
) -> CompactTheta:
    """All hashes below the lower theta, in whatever order; if there are more than k, the k lowest.

    Theta is then the lowest hash that is left out.
    """
    theta = min(first.theta, second.theta)
    hashes = np.sort(np.concatenate((first.hashes, second.hashes)))
    hashes = hashes[: np.searchsorted(hashes, np.uint64(theta))]
    hashes = hashes[np.diff(hashes, prepend=np.uint64(0)) > 0]
    if len(hashes) > nominal_entries:
        theta, hashes = int(hashes[nominal_entries]), hashes[:nominal_entries]
    return CompactTheta(theta, hashes)
