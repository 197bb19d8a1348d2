"""Every index type compared with brute force: each comparison of a column, for every type."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import DataType, col
from alcid.testing import matching_rows
from alcid.testing.strategies import (
    SampleColumn,
    columns,
    comparisons,
    literals,
)
from tests.properties.kit import (
    KINDS,
    Kind,
    as_text,
    build,
    is_exact,
    must_answer,
    rows_of,
    run,
)

PAIRS = 10_000
"""Columns and predicates, at least, for every index type."""
CASES = [
    pytest.param(kind, data_type, id=f"{kind.name}-{data_type}")
    for kind in KINDS
    for data_type in kind.types
]


@pytest.mark.fuzz
@pytest.mark.parametrize(("kind", "data_type"), CASES)
def test_answers_hold_exactly_the_rows_that_match(kind: Kind, data_type: DataType) -> None:
    pairs = 0

    def check(data: st.DataObject) -> None:
        nonlocal pairs
        column = data.draw(columns(data_type, kind.index_type), label="column")
        options = kind.draw_options(data, "c")
        index = build(column, options, data.draw(st.integers(0, 11), label="form"))
        drawn = data.draw(st.lists(literals(column), min_size=6, max_size=9), label="literals")
        for number, leaf in enumerate(comparisons("c", drawn)):
            text = as_text(leaf) if number % 8 == 0 else None
            selection = index.evaluate(leaf if text is None else text)
            answer = selection.rows
            matches = matching_rows({"c": column.pattern}, {"c": data_type}, leaf)
            expected = BitMap(column.rows_of(matches))
            if answer is None:
                assert not must_answer(leaf, data_type, kind), leaf
            elif is_exact(leaf, data_type):
                assert answer == expected, leaf
            else:
                assert answer >= expected, leaf
            if selection.exact:
                assert rows_of(selection, column.row_count) == expected, leaf
            pairs += 1

    run(check, f"{kind.name} {data_type}", examples=12)
    assert pairs >= math.ceil(PAIRS / len(kind.types))


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if DataType("FLOAT") in kind.types], ids=lambda kind: kind.name
)
@pytest.mark.parametrize("root", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("present", [0.0, -0.0])
@pytest.mark.parametrize("literal", [0.0, -0.0, 0, Decimal("-0.0")])
def test_either_zero_finds_the_other(
    kind: Kind, root: str, present: float, literal: object
) -> None:
    column = SampleColumn(DataType(root), (1.0, present), 2)
    options: dict[str, str | int | float] = {f"file-index.{kind.index_type}.columns": "c"}
    if kind.index_type == "bloom-filter":  # large enough that no bit is set by chance
        options["file-index.bloom-filter.c.items"] = 1000
    index = build(column, options)
    for predicate in (col("c") == literal, col("c").isin([literal])):
        expected = None if kind.index_type == "bloom-filter" else BitMap([1])
        assert index.evaluate(predicate).rows == expected
