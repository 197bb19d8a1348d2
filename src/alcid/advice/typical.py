"""Queries that a column is typically asked, for advice without queries.

Three values of rows of the sample are looked up, so that frequent values come up more often, and
where values have an order a range of about one row of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from alcid.advice.sampling import spread
from alcid.predicate import Predicate, col
from alcid.types import DataType

__all__ = ["typical_queries"]

_LOOK_UPS = 3
_RANGE = 0.001  # of the rows
_UNORDERED = ("BOOLEAN", "BINARY", "VARBINARY")
_RARELY_EQUAL = ("FLOAT", "DOUBLE")


def typical_queries(
    column: str, data_type: DataType, values: Sequence[pa.Array], distinct: float | None
) -> Iterator[Predicate]:
    """Predicates on a column.

    Args:
        column: Its name.
        data_type: Its type.
        values: Some of its values, from several files.
        distinct: About how many distinct values there are.
    """
    filled = [one for one in values if len(one)]
    if not filled:
        return
    pooled = _literals(pa.concat_arrays(filled))
    if data_type.root not in _RARELY_EQUAL:
        looked_up = [_literal(pooled[int(place)]) for place in spread(len(pooled), _LOOK_UPS)]
        for value in dict.fromkeys(looked_up):
            if value is not None:
                yield col(column) == value
    if data_type.root not in _UNORDERED and (distinct is None or distinct * _RANGE >= 1):
        ordered = pooled.take(pc.array_sort_indices(pooled))
        middle = len(ordered) // 2
        last = min(middle + int(len(ordered) * _RANGE), len(ordered) - 1)
        begin, end = _literal(ordered[middle]), _literal(ordered[last])
        if begin is not None and end is not None:
            yield col(column).between(begin, end)


def _literals(values: pa.Array) -> pa.Array:
    """Values that Python has: its times end at microseconds."""
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return values.cast(pa.timestamp("us", kind.tz), safe=False)
    return values.cast(pa.time64("us"), safe=False) if kind == pa.time64("ns") else values


def _literal(value: pa.Scalar) -> Any:
    """The value in Python; None for text that is no UTF-8, and for years that Python has not."""
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return None
