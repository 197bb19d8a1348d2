"""The rows for which a predicate is true, exactly as Spark evaluates it.

An index returns rows that may match; a `RowFilter` finds those among them that do. Every comparison
is vectorised. Arrow's own kernels would differ: there NaN equals nothing, and CHAR is not padded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray
from alcid.errors import PredicateError, UnsupportedError
from alcid.expressions.bind import (
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundUnknown,
    BoundVisitor,
    bind,
    normalize,
)
from alcid.expressions.columns import ColumnTypes, RowField, RowSchema, RowTable
from alcid.expressions.expression import (
    Between,
    Comparison,
    IsNull,
    Leaf,
    Like,
    Predicate,
    parse,
)
from alcid.expressions.like import Pattern
from alcid.expressions.probes import InIntervals, NonNullRows, NullRows, Probe, probe_for
from alcid.expressions.row_tests import RowType, row_probe

if TYPE_CHECKING:
    from alcid.expressions.scalars import Condition


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
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise UnsupportedError(f"rows: found {type(table).__name__}, expected a pyarrow Table")
    try:
        normalized = normalize(parse(predicate))
        schema = RowSchema(table.schema, types)
        return RowFilter(bind(normalized, schema.type_of), schema).matching(table)
    except RecursionError:
        raise PredicateError("a predicate that is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A column, and the probe that its values are compared with."""

    field: RowField
    probe: Probe | Pattern
    trimmed: bool = False
    """Compare text without the spaces at its end, as Spark compares CHAR."""
    ordered: Comparison | None = None
    """A comparison of CHAR values whose probe depends on how long they are."""


