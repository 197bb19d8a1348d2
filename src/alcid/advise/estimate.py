"""Estimate how much of a table queries would skip, by planning them on a sample.

Plans are made as scans make them, with the indexes that were built of the sample. So what counts is
what a scan does: pages that are read, indexes that are not worth reading, and files of which half
is needed and which are therefore read whole. From the sample the estimate goes to all files.

No index can choose among pages of a file without a page index. Spark always writes one, and pyarrow
only with `write_page_index=True`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alcid._arrays import BoolArray, Float64Array, Int64Array
from alcid.advise.file_bounds import FileBounds, own_bounds
from alcid.advise.queries import ResolvedQuery, canonical_name
from alcid.advise.sample import ColumnSample
from alcid.advise.sampled_files import (
    BOUNDS,
    IndexName,
    MemoryIndexes,
    Pages,
    Readers,
    SampledFiles,
)
from alcid.datafiles.parquet.layout import UNPAGED
from alcid.scan import TableFiles
from alcid.scan.access import PageAccess
from alcid.scan.candidates import Candidates, IndexUses
from alcid.scan.leaves import TablePredicate
from alcid.scan.planner import Pruning, prune
from alcid.scan.positions import can_answer, expected_bytes, listed_keys
from alcid.scan.reading import ReadResult, RowReader
from alcid.scan.top_n import TopRows

_PROBE = 8 << 10  # bytes that are read of a bloom filter for a value, about


def possible_files(view: SampledFiles, query: ResolvedQuery) -> BoolArray:
    """The files of a table that may have a row, by their paths and bounds."""
    return TablePredicate(query.where, view, query.where_columns).by_statistics().may_match


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What a plan reads of the sample."""

    read: Float64Array
    """Bytes of the needed columns, by file of the table."""
    index_bytes: Float64Array
    """About the bytes that are read of indexes, by file of the table."""
    matches: Int64Array | None
    """Rows that match, by file of the table; None if that is not known without reading."""


class SamplePlans:
    """Plans on the sample of a table, or on every second file of it."""

    def __init__(
        self,
        files: TableFiles,
        chosen: Int64Array,
        samples: Iterable[ColumnSample],
        bounds: FileBounds,
        pages: Pages,
    ) -> None:
        """Take the chosen files of a table, what was sampled of them, and the bounds of others."""
        self.files, self.chosen, self.bounds, self.pages = files, chosen, bounds, pages
        self._payloads: dict[IndexName, list[tuple[str, int, bytes]]] = defaultdict(list)
        for sample in samples:
            for index_type, payload in sample.payloads.items():
                self._payloads[sample.column, index_type].append(
                    (sample.own_name, sample.file, payload)
                )
        self._readers: Readers = {}
        self._views: dict[tuple[frozenset[IndexName], int], SampledFiles] = {}
        self._planned: dict[tuple[ResolvedQuery, frozenset[IndexName], int], Planned] = {}

    @property
    def indexes(self) -> frozenset[IndexName]:
        """All that were built of the sample."""
        return frozenset(self._payloads)

    def plan(self, query: ResolvedQuery, used: frozenset[IndexName], step: int = 1) -> Planned:
        """Plan a query with some indexes, on every file of the sample or every second."""
        used = frozenset(index for index in used if index[0] in query.columns)
        if (query, used, step) not in self._planned:
            self._planned[query, used, step] = _make_plan(query, self._view(used, step))
        return self._planned[query, used, step]

    def matching(self, query: ResolvedQuery) -> Candidates | None:
        """The rows of the sample that match, by all indexes; None if they do not know."""
        view = self._view(frozenset(index for index in self.indexes if index[0] in query.columns))
        where = TablePredicate(query.where, view, query.where_columns)
        plan = _plan_rows(query, view, where, rows_needed=False)
        return plan.candidates if plan.candidates.exact.all() else None

    def possible(self, query: ResolvedQuery, used: frozenset[IndexName]) -> BoolArray:
        """The files of the table that may have a row."""
        return possible_files(self._view(used), query)

    def needed_bytes(self, query: ResolvedQuery) -> Float64Array:
        """Bytes of the columns that a query needs of the sample, by file of the table."""
        return _needed_bytes(self.files, self.chosen, query)

    def _view(self, used: frozenset[IndexName], step: int = 1) -> SampledFiles:
        """The sample with some indexes."""
        if (used, step) not in self._views:
            payloads: dict[IndexName, dict[int, bytes]] = defaultdict(dict)
            for column, index_type in used:
                for own_name, file, payload in self._payloads.get((column, index_type), ()):
                    payloads[own_name, index_type][file] = payload
            columns = {column for column, _ in used}
            read = {
                own_name
                for (column, _), built in self._payloads.items()
                if column in columns
                for own_name, _, _ in built
            }
            indexes = MemoryIndexes(len(self.files.sizes), dict(payloads), self._readers)
            chosen = self.chosen[::step]
            view = SampledFiles(self.files, chosen, indexes, self.bounds, self.pages, read)
            self._views[used, step] = view
        return self._views[used, step]


