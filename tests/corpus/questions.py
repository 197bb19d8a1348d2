"""Questions about the columns of known rows, each with the rows that match."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.expressions import (
    And,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
)
from alcid.expressions.expression import plain
from alcid.testing import values_of
from alcid.testing.strategies import literals_of, neighbours
from alcid.types import DataType
from tests.cross.data import Column

__all__ = ["columns_of", "predicates"]

_OPERATORS: tuple[Operator, ...] = ("=", "<>", "<=>", "<", "<=", ">", ">=")
_MOST_DISTINCT = 4_000
"""Brute force looks at every distinct value; columns with more are only asked about some rows."""


def columns_of(rows: pa.Table) -> dict[str, Column]:
    """The columns that can be compared with a literal, in the form for brute force."""
    columns = {}
    for name, values in zip(rows.column_names, rows.columns, strict=True):
        column = _column(values)
        if column is not None and rows.column_names.count(name) == 1:
            columns[name] = column
    return columns


def _column(values: pa.ChunkedArray) -> Column | None:
    try:
        data_type = DataType.from_arrow(values.type)
    except UnsupportedError:
        return None
    if data_type.children or isinstance(values.type, pa.BaseExtensionType):
        return None
    if pa.types.is_uint64(values.type):
        values = values.cast(pa.decimal128(20, 0))
    if pa.types.is_date64(values.type):
        values = values.cast(pa.date32())
    listed = values_of(values)
    identities = {_identity(value): value for value in listed if value is not None}
    codes = {identity: code for code, identity in enumerate(identities)}
    null = len(codes)
    positions = [null if value is None else codes[_identity(value)] for value in listed]
    return Column(data_type, (*identities.values(), None), np.array(positions, np.int64))


def _identity(value: Any) -> Any:
    """Tells values apart by their bits: NaN is one value, the two zeros are two."""
    return repr(value) if isinstance(value, float) else value


def predicates(columns: Mapping[str, Column], seed: str, most: int) -> list[Predicate]:
    """Predicates of every form on each column; a sample of them if there are more than `most`."""
    source = random.Random(seed)
    drawn = list(_predicates(columns, source, values=5))
    return drawn if len(drawn) <= most else source.sample(drawn, most)


def _predicates(
    columns: Mapping[str, Column], source: random.Random, values: int
) -> Iterator[Predicate]:
    previous: Predicate | None = None
    for name, column in columns.items():
        if len(column.values) > _MOST_DISTINCT:
            continue
        leaves = list(_leaves(name, column, source, values))
        yield from leaves
        if previous is not None:
            yield And.of([previous, source.choice(leaves)])
            yield Not(And.of([previous, source.choice(leaves)]))
        previous = source.choice(leaves)


def _leaves(name: str, column: Column, source: random.Random, values: int) -> Iterator[Predicate]:
    yield IsNull(name)
    yield IsNull(name, negated=True)
    literals = list(_literals(column, source, values))
    for literal in literals:
        for operator in _OPERATORS:
            yield Comparison(name, operator, literal)
    if literals:
        yield In(name, tuple(source.choices(literals, k=3)))
        yield In(name, (literals[0], None), negated=True)
        yield Between(name, source.choice(literals), source.choice(literals))
    if column.data_type.root == "VARCHAR":
        for value in column.present[:2]:
            yield Like(name, value[:2], prefix=True)


def _literals(column: Column, source: random.Random, values: int) -> Iterator[Any]:
    """Literals from values of rows, the minimum and maximum among them, and their neighbours."""
    present = sorted(column.present, key=_order)
    chosen = (
        {0, len(present) - 1, *source.choices(range(len(present)), k=values)} if present else ()
    )
    for position in sorted(chosen):
        value = present[position]
        forms = literals_of(value, column.data_type)
        yield from map(plain, forms[:1])
        near = neighbours(value, column.data_type)
        if near:
            yield from map(plain, literals_of(source.choice(near), column.data_type)[:1])


def _order(value: Any) -> Any:
    return (value != value, value) if isinstance(value, float) else value  # noqa: PLR0124
