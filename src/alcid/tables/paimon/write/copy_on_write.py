"""Delete rows of a table without a key and without deletion vectors: copy on write, as Java does.

Each data file that has such rows is replaced by one with its other rows, or by none. The new files
have the schema and the indexes that the table has now.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from alcid.errors import (
    ConflictError,
    StorageError,
    UnsupportedError,
    require,
)
from alcid.expressions import Predicate
from alcid.formats.file_index.reader import Selection
from alcid.scan import ReadPlan
from alcid.tables.base import FoundRows, find_rows
from alcid.tables.engine import Progress, Share, Tell, Threads, telling
from alcid.tables.paimon.data_files import fit_stored
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.write.append import continue_sequence
from alcid.tables.paimon.write.index_plan import wanted_specs
from alcid.tables.paimon.write.new_files import DataJob, WrittenData
from alcid.tables.paimon.write.writable import encoding_of, require_rows_writable
from alcid.tables.reports import DeleteReport

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["RewriteWork", "delete_by_rewriting"]


def delete_by_rewriting(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> DeleteReport:
    """Replace the files that have rows that match, in one snapshot of kind OVERWRITE.

    Rows that others append meanwhile stay.

    Raises:
        UnsupportedError: The table has an option or a type that is not followed in writing.
        ConflictError: Another has replaced one of the files; what was written is removed.
    """
    files = table.snapshot
    require_rows_writable(files.schema, files.options, "delete")
    committer = table.committer()
    found = find_rows(table, where, progress=progress)
    if not found.rows:
        return DeleteReport(0, 0, None)
    _check_vectors(files, found)
    replaced = [files.placed[file].entry for file in found.rows]
    written = _write_others(table, found, progress)
    added = [one.entry for one in written]
    try:
        snapshot = committer.commit(
            lambda state: Change(
                kind="OVERWRITE",
                deleted=replaced,
                added=continue_sequence(added, state, files.options),
            ),
            known=files.state,
        )
    except (ConflictError, UnsupportedError):  # after another error the snapshot may be there
        _remove(table, written)
        raise
    table.refresh()
    rows = sum(map(len, found.rows.values()))
    return DeleteReport(rows, len(found.rows), None if snapshot is None else snapshot.id)


@dataclass(frozen=True, slots=True, eq=False)
class RewriteWork:
    """Writes the rows of candidates that stay, for `Engine.map`: an item is a data file."""

    plan: ReadPlan
    job: DataJob

    def __call__(self, share: Share, tell: Tell) -> list[WrittenData]:
        """Write the files of a share, each by itself."""
        written: list[WrittenData] = []
        for item in share.items.tolist():
            tables = (part.table for part in self.plan.read([item]))
            batches = (batch for rows in tables for batch in rows.to_batches())
            made = list(self.job.write(batches))
            written += made
            tell(1, sum(one.entry.file.rows for one in made))
        return written


def _write_others(
    table: OpenPaimonTable, found: FoundRows, progress: Progress | bool | None
) -> list[WrittenData]:
    """The rows of files that do not go, in new files that no snapshot names yet."""
    plan, _ = table.scan().plan()
    files = require(plan.table, PaimonFiles, "table")
    if files is not found.files:
        raise ConflictError(f"{table.location}: was refreshed while rows were looked for")
    kept = plan.candidates.filter(np.isin(plan.candidates.files, list(found.rows)))
    selections = {
        file: Selection(found.rows[file].live_rows(int(files.rows[file])), exact=True)
        for file in kept.files.tolist()
    }
    plan = replace(plan, candidates=kept.narrowed(selections))
    schema = pa.schema([(name, files.columns.columns[name].arrow_type) for name in plan.columns])
    job = DataJob(
        table.storage,
        files.schema,
        files.options,
        fit_stored(schema, files.schema),
        wanted_specs(files.schema, None),
        encoding_of(files.schema, files.options, "delete"),
    )
    engine = Threads() if plan.is_small else table.engine
    sizes = plan.whole_sizes
    with (
        table.engine.settings(),
        telling(progress if len(sizes) else False, "rewriting", len(sizes)) as tell,
    ):
        shares = engine.map(RewriteWork(plan.read_plan(), job), sizes, tell)
    return [one for share in shares for one in share]


def _check_vectors(files: PaimonFiles, found: FoundRows) -> None:
    """See that no file has a deletion vector, which would be left without its file."""
    files.load_deletions(np.array(list(found.rows), np.int64))
    for file in found.rows:
        if files.deletions.get(file):
            raise UnsupportedError(
                f"{files.placed[file].path}: has a deletion vector, though deletion-vectors.enabled"
                " is off: switch it on again to delete rows"
            )


def _remove(table: OpenPaimonTable, written: Sequence[WrittenData]) -> None:
    """Take back files that no snapshot will name."""
    with suppress(StorageError):  # `clean` removes them later
        table.storage.delete([path for one in written for path in one.paths])
