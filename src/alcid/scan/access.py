"""How the rows of a file are read, and what a read yields.

Single rows are read by the pages that hold them. Where most pages hold one, whole row groups are
read and the rows taken out: Arrow decodes those much faster than page by page. What is read becomes
rows of the table: columns by the table's names, in its types.

The files and positions of rows are worked out only on demand: most scans never need them, and for a
whole column of a large file they would take longer to write down than its values take to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray, Int64Array
from alcid.datafiles.parquet import FileLayout
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.errors import UnsupportedError
from alcid.formats.file_index.reader import Selection
from alcid.scan.table_files import DataFiles, FileScan


@dataclass(frozen=True, slots=True, eq=False)
class GroupRows:
    """The rows of some row groups of a file, numbered through in the order of the groups."""

    starts: Int64Array
    """The first row of each row group of the file, then the number of rows."""
    groups: Int64Array
    """The chosen row groups, ascending."""

    @property
    def bases(self) -> Int64Array:
        """The number of the first row of each group, then the number of all."""
        sizes = self.starts[self.groups + 1] - self.starts[self.groups]
        return np.concatenate(([0], np.cumsum(sizes)))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int((self.starts[self.groups + 1] - self.starts[self.groups]).sum())

    def numbers(self, positions: Int64Array) -> Int64Array:
        """The numbers of rows, from their positions in the file.

        >>> rows = GroupRows(np.array([0, 10, 20, 30]), np.array([0, 2]))
        >>> rows.numbers(np.array([3, 25])).tolist(), rows.positions(np.array([3, 15])).tolist()
        ([3, 15], [3, 25])
        """
        groups = np.searchsorted(self.starts, positions, "right") - 1
        bases = self.bases[np.searchsorted(self.groups, groups)]
        numbers: Int64Array = positions - self.starts[groups] + bases
        return numbers

    def positions(self, numbers: Int64Array) -> Int64Array:
        """The positions of rows, from their numbers."""
        bases = self.bases
        nth = np.searchsorted(bases, numbers, "right") - 1
        positions: Int64Array = numbers - bases[nth] + self.starts[self.groups[nth]]
        return positions


@dataclass(frozen=True, slots=True, eq=False)
class RowPositions:
    """The files and positions of rows of at least one file, all of one schema."""

    count: int
    _files: Int64Array
    """One file for all rows, or one for each."""
    _numbers: Int64Array | None
    """Positions; or numbers in `_groups`, None for all of them."""
    _groups: GroupRows | None = None

    @classmethod
    def of_pages(cls, files: Sequence[int], positions: Sequence[Int64Array]) -> RowPositions:
        """Rows of several files, whose positions are known."""
        counts = [len(some) for some in positions]
        return cls(sum(counts), np.repeat(files, counts), np.concatenate(positions))

    @classmethod
    def of_groups(cls, file: int, rows: GroupRows, numbers: Int64Array | None) -> RowPositions:
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
    def files(self) -> Int64Array:
        """The file of each row."""
        return np.full(self.count, self._files[0]) if self.one_file else self._files

    @property
    def positions(self) -> Int64Array:
        """The position of each row in its file."""
        rows = self.take(np.arange(self.count))
        assert rows._numbers is not None
        return rows._numbers

    def take(self, rows: Int64Array) -> RowPositions:
        """Some of the rows, in this order."""
        files = self._files if self.one_file else self._files[rows]
        numbers = rows if self._numbers is None else self._numbers[rows]
        positions = numbers if self._groups is None else self._groups.positions(numbers)
        return RowPositions(len(rows), files, positions)

    def filter(self, mask: BoolArray) -> RowPositions:
        """Some of the rows."""
        return self.take(np.flatnonzero(mask))


_DENSE = 0.5
"""From this fraction of the bytes on, whole row groups are read."""
_BATCH = 32 << 20  # bytes of row groups, decompressed, that one thread reads at a time


@dataclass(frozen=True, slots=True)
class PageUsage:
    """What is read of a file for some rows, and what the row groups of these rows have in all."""

    row_groups: int
    all_row_groups: int
    pages: int
    all_pages: int
    bytes: int
    all_bytes: int

    @property
    def fraction(self) -> float:
        """How much of the columns is read, by bytes."""
        return self.bytes / max(self.all_bytes, 1)


@dataclass(frozen=True, slots=True, eq=False)
class PageAccess:
    """Rows of a file, by their pages."""

    file: int
    selection: Selection
    layout: FileLayout
    positions: Int64Array
    columns: Sequence[str]
    """What is read of it, as the file spells it."""

    @property
    def rows(self) -> int:
        """The rows that are looked at."""
        return len(self.positions)

    @property
    def usage(self) -> PageUsage:
        """What these rows need of the file."""
        return page_usage(self.layout, self.columns, self.positions)

    @property
    def is_sparse(self) -> bool:
        """Whether less than half of the columns is read."""
        leaves = (leaf for name in self.columns for leaf in self.layout.column(name).leaves)
        fewest = min((leaf.pieces.shape[1] for leaf in leaves), default=0)
        return 2 * len(self.positions) <= fewest or self.usage.fraction < _DENSE


@dataclass(frozen=True, slots=True, eq=False)
class WholeAccess:
    """Row groups of a file, whole or only some of their rows."""

    file: int
    selection: Selection
    scan: FileScan
    groups: Sequence[int]
    """Row groups that may hold a row, as the footer numbers them."""
    starts: Int64Array
    """The first row of each row group of the file, then the number of rows."""
    size: int
    """Bytes of the needed columns in these row groups."""
    positions: Int64Array | None
    """The rows, if they are known."""
    reason: str
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


def page_usage(layout: FileLayout, columns: Sequence[str], positions: Int64Array) -> PageUsage:
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
    return PageUsage(len(groups), len(starts) - 1, pages, all_pages, size, all_size)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows that match, with their files and positions."""

    table: pa.Table
    rows: RowPositions

    def __len__(self) -> int:
        return len(self.rows)


