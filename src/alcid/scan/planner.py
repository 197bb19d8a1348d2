"""From a predicate to files and rows, without a look at the data.

The stages come in the order of their price, each only for what the one before left: values in the
paths, least and greatest values, bloom filters and other indexes, deletion vectors.

Which files may have a value at all: indexes that are asked for all files at once.

Bloom filters: which files may have a value at all, for all files in one round of reads.

Bitmap indexes that are searched together for a value: most files of a large table lack it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alcid._arrays import BoolArray, Int64Array
from alcid.expressions import (
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundUnknown,
    BoundVisitor,
    Within,
)
from alcid.formats.file_index.keys import key_type
from alcid.formats.file_index.reader import Selection, no_row
from alcid.scan.candidates import Candidates, Recorder, StageNotes
from alcid.scan.columns import ColumnGroup
from alcid.scan.leaves import TableLeaf, TablePredicate
from alcid.scan.positions import Positions, listed_keys
from alcid.scan.table_files import TableFiles
from alcid.storage.threads import wait_for_each

__all__ = ["Blooms", "Dictionaries", "Plan", "Probing", "make_plan"]


class Probing(BoundVisitor[Int64Array, BoolArray], ABC):
    """Asks the indexes of one type for the values of a predicate; the context is the files."""

    index_type: str

    def __init__(self, table: TableFiles, where: TablePredicate, recorder: Recorder) -> None:
        """Prepare; nothing is asked yet."""
        self._table, self._where, self._recorder = table, where, recorder

    def may_match(self, files: Int64Array) -> BoolArray:
        """For each of some files, whether a row may match."""
        return self._where.root.accept(self, files)

    def visit_and(self, node: BoundAnd, context: Int64Array) -> BoolArray:
        """Every part holds."""
        found = np.ones(len(context), bool)
        for part in node.parts:
            found[found] = part.accept(self, context[found])
        return found

    def visit_or(self, node: BoundOr, context: Int64Array) -> BoolArray:
        """At least one part holds."""
        # Legs that no index can rule out make the others useless.
        found = np.zeros(len(context), bool)
        for part in sorted(node.parts, key=self._has_index):
            found[~found] = part.accept(self, context[~found])
        return found

    def visit_constant(self, _node: BoundConstant, context: Int64Array) -> BoolArray:
        """Every row matches, or none."""
        return np.ones(len(context), bool)

    def visit_unknown(self, _node: BoundUnknown, context: Int64Array) -> BoolArray:
        """Any row may match."""
        return np.ones(len(context), bool)

    def visit_leaf(self, node: BoundLeaf, context: Int64Array) -> BoolArray:
        """A comparison of one column."""
        leaf = self._where.leaf(node)
        possible: BoolArray = leaf.verdict.possible[context]
        for group in leaf.groups:
            asked = possible & ~leaf.verdict.certain[context] & group.files[context]
            if asked.any():
                possible[asked] = self._of_group(leaf, group, context[asked])
        return possible

    def _has_index(self, node: BoundPredicate) -> bool:
        return any(
            self.index_type in self._table.indexes.types(group.name)
            for leaf in node.leaves()
            for group in self._where.leaf(leaf).groups
            if group.name is not None
        )

    def _of_group(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        is_known = group.name is not None and group.data_type is not None and not group.problem
        if not is_known or self.index_type not in self._table.indexes.types(group.name or ""):
            return np.ones(len(files), bool)
        return self._probe(leaf, group, files)

    @abstractmethod
    def _probe(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        """For each of some files of a group, of which some have an index: as `may_match`."""


_BITS = 8  # that are looked at for a key, about
_BLOCK = 1 << 10


class Blooms(Probing):
    """Asks the bloom filters of files, as far as that is cheaper than to read the files."""

    index_type = "bloom-filter"

    def __init__(
        self,
        table: TableFiles,
        where: TablePredicate,
        scan: Int64Array,
        recorder: Recorder,
    ) -> None:
        """Prepare; `scan` is what is read of each file of the table without indexes."""
        super().__init__(table, where, recorder)
        self._scan = scan

    def _probe(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        assert group.name is not None
        assert group.data_type is not None
        found = np.ones(len(files), bool)
        indexes, question = self._table.indexes, leaf.question(group)
        keys = listed_keys(question) if isinstance(question, Within) else None
        fresh = indexes.fresh(group.name, self.index_type)[files]
        add = self._recorder.uses.add
        if not keys:
            add(leaf.text, self.index_type, "unsupported predicate", int(fresh.sum()))
            return found
        lengths = indexes.lengths(group.name, self.index_type)[files]
        blocks = np.minimum(_BITS * len(keys), lengths // _BLOCK + 1)
        reads = np.minimum(blocks, blocks * _BLOCK // self._table.gap + 1)
        worth = blocks * _BLOCK + reads * self._table.gap < self._scan[files]
        add(leaf.text, self.index_type, "not worth it", int((fresh & ~worth).sum()))
        asked = fresh & worth
        answer = indexes.probe(group.name, files[asked], keys, key_type(group.data_type))
        for error in answer.damage.values():
            self._recorder.damaged(leaf.text, self.index_type, error)
        add(leaf.text, self.index_type, "answered", int(asked.sum()) - len(answer.damage))
        found[asked] = answer.may_match
        return found


_MANY = 64  # fewer indexes are asked as fast one by one
_FEW_KEYS = 16  # each is searched for


class Dictionaries(Probing):
    """Searches the bitmap indexes of files whose indexes are worth asking."""

    index_type = "bitmap"

    def _probe(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        assert group.name is not None
        assert group.data_type is not None
        found = np.ones(len(files), bool)
        indexes, question = self._table.indexes, leaf.question(group)
        keys = listed_keys(question) if isinstance(question, Within) else None
        asked = indexes.fresh(group.name, self.index_type)[files]
        if not keys or len(keys) > _FEW_KEYS or int(asked.sum()) < _MANY:
            return found
        lacks = indexes.lacking(group.name, files[asked], keys, key_type(group.data_type))
        self._recorder.uses.add(leaf.text, self.index_type, "answered", int(lacks.sum()))
        found[asked] = ~lacks
        return found


_REQUESTS = 2  # for a file that is scanned: its footer, then its columns


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Which rows of which files may match, and how that was found."""

    candidates: Candidates
    recorder: Recorder


