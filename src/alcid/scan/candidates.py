"""What the stages of a scan hand on: the candidates that are left, the reasons, and the cost.

Candidates are files that may have matching rows. A whole file is a number and a state in two
arrays, so that a stage over a hundred thousand files is a few NumPy calls; only files of which
single rows are left have an object of their own.

Reasons are columns, too, a code for each file. Stages know nothing of explanations: those are
computed from the results afterwards. Each run of a stage has its own columns and its own meter, so
that scans which share a table, in other threads or readers, never count for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from alcid._arrays import BoolArray, Int16Array, Int64Array, UInt8Array
from alcid.errors import AlcidError
from alcid.formats.file_index.reader import ANY, EVERY, Selection
from alcid.scan.deletes import PendingDeletes
from alcid.scan.table_files import DataFiles
from alcid.storage import Meter

_EXACT, _ROWS = 1, 2  # bits of a state: every row that is left matches; only some rows are left


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Files with rows that may match, in the order of the table unless a stage reorders them."""

    files: Int64Array
    states: UInt8Array
    """For each of the files, whether single rows are left and whether all that are left match."""
    selections: Mapping[int, Selection]
    """The rows of files of which single rows are left, by file; it may hold other files, too."""

    @classmethod
    def whole(cls, files: Int64Array, exact: BoolArray | bool = False) -> Candidates:
        """All rows of files; `exact` says of each, or of all, whether every row matches."""
        return cls(files, np.full(len(files), exact, np.uint8), {})

    @classmethod
    def of(cls, selections: Mapping[int, Selection]) -> Candidates:
        """The selected rows of some files."""
        return cls.whole(np.array(list(selections), np.int64)).narrowed(selections)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def exact(self) -> BoolArray:
        """For each file, whether every row that is left is known to match."""
        exact: BoolArray = (self.states & _EXACT) > 0
        return exact

    @property
    def is_whole(self) -> BoolArray:
        """For each file, whether all of its rows are left."""
        is_whole: BoolArray = (self.states & _ROWS) == 0
        return is_whole

    def items(self) -> list[tuple[int, Selection]]:
        """Each file with its selection."""
        whole = ANY, EVERY
        return [
            (file, self.selections[file] if state & _ROWS else whole[state])
            for file, state in zip(self.files.tolist(), self.states.tolist(), strict=True)
        ]

    def narrowed(self, selections: Mapping[int, Selection]) -> Candidates:
        """The same with other selections for some files; files without a row are dropped."""
        if not selections:
            return self
        changed = np.fromiter(selections, np.int64, len(selections))
        order = np.argsort(self.files, kind="stable")
        numbers = order[np.searchsorted(self.files, changed, sorter=order)]
        states, keep = self.states.copy(), np.ones(len(self.files), bool)
        states[numbers] = [
            selection.exact * _EXACT | (selection.rows is not None) * _ROWS
            for selection in selections.values()
        ]
        keep[numbers] = [not selection.skip for selection in selections.values()]
        return Candidates(self.files[keep], states[keep], {**self.selections, **selections})

    def inexact(self, files: Int64Array) -> Candidates:
        """The same, where nothing is known for sure of the rows that are left of some files."""
        states = self.states.copy()
        states[np.isin(self.files, files)] &= ~np.uint8(_EXACT)
        changed = {
            file: replace(selection, exact=False)
            for file in files.tolist()
            if (selection := self.selections.get(file)) is not None
        }
        return Candidates(self.files, states, {**self.selections, **changed})

    def filter(self, mask: BoolArray) -> Candidates:
        """The files where a mask is true."""
        return replace(self, files=self.files[mask], states=self.states[mask])

    def without(self, files: Int64Array) -> Candidates:
        """All files but some."""
        return self.filter(~np.isin(self.files, files)) if len(files) else self

    def take(self, indices: Int64Array) -> Candidates:
        """Some of the files, by their indices among these."""
        return replace(self, files=self.files[indices], states=self.states[indices])

    def slice(self, start: int, end: int | None) -> Candidates:
        """Consecutive files; without an end, all that follow."""
        return replace(self, files=self.files[start:end], states=self.states[start:end])

    def in_order(self) -> Candidates:
        """The same in the order of the table."""
        return self.take(np.argsort(self.files))

    def renumbered(self) -> Candidates:
        """The same for a table that has only these files; it holds the selections of no other."""
        rows = np.flatnonzero(~self.is_whole)
        selections = {
            number: self.selections[file]
            for number, file in zip(rows.tolist(), self.files[rows].tolist(), strict=True)
        }
        return Candidates(np.arange(len(self.files)), self.states, selections)

    def rows(self, table: DataFiles) -> Int64Array:
        """How many rows of each file are left."""
        counts: Int64Array = table.rows[self.files]
        for number in np.flatnonzero(~self.is_whole).tolist():
            counts[number] = len(self.selections[int(self.files[number])].rows or ())
        return counts


