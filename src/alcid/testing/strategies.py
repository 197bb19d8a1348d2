"""Hypothesis strategies: columns of every type, and predicates that ask of them.

>>> from alcid import DataType
>>> from hypothesis import given
>>> @given(columns(DataType("INT")))
... def test_rows(column):
...     assert len(column.values) == column.row_count
>>> test_rows()
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import strategies as st

from alcid.predicate import And, Column, Comparison, Not, Or, Predicate, col
from alcid.predicate.column import plain
from alcid.testing.samples import (
    edges,
    literals_of,
    neighbours,
    odd_literals,
    tick,
    timestamp_limits,
)
from alcid.types import DataType

__all__ = ["SampleColumn", "columns", "comparisons", "leaves", "literals", "trees"]

_CONTAINER_ROWS = 1 << 16  # of a roaring bitmap: one row fewer, just as many, one more
_NANOS_PER_DAY = 86_400 * 10**9
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "DATE": 32, "BIGINT": 64}


@dataclass(frozen=True)
class SampleColumn:
    """A column of few different rows, `pattern`, laid out over `row_count` rows.

    What is asked of single rows can be asked of the pattern, and the answer spread with `rows_of`.

    >>> SampleColumn(DataType("INT"), (7, None), 5).values
    [7, None, 7, None, 7]
    >>> SampleColumn(DataType("INT"), (7, None), 5, "runs").values
    [7, 7, 7, None, None]
    """

    data_type: DataType
    pattern: tuple[Any, ...]
    row_count: int
    layout: Literal["cycle", "runs"] = "cycle"

    @cached_property
    def picks(self) -> npt.NDArray[np.int64]:
        """For each row, its place in the pattern."""
        rows = np.arange(self.row_count)
        length = len(self.pattern)
        return rows % length if self.layout == "cycle" else rows * length // max(self.row_count, 1)

    @property
    def values(self) -> list[Any]:
        """The value of each row, in the form of `alcid.testing.oracle`."""
        return [self.pattern[pick] for pick in self.picks.tolist()]

    def rows_of(self, places: Iterable[int]) -> npt.NDArray[np.int64]:
        """The rows that show one of these places of the pattern.

        >>> SampleColumn(DataType("INT"), (7, None), 5).rows_of([1]).tolist()
        [1, 3]
        """
        return np.flatnonzero(np.isin(self.picks, list(places)))

    def to_arrow(self) -> pa.Array:
        """The column in the canonical Arrow type."""
        return _arrow_array(self.pattern, self.data_type).take(pa.array(self.picks))


def _arrow_array(values: Sequence[Any], data_type: DataType) -> pa.Array:
    arrow_type = data_type.to_arrow()
    if data_type.root == "DATE":
        return pa.array(values, pa.int32()).view(arrow_type)
    if data_type.root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[arrow_type.unit]
        ticks = [None if value is None else value // unit for value in values]
        return pa.array(ticks, width).view(arrow_type)
    return pa.array(values, arrow_type)


@st.composite
def columns(
    draw: st.DrawFn, data_type: DataType, index_type: str | None = None, *, large: bool = True
) -> SampleColumn:
    """Columns of a type: without, with some and with only nulls; of no, one, two or many values.

    Args:
        draw: Given by Hypothesis.
        data_type: The type.
        index_type: Draw only values that this index can hold; bsi cannot hold -2^63.
        large: Also draw columns of about 2^16 rows, where a roaring bitmap starts a new container.
    """
    value = _values(data_type, index_type)
    kind = draw(st.sampled_from(("few", "few", "edges", "edges", "many", "one", "nulls", "empty")))
    match kind:
        case "few":
            pattern = draw(st.lists(st.one_of(st.none(), value), min_size=1, max_size=8))
        case "edges":
            pattern = [*edges(data_type, index_type), *draw(st.lists(value, max_size=4))]
            if draw(st.booleans()):
                pattern += [None, pattern[0], None]
        case "many":
            pattern = _many(data_type, index_type, draw(st.integers(0, 2**32)))
        case "one":
            pattern = [draw(value)]
        case _:
            pattern = [None]
    row_counts = [len(pattern), 2 * len(pattern) + 1]
    if large:
        row_counts.append(_CONTAINER_ROWS + draw(st.sampled_from((-1, 0, 1))))
    weights = (0, 0, 0, 1, 1, 2) if large else (0, 0, 1)
    row_count = 0 if kind == "empty" else row_counts[draw(st.sampled_from(weights))]
    layout: Literal["cycle", "runs"] = draw(st.sampled_from(("cycle", "runs")))
    return SampleColumn(data_type, tuple(pattern), row_count, layout)


def _values(data_type: DataType, index_type: str | None) -> st.SearchStrategy[Any]:
    known = st.sampled_from(edges(data_type, index_type))
    drawn = st.integers(0, 2**32).map(
        lambda seed: _random_value(data_type, index_type, random.Random(seed))
    )
    return known | drawn


def _many(data_type: DataType, index_type: str | None, seed: int) -> list[Any]:
    """Hundreds of values, mostly different, some null."""
    source = random.Random(seed)
    return [
        None if source.random() < 0.1 else _random_value(data_type, index_type, source)
        for _ in range(300)
    ]


def _random_value(data_type: DataType, index_type: str | None, source: random.Random) -> Any:
    """A value of the type; small numbers as often as large ones, so that some repeat."""

    def whole(least: int, greatest: int) -> int:
        size = source.choice((2, 200, greatest))
        return source.randint(max(least, -size), min(greatest, size))

    match data_type.root:
        case "BOOLEAN":
            return source.random() < 0.5
        case "FLOAT" | "DOUBLE":
            number = source.choice((source.uniform(-9, 9), float(whole(-99, 99)), math.nan))
            return float(np.float32(number)) if data_type.root == "FLOAT" else number
        case "DECIMAL":
            most = min(10**data_type.precision - 1, 2**63 - 1)
            return Decimal(whole(-most, most)).scaleb(-data_type.scale)
        case "CHAR" | "VARCHAR":
            return "".join(source.choices("ab\0éz\uffff\U0001f427", k=source.randint(0, 6)))
        case "BINARY":
            return source.randbytes(data_type.length)
        case "VARBINARY":
            return source.randbytes(source.randint(0, 6))
        case "TIME":
            step = tick(data_type)
            return whole(0, _NANOS_PER_DAY // step - 1) * step
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return whole(*timestamp_limits(data_type, index_type)) * tick(data_type)
        case root:
            top = 2 ** (_BITS[root] - 1) - 1
            return whole(-top, top)


def literals(column: SampleColumn) -> st.SearchStrategy[Any]:
    """Literals to compare a column with.

    Those that it holds, their neighbours, the edges of the type, what is out of its range, None.
    """
    present = [value for value in dict.fromkeys(column.pattern) if value is not None][:40]
    beside = [near for value in present for near in neighbours(value, column.data_type)]
    pools = [
        [form for value in pool for form in literals_of(value, column.data_type)]
        for pool in (present, beside, edges(column.data_type))
    ]
    pools += [list(odd_literals(column.data_type)), [None]]
    weighted = [pool for pool in (pools[0], *pools) if pool]
    return st.one_of(*map(_one_of_many, weighted))


def _one_of_many(pool: Sequence[Any]) -> st.SearchStrategy[Any]:
    """As `sampled_from`, whose representation would list all of them."""
    return st.integers(0, len(pool) - 1).map(lambda place: pool[place])


def comparisons(name: str, given: Sequence[Any]) -> list[Predicate]:
    """Every operator with every literal, and lists and ranges of neighbouring ones.

    >>> print(*comparisons("a", [5])[:3], sep="; ")
    a IS NULL; a IS NOT NULL; a = 5
    """
    column = col(name)
    found = [column.is_null(), column.is_not_null()]
    for place, literal in enumerate(given):
        found += (compare(column, literal) for compare in _OPERATORS)
        found.append(Comparison(name, "<=>", plain(literal)))
        listed = column.isin(given[: place + 1])
        found += (listed, Not(listed), column.between(given[place - 1], literal))
        if isinstance(literal, str):
            found += (column.starts_with(literal), Not(column.starts_with(literal)))
    return found


_OPERATORS: tuple[Callable[[Column, Any], Predicate], ...] = (
    Column.__eq__,
    Column.__ne__,
    Column.__lt__,
    Column.__le__,
    Column.__gt__,
    Column.__ge__,
)


def leaves(name: str, column: SampleColumn) -> st.SearchStrategy[Predicate]:
    """One comparison of a column; see `comparisons` for all of them."""
    given = st.lists(literals(column), min_size=1, max_size=3)
    return given.flatmap(lambda chosen: _one_of_many(comparisons(name, chosen)))


def trees(columns: Mapping[str, SampleColumn]) -> st.SearchStrategy[Predicate]:
    """Predicates over several columns, of AND, OR and NOT."""
    leaf = st.one_of(*(leaves(name, column) for name, column in columns.items()))

    def combine(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(several.map(And.of), several.map(Or.of), inner.map(Not))

    return st.recursive(leaf, combine, max_leaves=8)
