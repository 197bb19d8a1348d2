"""The indexes of a folder of Parquet files: build them, look at them, drop them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np

from alcid.errors import FileGoneError
from alcid.index.bundle import BundleSet, State
from alcid.index.bundle.format import INDEX
from alcid.options import IndexSpec, OptionValue, parse_options
from alcid.storage import Listing, Storage
from alcid.tables.build import (
    BuildPlan,
    BuildWork,
    Built,
    FilePlan,
    Listed,
    files_to_index,
    is_among,
    plan_build,
    preview_build,
    require_choice,
)
from alcid.tables.bundle_folder import (
    FOLDER,
    BundleFolder,
    FolderBundles,
    bundles_to_merge,
    merge_folder,
    remove_replaced,
)
from alcid.tables.engine import Engine, Threads
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.files import FolderFiles
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import BuildReport, IndexInfo, SkippedCounter


class FolderIndexes:
    """The indexes of the Parquet files below a folder.

    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(pa.table({"id": range(1000)}), f"{folder.name}/a.parquet")
    >>> indexes = FolderIndexes(Storage.open(folder.name))
    >>> print(indexes.build({"file-index.bitmap.columns": "id"}))
    indexed 1 of 1 file (1,000 rows) in ... s, ... kB in 1 bundle
    >>> print(*indexes.indexes())
    bitmap of 'id': 1 file fresh, ... kB
    >>> indexes.drop()
    1
    >>> folder.cleanup()
    """

    def __init__(
        self,
        storage: Storage,
        *,
        index_storage: Storage | None = None,
        strict: bool = False,
        engine: Engine | None = None,
    ) -> None:
        """Nothing is read or written yet.

        Args:
            storage: The folder.
            index_storage: Where the bundles are, if not in `_alcid/` of it: a folder for this table
                alone.
            strict: Raise where a bundle is damaged instead of a warning. A build repairs it.
            engine: What builds; by default this process.
        """
        self._storage, self.strict, self._engine = storage, strict, engine or Threads()
        self.folder = (
            BundleFolder(storage, FOLDER) if index_storage is None else BundleFolder(index_storage)
        )

    def open(self, listing: Listing) -> BundleSet:
        """The bundles as they are now, compared with the files of the table."""
        return self.folder.load(strict=self.strict).against(listing, strict=self.strict)

    def build(
        self,
        options: Mapping[str, OptionValue],
        *,
        rebuild: bool | Collection[str] = False,
        progress: Progress | bool | None = False,
    ) -> BuildReport:
        """Build the indexes that files are without; those that they have stay.

        Args:
            options: Which, see `alcid.options.parse_options`. They count for what is built now: a
                fresh index that was built with others is kept.
            rebuild: Build all anew, fresh or not; or those of some files, by their paths.
            progress: How progress is shown, see `alcid.tables.progress.track_progress`.

        Raises:
            OptionError: An option that cannot be.
            StorageError: A file cannot be read or written, and that is not because it changed. What
                was published until then stays.
        """
        begin = time.monotonic()
        specs, skipped = parse_options(options), SkippedCounter()
        listing, contents = list_data_files(self._storage), self.folder.load()
        plan = _plan(listing, contents, specs, skipped, rebuild=rebuild)
        built = Built(skipped=skipped)
        if plan.files:
            work = BuildWork(self._storage, self.folder)
            files = files_to_index(plan, listing)
            with track_progress(progress, "indexing", len(files)) as report:
                for part in self._engine.map(work, files, plan.sizes(listing), report):
                    built.add(part)
        # What a rebuild makes needless: bundles without an index that is not there again.
        indexed = {k for bundle in contents.bundles for k in bundle.kinds if k.type == INDEX}
        if rebuild is True and built.kinds and indexed <= built.kinds:
            self.folder.replace(contents.readable)
        self.tidy(listing)
        return BuildReport(
            len(listing),
            built.indexed,
            plan.fresh + built.unchanged,
            built.failed,
            built.rows,
            built.bytes_written,
            len(built.bundles),
            time.monotonic() - begin,
            skipped.reasons,
        )

    def preview(
        self, options: Mapping[str, OptionValue], files: FolderFiles, *, rebuild: bool = False
    ) -> BuildReport:
        """What `build` would do.

        Args:
            options: As for `build`.
            files: The table as it is now.
            rebuild: As for `build`.
        """
        specs, skipped = parse_options(options), SkippedCounter()
        plan = _plan(files.listing, self.folder.load(), specs, skipped, rebuild=rebuild)
        paths = files.listing.paths.to_pylist()
        listed = Listed(paths, files.rows, files.sizes, files.own_columns)
        return preview_build(plan, listed, skipped)

    def indexes(self, listing: Listing | None = None) -> list[IndexInfo]:
        """What indexes there are, by column and type; `listing` may be given if it is known."""
        bundles = self.open(list_data_files(self._storage) if listing is None else listing)
        rows = bundles.rows.fill_null(0).to_numpy()
        infos = []
        for kind in bundles.kinds:
            if kind.type == INDEX:
                coverage = bundles.coverage(kind)
                counts = np.bincount(coverage.states, minlength=len(State)).tolist()
                infos.append(
                    IndexInfo(
                        kind.column,
                        kind.index_type,
                        counts[State.FRESH],
                        counts[State.STALE],
                        counts[State.ABSENT],
                        counts[State.DAMAGED],
                        int(coverage.lengths.sum()),
                        int(rows[coverage.states == State.FRESH].sum()),
                    )
                )
        return infos

    def drop(
        self,
        columns: Collection[str] | None = None,
        types: Collection[str] | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """Remove indexes; where none is left, also the statistics and pages of the files.

        Args:
            columns: Those of these columns, and of keys of these maps; by default of all.
            types: Those of these types; by default of all.
            dry_run: Only count.

        Returns:
            How many files had one of them that could be used.

        Raises:
            OptionError: A type of index that there is not.
        """
        require_choice(columns, types)
        listing = list_data_files(self._storage)
        contents = self.folder.load()
        bundles = contents.against(listing)
        dropped = [kind for kind in bundles.kinds if is_among(kind, columns, types)]
        had = np.zeros(len(listing), bool)
        for kind in dropped:
            had |= bundles.coverage(kind).states == State.FRESH
        left = [kind for kind in bundles.kinds if kind not in dropped]
        if dropped and not dry_run:
            gone = contents.readable
            if any(kind.type == INDEX for kind in left):
                merge_folder(self.folder, contents, listing, self._engine, kinds=left)
            else:
                gone += tuple(filter(self.folder.is_damaged, contents.unreadable()))
            self.folder.remove(gone)
        return int(had.sum())

    def tidy(self, listing: Listing | None = None) -> None:
        """Merge bundles if there are many, and remove those that were merged some time ago.

        Args:
            listing: The files as they were a moment ago, if they are known: they are listed again
                only if there is something to merge.
        """
        with suppress(FileGoneError):  # another is tidying up
            contents = self.folder.load()
            remove_replaced(self.folder, contents)
            if listing is None or bundles_to_merge(contents, listing):
                listing = list_data_files(self._storage)  # after the bundles, so with all they know
                chosen = bundles_to_merge(contents, listing)
                if chosen:
                    merge_folder(self.folder, contents, listing, self._engine, chosen=chosen)


def _plan(
    listing: Listing,
    contents: FolderBundles,
    specs: Sequence[IndexSpec],
    skipped: SkippedCounter,
    *,
    rebuild: bool | Collection[str],
) -> BuildPlan:
    """What there is to do; `rebuild` takes nothing for fresh, or nothing of some files."""
    if rebuild is True:
        files = (FilePlan(file, tuple(specs), is_described=False) for file in range(len(listing)))
        return BuildPlan(tuple(files), 0)
    plan = plan_build(contents.against(listing), listing, specs, skipped)
    return plan.with_files(listing.paths.to_pylist(), rebuild, specs) if rebuild else plan
