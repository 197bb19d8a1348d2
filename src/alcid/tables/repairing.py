"""Repair of a folder of Parquet files: it keeps nothing but indexes, so these are made again.

What bundles have of a data file that is wrong is built anew, of that file only. Bundles that are
damaged in part are merged to what is sound of them, as `clean` does; one of which nothing can be
read is removed at once. There is no commit: queries see each step, and read the data meanwhile.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from alcid.bundle import Bundle
from alcid.bundle.kinds import INDEX
from alcid.errors import DamagedIndexWarning
from alcid.options import OptionValue
from alcid.tables.cleaning import check_age
from alcid.tables.leftovers import Leftover
from alcid.tables.progress import Progress
from alcid.tables.repair_report import Mended, NotMended, RepairReport
from alcid.tables.verify_report import PAGES, STATISTICS, Finding, VerifyReport
from alcid.tables.verifying import verify
from alcid.types import INDEX_TYPES

if TYPE_CHECKING:
    from alcid.tables.folder_indexes import FolderIndexes
    from alcid.tables.parquet_folder import ParquetTable

__all__ = ["BUILT_ANEW", "is_of_bundle", "repair"]

BUILT_ANEW = "built anew"

_OF_BUNDLES = (*INDEX_TYPES, PAGES, STATISTICS)
_OF_ENTRIES = ("footer", "schema", "rows")
_RESTORE = "restore the file, or write it anew"


def is_of_bundle(finding: Finding) -> bool:
    """Whether something that a bundle keeps of a data file is wrong."""
    kind, of, _ = finding.what.partition(" of ")
    return finding.what in _OF_ENTRIES or (bool(of) and kind in _OF_BUNDLES)


def repair(
    table: ParquetTable,
    indexes: FolderIndexes,
    older_than: timedelta = timedelta(days=1),
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Make what is wrong again, and remove what is of no use.

    Args:
        table: The table; it is refreshed.
        indexes: Its indexes.
        older_than: As for `clean`.
        dry_run: Only say what would be done.
        progress: How to tell how far it is, see `alcid.tables.progress.telling`.

    Raises:
        OptionError: An age below 0.
    """
    check_age(older_than)
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)  # the report tells of them
        table.refresh()
        found = _look(table, indexes, progress)
        repaired: list[Mended] = []
        removed: list[Leftover] = []
        while True:
            options = _options(indexes.folder.load().current)
            mended = _mended(found.problems, table, options)
            repaired += mended
            if mended and not dry_run:
                files = {one.file for one in mended if one.done == BUILT_ANEW}
                with table.engine.settings():
                    if options:
                        indexes.build(options, rebuild=files, progress=progress)
                folder = indexes.folder
                folder.remove(filter(folder.is_damaged, folder.load().unreadable()))
            cleaned = table.clean(older_than, dry_run=dry_run)
            removed += cleaned.removed
            if not mended or dry_run:
                break
            before, found = found, _look(table, indexes, progress)
            if not (before.is_cut and found.is_better_than(before)):
                break
        known = {(one.file, one.what, one.problem) for one in repaired} if dry_run else set()
        left = [one for one in found.problems if (one.file, one.what, one.problem) not in known]
    return RepairReport(
        tuple(repaired),
        tuple(NotMended.of(one, _RESTORE) for one in left),
        tuple(removed),
        cleaned.kept,
        None,
        0,
        time.monotonic() - begin,
        dry_run,
    )


def _look(
    table: ParquetTable, indexes: FolderIndexes, progress: Progress | bool | None
) -> VerifyReport:
    """All that is wrong with the table as it is now."""
    with table.engine.settings():
        return verify(table.storage, indexes.folder, table.engine, progress=progress)


def _mended(
    problems: Sequence[Finding], table: ParquetTable, options: dict[str, OptionValue]
) -> list[Mended]:
    data_files = set(table.snapshot.listing.paths.to_pylist())
    broken = {one.file for one in problems if not is_of_bundle(one)} & data_files
    mended = []
    for one in problems:
        if one.file not in data_files:
            done = (
                "its indexes are built anew" if options else "dropped: build_indexes makes others"
            )
            mended.append(Mended.of(one, done))
        elif one.file not in broken and options:
            mended.append(Mended.of(one, BUILT_ANEW))
    return mended


def _options(bundles: Sequence[Bundle]) -> dict[str, OptionValue]:
    """Options that ask for the indexes that bundles have, though nobody may know of which files."""
    columns: dict[str, list[str]] = {}
    for kind in sorted({kind for bundle in bundles for kind in bundle.kinds if kind.type == INDEX}):
        columns.setdefault(f"file-index.{kind.index_type}.columns", []).append(kind.column)
    return {key: ",".join(names) for key, names in columns.items()}
