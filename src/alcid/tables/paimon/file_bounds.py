"""The statistics in manifests as what a plan asks: the bounds of one column in many files.

They are a hint, and written by many programs. What cannot be read, or contradicts itself, counts as
not known: the file is read then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.bundle.statistics import bound_type, statistics_type
from alcid.formats.arrays import IntArray
from alcid.formats.binary_row.stored import Mask
from alcid.paimon_metadata.row_bytes import salvage_packed
from alcid.paimon_metadata.statistics import RowStats
from alcid.types import MAX_LENGTH, DataType

__all__ = ["bounds_of"]

_BYTES: Final = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_FLOATS: Final = ("FLOAT", "DOUBLE")
_UNKNOWN: Final = ()
_ANY_BYTES: Final = DataType("VARBINARY", length=MAX_LENGTH)


def bounds_of(
    stats: Sequence[RowStats | None],
    column: int,
    types: Sequence[DataType],
    row_counts: IntArray,
) -> pa.StructArray:
    """The statistics of a column, of the type `statistics_type` gives; null where there are none.

    Args:
        stats: Of each file; None: there are none.
        column: The number of the column within the statistics.
        types: The types of all columns of the statistics. Where a file has statistics of another
            number of columns, nothing is known.
        row_counts: The rows of each file.

    >>> from alcid.paimon_metadata.statistics import FULL, collect
    >>> types = [DataType.parse("BIGINT")]
    >>> stats = collect(pa.table({"a": [3, None, 7]}), types, [FULL])
    >>> bounds_of([stats, None], 0, types, np.array([3, 5])).to_pylist()
    [{'min': 3, 'max': 7, 'min_exact': True, 'max_exact': True, 'nulls': 1, 'has_nan': False}, None]
    """
    data_type = types[column]
    nulls, refused = _nulls(stats, column, len(types))
    refused |= nulls > row_counts
    if pa.types.is_null(bound_type(data_type)):
        least = most = pa.nulls(len(stats))
    else:
        # Text is compared by its bytes: it does not matter here whether they are characters.
        kinds = [_ANY_BYTES if item.root in _BYTES else item for item in types]
        least, least_lost = salvage_packed([item and item.minimum for item in stats], column, kinds)
        most, most_lost = salvage_packed([item and item.maximum for item in stats], column, kinds)
        if data_type.root in _FLOATS:
            least, most = _numbers(least, most)
        if _has_nanos(data_type):
            most = _last_of_micros(most)
        crossed = _mask(pc.greater(least, most).fill_null(False))
        bounded = _mask(pc.or_(pc.is_valid(least), pc.is_valid(most)))
        refused |= least_lost | most_lost | crossed | (bounded & (nulls == row_counts))
    return _struct(data_type, least, most, pa.array(nulls, mask=nulls < 0), refused)


def _nulls(
    stats: Sequence[RowStats | None], column: int, width: int
) -> tuple[npt.NDArray[np.int64], Mask]:
    """The null counts, negative where not known, and which files have no statistics to be used."""
    counts = [_UNKNOWN if item is None else item.null_counts for item in stats]
    nulls = [
        -1 if count is None or len(count) != width or count[column] is None else count[column]
        for count in counts
    ]
    refused = [count is not None and len(count) != width for count in counts]
    return np.array(nulls, np.int64), np.array(refused, bool)


def _numbers(least: pa.Array, most: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bounds of floats with zeros on the outer side; none where one of them is NaN."""
    is_number = pc.invert(pc.or_kleene(pc.is_nan(least), pc.is_nan(most)).fill_null(False))
    outer = (
        pc.if_else(pc.equal(bounds, 0.0), pa.scalar(zero, bounds.type), bounds)
        for bounds, zero in ((least, -0.0), (most, 0.0))
    )
    least, most = (pc.if_else(is_number, bounds, None) for bounds in outer)
    return least, most


def _has_nanos(data_type: DataType) -> bool:
    return data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and data_type.precision > 6


def _last_of_micros(most: pa.Array) -> pa.Array:
    """Timestamps of whole microseconds moved to the last nanosecond of them.

    pypaimon leaves the nanoseconds out of bounds, though its data files have them.
    """
    ticks = most.view(pa.int64()).fill_null(0).to_numpy()
    last = np.minimum(ticks, np.iinfo(np.int64).max - 999) + 999
    moved = np.where(ticks % 1_000 == 0, last, ticks)
    return pa.array(moved, mask=_mask(pc.is_null(most))).view(most.type)


def _mask(array: pa.BooleanArray) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def _struct(
    data_type: DataType, least: pa.Array, most: pa.Array, nulls: pa.Array, refused: Mask
) -> pa.StructArray:
    """The statistics, without those that are refused."""
    min_exact = pa.repeat(data_type.root not in _BYTES, len(nulls))
    max_exact = pa.repeat(not (data_type.root in _BYTES or _has_nanos(data_type)), len(nulls))
    # A program that leaves NaN out of its bounds does not say so.
    has_nan = pa.scalar(None if data_type.root in _FLOATS else False, pa.bool_())
    children = [least, most, min_exact, max_exact, nulls, pa.repeat(has_nan, len(nulls))]
    fields = list(statistics_type(data_type))
    return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(refused))
