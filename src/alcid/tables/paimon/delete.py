"""Delete the rows that match a predicate: their positions go into deletion vectors.

No data file is written anew. Only the columns of the predicate are read, and none of a file of
which statistics or indexes know for sure which rows match. A table that has neither vectors nor a
key is left to `copy_on_write`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alcid.errors import ConflictError, FileGoneError, require
from alcid.expressions import Predicate
from alcid.tables.base import find_rows
from alcid.tables.engine import Progress
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.keyed.delete import delete_marked
from alcid.tables.paimon.write.copy_on_write import delete_by_rewriting
from alcid.tables.paimon.write.deletion_vectors import Mark, VectorChanges
from alcid.tables.reports import DeleteReport

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["DeleteReport", "delete"]

_TRIES = 10


def delete(
    table: OpenPaimonTable, where: str | Predicate, *, progress: Progress | bool | None = False
) -> DeleteReport:
    """Delete the rows that match, as the table is now; `"true"` is every row.

    Rows that others add meanwhile stay. Where another has replaced a file before the commit, the
    rows are looked for once more.

    Raises:
        UnsupportedError: The table has an option that is not followed.
        PredicateError: The predicate cannot be read, or has a part that only Spark can evaluate.
        ConflictError: Others have replaced its files every time.
    """
    if not isinstance(where, Predicate):
        require(where, str, "where")
    if table.snapshot.options.has_primary_key:
        return _delete_keys(table, where, progress)
    for attempt in range(_TRIES):
        table.refresh()
        options = table.snapshot.options
        options.require_writable("delete")
        try:
            if not options.deletion_vectors:
                return delete_by_rewriting(table, where, progress)
            return _delete(table, where, progress)
        except (ConflictError, FileGoneError):
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


def _delete(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> DeleteReport:
    committer = table.committer()
    marks = _find(table, where, progress)
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


def _delete_keys(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> DeleteReport:
    with table.engine.settings():
        applied = delete_marked(table, lambda: _find(table.with_level_zero(), where, progress))
    rows = sum(one.entry.file.rows for change in applied.changes for one in change.deletes)
    return DeleteReport(rows, None if rows else 0, applied.snapshot_id)


def _find(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> list[Mark]:
    """The live rows that match, by file."""
    found = find_rows(table, where, progress=progress)
    files = require(found.files, PaimonFiles, "table")
    return [Mark(files.placed[file], rows) for file, rows in found.rows.items()]
