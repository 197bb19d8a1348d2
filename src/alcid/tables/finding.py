"""Find the rows that match a predicate, by file and position, as deletes need them.

Only the columns of the predicate are read, and none of a file of which its partition says for sure
that all its rows match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alcid.errors import PredicateError, SparkNeededError
from alcid.formats.deletion_vector import DeletionVector
from alcid.plan import Draft, DraftPart, TableFiles
from alcid.predicate import Predicate
from alcid.tables.engine import Share, Tell, Threads
from alcid.tables.progress import Progress, telling
from alcid.tables.table import Table

__all__ = ["FindWork", "FoundRows", "find_rows"]


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """Live rows that match."""

    files: TableFiles
    """The table as it was looked at."""
    rows: dict[int, DeletionVector]
    """Their positions, by the number of the file, ascending; only files with such rows."""


def find_rows(
    table: Table[Any], where: str | Predicate, *, progress: Progress | bool | None = False
) -> FoundRows:
    """The live rows that match, as the table was when it was last refreshed.

    Args:
        table: The table.
        where: What they match.
        progress: How to tell how far it is, see `alcid.tables.progress.telling`.

    Raises:
        PredicateError: The predicate cannot be read, or has a part that only Spark can evaluate.
        FileGoneError: Others have removed a file.
    """
    draft = _draft(table, where)
    is_certain = draft.files.columns.partitions.keys() >= set(draft.where_columns)
    # Else rows are looked at before they are deleted: an index, or bounds, may be wrong unnoticed.
    found = dict(_known(draft)) if is_certain else {}
    open_ones = np.array(
        [not (is_certain and one.exact) for one in draft.candidates.selections], bool
    )
    rest = replace(draft, candidates=draft.candidates.filter(open_ones))
    work = FindWork(rest.part())
    engine = Threads() if rest.is_small else table.engine
    sizes = work.draft.sizes
    shown = progress if len(sizes) else False
    with table.engine.settings(), telling(shown, "looking for rows", len(sizes)) as tell:
        for share in engine.map(work, sizes, tell):
            found |= {int(rest.candidates.files[place]): rows for place, rows in share.items()}
    return FoundRows(draft.table, {file: found[file] for file in sorted(found) if found[file]})


def _draft(table: Table[Any], where: str | Predicate) -> Draft:
    try:
        draft, is_whole = table.scan(where, columns=[]).draft(in_process=True)
        if is_whole:
            return draft
    except SparkNeededError:
        pass
    raise PredicateError(
        f"{where}: has a part that only Spark can evaluate, which deletes do not ask"
    )


def _known(draft: Draft) -> Iterator[tuple[int, DeletionVector]]:
    """The rows of files that need not be read."""
    for file, rows, found in zip(
        draft.candidates.files.tolist(),
        draft.files.rows[draft.candidates.files].tolist(),
        draft.candidates.selections,
        strict=True,
    ):
        if found.exact:
            yield file, DeletionVector(range(rows) if found.rows is None else found.rows)


@dataclass(frozen=True, slots=True, eq=False)
class FindWork:
    """Finds the rows of candidates that match, for `Engine.map`."""

    draft: DraftPart

    def __call__(self, share: Share, tell: Tell) -> dict[int, DeletionVector]:
        """The positions, by the place of the candidate."""
        found: dict[int, DeletionVector] = {}
        told = 0
        for part in self.draft.read(share.items.tolist()):
            files, positions = part.places.files, part.places.positions
            for file in np.unique(files).tolist():
                rows = DeletionVector(positions[files == file])
                found[file] = found[file] | rows if file in found else rows
            # They come in order, but for few, so that those before the last are done.
            done = max(told, int(np.searchsorted(share.items, files.max(initial=0))))
            tell(done - told, len(files))
            told = done
        tell(len(share.items) - told, 0)
        return found
