"""Random predicates for the tests of this folder, and an oracle of three-valued logic."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from alcid.expressions import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Unknown,
)

NAMES = st.sampled_from(["a", "b", "s.c", "m[k]", "with space"])
OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
TEXTS = st.text(alphabet="ab%_\\'\"\n`é😀", max_size=5)
LITERALS: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.just(math.nan),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.decimals(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.binary(max_size=4),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)),
)


def leaves(literals: st.SearchStrategy[Any], names: st.SearchStrategy[str]) -> Any:
    """Leaves of every kind."""
    return st.one_of(
        st.builds(Comparison, names, OPERATORS, literals),
        st.builds(Between, names, literals, literals),
        st.builds(In, names, st.lists(literals, min_size=1, max_size=4).map(tuple)),
        st.builds(IsNull, names),
        st.builds(Constant, st.sampled_from([True, False, None])),
    )


def predicates(literals: Any = LITERALS, names: Any = NAMES) -> st.SearchStrategy[Predicate]:
    """Trees as `parse` builds them: flat chains, and negation only as `Not`."""
    start = st.one_of(leaves(literals, names), st.builds(Like, names, TEXTS, st.booleans()))
    return st.recursive(
        start,
        lambda below: st.one_of(
            st.lists(below, min_size=2, max_size=3).map(And.of),
            st.lists(below, min_size=2, max_size=3).map(Or.of),
            below.map(lambda predicate: ~predicate),
        ),
        max_leaves=8,
    )


def _compare(operator: str, value: Any, literal: Any) -> bool | None:
    if operator == "<=>":
        return bool(value == literal)
    if value is None or literal is None:
        return None
    match operator:
        case "=":
            return bool(value == literal)
        case "<>":
            return bool(value != literal)
        case "<":
            return bool(value < literal)
        case "<=":
            return bool(value <= literal)
        case ">":
            return bool(value > literal)
    return bool(value >= literal)


def _any(parts: list[bool | None]) -> bool | None:
    return True if True in parts else None if None in parts else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def truth(predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
    """The truth of a predicate for a row in SQL, straight from the standard's definitions."""
    match predicate:
        case Comparison(column, operator, literal):
            return _compare(operator, row[column], literal)
        case Between(column, low, high):
            value = row[column]
            return _not(_any([_not(_compare(">=", value, low)), _not(_compare("<=", value, high))]))
        case In(column, literals, negated):
            result = _any([_compare("=", row[column], literal) for literal in literals])
            return _not(result) if negated else result
        case IsNull(column, negated):
            return (row[column] is None) != negated
        case Constant(value):
            return value
        case Not(child):
            return _not(truth(child, row))
        case Or(parts):
            return _any([truth(part, row) for part in parts])
        case And(parts):
            return _not(_any([_not(truth(part, row)) for part in parts]))
        case Unknown():
            return True
    raise AssertionError(predicate)