def _make_plan(query: ResolvedQuery, view: SampledFiles) -> Planned:
    where = TablePredicate(query.where, view, query.where_columns)
    plan = _plan_rows(query, view, where, rows_needed=not query.is_count)
    candidates = plan.candidates
    exact = candidates.exact
    reader = RowReader(view, where, True)
    if query.is_count:
        reads = [ReadResult(reader.open(candidates.filter(~exact), []))]
    elif query.is_top:
        limit, uses = int(query.limit or 0), IndexUses(len(view.sizes))
        _, reads = TopRows(view, query.keys, limit, reader, uses, True).find(candidates)
    else:
        reads = [ReadResult(reader.open(candidates, query.output))]
    read = np.zeros(len(view.sizes))
    for access in (access for result in reads for access in result.opened.accesses):
        read[access.file] += access.usage.bytes if isinstance(access, PageAccess) else access.size
    whole = _needed_bytes(view, np.flatnonzero(view.rows > 0), query)
    index_bytes = np.where(read < whole, _index_bytes(view, where), 0.0)
    return Planned(read, index_bytes, _matches(candidates, view) if exact.all() else None)


def _plan_rows(
    query: ResolvedQuery, view: SampledFiles, where: TablePredicate, *, rows_needed: bool
) -> Pruning:
    return prune(view, where, query.needed, use_indexes=True, rows_needed=rows_needed, strict=False)


def _index_bytes(view: SampledFiles, where: TablePredicate) -> Float64Array:
    """About the bytes of indexes that are read for all leaves, in files that may match."""
    total = np.zeros(len(view.sizes))
    for leaf in where.leaves.values():
        for group in leaf.groups:
            if group.name is None or group.problem:
                continue
            undecided = (
                group.files & leaf.pruning.may_match & ~leaf.pruning.all_match & (view.rows > 0)
            )
            for index_type in view.indexes.types(group.name):
                probe = leaf.probe(group)
                lengths = view.indexes.lengths(group.name, index_type)
                if index_type == "bloom-filter":
                    keys = len(listed_keys(probe) or ())
                    total += np.where(undecided, np.minimum(lengths, _PROBE * keys), 0)
                elif can_answer(index_type, probe):
                    needed = expected_bytes(index_type, probe, lengths, view.rows)
                    total += np.where(undecided, needed, 0)
                    break
    return total


def _needed_bytes(files: TableFiles, some: Int64Array, query: ResolvedQuery) -> Float64Array:
    """Bytes of the columns that a query needs of some files; 0 for the others."""
    sizes = np.zeros(len(files.sizes))
    for file, scan in zip(some.tolist(), files.open(some.tolist()), strict=True):
        inside = files.columns.file_names(file, query.needed)
        sizes[file] = scan.column_sizes(inside).sum() if inside else 0
    return sizes


def _matches(candidates: Candidates, view: SampledFiles) -> Int64Array:
    matches = np.zeros(len(view.sizes), np.int64)
    matches[candidates.files] = candidates.rows(view)
    return matches


_ALIKE = 0.1  # sizes that differ by a tenth say the same


