"""Ranged reads of several files at once, coalesced and counted; see `alcid.storage.ranges`.

A source of which some parts are held in memory.

What a read took: for `explain`, and for tests that count.

A file that Arrow reads through Python, of which the bytes are in memory already.

Only for reads in the thread of the caller: a thread of Arrow that lets go of a Python object while
the interpreter ends, ends the process with it.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import FormatError
from alcid.formats.source import (
    Range,
    ReadMany,
    Source,
    read_each,
)
from alcid.storage.ranges import base_addresses, coalesce

__all__ = [
    "Coalescing",
    "Fetched",
    "HeldFile",
    "KeptSource",
    "RangeReader",
    "ReadReport",
    "read_counted",
]


class KeptSource:
    """Passes reads on to another source, unless they lie within a part that is kept.

    >>> from alcid.formats.source import BytesSource
    >>> source = KeptSource(BytesSource(b"abcdef"))
    >>> source.keep(2, 3)
    >>> source.read(3, 2)  # without a read of the other source
    b'de'
    """

    def __init__(self, source: Source) -> None:
        """Keep nothing of `source` yet."""
        self.name, self.size = source.name, source.size
        self.whole = source
        """The source behind it."""
        self._parts: list[tuple[int, bytes]] = []

    def keep(self, offset: int, length: int) -> None:
        """Read a part and keep it, unless it is kept already."""
        if not self.has(offset, length):
            self.hold(offset, self.whole.read(offset, length))

    def hold(self, offset: int, data: bytes) -> None:
        """Keep a part that was read elsewhere."""
        self._parts.append((offset, data))

    def has(self, offset: int, length: int) -> bool:
        """Whether a part is kept."""
        return self._find(offset, length) is not None

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        found = self._find(offset, length)
        return self.whole.read(offset, length) if found is None else found

    def _find(self, offset: int, length: int) -> bytes | None:
        for start, data in self._parts:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        return None


@dataclass(slots=True)
class ReadReport:
    """Filled by the reads that it is given to; several reads add up."""

    requests: int = 0
    """Ranged reads, those of footers too."""
    bytes_read: int = 0
    """The bytes of these reads, with the gaps between pages that were read along."""
    pages: int = 0
    """Data pages that were decoded one by one, over all columns."""
    row_groups: int = 0
    """Row groups that hold a row that was asked for."""
    whole: dict[str, str] = field(default_factory=dict)
    """Columns of which whole row groups were read, and why."""


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

    def __init__(self, begins: Int64Array, parts: Sequence[bytes]) -> None:
        """Hold `parts`, which begin at these addresses."""
        self._begins, self._parts = begins, [memoryview(part) for part in parts]

    def range(self, start: int, length: int) -> memoryview:
        """The bytes of a range that was asked for."""
        place = int(np.searchsorted(self._begins, start, side="right")) - 1
        begin = start - int(self._begins[place])
        return self._parts[place][begin : begin + length]

    def ranges(self, starts: Int64Array, lengths: Int64Array) -> list[memoryview]:
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
        self.bases: Int64Array = base_addresses((source.size for source in sources), how.gap)

    def fetch(self, starts: Int64Array, lengths: Int64Array) -> Fetched:
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


class HeldFile:
    """A file object for Arrow, of which the parts that it wants are held: the column chunks.

    Where a writer is known to have given too small a length, Arrow reads some bytes more than the
    chunk: what is not held is read from the source.
    """

    closed = False

    def __init__(self, source: Source, held: Mapping[int, memoryview], report: ReadReport) -> None:
        """Serve the parts in `held`, by their offsets."""
        self._source, self._held, self._report = source, held, report
        self._offsets = sorted(held)
        self._position = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, or from the end."""
        self._position = offset + (self._source.size if whence == io.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """The offset that is read next."""
        return self._position

    def close(self) -> None:
        """Nothing is open."""

    def read_buffer(self, length: int) -> pa.Buffer:
        """What Arrow calls to read Parquet: bytes of one part, without a copy."""
        return pa.py_buffer(self.read(length))

    def read(self, length: int) -> bytes | memoryview:
        """What Arrow calls to read ORC."""
        begin = self._position
        length = max(0, min(length, self._source.size - begin))
        self._position = begin + length
        place = bisect_right(self._offsets, begin) - 1
        if place >= 0:
            part = self._held[self._offsets[place]][begin - self._offsets[place] :]
            if len(part) >= length:
                return part[:length]
        (data,) = read_counted([Range(self._source, begin, length)], self._report, read_each)
        return data
