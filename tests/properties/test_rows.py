"""A predicate applied to rows, compared with brute force: all types, comparisons, and trees."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import DataType, FileIndex, Predicate
from alcid.expressions import (
    Between,
    Comparison,
    IsNull,
    matching,
    normalize,
)
from alcid.testing import matching_rows
from alcid.testing.strategies import (
    columns,
    comparisons,
    literals,
    trees,
)
from tests.properties.kit import (
    BITMAP_V2,
    BSI,
    RANGE_BITMAP,
    TYPES,
    Kind,
    arrow_forms,
    as_text,
    run,
)

PAIRS = 20_000
"""Columns and predicates, at least, over all types."""
ROWS = 40
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def ignores_nulls(leaf: Predicate) -> bool:
    """Whether Spark considers a comparison of an integer column TRUE, for null rows too."""
    match normalize(leaf):
        case Comparison(_, "<" | "<=", int() | Decimal() as literal):
            return literal >= 2**63
        case Comparison(_, ">" | ">=", int() | Decimal() as literal):
            return literal < -(2**63)
        case Between(column, low, high):
            return ignores_nulls(Comparison(column, ">=", low)) and ignores_nulls(
                Comparison(column, "<=", high)
            )
    return False


@pytest.mark.fuzz
@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_leaves_match_exactly_the_rows_of_brute_force(data_type: DataType) -> None:
    pairs = 0

    def check(data: st.DataObject) -> None:
        nonlocal pairs
        column = data.draw(columns(data_type), label="column")
        forms = list(arrow_forms(column.to_arrow()))
        array = forms[data.draw(st.integers(0, len(forms) - 1), label="form")]
        table = pa.table({"c": array})
        drawn = data.draw(st.lists(literals(column), min_size=6, max_size=9), label="literals")
        for number, leaf in enumerate(comparisons("c", drawn)):
            text = as_text(leaf) if number % 8 == 0 else None
            mask = matching(text or leaf, table, {"C": data_type})
            asked = leaf
            if data_type.root in INTEGERS and ignores_nulls(leaf):
                asked = leaf | IsNull("c")
            patterns = matching_rows({"c": column.pattern}, {"c": data_type}, asked)
            assert mask.dtype == bool
            assert len(mask) == column.row_count
            assert np.flatnonzero(mask).tolist() == column.rows_of(patterns).tolist(), leaf
            pairs += 1

    run(check, f"rows {data_type}", examples=12)
    assert pairs >= PAIRS // len(TYPES)


@pytest.mark.fuzz
def test_trees_match_exactly_the_rows_of_brute_force() -> None:
    asked = 0

    def check(data: st.DataObject) -> None:
        nonlocal asked
        samples = {}
        for name in ("a", "b", "c"):
            data_type = data.draw(st.sampled_from(TYPES), label=f"type of {name}")
            column = data.draw(columns(data_type, large=False), label=name)
            samples[name] = dataclasses.replace(column, row_count=ROWS)
        types = {name: column.data_type for name, column in samples.items()}
        table = pa.table({name: column.to_arrow() for name, column in samples.items()})
        values = {name: column.values for name, column in samples.items()}
        tree = trees(samples)
        for _ in range(25):
            predicate = data.draw(tree)
            leaves = [node for node in normalize(predicate).walk() if not node.children]
            if any(map(ignores_nulls, leaves)):
                continue
            matched = np.flatnonzero(matching(predicate, table, types)).tolist()
            assert matched == matching_rows(values, types, predicate), predicate
            asked += 1

    run(check, "trees of rows", examples=25)
    assert asked >= 500


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", [RANGE_BITMAP, BITMAP_V2, BSI], ids=lambda kind: kind.name)
def test_rows_that_an_index_takes_for_exact_are_those_that_match(kind: Kind) -> None:
    exact = 0

    def check(data: st.DataObject) -> None:
        nonlocal exact
        data_type = data.draw(st.sampled_from(kind.types), label="type")
        column = data.draw(columns(data_type, kind.index_type, large=False), label="column")
        table = pa.table({"c": column.to_arrow()})
        index = FileIndex.from_bytes(
            FileIndex.build(table, kind.draw_options(data, "c")).to_bytes(), {"c": data_type}
        )
        drawn = data.draw(st.lists(literals(column), min_size=2, max_size=4), label="literals")
        for leaf in comparisons("c", drawn):
            rows = BitMap(np.flatnonzero(matching(leaf, table, {"c": data_type})))
            selection = index.evaluate(leaf)
            if selection.exact and selection.rows is not None:
                assert selection.rows == rows, leaf
                exact += 1
            elif selection.rows is not None:
                assert selection.rows >= rows, leaf

    run(check, f"exact {kind.name}", examples=40)
    assert exact >= 200
