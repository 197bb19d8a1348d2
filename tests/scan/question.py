"""Random questions: a predicate over several columns, an order, a limit, some columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    Unknown,
    parse,
)
from alcid.expressions.render import quote_name, quote_text
from tests.scan.column_kinds import ColumnKind
from tests.scan.random_table import ROW

_OPERATORS: tuple[Operator, ...] = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True, slots=True)
class AnyLike(Unknown):
    """LIKE with a pattern that no index can answer."""

    pattern: str = ""


@dataclass(frozen=True)
class OrderKey:
    """A column to sort by."""

    column: str
    descending: bool
    nulls_first: bool
    text: str
    """In SQL; what is omitted has Spark's defaults."""


@dataclass(frozen=True)
class Question:
    """The arguments of a scan."""

    where: Predicate | None
    as_text: bool
    columns: list[str] | None
    order: tuple[OrderKey, ...]
    limit: int | None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `scan`."""
        texts = [key.text for key in self.order]
        order_by = (texts if len(texts) != 1 else texts[0]) if texts else None
        where = str(self.where) if self.where is not None and self.as_text else self.where
        return {
            "where": where,
            "columns": self.columns,
            "order_by": order_by,
            "limit": self.limit,
        }

    def __str__(self) -> str:
        arguments = {name: value for name, value in self.arguments().items() if value is not None}
        return ", ".join(
            f"{name}={str(value)!r}{'' if self.as_text else ' (built)'}"
            if name == "where"
            else f"{name}={value!r}"
            for name, value in arguments.items()
        )


def _has_text(where: Predicate | None) -> bool:
    """Whether the predicate can be SQL text, which has no nanoseconds."""
    nodes = [] if where is None else where.walk()
    return not any(
        isinstance(literal, np.datetime64) and literal.dtype == "M8[ns]"
        for node in nodes
        for literal in _literals(node)
    )


def _literals(node: Predicate) -> tuple[object, ...]:
    match node:
        case Comparison(_, _, literal):
            return (literal,)
        case Between(_, low, high):
            return low, high
        case In(_, literals, _):
            return literals
    return ()


class Questions:
    """Draws questions about a table with known values."""

    def __init__(
        self,
        source: random.Random,
        kinds: Mapping[str, ColumnKind],
        present: Mapping[str, Sequence[Any]],
        row_count: int,
    ) -> None:
        self._source = source
        self._kinds = kinds
        self._present = present
        self._row_count = row_count
        self._names = list(kinds)

    def draw(self) -> Question:
        source = self._source
        where = None if source.random() < 0.08 else self.tree(source.choice((0, 0, 1, 1, 2, 3)))
        order = self._order() if source.random() < 0.45 else ()
        limits = (0, 1, 2, 5, 17, self._row_count, self._row_count + 5)
        limit = source.choice(limits) if source.random() < (0.75 if order else 0.15) else None
        columns = None
        if source.random() < 0.6:
            columns = source.sample(self._names, source.randint(1, min(4, len(self._names))))
            if limit is not None and not order and ROW not in columns:
                columns.append(ROW)  # any rows will do, and the result must tell which they are
        as_text = source.random() < 0.5 and _has_text(where)
        return Question(where, as_text, columns, order, limit)

    def _order(self) -> tuple[OrderKey, ...]:
        return tuple(
            map(
                self._order_key, self._source.sample(self._names, self._source.choice((1, 1, 2, 3)))
            )
        )

    def _order_key(self, column: str) -> OrderKey:
        source = self._source
        direction = source.choice(("", " ASC", " DESC"))
        nulls = source.choice(("", " NULLS FIRST", " NULLS LAST"))
        descending = direction == " DESC"
        first = not descending if not nulls else nulls == " NULLS FIRST"
        return OrderKey(column, descending, first, f"{quote_name(column)}{direction}{nulls}")

    def tree(self, depth: int) -> Predicate:
        source = self._source
        if depth == 0:
            return self.leaf()
        shape = source.random()
        if shape < 0.2:
            return Not(self.tree(depth - 1))
        parts = [self.tree(depth - 1) for _ in range(source.choice((2, 2, 3)))]
        return And.of(parts) if shape < 0.6 else Or.of(parts)

    def leaf(self) -> Predicate:
        source = self._source
        if source.random() < 0.02:
            return Constant(source.choice((True, False, None)))
        column = source.choice(self._names)
        kind = self._kinds[column]
        draws: list[tuple[int, Callable[[str, ColumnKind], Predicate]]] = [
            (6, self._comparison),
            (2, self._between),
            (3, self._in),
            (2, self._is_null),
        ]
        if kind.is_text:
            draws += [(3, self._prefix), (1, self._pattern)]
        if kind.data_type.root in ("FLOAT", "DOUBLE"):
            draws.append((1, self._is_nan))
        weights = [weight for weight, _ in draws]
        (chosen,) = source.choices([draw for _, draw in draws], weights)
        return chosen(column, kind)

    def _literal(self, column: str) -> Any:
        if self._source.random() < 0.03:
            return None
        return self._kinds[column].literal(self._source, self._present[column])

    def _comparison(self, column: str, kind: ColumnKind) -> Predicate:
        del kind
        return Comparison(column, self._source.choice(_OPERATORS), self._literal(column))

    def _between(self, column: str, kind: ColumnKind) -> Predicate:
        del kind
        return Between(column, self._literal(column), self._literal(column))

    def _in(self, column: str, kind: ColumnKind) -> Predicate:
        del kind
        drawn = [self._literal(column) for _ in range(self._source.choice((1, 2, 3, 8)))]
        # Spark converts lists of several types to one type, which is not tested here.
        first = next((type(value) for value in drawn if value is not None), None)
        alike = tuple(value for value in drawn if value is None or type(value) is first)
        return In(column, alike, negated=self._source.random() < 0.3)

    def _is_null(self, column: str, kind: ColumnKind) -> Predicate:
        del kind
        return IsNull(column, negated=self._source.random() < 0.5)

    def _text(self, column: str, kind: ColumnKind) -> str:
        present = self._present[column]
        if present and self._source.random() < 0.8:
            return str(self._source.choice(present))
        return str(kind.draw(self._source))

    def _prefix(self, column: str, kind: ColumnKind) -> Predicate:
        text = self._text(column, kind)
        prefix = self._source.random() < 0.8
        length = self._source.randint(0, min(len(text), 3)) if prefix else len(text)
        return Like(column, text[:length], prefix, negated=self._source.random() < 0.3)

    def _pattern(self, column: str, kind: ColumnKind) -> Predicate:
        """Patterns that no index can answer: `%` in front, or `_`."""
        text = self._text(column, kind)[:4]
        escaped = "".join(f"\\{c}" if c in "\\%_" else c for c in text)
        pattern = self._source.choice(
            (f"%{escaped}", f"_{escaped}%", f"%{escaped}%", f"{escaped}_")
        )
        parsed = parse(f"{quote_name(column)} LIKE {quote_text(pattern)}")
        if isinstance(parsed, Unknown):
            return AnyLike(parsed.text, parsed.names, pattern)
        return parsed  # from an empty text: every text but null is LIKE '%'

    def _is_nan(self, column: str, kind: ColumnKind) -> Predicate:
        del kind
        return parse(f"isnan({quote_name(column)})")
