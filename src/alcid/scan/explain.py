"""The explanation of a scan: its stages, its indexes, and what became of each file.

`str` of it is a table to read, `to_json` is for programs; `alcid.inspect` draws it as a page. Files
are held in columns, a code for each, so that a hundred thousand of them cost nothing; the objects
are made when they are looked at.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int16Array, Int64Array
from alcid._text import count_text, size_text
from alcid.scan.table_files import DataFiles

_HEAD = (
    *("stage", "files", "row groups", "pages", "rows"),
    *("bytes to read", "requests", "bytes read", "ms"),
)


def question_text(explanation: Explanation) -> str:
    """The query as text."""
    order = f" order by {explanation.order_by}" if explanation.order_by else ""
    limit = "" if explanation.limit is None else f" limit {explanation.limit}"
    return f"where {explanation.predicate}{order}{limit}"


def explanation_text(explanation: Explanation) -> str:
    """The stages, then what was left out and why, what became of indexes, and what else is to say.

    `bytes to read` is what is left of the files, and from the row groups on of the needed columns;
    `bytes read` is what a stage took from the storage, which may be less where it knew it already.
    """
    lines = [question_text(explanation)]
    if explanation.stages:
        lines += _aligned([_HEAD, *map(_row, explanation.stages)])
    for stage in explanation.stages:
        lines += (
            f"{stage.name}: {count_text(files, 'file')} out: {why}"
            for why, files in stage.dropped.items()
        )
        lines += (
            f"{stage.name}: {count_text(files, 'file')} without usable min/max or null counts "
            f"for {predicate}"
            for predicate, files in stage.without_statistics.items()
        )
    for use in explanation.indexes:
        named = use.index or ("no index" if use.outcome == "absent" else "")
        texts = filter(None, [use.predicate, named, use.outcome])
        lines.append(f"{': '.join(texts)} ({count_text(use.files, 'file')})")
    if explanation.outcomes is not None and explanation.stages:
        lines += (
            f"rows: {count_text(files, 'file')} read {outcome.reason}"
            for outcome, files in explanation.outcomes.counts.items()
            if outcome.stage == "read"
        )
    return "\n".join([*lines, *explanation.notes])


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
    without_statistics: dict[str, int] = field(default_factory=dict)
    """Of the statistics: how many files have none that could rule them out, by leaf."""


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What became of the indexes of one type, for one part of the predicate, in so many files."""

    predicate: str
    index: str
    """Its type; empty where there is none, or where it does not matter."""
    outcome: str
    """`answered` if it said which rows match; of a bloom filter `ruled out` or `may contain it`.

    Else why it was not probed: `absent`, `disabled by ...`, `stale`, `damaged`, `type: ...`,
    `unsupported predicate`, `not worth it`, `not needed`, `another part of the OR has no ...`.
    """
    files: int


@dataclass(frozen=True, slots=True)
class FileIndexUse:
    """What became of an index of one file, for one part of the predicate; as `IndexUse`."""

    predicate: str
    index: str
    outcome: str


@dataclass(frozen=True, slots=True, eq=False)
class IndexOutcomes:
    """What became of indexes in each file: a column for each part of a predicate and index type."""

    columns: Sequence[tuple[str, str, Int16Array]]
    """The predicate, the index type, and for each file a code; 0 where there is nothing to say."""
    outcomes: Sequence[str]
    """What the codes stand for."""

    def counts(self) -> tuple[IndexUse, ...]:
        """How many files have each outcome."""
        return tuple(
            IndexUse(predicate, index, self.outcomes[code], files)
            for predicate, index, column in self.columns
            for code, files in enumerate(np.bincount(column).tolist())
            if code and files
        )

    def of(self, file: int) -> tuple[FileIndexUse, ...]:
        """What became of the indexes of one file."""
        return tuple(
            FileIndexUse(predicate, index, self.outcomes[column[file]])
            for predicate, index, column in self.columns
            if column[file]
        )


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
        fields = asdict(replace(self, outcomes=None))
        del fields["outcomes"]
        if files:
            fields["files"] = [file.to_dict() for file in self.outcomes or ()]
        return fields

    def to_json(self, *, files: bool = False) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(files=files), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        return explanation_text(self)


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
    """Empty for a file that was not opened."""
    indexes: tuple[FileIndexUse, ...] = ()
    """What became of its indexes; empty for a file that earlier stages left out."""

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
                    "rows": group.rows,
                    "stage": group.outcome.stage,
                    "reason": group.outcome.reason,
                    "rows_looked_at": group.rows_looked_at,
                    "pages": group.pages,
                    "all_pages": group.all_pages,
                }
                for group in self.row_groups
            ],
            "indexes": [asdict(use) for use in self.indexes],
        }


