"""Delete the rows that match a predicate: their positions go into deletion vectors.

No data file is written anew. Only the columns of the predicate are read, and none of a file of
which statistics or indexes know for sure which rows match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from alcid.errors import (
    ConflictError,
    FileGoneError,
    PredicateError,
    UnsupportedError,
    require,
)
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.selection import Selection
from alcid.plan import Draft, DraftPart
from alcid.plan.candidates import Candidates
from alcid.predicate import Predicate
from alcid.tables.build_report import count_text
from alcid.tables.engine import Share, Tell, Threads
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.keyed.deleting import delete_marked
from alcid.tables.paimon.vector_changes import Mark, VectorChanges

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["DeleteReport", "FindWork", "delete"]

_TRIES = 10


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What a delete did.

    >>> print(DeleteReport(1200, 3, 7))
    deleted 1,200 rows of 3 files: snapshot 7
    >>> print(DeleteReport(0, 0, None))
    deleted nothing: no row matches
    """

    rows: int
    """Those that were not deleted before."""
    files: int | None
    """Data files that they are of; None in a table with a primary key, where they are counted by
    key."""
    snapshot_id: int | None
    """The new snapshot; None where there was nothing to do."""

    def __str__(self) -> str:
        if self.snapshot_id is None:
            return "deleted nothing: no row matches"
        done = count_text(self.rows, "row")
        if self.files is not None:
            done += f" of {count_text(self.files, 'file')}"
        return f"deleted {done}: snapshot {self.snapshot_id}"


def delete(table: PaimonTable, where: str | Predicate) -> DeleteReport:
    """Delete the rows that match, as the table is now; `"true"` is every row.

    Rows that others add meanwhile stay. Where another has replaced a file before the commit, the
    rows are looked for once more.

    Raises:
        UnsupportedError: The table has neither deletion vectors nor a primary key.
        PredicateError: The predicate cannot be read, or has a part that only Spark can evaluate.
        ConflictError: Others have replaced its files every time.
    """
    if not isinstance(where, Predicate):
        require(where, str, "where")
    if table.snapshot.options.has_primary_key:
        return _delete_keys(table, where)
    for attempt in range(_TRIES):
        table.refresh()
        _check(table)
        try:
            return _delete(table, where)
        except (ConflictError, FileGoneError):
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


def _check(table: PaimonTable) -> None:
    options = table.snapshot.options
    if not options.deletion_vectors:
        raise UnsupportedError(
            f"{table.location}: rows are deleted where its option deletion-vectors.enabled is true:"
            " give it to create_table, or set it with ALTER TABLE"
        )
    options.require_writable("delete")


def _delete(table: PaimonTable, where: str | Predicate) -> DeleteReport:
    committer = table.committer()
    marks = _find(table, where)
    if not marks:
        return DeleteReport(0, 0, None)
    changes = VectorChanges(table.storage, table.snapshot.options, marks)
    try:
        made = committer.commit(changes.plan, known=table.snapshot.state)
    except ConflictError:
        changes.remove_all()
        raise
    changes.remove_unused()
    if made is None:
        return DeleteReport(0, 0, None)
    table.refresh()
    return DeleteReport(changes.rows, changes.files, made.id)


def _delete_keys(table: PaimonTable, where: str | Predicate) -> DeleteReport:
    with table.engine.settings():
        applied = delete_marked(table, lambda: _find(table.with_level_zero(), where))
    rows = sum(one.entry.file.rows for change in applied.changes for one in change.deletes)
    return DeleteReport(rows, None if rows else 0, applied.snapshot_id)


def _find(table: PaimonTable, where: str | Predicate) -> list[Mark]:
    """The live rows that match, by file."""
    draft, is_whole = table.scan(where, columns=[]).draft()
    if not is_whole:
        raise PredicateError(
            f"{where}: has a part that only Spark can evaluate, which deletes do not ask"
        )
    files = require(draft.table, PaimonFiles, "table")
    if not files.columns.partitions.keys() >= set(draft.where_columns):
        # Rows are looked at before they are deleted: an index, or bounds, may be wrong unnoticed.
        asked = (Selection(found.rows) for found in draft.candidates.selections)
        draft = replace(draft, candidates=draft.candidates.chosen(asked))
    found = dict(_known(draft))
    open_ones = np.array([not one.exact for one in draft.candidates.selections], bool)
    rest = replace(draft, candidates=draft.candidates.filter(open_ones))
    work = FindWork(rest.part())
    engine = Threads() if rest.is_small else table.engine
    with table.engine.settings():
        for share in engine.map(work, work.draft.sizes, lambda *_: None):
            found |= {int(rest.candidates.files[place]): rows for place, rows in share.items()}
    return [Mark(files.placed[file], rows) for file, rows in sorted(found.items())]


def _known(draft: Draft) -> list[tuple[int, DeletionVector]]:
    """The rows of files that need not be read."""
    candidates: Candidates = draft.candidates
    return [
        (file, DeletionVector(range(rows) if found.rows is None else found.rows))
        for file, rows, found in zip(
            candidates.files.tolist(),
            draft.files.rows[candidates.files].tolist(),
            candidates.selections,
            strict=True,
        )
        if found.exact
    ]


@dataclass(frozen=True, slots=True, eq=False)
class FindWork:
    """Finds the rows of candidates that match, for `Engine.map`."""

    draft: DraftPart

    def __call__(self, share: Share, _tell: Tell) -> dict[int, DeletionVector]:
        """The positions, by the place of the candidate."""
        found: dict[int, DeletionVector] = {}
        for part in self.draft.read(share.items.tolist()):
            files, positions = part.places.files, part.places.positions
            for file in np.unique(files).tolist():
                rows = DeletionVector(positions[files == file])
                found[file] = found[file] | rows if file in found else rows
        return found
