"""The fewest bytes that an answer can be read from: those of the pages that hold its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import FileLayout, LeafLayout
from benchmarks.queries.data import Rows

__all__ = ["least_bytes"]


def least_bytes(rows: Rows, answer: Int64Array, columns: Sequence[str] | None = None) -> int:
    """Sum up the pages, and the dictionaries that they need, once each.

    Args:
        rows: The files.
        answer: Rows, counted over all files, ascending.
        columns: Of these columns only; by default of all.
    """
    bounds = np.searchsorted(answer, rows.starts).tolist()
    total = 0
    for file, layout in enumerate(rows.layouts):
        positions = answer[bounds[file] : bounds[file + 1]] - rows.starts[file]
        for name in layout.names if columns is None and len(positions) else columns or ():
            for leaf in layout.column(name).leaves:
                total += _leaf_bytes(layout, leaf, positions)
    return total


def _leaf_bytes(layout: FileLayout, leaf: LeafLayout, positions: Int64Array) -> int:
    offsets, sizes, firsts = leaf.pieces
    _, _, begins, coded = leaf.groups
    starts = layout.starts[:-1]
    pages = np.unique(np.searchsorted(firsts, positions, side="right") - 1)
    groups = np.searchsorted(starts, positions, side="right") - 1
    within = positions - starts[groups]
    needing = np.unique(groups[within < coded[groups]])
    dictionaries = offsets[np.searchsorted(firsts, starts[needing])] - begins[needing]
    return int(sizes[pages].sum() + dictionaries.sum())
