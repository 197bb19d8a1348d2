"""Counts of the requests that a storage makes, and of the bytes that they carry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from operator import add, attrgetter, sub

__all__ = ["Traffic", "TrafficCounter", "metered"]


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


_meters: ContextVar[tuple[TrafficCounter, ...]] = ContextVar("meters", default=())


@contextmanager
def metered() -> Iterator[TrafficCounter]:
    """Count what the caller requests of any storage in the block, but not what others request.

    Threads that run in the context of the caller count for it.
    """
    meter = TrafficCounter()
    before = _meters.set((*_meters.get(), meter))
    try:
        yield meter
    finally:
        _meters.reset(before)


_counts = attrgetter(*Traffic.__slots__)  # `astuple` copies deeply, and is thirty times slower


class TrafficCounter:
    """Counts that many threads add to; what is added also counts for the caller: see `metered`."""

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
