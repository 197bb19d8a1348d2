"""Rows of Parquet files by their position: only the pages that hold them are read.

Arrow reads row groups, not pages. So the pages are found by the offset index and put together into
a small file in memory, one for each column, with the pages of all files; Arrow decodes that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from alcid._arrays import Int64Array
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.datafiles.parquet.layout import FileLayout, read_layout
from alcid.datafiles.parquet.pages import Wanted, read_run
from alcid.datafiles.parquet.row_groups import open_scan
from alcid.datafiles.parquet.virtual import arrow_schema
from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.storage.ranges import Coalescing, ReadReport

Positions = npt.NDArray[np.integer] | Sequence[int] | BitMap | None
"""Rows of a file, counted from 0, ascending and each once; None for all of them."""


class FileRows(NamedTuple):
    """Some rows of a file."""

    source: Source
    layout: FileLayout | None = None
    """Where its pages are; None to read that from the file."""
    positions: Positions = None


def read_rows(
    source: Source,
    positions: Positions = None,
    columns: Sequence[str] | None = None,
    *,
    layout: FileLayout | None = None,
    coalescing: Coalescing | None = None,
    read_ranges: ReadMany = read_each,
    report: ReadReport | None = None,
) -> pa.Table:
    """Read rows of one file, in its order, with the types that Arrow gives them.

    INT96 is read as microseconds. The metadata of the file's schema is left out.

    >>> import io, pyarrow.parquet as pq
    >>> from alcid.formats.source import BytesSource
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": range(100)}), file, write_page_index=True)
    >>> read_rows(BytesSource(file.getvalue()), [3, 98]).to_pydict()
    {'id': [3, 98]}

    Args:
        source: The file.
        positions: The rows; by default all.
        columns: The columns, in the order that is wanted; by default all.
        layout: Where the pages are, if it is known; it must have the columns. All rows are read
            faster without it, as a `ParquetScan` does.
        coalescing: Which ranges are read in one request.
        read_ranges: Reads the ranges of a round; `Storage.read_ranges` for files of a storage.
        report: Counts what is read.

    Raises:
        FormatError: The file is damaged, or it has no such position.
        ColumnError: It has no such column, or more than one.
        UnsupportedError: A column is encrypted, or INT96 timestamps or decimals do not fit their
            type.
    """
    if positions is None and layout is None:
        scan = open_scan(source, read_ranges=read_ranges, report=report)
        return scan.read(
            None, columns, coalescing=coalescing, read_ranges=read_ranges, report=report
        )
    return read_many(
        [FileRows(source, layout, positions)],
        columns,
        coalescing=coalescing,
        read_ranges=read_ranges,
        report=report,
    )


def read_many(
    files: Sequence[FileRows],
    columns: Sequence[str] | None = None,
    *,
    coalescing: Coalescing | None = None,
    read_ranges: ReadMany = read_each,
    report: ReadReport | None = None,
) -> pa.Table:
    """Read rows of several files, one file after the other, with as few calls as possible.

    The columns must be of the same types in every file; files whose columns were described in the
    same bytes are decoded together. For the arguments, see `read_rows`.

    Raises:
        FormatError: A file is damaged, or it has no such position.
        ColumnError: A file has no such column, or more than one.
        UnsupportedError: A column is encrypted, is of another type than in the first file, or has
            INT96 timestamps or decimals that do not fit their type.
    """
    report = ReadReport() if report is None else report
    coalescing = Coalescing() if coalescing is None else coalescing
    wanted = [_wanted(FileRows(*file), columns, coalescing, report, read_ranges) for file in files]
    if not wanted:
        raise UnsupportedError("no file: it is not known of which types the columns are")
    first = wanted[0]
    for file in wanted[1:]:
        _check_names(file, first)
    if not first.columns:
        return rows_without_columns(sum(len(file.positions) for file in wanted))
    rows: pa.Table | None = None
    with_rows = (file for file in wanted if len(file.positions))
    for _, alike in groupby(with_rows, key=lambda file: file.kind):
        run = list(alike)
        table = read_run(run, coalescing, report, read_ranges)
        rows = table if rows is None else _appended(rows, table, run[0].source.name)
    if rows is None:
        fields = tuple(column.field for column in first.columns)
        return arrow_schema(fields, first.source.name).empty_table()
    return rows


def _wanted(
    file: FileRows,
    columns: Sequence[str] | None,
    coalescing: Coalescing,
    report: ReadReport,
    read_ranges: ReadMany,
) -> Wanted:
    source, layout, positions = file
    if layout is None:
        layout = read_layout(
            source, columns, report=report, coalescing=coalescing, read_ranges=read_ranges
        )
    if layout.end > source.size:
        raise FormatError(
            "pages outside of the file", file=source.name, found=source.size, expected=layout.end
        )
    chosen = layout.columns if columns is None else tuple(map(layout.column, columns))
    for column in chosen:
        if not column.leaves:
            raise UnsupportedError(f"{source.name}: column {column.field.name}: {column.whole}")
    return Wanted(source, layout.starts, chosen, _positions(positions, layout.rows, source.name))


def _positions(positions: Positions, rows: int, file: str) -> Int64Array:
    """The rows as an array, checked."""
    if positions is None:
        return np.arange(rows)
    array = np.asarray(positions.to_array() if isinstance(positions, BitMap) else positions)
    if not array.size:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise UnsupportedError(
            f"{file}: positions: found {array.ndim} dimensions of {array.dtype}, expected integers"
        )
    if (array[1:] <= array[:-1]).any():
        raise FormatError("positions do not ascend", file=file)
    if array[0] < 0 or array[-1] >= rows:
        raise FormatError(
            "position outside of the file",
            file=file,
            found=array[0] if array[0] < 0 else array[-1],
            expected=f"0 to {rows - 1}" if rows else "none",
        )
    return array.astype(np.int64, copy=False)


def _check_names(file: Wanted, first: Wanted) -> None:
    names, expected = ([column.field.name for column in read.columns] for read in (file, first))
    if names != expected:
        raise ColumnError(
            f"{file.source.name}: found other columns than in {first.source.name}; "
            "name those to read"
        )


def _appended(table: pa.Table, more: pa.Table, file: str) -> pa.Table:
    """Rows of files that describe their columns otherwise, but of the same types."""
    fields: list[pa.Field] = []
    for before, after in zip(table.schema, more.schema, strict=True):
        if before.type != after.type:
            raise UnsupportedError(
                f"{file}: column {before.name}: found {after.type}, "
                f"expected {before.type} as in the files before"
            )
        fields.append(before.with_nullable(before.nullable or after.nullable))
    arrays = [
        pa.chunked_array([*before.chunks, *after.chunks], before.type)
        for before, after in zip(table.columns, more.columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
