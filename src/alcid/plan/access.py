"""How the rows of a file are read: its pages, or whole row groups.

Single rows are read by the pages that hold them. Where most pages hold one, whole row groups are
read and the rows taken out: Arrow decodes those much faster than page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alcid.formats.selection import Selection
from alcid.parquet_file import FileLayout
from alcid.plan.places import GroupRows
from alcid.plan.table_files import FileScan, Integers

__all__ = ["PageAccess", "Touched", "WholeAccess", "touched_pages"]

_DENSE = 0.5
"""From this share of the bytes on, whole row groups are read."""
_BATCH = 32 << 20  # bytes of row groups, decompressed, that one thread reads at a time


@dataclass(frozen=True, slots=True)
class Touched:
    """What rows need of a file, and what the row groups have in which they stand."""

    row_groups: int
    all_row_groups: int
    pages: int
    all_pages: int
    bytes: int
    all_bytes: int

    @property
    def share(self) -> float:
        """How much of the columns is read, by bytes."""
        return self.bytes / max(self.all_bytes, 1)


@dataclass(frozen=True, slots=True, eq=False)
class PageAccess:
    """Rows of a file, by their pages."""

    file: int
    selection: Selection
    layout: FileLayout
    positions: Integers
    columns: Sequence[str]
    """What is read of it, as the file spells it."""

    @property
    def rows(self) -> int:
        """The rows that are looked at."""
        return len(self.positions)

    @property
    def touched(self) -> Touched:
        """What these rows need of the file."""
        return touched_pages(self.layout, self.columns, self.positions)

    @property
    def is_sparse(self) -> bool:
        """Whether less than half of the columns is read."""
        leaves = (leaf for name in self.columns for leaf in self.layout.column(name).leaves)
        fewest = min((leaf.pieces.shape[1] for leaf in leaves), default=0)
        return 2 * len(self.positions) <= fewest or self.touched.share < _DENSE


@dataclass(frozen=True, slots=True, eq=False)
class WholeAccess:
    """Row groups of a file, or the rows of them that are asked for."""

    file: int
    selection: Selection
    scan: FileScan
    groups: Sequence[int]
    """Row groups that may hold a row, as the footer numbers them."""
    starts: Integers
    """The first row of each row group of the file, then the number of rows."""
    size: int
    """Bytes of the needed columns in these row groups."""
    positions: Integers | None
    """The rows, if they are known."""
    why: str
    """Why it is not read by its pages."""
    is_checked: bool = True
    """Whether its rows are compared with the predicate."""

    def batches(self) -> Iterator[WholeAccess]:
        """The same, a few row groups at a time, so that memory is bounded."""
        batch: list[int] = []
        size = 0
        for group in self.groups:
            batch.append(group)
            size += self.scan.group_bytes(group)
            if size >= _BATCH:
                yield self._some(batch)
                batch, size = [], 0
        if batch:
            yield self._some(batch)

    def _some(self, groups: list[int]) -> WholeAccess:
        positions = self.positions
        if positions is not None:
            begin, end = self.starts[groups[0]], self.starts[groups[-1] + 1]
            positions = positions[(positions >= begin) & (positions < end)]
        return replace(self, groups=groups, positions=positions)

    @property
    def group_rows(self) -> GroupRows:
        """The rows of these row groups."""
        return GroupRows(self.starts, np.array(self.groups, np.int64))

    @property
    def rows(self) -> int:
        """The rows that are looked at."""
        return self.group_rows.count if self.positions is None else len(self.positions)


def touched_pages(layout: FileLayout, columns: Sequence[str], positions: Integers) -> Touched:
    """What is read of some columns for rows that ascend, and what their row groups have."""
    starts = layout.starts
    groups = np.unique(np.searchsorted(starts, positions, "right")) - 1
    pages = all_pages = size = all_size = 0
    for name in columns:
        for leaf in layout.column(name).leaves:
            offsets, sizes, firsts = leaf.pieces
            hit = np.zeros(len(firsts), bool)
            hit[np.searchsorted(firsts, positions, "right") - 1] = True
            beside = np.isin(np.searchsorted(starts, firsts, "right") - 1, groups)
            # Before the first page of a row group comes its dictionary.
            heads = np.searchsorted(firsts, starts[groups])
            dictionaries = int((offsets[heads] - leaf.groups[2][groups]).sum())
            pages, all_pages = pages + int(hit.sum()), all_pages + int(beside.sum())
            size += int(sizes[hit].sum()) + dictionaries
            all_size += int(sizes[beside].sum()) + dictionaries
    return Touched(len(groups), len(starts) - 1, pages, all_pages, size, all_size)
