"""What `verify` found.

What `repair` did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from alcid._text import count_text
from alcid.tables.maintenance.clean import Leftover
from alcid.tables.reports import size_text

if TYPE_CHECKING:
    pass

__all__ = [
    "PAGES",
    "ROLL_BACK",
    "STATISTICS",
    "Example",
    "Finding",
    "Findings",
    "IndexCheck",
    "Mended",
    "NotMended",
    "RepairReport",
    "VerifyReport",
]

PAGES, STATISTICS = "pages", "statistics"
"""What stands in `IndexCheck.index_type` for what is no index."""

_MOST_FINDINGS = 1_000_000  # in memory, of some hundred bytes each; all of them are repaired
_MOST_REPORTED = 1000
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Example:
    """A row of which an index is wrong."""

    file: str
    row: int
    value: str
    """What the row holds."""

    def __str__(self) -> str:
        return f"row {self.row} of {self.file}, {self.value}"


@dataclass(slots=True)
class IndexCheck:
    """An index of a table: what became of it in the files that were checked.

    >>> print(IndexCheck("id", "bitmap", checked=40, sound=38, differing=2, false_negatives=7))
    bitmap of 'id': 38 of 40 files sound, 2 differ (7 rows missing)
    """

    column: str
    index_type: str
    """The type of index; `pages` for the places of pages, `statistics` for least and greatest."""
    checked: int = 0
    """Files whose index was built again and compared."""
    sound: int = 0
    differing: int = 0
    """Files whose index is not what their data says."""
    damaged: int = 0
    """Files whose index cannot be read."""
    false_negatives: int = 0
    """Rows that the index does not give for their own value: queries miss them."""
    false_positives: int = 0
    """Rows that a bitmap, range-bitmap or bsi gives for a value that they do not have."""
    missing: int = 0
    """Files of the table that could have it, and have none."""
    stale: int = 0
    """Files of the table that were changed since it was built."""
    example: Example | None = None
    """The first row that is wrong."""

    def add(self, other: IndexCheck) -> None:
        """Count what was found elsewhere, in later files."""
        self.checked += other.checked
        self.sound += other.sound
        self.differing += other.differing
        self.damaged += other.damaged
        self.false_negatives += other.false_negatives
        self.false_positives += other.false_positives
        self.missing += other.missing
        self.stale += other.stale
        self.example = self.example or other.example

    def __str__(self) -> str:
        rows = [
            f"{count_text(count, 'row')} {what}"
            for count, what in (
                (self.false_negatives, "missing"),
                (self.false_positives, "too many"),
            )
            if count
        ]
        differ = f"{self.differing:,} differ" + (f" ({', '.join(rows)})" if rows else "")
        others = (
            (self.differing, differ),
            (self.damaged, f"{self.damaged:,} damaged"),
            (self.stale, f"{self.stale:,} stale"),
            (self.missing, f"{self.missing:,} missing"),
        )
        told = "".join(f", {text}" for count, text in others if count)
        what = f"{self.index_type} of {self.column!r}"
        return f"{what}: {self.sound:,} of {count_text(self.checked, 'file')} sound{told}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong."""

    file: str
    """The data file, or the bundle."""
    what: str
    """As `bitmap of 'id'`; empty for the file itself."""
    problem: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.what, self.problem)))