def make_plan(
    table: TableFiles,
    where: TablePredicate,
    needed: Sequence[str],
    *,
    use_indexes: bool,
    rows_needed: bool,
    strict: bool,
) -> Plan:
    """Plan a scan.

    Args:
        table: The files.
        where: The predicate, whose columns and literals were checked.
        needed: The columns of the table that are read.
        use_indexes: False: neither statistics nor indexes are looked at.
        rows_needed: The rows are read, and not only counted.
        strict: Raise where an index is damaged.
    """
    count = len(table.sizes)
    everything = Candidates.of(np.arange(count), np.zeros(count, bool)).counts(table)
    recorder = Recorder(everything, strict=strict)
    with recorder.stage("partitions") as notes:
        verdict = where.by_partitions()
        files = np.flatnonzero(verdict.possible & (table.rows != 0))
        notes.drop("other partitions", np.flatnonzero(~verdict.possible & (table.rows != 0)))
        notes.drop("no rows", np.flatnonzero(table.rows == 0))
        candidates = Candidates.of(files, verdict.certain[files])
        notes.after = candidates.counts(table)
    if use_indexes:
        with recorder.stage("statistics") as notes:
            verdict = where.by_statistics()
            kept = files[verdict.possible[files]]
            notes.drop("no value within bounds", files[~verdict.possible[files]])
            candidates = Candidates.of(kept, verdict.certain[kept])
            notes.after = candidates.counts(table)
        with recorder.stage("file index") as notes:
            asker = _Asker(table, where, needed, recorder, rows_needed)
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
    where: TablePredicate
    needed: Sequence[str]
    recorder: Recorder
    rows_needed: bool

    def ask(self, candidates: Candidates, notes: StageNotes) -> Candidates:
        """Bloom filters of all files first, then the rows of those that are left."""
        is_open = np.array([not found.exact for found in candidates.selections], bool)
        files = candidates.files[is_open]
        if not self.where.leaves or not len(files):
            return candidates
        self.table.indexes.load(files)
        scan = self._scan_bytes()
        may_match = Blooms(self.table, self.where, scan, self.recorder).may_match(files)
        notes.drop("bloom filter", files[~may_match])
        files = files[may_match]
        positions = Positions(
            self.table,
            self.where,
            files,
            scan[files],
            self.recorder,
            rows_needed=self.rows_needed,
        )
        asked = files[positions.worth()]
        # What one search rules out need not be asked file by file.
        may_have = Dictionaries(self.table, self.where, self.recorder).may_match(asked)
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
        return wait_for_each(positions.select, files, remote=self.table.remote)

    def _scan_bytes(self) -> Int64Array:
        """Roughly what a file costs without indexes: its footer, and its share of columns."""
        share = self.table.columns.share(len(self.needed))
        scanned: Int64Array = (self.table.sizes * share).astype(np.int64)
        return scanned + _REQUESTS * self.table.gap