class Skipping:
    """Concludes from plans on a sample for all files."""

    def __init__(self, plans: SamplePlans, distinct: Mapping[str, float]) -> None:
        """Take the plans, and how many distinct values the columns of the table have."""
        self.plans, self._distinct, self._files = plans, distinct, plans.files
        self._sampled = np.zeros(len(self._files.sizes), bool)
        self._sampled[plans.chosen] = True
        self._needed: dict[ResolvedQuery, Float64Array] = {}
        self._skipped: dict[tuple[ResolvedQuery, frozenset[IndexName], bool], float] = {}

    def skip(
        self, query: ResolvedQuery, indexes: Iterable[IndexName], *, net: bool = False
    ) -> float:
        """The part of the bytes of the needed columns that is not read, from 0 to 1.

        Needed are the columns of the predicate and those that are given; of an ORDER BY with a
        LIMIT those of the predicate and the order, as the others are fetched for the best rows
        alone; and to count, those of the predicate. What is read of indexes does not count, unless
        `net` is set: then it may be less than 0.
        """
        used = frozenset(index for index in indexes if index[0] in query.columns)
        if (query, used, net) not in self._skipped:
            skipped = 1.0 - self._share(query, used, net)
            self._skipped[query, used, net] = skipped if net else max(skipped, 0.0)
        return self._skipped[query, used, net]

    def _share(self, query: ResolvedQuery, used: frozenset[IndexName], net: bool) -> float:
        weights = self._weights(query)
        if not weights.sum():
            return 0.0
        if query.is_top:
            return self._top_share(query, used, weights)
        planned = self.plans.plan(query, used)
        read = planned.read + planned.index_bytes if net else planned.read
        considered, possible = self._considered_files(query), self.plans.possible(query, used)
        others = considered & possible & ~self._sampled
        total = read[self._sampled & considered].sum()
        if others.any():
            share = self._share_of_others(query, used, read, possible, others)
            total += (share * weights[others]).sum()
        return float(total / weights[considered].sum())

    def _share_of_others(
        self,
        query: ResolvedQuery,
        used: frozenset[IndexName],
        read: Float64Array,
        possible: BoolArray,
        others: BoolArray,
    ) -> Float64Array:
        """How much is read of files that are not in the sample, though they may have a row."""
        weights, sampled = self._weights(query), self._sampled & possible
        if not weights[sampled].sum():
            return np.ones(int(others.sum()))
        matches = self.plans.plan(query, self.plans.indexes).matches
        expected = self._expected_hits(query, others)
        if expected is None or matches is None:
            return self._average(read, weights, sampled, others)
        hit, missed = sampled & (matches > 0), sampled & (matches == 0)
        if not weights[missed].sum():
            return self._average(read, weights, sampled, others)
        # A single value that is rare may be in the sample by chance, or not in it: what was found
        # counts for as many files as were looked at, and what is usual for as many as have the rows
        # of one value.
        share, files = expected
        looked = int(sampled.sum())
        hits = (looked * weights[hit].sum() / weights[sampled].sum() + files * share) / (
            looked + files
        )
        of_missed = self._average(read, weights, missed, others)
        if hit.any():
            of_hit = self._average(read, weights, hit, others)
        else:  # without an index that knows rows, all of a file is read
            knows_rows = any(index_type not in ("bloom-filter", BOUNDS) for _, index_type in used)
            of_hit = of_missed if knows_rows else np.ones(len(of_missed))
        shares: Float64Array = hits * of_hit + (1.0 - hits) * of_missed
        return shares

    def _expected_hits(
        self, query: ResolvedQuery, others: BoolArray
    ) -> tuple[Float64Array, float] | None:
        """For a look-up of single values: how many of the files usually have one.

        With it comes in how many files a value stands once, on the whole. None: it is no look-up.
        """
        sought = query.sought
        if sought is None:
            return None
        distinct = self._distinct.get(canonical_name(sought[0], self._files.columns))
        if not distinct:
            return None
        rows, each = self._files.rows, distinct / sought[1]
        return 1.0 - np.exp(-rows[others] / each), each / float(rows[self._sampled].mean())

    def _average(
        self, values: Float64Array, weights: Float64Array, some: BoolArray, others: BoolArray
    ) -> Float64Array:
        """The share that is read of some files, for others: files of like size are alike.

        Small ones are read whole where large ones are not.
        """
        sizes = np.log(np.maximum(self._files.sizes, 1).astype(np.float64))
        apart = np.abs(sizes[others][:, None] - sizes[some][None, :])
        likeness = weights[some] / (_ALIKE**2 + apart**2)
        shares = values[some] / np.maximum(weights[some], 1.0)
        averages: Float64Array = (likeness * shares).sum(axis=1) / likeness.sum(axis=1)
        return averages

    def _top_share(
        self, query: ResolvedQuery, used: frozenset[IndexName], weights: Float64Array
    ) -> float:
        """Of the best rows: what a larger sample reads more is read of all other files, too."""
        all_read, half_read = (self.plans.plan(query, used, step).read.sum() for step in (1, 2))
        whole, part = (weights[self.plans.chosen[::step]].sum() for step in (1, 2))
        slope = max(all_read - half_read, 0.0) / (whole - part) if whole > part else 1.0
        total = all_read + slope * (weights.sum() - whole)
        return float(min(total / weights.sum(), 1.0))

    def _considered_files(self, query: ResolvedQuery) -> BoolArray:
        """Files to conclude from: all, unless bounds are known of some only."""
        files = self._files
        considered = files.rows > 0
        own = [
            own_bounds(files, group.name, group.data_type) is not None
            for column in query.columns
            if files.columns.find(column) not in files.columns.partitions
            for group in files.columns.groups(column)
            if group.name is not None and group.data_type is not None
        ]
        if not all(own):
            looked = self._sampled.copy()
            looked[self.plans.bounds.looked] = True
            considered &= looked
        return considered

    def _weights(self, query: ResolvedQuery) -> Float64Array:
        """Bytes of the needed columns of each file; of those not in the sample, about."""
        if query not in self._needed:
            files = self._files
            weights = self.plans.needed_bytes(query)
            share = weights.sum() / max(int(files.sizes[self._sampled].sum()), 1)
            others = (files.rows > 0) & ~self._sampled
            weights[others] = files.sizes[others] * share
            self._needed[query] = weights
        return self._needed[query]


