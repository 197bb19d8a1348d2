"""What a scan did and why, stage by stage: text to read, JSON, and a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from alcid.pictures.shown import Shown
from alcid.plan.text import explanation_text, question_text

if TYPE_CHECKING:
    from alcid.pictures.page import Markup
    from alcid.plan.fates import Fates

__all__ = ["Counts", "Explanation", "IndexUse", "Stage", "UseCounter"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What is left to be read; None is what is not known at that stage."""

    files: int
    row_groups: int | None = None
    pages: int | None = None
    rows: int | None = None
    bytes: int | None = None
    """Whole files at first; from the row groups on, only the columns that are needed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: what there was before it, and what it left."""

    name: str
    before: Counts
    after: Counts
    seconds: float = 0.0
    requests: int = 0
    """Reads of indexes, statistics or data that it took."""
    bytes_read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Files that it left out, by the reason; together, `before.files - after.files`."""


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What became of an index that could have answered a part of the predicate."""

    predicate: str
    index: str
    """Its type; empty where there is none."""
    outcome: str
    """`answered`, or why not: `absent`, `stale`, `damaged`, `type ...`, `not worth it` ..."""
    files: int


@dataclass(frozen=True, slots=True)
class Explanation(Shown):
    """What `Scan.explain` gives; `str` is a table to read, `save_html` writes a picture of it."""

    predicate: str
    stages: tuple[Stage, ...]
    indexes: tuple[IndexUse, ...]
    order_by: str = ""
    """As it was understood; empty if there is none."""
    limit: int | None = None
    notes: tuple[str, ...] = ()
    """What else was decided: where the answer came from, how files are read."""

    fates: Fates | None = field(default=None, repr=False, compare=False)
    """What became of each file; None where no file was looked for."""

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """The same in plain dicts and lists; with `files`, what became of each of them, too."""
        told = asdict(replace(self, fates=None))
        del told["fates"]
        if files:
            told["files"] = [fate.to_dict() for fate in self.fates or ()]
        return told

    def to_json(self, *, files: bool = False) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(files=files), ensure_ascii=False, indent=2)

    def picture(self) -> tuple[str, Sequence[Markup]]:
        """Tables of stages and reasons, and a map of the files."""
        from alcid.pictures.plan import plan_parts

        fates = None if self.fates is None else self.fates.columns()
        question = question_text(self)
        return question, plan_parts({**self.to_dict(), "question": question, "fates": fates})

    def __str__(self) -> str:
        return explanation_text(self)


class UseCounter:
    """Counts what became of indexes, over files."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, predicate: str, index: str, outcome: str, files: int = 1) -> None:
        """Note the same for some files."""
        if files:
            self._counts[predicate, index, outcome] += files

    def count(self, predicate: str, index: str) -> int:
        """How many files there is a word on, for an index."""
        return sum(n for (p, i, _), n in self._counts.items() if (p, i) == (predicate, index))

    def uses(self) -> Sequence[IndexUse]:
        """All of it, in the order in which it was first noted."""
        return [IndexUse(*key, files) for key, files in self._counts.items()]
