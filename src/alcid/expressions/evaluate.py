"""The rows of a table that match a predicate, exactly, in Spark's meaning.

An index gives rows that may match; this finds among the rows read those that do. Every comparison
is vectorised. Arrow's own would differ: NaN is equal to nothing there, CHAR is not padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray
from alcid.errors import PredicateError
from alcid.expressions.columns import ColumnTypes, RowTable
from alcid.expressions.expression import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Or,
    Predicate,
    Unknown,
)
from alcid.expressions.like import Pattern, read_pattern
from alcid.expressions.normalize import normalize
from alcid.expressions.probes import (
    NotNulls,
    Nulls,
    Question,
    Within,
)
from alcid.expressions.row_tests import row_question
from alcid.expressions.row_values import RowColumn
from alcid.expressions.sql import parse

if TYPE_CHECKING:
    from alcid.expressions.scalars import Condition

__all__ = ["matching"]


def matching(
    predicate: str | Predicate, table: pa.Table | pa.RecordBatch, types: ColumnTypes | None = None
) -> BoolArray:
    """The rows for which a predicate is true: neither false nor NULL.

    Beside comparisons of a column with a literal it may have what no index answers: LIKE with any
    pattern, fields of structs, two columns, arithmetic, CAST and the usual functions of text and
    dates (`scalars`). What only Spark can evaluate is an error, whatever the rows.

    Args:
        predicate: SQL text, or a predicate made with `alcid.col`.
        table: The rows, with the columns that the predicate names.
        types: Types of columns of which Arrow's say too little: CHAR(n) is text there. Others are
            not needed.

    Returns:
        True for each row that matches.

    Raises:
        PredicateError: The text is not a predicate.
        SparkNeededError: It has a part that only Spark can evaluate.
        EvaluationError: A row overflows, divides by zero or cannot be cast, under ANSI rules.
        LiteralError: A literal has no meaning for the type of its column.
        ColumnError: No such column, or a name that fits more than one.
        UnsupportedError: A column whose type cannot be compared.

    >>> import pyarrow as pa
    >>> rows = pa.table({"score": [50.0, float("nan"), None, -0.0], "name": ["a", "b", "c", "d"]})
    >>> matching("score > 60 OR score = 0", rows).tolist()
    [False, True, False, True]
    >>> matching("score = 50 AND upper(name) = 'A'", rows).tolist()
    [True, False, False, False]
    >>> matching("soundex(name) = 'A000'", rows)
    Traceback (most recent call last):
    alcid.errors.SparkNeededError: only Spark can evaluate soundex(name)
    """
    try:
        parsed = normalize(parse(predicate))
        rows = RowTable(table, types)
        return _evaluate(_prepare(parsed, rows), np.ones(rows.row_count, bool))
    except RecursionError:
        raise PredicateError("a predicate that is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A leaf, ready to be asked."""

    column: RowColumn
    question: Question | Pattern


@dataclass(frozen=True, slots=True)
class _Joined:
    """Parts of an AND, or of an OR; those with expressions come last."""

    parts: tuple[_Node, ...]
    any_of: bool

    @property
    def is_plain(self) -> bool:
        """Whether all parts are comparisons of a column with a literal."""
        return all(_is_plain(part) for part in self.parts)


_Node: TypeAlias = "_Asked | _Joined | Constant | Condition"


def _is_plain(node: _Node) -> bool:
    return node.is_plain if isinstance(node, _Joined) else isinstance(node, _Asked | Constant)


def _prepare(predicate: Predicate, rows: RowTable) -> _Node:
    """The tree bound to the columns: whether it is refused depends on their types, on no row."""
    match predicate:
        case And(parts) | Or(parts):
            nodes = [_prepare(part, rows) for part in parts]
            # An expression may fail, and takes longer: it sees only rows that depend on it.
            ordered = sorted(nodes, key=lambda node: not _is_plain(node))
            return _Joined(tuple(ordered), any_of=isinstance(predicate, Or))
        case Between(column, low, high):
            ends = Comparison(column, ">=", low), Comparison(column, "<=", high)
            return _Joined(tuple(_prepare(end, rows) for end in ends), any_of=False)
        case Comparison() | In() | Like() | IsNull():
            return _prepare_leaf(predicate, rows)
        case Unknown(text):
            pattern = read_pattern(text)
            if pattern is None:
                return _bind(text, rows)
            return _prepare_pattern(predicate, pattern, rows)
        case Constant():
            return predicate
    raise PredicateError(f"not a predicate that rows can be asked: {predicate!r}")


def _bind(text: str, rows: RowTable) -> _Node:
    from alcid.expressions.scalars import bind_condition  # here, as in `parse`: it has sqlglot

    return bind_condition(text, rows)


def _prepare_leaf(leaf: Comparison | In | Like | IsNull, rows: RowTable) -> _Node:
    column = rows.column(leaf.column)
    if isinstance(leaf, IsNull):  # of any type, also of those that are not compared
        return _Asked(column.plain, NotNulls() if leaf.negated else Nulls())
    if column.is_null:
        return _Asked(column.plain, Within(()))
    question = row_question(leaf, column.row_type)
    if question is None:
        return _bind(str(leaf), rows)
    padded = column.row_type.data_type.root == "CHAR" and not isinstance(leaf, Like)
    return _Asked(column.trimmed if padded else column.plain, question)


def _prepare_pattern(unknown: Unknown, pattern: Pattern, rows: RowTable) -> _Node:
    column = rows.column(pattern.column)
    if column.is_null:
        return _Asked(column.plain, Within(()))
    data_type = column.row_type.data_type
    if data_type.root not in ("CHAR", "VARCHAR"):
        return _bind(unknown.text, rows)
    length = data_type.length if data_type.root == "CHAR" else 0
    return _Asked(column.plain, pattern.padded_to(length))


def _evaluate(node: _Node, wanted: BoolArray) -> BoolArray:
    """Which rows a node is true for; of those that are not wanted anything may be said."""
    match node:
        case _Asked(column, question):
            return column.ask(question)
        case _Joined():
            return _join(node, wanted)
        case Constant(value):
            return np.full(len(wanted), bool(value))
    return node.true_rows(wanted)


def _join(node: _Joined, wanted: BoolArray) -> BoolArray:
    """Join the parts until all rows are decided."""
    truth = np.full(len(wanted), not node.any_of)
    for part in node.parts:
        if _is_plain(part):
            found = _evaluate(part, wanted)
        else:
            found = _evaluate(part, wanted & ~truth if node.any_of else wanted & truth)
        truth = truth | found if node.any_of else truth & found
        if truth.all() if node.any_of else not truth.any():
            break
    return truth
