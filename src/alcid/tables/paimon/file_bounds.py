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

from alcid.bundle.statistics import bound_type
from alcid.formats.arrays import IntArray
from alcid.formats.binary_row.stored import Mask
from alcid.paimon_metadata.row_bytes import salvage_packed
from alcid.paimon_metadata.statistics import RowStats
from alcid.tables.manifest_bounds import TEXT, checked_bounds
from alcid.types import MAX_LENGTH, DataType

__all__ = ["bounds_of"]

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
    if pa.types.is_null(bound_type(data_type)):
        least = most = pa.nulls(len(stats))
    else:
        # Text is compared by its bytes: it does not matter here whether they are characters.
        kinds = [_ANY_BYTES if item.root in TEXT else item for item in types]
        least, least_lost = salvage_packed([item and item.minimum for item in stats], column, kinds)
        most, most_lost = salvage_packed([item and item.maximum for item in stats], column, kinds)
        refused |= least_lost | most_lost
        if _has_nanos(data_type):
            most = _last_of_micros(most)
    return checked_bounds(
        data_type,
        least,
        most,
        nulls,
        row_counts,
        refused=refused,
        max_exact=not _has_nanos(data_type),
    )


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


def _has_nanos(data_type: DataType) -> bool:
    return data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and data_type.precision > 6


def _last_of_micros(most: pa.Array) -> pa.Array:
    """Timestamps of whole microseconds moved to the last nanosecond of them.

    pypaimon leaves the nanoseconds out of bounds, though its data files have them.
    """
    ticks = most.view(pa.int64()).fill_null(0).to_numpy()
    last = np.minimum(ticks, np.iinfo(np.int64).max - 999) + 999
    moved = np.where(ticks % 1_000 == 0, last, ticks)
    return pa.array(moved, mask=pc.is_null(most).to_numpy(zero_copy_only=False)).view(most.type)
