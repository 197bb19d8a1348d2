"""What a scan did and why, stage by stage: text to read, JSON, and a page.

An explanation as a table to read.

What became of each file of a scan: which stage left it out and why, and its row groups.

Planning notes a number for each file, so that a hundred thousand of them cost nothing; the objects
are made when they are looked at.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid._text import count_text, size_text
from alcid.scan.table_files import DataFiles

if TYPE_CHECKING:
    pass

__all__ = [
    "Counts",
    "Explanation",
    "FileOutcome",
    "FileOutcomes",
    "GroupColumns",
    "IndexUse",
    "Outcome",
    "OutcomeNotes",
    "RowGroupOutcome",
    "Stage",
    "UseCounter",
    "explanation_text",
    "question_text",
]

_HEAD = (
    *("stage", "files", "row groups", "pages", "rows"),
    *("bytes to read", "requests", "bytes read", "ms"),
)


def question_text(told: Explanation) -> str:
    """What was asked."""
    order = f" order by {told.order_by}" if told.order_by else ""
    limit = "" if told.limit is None else f" limit {told.limit}"
    return f"where {told.predicate}{order}{limit}"


def explanation_text(told: Explanation) -> str:
    """The stages, then what was left out and why, what became of indexes, and what else is to say.

    `bytes to read` is what is left of the files, and from the row groups on of the needed columns;
    `bytes read` is what a stage took from the storage, which may be less where it knew it already.
    """
    lines = [question_text(told)]
    if told.stages:
        lines += _aligned([_HEAD, *map(_row, told.stages)])
    for stage in told.stages:
        lines += (
            f"{stage.name}: {count_text(files, 'file')} out: {why}"
            for why, files in stage.dropped.items()
        )
    for use in told.indexes:
        named = use.index or "no index"
        lines.append(f"{use.predicate}: {named}: {use.outcome} ({count_text(use.files, 'file')})")
    if told.outcomes is not None and told.stages:
        lines += (
            f"rows: {count_text(files, 'file')} read {outcome.reason}"
            for outcome, files in told.outcomes.counts.items()
            if outcome.stage == "read"
        )
    return "\n".join([*lines, *told.notes])


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows below a head, without the columns that are empty."""
    used = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in used]
    for first, *others in zip(*used, strict=True):
        cells = zip(others, widths[1:], strict=True)
        yield "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in cells)])


def _row(stage: Stage) -> tuple[str, ...]:
    before, after = stage.before, stage.after
    return (
        stage.name,
        _change(before.files, after.files),
        _change(before.row_groups, after.row_groups),
        _change(before.pages, after.pages),
        _change(before.rows, after.rows),
        _change(before.bytes, after.bytes, size=True),
        f"{stage.requests:,}" if stage.requests else "",
        size_text(stage.bytes_read) if stage.requests else "",
        f"{stage.seconds * 1000:.1f}",
    )


def _change(before: int | None, after: int | None, *, size: bool = False) -> str:
    show = size_text if size else "{:,}".format
    left = "" if after is None else show(after)
    if before is None or show(before) == left:
        return left
    return f"{show(before)} -> {left or '?'}"


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

    outcomes: FileOutcomes | None = field(default=None, repr=False, compare=False)
    """What became of each file; None where no file was looked for."""

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """The same in plain dicts and lists; with `files`, what became of each of them, too."""
        told = asdict(replace(self, outcomes=None))
        del told["outcomes"]
        if files:
            told["files"] = [outcome.to_dict() for outcome in self.outcomes or ()]
        return told

    def to_json(self, *, files: bool = False) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(files=files), ensure_ascii=False, indent=2)

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file or a row group."""

    stage: str
    """The stage that left it out, or `read`."""
    reason: str
    """Why it was left out, or how it is read."""


@dataclass(frozen=True, slots=True)
class RowGroupOutcome:
    """A row group of a file that was opened."""

    rows: int
    outcome: Outcome
    rows_looked_at: int
    pages: int | None = None
    """Those that are read of the needed columns; None where whole row groups are read."""
    all_pages: int | None = None
    """Those that these columns have in it."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """A file of the table."""

    path: str
    size: int
    rows: int
    outcome: Outcome
    row_groups: tuple[RowGroupOutcome, ...] = ()
    """Empty for a file that was not opened: nobody has asked how it is cut."""

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        return {
            "path": self.path,
            "bytes": self.size,
            "rows": self.rows,
            "stage": self.outcome.stage,
            "reason": self.outcome.reason,
            "row_groups": [
                {
                    "rows": one.rows,
                    "stage": one.outcome.stage,
                    "reason": one.outcome.reason,
                    "rows_looked_at": one.rows_looked_at,
                    "pages": one.pages,
                    "all_pages": one.all_pages,
                }
                for one in self.row_groups
            ],
        }


class OutcomeNotes:
    """Takes down what becomes of files while a scan is planned."""

    def __init__(self, files: int) -> None:
        """Begin with files of which nothing is known."""
        self._outcomes: dict[Outcome, int] = {}
        self.codes: npt.NDArray[np.int16] = np.full(files, -1, np.int16)

    def code(self, stage: str, reason: str) -> int:
        """The number that stands for a outcome."""
        return self._outcomes.setdefault(Outcome(stage, reason), len(self._outcomes))

    def note(self, files: Int64Array, stage: str, reason: str) -> None:
        """Note the outcome of some files."""
        if len(files):
            self.codes[files] = self.code(stage, reason)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes, by their number."""
        return tuple(self._outcomes)

    def copy(self) -> OutcomeNotes:
        """The same, to go on with."""
        other = OutcomeNotes(0)
        other._outcomes, other.codes = dict(self._outcomes), self.codes.copy()
        return other


