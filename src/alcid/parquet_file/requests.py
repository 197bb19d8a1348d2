"""Ranged reads of several files at once, coalesced and counted; see `alcid.formats.ranges`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.formats.ranges import base_addresses, coalesce
from alcid.formats.source import Range, ReadMany, Source, read_each
from alcid.parquet_file.report import ReadReport

__all__ = ["Coalescing", "Fetched", "RangeReader", "read_counted"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coalescing:
    """When ranges are read in one request.

    The defaults are for local files, where a request costs no more than reading 16 KiB. Over a
    network it costs as much as a MiB or more: `Coalescing(gap=storage.gap)`.
    """

    gap: int = 16 << 10
    """Ranges that lie so many bytes apart, or nearer, are read together with what is between."""
    largest: int = 16 << 20
    """Ranges are not merged beyond this; a single one may be longer."""


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
        read_ranges: ReadMany = read_each,
    ) -> None:
        """Read of `sources` by `read_ranges`."""
        self._sources, self._how, self._report = sources, how, report
        self._read_ranges = read_ranges
        self.bases: Integers = base_addresses((source.size for source in sources), how.gap)

    def fetch(self, starts: Integers, lengths: Integers) -> Fetched:
        """Read these ranges in one round; the caller has checked that each lies in its source."""
        begins, ends = coalesce(starts, lengths, self._how.gap, self._how.largest)
        files = np.searchsorted(self.bases, begins, side="right") - 1
        ranges = [
            Range(self._sources[file], offset, length)
            for file, offset, length in zip(
                files.tolist(),
                (begins - self.bases[files]).tolist(),
                (ends - begins).tolist(),
                strict=True,
            )
        ]
        return Fetched(begins, read_counted(ranges, self._report, self._read_ranges))

    def place(self, address: int) -> tuple[str, int]:
        """The file and the offset of an address, for errors."""
        file = int(np.searchsorted(self.bases, address, side="right")) - 1
        return self._sources[file].name, address - int(self.bases[file])


def read_counted(ranges: Sequence[Range], report: ReadReport, read_ranges: ReadMany) -> list[bytes]:
    """Read ranges in one round; each is counted, and of the length that was asked for."""
    if not ranges:
        return []
    report.requests += len(ranges)
    report.bytes_read += sum(length for _, _, length in ranges)
    parts = list(read_ranges(ranges))
    for (source, offset, length), part in zip(ranges, parts, strict=True):
        if len(part) != length:
            raise FormatError(
                "short read", file=source.name, offset=offset, found=len(part), expected=length
            )
    return parts
