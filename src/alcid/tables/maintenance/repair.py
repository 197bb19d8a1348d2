"""The repair loop, and its report: verify, fix what was found by its kind, and verify again.

A kind of table registers fixers, each for some kinds of findings. A fixer plans what to do, and the
plan is applied, unless it is a dry run. The loop ends when no fixer has anything left to repair.
What others change at the same time is verified again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Final, Protocol

from alcid._text import count_text, size_text
from alcid.errors import AlcidError, ConflictError, DamagedIndexWarning, FileGoneError
from alcid.tables.engine import Engine
from alcid.tables.maintenance.clean import CleanReport, Leftover, check_age
from alcid.tables.maintenance.findings import Finding, FindingKind
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.progress import Progress
from alcid.tables.reports import Plain, Report, cut

ROLL_BACK: Final = "restore the file, or roll the table back to a snapshot before it"
"""The advice where the content of a file is nowhere else."""

REBUILT: Final = "built anew"

_TRIES: Final = 10


class _OfFinding(Plain):
    """Something about a finding."""

    __slots__ = ()

    computed: ClassVar[tuple[str, ...]] = ("file", "what", "problem")
    json_keys: ClassVar[Mapping[str, str]] = {"finding": ""}
    finding: Finding

    @property
    def file(self) -> str:
        """The file, as `verify` names it."""
        return self.finding.file

    @property
    def what(self) -> str:
        """What of the file was wrong."""
        return self.finding.what

    @property
    def problem(self) -> str:
        """What was wrong with it."""
        return self.finding.problem


@dataclass(frozen=True, slots=True)
class Repaired(_OfFinding):
    """Something that was wrong.

    >>> finding = Finding(FindingKind.VECTOR, "index/a-0", "it is no live data file", data_file="b")
    >>> print(Repaired(finding, "dropped"))
    index/a-0: deletion vector of b: it is no live data file: dropped
    """

    finding: Finding
    done: str
    """How it was repaired."""
    count: int = 1
    """How many rows, or hashes of keys, were repaired."""

    def __str__(self) -> str:
        return f"{self.finding}: {self.done}"


@dataclass(frozen=True, slots=True)
class NotRepaired(_OfFinding):
    """Something that is wrong, and stays so."""

    finding: Finding
    advice: str
    """What to do about it."""

    def __str__(self) -> str:
        return f"{self.finding}: {self.advice}"


@dataclass(frozen=True, slots=True)
class RepairReport(Report):
    """What `repair` did, or would do; `ok` if nothing is wrong any more.

    >>> finding = Finding(FindingKind.VECTOR, "index/a-0", "it is no live data file", data_file="b")
    >>> print(RepairReport((Repaired(finding, "dropped"),), (), (), (), 7, 1, 0.3))
    repaired 1 problem in 1 commit: snapshot 7; removed 0 leftovers (0 B); 0.3 s
    repaired: index/a-0: deletion vector of b: it is no live data file: dropped
    >>> print(RepairReport((), (), (), (), None, 0, 0.3))
    nothing to repair; removed 0 leftovers (0 B); 0.3 s
    """

    computed: ClassVar[tuple[str, ...]] = ("ok",)
    json_keys: ClassVar[Mapping[str, str]] = {"repaired": "mended", "not_repaired": "not_mended"}

    repaired: tuple[Repaired, ...]
    not_repaired: tuple[NotRepaired, ...]
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
        return not self.not_repaired

    def lines(self) -> Iterator[str]:
        """What was done, in one line; what was not repaired, and what was."""
        would = "would have " if self.dry_run else ""
        first = "nothing to repair"
        if self.repaired:
            first = f"{would}repaired {count_text(len(self.repaired), 'problem')}"
            first += f" in {count_text(self.commits, 'commit')}" if self.commits else ""
            first += "" if self.snapshot_id is None else f": snapshot {self.snapshot_id}"
        size = size_text(sum(leftover.bytes for leftover in self.removed), precise=True)
        first += f"; {would}removed {count_text(len(self.removed), 'leftover')} ({size})"
        first += f"; {len(self.kept):,} too young" if self.kept else ""
        first += f"; {len(self.not_repaired):,} NOT repaired" if self.not_repaired else ""
        yield first + ("" if self.dry_run else f"; {self.seconds:.1f} s")
        for what, every in (("not repaired", self.not_repaired), ("repaired", self.repaired)):
            yield from cut((f"{what}: {one}" for one in every), len(every), what)


@dataclass(slots=True)
class Outcome:
    """What was repaired, or would be."""

    repaired: list[Repaired] = field(default_factory=list)
    commits: int = 0
    snapshot_id: int | None = None
    removed: list[Leftover] = field(default_factory=list)
    conflict: AlcidError | None = None
    """Why something was not repaired that can be: others have changed it meanwhile."""

    def add(self, other: Outcome) -> None:
        """Count what was done next."""
        self.repaired += other.repaired
        self.commits += other.commits
        self.snapshot_id = other.snapshot_id or self.snapshot_id
        self.removed += other.removed
        self.conflict = other.conflict


class Fix(Protocol):
    """What is to be done about some findings; nothing has been done yet."""

    def planned(self) -> Outcome:
        """What would be done."""

    def apply(self) -> Outcome:
        """Do it.

        Raises:
            ConflictError: Others have changed the same files.
            FileGoneError: Others have replaced a file.
        """


@dataclass(frozen=True, slots=True)
class Fixer:
    """Plans how to repair findings of some kinds."""

    kinds: frozenset[FindingKind]
    plan: Callable[[Sequence[Finding]], Fix]


class Repairable(Protocol):
    """A table of some kind, as the loop repairs it."""

    @property
    def engine(self) -> Engine:
        """What works on it."""

    @property
    def fixers(self) -> Sequence[Fixer]:
        """What repairs it. All fixers plan on the same state, and are applied in this order."""

    def verify(self, progress: Progress | bool | None) -> VerifyReport:
        """All that is wrong with the table as it is now."""

    def advice(self, finding: Finding) -> str:
        """What to do about something that stays wrong."""

    def clean(self, older_than: timedelta, *, dry_run: bool) -> CleanReport:
        """Remove what is of no use."""


def repair(
    table: Repairable,
    older_than: timedelta,
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Repair what can be repaired, and remove what is of no use.

    Args:
        table: The table.
        older_than: As for `clean`.
        dry_run: Only say what would be done.
        progress: How to report it, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An age below 0.
        ConflictError: Others have changed the same files every time.
    """
    check_age(older_than)
    begin = time.monotonic()
    with table.engine.settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)  # the report names what is damaged
        report = table.verify(progress)
        if dry_run:
            total = _plan(table, report)
        else:
            total, report = _repair(table, report, progress)
        cleaned = table.clean(older_than, dry_run=dry_run)
    done = {one.finding for one in total.repaired} if dry_run else set()
    left = (finding for finding in report.problems if finding not in done)
    return RepairReport(
        tuple(total.repaired),
        tuple(NotRepaired(finding, table.advice(finding)) for finding in left),
        (*total.removed, *cleaned.removed),
        cleaned.kept,
        total.snapshot_id,
        total.commits,
        time.monotonic() - begin,
        dry_run,
    )