PAGE_ROWS = 2048
"""Of the pages that Alcid writes, and that advice speaks of."""


def as_count(query: ResolvedQuery) -> ResolvedQuery:
    """The same query, if its rows were only counted."""
    return replace(query, output=(), keys=(), limit=None, is_count=True)


def without_pages(plans: SamplePlans, query: ResolvedQuery) -> bool:
    """Whether half of the sampled files or more have no page index of a column that is read."""
    if query.is_count:
        return False
    columns = tuple(dict.fromkeys([*query.where_columns, *query.output]))
    count = sum(_is_without_pages(plans, file, columns) for file in plans.chosen.tolist())
    return 2 * count >= max(len(plans.chosen), 1)


def pages_with_rows(plans: SamplePlans, query: ResolvedQuery) -> float | None:
    """The part of the pages that would have a matching row, if files had pages of `PAGE_ROWS`.

    None if the rows are not known without reading, or for an ORDER BY with a LIMIT.
    """
    candidates = None if query.is_top else plans.matching(query)
    if candidates is None:
        return None
    rows = plans.files.rows
    pages = int((-(-rows[plans.chosen] // PAGE_ROWS)).sum())
    hit = 0
    for file, selection in candidates.items():
        if selection.rows is None:
            hit += int(-(-rows[file] // PAGE_ROWS))
        else:
            hit += len(np.unique(np.asarray(selection.rows.to_array()) // PAGE_ROWS))
    return hit / max(pages, 1)


def _is_without_pages(plans: SamplePlans, file: int, columns: Sequence[str]) -> bool:
    inside = plans.files.columns.file_names(file, columns)
    if not inside or not plans.pages.has(file):
        return False
    layout = plans.pages.layout(file, inside)
    return any(layout.column(name).whole == UNPAGED for name in inside)