_OUTCOMES = (
    *("", "absent", "stale", "damaged", "unsupported predicate"),
    *("not worth it", "not needed", "ruled out", "may contain it", "answered"),
)
_CODES = {outcome: code for code, outcome in enumerate(_OUTCOMES)}
_RULED_OUT, _MAY_CONTAIN = _CODES["ruled out"], _CODES["may contain it"]
_ANSWERED = _CODES["answered"]


class IndexUses:
    """For each leaf of a predicate and index type, what became of the index in each file.

    Threads may note different files at the same time.
    """

    def __init__(self, files: int) -> None:
        """Begin with nothing noted for any of so many files of a table."""
        self._files = files
        self._columns: dict[tuple[str, str], Int16Array] = {}
        self._codes = dict(_CODES)
        self.damage: list[AlcidError] = []
        """Errors of damaged indexes, which were not used."""

    def note(self, predicate: str, index: str, files: Int64Array | int, outcome: str) -> None:
        """Note an outcome for the index of one file or several; an answer is never replaced."""
        if isinstance(files, np.ndarray) and not len(files):
            return
        code = self._codes.setdefault(outcome, len(self._codes))
        column = self._column(predicate, index)
        before = column[files]
        is_answer = (before >= _RULED_OUT) & (before <= _ANSWERED)
        column[files] = np.where(is_answer, before, code)

    def note_probed(
        self, predicate: str, index: str, files: Int64Array, may_match: BoolArray
    ) -> None:
        """Note of files whose bloom filters were probed whether they rule the file out."""
        self._column(predicate, index)[files] = np.where(may_match, _MAY_CONTAIN, _RULED_OUT)

    def note_damaged(self, predicate: str, index: str, file: int, error: AlcidError) -> None:
        """Note that the index of a file is damaged and not used."""
        self.damage.append(error)
        self.note(predicate, index, file, "damaged")

    def check(self, *, strict: bool) -> None:
        """Raise the first error of a damaged index, if that is wanted.

        Raises:
            AlcidError: An index is damaged, and `strict` is true.
        """
        if strict and self.damage:
            raise self.damage[0]

    def is_noted(self, predicate: str, index: str, files: Int64Array) -> BoolArray:
        """For each of some files, whether an outcome was noted."""
        noted: BoolArray = self._column(predicate, index)[files] > 0
        return noted

    @property
    def columns(self) -> Mapping[tuple[str, str], Int16Array]:
        """The code of each file, by predicate and index type; 0 where nothing was noted."""
        return self._columns

    @property
    def outcomes(self) -> list[str]:
        """The outcomes, by their code."""
        return list(self._codes)

    def _column(self, predicate: str, index: str) -> Int16Array:
        column = self._columns.get((predicate, index))
        if column is None:
            nothing = np.zeros(self._files, np.int16)
            column = self._columns.setdefault((predicate, index), nothing)
        return column


@dataclass(frozen=True, slots=True, eq=False)
class StageResult:
    """The decisions of a stage."""

    name: str
    candidates: Candidates
    """What it left."""
    dropped: Mapping[str, Int64Array]
    """The files that it left out, by the reason."""
    cost: Meter
    pending: PendingDeletes | None = None
    """Deleted rows that are left to be found where rows are read."""
