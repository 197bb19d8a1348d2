"""The statistics of columns from a Parquet footer, as far as they can be trusted.

Which are trusted, `alcid.parquet_file.statistics` says. A bound of text may have been cut by the
writer, so it is never taken for a value. What cannot be trusted is not known: no bound is better
than a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from alcid.bundle import ColumnStatistics, Statistics
from alcid.bundle.statistics import statistics_array
from alcid.errors import UnsupportedError
from alcid.parquet_file.statistics import ChunkStatistics, FooterStatistics
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


def footer_statistics(column: FileColumn, footer: FooterStatistics) -> ColumnStatistics | None:
    """What the footer says of a column; None if it gets no statistics at all.

    Where the footer cannot be trusted, only the type is known.
    """
    if not column.has_bounds or column.data_type is None:
        return None
    return _of_chunks(column, column.data_type, footer.of_leaf(column.leaf))


def group_statistics(column: FileColumn, footer: FooterStatistics) -> Statistics | None:
    """The same for each row group by itself."""
    data_type = column.data_type
    if not column.has_bounds or data_type is None:
        return None
    found = [_of_chunks(column, data_type, [chunk]) for chunk in footer.of_leaf(column.leaf)]
    return Statistics(column.name, data_type, statistics_array(column.name, data_type, found))


def _of_chunks(
    column: FileColumn, data_type: DataType, chunks: Sequence[ChunkStatistics]
) -> ColumnStatistics:
    chunks = [chunk for chunk in chunks if chunk.rows]
    nulls, nans = (_sum([getattr(chunk, name) for chunk in chunks]) for name in ("nulls", "nans"))
    has_nan = None if nans is None else nans > 0
    bounded = [chunk for chunk in chunks if not chunk.is_empty]
    if not bounded or any(chunk.minimum is None for chunk in bounded):
        return ColumnStatistics(data_type, nulls=nulls, has_nan=has_nan)
    least = min(bounded, key=lambda chunk: chunk.minimum)
    most = max(bounded, key=lambda chunk: chunk.maximum)
    is_text = data_type.root in _TEXT
    try:
        found = ColumnStatistics(
            data_type,
            _scalar(least.minimum, column),
            _scalar(most.maximum, column),
            nulls,
            has_nan,
            not is_text and all(one.minimum_exact for one in bounded),
            not is_text and all(one.maximum_exact for one in bounded),
        )
        statistics_array(column.name, data_type, [found])  # refuses what cannot be
    except (UnsupportedError, pa.ArrowException, ValueError, TypeError, OverflowError):
        return ColumnStatistics(data_type, nulls=nulls, has_nan=has_nan)
    return found


def _sum(counts: Sequence[int | None]) -> int | None:
    """The count over all row groups, if it is known of each."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _scalar(bound: Any, column: FileColumn) -> Any:
    """A bound as `ColumnStatistics` takes it."""
    kind = stored_type(column.arrow_type)
    if types.is_unsigned_integer(kind) and not 0 <= bound < 1 << kind.bit_width:
        raise UnsupportedError(f"a bound of {bound} in a column of {kind}")
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
