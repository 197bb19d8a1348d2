"""Explanations, computed from what the stages of a scan returned.

Pruning stages say which files they dropped and why; reads say how each file was opened, and so its
row groups and pages; index uses say what became of the indexes of each file, from which follows why
it was not skipped. Nothing here is done for a scan that nobody asks to explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alcid._arrays import BoolArray, Int16Array, Int64Array
from alcid.expressions import (
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundUnknown,
    BoundVisitor,
)
from alcid.scan.access import PageAccess, WholeAccess
from alcid.scan.candidates import Candidates, IndexUses
from alcid.scan.explain import (
    Counts,
    FileOutcomes,
    GroupColumns,
    IndexOutcomes,
    Outcome,
    OutcomeCodes,
    Stage,
)
from alcid.scan.leaves import TableLeaf, TablePredicate
from alcid.scan.planner import Pruning
from alcid.scan.positions import can_answer
from alcid.scan.reading import MOST_ROWS, UNKNOWN_ROWS, ReadResult
from alcid.scan.table_files import DataFiles, TableFiles
from alcid.storage import Meter, Traffic

_NO_ROW_IN_INDEX = Outcome("file index", "no row in the index")
_OUT_OF_BOUNDS = Outcome("row groups", "ruled out by min/max or null counts")
_NO_ROW_GROUP = Outcome("row groups", "every row group is ruled out by min/max or null counts")
_NO_ROWS = Outcome("row groups", "no rows")
_ALL_DELETED = Outcome("deletion vectors", "all rows deleted")
_COUNTED_BY_SPARK = Outcome("read", "and counted by Spark")
_UNANSWERABLE = "no index or statistics can answer this expression"
_WITHOUT_BLOOM_FILTER = "another part of the OR has no bloom filter to probe"
_WITHOUT_POSITIONS = "another part of the OR has no index that gives rows"
_REASONS_OF_INDEXES = {
    "absent": "absent",
    "disabled": "disabled",
    "stale": "stale",
    "damaged": "damaged",
    "type": "of another type",
    "not worth it": "not worth reading",
}
"""What is said of the indexes of a file that is read, by how their outcome begins."""


@dataclass(frozen=True, slots=True, eq=False)
class ScanReport:
    """What the stages of a scan returned, from which its explanation is computed."""

    table: TableFiles
    where: TablePredicate
    pruning: Pruning
    index_uses: Sequence[IndexUses]
    """Of pruning, and of finding the first rows."""
    unread: Outcome
    """Why candidates that were not opened need not be read."""
    reads: Sequence[ReadResult]
    fetches: Sequence[ReadResult]
    """Reads of the other columns of rows that were already found."""
    counted_elsewhere: Candidates | None
    """Files whose rows the engine counted; then nothing was read here."""
    row_count: int | None
    """The rows that match, as far as they were read or counted; None if nothing ran."""

    @property
    def planned(self) -> Candidates:
        """The candidates that pruning left."""
        return self.pruning.candidates

    def stages(self) -> list[Stage]:
        """All stages, with what there was before and after each."""
        table, stages = self.table, []
        before = _counts(Candidates.whole(np.arange(len(table.sizes))), table)
        for number, result in enumerate(self.pruning.stages):
            after = _counts(result.candidates, table)
            dropped = {why: len(files) for why, files in result.dropped.items() if len(files)}
            stage = _stage(result.name, before, after, [result.cost], dropped)
            if result.name == "statistics":
                files = self.pruning.stages[number - 1].candidates.files
                stage = replace(stage, without_statistics=self._without_statistics(files))
            stages.append(stage)
            before = after
        if self.counted_elsewhere is None:
            stages += self._reading_stages(before)
        else:
            rest = _counts(self.counted_elsewhere, table)
            stages += self._unread_stage(before, rest)
            stages.append(Stage("rows", rest, replace(rest, rows=self.row_count)))
        if self.fetches:
            costs = [cost for read in self.fetches for cost in (read.opened.cost, read.cost)]
            stages.append(_stage("fetch", stages[-1].after, stages[-1].after, costs))
        return stages

    def _without_statistics(self, files: Int64Array) -> dict[str, int]:
        """How many of some files have no statistics that could rule them out, by leaf."""
        leaves = self.where.leaves.values()
        counts = {leaf.text: int(leaf.without_statistics[files].sum()) for leaf in leaves}
        return {text: count for text, count in counts.items() if count}

    def _reading_stages(self, planned: Counts) -> list[Stage]:
        """What is read of the candidates.

        Pages are counted of files that are read by pages, if any is; of the others whole row groups
        are read.
        """
        counts = [_counts(read.opened.candidates, self.table) for read in self.reads]
        opened = Counts(
            sum(count.files for count in counts),
            rows=sum(count.rows or 0 for count in counts),
            bytes=sum(count.bytes or 0 for count in counts),
        )
        stages = self._unread_stage(planned, opened)
        groups = all_groups = pages = all_pages = rows = files = paged = 0
        size = page_size = 0
        for access in _accesses(self.reads):
            rows += access.rows
            if isinstance(access, PageAccess):
                files, paged = files + 1, paged + 1
                usage = access.usage
                groups, all_groups = groups + usage.row_groups, all_groups + usage.all_row_groups
                pages, all_pages = pages + usage.pages, all_pages + usage.all_pages
                size, page_size = size + usage.all_bytes, page_size + usage.bytes
            else:
                files += bool(access.groups)
                groups, all_groups = (
                    groups + len(access.groups),
                    all_groups + len(access.starts) - 1,
                )
                size, page_size = size + access.size, page_size + access.size
        left = Counts(files, groups, all_pages if paged else None, rows, size)
        read = replace(left, pages=pages if paged else None, bytes=page_size)
        before = replace(opened, row_groups=all_groups)
        dropped = {_NO_ROW_GROUP.reason: opened.files - files} if opened.files > files else {}
        opening = [result.opened.cost for result in self.reads]
        stages.append(_stage("row groups", before, left, opening, dropped))
        if paged:
            stages.append(Stage("pages", left, read))
        reading = [result.cost for result in self.reads]
        stages.append(_stage("rows", read, replace(read, rows=self.row_count), reading))
        return stages

    def _unread_stage(self, planned: Counts, opened: Counts) -> list[Stage]:
        """The stage that left out files, or rows of them, before they were opened, if one did."""
        if opened == planned:
            return []
        files = planned.files - opened.files
        dropped = {self.unread.reason: files} if files else {}
        return [Stage(self.unread.stage, planned, opened, dropped=dropped)]

    def indexes(self) -> IndexOutcomes:
        """What became of the indexes of each file."""
        report = _IndexReport(self.table, self.where, self.index_uses)
        if self.pruning.index_uses:
            left = {result.name: result.candidates for result in self.pruning.stages}
            considered = left["statistics"]
            undecided = considered.files[~considered.exact]
            report.note_expressions(undecided)
            report.note_unprobed(np.intersect1d(undecided, left["file index"].files))
        return report.to_outcomes()

    def outcomes(self, indexes: IndexOutcomes) -> FileOutcomes:
        """What became of each file, and of the row groups of those that were opened."""
        codes = OutcomeCodes(len(self.table.sizes))
        for result in self.pruning.stages:
            for reason, files in result.dropped.items():
                codes.note(files, Outcome(result.name, reason))
        codes.note(self.planned.files, self.unread)
        if self.counted_elsewhere is not None:
            codes.note(self.counted_elsewhere.files, _COUNTED_BY_SPARK)
        selections = dict(self.planned.items())
        groups = []
        for access in _accesses(self.reads):
            is_planned = access.selection is selections[access.file]
            # Else the cut-off left fewer of its rows.
            without_rows = _NO_ROW_IN_INDEX if is_planned else self.unread
            outcome = self._outcome(access, indexes)
            codes.note(np.array([access.file]), outcome)
            groups.append(_row_groups(codes, self.table, access, outcome, without_rows))
        return FileOutcomes(self.table, codes, GroupColumns.of(groups), indexes)

    def _outcome(self, access: PageAccess | WholeAccess, indexes: IndexOutcomes) -> Outcome:
        if isinstance(access, PageAccess):
            return Outcome("read", "by pages")
        if not access.groups:
            return _NO_ROW_GROUP
        reason = access.reason
        if reason in (UNKNOWN_ROWS, MOST_ROWS):
            outcomes = [use.outcome for use in indexes.of(access.file)]
            if not self.pruning.index_uses:
                reason = "use_indexes is false"
            elif reason == UNKNOWN_ROWS or "answered" not in outcomes:
                reason = _cause(outcomes) or reason
        return Outcome("read", f"by whole row groups: {reason}")


def _accesses(reads: Sequence[ReadResult]) -> list[PageAccess | WholeAccess]:
    return [access for read in reads for access in read.opened.accesses]


def _counts(candidates: Candidates, table: DataFiles) -> Counts:
    """What is left to be read."""
    return Counts(
        len(candidates),
        rows=int(candidates.rows(table).sum()),
        bytes=int(table.sizes[candidates.files].sum()),
    )


def _stage(
    name: str,
    before: Counts,
    after: Counts,
    costs: Sequence[Meter],
    dropped: dict[str, int] | None = None,
) -> Stage:
    seconds = sum(cost.seconds for cost in costs)
    traffic = sum((cost.snapshot() for cost in costs), Traffic())
    return Stage(name, before, after, seconds, traffic.requests, traffic.bytes_read, dropped or {})


def _cause(outcomes: Sequence[str]) -> str:
    """Why no index says which rows of a file match; empty if its indexes do not say."""
    causes = ["the bloom filter let it pass"] if "may contain it" in outcomes else []
    states = [
        text
        for begin, text in _REASONS_OF_INDEXES.items()
        if any(outcome.startswith(begin) for outcome in outcomes)
    ]
    if states:
        causes.append(f"{'other' if causes else 'its'} indexes are {' or '.join(states)}")
    if _UNANSWERABLE in outcomes or "unsupported predicate" in outcomes:
        causes.append("no other can answer" if causes else "no index can answer this predicate")
    if _WITHOUT_BLOOM_FILTER in outcomes or _WITHOUT_POSITIONS in outcomes:
        causes.append("a part of the OR has no index")
    return ", ".join(causes)


def _row_groups(
    codes: OutcomeCodes,
    table: TableFiles,
    access: PageAccess | WholeAccess,
    outcome: Outcome,
    without_rows: Outcome,
) -> GroupColumns:
    """The row groups of a file.

    Args:
        codes: The codes of outcomes.
        table: The files.
        access: How the file is read.
        outcome: The outcome of row groups that are read.
        without_rows: The outcome of those that no row is left of.
    """
    starts = access.layout.starts if isinstance(access, PageAccess) else access.starts
    rows = np.diff(starts)
    chosen = access.selection.rows
    left = rows if chosen is None else _per_group(starts, np.asarray(chosen.to_array()))
    if isinstance(access, PageAccess):
        is_read = left > 0
        pages, all_pages = _pages(access)
    else:
        is_read = np.zeros(len(rows), bool)
        is_read[list(access.groups)] = True
        pages = all_pages = np.full(len(rows), -1, np.int64)
    outcomes = np.full(len(rows), codes.code(outcome), np.int64)
    outcomes[~is_read] = codes.code(_OUT_OF_BOUNDS)
    if not left.all():
        outcomes[left == 0] = codes.code(without_rows)
        outcomes[rows == 0] = codes.code(_NO_ROWS)
        vector = table.deletions.get(access.file)
        if vector:
            deleted = _per_group(starts, vector.to_numpy())
            outcomes[(deleted == rows) & (rows > 0)] = codes.code(_ALL_DELETED)
    file = np.full(len(rows), access.file, np.int64)
    return GroupColumns(file, rows, outcomes, np.where(is_read, left, 0), pages, all_pages)


def _per_group(starts: Int64Array, positions: Int64Array) -> Int64Array:
    """How many of some positions are in each row group."""
    return np.diff(np.searchsorted(positions, starts))


def _pages(access: PageAccess) -> tuple[Int64Array, Int64Array]:
    """The pages that are read of each row group, and those that it has of the columns."""
    starts = access.layout.starts
    count = len(starts) - 1
    pages, all_pages = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for name in access.columns:
        for leaf in access.layout.column(name).leaves:
            firsts = leaf.pieces[2]
            group = np.searchsorted(starts, firsts, "right") - 1
            hit = np.unique(np.searchsorted(firsts, access.positions, "right") - 1)
            pages += np.bincount(group[hit], minlength=count)
            all_pages += np.bincount(group, minlength=count)
    return pages, all_pages


class _IndexReport:
    """Collects what became of the indexes of each file, and why indexes were not probed."""

    def __init__(
        self, table: TableFiles, where: TablePredicate, index_uses: Sequence[IndexUses]
    ) -> None:
        """Begin with what was noted in planning."""
        self.table, self.where = table, where
        self._codes: dict[str, int] = {"": 0}
        self._columns: list[tuple[str, str, Int16Array]] = []
        disabled = table.indexes.disabled
        for uses in index_uses:
            texts = [
                f"disabled by {disabled}" if disabled and text == "absent" else text
                for text in uses.outcomes
            ]
            codes = np.array([self._code(text) for text in texts], np.int16)
            self._columns += (
                (predicate, index, codes[column])
                for (predicate, index), column in uses.columns.items()
            )

    def to_outcomes(self) -> IndexOutcomes:
        """What was collected."""
        return IndexOutcomes(self._columns, tuple(self._codes))

    def note_expressions(self, files: Int64Array) -> None:
        """Note the parts of the predicate that are no comparison of a column with literals."""
        for node in self.where.root.ends():
            if isinstance(node, BoundUnknown):
                self.column(str(node), "")[files] = self._code(_UNANSWERABLE)

    def note_unprobed(self, files: Int64Array) -> None:
        """Note why indexes were not probed in files that are read: only those below an OR are not.

        One part of it may match whatever indexes say, or has an index that says that it may.
        """
        bloom_filters, positional = _Probed(self, is_bloom=True), _Probed(self, is_bloom=False)
        for probed in (bloom_filters, positional):
            self.where.root.accept(probed, None)
        is_read = np.zeros(len(self.table.sizes), bool)
        is_read[files] = True
        not_needed = self._code("not needed")
        for number, leaf in self.where.leaves.items():
            undecided = is_read & leaf.pruning.may_match & ~leaf.pruning.all_match
            for index_type, has, _ in self.indexes(leaf):
                is_bloom = index_type == "bloom-filter"
                probed = bloom_filters if is_bloom else positional
                if number not in probed.blocked:
                    continue
                column = self.column(leaf.text, index_type)
                unused = undecided & has & ((column == 0) | (column == not_needed))
                text = _WITHOUT_BLOOM_FILTER if is_bloom else _WITHOUT_POSITIONS
                is_blocked = probed.blocked[number]
                column[unused] = np.where(is_blocked[unused], self._code(text), not_needed)

    def indexes(self, leaf: TableLeaf) -> Iterator[tuple[str, BoolArray, bool]]:
        """The types of a leaf's indexes, which files have one, and whether it gives rows for it."""
        indexes = self.table.indexes
        for group in leaf.groups:
            if group.name is None or group.problem:
                continue
            for index_type in indexes.types(group.name):
                has = group.files & indexes.fresh(group.name, index_type)
                yield index_type, has, can_answer(index_type, leaf.probe(group))

    def column(self, predicate: str, index: str) -> Int16Array:
        """The codes of a column, which is made if nothing was noted."""
        for *key, column in self._columns:
            if key == [predicate, index]:
                return column
        self._columns.append((predicate, index, np.zeros(len(self.table.sizes), np.int16)))
        return self._columns[-1][2]

    def has_outcome(self, predicate: str, index: str, outcomes: Sequence[str]) -> BoolArray:
        """The files in which an index has one of some outcomes."""
        return np.isin(self.column(predicate, index), [self._code(text) for text in outcomes])

    def _code(self, outcome: str) -> int:
        return self._codes.setdefault(outcome, len(self._codes))


