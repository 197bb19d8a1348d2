"""Ranges of bytes that are read together: few requests for many ranges, none of them too long.

Ranges of several files are merged in one go: every byte of every file has one *address*, as if the
files lay one after the other, further apart than the widest gap that is read along.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["base_addresses", "coalesce"]

Integers = npt.NDArray[np.int64]


def base_addresses(sizes: Iterable[int], gap: int) -> Integers:
    """The address of the first byte of each file, for `coalesce` with this gap.

    >>> base_addresses([100, 30, 5], gap=8).tolist()
    [0, 109, 148]

    Raises:
        OverflowError: The files are longer than any files are.
    """
    bases = [0]
    for size in sizes:
        bases.append(bases[-1] + size + gap + 1)
    return np.array(bases[:-1], np.int64)


def coalesce(
    starts: Integers, lengths: Integers, gap: int, largest: int
) -> tuple[Integers, Integers]:
    """Merge ranges: where the requests begin and where they end, ascending.

    >>> coalesce(np.array([50, 0, 10]), np.array([5, 10, 10]), gap=8, largest=1 << 20)
    (array([ 0, 50]), array([20, 55]))

    Args:
        starts: Of each range, in any order.
        lengths: Of each range.
        gap: Ranges that lie so many bytes apart, or nearer, are merged.
        largest: Ranges are not merged beyond this; a single one may be longer.
    """
    order = np.argsort(starts, kind="stable")
    begins = starts[order]
    ends = np.maximum.accumulate(begins + lengths[order])
    opens = np.ones(len(begins), np.bool_)
    opens[1:] = begins[1:] > ends[:-1] + gap
    # A merged range is cut at every `largest` bytes, at the next range that begins there.
    run_begins = begins[np.maximum.accumulate(np.where(opens, np.arange(len(begins)), 0))]
    part = (begins - run_begins) // largest
    opens[1:] |= (part[1:] != part[:-1]) & (begins[1:] >= ends[:-1])
    closes = np.ones(len(begins), np.bool_)
    closes[:-1] = opens[1:]
    return begins[opens], ends[closes]
