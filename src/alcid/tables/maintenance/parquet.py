"""Verifying: files are read again, and what bundles keep of them is compared with them.

Repair of a folder of Parquet files: it keeps nothing but indexes, so these are made again.

What bundles have of a data file that is wrong is built anew, of that file only. Bundles that are
damaged in part are merged to what is sound of them, as `clean` does; one of which nothing can be
read is removed at once. There is no commit: queries see each step, and read the data meanwhile.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.config import current_settings, using
from alcid.errors import (
    AlcidError,
    DamagedIndexWarning,
    FormatError,
    OptionError,
    UnsupportedError,
)
from alcid.formats.file_index import BUILDERS
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    PayloadKind,
    State,
)
from alcid.index.bundle.format import INDEX
from alcid.options import BsiOptions, IndexSpec, OptionValue
from alcid.storage import Listing, Storage
from alcid.storage.threads import in_order
from alcid.tables.build import plan_build
from alcid.tables.bundle_folder import BundleFolder, FolderBundles, bundle_name
from alcid.tables.engine import Engine, Task
from alcid.tables.maintenance.checks import Checked
from alcid.tables.maintenance.clean import Leftover, check_age, clean, find_leftovers
from alcid.tables.maintenance.file_check import FileChecker
from alcid.tables.maintenance.findings import (
    PAGES,
    STATISTICS,
    Finding,
    Findings,
    Mended,
    NotMended,
    RepairReport,
    VerifyReport,
)
from alcid.tables.open_files import list_data_files
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import SkippedCounter
from alcid.types import INDEX_TYPES

if TYPE_CHECKING:
    from alcid.tables.parquet.indexes import FolderIndexes
    from alcid.tables.parquet.open_table import OpenParquetTable

__all__ = [
    "BUILT_ANEW",
    "VerifyWork",
    "check_share",
    "choose_files",
    "is_of_bundle",
    "look_into",
    "repair",
    "verify",
]


def verify(
    storage: Storage,
    folder: BundleFolder,
    engine: Engine,
    *,
    sample: float = 1.0,
    seed: int = 0,
    progress: Progress | bool | None = False,
) -> VerifyReport:
    """Read files again, and compare what bundles keep of them with what they hold.

    Nothing is changed. What queries use is checked: of several entries of a file, the newest.

    Args:
        storage: The data of the table.
        folder: Where its bundles are.
        engine: What reads them.
        sample: Which share of the files to read; one at least. The same files are taken in every
            run, and more of them for a greater share.
        seed: Another number takes other files.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: A share that is not above 0 and at most 1.
        StorageError: A file cannot be read, and that is not because it changed.
    """
    check_share(sample)
    begin = time.monotonic()
    unreadable: dict[str, AlcidError] = {}

    def take_note(error: AlcidError) -> None:
        unreadable[str(error)] = error

    found = folder.load(on_damage=take_note)
    listing = list_data_files(storage)  # after the bundles: they know no file that came later
    findings = Findings()
    later = _look_at_bundles(folder, found, unreadable, findings)
    bundles = found.against(listing, on_damage=_ignore)
    chosen = _sample(bundles, sample, seed)
    total = Checked(findings=findings)
    _look_at_states(bundles, listing, total)
    if len(chosen):
        work, files = VerifyWork(storage, folder), listing.part(chosen)
        with track_progress(progress, "verifying", len(chosen)) as report:
            for part in engine.map(work, files, files.sizes, report):
                total.add(part)
    known = [path for bundle in bundles.bundles for path in bundle.files.paths.to_pylist()]
    gone = sorted(set(known) - set(listing.paths.to_pylist()))
    return VerifyReport(
        len(listing),
        total.checked,
        total.changed,
        len(listing) - len(bundles.live()[0]),
        total.rows,
        time.monotonic() - begin,
        tuple(total.indexes[place] for place in sorted(total.indexes)),
        findings.count,
        tuple(findings.first),
        len(gone),
        gone[0] if gone else "",
        tuple(find_leftovers(storage, folder, found)),
        tuple(later),
    )


@dataclass(frozen=True, slots=True, eq=False)
class VerifyWork:
    """The work of `verify`, for `Engine.map`: an item is a file."""

    storage: Storage
    folder: BundleFolder

    def __call__(self, task: Task[Listing]) -> Checked:
        """Read and compare the files of a task."""
        listing, total = task.items, Checked()
        # Bundles spell columns as their files do, whatever the rule for queries is.
        with using(replace(current_settings(), case_sensitive=True)):
            bundles = self.folder.load(on_damage=_ignore).against(listing, on_damage=_ignore)
            read_many = self.folder.storage.read_ranges
            check = partial(
                FileChecker(bundles, read_many).check, storage=self.storage, listing=listing
            )
            with closing(in_order(check, range(len(listing)), task.threads)) as results:
                for found in results:
                    total.add(found)
                    task.report(1, found.rows)
        return total


def _ignore(_error: AlcidError) -> None:
    """What is damaged is told once, when bundles are looked at."""


def _look_at_bundles(
    folder: BundleFolder,
    found: FolderBundles,
    unreadable: dict[str, AlcidError],
    findings: Findings,
) -> list[str]:
    """Find what is damaged in bundles as such, and which ones are of a later version."""
    names = {folder.storage.source(folder.path(name)).name: name for name in found.names}
    later = []
    replaced = found.replaced()
    for message, error in sorted(unreadable.items()):
        name = next((one for full, one in names.items() if message.startswith(full)), "")
        if isinstance(error, UnsupportedError):
            later.append(name)
        elif name not in replaced:
            findings.add(name, "bundle", message)
    for bundle in found.current:
        look_into(bundle, bundle_name(bundle), findings)
    return later


def look_into(bundle: Bundle, name: str, findings: Findings) -> None:
    """Find what is damaged of the files and the directories of a bundle, which is called `name`."""
    try:
        _ = bundle.files
    except FormatError as error:
        findings.add(name, "files", error)
        return
    for kind in bundle.kinds:
        try:
            bundle.series(kind)
        except FormatError as error:
            findings.add(name, str(kind), error)


def _look_at_states(bundles: BundleSet, listing: Listing, total: Checked) -> None:
    """Count files whose indexes are stale, missing or cannot be found."""
    kinds = [kind for kind in bundles.kinds if kind.type == INDEX]
    specs = []
    for kind in kinds:
        states = bundles.coverage(kind).states
        check = total.index(kind.column, kind.index_type)
        check.stale = int((states == State.STALE).sum())
        check.damaged = int((states == State.DAMAGED).sum())
        if kind.index_type in BUILDERS:
            specs.append(IndexSpec(kind.column, kind.index_type, BsiOptions()))
    for planned in plan_build(bundles, listing, specs, SkippedCounter()).files:
        for spec in planned.specs:
            states = bundles.coverage(PayloadKind.index(spec.column, spec.index_type)).states
            if states[planned.file] == State.ABSENT:
                total.index(spec.column, spec.index_type).missing += 1


def _sample(bundles: BundleSet, share: float, seed: int) -> Int64Array:
    """The files to read, of those that a bundle knows as they are."""
    live, _ = bundles.live()
    paths = pc.take(bundles.paths, pa.array(live)).to_pylist()
    return live[choose_files(paths, share, seed)]


def check_share(sample: float) -> None:
    """See that a share is one.

    Raises:
        OptionError: It is not above 0 and at most 1.
    """
    if not 0 < sample <= 1:
        raise OptionError(f"sample: found {sample}, expected a number above 0 and at most 1")


def choose_files(paths: Sequence[str], share: float, seed: int) -> Int64Array:
    """The places of a share of files, ascending; one of them at least, if there are any.

    The same are taken in every run, and more of them for a greater share.

    >>> choose_files(["a", "b", "c", "d"], 0.5, seed=0).tolist()
    [1, 2]
    """
    if share == 1 or not paths:
        return np.arange(len(paths))
    start = zlib.crc32(str(seed).encode())
    order = np.argsort([zlib.crc32(path.encode(), start) for path in paths], kind="stable")
    return np.sort(order[: max(round(share * len(paths)), 1)])


BUILT_ANEW = "built anew"

_OF_BUNDLES = (*INDEX_TYPES, PAGES, STATISTICS)
_OF_ENTRIES = ("footer", "schema", "rows")
_RESTORE = "restore the file, or write it anew"


def is_of_bundle(finding: Finding) -> bool:
    """Whether something that a bundle keeps of a data file is wrong."""
    kind, of, _ = finding.what.partition(" of ")
    return finding.what in _OF_ENTRIES or (bool(of) and kind in _OF_BUNDLES)


def repair(
    table: OpenParquetTable,
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
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

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
            cleaned = clean(
                table.storage, table.bundle_folder, older_than=older_than, dry_run=dry_run
            )
            if not dry_run:
                table.refresh()
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
    table: OpenParquetTable, indexes: FolderIndexes, progress: Progress | bool | None
) -> VerifyReport:
    """All that is wrong with the table as it is now."""
    with table.engine.settings():
        return verify(table.storage, indexes.folder, table.engine, progress=progress)


def _mended(
    problems: Sequence[Finding], table: OpenParquetTable, options: dict[str, OptionValue]
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
