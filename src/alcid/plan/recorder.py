"""Takes down what each stage of a scan did."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from alcid.errors import AlcidError
from alcid.plan.explanation import Counts, Stage, UseCounter
from alcid.plan.fates import FateNotes
from alcid.plan.table_files import Integers
from alcid.storage import metered

__all__ = ["Recorder", "StageNotes"]


@dataclass(slots=True)
class StageNotes:
    """What a stage says of itself before it ends."""

    name: str
    after: Counts
    fates: FateNotes
    """Of all files of the table."""
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, files: Integers) -> None:
        """Leave out some files."""
        if len(files):
            self.dropped[reason] = len(files)
            self.fates.note(files, self.name, reason)


class Recorder:
    """The stages so far, and what became of indexes."""

    def __init__(self, start: Counts, *, strict: bool) -> None:
        """Begin with all files of a table; `strict` raises where an index is damaged."""
        self._last, self._strict = start, strict
        self.stages: list[Stage] = []
        self.uses = UseCounter()
        self.fates = FateNotes(start.files)
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
        notes = StageNotes(name, self._last, self.fates)
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
