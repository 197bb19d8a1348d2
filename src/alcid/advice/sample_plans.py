"""Queries planned on a sample, as scans would be, with the indexes that were built of it.

So what counts is what a scan does: pages that are read, indexes that are not worth reading, and
files of which half is needed and which are therefore read whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.advice.asked import AskedQuery
from alcid.advice.column_sample import ColumnSample
from alcid.advice.file_bounds import FileBounds
from alcid.advice.memory_indexes import IndexName, MemoryIndexes, Readers
from alcid.advice.sampled_files import Pages, SampledFiles
from alcid.plan import TableFiles
from alcid.plan.access import PageAccess
from alcid.plan.candidates import Candidates
from alcid.plan.conform import file_columns
from alcid.plan.cost import can_answer, expected_bytes, listed_keys
from alcid.plan.leaves import Leaf, leaves_of
from alcid.plan.planner import Plan, make_plan
from alcid.plan.reading import Reading
from alcid.plan.top import TopRows
from alcid.plan.verdict import judge

__all__ = ["Planned", "SamplePlans", "possible_files"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PROBE = 8 << 10  # bytes that are read of a bloom filter for a value, about


def possible_files(view: SampledFiles, query: AskedQuery) -> Mask:
    """The files of a table that may have a row, by their paths and bounds."""
    leaves = leaves_of(query.where, view)
    found: Mask = judge(
        query.where, len(view.sizes), lambda node: leaves[id(node)].verdict
    ).possible
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What a plan reads of the sample."""

    read: Floats
    """Bytes of the needed columns, by file of the table."""
    index_bytes: Floats
    """About the bytes that are read of indexes, by file of the table."""
    matches: Integers | None
    """Rows that match, by file of the table; None if that is not known without reading."""


class SamplePlans:
    """Plans on the sample of a table, or on every second file of it."""

    def __init__(
        self,
        files: TableFiles,
        chosen: Integers,
        samples: Iterable[ColumnSample],
        bounds: FileBounds,
        pages: Pages,
    ) -> None:
        """Take the sample.

        Args:
            files: The table.
            chosen: The files of the sample.
            samples: What was made of them.
            bounds: Those of files that the table itself knows nothing of.
            pages: Where their pages are.
        """
        self.files, self.chosen, self.bounds, self.pages = files, chosen, bounds, pages
        self._payloads: dict[IndexName, list[tuple[str, int, bytes]]] = defaultdict(list)
        for one in samples:
            for index_type, payload in one.payloads.items():
                self._payloads[one.column, index_type].append((one.own_name, one.file, payload))
        self._readers: Readers = {}
        self._views: dict[tuple[frozenset[IndexName], int], SampledFiles] = {}
        self._planned: dict[tuple[AskedQuery, frozenset[IndexName], int], Planned] = {}

    @property
    def indexes(self) -> frozenset[IndexName]:
        """All that were built of the sample."""
        return frozenset(self._payloads)

    def plan(self, query: AskedQuery, used: frozenset[IndexName], step: int = 1) -> Planned:
        """Plan a query with some indexes, on every file of the sample or every second."""
        used = frozenset(one for one in used if one[0] in query.columns)
        if (query, used, step) not in self._planned:
            self._planned[query, used, step] = _make_plan(query, self._view(used, step))
        return self._planned[query, used, step]

    def matching(self, query: AskedQuery) -> Candidates | None:
        """The rows of the sample that match, by all indexes; None if they do not know."""
        view = self._view(frozenset(one for one in self.indexes if one[0] in query.columns))
        leaves = leaves_of(query.where, view)
        plan = _plan_rows(query, view, leaves, rows_needed=False)
        return plan.candidates if all(one.exact for one in plan.candidates.selections) else None

    def possible(self, query: AskedQuery, used: frozenset[IndexName]) -> Mask:
        """The files of the table that may have a row."""
        return possible_files(self._view(used), query)

    def needed_bytes(self, query: AskedQuery) -> Floats:
        """Bytes of the columns that a query needs of the sample, by file of the table."""
        return _needed_bytes(self.files, self.chosen, query)

    def _view(self, used: frozenset[IndexName], step: int = 1) -> SampledFiles:
        """The sample with some indexes."""
        if (used, step) not in self._views:
            payloads: dict[IndexName, dict[int, bytes]] = defaultdict(dict)
            for column, index_type in used:
                for own_name, file, payload in self._payloads.get((column, index_type), ()):
                    payloads[own_name, index_type][file] = payload
            asked = {column for column, _ in used}
            read = {
                own_name
                for (column, _), built in self._payloads.items()
                if column in asked
                for own_name, _, _ in built
            }
            indexes = MemoryIndexes(len(self.files.sizes), dict(payloads), self._readers)
            chosen = self.chosen[::step]
            view = SampledFiles(self.files, chosen, indexes, self.bounds, self.pages, read)
            self._views[used, step] = view
        return self._views[used, step]


