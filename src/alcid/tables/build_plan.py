"""Which files a build has to read, and for which indexes: what is fresh is left alone.

The types of a file whose entry is fresh are known from its bundle. So an index that its column
cannot have is not tried again at every build: the reason is found again without reading the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alcid.bundle import BundleSet, Kind, State
from alcid.bundle.kinds import PAGES
from alcid.errors import ColumnError, FormatError, UnsupportedError
from alcid.options import IndexSpec
from alcid.storage import Listing
from alcid.tables.build_report import SkippedCounter
from alcid.tables.index_file import Resolve, resolve_spec
from alcid.tables.schema_bytes import schema_columns

__all__ = ["BuildPlan", "Task", "files_by_schema", "plan_build"]


@dataclass(frozen=True, slots=True)
class Task:
    """A file to read."""

    file: int
    """Its place in the listing."""
    specs: tuple[IndexSpec, ...]
    known: bool
    """Whether a bundle has all else: its columns, statistics and pages."""


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """The files to read, in the order of the listing, and how many need not be."""

    tasks: tuple[Task, ...]
    fresh: int

    def with_files(
        self, paths: Sequence[str], chosen: Collection[str], specs: Sequence[IndexSpec]
    ) -> BuildPlan:
        """The plan with all indexes of some files, by their paths, whether fresh or not."""
        tasks = {task.file: task for task in self.tasks}
        for file, path in enumerate(paths):
            if path in chosen:
                tasks[file] = Task(file, tuple(specs), known=False)
        return BuildPlan(tuple(tasks[file] for file in sorted(tasks)), len(paths) - len(tasks))


def plan_build(
    bundles: BundleSet,
    listing: Listing,
    specs: Sequence[IndexSpec],
    skipped: SkippedCounter,
    resolve: Resolve = resolve_spec,
) -> BuildPlan:
    """Find what is missing; `skipped` is told what cannot be, of files that need not be read."""
    missing = np.ones((len(specs), len(listing)), bool)
    known = np.zeros(len(listing), bool)
    for schema, files in files_by_schema(bundles):
        try:
            columns = schema_columns(schema, file="bundle")
        except FormatError as error:
            bundles.report(error)
            continue
        known[files] = True
        example = bundles.paths[int(files[0])].as_py()  # as reports name it
        for number, spec in enumerate(specs):
            try:
                _, found, _ = resolve(spec, columns)
            except (ColumnError, UnsupportedError) as error:
                kind = Kind.index(spec.column, spec.index_type)
                skipped.add(kind, str(error), example, len(files))
                missing[number, files] = False
            else:
                states = bundles.coverage(Kind.index(found.column, found.index_type)).states
                missing[number, files] = states[files] != State.FRESH
    for kind in bundles.kinds:
        if kind.type == PAGES:
            damaged = bundles.coverage(kind).states == State.DAMAGED
            known &= ~damaged
    wanted = missing.any(axis=0) | ~known
    tasks = tuple(
        Task(
            int(file),
            tuple(
                spec for spec, is_missing in zip(specs, missing[:, file], strict=True) if is_missing
            ),
            bool(known[file]),
        )
        for file in np.flatnonzero(wanted)
    )
    return BuildPlan(tasks, len(listing) - len(tasks))


def files_by_schema(bundles: BundleSet) -> Iterator[tuple[bytes, np.ndarray]]:
    """Each schema, and the places of the files that have it."""
    schemas = bundles.schemas
    codes = schemas.indices.fill_null(-1).to_numpy()
    for code in np.unique(codes[codes >= 0]).tolist():
        yield schemas.dictionary[code].as_py(), np.flatnonzero(codes == code)
