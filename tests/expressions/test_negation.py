"""NOT pushed down to the leaves, under three-valued logic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.expressions import (
    Comparison,
    Not,
    Predicate,
    normalize,
    parse,
)
from tests.expressions.strategies import leaves, truth

NUMBERS = st.one_of(st.none(), st.integers(0, 3))
ROWS = [{"a": a, "b": b} for a in (None, 0, 1, 2, 3) for b in (None, 0, 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOT a < 1", "a >= 1"),
        ("NOT a <= 1", "a > 1"),
        ("NOT a > 1", "a <= 1"),
        ("NOT a >= 1", "a < 1"),
        ("NOT a = 1", "a <> 1"),
        ("NOT a <> 1", "a = 1"),
        ("a <=> 1", "a = 1"),
        ("a <=> NULL", "a IS NULL"),
        ("NOT a <=> 1", "a <> 1 OR a IS NULL"),
        ("NOT a <=> NULL", "a IS NOT NULL"),
        ("NOT a IN (1, 2)", "a NOT IN (1, 2)"),
        ("a IN (5, NULL)", "a IN (5)"),
        ("a IN (NULL)", "NULL"),
        ("a NOT IN (5, NULL)", "NULL"),
        ("a = NULL", "NULL"),
        ("NOT a = NULL", "NULL"),
        ("a < NULL", "NULL"),
        ("a BETWEEN 1 AND NULL", "NULL"),
        ("NOT a BETWEEN 1 AND NULL", "a < 1 OR NULL"),
        ("NOT a BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("NOT a LIKE 'x%'", "a NOT LIKE 'x%'"),
        ("NOT a IS NULL", "a IS NOT NULL"),
        ("NOT TRUE", "FALSE"),
        ("NOT NULL", "NULL"),
        ("NOT f(a)", "(NOT (f(a)))"),
        ("NOT (a = 1 AND NOT (b = 2 OR c = 3))", "a <> 1 OR b = 2 OR c = 3"),
        ("NOT flag", "flag <> TRUE"),
    ],
)
def test_negation_of(text: str, expected: str) -> None:
    assert str(normalize(parse(text))) == expected


def trees() -> st.SearchStrategy[Predicate]:
    start = leaves(NUMBERS, st.sampled_from(["a", "b"]))
    return st.recursive(
        start,
        lambda below: st.one_of(
            st.builds(lambda left, right: left & right, below, below),
            st.builds(lambda left, right: left | right, below, below),
            st.builds(Not, below),
        ),
        max_leaves=10,
    )


@given(trees())
def test_normal_form_matches_the_same_rows(predicate: Predicate) -> None:
    normal = normalize(predicate)
    for row in ROWS:
        assert (truth(normal, row) is True) == (truth(predicate, row) is True)


@given(trees())
def test_normal_form_has_no_not_no_null_literal_and_no_null_safe_comparison(
    predicate: Predicate,
) -> None:
    for node in normalize(predicate).walk():
        assert not isinstance(node, Not)
        if isinstance(node, Comparison):
            assert node.operator != "<=>"
            assert node.literal is not None
