"""Repair of a Paimon table: what `verify` finds is mended, as far as nothing is lost by it.

One commit, a snapshot of kind COMPACT, has all of it: index files with vectors and hashes, keys,
file indexes. Then the table is verified again, and what is still wrong is told: what nobody can
mend is not touched. What another changes at the same time is looked at again.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from alcid.errors import ConflictError, FileGoneError, FormatError, UnsupportedError
from alcid.tables.cleaning import CleanReport, check_age
from alcid.tables.paimon.orphans import clean
from alcid.tables.paimon.repair_indexes import is_of_index
from alcid.tables.paimon.repair_round import RepairRound, RoundDone
from alcid.tables.paimon.verifying import verify
from alcid.tables.progress import Progress
from alcid.tables.repair_report import ROLL_BACK, Mended, NotMended, RepairReport
from alcid.tables.verify_report import Finding, VerifyReport

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["repair"]

_TRIES: Final = 10


def repair(
    table: PaimonTable,
    older_than: timedelta = timedelta(days=1),
    *,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Mend what can be mended, and remove what no snapshot needs.

    Args:
        table: The table; it is refreshed.
        older_than: As for `clean`.
        progress: How to tell how far it is, see `alcid.tables.progress.telling`.

    Raises:
        OptionError: An age below 0.
        UnsupportedError: The table was opened as it was in the past, or has an option that is not
            followed.
        ConflictError: Others have changed the same files every time.
    """
    check_age(older_than)
    begin = time.monotonic()
    mended: list[Mended] = []
    snapshots: list[int] = []
    with table.engine.settings():
        found, tries = _look(table, progress), _TRIES
        while tries:
            try:
                done = RepairRound(table, found).run()
            except (ConflictError, FileGoneError):
                if tries == 1:
                    raise
                done = RoundDone((), None, has_lost=True)
            mended += done.mended
            snapshots += [] if done.snapshot is None else [done.snapshot.id]
            if done.snapshot is None and not done.has_lost:
                break
            before, found = found, _look(table, progress)
            tries -= done.has_lost or not found.is_better_than(before)
            if not tries and done.has_lost:
                raise ConflictError(
                    f"{table.location}: others have changed the same files each time"
                )
        cleaned = _clean(table, older_than)
    return RepairReport(
        tuple(mended),
        tuple(NotMended.of(one, _advice(one, table)) for one in found.problems),
        cleaned.removed,
        cleaned.kept,
        snapshots[-1] if snapshots else None,
        len(snapshots),
        time.monotonic() - begin,
    )


def _look(table: PaimonTable, progress: Progress | bool | None) -> VerifyReport:
    """The table as it is now, if it may be changed; and what is wrong with it."""
    table.refresh()
    table.committer()  # there is none of a table of the past
    table.snapshot.options.require_writable("build")
    return verify(table.storage, table.engine, progress=progress)


def _clean(table: PaimonTable, older_than: timedelta) -> CleanReport:
    try:
        return clean(table.storage, older_than=older_than)
    except FormatError:  # of an older snapshot, which is told: what it needs is not known
        return CleanReport(dry_run=False, merged=(), written=(), removed=(), kept=(), seconds=0)


def _advice(finding: Finding, table: PaimonTable) -> str:
    """What to do about something that is still wrong."""
    has_key = bool(table.snapshot.schema.primary_keys)
    if finding.what in ("keys", "hashes of keys"):
        try:
            table.snapshot.options.require_writable("compact")
        except UnsupportedError as error:
            return str(error)
        return "compact the table"
    if finding.what.startswith("statistics of "):
        anew = "compact the table" if has_key else "delete its rows, and append them again"
        return f"queries may miss rows: {anew}"
    if finding.what == "older snapshots":
        return "nothing was removed: restore the file, or let the snapshot expire"
    if is_of_index(finding):
        return "its data cannot be read for another: restore the data file"
    return ROLL_BACK
