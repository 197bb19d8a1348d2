"""Rows into files: one after the other, of about the same length, each of one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from alcid.tables.writing import FileWriter

__all__ = ["HELD_BYTES", "equal_runs", "roll_files"]

Place = TypeVar("Place")

HELD_BYTES = 512 << 20
"""A file is closed when its rows take so much memory, however short it is."""


def roll_files(
    parts: Iterable[tuple[Place, pa.Table]],
    begin: Callable[[], FileWriter],
    *,
    target_bytes: int,
    held_bytes: int = HELD_BYTES,
) -> Iterator[tuple[Place, FileWriter]]:
    """Files that are to be closed, and the places that they belong to.

    Args:
        parts: Rows, and where they belong; those of a place one after the other.
        begin: Begins a file.
        target_bytes: A file ends with the row group that makes it so long.
        held_bytes: And when its rows take so much memory.
    """
    current: tuple[Place, FileWriter] | None = None
    for place, rows in parts:
        if current is not None and current[0] != place:
            yield current
            current = None
        if current is None:
            current = place, begin()
        file = current[1]
        file.add(rows)
        if file.written_bytes >= target_bytes or file.held_bytes >= held_bytes:
            rest = file.cut()
            yield current
            current = None
            if rest is not None:
                current = place, begin()
                current[1].add(rest)
    if current is not None:
        yield current


def equal_runs(keys: Sequence[pa.Array], count: int) -> Iterator[tuple[int, int]]:
    """Where rows of the same keys begin and end.

    >>> list(equal_runs([pa.array(["a", "a", None, "b"])], 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    if not count:
        return
    change = np.zeros(count - 1, bool)
    for values in keys:
        codes = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
        change |= codes[1:] != codes[:-1]
    yield from pairwise([0, *(np.flatnonzero(change) + 1).tolist(), count])
