"""Which pages hold given rows, over several files and columns at once.

The files of a read are thought of as one after the other: rows, row groups and bytes are numbered
through. A row group that holds a row that was asked for is a *segment*. Columns whose pages begin
at the same rows are planned, and later decoded, together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.parquet_file.layout import ColumnLayout, LeafLayout

__all__ = ["PageSet", "Segments", "select_pages", "select_segments"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The row groups of several files that hold given rows."""

    positions: Integers
    """The rows, numbered through all files, ascending."""
    bases: Integers
    """The number of each file's first row, then the number of rows."""
    starts: Integers
    """The number of each row group's first row, then the number of rows."""
    touched: Integers
    """The row groups that hold a position: the segments."""
    bounds: Integers
    """The first position of each segment, then the number of positions."""


def select_segments(starts: Sequence[Integers], positions: Sequence[Integers]) -> Segments:
    """Number rows and row groups through, and see which row groups are needed.

    Args:
        starts: For each file the first row of each row group, then its rows.
        positions: For each file the rows that are asked for.

    >>> found = select_segments(
    ...     [np.array([0, 5, 9]), np.array([0, 4])], [np.array([6, 8]), np.array([3])]
    ... )
    >>> found.positions.tolist(), found.touched.tolist(), found.bounds.tolist()
    ([6, 8, 12], [1, 2], [0, 2, 3])
    """
    bases = np.cumsum([0, *(int(file[-1]) for file in starts)])
    rows = _through(positions, bases)
    groups = np.append(_through([file[:-1] for file in starts], bases), bases[-1])
    bounds = np.searchsorted(rows, groups)
    touched = np.flatnonzero(bounds[1:] - bounds[:-1])
    return Segments(rows, bases, groups, touched, np.append(bounds[touched], len(rows)))


@dataclass(frozen=True, slots=True, eq=False)
class PageSet:
    """What is read of columns whose pages begin at the same rows.

    What is read of a chunk is a run of slots: one for its dictionary page, which may be empty, and
    one for each page that holds a position. Arrays of two dimensions have a row for each leaf.
    """

    columns: tuple[int, ...]
    """The places of the columns among those that are read."""
    paged: bool
    """The slots are data pages, not whole chunks."""
    starts: Integers
    """The address of each slot, of each leaf."""
    lengths: Integers
    """The bytes of each slot, of each leaf."""
    rows: Integers
    """The rows of each slot; 0 of a dictionary page."""
    cuts: Integers
    """The first slot of each segment, then the number of slots."""
    codecs: Integers
    """Of each segment, of each leaf."""
    values: Integers
    """Of each segment, of each leaf."""
    bases: Integers
    """The rows in all slots before each segment, then in all."""
    index: Integers
    """The place of each position among the rows of all slots."""


def select_pages(
    columns: Sequence[Sequence[ColumnLayout]],
    addresses: Integers,
    segments: Segments,
    *,
    every_dictionary: bool = False,
) -> list[PageSet]:
    """Choose the pages that hold the positions.

    Args:
        columns: Each column in each file; of a column, either pages are known in every file or
            whole chunks are read.
        addresses: The address of each file's first byte.
        segments: The positions.
        every_dictionary: Also those that the pages do not use, as far as the layout says.
    """
    alike: dict[tuple[bool, bytes], list[int]] = {}
    for place, layouts in enumerate(columns):
        firsts = _firsts(layouts, segments)
        alike.setdefault((not layouts[0].whole, firsts.tobytes()), []).append(place)
    return [
        _select(
            places,
            paged,
            [columns[place] for place in places],
            addresses,
            segments,
            every_dictionary,
        )
        for (paged, _), places in alike.items()
    ]


def _select(
    places: Sequence[int],
    paged: bool,
    columns: Sequence[Sequence[ColumnLayout]],
    addresses: Integers,
    segments: Segments,
    every_dictionary: bool,
) -> PageSet:
    positions, touched = segments.positions, segments.touched
    firsts = _firsts(columns[0], segments)
    bounds = np.searchsorted(positions, np.append(firsts, segments.bases[-1]))
    counts = bounds[1:] - bounds[:-1]
    needed = np.flatnonzero(counts)
    rows = np.append(firsts[1:], segments.bases[-1])[needed] - firsts[needed]
    before = np.cumsum(rows) - rows
    if len(positions) == rows.sum():  # all rows of all these pages
        index = np.arange(len(positions))
    else:
        index = positions - np.repeat(firsts[needed] - before, counts[needed])

    # The slots: before the first page of each segment comes its dictionary.
    heads = np.searchsorted(firsts, segments.starts[touched])
    cuts = np.searchsorted(needed, heads)
    dictionaries = cuts + np.arange(len(cuts))
    pages = np.ones(len(needed) + len(cuts), np.bool_)
    pages[dictionaries] = False
    leaves = [
        [layout.leaves[leaf] for layout in column]
        for column in columns
        for leaf in range(len(column[0].leaves))
    ]
    codecs, values, begins, coded = _stacked(leaves, "groups", addresses, 2)[:, :, touched]
    offsets, sizes, _ = _stacked(leaves, "pieces", addresses, 0)
    starts = np.empty((len(leaves), len(pages)), np.int64)
    starts[:, pages] = offsets[:, needed]
    starts[:, dictionaries] = begins
    lengths = np.empty_like(starts)
    lengths[:, pages] = sizes[:, needed]
    # Where a dictionary grew too large, the writer went on without it.
    uses = firsts[needed[cuts]] - segments.starts[touched] < coded
    lengths[:, dictionaries] = np.where(uses | every_dictionary, offsets[:, heads] - begins, 0)
    slot_rows = np.zeros(len(pages), np.int64)
    slot_rows[pages] = rows
    return PageSet(
        tuple(places),
        paged,
        starts,
        lengths,
        slot_rows,
        np.append(dictionaries, len(pages)),
        codecs,
        np.broadcast_to(np.add.reduceat(rows, cuts), codecs.shape) if paged else values,
        np.append(before[cuts], rows.sum()),
        index,
    )


def _firsts(layouts: Sequence[ColumnLayout], segments: Segments) -> Integers:
    """The first row of each page of a column, numbered through."""
    return _through([layout.leaves[0].pieces[2] for layout in layouts], segments.bases)


def _stacked(
    leaves: Sequence[Sequence[LeafLayout]], name: str, addresses: Integers, row: int
) -> Integers:
    """The arrays of each leaf in each file: (rows, leaves, numbers of all files).

    The numbers of one row count from the beginning of their file and become addresses.
    """
    files = [
        np.stack([getattr(leaf, name) for leaf in file], axis=1)
        for file in zip(*leaves, strict=True)
    ]
    joined: Integers = files[0] if len(files) == 1 else np.concatenate(files, axis=2)
    joined[row] += np.repeat(addresses, [file.shape[2] for file in files])
    return joined


def _through(parts: Sequence[Integers], bases: Integers) -> Integers:
    """Numbers of several files, each counted from its file's base."""
    moved = [part + base for part, base in zip(parts, bases.tolist(), strict=False)]
    return np.concatenate(moved) if len(moved) > 1 else moved[0]
