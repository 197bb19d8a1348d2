"""Predicates: parsed from SQL text or built in Python, normalized, and bound to column types.

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
    known_part,
    normalize,
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
from alcid.expressions.literal_times import KeyRange
from alcid.expressions.literals import key_range
from alcid.expressions.probes import (
    AnyRow,
    InIntervals,
    Interval,
    NonNullRows,
    NotInIntervals,
    NullRows,
    Probe,
    points,
    probe_for,
    probe_index,
)

__all__ = [
    "And",
    "AnyRow",
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
    "InIntervals",
    "Interval",
    "IsNull",
    "KeyRange",
    "Leaf",
    "Like",
    "NonNullRows",
    "Not",
    "NotInIntervals",
    "NullRows",
    "Operator",
    "Or",
    "Predicate",
    "Probe",
    "RowFilter",
    "RowSchema",
    "SessionTimestamp",
    "Unknown",
    "bind",
    "col",
    "key_range",
    "known_part",
    "matching",
    "normalize",
    "parse",
    "points",
    "probe_for",
    "probe_index",
]
