"""Where rows stand: their files and positions, worked out only if someone asks.

Most scans never ask. For a whole column of a large file the positions would take longer to write
down than its values take to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["GroupRows", "Places"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class GroupRows:
    """The rows of some row groups of a file, numbered through in the order of the groups."""

    starts: Integers
    """The first row of each row group of the file, then the number of rows."""
    groups: Integers
    """Those that are meant, ascending."""

    @property
    def bases(self) -> Integers:
        """The number of the first row of each group, then the number of all."""
        sizes = self.starts[self.groups + 1] - self.starts[self.groups]
        return np.concatenate(([0], np.cumsum(sizes)))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int((self.starts[self.groups + 1] - self.starts[self.groups]).sum())

    def numbers(self, positions: Integers) -> Integers:
        """The numbers of rows, from their positions in the file.

        >>> rows = GroupRows(np.array([0, 10, 20, 30]), np.array([0, 2]))
        >>> rows.numbers(np.array([3, 25])).tolist(), rows.positions(np.array([3, 15])).tolist()
        ([3, 15], [3, 25])
        """
        groups = np.searchsorted(self.starts, positions, "right") - 1
        places = np.searchsorted(self.groups, groups)
        numbers: Integers = positions - self.starts[groups] + self.bases[places]
        return numbers

    def positions(self, numbers: Integers) -> Integers:
        """The positions of rows, from their numbers."""
        bases = self.bases
        places = np.searchsorted(bases, numbers, "right") - 1
        positions: Integers = numbers - bases[places] + self.starts[self.groups[places]]
        return positions


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The files and positions of rows of at least one file, all of one schema."""

    count: int
    _files: Integers
    """One file for all rows, or one for each."""
    _numbers: Integers | None
    """Positions; or numbers in `_groups`, None for all of them."""
    _groups: GroupRows | None = None

    @classmethod
    def of_pages(cls, files: Sequence[int], positions: Sequence[Integers]) -> Places:
        """Rows of several files, whose positions are known."""
        counts = [len(some) for some in positions]
        return cls(sum(counts), np.repeat(files, counts), np.concatenate(positions))

    @classmethod
    def of_groups(cls, file: int, rows: GroupRows, numbers: Integers | None) -> Places:
        """Rows of a file, by their numbers in some row groups; by default all."""
        count = rows.count if numbers is None else len(numbers)
        return cls(count, np.array([file]), numbers, rows)

    def __len__(self) -> int:
        return self.count

    @property
    def first_file(self) -> int:
        """One of the files; all have its schema."""
        return int(self._files[0])

    @property
    def one_file(self) -> bool:
        """Whether all rows are known to be of one file."""
        return len(self._files) == 1

    @property
    def files(self) -> Integers:
        """The file of each row."""
        return np.full(self.count, self._files[0]) if self.one_file else self._files

    @property
    def positions(self) -> Integers:
        """The position of each row in its file."""
        return self.take(np.arange(self.count))._known

    @property
    def _known(self) -> Integers:
        if self._numbers is None or self._groups is not None:
            raise TypeError("positions that were not worked out")
        return self._numbers

    def take(self, rows: Integers) -> Places:
        """Some of the rows, in this order."""
        files = self._files if self.one_file else self._files[rows]
        numbers = rows if self._numbers is None else self._numbers[rows]
        known = numbers if self._groups is None else self._groups.positions(numbers)
        return Places(len(rows), files, known)

    def filter(self, mask: npt.NDArray[np.bool_]) -> Places:
        """Some of the rows."""
        return self.take(np.flatnonzero(mask))
