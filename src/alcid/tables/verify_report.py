"""What `verify` found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text
from alcid.tables.leftovers import Leftover

if TYPE_CHECKING:
    from alcid.pictures.page import Markup

__all__ = ["PAGES", "STATISTICS", "Example", "Finding", "Findings", "IndexCheck", "VerifyReport"]

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
class VerifyReport(Shown):
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

    def picture(self) -> tuple[str, Sequence[Markup]]:
        """A table of the indexes, and what is wrong."""
        from alcid.pictures.page import element, table

        first, *others = str(self).splitlines()
        told = {str(check) for check in self.indexes}
        head = ["index", "column", "checked", "sound", "differ", "damaged", "stale", "missing"]
        names = ("checked", "sound", "differing", "damaged", "stale", "missing")
        rows = [
            [one.index_type, one.column, *(getattr(one, name) for name in names)]
            for one in self.indexes
        ]
        notes = [element("p", line, class_="note") for line in others if line not in told]
        result = element("p", first, class_="good" if self.ok else "bad")
        return "Verify", [result, table(head, rows, numbers=range(2, 8)), *notes]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        leftovers = [leftover.to_dict() for leftover in self.leftovers]
        return {"ok": self.ok, **asdict(replace(self, leftovers=())), "leftovers": leftovers}
