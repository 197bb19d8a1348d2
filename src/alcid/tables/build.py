"""Build the indexes of data files: find what is missing, read the files, publish bundles.

A file whose entry is fresh is not read, and what its bundle says of its columns is enough to know
that an index cannot be built, so that no build tries it again.

Files are indexed in batches, and a batch is published as soon as it is whole. So a build that is
killed leaves what it has done, and the next one goes on from there. A file's indexes are spooled as
soon as they are made (`alcid.index.bundle.spool`), so that no more than those of a few files are in
memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from alcid import options
from alcid._arrays import Int64Array
from alcid.datafiles.parquet.columns import FileColumn
from alcid.errors import (
    AlcidError,
    ColumnError,
    FileGoneError,
    FormatError,
    LimitError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.index.build import IndexedFile, Resolve, ResolvedIndex, index_file, resolve_by_name
from alcid.index.bundle import BundleSet, PayloadKind, SpooledBundle, State
from alcid.index.bundle.columns import schema_columns
from alcid.index.bundle.format import INDEX, PAGES
from alcid.options import IndexSpec
from alcid.storage import Listing, Storage
from alcid.storage.threads import in_order
from alcid.tables.bundle_folder import FULL_BYTES, BundleFolder
from alcid.tables.engine import Task
from alcid.tables.reports import BuildReport, IndexFiles, SkippedCounter
from alcid.types import INDEX_TYPES


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A file to read."""

    file: int
    """Its position in the listing."""
    specs: tuple[IndexSpec, ...]
    is_described: bool
    """Whether a bundle has all else: its columns, statistics and pages."""


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """The files to read, in the order of the listing, and how many need not be."""

    files: tuple[FilePlan, ...]
    fresh: int

    def sizes(self, listing: Listing) -> Int64Array:
        """The bytes of each of the files."""
        return listing.sizes[[planned.file for planned in self.files]]

    def with_files(
        self, paths: Sequence[str], chosen: Collection[str], specs: Sequence[IndexSpec]
    ) -> BuildPlan:
        """The plan with all indexes of some files, by their paths, whether fresh or not."""
        files = {planned.file: planned for planned in self.files}
        for file, path in enumerate(paths):
            if path in chosen:
                files[file] = FilePlan(file, tuple(specs), is_described=False)
        return BuildPlan(tuple(files[file] for file in sorted(files)), len(paths) - len(files))


def plan_build(
    bundles: BundleSet,
    listing: Listing,
    specs: Sequence[IndexSpec],
    skipped: SkippedCounter,
    resolve: Resolve = resolve_by_name,
) -> BuildPlan:
    """Find what is missing; what files cannot have that need not be read is added to `skipped`."""
    missing = np.ones((len(specs), len(listing)), bool)
    is_described = np.zeros(len(listing), bool)
    for schema, files in files_by_schema(bundles):
        try:
            resolve_index = resolve(schema_columns(schema, file="bundle"))
        except FormatError as error:
            bundles.report(error)
            continue
        is_described[files] = True
        example = bundles.paths[int(files[0])].as_py()  # as reports name it
        for number, spec in enumerate(specs):
            try:
                _, resolved, _ = resolve_index(spec)
            except (ColumnError, UnsupportedError) as error:
                kind = PayloadKind.index(spec.column, spec.index_type)
                skipped.add(kind, str(error), example, len(files))
                missing[number, files] = False
            else:
                states = bundles.coverage(
                    PayloadKind.index(resolved.column, resolved.index_type)
                ).states
                missing[number, files] = states[files] != State.FRESH
    for kind in bundles.kinds:
        if kind.type == PAGES:
            damaged = bundles.coverage(kind).states == State.DAMAGED
            is_described &= ~damaged
    wanted = missing.any(axis=0) | ~is_described
    planned = tuple(
        FilePlan(
            int(file),
            tuple(
                spec for spec, is_missing in zip(specs, missing[:, file], strict=True) if is_missing
            ),
            bool(is_described[file]),
        )
        for file in np.flatnonzero(wanted)
    )
    return BuildPlan(planned, len(listing) - len(planned))


def files_by_schema(bundles: BundleSet) -> Iterator[tuple[bytes, np.ndarray]]:
    """Each schema, and the positions of the files that have it."""
    schemas = bundles.schemas
    codes = schemas.indices.fill_null(-1).to_numpy()
    for code in np.unique(codes[codes >= 0]).tolist():
        yield schemas.dictionary[code].as_py(), np.flatnonzero(codes == code)


BATCH_BYTES = FULL_BYTES
"""Payloads of a bundle; reached by the last of its files."""
BATCH_SECONDS = 60.0
"""After this time a bundle is published though it is small: so much is lost by a kill at most."""


