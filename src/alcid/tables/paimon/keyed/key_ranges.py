"""Rows of several sorted streams, cut into consecutive ranges of keys that fit into memory.

    a   1  4  7 | 9 12 ...        read as far as 12
    b   2  3  6 | 8               read as far as 8: what is below 8 is complete in all streams
    c   5       | 8 10 ...        read as far as 10

The streams come in parts. The last key that was read of a stream may go on in its next part, so
only rows below the least of these keys are given out, and all rows of a key come in one range. The
rest waits for the next parts, which are read of the streams that have little left.

Streams that fit into one part each are one range, for which no key is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from alcid._arrays import Int64Array
from alcid.errors import FormatError
from alcid.tables.key_order import Column, join_columns, rank_rows


class KeyedPart(Protocol):
    """Consecutive rows of a stream."""

    @property
    def keys(self) -> Sequence[Column]:
        """The key columns."""

    @property
    def first(self) -> int:
        """The number of the first row in its stream."""

    @property
    def name(self) -> str | None:
        """The file of the stream, for errors."""

    def __len__(self) -> int:
        """How many rows there are."""

    def slice(self, start: int, stop: int) -> Self:
        """Some of the rows, which are not copied."""


P = TypeVar("P", bound=KeyedPart)


def key_ranges(streams: Sequence[Iterable[tuple[P, bool]]]) -> Iterator[list[list[P]]]:
    """The rows of all streams in ranges of keys: the parts of each stream that are in the range.

    Args:
        streams: The parts of each stream, and whether it is the last one.

    Raises:
        FormatError: The keys of a stream that has several parts are not in order.
    """
    feeds = [_Feed(iter(stream)) for stream in streams]
    for feed in feeds:
        feed.pull()
    while True:
        if all(feed.is_complete for feed in feeds):
            if any(len(feed.parts) > 1 for feed in feeds):
                _ranks(feeds)  # raises where the last part is not above the one before
            rest = [feed.take(feed.rows) for feed in feeds]
            if any(rest):
                yield rest
            return
        ranks = _ranks(feeds)
        limit = min(
            int(own[-1]) for feed, own in zip(feeds, ranks, strict=True) if not feed.is_complete
        )
        counts = [int(np.searchsorted(own, limit)) for own in ranks]
        if any(counts):
            yield [feed.take(count) for feed, count in zip(feeds, counts, strict=True)]
        for feed, own in zip(feeds, ranks, strict=True):
            if not feed.is_complete and (own[-1] == limit or feed.is_low):
                feed.pull()


def _ranks(feeds: Sequence[_Feed[P]]) -> list[Int64Array]:
    """The ranks of the rows of each stream among all that are in memory."""
    parts = [part for feed in feeds for part in feed.parts]
    ranks = rank_rows(join_columns([part.keys for part in parts]), sum(map(len, parts)))
    of_feeds = np.split(ranks, np.cumsum([feed.rows for feed in feeds])[:-1])
    for feed, own in zip(feeds, of_feeds, strict=True):
        wrong = np.flatnonzero(own[1:] < own[:-1])
        if len(wrong):
            first = feed.parts[0]
            row = first.first + int(wrong[0]) + 1
            raise FormatError(f"key of row {row} is below the one before", file=first.name)
    return of_feeds


class _Feed(Generic[P]):
    """The parts of a stream that are in memory. Only one that is complete may have no rows."""

    def __init__(self, source: Iterator[tuple[P, bool]]) -> None:
        self._source = source
        self._part_rows = 0
        self.parts: list[P] = []
        self.rows = 0
        self.is_complete = False

    @property
    def is_low(self) -> bool:
        """Whether so little is left that the next part should be read."""
        return 2 * self.rows <= self._part_rows

    def pull(self) -> None:
        """Read the next part that has rows."""
        while not self.is_complete:
            part, self.is_complete = next(self._source, (None, True))
            if part is not None and len(part):
                self.parts.append(part)
                self.rows += len(part)
                self._part_rows = len(part)
                return

    def take(self, count: int) -> list[P]:
        """The first rows, which are then forgotten."""
        taken: list[P] = []
        self.rows -= count
        while count:
            part = self.parts.pop(0)
            if len(part) > count:
                self.parts.insert(0, part.slice(count, len(part)))
                part = part.slice(0, count)
            taken.append(part)
            count -= len(part)
        return taken