def table_schema(table: DataFiles, columns: Sequence[str]) -> pa.Schema:
    """The schema of some columns of the table; every column may be null."""
    return pa.schema([(name, table.columns.columns[name].arrow_type) for name in columns])


def conform(
    table: DataFiles, rows: pa.Table, columns: Sequence[str], positions: RowPositions
) -> pa.Table:
    """Columns of the table, from rows that were read of files of one schema.

    Args:
        table: The table.
        rows: What was read; it may have more columns.
        columns: Of the table, those that the files do not have among them.
        positions: Files and positions of the rows.

    Raises:
        UnsupportedError: A value does not fit the type that the table has.
    """
    schema = table_schema(table, columns)
    arrays = []
    for column in schema:
        if column.name in table.columns.partitions:
            values = _partition_values(table.partitions.column(column.name), positions)
        elif (own := table.columns.file_name(positions.first_file, column.name)) is not None:
            values = _converted(table, rows.column(own), column.name, positions.first_file)
        else:
            values = pa.nulls(positions.count, column.type)
        if values.type != column.type:
            values = _cast(table, values, column, positions.first_file)
        arrays.append(values)
    if not arrays:
        return rows_without_columns(positions.count)
    return pa.Table.from_arrays(arrays, schema=schema)


def _partition_values(
    values: pa.ChunkedArray, positions: RowPositions
) -> pa.Array | pa.ChunkedArray:
    if positions.one_file:
        return pa.repeat(values[positions.first_file], positions.count)
    return values.take(pa.array(positions.files))


def _converted(
    table: DataFiles, values: pa.ChunkedArray, column: str, file: int
) -> pa.ChunkedArray:
    convert = table.columns.conversion(int(table.columns.schema_of[file]), column)
    if convert is None:
        return values
    try:
        return convert(values)
    except UnsupportedError as error:
        raise UnsupportedError(f"{table.paths[file]}: column {column}: {error}") from None


def _cast(table: DataFiles, values: pa.ChunkedArray, field: pa.Field, file: int) -> pa.ChunkedArray:
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        problem = str(error).splitlines()[0]
        raise UnsupportedError(
            f"{table.paths[file]}: column {field.name}: found {values.type}, "
            f"expected {field.type} as in the table: {problem}"
        ) from None