@dataclass(frozen=True, slots=True, eq=False)
class GroupColumns:
    """The row groups of files, in columns."""

    file: Int64Array
    rows: Int64Array
    codes: Int64Array
    looked_at: Int64Array
    pages: Int64Array
    """-1 where whole row groups are read."""
    all_pages: Int64Array

    @classmethod
    def of(cls, parts: Sequence[GroupColumns]) -> GroupColumns:
        """Those of several files, by file."""
        if not parts:
            nothing = np.zeros(0, np.int64)
            return cls(*[nothing] * 6)
        names = ("file", "rows", "codes", "looked_at", "pages", "all_pages")
        whole = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
        order = np.argsort(whole["file"], kind="stable")
        return cls(**{name: column[order] for name, column in whole.items()})


class FileOutcomes(Sequence[FileOutcome]):
    """What became of the files of a scan, in the order of the table."""

    def __init__(self, files: DataFiles, notes: OutcomeNotes, groups: GroupColumns) -> None:
        """Take what was noted; the outcome of every file must be known."""
        self._paths: pa.StringArray = files.paths
        self._sizes, self._rows = files.sizes, files.rows
        self._outcomes, self._codes, self._groups = notes.outcomes, notes.codes, groups

    @classmethod
    def all_read(cls, files: DataFiles, how: str) -> FileOutcomes:
        """Every file is read, by something that does not say more."""
        notes = OutcomeNotes(len(files.sizes))
        notes.note(np.arange(len(files.sizes)), "read", how)
        return cls(files, notes, GroupColumns.of(()))

    def __len__(self) -> int:
        return len(self._codes)

    @overload
    def __getitem__(self, place: int) -> FileOutcome: ...
    @overload
    def __getitem__(self, place: slice) -> list[FileOutcome]: ...
    def __getitem__(self, place: int | slice) -> FileOutcome | list[FileOutcome]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        file = range(len(self))[place]
        begin, end = np.searchsorted(self._groups.file, [file, file + 1]).tolist()
        return FileOutcome(
            self._paths[file].as_py(),
            int(self._sizes[file]),
            int(self._rows[file]),
            self._outcomes[self._codes[file]],
            tuple(map(self._group, range(begin, end))),
        )

    def __iter__(self) -> Iterator[FileOutcome]:
        return map(self.__getitem__, range(len(self)))

    def _group(self, place: int) -> RowGroupOutcome:
        groups = self._groups
        pages = int(groups.pages[place])
        return RowGroupOutcome(
            int(groups.rows[place]),
            self._outcomes[groups.codes[place]],
            int(groups.looked_at[place]),
            *((None, None) if pages < 0 else (pages, int(groups.all_pages[place]))),
        )

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many files had each outcome, in the order of the stages."""
        counts = Counter(self._codes.tolist())
        return {
            outcome: counts[code] for code, outcome in enumerate(self._outcomes) if counts[code]
        }

    def columns(self) -> dict[str, Any]:
        """All of it in plain lists, sorted by path, for pictures."""
        order = pc.sort_indices(self._paths)
        places = order.to_numpy()
        groups = self._groups
        rank = np.empty(len(places), np.int64)
        rank[places] = np.arange(len(places))
        return {
            "reasons": [(outcome.stage, outcome.reason) for outcome in self._outcomes],
            "paths": self._paths.take(order).to_pylist(),
            "sizes": self._sizes[places].tolist(),
            "rows": self._rows[places].tolist(),
            "codes": self._codes[places].tolist(),
            "groups": {
                "file": rank[groups.file].tolist(),
                "rows": groups.rows.tolist(),
                "codes": groups.codes.tolist(),
                "looked_at": groups.looked_at.tolist(),
                "pages": groups.pages.tolist(),
                "all_pages": groups.all_pages.tolist(),
            },
        }

    def __repr__(self) -> str:
        return f"<FileOutcomes of {len(self):,} files>"
