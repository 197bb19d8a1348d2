"""What a scan did and why, stage by stage: text to read, and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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
class Explanation:
    """What `Scan.explain` gives; `str` is a table to read."""

    predicate: str
    stages: tuple[Stage, ...]
    indexes: tuple[IndexUse, ...]
    order_by: str = ""
    """As it was understood; empty if there is none."""
    limit: int | None = None
    notes: tuple[str, ...] = ()
    """What else was decided: where the answer came from, how files are read."""

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        head = ("stage", "files", "row groups", "pages", "rows", "bytes", "read", "ms")
        rows = [head, *(_row(stage) for stage in self.stages)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
        order = f" order by {self.order_by}" if self.order_by else ""
        limit = "" if self.limit is None else f" limit {self.limit}"
        lines = [f"where {self.predicate}{order}{limit}"]
        for row in rows:
            cells = zip(row[1:], widths[1:], strict=True)
            lines.append("  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in cells)]))
        for stage in self.stages:
            lines += (f"{stage.name}: {_files(n)} out: {why}" for why, n in stage.dropped.items())
        for use in self.indexes:
            named = use.index or "no index"
            lines.append(f"{use.predicate}: {named}: {use.outcome} ({_files(use.files)})")
        return "\n".join([*lines, *self.notes])


def _row(stage: Stage) -> tuple[str, ...]:
    before, after = stage.before, stage.after
    return (
        stage.name,
        _change(before.files, after.files),
        _change(before.row_groups, after.row_groups),
        _change(before.pages, after.pages),
        _change(before.rows, after.rows),
        _change(before.bytes, after.bytes, size=True),
        f"{stage.requests} / {_size(stage.bytes_read)}" if stage.requests else "",
        f"{stage.seconds * 1000:.1f}",
    )


def _change(before: int | None, after: int | None, *, size: bool = False) -> str:
    show = _size if size else "{:,}".format
    if before is None or before == after:
        return "" if after is None else show(after)
    return f"{show(before)} -> {'?' if after is None else show(after)}"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"


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
