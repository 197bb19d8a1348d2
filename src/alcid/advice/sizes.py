"""From the indexes of sampled files to those of all: how bytes grow with rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["all_bytes", "all_distinct"]

Integers = npt.NDArray[np.int64]

_UNEQUAL = 1.25  # files that differ by less say nothing of how bytes grow
_STEEPEST = 1.5


def all_bytes(rows: Integers, chosen: Integers, sizes: Integers) -> int:
    """The bytes of an index of all files.

    Every file has an index of its own. Bytes go with a power of the rows: the dictionary of a
    bitmap grows more slowly than its rows where values come again, and a bit slice as they do.

    Args:
        rows: Of all files.
        chosen: Those of the sample that have the index.
        sizes: The bytes of their indexes.

    >>> all_bytes(np.array([100, 200, 400]), np.array([0, 2]), np.array([50, 100]))
    220
    """
    own = rows[chosen].astype(np.float64)
    power = 1.0
    if len(own) > 1 and own.min() > 0 and own.max() >= _UNEQUAL * own.min():
        power = float(np.polyfit(np.log(own), np.log(np.maximum(sizes, 1)), 1)[0])
        power = min(max(power, 0.0), _STEEPEST)
    others = np.ones(len(rows), bool)
    others[chosen] = False
    others &= rows > 0
    scale = float(sizes.sum()) / max(float((own**power).sum()), 1.0)
    return int(sizes.sum() + scale * (rows[others].astype(np.float64) ** power).sum())


def all_distinct(each: npt.NDArray[np.float64], together: float, share: float) -> float:
    """How many distinct values all files have.

    Args:
        each: The distinct values of each file of the sample.
        together: Those of all files of the sample.
        share: How much of the rows of the table the sample has.

    >>> all_distinct(np.array([10.0, 10.0]), 20.0, 0.25)  # no value is in two files
    80.0
    >>> all_distinct(np.array([10.0, 10.0]), 10.0, 0.25)
    10.0
    """
    if len(each) < 2 or not together or not each.mean() or not share:
        return together if share >= 1 or not share else together / share
    power = np.log(max(together / each.mean(), 1.0)) / np.log(len(each))
    return float(together * (1.0 / share) ** min(power, 1.0))