@dataclass(slots=True)
class Findings:
    """What is wrong: all are counted, and the first are kept."""

    count: int = 0
    first: list[Finding] = field(default_factory=list)

    def add(self, file: str, what: str, problem: object) -> None:
        """Take note of one."""
        self.extend([Finding(file, what, str(problem))], 1)

    def extend(self, first: Iterable[Finding], count: int) -> None:
        """Take note of `count`, of which the first are given."""
        self.count += count
        self.first.extend(islice(first, max(_MOST_FINDINGS - len(self.first), 0)))


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found; `ok` if nothing is wrong."""

    files: int
    """The data files of the table."""
    checked: int
    """Those that were read, and compared with what is kept of them."""
    changed: int
    """Those that were changed or removed while they were read: nothing is said of them."""
    unindexed: int
    """Those of which nothing is kept, or only of an earlier state."""
    rows: int
    """The rows of the files that were checked."""
    seconds: float
    indexes: tuple[IndexCheck, ...]
    """By column and type, pages and statistics among them."""
    problem_count: int
    problems: tuple[Finding, ...]
    """What is wrong, each by file; in what `verify` of a table gives, the first thousand."""
    gone: int
    """Files that bundles know and that are not there any more."""
    gone_example: str
    leftovers: tuple[Leftover, ...]
    """Files that are of no use any more, which `clean` removes when they are old enough."""
    later: tuple[str, ...] = ()
    """Bundles of a later version, which were not looked into."""
    keys_live_twice: int = 0
    """Live rows beside another of the same key, which counts; readers see both."""
    warnings: tuple[Finding, ...] = ()
    """What is right for reads, but stands in the way of others, as of writers of Paimon's Java; the
    first thousand."""

    @property
    def ok(self) -> bool:
        """Whether no index hides a row or gives a wrong one, and nothing is damaged.

        Indexes that are stale or missing make queries slower, not wrong.
        """
        return not self.problem_count

    @property
    def is_cut(self) -> bool:
        """Whether more is wrong than `problems` has."""
        return self.problem_count > len(self.problems)

    def shortened(self) -> VerifyReport:
        """The same with the first thousand of what was found."""
        problems, warnings = self.problems[:_MOST_REPORTED], self.warnings[:_MOST_REPORTED]
        return replace(self, problems=problems, warnings=warnings)

    def is_better_than(self, before: VerifyReport) -> bool:
        """Whether less is wrong than it was."""
        return self.problem_count < before.problem_count or len(self.warnings) < len(
            before.warnings
        )

    def __str__(self) -> str:
        """What was checked, what is wrong, and what lies about."""
        first = f"checked {self.checked:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')}) in {self.seconds:.1f} s: "
        lines = [first + ("ok" if self.ok else count_text(self.problem_count, "problem"))]
        for check in self.indexes:
            is_index = check.index_type not in (PAGES, STATISTICS)
            if is_index or check.sound < check.checked or check.damaged:
                lines.append(str(check))
        lines += [f"wrong: {problem}" for problem in self.problems[:_SHOWN]]
        if self.problem_count > _SHOWN:
            lines.append(f"and {self.problem_count - _SHOWN:,} more")
        lines += [f"warning: {warning}" for warning in self.warnings[:_SHOWN]]
        lines += self._notes()
        return "\n".join(lines)

    def _notes(self) -> list[str]:
        reasons: dict[str, int] = {}
        for leftover in self.leftovers:
            reasons[leftover.reason] = reasons.get(leftover.reason, 0) + 1
        left = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        notes = (
            (self.changed, f"{count_text(self.changed, 'file')} changed meanwhile"),
            (self.unindexed, f"{count_text(self.unindexed, 'file')} without an index"),
            (self.gone, f"{count_text(self.gone, 'file')} gone, as {self.gone_example}"),
            (len(self.later), f"{count_text(len(self.later), 'bundle')} of a later version"),
            (len(left), f"left over: {left}"),
        )
        return [text for count, text in notes if count]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        leftovers = [leftover.to_dict() for leftover in self.leftovers]
        return {"ok": self.ok, **asdict(replace(self, leftovers=())), "leftovers": leftovers}


ROLL_BACK = "restore the file, or roll the table back to a snapshot before it"
"""What to do where nothing else tells what a file has held."""


@dataclass(frozen=True, slots=True)
class Mended:
    """Something that was wrong.

    >>> print(Mended("index/a-0", "vector of b", "it is no live data file", "dropped"))
    index/a-0: vector of b: it is no live data file: dropped
    """

    file: str
    """As `verify` names it."""
    what: str
    problem: str
    done: str
    """What became of it."""
    count: int = 1
    """How many it was: rows, or hashes of keys."""

    @classmethod
    def of(cls, finding: Finding, done: str, count: int = 1) -> Mended:
        """What `verify` has found, and what was done."""
        return cls(finding.file, finding.what, finding.problem, done, count)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.what, self.problem, self.done)))


@dataclass(frozen=True, slots=True)
class NotMended:
    """Something that is wrong, and stays so."""

    file: str
    """As `verify` names it."""
    what: str
    problem: str
    advice: str
    """What to do about it."""

    @classmethod
    def of(cls, finding: Finding, advice: str) -> NotMended:
        """What `verify` has found, and what to do."""
        return cls(finding.file, finding.what, finding.problem, advice)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.what, self.problem, self.advice)))


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `repair` did, or would do; `ok` if nothing is wrong any more.

    >>> mended = Mended("index/a-0", "vector of b", "it is no live data file", "dropped")
    >>> print(RepairReport((mended,), (), (), (), 7, 1, 0.3))
    mended 1 problem in 1 commit: snapshot 7; removed 0 leftovers (0 B); 0.3 s
    mended: index/a-0: vector of b: it is no live data file: dropped
    >>> print(RepairReport((), (), (), (), None, 0, 0.3))
    nothing to mend; removed 0 leftovers (0 B); 0.3 s
    """

    mended: tuple[Mended, ...]
    not_mended: tuple[NotMended, ...]
    removed: tuple[Leftover, ...]
    """Files of no use, as `clean` removes them."""
    kept: tuple[Leftover, ...]
    """Files of no use that are too young to be removed."""
    snapshot_id: int | None
    """The last snapshot that was made; None if there was none, or it is not known before."""
    commits: int
    """How many commits were made; a folder of Parquet files has none."""
    seconds: float
    dry_run: bool = False
    """Nothing was changed."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong any more."""
        return not self.not_mended

    def __str__(self) -> str:
        would = "would have " if self.dry_run else ""
        first = "nothing to mend"
        if self.mended:
            first = f"{would}mended {count_text(len(self.mended), 'problem')}"
            first += f" in {count_text(self.commits, 'commit')}" if self.commits else ""
            first += "" if self.snapshot_id is None else f": snapshot {self.snapshot_id}"
        size = size_text(sum(one.bytes for one in self.removed))
        first += f"; {would}removed {count_text(len(self.removed), 'leftover')} ({size})"
        first += f"; {len(self.kept):,} too young" if self.kept else ""
        first += f"; {len(self.not_mended):,} NOT mended" if self.not_mended else ""
        lines = [first + ("" if self.dry_run else f"; {self.seconds:.1f} s")]
        for told, every in (("not mended", self.not_mended), ("mended", self.mended)):
            lines += [f"{told}: {one}" for one in every[:_SHOWN]]
            if len(every) > _SHOWN:
                lines.append(f"and {len(every) - _SHOWN:,} more {told}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "ok": self.ok,
            "dry_run": self.dry_run,
            "mended": [asdict(one) for one in self.mended],
            "not_mended": [asdict(one) for one in self.not_mended],
            "removed": [one.to_dict() for one in self.removed],
            "kept": [one.to_dict() for one in self.kept],
            "snapshot_id": self.snapshot_id,
            "commits": self.commits,
            "seconds": self.seconds,
        }
