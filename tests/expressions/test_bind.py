"""Predicates bound to the types of their columns."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from alcid import DataType, Predicate, col
from alcid.errors import PredicateError
from alcid.expressions import (
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundUnknown,
    BoundVisitor,
    RowFilter,
    RowSchema,
    bind,
    normalize,
    parse,
)

UTC = datetime.UTC
TYPES = {
    "a": DataType("INT"),
    "b": DataType("BIGINT"),
    "d": DataType("DECIMAL", precision=38, scale=30),
    "e": DataType("DECIMAL", precision=9, scale=2),
    "s": DataType.parse("STRING"),
    "day": DataType("DATE"),
    "wall": DataType("TIMESTAMP", precision=6),
    "instant": DataType("TIMESTAMP_LTZ", precision=6),
}


def bound_text(predicate: Predicate, types: Mapping[str, DataType] = TYPES) -> str:
    return str(bind(normalize(predicate), types.get))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 OR a = 2", "a IN (1, 2)"),
        ("a = 1 OR b = 7 OR a = 2", "a IN (1, 2) OR b = 7"),
        ("a IN (1, 2) OR a = 3 OR a IN (4, 5)", "a IN (1, 2, 3, 4, 5)"),
        ("a = 1 OR a <=> 2", "a IN (1, 2)"),
        ("NOT (a <> 1 AND a <> 2)", "a IN (1, 2)"),
        ("s = 'x' AND (a = 1 OR a = 2)", "s = 'x' AND a IN (1, 2)"),
        ("e = 1 OR e = 0.25", "e IN (1, 0.25)"),
        ("s = 'x' OR s = 'y'", "s IN ('x', 'y')"),
        ("day = '2020-01-01' OR day = '2020-01-02'", "day IN ('2020-01-01', '2020-01-02')"),
        # Literals of two kinds: each kind is handled separately.
        ("a = 1 OR a = '2' OR a = 3 OR a = '4'", "a IN (1, 3) OR a IN ('2', '4')"),
        ("a = 1 OR a = 2.5D", "a = 1 OR a = 2.5D"),
        # Equalities only.
        ("a = 1 OR a <> 2", "a = 1 OR a <> 2"),
        ("a = 1 OR a > 2", "a = 1 OR a > 2"),
        ("a = 1 OR a IS NULL", "a = 1 OR a IS NULL"),
        ("a = 1 OR a NOT IN (2)", "a = 1 OR a NOT IN (2)"),
        ("a = 1 AND a = 2", "a = 1 AND a = 2"),
        # In one list these would be rounded: the integer takes ten digits before the point.
        ("d = 1 OR d = 2", "d = 1 OR d = 2"),
        # A column of unknown type.
        ("z = 1 OR z = 2", "z = 1 OR z = 2"),
    ],
)
def test_equalities_joined_by_or_become_one_in(text: str, expected: str) -> None:
    assert bound_text(parse(text)) == expected


@pytest.mark.parametrize(("column", "merged"), [("day", 2), ("wall", 2), ("instant", 1)])
def test_instants_are_only_listed_with_instants(column: str, merged: int) -> None:
    instants = [datetime.datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2)]
    predicate = normalize((col(column) == instants[0]) | (col(column) == instants[1]))
    assert len(list(bind(predicate, TYPES.get).leaves())) == merged


def test_leaves_and_unknown_parts_are_numbered_in_the_order_of_the_text() -> None:
    bound = bind(parse("a = 1 AND (upper(s) = 'X' OR b > 2) AND s LIKE 'x%'"), TYPES.get)
    assert [node.number for node in bound.ends()] == [0, 1, 2, 3]
    assert [leaf.column for leaf in bound.leaves()] == ["a", "b", "s"]
    assert [leaf.data_type for leaf in bound.leaves()] == [TYPES["a"], TYPES["b"], TYPES["s"]]


def test_a_probe_is_made_once_for_each_type() -> None:
    (leaf,) = bind(parse("a IN (1, 2)"), TYPES.get).leaves()
    assert leaf.probe(TYPES["a"]) is leaf.probe(TYPES["a"])
    assert leaf.probe(TYPES["a"]) is not leaf.probe(TYPES["b"])


def test_a_like_pattern_is_parsed_once() -> None:
    (node,) = bind(parse("s LIKE '%a_'"), TYPES.get).ends()
    assert isinstance(node, BoundUnknown)
    assert node.pattern is not None
    assert node.pattern is node.pattern


def test_expressions_come_behind_comparisons() -> None:
    bound = bind(parse("upper(s) = 'X' AND a = 1 AND s LIKE '%a_'"), TYPES.get)
    assert isinstance(bound, BoundAnd)
    assert not bound.is_plain
    assert [str(part) for part in bound.plain_first] == [
        "a = 1",
        "(s LIKE '%a_')",
        "(upper(s) = 'X')",
    ]


class Visited(BoundVisitor[int, str]):
    """Writes the tree as text; the context is the depth."""

    def visit_and(self, node: BoundAnd, context: int, /) -> str:
        return f"{context}and[{','.join(part.accept(self, context + 1) for part in node.parts)}]"

    def visit_or(self, node: BoundOr, context: int, /) -> str:
        return f"{context}or[{','.join(part.accept(self, context + 1) for part in node.parts)}]"

    def visit_constant(self, node: BoundConstant, context: int, /) -> str:
        return f"{context}{node.value}"

    def visit_unknown(self, node: BoundUnknown, context: int, /) -> str:
        return f"{context}?{node.number}"

    def visit_leaf(self, node: BoundLeaf, context: int, /) -> str:
        return f"{context}{node.column}"


def test_a_visitor_sees_every_kind_of_node() -> None:
    bound = bind(parse("a = 1 AND (b = 2 OR f(a) OR NULL)"), TYPES.get)
    assert bound.accept(Visited(), 0) == "0and[1a,1or[2b,2?2,2False]]"


def test_a_tree_that_is_too_deep_is_refused() -> None:
    predicate: Predicate = col("a") == 1
    for _ in range(400):
        predicate = (predicate & (col("b") > 1)) | (col("a") < 0)
    with pytest.raises(PredicateError, match="nested too deeply"):
        bind(predicate, TYPES.get)


def test_a_row_filter_is_prepared_once_for_all_batches() -> None:
    schema = RowSchema(pa.schema({"s": pa.string()}), {"s": "CHAR(4)"})
    rows = RowFilter(bind(normalize(parse("s < 'b' OR s >= 'x'")), schema.type_of), schema)
    batches: list[tuple[list[Any], list[bool]]] = [
        (["a", "b", None], [True, False, False]),
        (["x", "b\t", "a" * 40], [True, True, True]),
        ([], []),
    ]
    for values, expected in batches:
        assert rows.matching(pa.table({"s": pa.array(values, pa.string())})).tolist() == expected


def test_decimals_of_one_type_are_listed() -> None:
    wide = DataType("DECIMAL", precision=38, scale=10)
    literals = [Decimal("1.5"), Decimal("2.25")]
    predicate = (col("c") == literals[0]) | (col("c") == literals[1])
    assert bound_text(predicate, {"c": wide}) == "c IN (1.5, 2.25)"
    # 30 digits before the point leave no room for ten behind it.
    predicate |= col("c") == 10**29
    assert bound_text(predicate, {"c": wide}).startswith("c = 1.5 OR c = 2.25")