class _Probed(BoundVisitor[None, BoolArray]):
    """For each file, whether indexes of a kind are probed for a node, or statistics decide it."""

    def __init__(self, report: _IndexReport, *, is_bloom: bool) -> None:
        self._report, self._is_bloom = report, is_bloom
        self.blocked: dict[int, BoolArray] = {}
        """Of leaves below an OR: the files where another part of it has no index to probe."""

    def visit_and(self, node: BoundAnd, _context: None) -> BoolArray:
        some: BoolArray = np.logical_or.reduce([part.accept(self, None) for part in node.parts])
        return some

    def visit_or(self, node: BoundOr, _context: None) -> BoolArray:
        probed = [part.accept(self, None) for part in node.parts]
        for number, part in enumerate(node.parts):
            others = np.logical_and.reduce([*probed[:number], *probed[number + 1 :]])
            for leaf in part.leaves():
                self.blocked[leaf.number] = ~others | self.blocked.get(leaf.number, False)
        every: BoolArray = np.logical_and.reduce(probed)
        return every

    def visit_constant(self, _node: BoundConstant, _context: None) -> BoolArray:
        return np.ones(len(self._report.table.sizes), bool)

    def visit_unknown(self, _node: BoundUnknown, _context: None) -> BoolArray:
        return np.zeros(len(self._report.table.sizes), bool)

    def visit_leaf(self, node: BoundLeaf, _context: None) -> BoolArray:
        report, leaf = self._report, self._report.where.leaf(node)
        probed = leaf.pruning.all_match | ~leaf.pruning.may_match
        for index_type, has, gives_rows in report.indexes(leaf):
            if self._is_bloom and index_type == "bloom-filter":
                not_probed = ("unsupported predicate", "not worth it", "damaged")
                probed |= has & ~report.has_outcome(leaf.text, index_type, not_probed)
            elif not self._is_bloom and gives_rows:
                probed |= has & ~report.has_outcome(leaf.text, index_type, ["damaged"])
        return probed
