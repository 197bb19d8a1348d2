"""The statistics of columns from a Parquet footer, as far as they can be trusted.

Arrow already drops what known writers got wrong. A bound of text may have been cut by the writer,
so it is never taken for a value; a NaN as a bound voids both; and whether there is a NaN no footer
says. What cannot be trusted is not known: no bound is better than a wrong one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from alcid.bundle import ColumnStatistics
from alcid.bundle.statistics import statistics_array
from alcid.errors import UnsupportedError
from alcid.tables.file_columns import FileColumn

__all__ = ["footer_statistics", "value_statistics"]

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
    data_type = column.data_type
    chunks = [
        (group.num_rows, group.column(column.leaf).statistics)
        for number in range(metadata.num_row_groups)
        if (group := metadata.row_group(number)).num_rows
    ]
    nulls = _nulls(chunks)
    try:
        bounds = _bounds(chunks, _value_type(column.arrow_type))
        least, most = (None if bound is None else _scalar(bound, column) for bound in bounds)
        exact = data_type.root not in _TEXT
        found = ColumnStatistics(data_type, least, most, nulls, None, exact, exact)
        statistics_array(column.name, data_type, [found])  # refuses what cannot be
    except (UnsupportedError, pa.ArrowException, ValueError, TypeError, OverflowError):
        found = ColumnStatistics(data_type, nulls=nulls)
    return found


def _nulls(chunks: list[tuple[int, pq.Statistics | None]]) -> int | None:
    """The nulls of all row groups, if each says a number that can be."""
    total = 0
    for rows, known in chunks:
        if known is None or not known.has_null_count or not 0 <= known.null_count <= rows:
            return None
        total += known.null_count
    return total


def _bounds(chunks: list[tuple[int, pq.Statistics | None]], arrow_type: Any) -> tuple[Any, Any]:
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


def _value_type(arrow_type: Any) -> Any:
    """The type without dictionary or extension, which Parquet does not store."""
    while isinstance(arrow_type, pa.BaseExtensionType) or types.is_dictionary(arrow_type):
        known = isinstance(arrow_type, pa.BaseExtensionType)
        arrow_type = arrow_type.storage_type if known else arrow_type.value_type
    return arrow_type


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
    kind = _value_type(column.arrow_type)
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