def _repair(
    table: Repairable, report: VerifyReport, progress: Progress | bool | None
) -> tuple[Outcome, VerifyReport]:
    """Fix and verify until nothing is left that can be repaired; the last report."""
    total, tries = Outcome(), _TRIES
    while tries:
        outcome = _apply(_fixes(table, report))
        total.add(outcome)
        if not outcome.repaired and outcome.conflict is None:
            break
        before, report = report, table.verify(progress)
        if outcome.conflict is not None or not report.is_better_than(before):
            tries -= 1
        if not tries and outcome.conflict is not None:
            raise outcome.conflict
    return total, report


def _plan(table: Repairable, report: VerifyReport) -> Outcome:
    total = Outcome()
    for fix in _fixes(table, report):
        total.add(fix.planned())
    return total


def _fixes(table: Repairable, report: VerifyReport) -> list[Fix]:
    """Let each fixer plan what to do about the findings of its kinds."""
    findings = (*report.problems, *report.warnings)
    return [
        fixer.plan([finding for finding in findings if finding.kind in fixer.kinds])
        for fixer in table.fixers
    ]


def _apply(fixes: Sequence[Fix]) -> Outcome:
    total = Outcome()
    for fix in fixes:
        try:
            total.add(fix.apply())
        except (ConflictError, FileGoneError) as error:
            total.conflict = error
        if total.conflict is not None:
            break
    return total
