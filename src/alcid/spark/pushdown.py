"""The required columns and the filter of each table of a query, by the optimiser's plan.

A table may occur in a plan several times. Rows that the filter directly over an occurrence leaves
out do not count there; what no occurrence requires is not read at all.

Filters are expressions of Spark, and become predicates here. An expression that is not understood
is `Unknown`, and any row may match it. Both sides of a comparison have the same type in a plan, so
that a literal needs no more than its value.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from alcid.expressions import (
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
    known_part,
    normalize,
)
from alcid.spark.jvm.planning import Condition, Node
from alcid.spark.reading import MAX_TOP_ROWS

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

    Columns have the ids that the plan has for them; of the `comparable` ones Spark sees the very
    values that are stored.
    """
    nodes = condition.nodes
    parents = _parents(nodes)
    stack: list[_Operand] = []
    for number in reversed(range(len(nodes))):  # so that what is below a node comes before it
        node = nodes[number]

        def itself(number: int = number) -> Any:
            return condition.at(_path(number, parents))

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
    for number, node in enumerate(nodes):
        parents.append(waiting.pop())
        waiting.extend((number, child) for child in reversed(range(node["num-children"])))
    return parents


def _path(number: int, parents: Sequence[tuple[int, int]]) -> list[int]:
    """The places of the children that lead to a node."""
    path = []
    while number:
        number, child = parents[number]
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
    value = _value(text, kind)
    return _OTHER if isinstance(value, _Other) else _Literal(value, kind)


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


# Nodes of which it is known that all plans within them are their children or in their expressions.
_KNOWN = frozenset(
    re.findall(
        r"\w+",
        """
        Aggregate ArrowEvalPython ArrowEvalPythonUDTF BatchEvalPython BatchEvalPythonUDTF
        CTERelationDef CTERelationRef CollectMetrics DataSourceV2Relation
        DataSourceV2ScanRelation Deduplicate DeserializeToObject Distinct Except Expand Filter
        Generate GlobalLimit InMemoryRelation Intersect Join LocalLimit LocalRelation LogicalRDD
        LogicalRelation MapElements MapPartitions Offset OneRowRelation Project Range
        RebalancePartitions Repartition RepartitionByExpression Sample ScriptTransformation
        SerializeFromObject Sort SubqueryAlias Tail TypedFilter Union UnionLoop UnionLoopRef
        Window WindowGroupLimit WithCTE
        """,
    )
)


class UnknownPlanError(Exception):
    """A plan in which a table could occur where it is not looked for; says why."""


@dataclass(frozen=True, slots=True)
class Pushdown:
    """What a query requires of a table."""

    occurrences: int
    where: Predicate
    """The pushed filter: it holds for every row that is required."""
    exact: bool = True
    """Whether it leaves nothing of the filters to Spark."""
    filters: tuple[str, ...] = ()
    """The filters as Spark has them, one for each occurrence; empty text where there is none."""
    columns: tuple[str, ...] = ()
    """The required columns, in the order of the table."""
    order_by: tuple[str, ...] = ()
    limit: int | None = None
    """With it, only the first rows of this order are required."""


@dataclass(frozen=True, slots=True)
class _Top:
    """A limit over a sort."""

    keys: list[Condition]
    limit: int


@dataclass(frozen=True, slots=True)
class _Occurrence:
    where: Predicate
    filter: str
    columns: set[str]
    order_by: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(slots=True)
class _Occurrences:
    """The occurrences of a table."""

    schema: pa.Schema
    comparable: frozenset[str]
    occurrences: list[_Occurrence] = field(default_factory=list)


def find_pushdowns(plan: Node, tables: Mapping[int, pa.Schema]) -> dict[int, Pushdown]:
    """What an optimised plan requires of its tables, which have the ids of their leaves.

    Raises:
        UnknownPlanError: Nothing is known of any table, because of a part of the plan.
    """
    by_relation = {
        number: _Occurrences(schema, frozenset(f.name for f in schema if _is_comparable(f.type)))
        for number, schema in tables.items()
    }
    waiting: list[tuple[Node, tuple[Node, ...], _Top | None]] = [(plan, (), None)]
    while waiting:
        node, above, top = waiting.pop()
        if node.kind not in _KNOWN:
            raise UnknownPlanError(f"the plan has a {node.kind}, which is not known")
        waiting.extend((subquery, (), None) for subquery in node.subqueries)
        if node.relation in by_relation:
            table = by_relation[node.relation]
            table.occurrences.append(_occurrence(node, above, top, table))
        elif node.kind in ("Filter", "Project"):
            waiting.append((node.children[0], (*above, node), top))
        elif (limited := _limit_over_sort(node)) is not None:
            waiting.append((limited[0], (), limited[1]))
        else:
            waiting.extend((child, (), None) for child in reversed(node.children))
    return {number: _combine(table) for number, table in by_relation.items()}


