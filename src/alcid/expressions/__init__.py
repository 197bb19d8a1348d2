"""Predicates: an expression tree, from SQL text or Python, and the questions it asks an index.

>>> predicate = parse("class_id = 1 AND NOT score >= 60")
>>> print(normalize(predicate))
class_id = 1 AND score < 60
>>> predicate == (col("class_id") == 1) & ~(col("score") >= 60)
True
"""

from __future__ import annotations

from alcid.expressions.bind import (
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundUnknown,
    BoundVisitor,
    bind,
)
from alcid.expressions.casts_from_text import SessionTimestamp
from alcid.expressions.columns import RowSchema
from alcid.expressions.evaluate import RowFilter, matching
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
    parse,
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
    probe_for,
)

__all__ = [
    "And",
    "Anything",
    "Between",
    "BoundAnd",
    "BoundConstant",
    "BoundLeaf",
    "BoundOr",
    "BoundPredicate",
    "BoundUnknown",
    "BoundVisitor",
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
    "RowFilter",
    "RowSchema",
    "SessionTimestamp",
    "Unknown",
    "Within",
    "ask",
    "bind",
    "col",
    "known_part",
    "matching",
    "normalize",
    "parse",
    "place",
    "points",
    "probe_for",
]
