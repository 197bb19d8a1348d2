"""The leaves of a predicate, made ready to be asked of all files of a table.

Row groups that cannot have a row, by what the footer of their file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np

from alcid._arrays import Float64Array, Int64Array
from alcid.expressions import (
    And,
    Anything,
    Constant,
    Nulls,
    Or,
    Predicate,
    Question,
    Unknown,
    Within,
    lower,
    matching,
)
from alcid.expressions.probes import intersect
from alcid.scan.bounds import Bounds, Verdict, judge
from alcid.scan.columns import ColumnGroup
from alcid.scan.table_files import DataFiles, FileScan

__all__ = [
    "Leaf",
    "by_column",
    "joint_share",
    "judge_groups",
    "kept_groups",
    "leaves_of",
    "share_of",
]


class Leaf:
    """A comparison of one column: what partitions and statistics say of it for each file."""

    def __init__(self, predicate: Predicate, table: DataFiles) -> None:
        """Prepare a leaf of a normalized predicate that the table's columns can answer."""
        (self.column,) = predicate.columns()
        self.predicate, self._table = predicate, table
        self.text = str(predicate)
        self.top_level = table.columns.find(self.column)
        self.is_partition = self.top_level in table.columns.partitions
        self._questions: dict[int, Question] = {}

    @cached_property
    def groups(self) -> list[ColumnGroup]:
        """The column as it is in the files; none for a partition column."""
        return [] if self.is_partition else self._table.columns.groups(self.column)

    def question(self, group: ColumnGroup) -> Question:
        """What the leaf asks of the files of a group, which must be of a type that is compared."""
        if id(group) not in self._questions:
            if group.data_type is None:
                raise TypeError("a group without a type")
            self._questions[id(group)] = lower(self.predicate, self.column, group.data_type)
        return self._questions[id(group)]

    @cached_property
    def by_partition(self) -> Verdict:
        """What the paths say: all of it, or nothing."""
        if not self.is_partition:
            return Verdict.same(len(self._table.sizes), possible=True)
        mask = matching(self.predicate, self._table.partitions, self._table.columns.partitions)
        return Verdict(mask, mask)

    @cached_property
    def verdict(self) -> Verdict:
        """What paths and statistics say."""
        if self.is_partition:
            return self.by_partition
        count = len(self._table.sizes)
        found = Verdict.same(count, possible=True)
        for group in self.groups:
            if group.name is None:
                missing = _null_verdict(self.predicate, self.column, self._table)
                found.possible[group.files] = missing.possible[group.files]
                found.certain[group.files] = missing.certain[group.files]
            elif not group.problem:
                bounds = self.bounds(group)
                if bounds is not None:
                    asked = bounds.ask(self.question(group))
                    found.possible[group.files] = asked.possible[group.files]
                    found.certain[group.files] = asked.certain[group.files]
        replaced = list(self._table.replaced)
        found.possible[replaced], found.certain[replaced] = True, False
        return found

    @cached_property
    def share(self) -> Float64Array:
        """Roughly how many of the rows of each file match."""
        share = np.full(len(self._table.sizes), 0.5)
        for group in self.groups:
            bounds = self.bounds(group)
            if bounds is not None and not group.problem:
                share[group.files] = bounds.share(self.question(group))[group.files]
        return np.where(self.verdict.certain, 1.0, np.where(self.verdict.possible, share, 0.0))

    def bounds(self, group: ColumnGroup) -> Bounds | None:
        """The bounds that files of a group have for the column, if they are known."""
        if group.name is None or group.data_type is None:
            return None
        return self._table.bounds(group.name, group.data_type)


def leaves_of(where: Predicate, table: DataFiles) -> dict[int, Leaf]:
    """The leaves of a normalized predicate, by the identity of their nodes."""
    inner = And, Or, Constant, Unknown
    return {id(node): Leaf(node, table) for node in where.walk() if not isinstance(node, inner)}


