"""Rows from indexes: for each file that may match, which rows may.

Before an index is read, its cost is compared with what it may save, both in bytes, where a request
counts as some bytes too. An OR with a leg that no index answers can be any row, so its other legs
are not probed; and where an index costs more than it saves, the file is read without it. The
estimate is rough on purpose: it must be right where index and data differ by a factor, and where
they do not, either is fine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.errors import FormatError, UnsupportedError
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
    NotInIntervals,
    Probe,
    points,
    probe_index,
)
from alcid.formats.file_index.keys import key_type
from alcid.formats.file_index.reader import ANY, EVERY, Selection, no_row
from alcid.index.bundle import State
from alcid.scan.candidates import IndexUses
from alcid.scan.columns import ColumnGroup
from alcid.scan.leaves import TableLeaf, TablePredicate, joint_selectivity
from alcid.scan.table_files import TableFiles
from alcid.types import BYTE_STRING_TYPES

MOST_KEYS = 1024
"""More single values than this are not looked up one by one."""

PAGE_ROWS = 4096
"""The rows that estimates assume in a Parquet page; real pages have 2,000 to 20,000."""

_HEADS = 8 << 10  # bytes of headers that are read before an index can answer
_CHEAP = 0.1  # an index this small, as a share of the data, is read even if it may not help


def listed_keys(probe: Probe) -> list[int | bytes] | None:
    """The single keys that a probe is about, if they are few."""
    if not isinstance(probe, InIntervals | NotInIntervals):
        return None
    keys: list[int | bytes] = []
    for interval in probe.intervals:
        few = points(interval, MOST_KEYS)
        if few is None or len(keys) + len(few) > MOST_KEYS:
            return None
        keys += few
    return keys


def can_answer(index_type: str, probe: Probe) -> bool:
    """Whether an index of this type gives rows for a probe.

    A bloom filter never does: the planner probes bloom filters before.
    """
    match index_type:
        case "range-bitmap" | "bsi":
            return not isinstance(probe, AnyRow)
        case "bitmap":
            single = not isinstance(probe, InIntervals | NotInIntervals)
            return not isinstance(probe, AnyRow) and (single or listed_keys(probe) is not None)
    return False


def expected_bytes(
    index_type: str, probe: Probe, lengths: Int64Array, rows: Int64Array
) -> Int64Array:
    """The bytes that a probe reads of an index that gives rows, for each file.

    Of a bitmap these are parts of its dictionary and bitmaps, of the other types bit slices.
    """
    if index_type == "bitmap":
        keys = listed_keys(probe) or [0]
        needed = 2 * _HEADS + len(keys) * np.minimum(rows // 8, 2 * _HEADS)
    else:
        slices = np.ceil(np.log2(np.maximum(rows, 2))).astype(np.int64) + 1
        needed = 2 * _HEADS + slices * (rows // 8)
    expected: Int64Array = np.minimum(lengths, needed)
    return expected


def is_worth_it(
    cost: Int64Array, scan: Int64Array, selectivity: Float64Array, *, rows_needed: bool
) -> BoolArray:
    """For each file: whether an index is read.

    Args:
        cost: Bytes of the index, requests among them.
        scan: Bytes of the data that are read without it.
        selectivity: The share of the rows that are expected to match.
        rows_needed: The rows themselves are read afterwards; else they are only counted.
    """
    saved = scan * (1.0 - selectivity) ** PAGE_ROWS if rows_needed else scan.astype(np.float64)
    worth: BoolArray = (cost <= saved) | (cost <= _CHEAP * scan)
    return worth


_REQUESTS = 3  # that wait for each other before an index can answer
_PAGE = 32 << 10  # bytes of one column that are read for a single row
_RARE = 1e-5
"""The share of rows that are assumed to hold a given text, where nothing is known about it.

