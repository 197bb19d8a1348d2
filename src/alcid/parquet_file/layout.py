"""Where the pages of a file are: what is needed to read rows without its footer.

A layout is made of plain arrays, bytes and text, so that it can be kept in an index. Row groups
without rows and pages without values are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.parquet_file.schema import ColumnPlaces, Field

__all__ = ["ColumnLayout", "FileLayout", "LeafLayout"]

Integers = npt.NDArray[np.int64]

_MAGIC_LENGTH = 4  # nothing begins before the file's first four bytes
_MOST_CODECS = 64  # 8 are known; the number is one byte
_MOST_VALUES = 1 << 33  # of a chunk; Arrow itself stops at 2^31
_MOST_BYTES = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class LeafLayout:
    """The chunks of a leaf column, and the pieces in which they are read.

    A piece is a data page; where pages are not known, the whole chunk. What lies in a chunk before
    its first piece is its dictionary page.
    """

    groups: Integers
    """For each row group: codec, values, where the chunk begins, and how many of its first rows
    may need the dictionary. An array of 4 rows."""
    pieces: Integers
    """For each piece: offset, size, first row counted from the file's first. 3 rows."""

    def problem(self, starts: Integers, *, flat: bool) -> str:
        """Why these cannot be the pieces of a leaf, or an empty text.

        Args:
            starts: The first row of each row group, then the number of rows.
            flat: There is a value for each row.
        """
        if self.groups.shape != (4, len(starts) - 1) or len(self.pieces) != 3:
            return f"arrays of {self.groups.shape} and {self.pieces.shape}"
        codecs, values, begins, _ = self.groups
        offsets, sizes, rows = self.pieces
        if ((codecs < 0) | (codecs >= _MOST_CODECS)).any():
            return "an unknown codec"
        if (values != np.diff(starts) if flat else (values < 0) | (values >= _MOST_VALUES)).any():
            return "a number of values that is not that of its rows"
        if (rows[1:] <= rows[:-1]).any() or (rows < 0).any() or (rows >= starts[-1]).any():
            return "first rows that do not ascend"
        firsts = np.searchsorted(rows, starts[:-1])
        if (firsts == len(rows)).any() or (rows[firsts] != starts[:-1]).any():
            return "a row group without a first page"
        if ((sizes <= 0) | (sizes > _MOST_BYTES) | (offsets > _MOST_BYTES)).any():
            return "a page of no size"
        ends = np.zeros(len(rows), np.int64)
        ends[1:] = (offsets + sizes)[:-1]
        ends[firsts] = begins
        if (offsets < ends).any() or (begins < _MAGIC_LENGTH).any():
            return "pages that overlap"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLayout:
    """A top-level column."""

    field: Field
    leaves: tuple[LeafLayout, ...]
    """As many as the field has; none if the column cannot be read at all."""
    whole: str = ""
    """Why whole row groups are read of it; empty if its pages are known."""


@dataclass(frozen=True, eq=False)
class FileLayout:
    """The columns of a file, all or those that were asked for.

    Raises:
        FormatError: The arrays contradict each other.
    """

    starts: Integers
    """The first row of each row group, then the number of rows."""
    columns: tuple[ColumnLayout, ...]
    file: str = "<layout>"
    """What errors call it."""
    footer_crc: int | None = None
    """CRC-32 of the footer, where it was read for this layout."""

    def __post_init__(self) -> None:
        """Check the arrays, so that whoever reads by them need not."""
        starts = self.starts
        if not len(starts) or starts[0] != 0 or (starts[1:] <= starts[:-1]).any():
            raise FormatError("row groups that do not ascend", file=self.file, found=starts)
        for column in self.columns:
            flat = not column.field.nested
            for leaf in column.leaves:
                problem = leaf.problem(starts, flat=flat)
                if problem:
                    raise FormatError(
                        f"bad layout of column {column.field.name}", file=self.file, found=problem
                    )

    @property
    def rows(self) -> int:
        """The rows of the file."""
        return int(self.starts[-1])

    @cached_property
    def end(self) -> int:
        """Where the last of the pieces ends; the file cannot be shorter."""
        leaves = [leaf.pieces for column in self.columns for leaf in column.leaves]
        return max((int((pieces[0] + pieces[1]).max(initial=0)) for pieces in leaves), default=0)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the file."""
        return tuple(column.field.name for column in self.columns)

    def column(self, name: str) -> ColumnLayout:
        """The column of this name, spelled exactly so.

        Raises:
            ColumnError: There is none, or more than one.
        """
        return self.columns[self._places.place(name)]

    @cached_property
    def _places(self) -> ColumnPlaces:
        return ColumnPlaces(self.names, self.file)
