"""Predicates over several columns, each with its own index type, compared with brute force."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import DataType, FileIndex, Predicate
from alcid.expressions import Constant
from alcid.testing import matching_rows
from alcid.testing.strategies import columns, trees
from tests.properties.kit import (
    BITMAP_V1,
    BITMAP_V2,
    BLOOM,
    BSI,
    RANGE_BITMAP,
    Kind,
    as_text,
    is_exact,
    must_answer,
    open_again,
    rows_of,
    run,
)

# Every column with its indexes: with two, the second answers what the first cannot.
LAYOUTS: list[dict[str, list[Kind]]] = [
    {"a": [RANGE_BITMAP], "b": [BITMAP_V2], "c": [BSI]},
    {"a": [BITMAP_V1, BSI], "b": [RANGE_BITMAP]},
    {"a": [BLOOM], "b": [BLOOM, BITMAP_V2], "c": [BLOOM, RANGE_BITMAP]},
    {"a": [BITMAP_V2, RANGE_BITMAP], "b": []},
]
TREES = 25  # of each table
ROWS = 40


def is_leaf_exact(
    leaf: Predicate, types: dict[str, DataType], kinds: dict[str, list[Kind]]
) -> bool:
    if isinstance(leaf, Constant):
        return True
    (column,) = leaf.columns()
    answers = any(must_answer(leaf, types[column], kind) for kind in kinds[column])
    return answers and is_exact(leaf, types[column])


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "kinds",
    LAYOUTS,
    ids=["one index each", "two on one", "with bloom filters", "one without"],
)
def test_answers_to_trees_keep_every_row_that_matches(kinds: dict[str, list[Kind]]) -> None:
    asked = exact = 0

    def check(data: st.DataObject) -> None:
        nonlocal asked, exact
        options: dict[str, str | int | float] = {}
        samples = {}
        for name, indexes in kinds.items():
            shared = [t for t in BSI.types if all(t in kind.types for kind in indexes)]
            shared = shared or [t for t in BLOOM.types if all(t in kind.types for kind in indexes)]
            data_type = data.draw(st.sampled_from(shared), label=f"type of {name}")
            column = data.draw(columns(data_type, "bsi", large=False), label=name)
            samples[name] = dataclasses.replace(column, row_count=ROWS)
            for kind in indexes:
                for key, value in kind.draw_options(data, name).items():
                    several = key.endswith(".columns") and key in options
                    options[key] = f"{options[key]},{value}" if several else value
        types = {name: column.data_type for name, column in samples.items()}
        table = pa.table({name: column.to_arrow() for name, column in samples.items()})
        index = open_again(FileIndex.build(table, options), types)
        values = {name: column.values for name, column in samples.items()}
        tree = trees(samples)
        for number in range(TREES):
            predicate = data.draw(tree)
            leaves = [node for node in predicate.walk() if not node.children]
            text = str(predicate) if number % 5 == 0 and all(map(as_text, leaves)) else None
            selection = index.evaluate(text or predicate)
            answer = selection.rows
            expected = BitMap(matching_rows(values, types, predicate))
            if all(is_leaf_exact(leaf, types, kinds) for leaf in leaves):
                assert answer == expected, predicate
                exact += 1
            else:
                assert answer is None or answer >= expected, predicate
            if selection.exact:
                assert rows_of(selection, ROWS) == expected, predicate
            asked += 1

    run(check, str(kinds), examples=20)
    assert asked >= 20 * TREES
    assert exact  # their number depends on the types that were drawn
