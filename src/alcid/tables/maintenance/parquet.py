"""Verify and repair of a folder of Parquet files.

Files are read again, and compared with what bundles have of them. A folder has nothing of ours but
bundles, so a repair builds these again: what bundles have of a data file that is wrong is built
anew, of that file only. Bundles that are damaged in part are merged into what is sound of them, as
`clean` does; one of which nothing can be read is removed at once. There is no commit: queries see
each step, and read the data meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.errors import AlcidError, FormatError, LimitError, UnsupportedError
from alcid.formats.file_index import BUILDERS
from alcid.formats.source import Source
from alcid.index.bundle import Bundle, BundleSet, PayloadKind, State
from alcid.index.bundle.format import INDEX
from alcid.options import BsiOptions, IndexSpec, OptionValue
from alcid.storage import Listing, Storage
from alcid.tables.build import plan_build
from alcid.tables.bundle_folder import BundleFolder, FolderBundles, bundle_name
from alcid.tables.engine import Engine
from alcid.tables.maintenance import repair as repairing
from alcid.tables.maintenance.bundle_check import FileChecker, StoredFiles, check_bundle
from alcid.tables.maintenance.clean import CleanReport, Leftover, clean, find_leftovers
from alcid.tables.maintenance.findings import Checked, Finding, FindingKind
from alcid.tables.maintenance.repair import REBUILT, Fixer, Outcome, Repaired, RepairReport
from alcid.tables.maintenance.verify import Sample, Total, VerifyReport, run, run_checks
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.indexes import FolderIndexes
from alcid.tables.parquet.open_table import OpenParquetTable
from alcid.tables.progress import Progress
from alcid.tables.reports import SkippedCounter

BUNDLE_KINDS: Final = frozenset(
    {FindingKind.BUNDLE, FindingKind.BUNDLE_FILES, FindingKind.BUNDLE_DIRECTORY}
)
"""A bundle itself is damaged."""

BUNDLE_ENTRY_KINDS: Final = frozenset(
    {
        FindingKind.INDEX,
        FindingKind.PAGES,
        FindingKind.STATISTICS,
        FindingKind.ENTRY_FOOTER,
        FindingKind.ENTRY_ROWS,
        FindingKind.ENTRY_SCHEMA,
    }
)
"""What a bundle has of a data file is wrong, and can be built anew."""


def verify(
    storage: Storage,
    folder: BundleFolder,
    engine: Engine,
    *,
    sample: float = 1.0,
    seed: int = 0,
    progress: Progress | bool | None = False,
) -> VerifyReport:
    """Read files again, and compare what bundles have of them with what they hold.

    Nothing is changed. What queries use is checked: of several entries of a file, the newest.

    Args:
        storage: The data of the table.
        folder: Where its bundles are.
        engine: What reads them.
        sample: The fraction of files to read, see `Sample`.
        seed: Another number takes other files.
        progress: How to report it, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: A fraction that is not above 0 and at most 1.
        StorageError: A file cannot be read, and that is not because it changed.
    """
    return run(partial(_check, storage, folder, engine, Sample(sample, seed), progress))


def _check(
    storage: Storage,
    folder: BundleFolder,
    engine: Engine,
    sample: Sample,
    progress: Progress | bool | None,
    total: Total,
) -> None:
    loaded = folder.load(on_damage=_ignore)
    listing = list_data_files(storage)  # after the bundles: they name no file that came later
    _check_bundles(folder, loaded, total)
    bundles = loaded.against(listing, on_damage=_ignore)
    _count_states(bundles, listing, total)
    live, _ = bundles.live()
    chosen = live[sample.choose(pc.take(bundles.paths, pa.array(live)).to_pylist())]
    names = [bundle_name(bundle) for bundle in bundles.bundles]
    files = ListedFiles(listing.part(chosen), StoredFiles.of(bundles, names, chosen))
    checks, sizes = FolderChecks(storage, folder), files.listing.sizes
    total.add(run_checks(engine, checks, files, sizes, files=len(files), progress=progress))
    named = {path for bundle in bundles.bundles for path in bundle.files.paths.to_pylist()}
    total.table_files = len(listing)
    total.unindexed = len(listing) - len(live)
    total.gone = sorted(named - set(listing.paths.to_pylist()))
    total.leftovers = find_leftovers(storage, folder, loaded)


def _ignore(_error: AlcidError) -> None:
    """Pass over damage, which `_check_bundles` reports once."""


@dataclass(frozen=True, slots=True, eq=False)
class ListedFiles:
    """Files of a table, as they are listed and as bundles know them; it is `Splittable`."""

    listing: Listing
    stored: StoredFiles

    def __len__(self) -> int:
        return len(self.listing)

    def part(self, positions: Int64Array) -> ListedFiles:
        """Some of the files."""
        return ListedFiles(self.listing.part(positions), self.stored.part(positions))


@dataclass(frozen=True, slots=True, eq=False)
class FolderChecks:
    """The checks of data files."""

    storage: Storage
    folder: BundleFolder

    def open(self, files: ListedFiles) -> Callable[[int], Checked]:
        """A function that checks one of these files."""
        checker = FileChecker(files.stored, self._bundle, self.folder.storage.read_ranges)
        return partial(checker.check, storage=self.storage, listing=files.listing)

    def _bundle(self, name: str, size: int) -> Source:
        return self.folder.storage.source(self.folder.path(name), size)


def _check_bundles(folder: BundleFolder, loaded: FolderBundles, total: Total) -> None:
    """Find what is damaged in bundles as such, and which ones are of a later version."""
    replaced = loaded.replaced()
    for name in loaded.unreadable():
        try:
            Bundle.open(folder.storage.source(folder.path(name)))
        except UnsupportedError:
            total.later.append(name)
        except (FormatError, LimitError) as error:
            if name not in replaced:
                total.findings.add(FindingKind.BUNDLE, name, error)
    for bundle in loaded.current:
        check_bundle(bundle, bundle_name(bundle), total.findings)


def _count_states(bundles: BundleSet, listing: Listing, total: Total) -> None:
    """Count files whose indexes are stale, missing or damaged."""
    specs = []
    for kind in (kind for kind in bundles.kinds if kind.type == INDEX):
        states = bundles.coverage(kind).states
        check = total.index(kind.column, kind.index_type)
        check.stale = int((states == State.STALE).sum())
        check.damaged = int((states == State.DAMAGED).sum())
        if kind.index_type in BUILDERS:
            # Only planned, not built: any options do.
            specs.append(IndexSpec(kind.column, kind.index_type, BsiOptions()))
    for planned in plan_build(bundles, listing, specs, SkippedCounter()).files:
        for spec in planned.specs:
            states = bundles.coverage(PayloadKind.index(spec.column, spec.index_type)).states
            if states[planned.file] == State.ABSENT:
                total.index(spec.column, spec.index_type).missing += 1


def repair(
    table: OpenParquetTable,
    indexes: FolderIndexes,
    older_than: timedelta = timedelta(days=1),
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> RepairReport:
    """Build what is wrong anew, and remove what is of no use.

    Args:
        table: The table; it is refreshed.
        indexes: Its indexes.
        older_than: As for `clean`.
        dry_run: Only say what would be done.
        progress: How to report it, see `alcid.tables.progress.track_progress`.

    Raises:
        OptionError: An age below 0.
    """
    folder = _Folder(table, indexes, older_than, progress)
    return repairing.repair(folder, older_than, dry_run=dry_run, progress=progress)


class _Folder:
    """A folder of Parquet files, for the repair loop."""

    def __init__(
        self,
        table: OpenParquetTable,
        indexes: FolderIndexes,
        older_than: timedelta,
        progress: Progress | bool | None,
    ) -> None:
        self._table, self._indexes = table, indexes
        self._older_than, self._progress = older_than, progress
        self.engine = table.engine
        kinds = BUNDLE_KINDS | BUNDLE_ENTRY_KINDS | {FindingKind.DATA_FILE}
        self.fixers = [Fixer(kinds, self._plan)]

    def verify(self, progress: Progress | bool | None) -> VerifyReport:
        self._table.refresh()
        folder = self._indexes.folder
        return verify(self._table.storage, folder, self.engine, progress=progress)

    def advice(self, _finding: Finding) -> str:
        return "restore the file, or write it anew"

    def clean(self, older_than: timedelta, *, dry_run: bool) -> CleanReport:
        storage, folder = self._table.storage, self._indexes.folder
        report = clean(storage, folder, older_than=older_than, dry_run=dry_run, engine=self.engine)
        if not dry_run:
            self._table.refresh()
        return report

    def _plan(self, findings: Sequence[Finding]) -> _Rebuild:
        options = _options(self._indexes.folder.load().current)
        damaged = {finding.file for finding in findings if finding.kind is FindingKind.DATA_FILE}
        done = "its indexes are built anew" if options else "dropped: build_indexes makes others"
        repaired, data_files = [], set()
        for finding in findings:
            if finding.kind in BUNDLE_KINDS:
                repaired.append(Repaired(finding, done))
            elif finding.file not in damaged and options:
                repaired.append(Repaired(finding, REBUILT))
                data_files.add(finding.file)
        return _Rebuild(self, options, data_files, repaired)

    def rebuild(
        self, options: Mapping[str, OptionValue], data_files: Collection[str]
    ) -> list[Leftover]:
        """Build indexes of some data files anew; what was removed."""
        if options:
            self._indexes.build(options, rebuild=data_files, progress=self._progress)
        folder = self._indexes.folder
        folder.remove(filter(folder.is_damaged, folder.load().unreadable()))
        # Cleaning merges bundles that are damaged in part.
        return [*self.clean(self._older_than, dry_run=False).removed]


@dataclass(frozen=True, slots=True, eq=False)
class _Rebuild:
    """Builds the indexes of some data files anew, and removes bundles that cannot be read."""

    folder: _Folder
    options: Mapping[str, OptionValue]
    data_files: set[str]
    repaired: list[Repaired]

    def planned(self) -> Outcome:
        return Outcome(self.repaired)

    def apply(self) -> Outcome:
        if not self.repaired:
            return Outcome()
        removed = self.folder.rebuild(self.options, self.data_files)
        return Outcome(self.repaired, removed=removed)


def _options(bundles: Sequence[Bundle]) -> dict[str, OptionValue]:
    """Options that ask for the indexes that bundles have, of whichever files."""
    columns: dict[str, list[str]] = {}
    for kind in sorted({kind for bundle in bundles for kind in bundle.kinds if kind.type == INDEX}):
        columns.setdefault(f"file-index.{kind.index_type}.columns", []).append(kind.column)
    return {key: ",".join(names) for key, names in columns.items()}
