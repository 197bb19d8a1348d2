"""Spark's expressions as predicates of ours.

What is not known here is `Unknown`, and any row may match it. Both sides of a
comparison are of one type in a plan, so that a literal needs no more than its value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Any, TypeAlias

import numpy as np

from alcid.predicate import (
    And,
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
from alcid.spark.jvm.plans import Condition

__all__ = ["column_of", "integer_of", "is_known", "read_condition"]

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_OPERATORS: dict[str, Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime.datetime(1970, 1, 1)
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class _Name:
    """A column of the table."""

    column: str
    comparable: bool


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any
    type: str


class _Other:
    """What is neither; no more is known of it."""


_Operand: TypeAlias = Predicate | _Name | _Literal | _Other
_OTHER = _Other()


def read_condition(
    condition: Condition, columns: Mapping[int, str], comparable: Collection[str]
) -> Predicate:
    """A filter over a table, as a predicate.

    Args:
        condition: The expression.
        columns: The columns of the table by the ids that the plan has for them.
        comparable: Those of which Spark sees the very values that are stored.
    """
    nodes = condition.nodes
    parents = _parents(nodes)
    stack: list[_Operand] = []
    for place in reversed(range(len(nodes))):  # so that what is below a node comes before it
        node = nodes[place]

        def itself(place: int = place) -> Any:
            return condition.at(_path(place, parents))

        below = [stack.pop() for _ in range(node["num-children"])]
        kind = node["class"].removeprefix(_EXPRESSIONS)
        if kind == "AttributeReference":
            name = columns.get(node["exprId"]["id"])
            stack.append(_OTHER if name is None else _Name(name, name in comparable))
        elif kind == "Literal":
            stack.append(_literal(node, itself))
        else:
            stack.append(_read(kind, below, itself))
    return _as_predicate(stack.pop(), "a value")


def column_of(condition: Condition, columns: Mapping[int, str], below: int = 0) -> str | None:
    """The column that an expression is, below so many nodes; None if it is more than that."""
    nodes = condition.nodes
    if len(nodes) != below + 1 or nodes[-1]["class"] != f"{_EXPRESSIONS}AttributeReference":
        return None
    return columns.get(nodes[-1]["exprId"]["id"])


def integer_of(condition: Condition) -> int | None:
    """The number that an expression is; None if it is more than that."""
    first, *rest = condition.nodes
    if rest or first["class"] != f"{_EXPRESSIONS}Literal" or first["dataType"] != "integer":
        return None
    return int(first["value"])


def is_known(predicate: Predicate) -> bool:
    """Whether nothing of a predicate is left to Spark."""
    return not any(isinstance(node, Unknown) for node in predicate.walk())


def _parents(nodes: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """For each node, the one above, and which of its children it is."""
    parents: list[tuple[int, int]] = []
    waiting = [(-1, 0)]
    for place, node in enumerate(nodes):
        parents.append(waiting.pop())
        waiting.extend((place, child) for child in reversed(range(node["num-children"])))
    return parents


def _path(place: int, parents: Sequence[tuple[int, int]]) -> list[int]:
    """The places of the children that lead to a node."""
    path = []
    while place:
        place, child = parents[place]
        path.append(child)
    return path[::-1]


def _read(kind: str, below: Sequence[_Operand], itself: Callable[[], Any]) -> _Operand:
    """An expression that is neither a column nor a literal."""
    match kind, below:
        case (("And" | "Or"), (left, right)):
            parts = _as_predicate(left, kind), _as_predicate(right, kind)
            return And.of(parts) if kind == "And" else Or.of(parts)
        case "Not", (child,):
            return Not(_as_predicate(child, kind))
        case (("IsNull" | "IsNotNull"), (_Name(column),)):
            return IsNull(column, negated=kind == "IsNotNull")
        case "IsNaN", (_Name(column, True),):  # which is false, not NULL, where the column is null
            return And((Comparison(column, "=", float("nan")), IsNull(column, negated=True)))
        case _, (_Name(column, True), _Literal(value)) if kind in _OPERATORS:
            return Comparison(column, _OPERATORS[kind], value)
        case _, (_Literal(value), _Name(column, True)) if kind in _OPERATORS:
            operator = _OPERATORS[kind]
            return Comparison(column, _FLIPPED.get(operator, operator), value)
        case "In", (_Name(column, True), *listed):
            literals = [item.value for item in listed if isinstance(item, _Literal)]
            if len(literals) == len(listed):
                return In(column, tuple(literals))
        case "InSet", (_Name(column, True),):
            return _read_set(column, itself())
        case "StartsWith", (_Name(column, True), _Literal(str() as text, "string")):
            return Like(column, text, prefix=True)
        case "Like", (_Name(column, True), _Literal(str() as pattern, "string")):
            special = {"%", "_", str(itself().escapeChar())}
            start = "".join(takewhile(lambda character: character not in special, pattern))
            return And((Like(column, start, prefix=True), Unknown(kind)))
    return Unknown(kind)


def _as_predicate(operand: _Operand, within: str) -> Predicate:
    """An operand where a condition is expected."""
    match operand:
        case Predicate():
            return operand
        case _Name(column, True):
            return Comparison(column, "=", True)
        case _Literal(value, "boolean"):
            return Constant(value)
    return Unknown(within)


def _read_set(column: str, expression: Any) -> Predicate:
    """A long IN list, whose values are one set of Java's."""
    kind = str(expression.child().dataType().json()).strip('"')
    values, has_null = expression.hset(), bool(expression.hset().contains(None))
    texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
    if len(texts) != values.size():
        return Unknown("InSet")
    if has_null:
        texts.remove("null")
    literals = [_value(text, kind) for text in texts]
    if any(isinstance(literal, _Other) for literal in literals):
        return Unknown("InSet")
    return In(column, (*sorted(literals), *([None] if has_null else [])))


def _literal(node: Mapping[str, Any], itself: Callable[[], Any]) -> _Operand:
    kind, text = node["dataType"], node["value"]
    if not isinstance(kind, str):  # an array, a map or a struct
        return _OTHER
    if text is None:
        return _Literal(None, kind)
    if kind == "binary":
        return _Literal(bytes(itself().value()), kind)
    if kind in ("date", "timestamp"):  # whose text is in the calendar and the zone of the JVM
        text = str(itself().value())
    found = _value(text, kind)
    return _OTHER if isinstance(found, _Other) else _Literal(found, kind)


def _value(text: str, kind: str) -> Any:
    """A literal from the text of the value that Spark has inside."""
    try:
        match kind.partition("(")[0]:
            case "boolean":
                return text == "true"
            case "byte" | "short" | "integer" | "long":
                return int(text)
            case "float":  # the text is the shortest of those that mean the float
                return float(np.float32(text))
            case "double":
                return float(text)
            case "decimal":
                return Decimal(text)
            case "string":  # what is no UTF-8 has been replaced
                return _OTHER if "\ufffd" in text else text
            case "date":
                return (_EPOCH + datetime.timedelta(days=int(text))).date()
            case "timestamp" | "timestamp_ntz":
                moment = _EPOCH + datetime.timedelta(microseconds=int(text))
                return moment.replace(tzinfo=datetime.UTC) if kind == "timestamp" else moment
    except OverflowError:  # beyond the years of Python
        return _OTHER
    return _OTHER
