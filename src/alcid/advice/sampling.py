"""Which files are read for advice: a few whole ones, spread over the listing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["choose_files", "spread"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LEAST = 2
_MOST_BYTES = 256 << 20
_MOST_ROWS = 2_000_000
_MOST_MORE = 8  # files for queries that would find nothing in the sample


def spread(count: int, wanted: int) -> Integers:
    """Places of so many of `count` things, one of each stretch; always the same ones.

    >>> spread(10, 3).tolist()
    [1, 5, 8]
    """
    wanted = min(count, wanted)
    places: Integers = ((np.arange(wanted) + 0.5) * count / max(wanted, 1)).astype(np.int64)
    return places


def choose_files(sizes: Integers, rows: Integers, possible: Sequence[Mask], most: int) -> Integers:
    """The files to read, ascending.

    Files are taken whole: how large an index is depends on all values of its file. Two are taken
    though they are large; further ones as long as all have about 256 MB and two million rows.

    Args:
        sizes: Bytes of all files.
        rows: Rows of all files.
        possible: For each query the files that it may find something in; a file is added for
            those that would look at none of the sample.
        most: How many files at most, before such are added.
    """
    filled = np.flatnonzero(rows > 0)
    if not len(filled):
        return filled
    fitting = min(_MOST_BYTES / sizes[filled].mean(), _MOST_ROWS / rows[filled].mean())
    wanted = max(min(most, int(fitting)), _LEAST)
    chosen = set(filled[spread(len(filled), wanted)].tolist())
    more = 0
    for mask in possible:
        found = filled[mask[filled]]
        if len(found) and more < _MOST_MORE and not chosen.intersection(found.tolist()):
            chosen.add(int(found[len(found) // 2]))
            more += 1
    return np.array(sorted(chosen), np.int64)
