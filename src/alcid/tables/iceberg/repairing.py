"""Repair of an Iceberg table: what `verify` finds is mended, as far as nothing is lost by it.

Deletion vectors are one commit of delete files, through the catalog. Statistics files, with the
indexes in them, are commits of their own, as Iceberg has it. Then the table is verified again, and
what is still wrong is told: what nobody can mend is not touched.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from alcid.errors import ConflictError, DamagedIndexWarning, FileGoneError, UnsupportedError
from alcid.tables.cleaning import check_age
from alcid.tables.iceberg.cleaning import clean
from alcid.tables.iceberg.deleting import commit_vectors
from alcid.tables.iceberg.repair_statistics import StatisticsRepair, plan_statistics
from alcid.tables.iceberg.repair_vectors import VectorRepair, plan_vectors
from alcid.tables.iceberg.verifying import verify
from alcid.tables.progress import Progress
from alcid.tables.repair_report import ROLL_BACK, Mended, NotMended, RepairReport
from alcid.tables.verify_report import Finding, VerifyReport

if TYPE_CHECKING:
    from alcid.tables.iceberg.table import IcebergTable

__all__ = ["repair"]

_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done about what was found."""

    vectors: VectorRepair
    statistics: StatisticsRepair

    @property
    def mended(self) -> tuple[Mended, ...]:
        return (*self.vectors.mended, *self.statistics.mended)

    @property
    def commits(self) -> int:
        return bool(self.vectors.removed) + self.statistics.commits


@dataclass(slots=True)
class _Done:
    """What was done."""

    mended: list[Mended] = field(default_factory=list)
    left: Sequence[Finding] = ()
    """What is still wrong."""
    snapshot_id: int | None = None
    commits: int = 0
    refused: str = ""
    """Why vectors cannot be committed."""


def repair(
    table: IcebergTable,
    older_than: timedelta = timedelta(days=1),
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Mend what can be mended, and remove what no snapshot lists.

    Args:
        table: The table; it is refreshed.
        older_than: As for `clean`.
        dry_run: Only say what would be done.
        progress: How to tell how far it is, see `alcid.tables.progress.telling`.

    Raises:
        OptionError: An age below 0.
        UnsupportedError: The table was opened as it was in the past.
        ConflictError: Others have changed the same files every time.
    """
    check_age(older_than)
    table.require_present("repair")
    begin = time.monotonic()
    with table.engine.settings(), _unwarned():
        if dry_run:
            found = _look(table, progress)
            plan = _plan(table, found)
            done = _Done(list(plan.mended), commits=plan.commits)
            told = {(one.file, one.what, one.problem) for one in plan.mended}
            done.left = [
                one for one in found.problems if (one.file, one.what, one.problem) not in told
            ]
        else:
            done = _persist(table, progress)
        cleaned = clean(table, older_than, dry_run=dry_run)
    return RepairReport(
        tuple(done.mended),
        tuple(NotMended.of(one, _advice(one, done.refused)) for one in done.left),
        cleaned.removed,
        cleaned.kept,
        done.snapshot_id,
        done.commits,
        time.monotonic() - begin,
        dry_run,
    )


@contextmanager
def _unwarned() -> Iterator[None]:
    """Say nothing of indexes that are damaged: the report does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)
        yield


def _persist(table: IcebergTable, progress: Progress | bool | None) -> _Done:
    """Mend until nothing is left that can be."""
    done, tries = _Done(), _TRIES
    found = _look(table, progress)
    while tries:
        plan, is_lost = _plan(table, found), False
        try:
            if plan.vectors.removed and not done.refused:
                _commit(table, plan.vectors, done)
            if plan.statistics.mended:
                plan.statistics.apply(table)
                done.mended += plan.statistics.mended
                done.commits += plan.statistics.commits
        except (ConflictError, FileGoneError):
            is_lost = True
            if tries == 1:
                raise
        if not plan.statistics.mended and (done.refused or not plan.vectors.mended):
            break
        before, found = found, _look(table, progress)
        tries -= is_lost or not found.is_better_than(before)
    done.left = found.problems
    return done


def _look(table: IcebergTable, progress: Progress | bool | None) -> VerifyReport:
    table.refresh()
    return verify(table, progress=progress)


def _plan(table: IcebergTable, found: VerifyReport) -> _Plan:
    findings = (*found.problems, *found.warnings)
    return _Plan(
        plan_vectors(table.snapshot, table.places, findings), plan_statistics(table, findings)
    )


def _commit(table: IcebergTable, plan: VectorRepair, done: _Done) -> None:
    files = table.snapshot
    assert files.snapshot is not None  # which has the vectors
    try:
        made = commit_vectors(table, files, files.snapshot, plan.vectors, plan.removed)
    except UnsupportedError as error:
        done.refused = str(error)
        return
    done.snapshot_id, done.commits = made, done.commits + 1
    done.mended += plan.mended
    table.refresh()


def _advice(finding: Finding, refused: str) -> str:
    """What to do about something that is still wrong."""
    if finding.what.startswith("metrics of "):
        return "queries may miss rows: write the file anew, as with rewrite_data_files"
    if refused and finding.what.startswith("deletion vector"):
        return refused
    return ROLL_BACK
