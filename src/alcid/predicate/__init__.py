"""Predicates: an expression tree, from SQL text or Python, and the questions it asks an index.

>>> predicate = parse("class_id = 1 AND NOT score >= 60")
>>> print(normalize(predicate))
class_id = 1 AND score < 60
>>> predicate == (col("class_id") == 1) & ~(col("score") >= 60)
True
"""

from __future__ import annotations

from alcid.predicate.ask import ask
from alcid.predicate.column import Column, col
from alcid.predicate.expression import (
    And,
    Between,
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
)
from alcid.predicate.intervals import Interval, points
from alcid.predicate.known import known_part
from alcid.predicate.literal import place
from alcid.predicate.lower import lower
from alcid.predicate.negation import normalize
from alcid.predicate.numbers import Place
from alcid.predicate.question import Anything, NotNulls, Nulls, Outside, Question, Within
from alcid.predicate.rows import matching
from alcid.predicate.sql import parse
from alcid.predicate.text import SessionTimestamp

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
