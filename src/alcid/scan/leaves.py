"""A predicate on the files of a table: what partitions and statistics say about each leaf.

`TablePredicate` is the bound predicate with a `TableLeaf` for each of its leaves. Everything that
is derived from it here is an array with a value for each file of the table, or for each row group
of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property, reduce

import numpy as np

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.expressions import (
    AnyRow,
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundUnknown,
    BoundVisitor,
    InIntervals,
    NullRows,
    Predicate,
    Probe,
    RowFilter,
    RowSchema,
    bind,
)
from alcid.expressions.probes import intersect
from alcid.scan.access import table_schema
from alcid.scan.bounds import Bounds, PruningResult, prune
from alcid.scan.columns import ColumnGroup
from alcid.scan.table_files import DataFiles, FileScan


class TablePredicate:
    """A predicate that is bound to the columns of a table, once for a scan."""

    def __init__(self, predicate: Predicate, table: DataFiles, columns: Sequence[str]) -> None:
        """Bind a normalized predicate.

        Args:
            predicate: The predicate.
            table: The files.
            columns: The columns of the table that the predicate names.
        """
        self._table = table
        types = table.columns.columns
        known = {name: types[name].data_type for name in columns}
        self._schema = RowSchema(
            table_schema(table, columns),
            {name: data_type for name, data_type in known.items() if data_type is not None},
        )
        self.root = bind(predicate, self._schema.type_of)
        self.columns = columns
        self.leaves = self._table_leaves()

    def renewed(self) -> TablePredicate:
        """The same, without what was derived from partitions and statistics so far.

        Files may turn out not to be those that were indexed, and their statistics do not count
        then.
        """
        renewed = copy(self)
        renewed.leaves = self._table_leaves()
        return renewed

    def _table_leaves(self) -> dict[int, TableLeaf]:
        return {leaf.number: TableLeaf(leaf, self._table) for leaf in self.root.leaves()}

    @cached_property
    def row_filter(self) -> RowFilter:
        """Evaluates the predicate on rows that have its columns, as the table has them.

        Raises:
            SparkNeededError: It has a part that only Spark can evaluate.
            LiteralError: A literal has no meaning for the type of its column.
            UnsupportedError: A column whose type cannot be compared.
        """
        return RowFilter(self.root, self._schema)

    def filter_for(self, part: Predicate) -> RowFilter:
        """Evaluates a normalized part of the predicate."""
        return RowFilter(bind(part, self._schema.type_of), self._schema)

    @property
    def is_partition_only(self) -> bool:
        """Whether every leaf compares a partition column."""
        return all(leaf.is_partition for leaf in self.leaves.values())

    def leaf(self, node: BoundLeaf) -> TableLeaf:
        """What is known about a leaf of the tree."""
        return self.leaves[node.number]

    def leaves_by_column(self, parts: Iterable[BoundPredicate]) -> list[list[TableLeaf]]:
        """The leaves among parts of the tree, those of a column together."""
        grouped: dict[str, list[TableLeaf]] = {}
        for part in parts:
            if isinstance(part, BoundLeaf):
                grouped.setdefault(part.column, []).append(self.leaf(part))
        return list(grouped.values())

    def by_partitions(self) -> PruningResult:
        """What partition values say about each file."""
        return prune(self.root, len(self._table.sizes), lambda leaf: self.leaf(leaf).by_partition)

    def by_statistics(self) -> PruningResult:
        """What partition values and statistics say about each file."""
        return prune(self.root, len(self._table.sizes), lambda leaf: self.leaf(leaf).pruning)

    def selectivity(self, files: Int64Array) -> Float64Array:
        """Roughly the selectivity: which share of the rows of each of some files matches."""
        return self.root.accept(_Selectivity(self), files)

    def prune_row_groups(self, file: int, scan: FileScan) -> PruningResult:
        """What the footer of a file says about each of its row groups."""
        count = len(scan.group_rows)
        groups = {
            number: next(group for group in leaf.groups if group.files[file])
            for number, leaf in self.leaves.items()
            if not leaf.is_partition
        }
        names = {g.name for g in groups.values() if g.name is not None and not g.problem}
        bounds = self._table.group_bounds(file, scan, names) if names and count else {}

        def evaluate(node: BoundLeaf) -> PruningResult:
            leaf, group = self.leaf(node), groups.get(node.number)
            if group is None or group.name is None or group.problem or group.name not in bounds:
                pruning = leaf.pruning if group is None or group.name is None else leaf.by_partition
                may_match, all_match = bool(pruning.may_match[file]), bool(pruning.all_match[file])
                return PruningResult.uniform(count, may_match=may_match, all_match=all_match)
            return bounds[group.name].evaluate(leaf.probe(group))

        return prune(self.root, count, evaluate)

    def matching_row_groups(self, file: int, scan: FileScan) -> list[int]:
        """The row groups of a file that may have a matching row."""
        may_match = self.prune_row_groups(file, scan).may_match
        may_match = may_match & (np.array(scan.group_rows, np.int64) > 0)
        return [int(group) for group in np.flatnonzero(may_match)]


class _Selectivity(BoundVisitor[Int64Array, Float64Array]):
    """Roughly the share of matching rows, by file; the context is the files."""

    def __init__(self, where: TablePredicate) -> None:
        self._where = where

    def visit_and(self, node: BoundAnd, context: Int64Array) -> Float64Array:
        grouped = self._where.leaves_by_column(node.parts)
        selectivities = [joint_selectivity(leaves)[context] for leaves in grouped]
        others = (part for part in node.parts if not isinstance(part, BoundLeaf))
        selectivities += [part.accept(self, context) for part in others]
        every: Float64Array = np.prod(selectivities, axis=0)
        return every

    def visit_or(self, node: BoundOr, context: Int64Array) -> Float64Array:
        total = np.zeros(len(context))
        for part in node.parts:
            total += part.accept(self, context)
        return np.minimum(total, 1.0)

    def visit_constant(self, node: BoundConstant, context: Int64Array) -> Float64Array:
        return np.full(len(context), float(node.value))

    def visit_unknown(self, _node: BoundUnknown, context: Int64Array) -> Float64Array:
        return np.ones(len(context))

    def visit_leaf(self, node: BoundLeaf, context: Int64Array) -> Float64Array:
        return self._where.leaf(node).selectivity[context]


class TableLeaf:
    """A comparison of one column: what partitions and statistics say about it for each file."""

    def __init__(self, bound: BoundLeaf, table: DataFiles) -> None:
        """Prepare a leaf whose column the table has."""
        self.bound, self._table = bound, table
        self.column = bound.column
        self.is_partition = table.columns.find(bound.column) in table.columns.partitions

    @property
    def text(self) -> str:
        """The SQL text, as explanations show it."""
        return self.bound.text

    @cached_property
    def groups(self) -> list[ColumnGroup]:
        """The column as it is in the files; none for a partition column."""
        return [] if self.is_partition else self._table.columns.groups(self.column)

    def probe(self, group: ColumnGroup) -> Probe:
        """The probe for the files of a group, whose type must be one that is compared."""
        if group.data_type is None:
            raise TypeError("a group without a type")
        return self.bound.probe(group.data_type)

    @cached_property
    def by_partition(self) -> PruningResult:
        """What partition values say: for a partition column everything, for others nothing."""
        if not self.is_partition:
            return PruningResult.uniform(len(self._table.sizes), may_match=True)
        partitions = self._table.partitions
        schema = RowSchema(partitions.schema, self._table.columns.partitions)
        mask = RowFilter(self.bound, schema).matching(partitions)
        return PruningResult(mask, mask)

    @cached_property
    def pruning(self) -> PruningResult:
        """What partition values and statistics say.

        A file is kept where its bounds are not known, where its type of the column does not compare
        as the table's does (`ColumnGroup.problem`), and where it was replaced since it was indexed.
        """
        if self.is_partition:
            return self.by_partition
        count = len(self._table.sizes)
        result = PruningResult.uniform(count, may_match=True)
        for group in self.groups:
            if group.name is None:
                missing = self._without_column()
                result.may_match[group.files] = missing.may_match[group.files]
                result.all_match[group.files] = missing.all_match[group.files]
            elif not group.problem:
                bounds = self.bounds(group)
                if bounds is not None:
                    evaluated = bounds.evaluate(self.probe(group))
                    result.may_match[group.files] = evaluated.may_match[group.files]
                    result.all_match[group.files] = evaluated.all_match[group.files]
        replaced = list(self._table.replaced)
        result.may_match[replaced], result.all_match[replaced] = True, False
        return result

    @property
    def without_statistics(self) -> BoolArray:
        """The files of which no statistics are known that could rule them out."""
        without = np.zeros(len(self._table.sizes), bool)
        for group in self.groups:
            if group.name is None:  # the column is null in every row
                continue
            bounds = None if group.problem else self.bounds(group)
            able = False if bounds is None else bounds.can_rule_out(self.probe(group))
            without |= group.files & ~np.asarray(able)
        replaced = [] if self.is_partition else list(self._table.replaced)
        without[replaced] = True
        return without

    @cached_property
    def selectivity(self) -> Float64Array:
        """Roughly the share of the rows of each file that match."""
        selectivity = np.full(len(self._table.sizes), 0.5)
        for group in self.groups:
            bounds = self.bounds(group)
            if bounds is not None and not group.problem:
                selectivity[group.files] = bounds.selectivity(self.probe(group))[group.files]
        selectivity[~self.pruning.may_match] = 0.0
        return np.where(self.pruning.all_match, 1.0, selectivity)

    def bounds(self, group: ColumnGroup) -> Bounds | None:
        """The bounds that files of a group have for the column, if they are known."""
        if group.name is None or group.data_type is None:
            return None
        return self._table.bounds(group.name, group.data_type)

    def _without_column(self) -> PruningResult:
        """The pruning result for files without the column: it is null in every row."""
        count, data_type = len(self._table.sizes), self._table.columns.type_of(self.column)
        probe = NullRows() if data_type is None else self.bound.probe(data_type)
        if data_type is None or isinstance(probe, AnyRow):
            return PruningResult.uniform(count, may_match=True)
        is_null = isinstance(probe, NullRows)
        return PruningResult.uniform(count, may_match=is_null, all_match=is_null)


def joint_selectivity(leaves: Sequence[TableLeaf]) -> Float64Array:
    """Roughly the share of the rows of each file that match all of some leaves of one column.

    `5 < x AND x < 6` are two leaves, each of which may be true for half of the rows.
    """
    selectivity: Float64Array = np.prod([leaf.selectivity for leaf in leaves], axis=0)
    first = leaves[0]
    for group in first.groups if len(leaves) > 1 else ():
        bounds = first.bounds(group)
        if bounds is None or group.problem:
            continue
        probes = [leaf.probe(group) for leaf in leaves]
        ranges = [probe.intervals for probe in probes if isinstance(probe, InIntervals)]
        if len(ranges) == len(probes):
            both = bounds.selectivity(InIntervals(reduce(intersect, ranges)))
            selectivity[group.files] = np.where(selectivity > 0, both, 0.0)[group.files]
    return selectivity