def share_of(where: Predicate, leaves: Mapping[int, Leaf], files: Int64Array) -> Float64Array:
    """Roughly how many of the rows of files match a normalized predicate."""
    match where:
        case And(parts):
            inner = [share_of(part, leaves, files) for part in parts if id(part) not in leaves]
            outer = [joint_share(each)[files] for each in by_column(parts, leaves)]
            every: Float64Array = np.prod([*inner, *outer], axis=0)
            return every
        case Or(parts):
            total: Float64Array = np.sum([share_of(part, leaves, files) for part in parts], axis=0)
            return np.minimum(total, 1.0)
        case Constant(value):
            return np.full(len(files), float(bool(value)))
        case Unknown():
            return np.ones(len(files))
    return leaves[id(where)].share[files]


def by_column(parts: Iterable[Predicate], leaves: Mapping[int, Leaf]) -> list[list[Leaf]]:
    """The leaves among parts of a predicate, those of a column together."""
    found: dict[str, list[Leaf]] = {}
    for part in parts:
        if id(part) in leaves:
            found.setdefault(leaves[id(part)].column, []).append(leaves[id(part)])
    return list(found.values())


def joint_share(leaves: Sequence[Leaf]) -> Float64Array:
    """Roughly how many rows of each file match all of some leaves of one column.

    `5 < x AND x < 6` are two leaves, each of which may be true for half of the rows.
    """
    share: Float64Array = np.prod([leaf.share for leaf in leaves], axis=0)
    first = leaves[0]
    for group in first.groups if len(leaves) > 1 else ():
        bounds = first.bounds(group)
        if bounds is None or group.problem:
            continue
        asked = [leaf.question(group) for leaf in leaves]
        ranges = [question.intervals for question in asked if isinstance(question, Within)]
        if len(ranges) == len(asked):
            both = bounds.share(Within(reduce(intersect, ranges)))
            share[group.files] = np.where(share > 0, both, 0.0)[group.files]
    return share


def _null_verdict(predicate: Predicate, column: str, table: DataFiles) -> Verdict:
    """What a leaf says of files that do not have its column: it is null in every row."""
    count, data_type = len(table.sizes), table.columns.type_of(column)
    question = Nulls() if data_type is None else lower(predicate, column, data_type)
    if data_type is None or isinstance(question, Anything):
        return Verdict.same(count, possible=True)
    is_null = isinstance(question, Nulls)
    return Verdict.same(count, possible=is_null, certain=is_null)


def kept_groups(
    table: DataFiles,
    file: int,
    scan: FileScan,
    where: Predicate,
    leaves: Mapping[int, Leaf],
) -> list[int]:
    """The row groups of a file that may have a row of a normalized predicate."""
    verdict = judge_groups(table, file, scan, where, leaves)
    possible = verdict.possible & (np.array(scan.group_rows, np.int64) > 0)
    return [int(group) for group in np.flatnonzero(possible)]


def judge_groups(
    table: DataFiles,
    file: int,
    scan: FileScan,
    where: Predicate,
    leaves: Mapping[int, Leaf],
) -> Verdict:
    """What the footer of a file says of each of its row groups.

    Args:
        table: The table.
        file: Its file.
        scan: The file, whose footer was read.
        where: A normalized predicate.
        leaves: Its leaves.
    """
    rows = scan.group_rows
    count = len(rows)
    groups = {
        place: next(group for group in leaf.groups if group.files[file])
        for place, leaf in leaves.items()
        if not leaf.is_partition
    }
    names = {g.name for g in groups.values() if g.name is not None and not g.problem}
    known = table.group_statistics(file, scan, sorted(names)) if names and count else {}
    row_counts = np.array(rows, np.int64)

    def ask(node: Predicate) -> Verdict:
        leaf, group = leaves[id(node)], groups.get(id(node))
        if group is None or group.name is None or group.problem or group.name not in known:
            verdict = leaf.verdict if group is None or group.name is None else leaf.by_partition
            possible, certain = bool(verdict.possible[file]), bool(verdict.certain[file])
            return Verdict.same(count, possible=possible, certain=certain)
        return Bounds(known[group.name], row_counts).ask(leaf.question(group))

    return judge(where, count, ask)