_RowTest: TypeAlias = "tuple[_Comparison, ...] | Condition"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a filter looks at; of those that are not wanted anything may be said."""

    table: RowTable
    wanted: BoolArray


class RowFilter(BoundVisitor[_Rows, BoolArray]):
    """A bound predicate, prepared for rows of a schema; threads may share it."""

    def __init__(self, bound: BoundPredicate, schema: RowSchema) -> None:
        """Prepare every comparison: what is wrong with one depends on its column, on no row.

        Raises:
            SparkNeededError: It has a part that only Spark can evaluate.
            LiteralError: A literal has no meaning for the type of its column.
            ColumnError: No such column, or a name that fits more than one.
            UnsupportedError: A column whose type cannot be compared.
        """
        self._bound, self._schema = bound, schema
        self._tests = {node.number: self._prepare(node) for node in bound.ends()}
        self._padded: dict[tuple[Comparison, int], Probe] = {}

    def matching(self, table: pa.Table | pa.RecordBatch) -> BoolArray:
        """True for each row that matches.

        Raises:
            EvaluationError: A row overflows, divides by zero or cannot be cast, under ANSI rules.
        """
        rows = _Rows(RowTable(table, self._schema), np.ones(table.num_rows, bool))
        return self._bound.accept(self, rows)

    def visit_and(self, node: BoundAnd, context: _Rows) -> BoolArray:
        """Every part holds."""
        truth = np.ones(len(context.wanted), bool)
        for part in node.plain_first:
            if part.is_plain:
                truth &= part.accept(self, context)
            else:
                truth &= part.accept(self, _Rows(context.table, context.wanted & truth))
            if not truth.any():
                break
        return truth

    def visit_or(self, node: BoundOr, context: _Rows) -> BoolArray:
        """At least one part holds."""
        truth = np.zeros(len(context.wanted), bool)
        for part in node.plain_first:
            if part.is_plain:
                truth |= part.accept(self, context)
            else:
                truth |= part.accept(self, _Rows(context.table, context.wanted & ~truth))
            if truth.all():
                break
        return truth

    def visit_constant(self, node: BoundConstant, context: _Rows) -> BoolArray:
        """Every row matches, or none."""
        return np.full(len(context.wanted), node.value)

    def visit_unknown(self, node: BoundUnknown, context: _Rows) -> BoolArray:
        """A condition that is a LIKE pattern, or has expressions."""
        return self._test(self._tests[node.number], context)

    def visit_leaf(self, node: BoundLeaf, context: _Rows) -> BoolArray:
        """A comparison of one column."""
        return self._test(self._tests[node.number], context)

    def _test(self, test: _RowTest, rows: _Rows) -> BoolArray:
        if not isinstance(test, tuple):
            return test.true_rows(rows.table, rows.wanted)
        mask = self._compare(test[0], rows.table)
        for comparison in test[1:]:
            mask = mask & self._compare(comparison, rows.table)
        return mask

    def _compare(self, comparison: _Comparison, table: RowTable) -> BoolArray:
        column = table.column(comparison.field.name, trimmed=comparison.trimmed)
        probe, ordered = comparison.probe, comparison.ordered
        if ordered is not None:
            longest = 1 << table.column(comparison.field.name).longest().bit_length()
            padded = self._padded.get((ordered, longest))
            if padded is None:
                row_type = replace(comparison.field.row_type, longest=longest)
                padded = self._padded[ordered, longest] = _comparison_probe(ordered, row_type)
            probe = padded
        return column.matching(probe)

    def _prepare(self, node: BoundLeaf | BoundUnknown) -> _RowTest:
        if isinstance(node, BoundLeaf):
            return self._prepare_leaf(node, node.predicate)  # type: ignore[arg-type]
        if node.pattern is None:
            return self._condition(node.predicate.text)
        field = self._schema.field(node.pattern.column)
        if field.is_null:
            return (_Comparison(field, InIntervals(())),)
        data_type = field.data_type
        if data_type.root not in ("CHAR", "VARCHAR"):
            return self._condition(node.predicate.text)
        length = data_type.length if data_type.root == "CHAR" else 0
        return (_Comparison(field, node.pattern.padded_to(length)),)

    def _prepare_leaf(self, node: BoundLeaf, leaf: Leaf) -> _RowTest:
        field = self._schema.field(leaf.column)
        if isinstance(leaf, IsNull):  # of any type, also of those that are not compared
            return (_Comparison(field, NonNullRows() if leaf.negated else NullRows()),)
        if field.is_null:
            return (_Comparison(field, InIntervals(())),)
        index_probe = node.probe(field.data_type)
        probe = row_probe(leaf, field.row_type, index_probe)
        if isinstance(leaf, Between) and probe is None:
            low = Comparison(leaf.column, ">=", leaf.low)
            high = Comparison(leaf.column, "<=", leaf.high)
            return _prepare_end(low, field), _prepare_end(high, field)
        if probe is None:
            return self._condition(str(leaf))
        is_padded = field.data_type.root == "CHAR" and not isinstance(leaf, Like)
        return (_Comparison(field, probe, is_padded, _ordered(leaf) if is_padded else None),)

    def _condition(self, text: str) -> Condition:
        from alcid.expressions.scalars import bind_condition  # here, as in `parse`: it has sqlglot

        return bind_condition(text, self._schema)


def _prepare_end(comparison: Comparison, field: RowField) -> _Comparison:
    """A comparison with one end of a BETWEEN."""
    probe = _comparison_probe(comparison, field.row_type)
    is_padded = field.data_type.root == "CHAR"
    return _Comparison(field, probe, is_padded, comparison if is_padded else None)


def _comparison_probe(comparison: Comparison, row_type: RowType) -> Probe:
    index_probe = probe_for(comparison, comparison.column, row_type.data_type)
    probe = row_probe(comparison, row_type, index_probe)
    assert probe is not None  # as for every comparison
    return probe


def _ordered(leaf: Leaf) -> Comparison | None:
    """A leaf that compares by order."""
    is_ordered = isinstance(leaf, Comparison) and leaf.operator not in ("=", "<>")
    return leaf if is_ordered else None  # type: ignore[return-value]
