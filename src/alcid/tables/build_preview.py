"""What a build would do: which files lack which index. Nothing is read of their data.

What only shows when values are read is not known here: an index that its column has too many
values for, or a file that is damaged behind its footer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.bundle import Kind
from alcid.errors import ColumnError, UnsupportedError
from alcid.options import IndexSpec
from alcid.tables.build_plan import BuildPlan
from alcid.tables.build_report import BuildReport, IndexFiles, SkippedCounter
from alcid.tables.file_columns import FileColumn
from alcid.tables.index_file import Resolve, resolve_spec

__all__ = ["IndexFilesCounter", "Listed", "preview_build"]

Integers = npt.NDArray[np.int64]


class IndexFilesCounter:
    """Counts files by index."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: dict[Kind, list[int]] = {}

    def add(self, kind: Kind, rows: int, size: int) -> None:
        """Count a file."""
        total = self._found.setdefault(kind, [0, 0, 0])
        for place, count in enumerate((1, rows, size)):
            total[place] += count

    @property
    def found(self) -> tuple[IndexFiles, ...]:
        """The counts, by column and type."""
        return tuple(
            IndexFiles(kind.column, kind.index_type, *total)
            for kind, total in sorted(self._found.items())
        )


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What is known of the files of a table before any is read."""

    paths: Sequence[str]
    rows: Integers
    sizes: Integers
    columns: Callable[[int], Sequence[FileColumn] | None]
    """The columns of a file, if its footer was read."""


def preview_build(
    plan: BuildPlan,
    files: Listed,
    skipped: SkippedCounter,
    *,
    others: int = 0,
    bundles: int | None = 0,
    resolve: Resolve = resolve_spec,
) -> BuildReport:
    """The report of a build that is not done.

    Args:
        plan: What there is to do.
        files: The files of the table that can be indexed.
        skipped: Is told what cannot be built, as far as that is known.
        others: How many files of the table cannot be indexed at all.
        bundles: As the report has it.
        resolve: How the column of an index is found in a file.
    """
    missing = IndexFilesCounter()
    for task in plan.tasks:
        for spec in task.specs:
            reason = "" if task.known else _problem(spec, files.columns(task.file), resolve)
            kind = Kind.index(spec.column, spec.index_type)
            if reason:
                skipped.add(kind, reason, files.paths[task.file])
            else:
                missing.add(kind, int(files.rows[task.file]), int(files.sizes[task.file]))
    chosen = [task.file for task in plan.tasks]
    return BuildReport(
        len(files.paths) + others,
        len(chosen),
        plan.fresh,
        others,
        int(files.rows[chosen].sum()),
        0,
        bundles,
        0.0,
        skipped.found,
        dry_run=True,
        data_bytes=int(files.sizes[chosen].sum()),
        missing=missing.found,
    )


def _problem(spec: IndexSpec, columns: Sequence[FileColumn] | None, resolve: Resolve) -> str:
    """Why a file cannot have an index; empty if it may."""
    if columns is not None:
        try:
            resolve(spec, columns)
        except (ColumnError, UnsupportedError) as error:
            return str(error)
    return ""
