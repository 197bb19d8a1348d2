"""Ranged reads: many ranges of many files are merged into few requests, none of them too long.

The one coalescer is `Requests`. To merge ranges of several files in one go, every byte of every
file has an *address*, as if the files lay one after the other, further apart than the widest gap
that is read along. `RangeReader` reads ranges of sources, for the readers of data files;
`ReadRound` splits the requests of a storage into the jobs of its threads. What was read is kept in
a `CachedSource`, of which nothing is read twice.
"""

from __future__ import annotations

import io
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import FormatError
from alcid.formats.source import Range, ReadMany, Source, read_each
from alcid.storage.backend import FileStat


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


@dataclass(slots=True)
class ReadReport:
    """What a read took: for `explain`, and for tests that count; several reads add up."""

    requests: int = 0
    """Ranged reads, those of footers included."""
    bytes_read: int = 0
    """The bytes of these reads, including the gaps between pages that were read along."""
    pages: int = 0
    """Data pages that were decoded one by one, over all columns."""
    row_groups: int = 0
    """Row groups that have a requested row."""
    whole: dict[str, str] = field(default_factory=dict)
    """Columns of which whole row groups were read, and why."""


def base_addresses(sizes: Iterable[int], gap: int) -> Int64Array:
    """The address of each file's first byte, for `coalesce` with this gap.

    >>> base_addresses([100, 30, 5], gap=8).tolist()
    [0, 109, 148]

    Raises:
        OverflowError: The files together are longer than 2**63 bytes.
    """
    bases = [0]
    for size in sizes:
        bases.append(bases[-1] + size + gap + 1)
    return np.array(bases[:-1], np.int64)


