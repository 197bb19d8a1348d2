"""Planning: which files, and which of their rows, may match, without a look at the data.

The stages come in the order of their price, each only for the files that the ones before left:
partition values, min/max statistics, file indexes, deletion vectors. Of the file indexes, bloom
filters and the dictionaries of bitmap indexes are probed for all files at once, as most files of a
large table do not have the value; then the types other than bloom filters give rows, file by file.
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
    InIntervals,
)
from alcid.formats.file_index.keys import key_type
from alcid.formats.file_index.reader import Selection
from alcid.scan.candidates import Candidates, IndexUses, StageResult
from alcid.scan.columns import ColumnGroup
from alcid.scan.deletes import PendingDeletes
from alcid.scan.leaves import TableLeaf, TablePredicate
from alcid.scan.positions import Positions, listed_keys
from alcid.scan.table_files import TableFiles
from alcid.storage import Meter
from alcid.storage.threads import wait_for_each


class _Prober(BoundVisitor[Int64Array, BoolArray], ABC):
    """Probes the indexes of one type for the values of a predicate; the context is the files."""

    index_type: str

    def __init__(self, table: TableFiles, where: TablePredicate, uses: IndexUses) -> None:
        """Prepare; nothing is read yet."""
        self._table, self._where, self._uses = table, where, uses

    def may_match(self, files: Int64Array) -> BoolArray:
        """For each of some files, whether a row may match."""
        return self._where.root.accept(self, files)

    def visit_and(self, node: BoundAnd, context: Int64Array) -> BoolArray:
        """Every part holds; files that one part rules out are not probed for the next."""
        possible = np.ones(len(context), bool)
        for part in node.parts:
            possible[possible] = part.accept(self, context[possible])
        return possible

    def visit_or(self, node: BoundOr, context: Int64Array) -> BoolArray:
        """At least one part holds; parts without an index come first.

        Such a part rules out no file, so that the indexes of the other parts need not be probed;
        then nothing is noted of them. `IndexReport` says why.
        """
        possible = np.zeros(len(context), bool)
        for part in sorted(node.parts, key=self._has_index):
            possible[~possible] = part.accept(self, context[~possible])
        return possible

    def visit_constant(self, _node: BoundConstant, context: Int64Array) -> BoolArray:
        """No index is needed for it."""
        return np.ones(len(context), bool)

    def visit_unknown(self, _node: BoundUnknown, context: Int64Array) -> BoolArray:
        """Any row may match."""
        return np.ones(len(context), bool)

    def visit_leaf(self, node: BoundLeaf, context: Int64Array) -> BoolArray:
        """A comparison of one column."""
        leaf = self._where.leaf(node)
        possible: BoolArray = leaf.pruning.may_match[context]
        for group in leaf.groups:
            undecided = possible & ~leaf.pruning.all_match[context] & group.files[context]
            if undecided.any() and self._can_probe(group):
                possible[undecided] = self._probe(leaf, group, context[undecided])
        return possible

    def _has_index(self, node: BoundPredicate) -> bool:
        return any(
            self.index_type in self._table.indexes.types(group.name)
            for leaf in node.leaves()
            for group in self._where.leaf(leaf).groups
            if group.name is not None
        )

    def _can_probe(self, group: ColumnGroup) -> bool:
        if group.name is None or group.data_type is None or group.problem:
            return False
        return self.index_type in self._table.indexes.types(group.name)

    @abstractmethod
    def _probe(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        """For each of some files of a group, of which some have an index: as `may_match`."""


_BITS = 8  # of a bloom filter that are looked at for one key, roughly
_BLOCK = 1 << 10  # bytes that are read for one of these bits


class _BloomFilters(_Prober):
    """Probes bloom filters, as far as that is cheaper than reading the files."""

    index_type = "bloom-filter"

    def __init__(
        self,
        table: TableFiles,
        where: TablePredicate,
        scan_bytes: Int64Array,
        uses: IndexUses,
    ) -> None:
        """Prepare; `scan_bytes` is what is read of each file of the table without indexes."""
        super().__init__(table, where, uses)
        self._scan_bytes = scan_bytes

    def _probe(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        assert group.name is not None
        assert group.data_type is not None
        may_match = np.ones(len(files), bool)
        indexes, probe = self._table.indexes, leaf.probe(group)
        keys = listed_keys(probe) if isinstance(probe, InIntervals) else None
        fresh = indexes.fresh(group.name, self.index_type)[files]
        text, uses = leaf.text, self._uses
        if not keys:
            uses.note(text, self.index_type, files[fresh], "unsupported predicate")
            return may_match
        lengths = indexes.lengths(group.name, self.index_type)[files]
        blocks = np.minimum(_BITS * len(keys), lengths // _BLOCK + 1)
        reads = np.minimum(blocks, blocks * _BLOCK // self._table.gap + 1)
        worth = blocks * _BLOCK + reads * self._table.gap < self._scan_bytes[files]
        uses.note(text, self.index_type, files[fresh & ~worth], "not worth it")
        probed = fresh & worth
        answer = indexes.probe(group.name, files[probed], keys, key_type(group.data_type))
        for file, error in answer.damage.items():
            uses.note_damaged(text, self.index_type, file, error)
        sound = np.isin(files[probed], list(answer.damage), invert=True)
        uses.note_probed(text, self.index_type, files[probed][sound], answer.may_match[sound])
        may_match[probed] = answer.may_match
        return may_match


_MANY = 64  # fewer indexes are probed just as fast one by one
_FEW_KEYS = 16  # as each key is searched for in every dictionary


class _BitmapDictionaries(_Prober):
    """Searches the dictionaries of bitmap indexes that are worth reading."""

    index_type = "bitmap"

    def _probe(self, leaf: TableLeaf, group: ColumnGroup, files: Int64Array) -> BoolArray:
        assert group.name is not None
        assert group.data_type is not None
        may_match = np.ones(len(files), bool)
        indexes, probe = self._table.indexes, leaf.probe(group)
        keys = listed_keys(probe) if isinstance(probe, InIntervals) else None
        fresh = indexes.fresh(group.name, self.index_type)[files]
        if not keys or len(keys) > _FEW_KEYS or int(fresh.sum()) < _MANY:
            return may_match
        without = indexes.without_keys(group.name, files[fresh], keys, key_type(group.data_type))
        self._uses.note(leaf.text, self.index_type, files[fresh][without], "answered")
        may_match[fresh] = ~without
        return may_match


_REQUESTS = 2  # for a file that is scanned: its footer, then its columns


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """The results of all stages of planning."""

    stages: tuple[StageResult, ...]
    index_uses: tuple[IndexUses, ...]
    """What became of indexes, if they were considered."""

    @property
    def candidates(self) -> Candidates:
        """What the last stage left."""
        return self.stages[-1].candidates

    @property
    def pending(self) -> PendingDeletes | None:
        """Deleted rows of the candidates that were not looked for."""
        return self.stages[-1].pending


def prune(
    table: TableFiles,
    where: TablePredicate,
    needed: Sequence[str],
    *,
    use_indexes: bool,
    rows_needed: bool,
    strict: bool,
    delete_bytes: int | None = None,
) -> Pruning:
    """Find the files and rows that may match.

    Args:
        table: The files.
        where: The predicate, whose columns and literals were checked.
        needed: The columns of the table that are read.
        use_indexes: False: neither statistics nor indexes are used.
        rows_needed: The rows are read, and not only counted.
        strict: Raise where an index is damaged.
        delete_bytes: Where more bytes than this have to be read to find deleted rows, that is left
            to those who read the rows; None: it is always done here.
    """
    stages, uses = [_by_partitions(table, where)], []
    if use_indexes:
        stages.append(_by_statistics(where, stages[-1].candidates))
        index_stage = _IndexStage(table, where, needed, rows_needed)
        stages.append(index_stage.run(stages[-1].candidates))
        index_stage.uses.check(strict=strict)
        uses.append(index_stage.uses)
    if table.deletions:
        stages.append(_by_deletions(table, stages[-1].candidates, delete_bytes))
    return Pruning(tuple(stages), tuple(uses))


def _by_partitions(table: TableFiles, where: TablePredicate) -> StageResult:
    with Meter() as cost:
        result, has_rows = where.by_partitions(), table.rows != 0
        files = np.flatnonzero(result.may_match & has_rows)
        candidates = Candidates.whole(files, result.all_match[files])
        dropped = {
            "other partitions": np.flatnonzero(~result.may_match & has_rows),
            "no rows": np.flatnonzero(~has_rows),
        }
    return StageResult("partitions", candidates, dropped, cost)


def _by_statistics(where: TablePredicate, candidates: Candidates) -> StageResult:
    with Meter() as cost:
        result = where.by_statistics()
        possible = result.may_match[candidates.files]
        files = candidates.files[possible]
        dropped = {"ruled out by min/max or null counts": candidates.files[~possible]}
        candidates = Candidates.whole(files, result.all_match[files])
    return StageResult("statistics", candidates, dropped, cost)


def _by_deletions(
    table: TableFiles, candidates: Candidates, delete_bytes: int | None
) -> StageResult:
    """Leave out deleted rows, and in a table with a primary key rows that newer ones supersede.

    To find the latter, a Paimon table reads the keys of all files that may have the same ones, also
    of files that a stage before has left out.
    """
    with Meter() as cost:
        if delete_bytes is not None:
            pending = table.pending_deletes(candidates.files)
            if pending is not None and int(pending.sizes.sum()) > delete_bytes:
                left = candidates.inexact(np.unique(np.concatenate(pending.units)))
                return StageResult("deletion vectors", left, {}, cost, pending)
        table.load_deletions(candidates.files)
        may_have = np.fromiter(table.deletions, np.int64, len(table.deletions))
        affected = candidates.filter(np.isin(candidates.files, may_have))
        live = {file: _live(table, file, selection) for file, selection in affected.items()}
        left = candidates.narrowed(live)
        gone = np.setdiff1d(candidates.files, left.files, assume_unique=True)
    return StageResult("deletion vectors", left, {"all rows deleted": gone}, cost)


def _live(table: TableFiles, file: int, selection: Selection) -> Selection:
    vector = table.deletions.get(file)
    if not vector:
        return selection
    live = vector.live_rows(int(table.rows[file]), selection.rows)
    return Selection(live, selection.exact, selection.claims)


class _IndexStage:
    """The stage of the file indexes: bloom filters, bitmap dictionaries, then row positions."""

    def __init__(
        self, table: TableFiles, where: TablePredicate, needed: Sequence[str], rows_needed: bool
    ) -> None:
        self._table, self._where = table, where
        self._needed, self._rows_needed = needed, rows_needed
        self.uses = IndexUses(len(table.sizes))

    def run(self, candidates: Candidates) -> StageResult:
        """Probe all files at once first, then find the rows of those that are left."""
        undecided = candidates.files[~candidates.exact]
        dropped: dict[str, Int64Array] = {}
        with Meter() as cost:
            if self._where.leaves and len(undecided):
                candidates = self._probe(candidates, undecided, dropped)
        return StageResult("file index", candidates, dropped, cost)

    def _probe(
        self, candidates: Candidates, files: Int64Array, dropped: dict[str, Int64Array]
    ) -> Candidates:
        """What indexes leave of the candidates, of which some files are undecided."""
        table, where, uses = self._table, self._where, self.uses
        table.indexes.load(files)
        scan_bytes = full_scan_bytes(table, self._needed)
        may_match = _BloomFilters(table, where, scan_bytes, uses).may_match(files)
        dropped["bloom filter"] = files[~may_match]
        candidates, files = candidates.without(files[~may_match]), files[may_match]
        positions = Positions(
            table, where, files, scan_bytes[files], uses, rows_needed=self._rows_needed
        )
        probed = files[positions.worth()]
        without = probed[:0]
        if len(probed):  # what one search rules out need not be probed file by file
            may_have = _BitmapDictionaries(table, where, uses).may_match(probed)
            without, probed = probed[~may_have], probed[may_have]
        answers = wait_for_each(positions.select, probed.tolist(), remote=table.remote)
        selections = dict(zip(probed.tolist(), answers, strict=True))
        positions.note_rest()
        skipped = [file for file, selection in selections.items() if selection.skip]
        dropped["no row in the index"] = np.concatenate([without, np.array(skipped, np.int64)])
        return candidates.without(without).narrowed(selections)


def full_scan_bytes(table: TableFiles, needed: Sequence[str]) -> Int64Array:
    """Roughly what each file costs without indexes: its footer, and the needed columns."""
    scanned: Int64Array = (table.sizes * table.columns.fraction(len(needed))).astype(np.int64)
    return scanned + _REQUESTS * table.gap
