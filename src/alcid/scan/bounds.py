"""Least and greatest values held against a question, for many files or row groups at once.

What is known of many files, or row groups, before any of their rows is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.errors import UnsupportedError
from alcid.expressions import (
    Anything,
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundUnknown,
    BoundVisitor,
    Interval,
    NotNulls,
    Nulls,
    Outside,
    Question,
    Within,
)
from alcid.expressions.row_values import RowColumn
from alcid.formats.file_index.keys import float_order, key_type, read_column
from alcid.index.bundle import Statistics
from alcid.types import BYTE_STRING_TYPES, FLOAT_TYPES, TIME_TYPES, DataType

__all__ = ["Bounds", "Verdict", "judge"]


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """For each file: whether a row of it may match, and whether every row does.

    >>> one, two = (
    ...     Verdict.same(2, possible=True),
    ...     Verdict(np.array([True, False]), np.zeros(2, bool)),
    ... )
    >>> (one & two).possible.tolist(), (one | two).possible.tolist()
    ([True, False], [True, True])
    """

    possible: BoolArray
    certain: BoolArray
    """Never where it is not possible, except for a file without rows."""

    @classmethod
    def same(cls, count: int, *, possible: bool, certain: bool = False) -> Verdict:
        """The same for all files."""
        return cls(np.full(count, possible), np.full(count, certain))

    def __and__(self, other: Verdict) -> Verdict:
        return Verdict(self.possible & other.possible, self.certain & other.certain)

    def __or__(self, other: Verdict) -> Verdict:
        return Verdict(self.possible | other.possible, self.certain | other.certain)


class _Pruning(BoundVisitor[int, Verdict]):
    """Joins the pruning results of leaves; the context is the number of files."""

    def __init__(self, evaluate: Callable[[BoundLeaf], Verdict]) -> None:
        self._evaluate = evaluate

    def visit_and(self, node: BoundAnd, context: int) -> Verdict:
        result = Verdict.same(context, possible=True, certain=True)
        for part in node.parts:
            result &= part.accept(self, context)
        return result

    def visit_or(self, node: BoundOr, context: int) -> Verdict:
        result = Verdict.same(context, possible=False)
        for part in node.parts:
            result |= part.accept(self, context)
        return result

    def visit_constant(self, node: BoundConstant, context: int) -> Verdict:
        return Verdict.same(context, possible=node.value, certain=node.value)

    def visit_unknown(self, _node: BoundUnknown, context: int) -> Verdict:
        return Verdict.same(context, possible=True)

    def visit_leaf(self, node: BoundLeaf, _context: int) -> Verdict:
        return self._evaluate(node)


def judge(
    predicate: BoundPredicate, count: int, evaluate: Callable[[BoundLeaf], Verdict]
) -> Verdict:
    """The pruning result of a predicate for some files, from those of its leaves.

    >>> from alcid.expressions import bind, parse
    >>> predicate = bind(parse("a = 1 AND FALSE"), lambda name: None)
    >>> judge(predicate, 1, lambda leaf: Verdict.same(1, possible=True)).possible
    array([False])
    """
    return predicate.accept(_Pruning(evaluate), count)


_FRACTIONS = (*FLOAT_TYPES, "DECIMAL")
_SHARE_OF_TEXT = 0.01  # of a text equal to another, as nothing is known


class Bounds:
    """The statistics of a column, to be asked what its index would be asked.

    What is not known never rules a file out, and never makes it certain.
    """

    def __init__(self, statistics: Statistics, rows: Int64Array) -> None:
        """Take the statistics of some files, and how many rows each has; -1: not known."""
        values, self._type = statistics.values, statistics.data_type
        nulls = values.field("nulls").fill_null(-1).to_numpy()
        self._known = pc.is_valid(values).to_numpy(zero_copy_only=False)
        self._no_null = self._known & (nulls == 0)
        self._no_value = self._known & (nulls == rows) & (rows >= 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._null_share = np.where((nulls >= 0) & (rows > 0), nulls / rows, 0.0)
        has_nan = values.field("has_nan").fill_null(True).to_numpy(zero_copy_only=False)
        self._no_nan = ~has_nan if self._type.root in FLOAT_TYPES else np.ones(len(values), bool)
        least, most = (_as_keys(values.field(name), self._type) for name in ("min", "max"))
        self._has_least, self._has_most = (
            self._known & pc.is_valid(bound).to_numpy(zero_copy_only=False)
            for bound in (least, most)
        )
        self._arrays = least, most
        self._least, self._most = RowColumn(least), RowColumn(most)

    @property
    def least(self) -> pa.Array:
        """The least values; null where not known. Of times and timestamps, their keys."""
        return self._arrays[0]

    @property
    def most(self) -> pa.Array:
        """The greatest values, likewise."""
        return self._arrays[1]

    def ask(self, question: Question) -> Verdict:
        """Whether rows of a question may be there, and whether all rows are such."""
        match question:
            case Nulls():
                found = Verdict(~self._no_null, self._no_value)
            case NotNulls(exact):
                found = Verdict(~self._no_value, self._no_null & exact)
            case Within(intervals, exact):
                touched, inside = self._against(intervals)
                found = Verdict(touched & ~self._no_value, inside & self._no_null & exact)
            case Outside(intervals, exact):
                touched, inside = self._against(intervals)
                found = Verdict(~inside & ~self._no_value, ~touched & self._no_null & exact)
            case _:
                found = Verdict.same(len(self._known), possible=True)
        return Verdict(found.possible | ~self._known, found.certain & self._known)

    def _against(self, intervals: tuple[Interval, ...]) -> tuple[BoolArray, BoolArray]:
        """Whether a value may lie in one of the intervals, and whether all lie in one of them."""
        touched, inside = np.zeros((2, len(self._known)), bool)
        for begin, end in intervals:
            touched |= (self._least.ask(Within(((None, end),))) | ~self._has_least) & (
                self._most.ask(Within(((begin, None),))) | ~self._has_most
            )
            whole = self._least.ask(Within(((begin, None),))) & self._has_least
            whole &= self._most.ask(Within(((None, end),))) & self._has_most
            inside |= whole & (self._no_nan | self._takes_nan(end))
            if self._takes_nan(end):
                touched |= ~self._no_nan
        return touched, inside

    def _takes_nan(self, end: object) -> bool:
        """Whether NaN, the greatest key, lies before the end of an interval."""
        return end is None or (isinstance(end, int) and end > key_type(self._type).maximum)

    def share(self, question: Question) -> Float64Array:
        """Roughly how many of the rows a question has, if values are spread evenly."""
        filled = 1.0 - self._null_share
        match question:
            case Nulls():
                return self._null_share
            case Within(intervals):
                return filled * self._shares(intervals)
            case Outside(intervals):
                return filled * (1 - self._shares(intervals))
            case Anything():
                return np.ones(len(filled))
        return filled

    def _shares(self, intervals: Sequence[Interval]) -> Float64Array:
        total = np.zeros(len(self._known))
        for interval in intervals:
            total += self._share(interval)
        return np.minimum(total, 1.0)

    def _share(self, interval: Interval) -> Float64Array:
        if self._type.root in BYTE_STRING_TYPES or self._type.root == "BOOLEAN":
            bounded = interval[1] is not None and interval[0] is not None
            few = _SHARE_OF_TEXT if self._type.root in BYTE_STRING_TYPES else 0.5
            return np.full(len(self._known), few if bounded else 0.5)
        least, most = self._numbers
        begin, end = (self._number(bound) for bound in interval)
        low = least if begin is None else np.maximum(least, begin)
        high = most if end is None else np.minimum(most, end)
        with np.errstate(all="ignore"):  # an estimate: infinities and empty ranges give 0, 0.5 or 1
            share = np.clip((high - low) / (most - least), 0.0, 1.0)
        return np.where(np.isnan(share), 0.5, share)

    @cached_property
    def _numbers(self) -> tuple[Float64Array, Float64Array]:
        """The bounds as floats; of integers the greatest is the one above it."""
        least, most = (
            np.array([math.nan if v is None else float(v) for v in _plain(a)], np.float64)
            for a in self._arrays
        )
        return least, most + (self._type.root not in _FRACTIONS)

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