@dataclass(slots=True)
class Built:
    """What was done with some files."""

    indexed: int = 0
    unchanged: int = 0
    failed: int = 0
    rows: int = 0
    bytes_written: int = 0
    bundles: list[str] = field(default_factory=list)
    """The names of those that were written."""
    kinds: set[PayloadKind] = field(default_factory=set)
    """The indexes that were built, of any file."""
    skipped: SkippedCounter = field(default_factory=SkippedCounter)
    """What could not be built."""

    def add(self, other: Built) -> None:
        """Count what was done elsewhere."""
        self.indexed += other.indexed
        self.unchanged += other.unchanged
        self.failed += other.failed
        self.rows += other.rows
        self.bytes_written += other.bytes_written
        self.bundles += other.bundles
        self.kinds |= other.kinds
        self.skipped.merge(other.skipped)


@dataclass(frozen=True, slots=True)
class FileToIndex:
    """A file of which indexes are built."""

    path: str
    size: int
    version: str | None
    """Empty if it never changes; None if its file system does not say when it changed."""
    name: str
    """What bundles call it."""
    specs: tuple[IndexSpec, ...]
    is_described: bool
    """Whether a bundle has all else: its columns, statistics and pages."""


def files_to_index(
    plan: BuildPlan, listing: Listing, names: pa.StringArray | None = None
) -> list[FileToIndex]:
    """The files of a plan, for `BuildWork`.

    `names` are what bundles call files that never change, if not by their paths.
    """
    chosen = listing.part(np.array([planned.file for planned in plan.files], np.int64))
    paths = chosen.paths.to_pylist()
    return [
        FileToIndex(
            path,
            int(size),
            version if names is None else "",
            path if names is None else names[planned.file].as_py(),
            planned.specs,
            planned.is_described,
        )
        for planned, path, size, version in zip(
            plan.files, paths, chosen.sizes, chosen.versions.to_pylist(), strict=True
        )
    ]


@dataclass(frozen=True, slots=True, eq=False)
class BuildWork:
    """Builds the indexes of files, for `Engine.map`."""

    storage: Storage
    folder: BundleFolder
    resolve: Resolve | None = None
    """As for `index_file`."""

    def __call__(self, task: Task[Sequence[FileToIndex]]) -> Built:
        """Read the files of a task, and write bundles."""
        return _Builder(self, task).run()


class _Builder:
    """Reads files, and writes bundles."""

    def __init__(self, work: BuildWork, task: Task[Sequence[FileToIndex]]) -> None:
        self._storage, self._folder, self._resolve = work.storage, work.folder, work.resolve
        self._task = task
        self._spooled: SpooledBundle | None = None
        self._batch_began = 0.0
        self._built = Built()

    def run(self) -> Built:
        """Build the indexes of all files of the task."""
        try:
            return self._run()
        finally:
            if self._spooled is not None:
                self._spooled.close()

    def _run(self) -> Built:
        self._batch_began = time.monotonic()
        files = self._task.items
        with closing(in_order(self._index, files, self._task.threads)) as results:
            for done, (file, result) in enumerate(zip(files, results, strict=True), 1):
                before = self._built.rows
                self._take(file, result)
                late = time.monotonic() - self._batch_began >= BATCH_SECONDS
                if done == len(files) or self._spooled_bytes >= BATCH_BYTES or late:
                    self._publish()
                self._task.report(1, self._built.rows - before)
        return self._built

    @property
    def _spooled_bytes(self) -> int:
        return 0 if self._spooled is None else self._spooled.payload_bytes

    def _index(self, file: FileToIndex) -> IndexedFile | AlcidError:
        """Index a file, or say why that fails; the file must be the same before and after."""
        path, size, version = file.path, file.size, file.version
        if version is None:
            return UnsupportedError(f"{path}: its file system does not say when it changed")
        source = self._storage.source(path, size, version or None)
        result: IndexedFile | AlcidError
        try:
            result = index_file(
                source,
                file.specs,
                path=file.name,
                size=size,
                version=version,
                resolve=self._resolve,
            )
        except (FormatError, LimitError, StorageError, UnsupportedError) as error:
            result = error
        if version and not self._storage.is_same(path, size, version):
            return FileGoneError("changed or removed while it was read", file=source.name)
        if isinstance(result, StorageError) and not isinstance(result, FileGoneError):
            raise result  # not the file's fault, so that others would fail too
        return result

    def _take(self, file: FileToIndex, result: IndexedFile | AlcidError) -> None:
        built, path = self._built, file.name
        if isinstance(result, AlcidError):
            built.skipped.add(None, str(result), path)
            built.failed += 1
            return
        for kind, reason in result.skipped.items():
            if kind.type == INDEX:
                built.skipped.add(kind, reason, path)
        indexes = {kind for kind in result.payloads if kind.type == INDEX}
        if file.is_described:
            if not indexes:
                built.unchanged += 1
                return
            result = result.only_indexes()
        if self._spooled is None:
            self._spooled = SpooledBundle()
        result.add_to(self._spooled)
        built.kinds |= indexes
        built.indexed += 1
        built.rows += result.entry.rows

    def _publish(self) -> None:
        """Write the batch, and begin another."""
        spooled, self._spooled = self._spooled, None
        if spooled is not None:
            with closing(spooled), self._folder.new_bundle() as file:
                spooled.write(file)
            self._built.bundles.append(file.path.rpartition("/")[2])
            self._built.bytes_written += file.size
        self._batch_began = time.monotonic()