People index text to find rare values, and reading an index for nothing costs less than reading all
of the data.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _Estimate:
    """What the indexes of files can do for a node of the predicate, and at what cost."""

    node: BoundPredicate
    able: BoolArray
    """The files for which indexes give rows, or statistics have decided already."""
    cost: Int64Array
    """Bytes that are read of indexes."""
    selectivity: Float64Array
    """The share of the rows that are expected to match."""
    parts: tuple[_Estimate, ...] = ()
    usable: tuple[tuple[ColumnGroup, str, BoolArray], ...] = ()
    """Of a leaf: the groups and types of indexes that can answer it, and which files have one."""

    def leaves(self) -> Iterator[_Estimate]:
        """The estimates of the leaves."""
        if isinstance(self.node, BoundLeaf):
            yield self
        for part in self.parts:
            yield from part.leaves()


class _Estimating(BoundVisitor[None, _Estimate]):
    """Estimates what indexes can do, node by node."""

    def __init__(self, table: TableFiles, where: TablePredicate, files: Int64Array) -> None:
        self._table, self._where, self._files = table, where, files

    def visit_and(self, node: BoundAnd, _context: None) -> _Estimate:
        count = len(self._files)
        parts = tuple([part.accept(self, None) for part in node.parts])
        able, cost, selectivity = np.zeros(count, bool), np.zeros(count, np.int64), np.ones(count)
        of_column: dict[str, list[_Estimate]] = {}
        rest: list[_Estimate] = []
        for part in parts:
            if isinstance(part.node, BoundLeaf):
                of_column.setdefault(part.node.column, []).append(part)
            else:
                rest.append(part)
        for part in (*map(self._same_column, of_column.values()), *rest):
            able |= part.able
            cost += np.where(part.able, part.cost, 0)
            selectivity *= np.where(part.able, part.selectivity, 1.0)
        return _Estimate(node, able, cost, selectivity, parts)

    def visit_or(self, node: BoundOr, _context: None) -> _Estimate:
        count = len(self._files)
        parts = tuple([part.accept(self, None) for part in node.parts])
        able, cost, selectivity = np.ones(count, bool), np.zeros(count, np.int64), np.zeros(count)
        for part in parts:
            able &= part.able
            cost += part.cost
            selectivity += part.selectivity
        return _Estimate(node, able, cost, np.minimum(selectivity, 1.0), parts)

    def visit_constant(self, node: BoundConstant, _context: None) -> _Estimate:
        count = len(self._files)
        selectivity = np.full(count, float(node.value))
        return _Estimate(node, np.ones(count, bool), np.zeros(count, np.int64), selectivity)

    def visit_unknown(self, node: BoundUnknown, _context: None) -> _Estimate:
        count = len(self._files)
        return _Estimate(node, np.zeros(count, bool), np.zeros(count, np.int64), np.ones(count))

    def visit_leaf(self, node: BoundLeaf, _context: None) -> _Estimate:
        leaf, files = self._where.leaf(node), self._files
        pruning = leaf.pruning
        able = pruning.all_match[files] | ~pruning.may_match[files]
        cost, selectivity = np.zeros(len(files), np.int64), leaf.selectivity[files]
        usable: list[tuple[ColumnGroup, str, BoolArray]] = []
        indexes, rows = self._table.indexes, self._table.rows
        for group in leaf.groups:
            if group.name is None or group.problem:
                continue
            for index_type in indexes.types(group.name):
                if not can_answer(index_type, leaf.probe(group)):
                    continue
                has = (group.files & indexes.fresh(group.name, index_type))[files]
                usable.append((group, index_type, has))
                lengths = indexes.lengths(group.name, index_type)[files]
                needed = expected_bytes(index_type, leaf.probe(group), lengths, rows[files])
                cost = np.where(has & ~able, needed, cost)
                able |= has
            if group.data_type is not None and group.data_type.root in BYTE_STRING_TYPES:
                rare = _RARE * len(listed_keys(leaf.probe(group)) or ())
                is_rare = group.files[files] & (rare > 0)
                selectivity = np.where(is_rare, np.minimum(selectivity, rare), selectivity)
        return _Estimate(node, able, cost, selectivity, usable=tuple(usable))

    def _same_column(self, parts: Sequence[_Estimate]) -> _Estimate:
        """Leaves of one column that all must hold: they read the same index."""
        if len(parts) == 1:
            return parts[0]
        some = np.logical_or.reduce([part.able for part in parts])
        every = np.logical_and.reduce([part.able for part in parts])
        cost = np.sum([np.where(part.able, part.cost, 0) for part in parts], axis=0)
        selectivity = np.prod(
            [np.where(part.able, part.selectivity, 1.0) for part in parts], axis=0
        )
        nodes = [part.node for part in parts]
        (leaves,) = self._where.leaves_by_column(nodes)
        cost = np.where(every, np.maximum.reduce([part.cost for part in parts]), cost)
        selectivity = np.where(every, joint_selectivity(leaves)[self._files], selectivity)
        return _Estimate(parts[0].node, some, cost, selectivity)


