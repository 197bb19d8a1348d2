"""SQL text read by sqlglot, to an expression tree. Imported by `parse` when it is first called."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sqlglot import exp

from alcid.errors import PredicateError
from alcid.predicate.expression import (
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
)
from alcid.predicate.sql_literal import NotALiteralError, column_name, read_literal
from alcid.predicate.sql_parser import parse_sql, write_sql
from alcid.predicate.strings import Strings, like_prefix, take_strings

__all__ = ["read_sql"]

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_TURNED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_sql(text: str) -> Predicate:
    """The expression tree of SQL text."""
    strings = take_strings(text)
    try:
        return _Reader(strings).read(parse_sql(strings))
    except RecursionError:
        raise PredicateError("not a predicate: it is nested too deeply") from None


class _Reader:
    """Turns the nodes of sqlglot into those of a predicate."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings

    def read(self, node: exp.Expr) -> Predicate:
        node = node.unnest()
        if isinstance(node, exp.And):
            return And.of(map(self.read, _operands(node)))
        if isinstance(node, exp.Or):
            return Or.of(map(self.read, _operands(node)))
        if isinstance(node, exp.Not):
            return ~self.read(node.this)
        try:
            leaf = self.leaf(node)
        except NotALiteralError:
            leaf = None
        return self.unknown(node) if leaf is None else leaf

    def leaf(self, node: exp.Expr) -> Predicate | None:
        match node:
            case exp.Boolean() | exp.Null():
                return Constant(bool(node.this) if isinstance(node, exp.Boolean) else None)
            case exp.NullSafeNEQ():
                equal = self.comparison("<=>", node.this, node.expression)
                return None if equal is None else Not(equal)
            case exp.Is():
                return self.is_(node)
            case exp.In():
                return self.in_(node)
            case exp.Between():
                return self.between(node)
            case exp.Like() | exp.Escape():
                return self.like(node)
            case exp.Anonymous():
                return self.function(node)
            case _ if type(node) in _OPERATORS:
                return self.comparison(_OPERATORS[type(node)], node.this, node.expression)
        column = self.column(node)
        return None if column is None else Comparison(column, "=", True)

    def column(self, node: exp.Expr) -> str | None:
        return column_name(node, self.strings)

    def literal(self, node: exp.Expr) -> object:
        return read_literal(node, self.strings)

    def unknown(self, node: exp.Expr) -> Unknown:
        columns = node.find_all(exp.Column, bfs=False)
        # Of a field of a struct, the column that it is in.
        names = (self.column(column) or column.parts[0].name for column in columns)
        return Unknown(
            write_sql(node, self.strings), tuple(dict.fromkeys(name for name in names if name))
        )

    def comparison(self, operator: Operator, left: exp.Expr, right: exp.Expr) -> Predicate | None:
        column = self.column(left)
        if column is not None:
            return Comparison(column, operator, self.literal(right))
        column = self.column(right)
        if column is not None:
            return Comparison(column, _TURNED.get(operator, operator), self.literal(left))
        return None

    def is_(self, node: exp.Is) -> Predicate | None:
        column = self.column(node.this)
        if column is None:
            return None
        if isinstance(node.expression, exp.Null):
            return IsNull(column)
        if isinstance(node.expression, exp.Boolean):
            return Comparison(column, "<=>", bool(node.expression.this))
        return None

    def in_(self, node: exp.In) -> Predicate | None:
        column = self.column(node.this)
        if column is None or not node.expressions:
            return None
        return In(column, tuple(map(self.literal, node.expressions)))

    def between(self, node: exp.Between) -> Predicate | None:
        column = self.column(node.this)
        if column is None or node.args.get("symmetric"):
            return None
        return Between(column, self.literal(node.args["low"]), self.literal(node.args["high"]))

    def function(self, node: exp.Anonymous) -> Predicate | None:
        column = self.column(node.expressions[0]) if node.expressions else None
        match node.name.lower(), len(node.expressions):
            case _ if column is None:
                return None
            case "isnan", 1:
                # Not "=": of a null row isnan is false, so its negation is true.
                return Comparison(column, "<=>", math.nan)
            case "startswith", 2:
                prefix = self.literal(node.expressions[1])
                return Like(column, prefix, prefix=True) if isinstance(prefix, str) else None
        return None

    def like(self, node: exp.Expr) -> Predicate | None:
        escape = self.literal(node.expression) if isinstance(node, exp.Escape) else "\\"
        like = node.this if isinstance(node, exp.Escape) else node
        if not isinstance(like, exp.Like) or not isinstance(escape, str):
            return None
        column, pattern = self.column(like.this), self.literal(like.expression)
        if column is None or not isinstance(pattern, str) or len(escape) != 1:
            return None
        found = like_prefix(pattern, escape)
        if found is None:
            return None
        text, prefix = found
        leaf = Like(column, text, prefix)
        return Not(leaf) if like.args.get("negate") else leaf


def _operands(node: exp.Connector) -> Iterator[exp.Expr]:
    """The operands of a chain of ANDs or ORs, in order; a thousand of them nest a thousand deep."""
    kind, stack = type(node), [node.right, node.left]
    while stack:
        operand = stack.pop().unnest()
        if type(operand) is kind:
            stack.extend((operand.right, operand.left))
        else:
            yield operand