def require_choice(columns: Collection[str] | None, types: Collection[str] | None) -> None:
    """See that indexes are chosen by lists, and that there are such types.

    Raises:
        OptionError: One is a single text, or a type is not known.
    """
    for what, names in (("columns", columns), ("types", types)):
        if isinstance(names, str):
            raise OptionError(f"{what}: found text, expected a list of names")
    unknown = sorted(set(types or ()) - set(INDEX_TYPES))
    if unknown:
        expected = ", ".join(INDEX_TYPES)
        hint = options.did_you_mean(unknown[0], INDEX_TYPES) or f", expected one of {expected}"
        raise OptionError(f"no such index: {unknown[0]}{hint}")


def is_among(
    kind: PayloadKind, columns: Collection[str] | None, types: Collection[str] | None
) -> bool:
    """Whether an index is among those that columns and types choose."""
    if kind.type != INDEX or (types is not None and kind.index_type not in types):
        return False
    if columns is None:
        return True
    # For the name alone: any options do.
    spec = IndexSpec(kind.column, kind.index_type, options.BsiOptions())
    return any(options.match_column(name, {kind.column, spec.top_level}) for name in columns)


class IndexFilesCounter:
    """Counts files by index."""

    def __init__(self) -> None:
        """Begin with none."""
        self._counts: dict[PayloadKind, list[int]] = {}

    def add(self, kind: PayloadKind, rows: int, size: int) -> None:
        """Count a file."""
        total = self._counts.setdefault(kind, [0, 0, 0])
        for number, count in enumerate((1, rows, size)):
            total[number] += count

    @property
    def counts(self) -> tuple[IndexFiles, ...]:
        """The counts, by column and type."""
        return tuple(
            IndexFiles(kind.column, kind.index_type, *total)
            for kind, total in sorted(self._counts.items())
        )


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The files of a table, before any is read."""

    paths: Sequence[str]
    rows: Int64Array
    sizes: Int64Array
    columns: Callable[[int], Sequence[FileColumn] | None]
    """The columns of a file, if its footer was read."""


def preview_build(
    plan: BuildPlan,
    files: Listed,
    skipped: SkippedCounter,
    *,
    others: int = 0,
    bundles: int | None = 0,
    resolve: Resolve = resolve_by_name,
) -> BuildReport:
    """The report of a build that is not done.

    What cannot be built, as far as that shows without reading, is added to `skipped`. `others` is
    the number of files that cannot be indexed at all.
    """
    missing = IndexFilesCounter()
    for planned in plan.files:
        columns = None if planned.is_described else files.columns(planned.file)
        resolve_index = None if columns is None else resolve(columns)
        for spec in planned.specs:
            reason = _problem(spec, resolve_index)
            kind = PayloadKind.index(spec.column, spec.index_type)
            if reason:
                skipped.add(kind, reason, files.paths[planned.file])
            else:
                missing.add(kind, int(files.rows[planned.file]), int(files.sizes[planned.file]))
    chosen = [planned.file for planned in plan.files]
    return BuildReport(
        len(files.paths) + others,
        len(chosen),
        plan.fresh,
        others,
        int(files.rows[chosen].sum()),
        0,
        bundles,
        0.0,
        skipped.reasons,
        dry_run=True,
        data_bytes=int(files.sizes[chosen].sum()),
        missing=missing.counts,
    )


def _problem(spec: IndexSpec, resolve: Callable[[IndexSpec], ResolvedIndex] | None) -> str:
    """Why a file cannot have an index; empty if it may, or nothing is known of its columns."""
    if resolve is not None:
        try:
            resolve(spec)
        except (ColumnError, UnsupportedError) as error:
            return str(error)
    return ""
