"""The expected rows of a table with a primary key after upserts, in plain Python.

A row waits on level 0 until it is compacted. Of the waiting rows of a key and its compacted row,
the newest is live, or none if the newest is a delete.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

__all__ = ["DELETES", "Key", "StoredRow", "UpsertModel"]

Key = tuple[Any, ...]
StoredRow = Mapping[int, Any]
"""Values by the ids of their columns."""

DELETES = ("-U", "-D")


@dataclass
class UpsertModel:
    """The rows of a table by key: compacted rows, and changes that are still on level 0."""

    keys: tuple[int, ...]
    """The columns of the primary key."""
    sequence: tuple[int, ...] = ()
    """The columns that say which row is newer; among equal ones it is the later."""
    descending: bool = False
    ignored: Collection[str] = ()
    """Kinds of rows that are ignored."""
    compacted: dict[Key, StoredRow] = field(default_factory=dict)
    waiting: dict[Key, list[tuple[str, StoredRow]]] = field(default_factory=dict)

    def key(self, row: StoredRow) -> Key:
        return tuple(row[number] for number in self.keys)

    def take(self, changes: Iterable[tuple[str, StoredRow]]) -> set[Key]:
        """Put changes on level 0; returns their keys."""
        keys = set()
        for kind, row in changes:
            if kind not in self.ignored:
                self.waiting.setdefault(self.key(row), []).append((kind, row))
                keys.add(self.key(row))
        return keys

    def compact(self, besides: Collection[Key] = ()) -> None:
        """Compact the changes, except for those of the keys `besides`."""
        for key in self.waiting.keys() - besides:
            newest = self.newest(key)
            del self.waiting[key]
            self.compacted.pop(key, None)
            if newest is not None:
                self.compacted[key] = newest

    def newest(self, key: Key) -> StoredRow | None:
        """The row of a key, changes on level 0 included."""
        before = [("+I", self.compacted[key])] if key in self.compacted else []
        every = [*before, *self.waiting.get(key, ())]
        # Among those of the same age, max takes the first.
        kind, row = max(
            reversed(every), key=lambda change: self._age(change[1]), default=("-D", {})
        )
        return None if kind in DELETES else row

    def is_changed(self, key: Key) -> bool:
        """Whether the newest row of a key is not the one that is compacted."""
        return self.newest(key) is not self.compacted.get(key)

    def merged(self) -> dict[Key, StoredRow]:
        """The rows that a merging read sees."""
        rows = ((key, self.newest(key)) for key in self.compacted.keys() | self.waiting.keys())
        return {key: row for key, row in rows if row is not None}

    def _age(self, row: StoredRow) -> list[Any]:
        return [_rank(row.get(number), descending=self.descending) for number in self.sequence]


def _rank(value: Any, *, descending: bool) -> tuple[Any, ...]:
    """Null below all; the others in Java's order, reversed if descending."""
    if value is None:
        return (0,)
    if isinstance(value, datetime):
        value = (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    rank = (1, 0, 0) if math.isnan(value) else (0, value, math.copysign(1, value))
    return (1, *(-part for part in rank)) if descending else (1, *rank)
