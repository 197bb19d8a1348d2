"""Statistics of a column of a data file: min, max, nulls, NaN.

Bounds hold in Spark's order: text by its UTF-8 bytes, NaN above every number and never a bound, and
a bound of zero is the zero on the outer side, since -0.0 equals 0.0 there. Long text is cut: a
bound then is no value of the column, but no value lies beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import plain
from alcid.errors import UnsupportedError
from alcid.types import BYTE_STRING_TYPES, FLOAT_TYPES, DataType

LONGEST_BOUND = 64
"""Bytes of text that are kept of a bound."""

_ORDERED = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL"),
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *FLOAT_TYPES,
    *BYTE_STRING_TYPES,
)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of a column in one data file; None is what is not known.

    >>> import pyarrow as pa
    >>> ColumnStatistics.of(pa.array(["pear", None, "fig"]))
    ColumnStatistics(data_type=DataType.parse('STRING'), minimum=b'fig', maximum=b'pear', nulls=1,
                     has_nan=False, minimum_exact=True, maximum_exact=True)
    """

    data_type: DataType
    """The type that the column has in this file; other files may have another."""
    minimum: Any = None
    """The least value that is not null, as a Python value or an Arrow scalar."""
    maximum: Any = None
    """The greatest value that is neither null nor NaN."""
    nulls: int | None = None
    """How many rows are null. As many as there are rows: there is no value at all."""
    has_nan: bool | None = None
    """Whether there is a NaN; where there cannot be one it does not matter."""
    minimum_exact: bool = True
    """False if `minimum` may lie below the least value."""
    maximum_exact: bool = True
    """False if `maximum` may lie above the greatest value."""

    @classmethod
    def of(
        cls, column: pa.Array | pa.ChunkedArray, data_type: DataType | None = None
    ) -> ColumnStatistics:
        """The statistics of a column at hand."""
        data_type = DataType.from_arrow(column.type) if data_type is None else data_type
        values = plain(column)
        nulls = values.null_count  # not that of the column: a dictionary may hold a null
        kind = bound_type(data_type)
        if pa.types.is_null(kind):
            return cls(data_type, nulls=nulls, has_nan=False)
        try:
            values = values.cast(pa.large_binary() if data_type.root in BYTE_STRING_TYPES else kind)
        except pa.ArrowException as error:
            raise UnsupportedError(f"statistics of {data_type}: {error}") from None
        values = values.drop_null()
        has_nan = False
        if data_type.root in FLOAT_TYPES:
            is_nan = pc.is_nan(values)
            has_nan = bool(pc.any(is_nan).as_py())
            values = values.filter(pc.invert(is_nan)) if has_nan else values
        least, most = pc.min_max(values).values()
        if data_type.root in BYTE_STRING_TYPES:
            least, most = least.as_py(), most.as_py()
        return cls(
            data_type,
            least if len(values) else None,
            most if len(values) else None,
            nulls,
            has_nan,
        )


def bound_type(data_type: DataType) -> Any:
    """The Arrow type of bounds: text as its bytes, null where values have no order."""
    if data_type.root in BYTE_STRING_TYPES:
        return pa.binary()
    return data_type.to_arrow() if data_type.root in _ORDERED else pa.null()


def statistics_type(data_type: DataType) -> Any:
    """The Arrow type of the statistics of a column."""
    bound = bound_type(data_type)
    return pa.struct(
        [
            pa.field("min", bound),
            pa.field("max", bound),
            pa.field("min_exact", pa.bool_()),
            pa.field("max_exact", pa.bool_()),
            pa.field("nulls", pa.int64()),
            pa.field("has_nan", pa.bool_()),
        ]
    )


def statistics_array(
    column: str, data_type: DataType, entries: Sequence[ColumnStatistics | None]
) -> pa.StructArray:
    """The statistics of a column in many files, as they are stored; None: not of this type.

    Raises:
        UnsupportedError: A bound is not of the type, is NaN, or the least is above the greatest.
    """
    present = [entry or ColumnStatistics(data_type) for entry in entries]
    kind = bound_type(data_type)
    try:
        minima = pa.array([_plain_value(entry.minimum, kind) for entry in present], kind)
        maxima = pa.array([_plain_value(entry.maximum, kind) for entry in present], kind)
        nulls = pa.array([entry.nulls for entry in present], pa.int64())
        if not pa.types.is_null(kind) and pc.any(pc.greater(minima, maxima)).as_py():
            raise UnsupportedError(f"column {column!r}: a least value above the greatest")
    except (pa.ArrowException, TypeError, OverflowError) as error:
        if isinstance(error, UnsupportedError):
            raise
        raise UnsupportedError(f"statistics of column {column!r}, {data_type}: {error}") from None
    min_exact = [entry.minimum_exact for entry in present]
    max_exact = [entry.maximum_exact for entry in present]
    if data_type.root in FLOAT_TYPES:
        minima = _zeros_as(-0.0, _numbers(minima, [entry.minimum for entry in present], column))
        maxima = _zeros_as(0.0, _numbers(maxima, [entry.maximum for entry in present], column))
        has_nan = [entry.has_nan for entry in present]
    else:
        has_nan = [False] * len(present)
    if data_type.root in BYTE_STRING_TYPES:
        minima, min_exact = _cut(minima, min_exact, _cut_down)
        maxima, max_exact = _cut(maxima, max_exact, _cut_up)
    children = [
        *(minima, maxima, pa.array(min_exact, pa.bool_()), pa.array(max_exact, pa.bool_())),
        *(nulls, pa.array(has_nan, pa.bool_())),
    ]
    absent = pa.array([entry is None for entry in entries], pa.bool_())
    fields = list(statistics_type(data_type))
    return pa.StructArray.from_arrays(children, fields=fields, mask=absent)


def _plain_value(value: Any, kind: Any) -> Any:
    if isinstance(value, pa.Scalar):
        return value.cast(kind)
    return value.encode() if isinstance(value, str) else value


def _numbers(bounds: pa.Array, values: Sequence[Any], column: str) -> pa.Array:
    """Bounds that are numbers, and the very numbers that were given."""
    for bound, value in zip(bounds.to_pylist(), values, strict=True):
        number = value.as_py() if isinstance(value, pa.Scalar) else value
        if bound != number:  # NaN, or rounded to a float
            raise UnsupportedError(f"column {column!r}: {value!r} is no bound")
    return bounds


def _zeros_as(zero: float, bounds: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(bounds, 0.0), pa.scalar(zero, bounds.type), bounds)


def _cut(bounds: pa.Array, exact: list[bool], cut: Any) -> tuple[pa.Array, list[bool]]:
    """Bounds that are not longer than `LONGEST_BOUND`, and which of them are exact."""
    lengths = pc.fill_null(pc.binary_length(bounds), 0).to_numpy()
    too_long = np.flatnonzero(lengths > LONGEST_BOUND).tolist()
    if not too_long:
        return bounds, exact
    values, exact = bounds.to_pylist(), list(exact)
    for position in too_long:
        values[position], exact[position] = cut(values[position]), False
    return pa.array(values, bounds.type), exact


def _cut_down(value: bytes) -> bytes:
    return value[:LONGEST_BOUND]


def _cut_up(value: bytes) -> bytes | None:
    """The least bytes that are above all that begin like `value`; None if there are none."""
    prefix = value[:LONGEST_BOUND].rstrip(b"\xff")
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else None
