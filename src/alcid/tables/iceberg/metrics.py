"""What manifests say of a column in the data files of a table: bounds, nulls, NaN.

It is a hint, and written by many programs. What cannot be read, or contradicts itself, counts as
not known: the file is read then. Text is cut to 16 characters unless the table says otherwise, so
its bounds are never exact; those of numbers are.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from alcid.formats.arrays import IntArray
from alcid.iceberg_metadata.map_values import value_of
from alcid.iceberg_metadata.single_value_bounds import decoded_bounds
from alcid.tables.manifest_bounds import checked_bounds
from alcid.types import DataType

__all__ = ["column_metrics", "null_counts"]


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


def column_metrics(data: pa.Table, field: _HasId, data_type: DataType) -> pa.StructArray:
    """The statistics of a column of the table, of the type `statistics_type` gives.

    Args:
        data: The data files, as `Entries` has them.
        field: The column; not one within a struct, list or map.
        data_type: Its type as it is now; older files may have a narrower one.
    """
    row_counts = data["record_count"].chunk(0).to_numpy()
    least, most = (
        decoded_bounds(value_of(data[name].chunk(0), field.id), data_type)
        for name in ("lower_bounds", "upper_bounds")
    )
    nans = _counts(data, "nan_value_counts", field.id)
    return checked_bounds(
        data_type,
        least,
        most,
        null_counts(data, field.id),
        row_counts,
        refused=np.zeros(len(data), bool),
        has_nan=pa.array(nans > 0, mask=nans < 0),
    )


def null_counts(data: pa.Table, field_id: int) -> IntArray:
    """How many rows of each data file are null in a column; -1 where that is not known."""
    nulls = _counts(data, "null_value_counts", field_id)
    values, rows = _counts(data, "value_counts", field_id), data["record_count"].chunk(0).to_numpy()
    return np.where(values == rows, nulls, -1)  # counted in another way, they say nothing


def _counts(data: pa.Table, name: str, field_id: int) -> IntArray:
    """A count of each file; -1 where there is none."""
    counts: IntArray = value_of(data[name].chunk(0), field_id).fill_null(-1).to_numpy()
    return np.maximum(counts, -1)
