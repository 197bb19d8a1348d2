"""Which rows match, and how they are sorted, by brute force over the distinct values of columns.

A leaf is asked of each distinct value (`alcid.testing.oracle`), and the results are spread over
the rows; AND, OR and NOT are evaluated here, with three truth values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from alcid._arrays import BoolArray
from alcid.expressions import (
    And,
    Constant,
    Not,
    Or,
    Predicate,
)
from alcid.testing import matching_rows
from alcid.types import DataType
from tests.cross.data import Column

__all__ = ["matches", "ranks"]


class _Truths(NamedTuple):
    """For each row, whether the predicate is true and whether it is false; NULL is neither."""

    true: BoolArray
    false: BoolArray


def matches(columns: Mapping[str, Column], predicate: Predicate) -> BoolArray:
    """The rows for which a predicate is true."""
    return _truths(columns, predicate).true


def _truths(columns: Mapping[str, Column], predicate: Predicate) -> _Truths:
    match predicate:
        case Not(child):
            true, false = _truths(columns, child)
            return _Truths(false, true)
        case And(parts) | Or(parts):
            trues, falses = zip(*(_truths(columns, part) for part in parts), strict=True)
            if isinstance(predicate, And):
                return _Truths(np.logical_and.reduce(trues), np.logical_or.reduce(falses))
            return _Truths(np.logical_or.reduce(trues), np.logical_and.reduce(falses))
        case Constant(value):
            count = len(next(iter(columns.values())).codes)
            return _Truths(np.full(count, value is True), np.full(count, value is False))
    (name,) = predicate.columns()
    column = columns[name]
    truths = (_spread(column, name, wanted_truth) for wanted_truth in (predicate, Not(predicate)))
    return _Truths(*truths)


def _spread(column: Column, name: str, leaf: Predicate) -> BoolArray:
    holds = np.zeros(len(column.values), bool)
    holds[matching_rows({name: column.values}, {name: column.data_type}, leaf)] = True
    return holds[column.codes]


def ranks(column: Column, *, descending: bool, nulls_first: bool) -> npt.NDArray[np.int64]:
    """The position of each row among the distinct sort keys of a column."""
    keys = [_sort_key(value, column.data_type) for value in column.values[:-1]]
    ordered: Sequence[Any] = sorted(set(keys), reverse=descending)
    rank_of = {key: number for number, key in enumerate(ordered)}
    null = -1 if nulls_first else len(ordered)
    return np.array([*(rank_of[key] for key in keys), null], np.int64)[column.codes]


def _sort_key(value: Any, data_type: DataType) -> Any:
    """A key that Python sorts as Spark does: NaN above all, zeros equal, texts by their bytes."""
    match data_type.root:
        case "FLOAT" | "DOUBLE":
            return (1, 0.0) if math.isnan(value) else (0, value)
        case "CHAR":
            return value.ljust(data_type.length).encode()
        case "VARCHAR":
            return value.encode()
    return value
