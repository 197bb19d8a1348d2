"""What the value of a partition says about the column that it is made of.

| transform               | a partition value `v` means                                         |
|-------------------------|---------------------------------------------------------------------|
| identity                | every value is `v`                                                  |
| truncate[W]             | numbers from `v` to `v + W - 1`; text that begins with `v`          |
| year, month, day, hour  | moments within that one                                             |
| bucket[N]               | values whose hash falls into bucket `v`: no bounds                  |
| void, any other         | nothing                                                             |

Null means that all values are null.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import plain
from alcid.iceberg_metadata.time_bounds import UNITS, time_bounds
from alcid.iceberg_metadata.truncated_bounds import truncated_bounds
from alcid.types import DataType

__all__ = ["TransformBounds", "bucket_count", "transform_bounds"]

_WITH_NUMBER: Final = re.compile(r"(bucket|truncate)\[([0-9]{1,10})\]")
_TEXT: Final = ("VARCHAR", "VARBINARY")
_FLOATS: Final = ("FLOAT", "DOUBLE")


class TransformBounds(NamedTuple):
    """Bounds of a column in many files, both ends included; null where one is not known."""

    least: pa.Array
    """Of the Arrow type of the column, but text as its bytes."""
    most: pa.Array
    all_null: npt.NDArray[np.bool_]
    """True where every row is null."""


def transform_bounds(
    transform: str, values: pa.Array | pa.ChunkedArray, data_type: DataType
) -> TransformBounds | None:
    """The bounds of a column, from the partition values of files of one and the same spec.

    Do not give values of files of other specs: theirs are null because they have none.

    Args:
        transform: As the spec has it.
        values: The partition value of each file.
        data_type: The type of the column.

    Returns:
        None if the transform says nothing, or the values are not of a type that it gives.

    >>> years = transform_bounds("year", pa.array([54, None]), DataType("DATE"))
    >>> [str(years.least[0]), str(years.most[0]), years.all_null.tolist()]
    ['2024-01-01', '2024-12-31', [False, True]]
    """
    values = plain(values)
    try:
        bounds = _bounds(transform, values, data_type)
    except pa.ArrowException:  # values of a type that the transform never gives
        return None
    if bounds is None:
        return None
    all_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    if transform.startswith("truncate") and data_type.root == "DECIMAL":
        # Rounded down, a number may have a digit too many for its type: engines show null then.
        all_null = np.zeros(len(values), bool)
    return TransformBounds(*bounds, all_null)


def bucket_count(transform: str) -> int | None:
    """How many buckets there are; None if the transform is no `bucket`.

    >>> bucket_count("bucket[16]"), bucket_count("day")
    (16, None)
    """
    name, number = _parsed(transform)
    return number or None if name == "bucket" else None


def _parsed(transform: str) -> tuple[str, int]:
    """A transform and its number, 0 if there is none."""
    found = _WITH_NUMBER.fullmatch(transform)
    return (found[1], int(found[2])) if found else (transform, 0)


def _bounds(
    transform: str, values: pa.Array, data_type: DataType
) -> tuple[pa.Array, pa.Array] | None:
    name, number = _parsed(transform)
    if name == "identity":
        return _identity(values, data_type)
    if name in UNITS:
        return time_bounds(name, values, data_type)
    if name == "truncate" and number:
        return truncated_bounds(values, data_type, number)
    if name == "bucket" and number:
        kind = pa.binary() if data_type.root in _TEXT else data_type.to_arrow()
        return pa.nulls(len(values), kind), pa.nulls(len(values), kind)
    return None


def _identity(values: pa.Array, data_type: DataType) -> tuple[pa.Array, pa.Array] | None:
    if data_type.children:
        return None
    values = values.cast(pa.binary() if data_type.root in _TEXT else data_type.to_arrow())
    if data_type.root not in _FLOATS:
        return values, values
    # -0.0 equals 0.0, though they are two partitions; NaN is no bound.
    values = pc.if_else(pc.is_nan(values), None, values)
    least, most = (
        pc.if_else(pc.equal(values, 0.0), pa.scalar(zero, values.type), values)
        for zero in (-0.0, 0.0)
    )
    return least, most