def _make_plan(query: AskedQuery, view: SampledFiles) -> Planned:
    leaves = leaves_of(query.where, view)
    plan = _plan_rows(query, view, leaves, rows_needed=not query.is_count)
    found = plan.candidates
    exact = np.array([one.exact for one in found.selections], bool)
    reading = Reading(view, query.where, leaves, query.where_columns, True)
    if query.is_count:
        reading.open(found.filter(~exact), [])
    elif query.is_top:
        limit = int(query.limit or 0)
        TopRows(view, query.keys, limit, reading, plan.recorder, True).find(found)
    else:
        reading.open(found, query.output)
    read = np.zeros(len(view.sizes))
    for one in reading.accesses:
        read[one.file] += one.touched.bytes if isinstance(one, PageAccess) else one.size
    whole = _needed_bytes(view, np.flatnonzero(view.rows > 0), query)
    index_bytes = np.where(read < whole, _index_bytes(view, leaves), 0.0)
    return Planned(read, index_bytes, _matches(found, view) if exact.all() else None)


def _plan_rows(
    query: AskedQuery, view: SampledFiles, leaves: Mapping[int, Leaf], *, rows_needed: bool
) -> Plan:
    return make_plan(
        view,
        query.where,
        leaves,
        query.needed,
        use_indexes=True,
        rows_needed=rows_needed,
        strict=False,
    )


def _index_bytes(view: SampledFiles, leaves: Mapping[int, Leaf]) -> Floats:
    """About the bytes of indexes that are read for all leaves, in files that may match."""
    total = np.zeros(len(view.sizes))
    for leaf in leaves.values():
        for group in leaf.groups:
            if group.name is None or group.problem:
                continue
            asked = group.files & leaf.verdict.possible & ~leaf.verdict.certain & (view.rows > 0)
            for index_type in view.indexes.types(group.name):
                question = leaf.question(group)
                lengths = view.indexes.lengths(group.name, index_type)
                if index_type == "bloom-filter":
                    keys = len(listed_keys(question) or ())
                    total += np.where(asked, np.minimum(lengths, _PROBE * keys), 0)
                elif can_answer(index_type, question):
                    needed = expected_bytes(index_type, question, lengths, view.rows)
                    total += np.where(asked, needed, 0)
                    break
    return total


def _needed_bytes(files: TableFiles, some: Integers, query: AskedQuery) -> Floats:
    """Bytes of the columns that a query needs of some files; 0 for the others."""
    found = np.zeros(len(files.sizes))
    for file, scan in zip(some.tolist(), files.open(some.tolist()), strict=True):
        inside = file_columns(files, file, query.needed)
        found[file] = scan.column_sizes(inside).sum() if inside else 0
    return found


def _matches(found: Candidates, view: SampledFiles) -> Integers:
    matches = np.zeros(len(view.sizes), np.int64)
    matches[found.files] = found.rows(view)
    return matches
