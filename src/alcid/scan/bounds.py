"""Pruning by min/max statistics, for many files or row groups at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.errors import UnsupportedError
from alcid.expressions import (
    AnyRow,
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundUnknown,
    BoundVisitor,
    InIntervals,
    Interval,
    NonNullRows,
    NotInIntervals,
    NullRows,
    Probe,
)
from alcid.expressions.row_values import RowColumn
from alcid.formats.file_index.keys import float_order, key_type, read_column
from alcid.index.bundle import Statistics
from alcid.types import BYTE_STRING_TYPES, FLOAT_TYPES, TIME_TYPES, DataType


@dataclass(frozen=True, slots=True, eq=False)
class PruningResult:
    """For each file: whether a row of it may match, and whether every row does.

    >>> one, two = (
    ...     PruningResult.uniform(2, may_match=True),
    ...     PruningResult(np.array([True, False]), np.zeros(2, bool)),
    ... )
    >>> (one & two).may_match.tolist(), (one | two).may_match.tolist()
    ([True, False], [True, True])
    """

    may_match: BoolArray
    all_match: BoolArray
    """Never where no row may match, except for a file without rows."""

    @classmethod
    def uniform(cls, count: int, *, may_match: bool, all_match: bool = False) -> PruningResult:
        """The same for all files."""
        return cls(np.full(count, may_match), np.full(count, all_match))

    def __and__(self, other: PruningResult) -> PruningResult:
        return PruningResult(self.may_match & other.may_match, self.all_match & other.all_match)

    def __or__(self, other: PruningResult) -> PruningResult:
        return PruningResult(self.may_match | other.may_match, self.all_match | other.all_match)


class _JoinLeaves(BoundVisitor[int, PruningResult]):
    """Joins the pruning results of leaves; the context is the number of files."""

    def __init__(self, evaluate: Callable[[BoundLeaf], PruningResult]) -> None:
        self._evaluate = evaluate

    def visit_and(self, node: BoundAnd, context: int) -> PruningResult:
        result = PruningResult.uniform(context, may_match=True, all_match=True)
        for part in node.parts:
            result &= part.accept(self, context)
        return result

    def visit_or(self, node: BoundOr, context: int) -> PruningResult:
        result = PruningResult.uniform(context, may_match=False)
        for part in node.parts:
            result |= part.accept(self, context)
        return result

    def visit_constant(self, node: BoundConstant, context: int) -> PruningResult:
        return PruningResult.uniform(context, may_match=node.value, all_match=node.value)

    def visit_unknown(self, _node: BoundUnknown, context: int) -> PruningResult:
        return PruningResult.uniform(context, may_match=True)

    def visit_leaf(self, node: BoundLeaf, _context: int) -> PruningResult:
        return self._evaluate(node)


def prune(
    predicate: BoundPredicate, count: int, evaluate: Callable[[BoundLeaf], PruningResult]
) -> PruningResult:
    """The pruning result of a predicate for some files, from those of its leaves.

    >>> from alcid.expressions import bind, parse
    >>> predicate = bind(parse("a = 1 AND FALSE"), lambda name: None)
    >>> prune(predicate, 1, lambda leaf: PruningResult.uniform(1, may_match=True)).may_match
    array([False])
    """
    return predicate.accept(_JoinLeaves(evaluate), count)


_FRACTIONS = (*FLOAT_TYPES, "DECIMAL")
_TEXT_SELECTIVITY = 0.01  # of a text equal to another, as nothing is known


class Bounds:
    """The min/max, nulls and NaN of a column in many files, or row groups, evaluated at once.

    What is not known never rules a file out, and never says that all of its rows match. In
    particular, a float column that may hold a NaN, which is greater than any other value, is not
    ruled out by a range without an upper end: `f > 5` keeps a file with a maximum of 3.
    """

    def __init__(self, statistics: Statistics, rows: Int64Array) -> None:
        """Take the statistics of some files, and how many rows each has; -1: not known."""
        self.statistics = statistics
        values, self._type = statistics.values, statistics.data_type
        nulls = values.field("nulls").fill_null(-1).to_numpy()
        self._known = pc.is_valid(values).to_numpy(zero_copy_only=False)
        self._nulls = nulls
        self._no_null = self._known & (nulls == 0)
        self._no_value = self._known & (nulls == rows) & (rows >= 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._null_share = np.where((nulls >= 0) & (rows > 0), nulls / rows, 0.0)
        has_nan = values.field("has_nan").fill_null(True).to_numpy(zero_copy_only=False)
        self._no_nan = ~has_nan if self._type.root in FLOAT_TYPES else np.ones(len(values), bool)
        minima, maxima = (_as_keys(values.field(name), self._type) for name in ("min", "max"))
        self._has_min, self._has_max = (
            self._known & pc.is_valid(bound).to_numpy(zero_copy_only=False)
            for bound in (minima, maxima)
        )
        self._arrays = minima, maxima
        self._min, self._max = RowColumn(minima), RowColumn(maxima)

    @property
    def minima(self) -> pa.Array:
        """The minimum of each file; null where it is not known. Of times and timestamps, keys."""
        return self._arrays[0]

    @property
    def maxima(self) -> pa.Array:
        """The maximum of each file, likewise."""
        return self._arrays[1]

    def evaluate(self, probe: Probe) -> PruningResult:
        """Whether a file may have rows of a probe, and whether all of its rows are such."""
        match probe:
            case NullRows():
                result = PruningResult(~self._no_null, self._no_value)
            case NonNullRows(exact):
                result = PruningResult(~self._no_value, self._no_null & exact)
            case InIntervals(intervals, exact):
                touched, inside = self._overlap(intervals)
                result = PruningResult(touched & ~self._no_value, inside & self._no_null & exact)
            case NotInIntervals(intervals, exact):
                touched, inside = self._overlap(intervals)
                result = PruningResult(~inside & ~self._no_value, ~touched & self._no_null & exact)
            case _:
                result = PruningResult.uniform(len(self._known), may_match=True)
        return PruningResult(result.may_match | ~self._known, result.all_match & self._known)

    def can_rule_out(self, probe: Probe) -> BoolArray:
        """The files of which enough is known to rule them out, for some value of the probe."""
        match probe:
            case NullRows() | NonNullRows():
                able = self._nulls >= 0
            case InIntervals(intervals):
                above_nan = any(self._takes_nan(end) for _, end in intervals)
                able = (self._has_min | self._has_max) & (self._no_nan | (not above_nan))
            case NotInIntervals():
                able = self._has_min & self._has_max
            case _:
                able = np.zeros(len(self._known), bool)
        result: BoolArray = self._known & (able | self._no_value)
        return result

    def _overlap(self, intervals: tuple[Interval, ...]) -> tuple[BoolArray, BoolArray]:
        """Whether a value may lie in one of the intervals, and whether all lie in one of them."""
        if intervals and self._keys is not None:
            return self._overlap_keys(intervals, *self._keys)
        touched, inside = np.zeros((2, len(self._known)), bool)
        for begin, end in intervals:
            touched |= (self._min.matching(InIntervals(((None, end),))) | ~self._has_min) & (
                self._max.matching(InIntervals(((begin, None),))) | ~self._has_max
            )
            whole = self._min.matching(InIntervals(((begin, None),))) & self._has_min
            whole &= self._max.matching(InIntervals(((None, end),))) & self._has_max
            inside |= whole & (self._no_nan | self._takes_nan(end))
            if self._takes_nan(end):
                touched |= ~self._no_nan
        return touched, inside

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """The bounds as keys that NumPy can sort; None if this type has no such keys."""
        minima, maxima = self._min.keys(), self._max.keys()
        if minima is None or maxima is None:
            return None
        if self._type.root in FLOAT_TYPES:  # the two zeros are equal
            minima, maxima = np.where(minima == 0, -1, minima), np.where(maxima == -1, 0, maxima)
        if minima.dtype == object:
            return minima, maxima
        return (
            np.where(self._has_min, minima, np.iinfo(np.int64).min),
            np.where(self._has_max, maxima, np.iinfo(np.int64).max),
        )

    def _overlap_keys(
        self,
        intervals: tuple[Interval, ...],
        minima: npt.NDArray[Any],
        maxima: npt.NDArray[Any],
    ) -> tuple[BoolArray, BoolArray]:
        """Find the first interval that ends above each minimum: no other can decide."""
        count, last = len(intervals), intervals[-1][1]
        is_open = last is None or (isinstance(last, int) and last > np.iinfo(np.int64).max)
        begins, ends = np.empty((2, count), minima.dtype)
        least = b"" if minima.dtype == object else np.iinfo(np.int64).min
        begins[:] = [least if begin is None else begin for begin, _ in intervals]
        ends[: count - is_open] = [end for _, end in intervals[: count - is_open]]
        if is_open:
            ends[-1] = begins[-1]
        above = np.searchsorted(ends[: count - is_open], minima, "right")
        chosen = np.minimum(above, count - 1)
        reaches = (begins[chosen] <= maxima).astype(bool) | ~self._has_max
        touched: BoolArray = (above < count) & reaches
        is_last = chosen == count - 1
        inside: BoolArray = (above < count) & (begins[chosen] <= minima).astype(bool)
        inside &= (maxima < ends[chosen]).astype(bool) | (is_last & is_open)
        inside &= self._has_min & self._has_max
        takes_nan = self._takes_nan(last)
        inside &= self._no_nan | (is_last & takes_nan)
        if takes_nan:
            touched |= ~self._no_nan
        return touched, inside

    def _takes_nan(self, end: object) -> bool:
        """Whether NaN, the greatest key, lies before the end of an interval."""
        return end is None or (isinstance(end, int) and end > key_type(self._type).maximum)

    def selectivity(self, probe: Probe) -> Float64Array:
        """Roughly the share of rows that a probe finds, if values are spread evenly."""
        filled = 1.0 - self._null_share
        match probe:
            case NullRows():
                return self._null_share
            case InIntervals(intervals):
                return filled * self._total_selectivity(intervals)
            case NotInIntervals(intervals):
                return filled * (1 - self._total_selectivity(intervals))
            case AnyRow():
                return np.ones(len(filled))
        return filled

    def _total_selectivity(self, intervals: Sequence[Interval]) -> Float64Array:
        total = np.zeros(len(self._known))
        for interval in intervals:
            total += self._interval_selectivity(interval)
        return np.minimum(total, 1.0)

    def _interval_selectivity(self, interval: Interval) -> Float64Array:
        if self._type.root in BYTE_STRING_TYPES or self._type.root == "BOOLEAN":
            bounded = interval[1] is not None and interval[0] is not None
            few = _TEXT_SELECTIVITY if self._type.root in BYTE_STRING_TYPES else 0.5
            return np.full(len(self._known), few if bounded else 0.5)
        minima, maxima = self._numbers
        begin, end = (self._number(bound) for bound in interval)
        low = minima if begin is None else np.maximum(minima, begin)
        high = maxima if end is None else np.minimum(maxima, end)
        with np.errstate(all="ignore"):  # an estimate: infinities and empty ranges give 0, 0.5 or 1
            selectivity = np.clip((high - low) / (maxima - minima), 0.0, 1.0)
        return np.where(np.isnan(selectivity), 0.5, selectivity)

    @cached_property
    def _numbers(self) -> tuple[Float64Array, Float64Array]:
        """The bounds as floats; the maxima of integers are one more."""
        minima, maxima = (
            np.array([math.nan if v is None else float(v) for v in _plain(a)], np.float64)
            for a in self._arrays
        )
        return minima, maxima + (self._type.root not in _FRACTIONS)

    def _number(self, bound: object) -> float | None:
        if not isinstance(bound, int):
            return None
        if self._type.root in FLOAT_TYPES:
            kind = key_type(self._type)
            return math.inf if bound >= kind.maximum else float_order(bound, kind.width)
        return float(bound) / 10**self._type.scale if self._type.root == "DECIMAL" else float(bound)


def _plain(bounds: pa.Array) -> list[Any]:
    """The bounds as Python numbers."""
    if pa.types.is_date(bounds.type):
        bounds = bounds.view(pa.int32())
    return bounds.to_pylist()  # type: ignore[no-any-return]


def _as_keys(bounds: pa.Array, data_type: DataType) -> pa.Array:
    """Bounds that compare with keys: for times and timestamps, the keys themselves."""
    if data_type.root not in TIME_TYPES or pa.types.is_null(bounds.type):
        return bounds
    try:
        column = read_column(bounds, data_type)
    except UnsupportedError:  # beyond what a key holds
        return pa.nulls(len(bounds), pa.int64())
    keys = column.spread(column.keys.astype(np.int64))
    return pa.array(keys, mask=pc.is_null(bounds).to_numpy(zero_copy_only=False))