@dataclass(frozen=True, slots=True)
class _At:
    """A node in one file: its estimate, the file, and the offset of the file in the estimates."""

    estimate: _Estimate
    file: int
    offset: int


class Positions(BoundVisitor[_At, Selection]):
    """Probes the indexes of files for the rows of a predicate."""

    def __init__(
        self,
        table: TableFiles,
        where: TablePredicate,
        files: Int64Array,
        scan_bytes: Int64Array,
        uses: IndexUses,
        *,
        rows_needed: bool,
    ) -> None:
        """Prepare for files in ascending order; without indexes, `scan_bytes` of each are read."""
        self._table, self._where, self._files = table, where, files
        self._scan_bytes, self._uses, self._rows_needed = scan_bytes, uses, rows_needed
        self._estimate = where.root.accept(_Estimating(table, where, files), None)

    def worth(self) -> BoolArray:
        """The files whose indexes are worth probing; notes why the others are not probed."""
        estimate = self._estimate
        cost = np.where(estimate.cost > 0, estimate.cost + _REQUESTS * self._table.gap, 0)
        worth = is_worth_it(
            cost, self._scan_bytes, estimate.selectivity, rows_needed=self._rows_needed
        )
        for leaf in self._where.leaves.values():
            if not leaf.is_partition:
                self._note_unused(leaf, estimate.able & ~worth)
        result: BoolArray = estimate.able & worth
        return result

    def select(self, file: int) -> Selection:
        """The rows of one of the files that `worth` has named."""
        return self._select(self._estimate, file, int(np.searchsorted(self._files, file)))

    def _select(self, estimate: _Estimate, file: int, offset: int) -> Selection:
        return estimate.node.accept(self, _At(estimate, file, offset))

    def visit_and(self, _node: BoundAnd, context: _At) -> Selection:
        """The cheapest parts first, and no more of them than is worth reading."""
        file, offset, parts = context.file, context.offset, context.estimate.parts
        able = [part for part in parts if part.able[offset]]
        selection = ANY if len(able) < len(parts) else EVERY
        for part in sorted(able, key=lambda part: int(part.cost[offset])):
            cost = int(part.cost[offset])
            if self._rows_needed and self._read_bytes(selection, file, offset) < cost:
                self._note_too_costly(part, offset)
                selection &= ANY
                continue
            answer = self._select(part, file, offset)
            if answer.exact and answer.rows is not None:
                answer = replace(answer, claims=(part.node.predicate,))
            selection &= answer
            if selection.skip:
                break
        return selection

    def visit_or(self, _node: BoundOr, context: _At) -> Selection:
        """At least one part holds."""
        parts, offset = context.estimate.parts, context.offset
        if not all(part.able[offset] for part in parts):
            return ANY
        selection = no_row()
        for part in parts:
            selection |= self._select(part, context.file, offset)
            if selection.rows is None:
                break
        return selection

    def visit_constant(self, node: BoundConstant, _context: _At) -> Selection:
        """Every row matches, or none."""
        return EVERY if node.value else no_row()

    def visit_unknown(self, _node: BoundUnknown, _context: _At) -> Selection:
        """Any row may match."""
        return ANY

    def visit_leaf(self, node: BoundLeaf, context: _At) -> Selection:
        """A comparison of one column."""
        leaf, file = self._where.leaf(node), context.file
        pruning = leaf.pruning
        if not pruning.may_match[file]:
            return no_row()
        if pruning.all_match[file]:
            return EVERY
        for group, index_type, has in context.estimate.usable:
            if not has[context.offset] or group.name is None or group.data_type is None:
                continue
            kind = key_type(group.data_type)
            try:
                reader = self._table.indexes.reader(group.name, index_type, file, kind)
                answer = probe_index(reader, leaf.probe(group))
            except (FormatError, UnsupportedError) as error:
                self._uses.note_damaged(leaf.text, index_type, file, error)
                continue
            if answer.rows is not None:
                self._uses.note(leaf.text, index_type, file, "answered")
                return answer
            self._uses.note(leaf.text, index_type, file, "unsupported predicate")
        return ANY

    def _read_bytes(self, selection: Selection, file: int, offset: int) -> float:
        """Roughly the bytes read for the rows that are left: of each row, whole pages."""
        if selection.rows is None:
            return math.inf
        scan_bytes = float(self._scan_bytes[offset])
        bytes_per_row = scan_bytes * PAGE_ROWS / max(int(self._table.rows[file]), 1)
        return min(len(selection.rows) * max(bytes_per_row, _PAGE), scan_bytes)

    def _note_too_costly(self, estimate: _Estimate, offset: int) -> None:
        """Note the indexes that are not probed because reading the rows left is cheaper."""
        for leaf in estimate.leaves():
            for _, index_type, has in leaf.usable:
                if has[offset]:
                    file = int(self._files[offset])
                    self._uses.note(str(leaf.node), index_type, file, "not worth it")

    def note_rest(self) -> None:
        """Note "not needed" for the positional indexes of which nothing was noted so far.

        Either another index had ruled out the file, or they could not help: they belong to a part
        of an OR of which another part has no index. `IndexReport` tells these two apart.
        """
        files, uses = self._files, self._uses
        for leaf in self._where.leaves.values():
            undecided = leaf.pruning.may_match[files] & ~leaf.pruning.all_match[files]
            for name in {group.name for group in leaf.groups if not group.problem}:
                if name is None:
                    continue
                files_of = np.logical_or.reduce([g.files for g in leaf.groups if g.name == name])
                here = files_of[files] & undecided
                for index_type in self._table.indexes.types(name):
                    if index_type != "bloom-filter":
                        rest = here & ~uses.is_noted(leaf.text, index_type, files)
                        uses.note(leaf.text, index_type, files[rest], "not needed")

    def _note_unused(self, leaf: TableLeaf, not_worth: BoolArray) -> None:
        """Note why indexes of a leaf's column are not probed.

        Args:
            leaf: The leaf.
            not_worth: For each file, whether its indexes cost more than they save.
        """
        files, note = self._files, self._uses.note
        open_files = leaf.pruning.may_match[files] & ~leaf.pruning.all_match[files]
        for group in leaf.groups:
            here = group.files[files] & open_files
            if group.name is None:
                continue
            if group.problem:
                note(leaf.text, "", files[here], f"type: {group.problem}")
                continue
            # Without an index of the column that could be read, the type is not known: it is "".
            for index_type in self._table.indexes.types(group.name) or [""]:
                states = self._table.indexes.states(group.name, index_type)[files]
                for state in (State.ABSENT, State.STALE, State.DAMAGED):
                    note(leaf.text, index_type, files[here & (states == state)], state.name.lower())
                fresh = here & (states == State.FRESH)
                if index_type == "bloom-filter":
                    continue
                if can_answer(index_type, leaf.probe(group)):
                    note(leaf.text, index_type, files[fresh & not_worth], "not worth it")
                else:
                    note(leaf.text, index_type, files[fresh], "unsupported predicate")
