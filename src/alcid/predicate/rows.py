"""The rows of a table that match a predicate, exactly, in Spark's meaning.

An index gives rows that may match; this finds among the rows read those that do. Every comparison
is vectorised. Arrow's own would differ: NaN is equal to nothing there, CHAR is not padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from alcid.columns import ColumnTypes
from alcid.errors import PredicateError
from alcid.predicate.expression import (
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
from alcid.predicate.negation import normalize
from alcid.predicate.question import NotNulls, Nulls, Question, Within
from alcid.predicate.row_columns import RowColumn
from alcid.predicate.row_lists import Mask
from alcid.predicate.row_patterns import Pattern, read_pattern
from alcid.predicate.row_questions import row_question
from alcid.predicate.row_table import RowTable
from alcid.predicate.sql import parse

__all__ = ["matching"]

_MOST_SHOWN = 80


def matching(
    predicate: str | Predicate, table: pa.Table | pa.RecordBatch, types: ColumnTypes | None = None
) -> Mask:
    """The rows for which a predicate is true: neither false nor NULL.

    LIKE with any pattern on text is understood too. What only Spark can evaluate (functions, casts
    of columns, two columns) is an error, unless the rest decides for every row.

    Args:
        predicate: SQL text, or a predicate made with `alcid.col`.
        table: The rows, with the columns that the predicate names.
        types: Types of columns of which Arrow's say too little: CHAR(n) is text there. Others are
            not needed.

    Returns:
        True for each row that matches.

    Raises:
        PredicateError: The text is not a predicate, or a row depends on what only Spark can tell.
        LiteralError: A literal has no meaning for the type of its column.
        ColumnError: No such column, or a name that fits more than one.
        UnsupportedError: A column whose type cannot be compared.

    >>> import pyarrow as pa
    >>> rows = pa.table({"score": [50.0, float("nan"), None, -0.0], "name": ["a", "b", "c", "d"]})
    >>> matching("score > 60 OR score = 0", rows).tolist()
    [False, True, False, True]
    >>> matching("score = 50 AND upper(name) = 'A'", rows)
    Traceback (most recent call last):
    alcid.errors.PredicateError: only Spark can evaluate upper(name) = 'A', and row 0 depends on it
    """
    try:
        parsed = normalize(parse(predicate))
        rows = RowTable(table, types)
        tree = _prepare(parsed, rows)
        truth = _evaluate(tree, rows.row_count)
        if truth.sure is truth.possible:
            return truth.sure
        open_rows = truth.possible & ~truth.sure
        if open_rows.any():
            raise _undecided(tree, open_rows)
    except RecursionError:
        raise PredicateError("a predicate that is nested too deeply") from None
    return truth.sure


@dataclass(frozen=True, slots=True)
class _Asked:
    """A leaf, ready to be asked."""

    column: RowColumn
    question: Question | Pattern


@dataclass(frozen=True, slots=True)
class _Joined:
    """Parts of an AND, or of an OR."""

    parts: tuple[_Node, ...]
    any_of: bool


_Node: TypeAlias = "_Asked | _Joined | Constant | Unknown"


@dataclass(frozen=True, slots=True)
class _Truth:
    """For each row whether a node is true, as far as it is known."""

    sure: Mask
    possible: Mask
    """The same array where nothing is unknown."""


def _prepare(predicate: Predicate, rows: RowTable) -> _Node:
    """The tree with every leaf's literals brought to values, so that errors depend on no row."""
    match predicate:
        case And(parts) | Or(parts):
            nodes = tuple(_prepare(part, rows) for part in parts)
            return _Joined(nodes, any_of=isinstance(predicate, Or))
        case Between(column, low, high):
            ends = Comparison(column, ">=", low), Comparison(column, "<=", high)
            return _Joined(tuple(_prepare(end, rows) for end in ends), any_of=False)
        case Comparison() | In() | Like() | IsNull():
            return _prepare_leaf(predicate, rows)
        case Unknown(text):
            pattern = read_pattern(text)
            return predicate if pattern is None else _prepare_pattern(predicate, pattern, rows)
        case Constant():
            return predicate
    raise PredicateError(f"not a predicate that rows can be asked: {predicate!r}")


def _prepare_leaf(leaf: Comparison | In | Like | IsNull, rows: RowTable) -> _Node:
    column = rows.column(leaf.column)
    if isinstance(leaf, IsNull):  # of any type, also of those that are not compared
        return _Asked(column.plain, NotNulls() if leaf.negated else Nulls())
    if column.is_null:
        return _Asked(column.plain, Within(()))
    question = row_question(leaf, column.row_type)
    if question is None:
        return Unknown(str(leaf), leaf.columns())
    padded = column.row_type.data_type.root == "CHAR" and not isinstance(leaf, Like)
    return _Asked(column.trimmed if padded else column.plain, question)


def _prepare_pattern(unknown: Unknown, pattern: Pattern, rows: RowTable) -> _Node:
    column = rows.column(pattern.column)
    if column.is_null:
        return _Asked(column.plain, Within(()))
    data_type = column.row_type.data_type
    if data_type.root not in ("CHAR", "VARCHAR"):
        return unknown
    length = data_type.length if data_type.root == "CHAR" else 0
    return _Asked(column.plain, pattern.padded_to(length))


def _evaluate(node: _Node, row_count: int) -> _Truth:
    match node:
        case _Asked(column, question):
            mask = column.ask(question)
            return _Truth(mask, mask)
        case _Joined():
            return _join(node, row_count)
        case Unknown():
            return _Truth(np.zeros(row_count, bool), np.ones(row_count, bool))
        case Constant(value):
            return _everywhere(bool(value), row_count)


def _everywhere(value: bool, row_count: int) -> _Truth:
    mask = np.full(row_count, value)
    return _Truth(mask, mask)


def _join(node: _Joined, row_count: int) -> _Truth:
    """Join the parts until all rows are decided."""
    combine = np.logical_or if node.any_of else np.logical_and
    truth = _everywhere(not node.any_of, row_count)
    for part in node.parts:
        other = _evaluate(part, row_count)
        sure = combine(truth.sure, other.sure)
        known = truth.sure is truth.possible and other.sure is other.possible
        truth = _Truth(sure, sure if known else combine(truth.possible, other.possible))
        if truth.sure.all() if node.any_of else not truth.possible.any():
            break
    return truth


def _undecided(node: _Node, rows: Mask) -> PredicateError:
    """The error that names what the first of these rows depends on."""
    row = int(np.argmax(rows))
    text = next(_unknowns(node, row, len(rows)))
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    return PredicateError(f"only Spark can evaluate {shown}, and row {row} depends on it")


def _unknowns(node: _Node, row: int, row_count: int) -> Iterator[str]:
    if isinstance(node, Unknown):
        yield node.text
    elif isinstance(node, _Joined):
        for part in node.parts:
            truth = _evaluate(part, row_count)
            if truth.possible[row] and not truth.sure[row]:
                yield from _unknowns(part, row, row_count)
