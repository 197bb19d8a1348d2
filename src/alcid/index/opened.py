"""The cache of opened indexes of a table, whatever its kind."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

from alcid.formats.file_index.reader import IndexReader
from alcid.index.bundle import CheckedSource

_MOST_OPENED = 512
_MOST_BYTES = 128 << 20  # that were read of opened indexes, and became bitmaps
_CHECK_EVERY = 16  # indexes are opened until the bytes of all of them are added up

IndexKey: TypeAlias = tuple[str, str, int]
"""Column, index type and file."""


class OpenedIndexes:
    """Opened indexes, the least recently used first; bounded by their number and by bytes read."""

    def __init__(self) -> None:
        """Begin without any."""
        self._opened: OrderedDict[IndexKey, tuple[IndexReader, CheckedSource | None]]
        self._opened = OrderedDict()
        self._opens, self._lock = 0, Lock()

    def __len__(self) -> int:
        return len(self._opened)

    def get(
        self,
        key: IndexKey,
        open_index: Callable[[], tuple[IndexReader, CheckedSource | None]],
    ) -> IndexReader:
        """The index of a key, opened now if it is not in the cache.

        Args:
            key: Which.
            open_index: Opens it; with the source that counts what the index has read, if there is
                one. What it raises is passed on, and nothing is cached.
        """
        with self._lock:
            cached = self._opened.get(key)
            if cached is not None:
                self._opened.move_to_end(key)
                return cached[0]
        opened = open_index()  # without the lock: it may wait for a read
        with self._lock:
            self._opened[key] = opened
            self._opens += 1
            if len(self._opened) > _MOST_OPENED:
                self._opened.popitem(last=False)
            if self._opens % _CHECK_EVERY == 0:
                self._evict()
        return opened[0]

    def _evict(self) -> None:
        """Drop the oldest ones: what they take is only known after they were evaluated."""
        taken = sum(source.taken for _, source in self._opened.values() if source is not None)
        while taken > _MOST_BYTES:
            _, (_, source) = self._opened.popitem(last=False)
            taken -= 0 if source is None else source.taken