class OutcomeCodes:
    """The outcomes of files as codes: a number for each file, and what it stands for."""

    def __init__(self, files: int) -> None:
        """Begin with so many files of which nothing is known."""
        self._outcomes: dict[Outcome, int] = {}
        self.codes: Int16Array = np.full(files, -1, np.int16)

    def code(self, outcome: Outcome) -> int:
        """The number that stands for an outcome."""
        return self._outcomes.setdefault(outcome, len(self._outcomes))

    def note(self, files: Int64Array, outcome: Outcome) -> None:
        """Set the outcome of some files."""
        if len(files):
            self.codes[files] = self.code(outcome)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes, by their code."""
        return tuple(self._outcomes)


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
        whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        order = np.argsort(whole["file"], kind="stable")
        return cls(**{name: column[order] for name, column in whole.items()})


class FileOutcomes(Sequence[FileOutcome]):
    """What became of the files of a scan, in the order of the table."""

    def __init__(
        self,
        files: DataFiles,
        codes: OutcomeCodes,
        groups: GroupColumns,
        indexes: IndexOutcomes | None = None,
    ) -> None:
        """Take the codes of all files, the row groups of some, and what became of indexes."""
        self._indexes = indexes or IndexOutcomes((), ())
        self._paths: pa.StringArray = files.paths
        self._sizes, self._rows = files.sizes, files.rows
        self._outcomes, self._codes, self._groups = codes.outcomes, codes.codes, groups

    @classmethod
    def all_read(cls, files: DataFiles, how: str) -> FileOutcomes:
        """Every file is read, by something that does not say more."""
        codes = OutcomeCodes(len(files.sizes))
        codes.note(np.arange(len(files.sizes)), Outcome("read", how))
        return cls(files, codes, GroupColumns.of(()))

    def __len__(self) -> int:
        return len(self._codes)

    @overload
    def __getitem__(self, index: int) -> FileOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> list[FileOutcome]: ...
    def __getitem__(self, index: int | slice) -> FileOutcome | list[FileOutcome]:
        if isinstance(index, slice):
            return [self[file] for file in range(*index.indices(len(self)))]
        file = range(len(self))[index]
        begin, end = np.searchsorted(self._groups.file, [file, file + 1]).tolist()
        return FileOutcome(
            self._paths[file].as_py(),
            int(self._sizes[file]),
            int(self._rows[file]),
            self._outcomes[self._codes[file]],
            tuple(map(self._group, range(begin, end))),
            self._indexes.of(file),
        )

    def __iter__(self) -> Iterator[FileOutcome]:
        return map(self.__getitem__, range(len(self)))

    def _group(self, row: int) -> RowGroupOutcome:
        groups = self._groups
        pages = int(groups.pages[row])
        return RowGroupOutcome(
            int(groups.rows[row]),
            self._outcomes[groups.codes[row]],
            int(groups.looked_at[row]),
            *((None, None) if pages < 0 else (pages, int(groups.all_pages[row]))),
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
        by_path = order.to_numpy()
        groups = self._groups
        rank = np.empty(len(by_path), np.int64)
        rank[by_path] = np.arange(len(by_path))
        return {
            "reasons": [(outcome.stage, outcome.reason) for outcome in self._outcomes],
            "paths": self._paths.take(order).to_pylist(),
            "sizes": self._sizes[by_path].tolist(),
            "rows": self._rows[by_path].tolist(),
            "codes": self._codes[by_path].tolist(),
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
