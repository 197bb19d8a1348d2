"""The runner of `verify`: what all kinds of tables share.

A kind of table says what is to be checked. This module chooses the files of a sample, runs checks
on the engine, collects what they find, begins again where files were replaced meanwhile, and makes
the report.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Generic, Protocol, TypeVar, cast

import numpy as np

from alcid._arrays import Int64Array
from alcid._text import count_text
from alcid.config import current_settings, using
from alcid.errors import FileGoneError, OptionError
from alcid.storage import retry
from alcid.storage.threads import in_order
from alcid.tables.engine import Engine, Task
from alcid.tables.maintenance.clean import Leftover
from alcid.tables.maintenance.findings import PAGES, STATISTICS, Checked, Finding, IndexCheck
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import MAX_SHOWN, Report, cut

_ATTEMPTS: Final = 3  # a build may replace a bundle that is being read
_MAX_REPORTED = 1000

T = TypeVar("T")
Items = TypeVar("Items")
Items_contra = TypeVar("Items_contra", contravariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class VerifyReport(Report):
    """What `verify` found; `ok` if nothing is wrong."""

    computed: ClassVar[tuple[str, ...]] = ("ok",)

    files: int
    """The data files of the table."""
    checked: int
    """Those that were read, and compared with what the table says of them."""
    changed: int
    """Those that were changed or removed while they were read: nothing is reported of them."""
    unindexed: int
    """Those without any index, or only with those of an earlier state."""
    rows: int
    """The rows of the files that were checked."""
    seconds: float
    indexes: tuple[IndexCheck, ...]
    """By column and type, pages and statistics among them."""
    problem_count: int
    problems: tuple[Finding, ...]
    """What is wrong, each by file; in what `verify` of a table gives, the first thousand."""
    gone: int
    """Files that bundles name and that are not there any more."""
    gone_example: str
    leftovers: tuple[Leftover, ...]
    """Files that are of no use any more, which `clean` removes when they are old enough."""
    later: tuple[str, ...] = ()
    """Bundles of a later version, which were not checked."""
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

    def shortened(self) -> VerifyReport:
        """The same with the first thousand problems and warnings."""
        problems, warnings = self.problems[:_MAX_REPORTED], self.warnings[:_MAX_REPORTED]
        return replace(self, problems=problems, warnings=warnings)

    def is_better_than(self, before: VerifyReport) -> bool:
        """Whether less is wrong than it was."""
        return self.problem_count < before.problem_count or len(self.warnings) < len(
            before.warnings
        )

    def lines(self) -> Iterator[str]:
        """What was checked, what is wrong, and what is left over."""
        first = f"checked {self.checked:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')}) in {self.seconds:.1f} s: "
        yield first + ("ok" if self.ok else count_text(self.problem_count, "problem"))
        for check in self.indexes:
            is_index = check.index_type not in (PAGES, STATISTICS)
            if is_index or check.sound < check.checked or check.damaged:
                yield str(check)
        yield from cut((f"wrong: {finding}" for finding in self.problems), self.problem_count)
        yield from (f"warning: {finding}" for finding in self.warnings[:MAX_SHOWN])
        reasons = Counter(leftover.reason for leftover in self.leftovers)
        left = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        notes = (
            (self.changed, f"{count_text(self.changed, 'file')} changed meanwhile"),
            (self.unindexed, f"{count_text(self.unindexed, 'file')} without an index"),
            (self.gone, f"{count_text(self.gone, 'file')} gone, as {self.gone_example}"),
            (len(self.later), f"{count_text(len(self.later), 'bundle')} of a later version"),
            (len(left), f"left over: {left}"),
        )
        yield from (text for count, text in notes if count)


@dataclass(frozen=True, slots=True)
class Sample:
    """A fraction of the files: the same in every run, and more of them for a greater fraction.

    >>> Sample(0.5).choose(["a", "b", "c", "d"]).tolist()
    [1, 2]
    """

    fraction: float = 1.0
    seed: int = 0
    """Another number takes other files."""

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise OptionError(
                f"sample: found {self.fraction}, expected a number above 0 and at most 1"
            )

    def choose(self, paths: Sequence[str]) -> Int64Array:
        """The positions of the chosen files, ascending; at least one, if there are any."""
        if self.fraction == 1 or not paths:
            return np.arange(len(paths))
        start = zlib.crc32(str(self.seed).encode())
        order = np.argsort([zlib.crc32(path.encode(), start) for path in paths], kind="stable")
        return np.sort(order[: max(round(self.fraction * len(paths)), 1)])


@dataclass(slots=True)
class Total(Checked):
    """The result of all checks, and what else a report has."""

    table_files: int = 0
    unindexed: int = 0
    gone: Sequence[str] = ()
    """Files that bundles name and that are not there any more."""
    leftovers: Sequence[Leftover] = ()
    later: list[str] = field(default_factory=list)
    keys_live_twice: int = 0

    def report(self, seconds: float) -> VerifyReport:
        """All of it as a report."""
        return VerifyReport(
            files=self.table_files,
            checked=self.checked,
            changed=self.changed,
            unindexed=self.unindexed,
            rows=self.rows,
            seconds=seconds,
            indexes=tuple(self.indexes[key] for key in sorted(self.indexes)),
            problem_count=self.findings.count,
            problems=tuple(self.findings.problems),
            gone=len(self.gone),
            gone_example=self.gone[0] if self.gone else "",
            leftovers=tuple(self.leftovers),
            later=tuple(self.later),
            keys_live_twice=self.keys_live_twice,
            warnings=tuple(self.findings.warnings),
        )


def run(check: Callable[[Total], None]) -> VerifyReport:
    """Verify a table.

    Args:
        check: Does all checks, and records what it finds. It is called again where others have
            replaced a file meanwhile.

    Raises:
        FileGoneError: Others replace files again and again.
    """
    begin = time.monotonic()

    def attempt() -> Total:
        total = Total()
        check(total)
        return total

    total = retry(attempt, on=FileGoneError, attempts=_ATTEMPTS)
    return total.report(time.monotonic() - begin)


class Checks(Protocol[Items_contra]):
    """Checks of many files, of which each is an item; they pickle."""

    def open(self, items: Items_contra, /) -> Callable[[int], Checked]:
        """A function that checks one of the items of a task, by its position among them.

        Several threads call it. What is wrong with a file is a finding, not an error.
        """


def run_checks(
    engine: Engine,
    checks: Checks[Items],
    items: Items,
    sizes: Int64Array,
    *,
    files: int = 0,
    progress: Progress | bool | None = False,
) -> Checked:
    """Do checks on the engine, and add up what they find.

    Args:
        engine: What reads the files.
        checks: The checks.
        items: What is checked, as `Engine.map` takes it.
        sizes: About how many bytes each item reads.
        files: How many of the items are data files, for the progress.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.
    """
    total = Checked()
    if len(sizes):
        with track_progress(progress, "verifying", files) as report:
            for part in engine.map(_CheckTask(checks), items, sizes, report):
                total.add(part)
    return total


@dataclass(frozen=True, slots=True, eq=False)
class _CheckTask(Generic[Items]):
    """The checks of one task, for `Engine.map`."""

    checks: Checks[Items]

    def __call__(self, task: Task[Items]) -> Checked:
        total, items = Checked(), cast("Sized", task.items)
        # Indexes spell columns as their files do, whatever the rule for queries is.
        with using(replace(current_settings(), case_sensitive=True)):
            check = self.checks.open(task.items)
            with closing(in_order(check, range(len(items)), task.threads)) as results:
                for result in results:
                    total.add(result)
                    task.report(result.files, result.rows)
        total.findings = total.findings.for_driver()
        return total


class Check(Protocol[T_contra]):
    """The check of one file; it pickles."""

    @property
    def size(self) -> int:
        """About how many bytes it reads."""

    def run(self, table: T_contra, /) -> Checked:
        """Check the file of a table."""


@dataclass(frozen=True, slots=True, eq=False)
class EachCheck(Generic[T]):
    """Checks that are items themselves, and need nothing but the table."""

    table: T

    def open(self, items: Sequence[Check[T]]) -> Callable[[int], Checked]:
        """A function that does one of these checks."""
        return lambda number: items[number].run(self.table)


def run_each(
    engine: Engine,
    table: T,
    checks: Sequence[Check[T]],
    *,
    files: int = 0,
    progress: Progress | bool | None = False,
) -> Checked:
    """Do checks of a table on the engine, see `run_checks`."""
    sizes = np.array([check.size for check in checks], np.int64)
    return run_checks(engine, EachCheck(table), checks, sizes, files=files, progress=progress)
