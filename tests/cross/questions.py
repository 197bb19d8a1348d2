"""Questions of each shape and order, with literals that hit, miss narrowly, or are odd."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from alcid._arrays import Int64Array
from alcid.errors import PredicateError
from alcid.expressions import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    parse,
)
from alcid.expressions.expression import plain
from alcid.testing.strategies import (
    edges,
    literals_of,
    neighbours,
    odd_literals,
)
from alcid.types import DataType
from tests.cross.data import PARTITION, ROW, A, B, Column, Data
from tests.cross.truth import matches, ranks

__all__ = ["Question"]

_SIGNS: dict[str, tuple[Operator, ...]] = {
    "=": ("=",),
    "<>": ("<>",),
    "<=>": ("<=>",),
    "<": ("<", "<=", ">", ">="),
}
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_LEAVES = ("=", "<>", "<=>", "<", "BETWEEN", "IN", "NOT IN", "IS NULL", "IS NOT NULL")


@dataclass(frozen=True)
class _Key:
    column: str
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.column} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


class Question:
    """What a scan of a table is asked for, and the correct rows."""

    def __init__(self, data: Data, shape: str, order: str, seed: int) -> None:
        self._data, self._source = data, random.Random(seed)
        drawn = Constant(True) if shape == "none" else self._predicate(shape)
        self.where: Predicate | None = None if shape == "none" else drawn
        self.order, self.limit = self._order(order)
        names = list(data.columns)
        self.columns: list[str] | None = None
        if self._source.random() < 0.6:
            chosen = self._source.sample(names, self._source.randint(0, len(names) - 1))
            self.columns = list(dict.fromkeys([*chosen, ROW]))
        self._as_text = self._source.random() < 0.2
        self._matches = matches(data.columns, drawn)

    @cached_property
    def positions(self) -> Int64Array:
        """The rows that match and are not deleted."""
        return np.flatnonzero(self._matches & self._data.is_live)

    @cached_property
    def ranks(self) -> Int64Array:
        """The position of the sort key of each row among all; rows with equal keys share it."""
        ordered = np.zeros(len(self._matches), np.int64)
        for key in self.order:
            column = self._data.columns[key.column]
            by_key = ranks(column, descending=key.descending, nulls_first=key.nulls_first)
            ordered = ordered * (len(column.values) + 2) + by_key + 1
        return ordered

    @property
    def count(self) -> int:
        """How many rows the answer has."""
        matching = len(self.positions)
        return matching if self.limit is None else min(matching, self.limit)

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `scan`."""
        texts = [str(key) for key in self.order]
        return {
            "where": self._given_where(),
            "columns": self.columns,
            "order_by": texts or None,
            "limit": self.limit,
        }

    def _given_where(self) -> str | Predicate | None:
        """SQL text in some cases, if it means the same."""
        if self.where is None or not self._as_text:
            return self.where
        text = str(self.where)
        try:
            return text if repr(parse(text)) == repr(self.where) else self.where
        except PredicateError:  # a year that only NumPy writes
            return self.where

    def _predicate(self, shape: str) -> Predicate:
        source = self._source
        match shape:
            case "AND":
                return And.of(self._any_leaf(A) for _ in range(source.choice((2, 2, 3))))
            case "OR":
                return Or.of(self._any_leaf(A) for _ in range(source.choice((2, 2, 3))))
            case "NOT":
                inner = source.choice((*_LEAVES, "AND", "OR", "two columns"))
                return Not(self._predicate(inner))
            case "two columns":
                return self._two_columns()
        return self._leaf(shape, A)

    def _two_columns(self) -> Predicate:
        source = self._source
        names = [A, B, *source.sample(list(self._data.columns), source.choice((0, 0, 1)))]
        parts = [self._any_leaf(name) for name in names]
        source.shuffle(parts)
        some = Or.of(parts[:2]) if source.random() < 0.5 else And.of(parts[:2])
        join = Or.of if source.random() < 0.5 else And.of
        return join([some, *parts[2:]])

    def _any_leaf(self, name: str) -> Predicate:
        is_text = self._data.columns[name].data_type.root in ("CHAR", "VARCHAR")
        shapes = (*_LEAVES, "LIKE") if is_text else _LEAVES
        leaf = self._leaf(self._source.choice(shapes), name)
        return Not(leaf) if self._source.random() < 0.15 else leaf

    def _leaf(self, shape: str, name: str) -> Predicate:
        source = self._source
        match shape:
            case "=" | "<>" | "<=>" | "<":
                sign = source.choice(_SIGNS[shape])
                return Comparison(name, sign, self._literal(name))
            case "BETWEEN":
                return Between(name, self._literal(name), self._literal(name))
            case "IN" | "NOT IN":
                count = source.choice((1, 2, 3, 8))
                listed = tuple(self._literal(name) for _ in range(count))
                return In(name, listed, negated=shape == "NOT IN")
            case "IS NULL" | "IS NOT NULL":
                return IsNull(name, negated=shape == "IS NOT NULL")
        text = str(self._value(self._data.columns[name]))
        prefix = source.random() < 0.8
        length = source.randint(0, min(len(text), 3)) if prefix else len(text)
        return Like(name, text[:length], prefix, negated=source.random() < 0.3)

    def _value(self, column: Column) -> Any:
        """A value of the column, a neighbour of one, or a limit of the type."""
        source, chance = self._source, self._source.random()
        if chance < 0.15 or not column.present:
            return source.choice(edges(column.data_type))
        value = source.choice(column.present)
        near = neighbours(value, column.data_type) if chance < 0.35 else ()
        return source.choice(near) if near else value

    def _literal(self, name: str) -> Any:
        column = self._data.columns[name]
        while True:
            forms = [form for form in self._forms(column) if _is_fair(form, column.data_type)]
            if forms:
                return plain(
                    forms[0] if self._source.random() < 0.7 else self._source.choice(forms)
                )

    def _forms(self, column: Column) -> Sequence[Any]:
        """Literals with the same meaning."""
        chance = self._source.random()
        if chance < 0.03:
            return (None,)
        odd = odd_literals(column.data_type)
        if chance < 0.1 and odd:
            return (self._source.choice(odd),)
        return literals_of(self._value(column), column.data_type)

    def _order(self, order: str) -> tuple[tuple[_Key, ...], int | None]:
        source = self._source
        count = len(self._data.is_live)
        limit = source.choice((0, 1, 2, 5, 5, 17, count, count + 5))
        match order:
            case "none":
                return (), None
            case "limit":
                return (), limit
            case "sorted":
                return self._keys(source.choice((1, 2))), None
            case "two keys":
                return self._keys(source.choice((2, 2, 3))), limit
        direction, _, nulls = order.partition(" NULLS ")
        return (_Key(A, direction == "DESC", nulls == "FIRST"),), limit

    def _keys(self, count: int) -> tuple[_Key, ...]:
        source = self._source
        others = [name for name in (B, ROW, PARTITION) if name in self._data.columns]
        names = [A, *source.sample(others, count - 1)]
        source.shuffle(names)
        return tuple(_Key(name, source.random() < 0.5, source.random() < 0.5) for name in names)


def _is_fair(literal: Any, data_type: DataType) -> bool:
    """Whether the oracle follows Spark.

    Comparing integers with a bound beyond all of them is TRUE there, for null rows too, which
    `tests/properties/test_rows.py` asks for.
    """
    if data_type.root not in _INTEGERS or not isinstance(literal, int | Decimal):
        return True
    return not Decimal(literal).is_finite() or -(2**63) <= literal < 2**63
