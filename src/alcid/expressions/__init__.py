"""Predicates: an expression tree, from SQL text or Python, and the questions it asks an index.

>>> predicate = parse("class_id = 1 AND NOT score >= 60")
>>> print(normalize(predicate))
class_id = 1 AND score < 60
>>> predicate == (col("class_id") == 1) & ~(col("score") >= 60)
True
"""

from __future__ import annotations

from alcid.expressions.bind import lower
from alcid.expressions.casts_from_text import SessionTimestamp
from alcid.expressions.evaluate import matching
from alcid.expressions.expression import (
    And,
    Between,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Leaf,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    Unknown,
    col,
)
from alcid.expressions.literal_keys import Place
from alcid.expressions.literals import place
from alcid.expressions.normalize import known_part, normalize
from alcid.expressions.probes import (
    Anything,
    Interval,
    NotNulls,
    Nulls,
    Outside,
    Question,
    Within,
    ask,
    points,
)
from alcid.expressions.sql import parse

__all__ = [
    "And",
    "Anything",
    "Between",
    "Column",
    "Comparison",
    "Constant",
    "In",
    "Interval",
    "IsNull",
    "Leaf",
    "Like",
    "Not",
    "NotNulls",
    "Nulls",
    "Operator",
    "Or",
    "Outside",
    "Place",
    "Predicate",
    "Question",
    "SessionTimestamp",
    "Unknown",
    "Within",
    "ask",
    "col",
    "known_part",
    "lower",
    "matching",
    "normalize",
    "parse",
    "place",
    "points",
]
