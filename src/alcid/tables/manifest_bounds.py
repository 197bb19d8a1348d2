"""Bounds of a column in many files, as manifests give them, checked for planning.

A file is skipped without a look at it where its bounds exclude a value, and they are written by
many programs. So the statistics of a column in a file count as unknown, and the file is kept, where

- they cannot be decoded, or are of another number of columns (`refused`, by the caller),
- there are more nulls than rows, or as many and yet a bound,
- the minimum is greater than the maximum.

A bound that is NaN counts as unknown. Of floats it is not known whether there is a NaN, unless the
manifest counts them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, IntArray
from alcid.index.bundle.statistics import bound_type, statistics_type
from alcid.types import BYTE_STRING_TYPES, FLOAT_TYPES, DataType


def checked_bounds(
    data_type: DataType,
    lower: pa.Array,
    upper: pa.Array,
    nulls: Int64Array,
    row_counts: IntArray,
    *,
    refused: BoolArray,
    max_exact: bool = True,
    has_nan: pa.BooleanArray | None = None,
) -> pa.StructArray:
    """The statistics of a column, of the type `statistics_type` gives; null where refused.

    Args:
        data_type: The type of the column.
        lower: The lower bound of each file, of the type `bound_type` gives.
        upper: The upper bound of each file, of the same type.
        nulls: How many rows of each file are null; negative where not known.
        row_counts: The rows of each file.
        refused: Files whose statistics are no use.
        max_exact: False if `upper` may lie above the max, whatever the type.
        has_nan: Of floats, whether a file has a NaN; null where unknown. Bounds alone do not tell:
            many writers leave NaN out of them.

    >>> import numpy as np
    >>> bound, counts = pa.array([3]), np.array([1])  # as many nulls as rows, and yet a bound
    >>> checked_bounds(DataType("BIGINT"), bound, bound, counts, counts, refused=np.array([False]))[
    ...     0
    ... ]
    <pyarrow.StructScalar: None>
    """
    count = len(nulls)
    refused = refused | (nulls > row_counts)
    if data_type.root in FLOAT_TYPES:
        is_number = pc.invert(pc.or_kleene(pc.is_nan(lower), pc.is_nan(upper)).fill_null(False))
        lower, upper = _numbers(lower, upper, is_number)
        # A writer that takes NaN for a bound is not believed when it counts NaN, either.
        counted = pa.nulls(count, pa.bool_()) if has_nan is None else has_nan
        has_nan = pc.if_else(is_number, counted, None)
    else:
        has_nan = pa.repeat(False, count)
    if not pa.types.is_null(bound_type(data_type)):
        crossed = _mask(pc.greater(lower, upper).fill_null(False))
        bounded = _mask(pc.or_(pc.is_valid(lower), pc.is_valid(upper)))
        refused |= crossed | (bounded & (nulls == row_counts))
    is_text = data_type.root in BYTE_STRING_TYPES
    children = [
        lower,
        upper,
        pa.repeat(not is_text, count),
        pa.repeat(max_exact and not is_text, count),
        pa.array(nulls, mask=nulls < 0),
        has_nan,
    ]
    fields = list(statistics_type(data_type))
    return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(refused))


def _numbers(
    lower: pa.Array, upper: pa.Array, is_number: pa.BooleanArray
) -> tuple[pa.Array, pa.Array]:
    """Bounds of floats with zeros on the outer side, where both are numbers."""
    lower, upper = (
        pc.if_else(pc.equal(bounds, 0.0), pa.scalar(zero, bounds.type), bounds)
        for bounds, zero in ((lower, -0.0), (upper, 0.0))
    )
    return pc.if_else(is_number, lower, None), pc.if_else(is_number, upper, None)


def _mask(array: pa.BooleanArray) -> BoolArray:
    mask: BoolArray = array.to_numpy(zero_copy_only=False)
    return mask