def coalesce(
    starts: Int64Array, lengths: Int64Array, gap: int, largest: int
) -> tuple[Int64Array, Int64Array]:
    """Merge ranges into requests: the offsets at which these begin and end, ascending.

    >>> coalesce(np.array([50, 0, 10]), np.array([5, 10, 10]), gap=8, largest=1 << 20)
    (array([ 0, 50]), array([20, 55]))

    Args:
        starts: The first byte of each range, in any order.
        lengths: The bytes of each range.
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


class Requests:
    """Ranges, given by their addresses, merged into requests; empty ranges need none."""

    __slots__ = ("_begins", "files", "lengths", "offsets")

    def __init__(
        self, bases: Int64Array, starts: Int64Array, lengths: Int64Array, how: Coalescing
    ) -> None:
        """Merge ranges of files whose first bytes have the addresses `bases`."""
        filled = lengths > 0
        if not filled.all():
            starts, lengths = starts[filled], lengths[filled]
        self._begins, ends = coalesce(starts, lengths, how.gap, how.largest)
        files = np.searchsorted(bases, self._begins, side="right") - 1
        self.files: list[int] = files.tolist()
        """The number of the file of each request."""
        self.offsets: list[int] = (self._begins - bases[files]).tolist()
        self.lengths: list[int] = (ends - self._begins).tolist()

    def responses(self, parts: Sequence[bytes]) -> Responses:
        """The bytes of the ranges, from those of the requests."""
        return Responses(self._begins, parts)


class Responses:
    """The bytes of requests, in which those of ranges are found by their addresses."""

    __slots__ = ("_begins", "_parts")

    def __init__(self, begins: Int64Array, parts: Sequence[bytes]) -> None:
        """Take `parts`, which begin at these addresses."""
        self._begins, self._parts = begins, parts

    def range(self, start: int, length: int) -> memoryview:
        """The bytes of one requested range."""
        if not length:
            return memoryview(b"")
        part = int(np.searchsorted(self._begins, start, side="right")) - 1
        begin = start - int(self._begins[part])
        return memoryview(self._parts[part])[begin : begin + length]

    def each(self, starts: Int64Array, lengths: Int64Array) -> list[bytes]:
        """The bytes of every range, one by one."""
        if not self._parts:
            return [b""] * len(starts)
        parts = np.searchsorted(self._begins, starts, side="right") - 1
        begins = starts - self._begins[parts]
        ends = begins + lengths
        return [
            self._parts[part][begin:end]
            for part, begin, end in zip(parts.tolist(), begins.tolist(), ends.tolist(), strict=True)
        ]

    def joined(self, starts: Int64Array, lengths: Int64Array) -> list[memoryview]:
        """The bytes of at least one range; those that touch come in one piece."""
        parts = np.searchsorted(self._begins, starts, side="right") - 1
        apart = (starts[1:] != starts[:-1] + lengths[:-1]) | (parts[1:] != parts[:-1])
        cuts = np.flatnonzero(apart) + 1
        firsts = np.concatenate(([0], cuts))
        lasts = np.concatenate((cuts - 1, [len(starts) - 1]))
        parts = parts[firsts]
        begins = starts[firsts] - self._begins[parts]
        ends = starts[lasts] + lengths[lasts] - self._begins[parts]
        return [
            memoryview(self._parts[part])[begin:end]
            for part, begin, end in zip(parts.tolist(), begins.tolist(), ends.tolist(), strict=True)
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
        """Read from `sources` through `read_ranges`."""
        self._sources, self._how, self._report = sources, how, report
        self._read_ranges = read_ranges
        self.bases: Int64Array = base_addresses((source.size for source in sources), how.gap)

    def fetch(self, starts: Int64Array, lengths: Int64Array) -> Responses:
        """Read these ranges in one round; the caller has checked that each lies in its source."""
        requests = Requests(self.bases, starts, lengths, self._how)
        ranges = [
            Range(self._sources[file], offset, length)
            for file, offset, length in zip(
                requests.files, requests.offsets, requests.lengths, strict=True
            )
        ]
        return requests.responses(read_counted(ranges, self._report, self._read_ranges))

    def locate(self, address: int) -> tuple[str, int]:
        """The file and the offset of an address, for errors."""
        file = int(np.searchsorted(self.bases, address, side="right")) - 1
        return self._sources[file].name, address - int(self.bases[file])


def read_counted(ranges: Sequence[Range], report: ReadReport, read_ranges: ReadMany) -> list[bytes]:
    """Read ranges in one round; count them, and check that none is shorter than requested."""
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


class File(NamedTuple):
    """A file of a storage, and the size and version that it is expected to have."""

    path: str
    expected: FileStat


FileRange = tuple[int, int, int]
"""The number of a file, an offset and a length."""


class Job(NamedTuple):
    """What one thread reads: pieces (offset, length) of one file."""

    path: str
    expected: FileStat
    pieces: list[tuple[int, int]]


class ReadRound:
    """Ranges of files that a storage reads together.

    >>> ranges = [(0, 90, 10), (0, 0, 4)]
    >>> plan = ReadRound([File("a", FileStat())], ranges, Coalescing(8, 5), parallel=True)
    >>> [job.pieces for job in plan.jobs]
    [[(0, 4)], [(90, 5)], [(95, 5)]]
    >>> plan.results([[b"0123"], [b"abcde"], [b"fghij"]])
    [b'abcdefghij', b'0123']
    """

    def __init__(
        self,
        files: Sequence[File],
        ranges: Sequence[FileRange],
        how: Coalescing,
        *,
        parallel: bool,
    ) -> None:
        """Plan the jobs: one for each piece if they are to run in parallel, else for each file.

        Raises:
            OverflowError: A range ends where no file does.
        """
        numbers, offsets, self._lengths = np.array(ranges, np.int64).reshape(-1, 3).T
        sizes = np.zeros(len(files), np.int64)
        np.maximum.at(sizes, numbers, offsets + self._lengths)
        bases = base_addresses(sizes.tolist(), how.gap)
        self._starts = bases[numbers] + offsets
        self._requests = requests = Requests(bases, self._starts, self._lengths, how)
        self._counts: list[int] = []
        self.jobs: list[Job] = []
        by_file: dict[int, list[tuple[int, int]]] = {}
        for number, offset, length in zip(
            requests.files, requests.offsets, requests.lengths, strict=True
        ):
            pieces = _split(offset, length, how.largest)
            self._counts.append(len(pieces))
            if parallel:
                path, expected = files[number]
                self.jobs += [Job(path, expected, [piece]) for piece in pieces]
            else:
                by_file.setdefault(number, []).extend(pieces)
        self.jobs += [Job(*files[number], pieces) for number, pieces in by_file.items()]

    def results(self, answers: Iterable[list[bytes]]) -> list[bytes]:
        """The bytes of each range, from those of the jobs."""
        parts = [part for answer in answers for part in answer]
        if len(parts) > len(self._counts):
            ends = accumulate(self._counts)
            parts = [
                b"".join(parts[end - count : end])
                for end, count in zip(ends, self._counts, strict=True)
            ]
        return self._requests.responses(parts).each(self._starts, self._lengths)


def _split(offset: int, length: int, largest: int) -> list[tuple[int, int]]:
    """Offsets and lengths of pieces of one size, each up to `largest` bytes long.

    >>> _split(10, 20, 8)
    [(10, 7), (17, 7), (24, 6)]
    """
    if length <= largest:
        return [(offset, length)]
    step = -(-length // -(-length // largest))
    end = offset + length
    return [(begin, min(step, end - begin)) for begin in range(offset, end, step)]


_Part = tuple[int, bytes | memoryview]
_START = itemgetter(0)


class CachedSource:
    """Passes reads on to another source, unless they lie within a part that is cached.

    >>> from alcid.formats.source import BytesSource
    >>> source = CachedSource(BytesSource(b"abcdef"))
    >>> source.load(2, 3)
    >>> source.read(3, 2)  # without a read of the other source
    b'de'
    """

    def __init__(self, source: Source, parts: Iterable[_Part] = ()) -> None:
        """Cache these parts of `source`, each given by its offset and its bytes."""
        self.name, self.size = source.name, source.size
        self.source = source
        """The source behind it."""
        self._parts: list[_Part] = sorted(parts, key=_START)

    def load(self, offset: int, length: int) -> None:
        """Read a part and cache it, unless it is cached already."""
        if not self.has(offset, length):
            self.add(offset, self.source.read(offset, length))

    def add(self, offset: int, data: bytes | memoryview) -> None:
        """Cache a part that was read elsewhere."""
        insort(self._parts, (offset, data), key=_START)

    def has(self, offset: int, length: int) -> bool:
        """Whether a range is cached."""
        return self.view(offset, length) is not None

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        cached = self.view(offset, length)
        return self.source.read(offset, length) if cached is None else bytes(cached)

    def view(self, offset: int, length: int) -> memoryview | None:
        """The bytes of a range without a copy; None if no part holds all of it."""
        # Parts may overlap, so one that begins earlier may reach further.
        for number in range(bisect_right(self._parts, offset, key=_START) - 1, -1, -1):
            start, data = self._parts[number]
            if offset + length <= start + len(data):
                return memoryview(data)[offset - start : offset - start + length]
        return None


class ArrowFile:
    """A file object through which Arrow reads a cached source: its column chunks, as a rule.

    Where a writer is known to have given too small a length, Arrow reads some bytes more than the
    chunk: what is not cached is read from the source behind it.

    Only for reads in the thread of the caller: a thread of Arrow that releases a Python object
    while the interpreter shuts down ends the process.
    """

    closed = False

    def __init__(self, source: CachedSource, report: ReadReport) -> None:
        """Begin at offset 0."""
        self._source, self._report = source, report
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
        cached = self._source.view(begin, length)
        if cached is not None:
            return cached
        behind = Range(self._source.source, begin, length)
        (data,) = read_counted([behind], self._report, read_each)
        return data
