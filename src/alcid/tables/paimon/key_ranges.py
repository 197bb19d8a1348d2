"""Rows of several sorted streams, cut into consecutive ranges of keys that fit into memory.

    a   1  4  7 | 9 12 ...        read as far as 12
    b   2  3  6 | 8               read as far as 8: what is below 8 is complete in all streams
    c   5       | 8 10 ...        read as far as 10

The streams come in parts. The last key that was read of a stream may go on in its next part, so
only rows below the least of these keys are given out, and all rows of a key come in one range. The
rest waits for the next parts, which are read of the streams that have little left.

Streams that fit into one part each are one range, for which no key is compared. Where the minimum
key of each stream is known, as manifests have it, a stream is opened when the others have come so
far: of many files that follow each other only a few are in memory.
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


class UnsortedKeysError(FormatError):
    """A file whose keys are not in order, or not what its manifest says."""


def key_ranges(
    streams: Sequence[Iterable[tuple[P, bool]]],
    minimum_keys: Sequence[Sequence[Column]] | None = None,
) -> Iterator[list[list[P]]]:
    """The rows of all streams in ranges of keys: the parts of each stream that are in the range.

    Args:
        streams: The parts of each stream, and whether it is the last one.
        minimum_keys: For each stream the key columns of one row, which no row of it is below.
            Without them all streams are opened at once.

    Raises:
        UnsortedKeysError: The keys of a stream that has several parts are not in order, or one is
            below its minimum.
    """
    feeds = [_Feed(iter(stream)) for stream in streams]
    waiting = [] if minimum_keys is None else _last_first(minimum_keys)
    for feed in () if waiting else feeds:
        feed.pull()
    while True:
        minimum = minimum_keys[waiting[-1]] if minimum_keys is not None and waiting else None
        if minimum is not None and not any(feed.rows for feed in feeds):
            _open(feeds[waiting.pop()], minimum)
            continue
        opened = [feed for number, feed in enumerate(feeds) if number not in waiting]
        if minimum is None and all(feed.is_complete for feed in opened):
            if any(len(feed.parts) > 1 for feed in feeds):
                _ranks(feeds)  # raises where the last part is not above the one before
            rest = [feed.take(feed.rows) for feed in feeds]
            if any(rest):
                yield rest
            return
        *ranks, following = _ranks(feeds, minimum)
        ends = [
            int(own[-1])
            for feed, own in zip(feeds, ranks, strict=True)
            if feed.rows and not feed.is_complete
        ]
        limit = min([*ends, *following.tolist()])
        counts = [int(np.searchsorted(own, limit)) for own in ranks]
        if any(counts):
            yield [feed.take(count) for feed, count in zip(feeds, counts, strict=True)]
        elif minimum is not None and following[0] == limit:
            _open(feeds[waiting.pop()], minimum)
            continue
        for feed, own in zip(feeds, ranks, strict=True):
            if len(own) and not feed.is_complete and (own[-1] == limit or feed.is_low):
                feed.pull()


def _last_first(minimum_keys: Sequence[Sequence[Column]]) -> list[int]:
    """The numbers of streams, those that begin last first."""
    ranks = rank_rows(join_columns(minimum_keys), len(minimum_keys))
    numbers: list[int] = np.argsort(ranks, kind="stable")[::-1].tolist()
    return numbers


def _open(feed: _Feed[P], minimum: Sequence[Column]) -> None:
    """Read the first part of a stream that was waiting."""
    feed.pull()
    if feed.rows:
        first = feed.parts[0]
        keys = [column.slice(0, 1) for column in first.keys]
        begin, least = rank_rows(join_columns([keys, minimum]), 2).tolist()
        if begin < least:  # rows of other streams may have been given out without it
            raise UnsortedKeysError("a key below the minimum of the manifest", file=first.name)


def _ranks(feeds: Sequence[_Feed[P]], minimum: Sequence[Column] | None = None) -> list[Int64Array]:
    """The ranks of the rows of each stream among all that are in memory, and of a minimum key."""
    parts = [part for feed in feeds for part in feed.parts]
    keys = [part.keys for part in parts] + ([] if minimum is None else [minimum])
    ranks = rank_rows(join_columns(keys), sum(map(len, parts)) + (minimum is not None))
    of_feeds = np.split(ranks, np.cumsum([feed.rows for feed in feeds]))
    for feed, own in zip(feeds, of_feeds, strict=False):
        wrong = np.flatnonzero(own[1:] < own[:-1])
        if len(wrong):
            first = feed.parts[0]
            row = first.first + int(wrong[0]) + 1
            problem = f"key of row {row} is below the one before"
            raise UnsortedKeysError(problem, file=first.name)
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
