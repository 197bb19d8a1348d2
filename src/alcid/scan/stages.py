"""What a stage of a scan returns: the candidates that are left, the reasons, and what it cost.

Stages report in columns, a code for each file, and know nothing of explanations; those are computed
from the results afterwards. Each call of a stage has its own columns and its own meter of requests,
so that scans which share a table, in other threads or readers, never count for each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from alcid._arrays import BoolArray, Int16Array, Int64Array
from alcid.errors import AlcidError
from alcid.scan.candidates import Candidates
from alcid.storage import Traffic, metered

__all__ = ["Cost", "IndexUses", "StageResult", "measured"]

_OUTCOMES = (
    *("", "absent", "stale", "damaged", "unsupported predicate"),
    *("not worth it", "answered", "not needed"),
)
_ANSWERED = _OUTCOMES.index("answered")


class IndexUses:
    """For each leaf of a predicate and index type, what became of the index in each file.

    Threads may note different files at the same time.
    """

    def __init__(self, files: int) -> None:
        """Begin with nothing noted for any of so many files of a table."""
        self._files = files
        self._columns: dict[tuple[str, str], Int16Array] = {}
        self._codes = {outcome: code for code, outcome in enumerate(_OUTCOMES)}
        self.damage: list[AlcidError] = []
        """Errors of damaged indexes, which were not used."""

    def note(self, predicate: str, index: str, files: Int64Array | int, outcome: str) -> None:
        """Note an outcome for the index of one file or some; what was answered stays answered."""
        if isinstance(files, np.ndarray) and not len(files):
            return
        code = self._codes.setdefault(outcome, len(self._codes))
        column = self._column(predicate, index)
        column[files] = np.where(column[files] == _ANSWERED, _ANSWERED, code)

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

    def counts(self) -> dict[tuple[str, str, str], int]:
        """How many files have each outcome, by predicate, index type and outcome."""
        outcomes = list(self._codes)
        return {
            (predicate, index, outcomes[code]): count
            for (predicate, index), column in self._columns.items()
            for code, count in enumerate(np.bincount(column).tolist())
            if code and count
        }

    def _column(self, predicate: str, index: str) -> Int16Array:
        column = self._columns.get((predicate, index))
        if column is None:
            nothing = np.zeros(self._files, np.int16)
            column = self._columns.setdefault((predicate, index), nothing)
        return column


@dataclass(slots=True)
class Cost:
    """Time that a step took, and what it requested from storages."""

    seconds: float = 0.0
    traffic: Traffic = field(default_factory=Traffic)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.traffic + other.traffic)


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what is done within, in threads that it starts, too, and nothing that others do."""
    cost, began = Cost(), time.perf_counter()
    with metered() as meter:
        yield cost
    cost.seconds, cost.traffic = time.perf_counter() - began, meter.snapshot()


@dataclass(frozen=True, slots=True, eq=False)
class StageResult:
    """The decisions of a stage."""

    name: str
    candidates: Candidates
    """What it left."""
    dropped: Mapping[str, Int64Array]
    """The files that it left out, by the reason."""
    cost: Cost
    index_uses: IndexUses | None = None
