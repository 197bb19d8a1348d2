"""From a predicate to files and rows, without a look at the data.

The stages come in the order of their price, each only for what the one before left: values in the
paths, least and greatest values, bloom filters and other indexes, deletion vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alcid.formats.selection import Selection, no_row
from alcid.plan.blooms import Blooms
from alcid.plan.candidates import Candidates
from alcid.plan.dictionaries import Dictionaries
from alcid.plan.leaves import Leaf
from alcid.plan.positions import Positions
from alcid.plan.recorder import Recorder, StageNotes
from alcid.plan.table_files import Integers, TableFiles
from alcid.plan.threads import wait_for_each
from alcid.plan.verdict import judge
from alcid.predicate import Predicate

__all__ = ["Plan", "make_plan"]

_REQUESTS = 2  # for a file that is scanned: its footer, then its columns


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Which rows of which files may match, and how that was found."""

    candidates: Candidates
    recorder: Recorder


def make_plan(
    table: TableFiles,
    where: Predicate,
    leaves: Mapping[int, Leaf],
    needed: Sequence[str],
    *,
    use_indexes: bool,
    rows_needed: bool,
    strict: bool,
) -> Plan:
    """Plan a scan.

    Args:
        table: The files.
        where: A normalized predicate whose columns and literals were checked.
        leaves: Its leaves.
        needed: The columns of the table that are read.
        use_indexes: False: neither statistics nor indexes are looked at.
        rows_needed: The rows are read, and not only counted.
        strict: Raise where an index is damaged.
    """
    count = len(table.sizes)
    everything = Candidates.of(np.arange(count), np.zeros(count, bool)).counts(table)
    recorder = Recorder(everything, strict=strict)
    with recorder.stage("partitions") as notes:
        verdict = judge(where, count, lambda node: leaves[id(node)].by_partition)
        files = np.flatnonzero(verdict.possible & (table.rows != 0))
        notes.drop("other partitions", np.flatnonzero(~verdict.possible & (table.rows != 0)))
        notes.drop("no rows", np.flatnonzero(table.rows == 0))
        candidates = Candidates.of(files, verdict.certain[files])
        notes.after = candidates.counts(table)
    if use_indexes:
        with recorder.stage("statistics") as notes:
            verdict = judge(where, count, lambda node: leaves[id(node)].verdict)
            kept = files[verdict.possible[files]]
            notes.drop("no value within bounds", files[~verdict.possible[files]])
            candidates = Candidates.of(kept, verdict.certain[kept])
            notes.after = candidates.counts(table)
        with recorder.stage("file index") as notes:
            asker = _Asker(table, where, leaves, needed, recorder, rows_needed)
            candidates = asker.ask(candidates, notes)
            notes.after = candidates.counts(table)
    if table.deletions:
        with recorder.stage("deletion vectors") as notes:
            table.load_deletions(candidates.files)
            pairs = zip(candidates.files.tolist(), candidates.selections, strict=True)
            left = candidates.chosen(_live(table, file, found) for file, found in pairs)
            gone = np.setdiff1d(candidates.files, left.files, assume_unique=True)
            notes.drop("all rows deleted", gone)
            candidates = left
            notes.after = candidates.counts(table)
    return Plan(candidates, recorder)


def _live(table: TableFiles, file: int, found: Selection) -> Selection:
    vector = table.deletions.get(file)
    if not vector:
        return found
    live = vector.live_rows(int(table.rows[file]), found.rows)
    return Selection(live, found.exact, found.claims)


@dataclass(frozen=True, slots=True)
class _Asker:
    """The stage of the file indexes."""

    table: TableFiles
    where: Predicate
    leaves: Mapping[int, Leaf]
    needed: Sequence[str]
    recorder: Recorder
    rows_needed: bool

    def ask(self, candidates: Candidates, notes: StageNotes) -> Candidates:
        """Bloom filters of all files first, then the rows of those that are left."""
        is_open = np.array([not found.exact for found in candidates.selections], bool)
        files = candidates.files[is_open]
        if not self.leaves or not len(files):
            return candidates
        self.table.indexes.load(files)
        scan = self._scan_bytes()
        blooms = Blooms(self.table, self.leaves, scan, self.recorder)
        may_match = blooms.may_match(self.where, files)
        notes.drop("bloom filter", files[~may_match])
        files = files[may_match]
        positions = Positions(self.table, self.leaves, files, scan[files], self.recorder)
        asked = files[positions.worth(self.where, rows_needed=self.rows_needed)]
        # What one search rules out need not be asked file by file.
        may_have = Dictionaries(self.table, self.leaves, self.recorder).may_match(self.where, asked)
        answers = [no_row()] * len(asked)
        for place, answer in zip(
            np.flatnonzero(may_have).tolist(),
            self._select(positions, asked[may_have].tolist()),
            strict=True,
        ):
            answers[place] = answer
        positions.note_rest()
        found = dict(zip(asked.tolist(), answers, strict=True))
        notes.drop("no row in the index", asked[[answer.skip for answer in answers]])
        kept = ~is_open
        kept[is_open] = may_match
        left = candidates.filter(kept)
        return left.chosen(
            found.get(file, one)
            for file, one in zip(left.files.tolist(), left.selections, strict=True)
        )

    def _select(self, positions: Positions, files: list[int]) -> list[Selection]:
        def select(file: int) -> Selection:
            return positions.select(self.where, file, rows_needed=self.rows_needed)

        return wait_for_each(select, files, remote=self.table.remote)

    def _scan_bytes(self) -> Integers:
        """Roughly what a file costs without indexes: its footer, and its share of columns."""
        share = self.table.columns.share(len(self.needed))
        scanned: Integers = (self.table.sizes * share).astype(np.int64)
        return scanned + _REQUESTS * self.table.gap
