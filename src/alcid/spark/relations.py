"""What a query needs of each of its tables, as the optimiser's plan shows it.

A table may occur in a plan several times. Rows that the filter directly over an occurrence leaves
out do not count there; what no occurrence needs is not needed at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import types

from alcid.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Or,
    Predicate,
    known_part,
    normalize,
)
from alcid.spark.conditions import column_of, integer_of, is_known, read_condition
from alcid.spark.jvm.plans import Condition, Node
from alcid.spark.ways import MOST_TOP

__all__ = ["Need", "UnknownPlanError", "needs_of"]

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
class Need:
    """What a query needs of a table."""

    occurrences: int
    where: Predicate
    """It holds for every row that is needed."""
    exact: bool = True
    """Whether it leaves nothing of the filters to Spark."""
    filters: tuple[str, ...] = ()
    """The filters as Spark has them, one for each occurrence; empty text where there is none."""
    columns: tuple[str, ...] = ()
    """Those that are needed, in the order of the table."""
    order_by: tuple[str, ...] = ()
    limit: int | None = None
    """With it, only the first rows of this order are needed."""


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
class _Found:
    """The occurrences of a table."""

    schema: pa.Schema
    comparable: frozenset[str]
    occurrences: list[_Occurrence] = field(default_factory=list)


def needs_of(plan: Node, tables: Mapping[int, pa.Schema]) -> dict[int, Need]:
    """What a plan needs of its tables.

    Args:
        plan: As the optimiser leaves it.
        tables: The schemas of the tables, by the ids that their leaves have.

    Raises:
        UnknownPlanError: Nothing is known of any table, because of a part of the plan.
    """
    found = {
        number: _Found(schema, frozenset(f.name for f in schema if _is_comparable(f.type)))
        for number, schema in tables.items()
    }
    waiting: list[tuple[Node, tuple[Node, ...], _Top | None]] = [(plan, (), None)]
    while waiting:
        node, above, top = waiting.pop()
        if node.kind not in _KNOWN:
            raise UnknownPlanError(f"the plan has a {node.kind}, which is not known")
        waiting.extend((subquery, (), None) for subquery in node.subqueries)
        if node.relation in found:
            table = found[node.relation]
            table.occurrences.append(_occurrence(node, above, top, table))
        elif node.kind in ("Filter", "Project"):
            waiting.append((node.children[0], (*above, node), top))
        elif (limited := _limit_over_sort(node)) is not None:
            waiting.append((limited[0], (), limited[1]))
        else:
            waiting.extend((child, (), None) for child in reversed(node.children))
    return {number: _together(table) for number, table in found.items()}


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


def _occurrence(leaf: Node, above: Sequence[Node], top: _Top | None, table: _Found) -> _Occurrence:
    """What is needed at a leaf, below some filters and projections."""
    columns = leaf.attributes(table.schema.names)
    if columns is None:
        return _Occurrence(Constant(True), "", set(table.schema.names))
    filters: list[Condition] = []
    predicates: list[Predicate] = []
    needed: set[str] | None = set()
    is_open = True  # no projection yet: what is above may need all columns
    for place, node in reversed(list(enumerate(above))):
        if is_open:
            needed = _with(needed, node.references(), columns)
        if node.kind == "Filter":
            filters.append(node.condition())
            predicates.append(read_condition(filters[-1], columns, table.comparable))
            continue
        is_open = False
        if place or top is not None:
            columns |= _aliases(node, columns)
    every = set(table.schema.names)
    where = _without_implied(normalize(And.of(predicates)))
    text = " AND ".join(map(str, filters))
    wanted = every if is_open or needed is None else needed
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
    found = {}
    for expression in project.projected():
        column = column_of(expression, columns, below=1)
        first = expression.nodes[0]
        if column is not None and first["class"].endswith(".expressions.Alias"):
            found[int(first["exprId"]["id"])] = column
    return found


def _order(
    top: _Top, columns: Mapping[int, str], comparable: frozenset[str]
) -> tuple[str, ...] | None:
    """The sort as our scans have it; None where a key is no column, or the limit is large."""
    keys = []
    for key in top.keys:
        column = column_of(key, columns, below=1)
        if column is None or column not in comparable:
            return None
        way = "DESC" if "Descending" in key.nodes[0]["direction"]["object"] else "ASC"
        nulls = "FIRST" if "NullsFirst" in key.nodes[0]["nullOrdering"]["object"] else "LAST"
        name = column if re.fullmatch(r"\w+", column) else "`" + column.replace("`", "``") + "`"
        keys.append(f"{name} {way} NULLS {nulls}")
    return tuple(keys) if top.limit <= MOST_TOP else None


def _together(table: _Found) -> Need:
    """What all occurrences of a table need."""
    occurrences = table.occurrences
    if not occurrences:
        return Need(0, Constant(False))
    wheres = [known_part(occurrence.where) for occurrence in occurrences]
    where = known_part(Or.of(dict.fromkeys(wheres)))
    needed = set[str]().union(*(occurrence.columns for occurrence in occurrences))
    only = occurrences[0] if len(occurrences) == 1 else None
    return Need(
        len(occurrences),
        where,
        all(is_known(occurrence.where) for occurrence in occurrences),
        tuple(occurrence.filter for occurrence in occurrences),
        tuple(name for name in table.schema.names if name in needed),
        () if only is None else only.order_by,
        None if only is None else only.limit,
    )


def _is_comparable(given: Any) -> bool:
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
    if types.is_timestamp(given):
        return bool(given.unit != "ns")  # which is finer than Spark is
    return any(is_kind(given) for is_kind in same)
