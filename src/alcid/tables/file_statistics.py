"""The statistics of columns from a Parquet footer, as far as they can be trusted.

Arrow already drops what known writers got wrong. A bound of text may have been cut by the writer,
so it is never taken for a value; a NaN as a bound voids both; and whether there is a NaN no footer
says. What cannot be trusted is not known: no bound is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from alcid.bundle import ColumnStatistics, Statistics
from alcid.bundle.statistics import statistics_array
from alcid.errors import UnsupportedError
from alcid.parquet_file.metadata import row_count_problem
from alcid.tables.file_columns import FileColumn, stored_type
from alcid.types import DataType

__all__ = ["footer_statistics", "group_statistics", "value_statistics"]

_TEXT = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")


def value_statistics(
    column: FileColumn, values: pa.Array | pa.ChunkedArray
) -> ColumnStatistics | None:
    """The exact statistics of a column that was read; None if it has none."""
    if not column.has_bounds:
        return None
    try:
        found = ColumnStatistics.of(values, column.data_type)
        statistics_array(column.name, found.data_type, [found])
    except UnsupportedError:
        return None
    return found


def footer_statistics(column: FileColumn, metadata: pq.FileMetaData) -> ColumnStatistics | None:
    """What the footer says of a column; None if it gets no statistics at all.

    Where the footer cannot be trusted, only the type is known.
    """
    if not column.has_bounds or column.data_type is None:
        return None
    return _of_chunks(column, column.data_type, _chunks(column, metadata))


def group_statistics(column: FileColumn, metadata: pq.FileMetaData) -> Statistics | None:
    """The same for each row group by itself."""
    data_type = column.data_type
    if not column.has_bounds or data_type is None:
        return None
    found = [_of_chunks(column, data_type, [chunk]) for chunk in _chunks(column, metadata)]
    return Statistics(column.name, data_type, statistics_array(column.name, data_type, found))


_Chunk = tuple[int, pq.Statistics | None]


def _chunks(column: FileColumn, metadata: pq.FileMetaData) -> list[_Chunk]:
    """For each row group its rows, and what is said of the column; nothing by a doubtful footer."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    if row_count_problem(metadata):
        return [(group.num_rows, None) for group in groups]
    return [(group.num_rows, group.column(column.leaf).statistics) for group in groups]


def _of_chunks(
    column: FileColumn, data_type: DataType, chunks: Sequence[_Chunk]
) -> ColumnStatistics:
    chunks = [chunk for chunk in chunks if chunk[0]]
    nulls = _nulls(chunks)
    try:
        bounds = _bounds(chunks, stored_type(column.arrow_type))
        least, most = (None if bound is None else _scalar(bound, column) for bound in bounds)
        exact = data_type.root not in _TEXT
        found = ColumnStatistics(data_type, least, most, nulls, None, exact, exact)
        statistics_array(column.name, data_type, [found])  # refuses what cannot be
    except (UnsupportedError, pa.ArrowException, ValueError, TypeError, OverflowError):
        found = ColumnStatistics(data_type, nulls=nulls)
    return found


def _nulls(chunks: Sequence[_Chunk]) -> int | None:
    """The nulls of all row groups, if each says a number that can be."""
    total = 0
    for rows, known in chunks:
        if known is None or not known.has_null_count or not 0 <= known.null_count <= rows:
            return None
        total += known.null_count
    return total


def _bounds(chunks: Sequence[_Chunk], arrow_type: Any) -> tuple[Any, Any]:
    """The least and the greatest of all row groups that have a value; None where not known."""
    found: list[tuple[Any, Any]] = []
    for rows, known in chunks:
        if known is not None and known.has_min_max:
            pair = _ordered(known.min_raw, arrow_type), _ordered(known.max_raw, arrow_type)
            if not pair[0] <= pair[1]:  # as is so if one is NaN
                return None, None
            found.append(pair)
        elif known is None or not known.has_null_count or known.null_count != rows:
            return None, None
    if not found:
        return None, None
    return min(least for least, _ in found), max(most for _, most in found)


def _ordered(raw: Any, arrow_type: Any) -> Any:
    """A bound as a number or bytes that compare as the values do."""
    if types.is_unsigned_integer(arrow_type):
        return raw % (1 << arrow_type.bit_width)
    if types.is_decimal(arrow_type) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    if types.is_float16(arrow_type):
        raise UnsupportedError("bounds of a half float")
    return raw


def _scalar(bound: Any, column: FileColumn) -> Any:
    """A bound as `ColumnStatistics` takes it."""
    kind = stored_type(column.arrow_type)
    if types.is_decimal(kind):
        return _decimal(bound, kind.scale)
    if types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.scalar(bound, width).cast(kind)
    return bound


def _decimal(unscaled: int, scale: int) -> Decimal:
    """Exact, whatever the precision of the decimal context is."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))
