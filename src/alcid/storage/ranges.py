"""Ranges of bytes that are read together: few requests for many ranges, none of them too long.

Ranges of several files are merged in one go: every byte of every file has one *address*, as if the
files lay one after the other, further apart than the widest gap that is read along.

A round of reads: ranges of many files become jobs, and their answers become ranges again.

What was asked of a storage, and how many bytes went over the line.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from itertools import accumulate
from operator import add, attrgetter, sub
from typing import NamedTuple

import numpy as np

from alcid._arrays import Int64Array
from alcid.storage.backend import Known

__all__ = [
    "File",
    "Job",
    "Place",
    "Round",
    "Traffic",
    "TrafficCounter",
    "base_addresses",
    "coalesce",
    "metered",
]


def base_addresses(sizes: Iterable[int], gap: int) -> Int64Array:
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
    starts: Int64Array, lengths: Int64Array, gap: int, largest: int
) -> tuple[Int64Array, Int64Array]:
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


class File(NamedTuple):
    """A file, and what is known of it."""

    path: str
    known: Known


Place = tuple[int, int, int]
"""The number of a file, an offset and a length."""


class Job(NamedTuple):
    """What one thread reads: pieces (offset, length) of one file."""

    path: str
    known: Known
    pieces: list[tuple[int, int]]


class Round:
    """Ranges that are read together.

    >>> places = [(0, 90, 10), (0, 0, 4)]
    >>> plan = Round([File("a", Known())], places, gap=8, largest=5, apart=True)
    >>> [job.pieces for job in plan.jobs]
    [[(0, 4)], [(90, 5)], [(95, 5)]]
    >>> plan.results([[b"0123"], [b"abcde"], [b"fghij"]])
    [b'abcdefghij', b'0123']
    """

    def __init__(
        self,
        files: Sequence[File],
        places: Sequence[Place],
        *,
        gap: int,
        largest: int,
        apart: bool,
    ) -> None:
        """Plan the jobs: one for each piece if they are to run `apart`, else for each file.

        Raises:
            OverflowError: A range ends where no file does.
        """
        numbers, offsets, self._lengths = np.array(places, np.int64).reshape(-1, 3).T
        sizes = np.zeros(len(files), np.int64)
        np.maximum.at(sizes, numbers, offsets + self._lengths)
        bases = base_addresses(sizes.tolist(), gap)
        self._starts = bases[numbers] + offsets
        filled = self._lengths > 0
        self._begins, ends = coalesce(self._starts[filled], self._lengths[filled], gap, largest)
        run_files = np.searchsorted(bases, self._begins, side="right") - 1
        self._counts: list[int] = []
        self.jobs: list[Job] = []
        by_file: dict[int, list[tuple[int, int]]] = {}
        runs = run_files, self._begins - bases[run_files], ends - self._begins
        for number, offset, length in zip(*(column.tolist() for column in runs), strict=True):
            pieces = [(offset, length)] if length <= largest else _split(offset, length, largest)
            self._counts.append(len(pieces))
            if apart:
                path, known = files[number]
                self.jobs += [Job(path, known, [piece]) for piece in pieces]
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
        if not parts:
            return [b""] * len(self._starts)
        runs = np.searchsorted(self._begins, self._starts, side="right") - 1
        begins = self._starts - self._begins[runs]
        ends_within = begins + self._lengths
        return [
            parts[run][begin:end]
            for run, begin, end in zip(
                runs.tolist(), begins.tolist(), ends_within.tolist(), strict=True
            )
        ]


def _split(offset: int, length: int, largest: int) -> list[tuple[int, int]]:
    """Offsets and lengths of requests of one size, each up to `largest` bytes long.

    >>> _split(10, 20, 8)
    [(10, 7), (17, 7), (24, 6)]
    """
    step = -(-length // -(-length // largest))
    end = offset + length
    return [(begin, min(step, end - begin)) for begin in range(offset, end, step)]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counts since a storage was opened, or the difference of two such counts.

    Each try counts. What a library asks within one call of its own is counted where it is known:
    the pages of a listing, the question for a size that Arrow puts before the first read of a file.

    >>> Traffic(reads=3, bytes_read=100) - Traffic(reads=1, bytes_read=40)
    Traffic(lists=0, stats=0, reads=2, puts=0, deletes=0, bytes_read=60, bytes_written=0, retries=0)
    """

    lists: int = 0
    """Pages of listings; folders, on a disk."""
    stats: int = 0
    """Questions for a file's size, or whether it exists."""
    reads: int = 0
    puts: int = 0
    deletes: int = 0
    bytes_read: int = 0
    """With the gaps between ranges that were read together."""
    bytes_written: int = 0
    retries: int = 0
    """How many of the requests repeat one that failed."""

    @property
    def requests(self) -> int:
        """All requests, of whatever kind."""
        return self.lists + self.stats + self.reads + self.puts + self.deletes

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(add, _counts(self), _counts(other)))

    def __sub__(self, before: Traffic) -> Traffic:
        return Traffic(*map(sub, _counts(self), _counts(before)))


_meters: ContextVar[tuple[TrafficCounter, ...]] = ContextVar("meters", default=())


@contextmanager
def metered() -> Iterator[TrafficCounter]:
    """Count what the caller asks of any storage within, and not what others ask meanwhile.

    Threads that take over the context of the caller count for it.
    """
    meter = TrafficCounter()
    before = _meters.set((*_meters.get(), meter))
    try:
        yield meter
    finally:
        _meters.reset(before)


_counts = attrgetter(*Traffic.__slots__)  # `astuple` copies deeply, and is thirty times slower


class TrafficCounter:
    """A count that many threads add to; what is added counts for the caller, too: see `metered`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = asdict(Traffic())

    def add(self, **counts: int) -> None:
        """Add to the counts of these names."""
        for counter in (self, *_meters.get()):
            with counter._lock:
                for name, count in counts.items():
                    counter._counts[name] += count

    def snapshot(self) -> Traffic:
        """The counts as they stand."""
        with self._lock:
            return Traffic(**self._counts)
