"""Bloom filters of some files, in columns: where each is, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.bundle.coverage import Coverage
from alcid.bundle.directory import HEAD, Integers
from alcid.bundle.series import Series

__all__ = ["MOST_FUNCTIONS", "Filters"]

MOST_FUNCTIONS = 64
"""Filters with more hash functions are rare, and asked one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Filters:
    """The filters."""

    series: dict[int, Series]
    """By the number of their bundle."""
    places: Integers
    """The place of each among the files that are asked."""
    bundles: Integers
    entries: Integers
    starts: Integers
    """Where each begins in its bundle."""
    lengths: Integers
    functions: Integers

    @property
    def usual(self) -> npt.NDArray[np.bool_]:
        """Those that hold some bits, and have a number of hash functions that can be."""
        lengths, functions = self.lengths, self.functions
        usual: npt.NDArray[np.bool_] = (lengths > HEAD) & (lengths < 1 << 28)
        return usual & (functions > 0) & (functions <= MOST_FUNCTIONS)

    def take(self, chosen: npt.NDArray[np.bool_]) -> Filters:
        """Some of them."""
        return Filters(
            self.series,
            self.places[chosen],
            self.bundles[chosen],
            self.entries[chosen],
            self.starts[chosen],
            self.lengths[chosen],
            self.functions[chosen],
        )

    @classmethod
    def of(cls, coverage: Coverage, files: Integers) -> Filters:
        """Those that some of the files have."""
        bundles, entries = coverage.bundles[files], coverage.entries[files]
        numbers = np.unique(bundles[bundles >= 0]).tolist()
        series = {number: one for number in numbers if (one := coverage.series[number]) is not None}
        starts, lengths, functions = np.zeros((3, len(files)), np.int64)
        present = np.zeros(len(files), np.bool_)
        for number, one in series.items():
            here = bundles == number
            chosen, directory = entries[here], one.directory
            present |= here
            starts[here] = one.start + directory.starts[chosen]
            lengths[here] = directory.lengths[chosen]
            functions[here] = np.ascontiguousarray(directory.heads[chosen]).view(">i4")[:, 0]
        every = cls(series, np.arange(len(files)), bundles, entries, starts, lengths, functions)
        return every.take(present)
