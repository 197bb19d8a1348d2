"""The files that may have rows, and which rows: what stages hand on.

Takes down what each stage of a scan did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from alcid._arrays import Int64Array
from alcid.errors import AlcidError
from alcid.formats.file_index.reader import ANY, EVERY, Selection
from alcid.scan.explain import Counts, OutcomeNotes, Stage, UseCounter
from alcid.scan.table_files import DataFiles
from alcid.storage import metered

__all__ = ["Candidates", "Recorder", "StageNotes"]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Files, in the order of the table as a rule, with the rows of each that may match."""

    files: Int64Array
    selections: tuple[Selection, ...]

    @classmethod
    def of(cls, files: Int64Array, certain: npt.NDArray[np.bool_]) -> Candidates:
        """Whole files, of which every row matches, or any."""
        return cls(files, tuple(EVERY if sure else ANY for sure in certain.tolist()))

    def chosen(self, selections: Iterable[Selection]) -> Candidates:
        """With other selections; files of which no row is left are dropped."""
        pairs = [
            (file, found)
            for file, found in zip(self.files.tolist(), selections, strict=True)
            if not found.skip
        ]
        files = np.array([file for file, _ in pairs], np.int64)
        return Candidates(files, tuple(found for _, found in pairs))

    def filter(self, mask: npt.NDArray[np.bool_]) -> Candidates:
        """Some of the files, with their selections."""
        kept = zip(self.selections, mask.tolist(), strict=True)
        return Candidates(self.files[mask], tuple(found for found, keep in kept if keep))

    def take(self, places: Int64Array) -> Candidates:
        """Some of the files, by their places among these."""
        return Candidates(self.files[places], tuple(self.selections[place] for place in places))

    def slice(self, start: int, end: int | None) -> Candidates:
        """Some of the files, one after the other; without an end, all that follow."""
        return Candidates(self.files[start:end], self.selections[start:end])

    def in_order(self) -> Candidates:
        """The same in the order of the table."""
        return self.take(np.argsort(self.files))

    def rows(self, table: DataFiles) -> Int64Array:
        """How many rows of each file are left."""
        whole = table.rows[self.files].tolist()
        found = [
            rows if selection.rows is None else len(selection.rows)
            for rows, selection in zip(whole, self.selections, strict=True)
        ]
        return np.array(found, np.int64)

    def counts(self, table: DataFiles) -> Counts:
        """What is left to be read."""
        return Counts(
            len(self.files),
            rows=int(self.rows(table).sum()),
            bytes=int(table.sizes[self.files].sum()),
        )


@dataclass(slots=True)
class StageNotes:
    """What a stage says of itself before it ends."""

    name: str
    after: Counts
    outcomes: OutcomeNotes
    """Of all files of the table."""
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, files: Int64Array) -> None:
        """Leave out some files."""
        if len(files):
            self.dropped[reason] = len(files)
            self.outcomes.note(files, self.name, reason)


class Recorder:
    """The stages so far, and what became of indexes."""

    def __init__(self, start: Counts, *, strict: bool) -> None:
        """Begin with all files of a table; `strict` raises where an index is damaged."""
        self._last, self._strict = start, strict
        self.stages: list[Stage] = []
        self.uses = UseCounter()
        self.outcomes = OutcomeNotes(start.files)
        self.problems: dict[str, None] = {}
        """What is damaged, each once."""
        self._lock = threading.Lock()

    def answered(self, predicate: str, index: str) -> None:
        """Note that the index of a file answered."""
        with self._lock:
            self.uses.add(predicate, index, "answered")

    def unused(self, predicate: str, index: str, why: str) -> None:
        """Note that the index of a file was not asked, or could not answer."""
        with self._lock:
            self.uses.add(predicate, index, why)

    def damaged(self, predicate: str, index: str, error: AlcidError) -> None:
        """Note that the index of a file is damaged and not used.

        Raises:
            AlcidError: This one, if it is strict.
        """
        if self._strict:
            raise error
        with self._lock:
            self.problems[f"not used: {error}"] = None
            self.uses.add(predicate, index, "damaged")

    @contextmanager
    def stage(self, name: str) -> Iterator[StageNotes]:
        """Measure what is done within; the notes say what is left at its end."""
        notes = StageNotes(name, self._last, self.outcomes)
        began = time.perf_counter()
        with metered() as meter:
            yield notes
        spent = meter.snapshot()
        self.stages.append(
            Stage(
                name,
                self._last,
                notes.after,
                time.perf_counter() - began,
                spent.requests,
                spent.bytes_read,
                notes.dropped,
            )
        )
        self._last = notes.after
