"""Which older rows of a bucket new rows replace.

    older file     new rows      found
    1  fig         2  plum       row 1 of the file is marked
    2  pear        4  lime       key 4 is new
    3  apple

Without `sequence.field` a new row replaces all older ones of its key, as in Java, whatever their
sequence numbers. With it, an older row may be the newer one: then the new row is beaten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import IntArray, plain
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.keyed.row_kinds import are_deletes
from alcid.tables.paimon.merging import KeyRows, losers

__all__ = ["Found", "look_up"]

_Mask: TypeAlias = npt.NDArray[np.bool_]
_Meeting: TypeAlias = tuple[IntArray, IntArray]
"""Rows of an older file, and beside each the new row of the same key."""

_NEWEST = np.iinfo(np.int64).max
_FEW = 4
"""New rows are few if the older ones are so many times as many."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What becomes of older rows and of new ones."""

    marks: list[DeletionVector]
    """For each older file the rows that are not live any more, without those marked before."""
    beaten: _Mask
    """The new rows that lose against an older one by `sequence.field`."""
    present: _Mask
    """The new rows of whose key an older row was live."""


def look_up(old: Sequence[KeyRows], new: KeyRows, *, descending: bool = False) -> Found:
    """Find older rows of the keys of new ones.

    Args:
        old: Files in the order in which they were added. Of a key that is live in several of them,
            at most one row stays.
        new: Rows with keys of which each is there once. Those that delete mark older rows as
            others do.
        descending: `sequence.field.sort-order`.

    Raises:
        FormatError: A row has no sequence number or kind.
        UnsupportedError: A key or sequence field is of a type that has no order, or of several.

    >>> old = KeyRows([pa.array([1, 2, 3])], np.array([6, 7, 8]), np.zeros(3, np.int8), level=5)
    >>> new = KeyRows([pa.array([2, 4])], np.array([9, 10]), np.zeros(2, np.int8), level=0)
    >>> found = look_up([old], new)
    >>> found.marks, found.beaten.tolist(), found.present.tolist()
    ([DeletionVector([1], bits=32)], [False, False], [True, False])
    """
    beaten, present = np.zeros(len(new), bool), np.zeros(len(new), bool)
    met = [_live(file, _meet(file.keys, new.keys, len(file), len(new))) for file in old]
    for file, (places, rows) in zip(old, met, strict=True):
        present[rows[~are_deletes(_taken(file.kinds, places))]] = True
    if not new.sequence:
        return Found([DeletionVector(places) for places, _ in met], beaten, present)
    # Keys are as good as the new rows that they were found for.
    parts = [
        KeyRows(
            [pa.array(rows)],
            _taken(file.sequence_numbers, places),
            _taken(file.kinds, places),
            file.level,
            [plain(column).take(pa.array(places)) for column in file.sequence],
            name=file.name,
        )
        for file, (places, rows) in zip(old, met, strict=True)
    ]
    chosen = np.unique(np.concatenate([np.empty(0, np.int64), *(rows for _, rows in met)]))
    parts.append(
        KeyRows(
            [pa.array(chosen)],
            np.full(len(chosen), _NEWEST),
            np.zeros(len(chosen), np.int8),
            0,
            [plain(column).take(pa.array(chosen)) for column in new.sequence],
        )
    )
    *hidden, lost = losers(parts, descending=descending)
    beaten[chosen[lost.to_numpy()]] = True
    marks = [
        DeletionVector(places[vector.to_numpy()])
        for vector, (places, _) in zip(hidden, met, strict=True)
    ]
    return Found(marks, beaten, present)


def _live(file: KeyRows, met: _Meeting) -> _Meeting:
    """Without rows that were marked before."""
    if file.deleted is None:
        return met
    places, rows = met
    live = ~file.deleted.contains(places)
    return places[live], rows[live]


def _taken(values: npt.NDArray[Any] | Column, places: IntArray) -> npt.NDArray[Any]:
    """Sequence numbers or kinds of some rows."""
    if isinstance(values, np.ndarray):
        return values[places]
    taken: npt.NDArray[Any] = plain(values).take(pa.array(places)).to_numpy()
    return taken


def _meet(old: Sequence[Column], new: Sequence[Column], old_rows: int, new_rows: int) -> _Meeting:
    """The rows of a file that have the key of a new row, in order."""
    if len(old) == len(new) == 1:
        found = _search(plain(old[0]), plain(new[0]))
        if found is not None:
            return found
    places = np.arange(old_rows)
    if new_rows * _FEW < old_rows:
        places = _narrowed(old, new, places)
        old = [plain(column).take(pa.array(places)) for column in old]
    ranks = rank_rows(join_columns([old, new]), len(places) + new_rows)
    older, newer = np.split(ranks, [len(places)])
    row_of = np.full(int(ranks.max(initial=0)) + 1, -1, np.int64)
    row_of[newer] = np.arange(new_rows)
    rows = row_of[older]
    return places[rows >= 0], rows[rows >= 0]


def _search(old: pa.Array, new: pa.Array) -> _Meeting | None:
    """The same for one column of whole numbers that rise, as they do in a file; else None."""
    older, newer = _whole_numbers(old), _whole_numbers(new)
    if older is None or newer is None or old.type != new.type or np.any(older[1:] <= older[:-1]):
        return None
    places = np.searchsorted(older, newer)
    rows = np.flatnonzero(places < len(older))
    rows = rows[older[places[rows]] == newer[rows]]
    order = np.argsort(places[rows], kind="stable")
    return places[rows][order], rows[order]


def _whole_numbers(array: pa.Array) -> IntArray | None:
    if array.null_count:
        return None
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array.to_numpy() if pa.types.is_integer(array.type) else None


def _narrowed(old: Sequence[Column], new: Sequence[Column], places: IntArray) -> IntArray:
    """The rows that have in each column a value that a new one has: cheaper than to rank all."""
    kept = np.ones(len(places), bool)
    for older, newer in zip(map(plain, old), map(plain, new), strict=True):
        if older.type == newer.type and not pa.types.is_floating(newer.type):
            kept &= pc.is_in(older, value_set=newer).to_numpy(zero_copy_only=False)
    return places[kept]
