"""Searching the bitmap indexes of many files at once: which of them hold none of some keys.

They are read whole, many in one, and checked; those that may hold a key are asked as usual.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from alcid.bundle.blocks import BLOCK, damaged_block, stored, unseal
from alcid.bundle.coverage import Coverage
from alcid.bundle.directory import Integers
from alcid.bundle.filters import Filters
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.ranges import coalesce
from alcid.formats.source import Range, ReadMany, read_each

__all__ = ["lacking"]

SMALL = 16 << 10
"""Bytes of an index that is read whole; asking it would read about as much."""
_LARGEST = 4 << 20  # bytes that are read in one
_TOGETHER = 64 << 20  # bytes that are in memory at a time
_CRC = 4


def lacking(
    coverage: Coverage,
    files: Integers,
    search: BitmapSearch,
    read_many: ReadMany = read_each,
    *,
    gap: int = 0,
) -> npt.NDArray[np.bool_]:
    """Which of some files have a bitmap index that holds none of the keys.

    False where that is not known: there is none, or it is large or damaged, or of a version that is
    not known.

    Args:
        coverage: Where the indexes are.
        files: The files to ask, by their places in the listing.
        search: The keys.
        read_many: How to read a round of ranges.
        gap: Indexes that lie so many bytes apart, or nearer, are read in one.
    """
    found = np.zeros(len(files), np.bool_)
    payloads = Filters.of(coverage, files)
    payloads = payloads.take((payloads.lengths > 0) & (payloads.lengths <= SMALL))
    sizes = stored(payloads.lengths)
    for number, series in payloads.series.items():
        here = np.flatnonzero(payloads.bundles == number)
        here = here[np.argsort(payloads.starts[here])]
        rounds = (np.cumsum(sizes[here]) - sizes[here]) // _TOGETHER
        for one in range(int(rounds.max(initial=-1)) + 1):
            some = here[rounds == one]
            starts = payloads.starts[some]
            begins, ends = coalesce(starts, sizes[some], gap, _LARGEST)
            ranges = [
                Range(series.source, begin, end - begin)
                for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
            ]
            parts = read_many(ranges)
            part_of = np.searchsorted(begins, starts, "right") - 1
            within = starts - begins[part_of]
            found[payloads.places[some]] = [
                _is_in_vain(search, parts[part][start : start + size], size)
                for part, start, size in zip(
                    part_of.tolist(), within.tolist(), sizes[some].tolist(), strict=True
                )
            ]
    return found


def _is_in_vain(search: BitmapSearch, data: bytes, size: int) -> bool:
    """Whether an index in its blocks is whole and has none of the keys."""
    if len(data) != size or damaged_block(memoryview(data)) is not None:
        return False
    payload = data[:-_CRC] if size <= BLOCK else unseal(memoryview(data))
    return search.is_in_vain(payload, is_checked=True)
