"""Counts of the requests that a storage makes, and of the bytes that they carry."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from operator import add, attrgetter, sub
from typing import Self


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counts since a storage was opened, or the difference of two such counts.

    Each attempt counts. Requests that a library makes within one call are counted where they are
    known: the pages of a listing, the request for a size that Arrow makes before its first read.

    >>> Traffic(reads=3, bytes_read=100) - Traffic(reads=1, bytes_read=40)
    Traffic(lists=0, stats=0, reads=2, puts=0, deletes=0, bytes_read=60, bytes_written=0, retries=0)
    """

    lists: int = 0
    """Pages of listings; folders, on a disk."""
    stats: int = 0
    """Requests for a file's size, or whether it exists."""
    reads: int = 0
    puts: int = 0
    deletes: int = 0
    bytes_read: int = 0
    """Including the gaps between ranges that were read together."""
    bytes_written: int = 0
    retries: int = 0
    """How many of the requests repeat one that failed."""

    @property
    def requests(self) -> int:
        """All requests, of every kind."""
        return self.lists + self.stats + self.reads + self.puts + self.deletes

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(add, _counts(self), _counts(other)))

    def __sub__(self, before: Traffic) -> Traffic:
        return Traffic(*map(sub, _counts(self), _counts(before)))


_counts = attrgetter(*Traffic.__slots__)  # `astuple` copies deeply, and is thirty times slower


class TrafficCounter:
    """Counts that many threads add to; what is added also counts for each `Meter` of the caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Traffic.__slots__, 0)

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


class Meter(TrafficCounter):
    """Measures a `with` block: its time, and what it requests of any storage.

    Threads that run in the context of the caller count for it; what others request does not count.
    """

    seconds = 0.0

    def __enter__(self) -> Self:
        self._before = _meters.set((*_meters.get(), self))
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began
        _meters.reset(self._before)


_meters: ContextVar[tuple[Meter, ...]] = ContextVar("meters", default=())
