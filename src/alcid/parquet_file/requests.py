"""Ranged reads of several files at once, coalesced.

Every byte of every file has one address: the files are thought of as lying one after the other,
further apart than the widest gap that is read along. So the ranges of all files are sorted and
merged in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.formats.source import Source
from alcid.parquet_file.report import ReadReport

__all__ = ["Coalescing", "Fetched", "RangeReader", "coalesce"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coalescing:
    """When ranges are read in one request.

    The defaults are for local files, where a request costs no more than reading 16 KiB. Over a
    network it costs as much as a MiB or more: `Coalescing(gap=1 << 20)`.
    """

    gap: int = 16 << 10
    """Ranges that lie so many bytes apart, or nearer, are read together with what is between."""
    largest: int = 16 << 20
    """Ranges are not merged beyond this; a single one may be longer."""


def coalesce(starts: Integers, lengths: Integers, how: Coalescing) -> tuple[Integers, Integers]:
    """Merge ranges: where the requests begin and where they end, ascending.

    >>> coalesce(np.array([50, 0, 10]), np.array([5, 10, 10]), Coalescing(gap=8))
    (array([ 0, 50]), array([20, 55]))
    """
    order = np.argsort(starts, kind="stable")
    begins = starts[order]
    ends = np.maximum.accumulate(begins + lengths[order])
    opens = np.ones(len(begins), np.bool_)
    opens[1:] = begins[1:] > ends[:-1] + how.gap
    # A merged range is cut at every `largest` bytes, at the next range that begins there.
    run_begins = begins[np.maximum.accumulate(np.where(opens, np.arange(len(begins)), 0))]
    part = (begins - run_begins) // how.largest
    opens[1:] |= (part[1:] != part[:-1]) & (begins[1:] >= ends[:-1])
    closes = np.ones(len(begins), np.bool_)
    closes[:-1] = opens[1:]
    return begins[opens], ends[closes]


class Fetched:
    """What was read: addresses become bytes."""

    __slots__ = ("_begins", "_parts")

    def __init__(self, begins: Integers, parts: Sequence[bytes]) -> None:
        """Hold `parts`, which begin at these addresses."""
        self._begins, self._parts = begins, [memoryview(part) for part in parts]

    def range(self, start: int, length: int) -> memoryview:
        """The bytes of a range that was asked for."""
        place = int(np.searchsorted(self._begins, start, side="right")) - 1
        begin = start - int(self._begins[place])
        return self._parts[place][begin : begin + length]

    def ranges(self, starts: Integers, lengths: Integers) -> list[memoryview]:
        """The bytes of at least one range; those that touch come in one piece."""
        places = np.searchsorted(self._begins, starts, side="right") - 1
        apart = (starts[1:] != starts[:-1] + lengths[:-1]) | (places[1:] != places[:-1])
        cuts = np.flatnonzero(apart) + 1
        firsts = np.concatenate(([0], cuts))
        lasts = np.concatenate((cuts - 1, [len(starts) - 1]))
        places = places[firsts]
        begins = starts[firsts] - self._begins[places]
        ends = starts[lasts] + lengths[lasts] - self._begins[places]
        return [
            self._parts[place][begin:end]
            for place, begin, end in zip(
                places.tolist(), begins.tolist(), ends.tolist(), strict=True
            )
        ]


class RangeReader:
    """Reads ranges of several sources, given as addresses: `bases[i]` is byte 0 of source i."""

    def __init__(
        self,
        sources: Sequence[Source],
        how: Coalescing,
        report: ReadReport,
        executor: Executor | None = None,
    ) -> None:
        """Read of `sources`; with an executor at the same time, which they must allow."""
        self._sources, self._how, self._report = sources, how, report
        self._executor = executor
        spaced = np.array([source.size + how.gap + 1 for source in sources], np.int64)
        self.bases: Integers = np.cumsum(spaced) - spaced

    def fetch(self, starts: Integers, lengths: Integers) -> Fetched:
        """Read these ranges; the caller has checked that each lies within its source."""
        begins, ends = coalesce(starts, lengths, self._how)
        files = np.searchsorted(self.bases, begins, side="right") - 1
        offsets = (begins - self.bases[files]).tolist()
        sources = [self._sources[file] for file in files.tolist()]
        sizes = (ends - begins).tolist()
        for size in sizes:
            self._report.count(size)
        if self._executor is None or len(sizes) == 1:
            parts = list(map(_read, sources, offsets, sizes))
        else:
            parts = list(self._executor.map(_read, sources, offsets, sizes))
        return Fetched(begins, parts)

    def place(self, address: int) -> tuple[str, int]:
        """The file and the offset of an address, for errors."""
        file = int(np.searchsorted(self.bases, address, side="right")) - 1
        return self._sources[file].name, address - int(self.bases[file])


def _read(source: Source, offset: int, length: int) -> bytes:
    data = source.read(offset, length)
    if len(data) != length:
        raise FormatError(
            "short read", file=source.name, offset=offset, found=len(data), expected=length
        )
    return data