def _limit_over_sort(node: Node) -> tuple[Node, _Top] | None:
    """What is sorted, and how, where a node is the limit of a sort."""
    if node.kind != "GlobalLimit" or node.children[0].kind != "LocalLimit":
        return None
    below = node.children[0].children[0]
    while below.kind == "Project" and not below.subqueries:
        below = below.children[0]
    limit = integer_of(node.limit())
    if below.kind != "Sort" or below.subqueries or not below.is_global or limit is None:
        return None
    return below.children[0], _Top(below.order(), limit)


def _occurrence(
    leaf: Node, above: Sequence[Node], top: _Top | None, table: _Occurrences
) -> _Occurrence:
    """What is needed at a leaf, below some filters and projections."""
    columns = leaf.attributes(table.schema.names)
    if columns is None:
        return _Occurrence(Constant(True), "", set(table.schema.names))
    filters: list[Condition] = []
    predicates: list[Predicate] = []
    needed: set[str] | None = set()
    is_open = True  # no projection yet: what is above may require all columns
    for level, node in reversed(list(enumerate(above))):
        if is_open:
            needed = _with(needed, node.references(), columns)
        if node.kind == "Filter":
            filters.append(node.condition())
            predicates.append(read_condition(filters[-1], columns, table.comparable))
            continue
        is_open = False
        if level or top is not None:
            columns |= _aliases(node, columns)
    all_columns = set(table.schema.names)
    where = _without_implied(normalize(And.of(predicates)))
    text = " AND ".join(map(str, filters))
    wanted = all_columns if is_open or needed is None else needed
    keys = None if top is None else _order(top, columns, table.comparable)
    if top is None or keys is None or not is_known(where):
        return _Occurrence(where, text, wanted)
    return _Occurrence(where, text, wanted, keys, top.limit)


def _without_implied(where: Predicate) -> Predicate:
    """Leave out `c IS NOT NULL` beside a comparison of c, which no null passes; Spark adds it."""
    parts = where.parts if isinstance(where, And) else (where,)
    compared = {part.column for part in parts if isinstance(part, Comparison | In | Like)}
    return And.of(
        part
        for part in parts
        if not (isinstance(part, IsNull) and part.negated and part.column in compared)
    )


def _with(
    needed: set[str] | None, references: set[int] | None, columns: Mapping[int, str]
) -> set[str] | None:
    if needed is None or references is None:
        return None
    return needed | {columns[number] for number in references if number in columns}


def _aliases(project: Node, columns: Mapping[int, str]) -> dict[int, str]:
    """Other ids that a projection gives to columns."""
    aliases = {}
    for expression in project.projected():
        column = column_of(expression, columns, below=1)
        first = expression.nodes[0]
        if column is not None and first["class"].endswith(".expressions.Alias"):
            aliases[int(first["exprId"]["id"])] = column
    return aliases


def _order(
    top: _Top, columns: Mapping[int, str], comparable: frozenset[str]
) -> tuple[str, ...] | None:
    """The sort as our scans have it; None where a key is no column, or the limit is large."""
    keys = []
    for key in top.keys:
        column = column_of(key, columns, below=1)
        if column is None or column not in comparable:
            return None
        direction = "DESC" if "Descending" in key.nodes[0]["direction"]["object"] else "ASC"
        nulls = "FIRST" if "NullsFirst" in key.nodes[0]["nullOrdering"]["object"] else "LAST"
        name = column if re.fullmatch(r"\w+", column) else "`" + column.replace("`", "``") + "`"
        keys.append(f"{name} {direction} NULLS {nulls}")
    return tuple(keys) if top.limit <= MAX_TOP_ROWS else None


def _combine(table: _Occurrences) -> Pushdown:
    """What all occurrences of a table require."""
    occurrences = table.occurrences
    if not occurrences:
        return Pushdown(0, Constant(False))
    wheres = [known_part(occurrence.where) for occurrence in occurrences]
    where = known_part(Or.of(dict.fromkeys(wheres)))
    needed = set[str]().union(*(occurrence.columns for occurrence in occurrences))
    only = occurrences[0] if len(occurrences) == 1 else None
    return Pushdown(
        len(occurrences),
        where,
        all(is_known(occurrence.where) for occurrence in occurrences),
        tuple(occurrence.filter for occurrence in occurrences),
        tuple(name for name in table.schema.names if name in needed),
        () if only is None else only.order_by,
        None if only is None else only.limit,
    )


def _is_comparable(arrow_type: Any) -> bool:
    """Whether Spark sees the very values of a column, and compares them as we do."""
    same = (
        types.is_boolean,
        types.is_signed_integer,
        types.is_float32,
        types.is_float64,
        types.is_decimal128,
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
        types.is_date32,
        types.is_uint8,
        types.is_uint16,
        types.is_uint32,
    )
    if types.is_timestamp(arrow_type):
        return bool(arrow_type.unit != "ns")  # which is finer than Spark is
    return any(is_kind(arrow_type) for is_kind in same)
