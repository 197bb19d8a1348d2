"""SQL text read by sqlglot, to an expression tree. Imported by `parse` when it is first called.

Names and literals of parsed SQL.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from sqlglot import exp

from alcid.errors import PredicateError
from alcid.expressions.casts_from_text import (
    SessionTimestamp,
    WallClock,
    find_zone,
    instant_of,
    to_boolean,
    to_date,
    to_double,
    to_integer,
    to_time,
    to_timestamp,
)
from alcid.expressions.expression import (
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
from alcid.expressions.like import PatternParts, split_pattern
from alcid.expressions.literals import as_double
from alcid.expressions.sql_parser import Strings, parse_sql, write_sql

_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST_PRECISE = 38
_WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
# DATE 'today', and a TIMESTAMP that has a time only, which is one of today.
_TODAY = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)\b|T?\d{1,2}:", re.IGNORECASE)
# A decimal of at most as many digits has one nearest float, whether through a double or not.
_DIGITS_OF_DOUBLE = 15
_EPOCH = datetime.datetime(1970, 1, 1)


class NotALiteralError(Exception):
    """An expression whose value is not known before a row is read; never leaves this package."""


def column_name(node: exp.Expr, strings: Strings) -> str | None:
    """The column that an expression is: `a`, or `m[key]` for a key of a map.

    `a.b` is none: it is a field of `a`, or a column of a table `a`. A dot in a name takes
    backticks.
    """
    node = node.unnest()
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return str(node.name) if len(node.parts) == 1 else None
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1:
        key, outer = node.expressions[0], column_name(node.this, strings)
        text = strings.value(key.this) if isinstance(key, exp.Literal) else None
        if isinstance(text, str) and outer and "[" not in outer:
            return f"{outer}[{text}]"
    return None


def read_literal(node: exp.Expr, strings: Strings) -> object:
    """The Python value of a literal; None is NULL.

    Raises:
        NotALiteralError: The expression is not a literal.
        PredicateError: The literal is not one of its type, as in DATE '2020-13-01'.
    """
    node = node.unnest()
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Neg():
            return _negative(read_literal(node.this, strings))
        case exp.Literal() if not node.is_string:
            return _number(node.this)
        case exp.Literal():
            value = strings.value(node.this)
            if value is not None:
                return value
        case exp.Concat() if all(isinstance(part, exp.Literal) for part in node.expressions):
            parts = [read_literal(part, strings) for part in node.expressions]
            if all(isinstance(part, str) for part in parts):
                return "".join(map(str, parts))
        case exp.Cast():  # TryCast is one of its kinds
            return _cast(node, strings)
    raise NotALiteralError


def _negative(value: object) -> object:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value.copy_negate() if isinstance(value, Decimal) else -value
    raise NotALiteralError


def _number(text: str) -> int | float | Decimal:
    if text.isdecimal():
        return int(Decimal(text))  # int() itself refuses very long text
    return float(text) if "e" in text.lower() else Decimal(text)


class LikeNode(NamedTuple):
    """LIKE with a literal pattern."""

    operand: exp.Expr
    parts: PatternParts
    negated: bool


def read_like(node: exp.Expr, strings: Strings) -> LikeNode | None:
    """A LIKE with a literal pattern, and perhaps an ESCAPE; None if the node is anything else."""
    like = node.this if isinstance(node, exp.Escape) else node
    if not isinstance(like, exp.Like):
        return None
    try:
        escape = "\\" if node is like else read_literal(node.expression, strings)
        pattern = read_literal(like.expression, strings)
    except NotALiteralError:
        return None
    if not isinstance(pattern, str) or not isinstance(escape, str) or len(escape) != 1:
        return None
    parts = split_pattern(pattern, escape)
    return None if parts is None else LikeNode(like.this, parts, bool(like.args.get("negate")))


def _cast(node: exp.Cast, strings: Strings) -> object:
    inner, kind = node.this.unnest(), node.to.this.name
    if isinstance(inner, exp.Literal) and _NUMBER.fullmatch(inner.this) and inner.is_string:
        return Decimal(inner.this)  # how sqlglot gives 1.5BD
    value = read_literal(inner, strings)
    if value is None:
        return None
    if not isinstance(value, str):
        return _cast_value(value, kind, node.to)
    if kind != "TIME" and _TODAY.match(value.strip()):
        raise NotALiteralError
    result = _cast_text(value, kind)
    if result is not None:
        return result
    if isinstance(node, exp.TryCast):  # a cast at run time: Spark's to refuse
        raise NotALiteralError
    raise PredicateError(f"not a predicate: {node.to.sql('spark')} does not take {value[:40]!r}")


def _cast_value(value: object, kind: str, target: exp.DataType) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotALiteralError
    if kind == "DOUBLE":
        double = as_double(value)
        if double is not None:
            return double
    elif kind == "FLOAT":
        if isinstance(value, float) or len(Decimal(value).as_tuple().digits) <= _DIGITS_OF_DOUBLE:
            with np.errstate(over="ignore", under="ignore"):
                return float(np.float32(value))
    elif kind in _WIDTHS:
        number = Decimal(value)
        if number.is_finite() and number.adjusted() < 20 and number == number.to_integral_value():
            return _within(int(number), kind)
    elif kind == "DECIMAL" and not isinstance(value, float) and len(target.expressions) == 2:
        precision, scale = (to_integer(parameter.name) for parameter in target.expressions)
        if precision is None or scale is None or not 0 <= scale <= precision <= _MOST_PRECISE:
            raise NotALiteralError
        if abs(Decimal(value).adjusted()) <= _MOST_PRECISE:
            scaled = Fraction(value) * 10**scale
            if scaled.denominator == 1 and abs(scaled) < 10**precision:
                return Decimal(value)
    raise NotALiteralError


def _within(number: int, kind: str) -> int:
    if -(1 << _WIDTHS[kind] - 1) <= number < 1 << _WIDTHS[kind] - 1:
        return number
    raise NotALiteralError


def _cast_text(text: str, kind: str) -> object:
    """Text cast to a type; None when it has no value of that type."""
    match kind:
        case "VARCHAR" | "TEXT":
            return text
        case "BINARY" | "VARBINARY":
            return text.encode("utf-8", "replace")
        case "BOOLEAN":
            return to_boolean(text)
        case "DOUBLE":
            return to_double(text)
        case "DATE":
            days = to_date(text)
            return None if days is None else _date(days)
        case "TIME":
            nanos = to_time(text)
            return None if nanos is None else (_EPOCH + _micros(nanos)).time()
        case "TIMESTAMPNTZ":
            clock = to_timestamp(text)
            return None if clock is None else _moment(clock.nanos)
        case "TIMESTAMP" | "TIMESTAMPTZ" | "TIMESTAMPLTZ":
            clock = to_timestamp(text)
            return None if clock is None else _instant(clock, text)
        case _ if kind in _WIDTHS:
            number = to_integer(text)
            return None if number is None else _within(number, kind)
    raise NotALiteralError


def _micros(nanos: int) -> datetime.timedelta:
    return datetime.timedelta(microseconds=nanos // 1000)


def _date(days: int) -> object:
    try:
        return _EPOCH.date() + datetime.timedelta(days=days)
    except OverflowError:
        return np.datetime64(days, "D")


def _moment(nanos: int) -> object:
    try:
        return _EPOCH + _micros(nanos)
    except OverflowError:
        return np.datetime64(nanos // 1000, "us")


def _instant(clock: WallClock, text: str) -> object:
    """With a zone an aware datetime; without, or beyond its years, the text is read later."""
    if clock.zone is None:
        return SessionTimestamp(text)
    zone = find_zone(clock.zone)
    if zone is None:
        return None
    moment = _moment(instant_of(clock.nanos, zone))
    if isinstance(moment, datetime.datetime):
        return moment.replace(tzinfo=datetime.UTC)
    return SessionTimestamp(text)


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
    try:
        node, strings = parse_sql(text)
        return _Reader(strings).read(node)
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
        like = read_like(node, self.strings)
        column = None if like is None else self.column(like.operand)
        if like is None or column is None:
            return None
        match like.parts:
            case () | (None,):
                leaf = Like(column, "", prefix=bool(like.parts))
            case (str(text),) | (str(text), None) if text:
                leaf = Like(column, text, prefix=len(like.parts) > 1)
            case _:
                return None
        return Not(leaf) if like.negated else leaf


def _operands(node: exp.Connector) -> Iterator[exp.Expr]:
    """The operands of a chain of ANDs or ORs, in order; a thousand of them nest a thousand deep."""
    kind, stack = type(node), [node.right, node.left]
    while stack:
        operand = stack.pop().unnest()
        if type(operand) is kind:
            stack.extend((operand.right, operand.left))
        else:
            yield operand
