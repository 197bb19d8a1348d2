"""Delete the rows that match a predicate, in the way that the table allows.

| table                 | how                                                                   |
|-----------------------|-----------------------------------------------------------------------|
| with a primary key    | rows of kind -D, written and compacted as an upsert is                |
| with deletion vectors | positions are added to the vectors; no data file is rewritten         |
| with neither          | copy on write: each file with such rows is replaced, as in Java       |

Only the columns of the predicate are read, and none of a file of which statistics or indexes know
for sure which rows match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.errors import ConflictError, FileGoneError, UnsupportedError, require
from alcid.expressions import Predicate
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index.reader import Selection
from alcid.scan import ReadPlan
from alcid.storage import retry
from alcid.tables.base import FoundRows, find_rows
from alcid.tables.engine import Task, Threads
from alcid.tables.paimon.data_files import fit_stored, table_paths
from alcid.tables.paimon.deletion_vectors import DeletedRows
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.indexes import wanted_specs
from alcid.tables.paimon.keyed.bucket import Bucket, BucketChange, KeyedTable, buckets_of
from alcid.tables.paimon.keyed.bucket_upsert import delete_from_bucket
from alcid.tables.paimon.keyed.commit import BucketWork, apply_changes
from alcid.tables.paimon.keyed.upsert import UpsertPlan, compacts, keyed_table
from alcid.tables.paimon.metadata.commit import Change, discard
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.options import require_rows_writable
from alcid.tables.paimon.new_files import WrittenData, encoding_of
from alcid.tables.paimon.write.append import DataJob, continue_sequence
from alcid.tables.paimon.write.deletion_vectors import VectorChanges
from alcid.tables.progress import Progress, track_progress
from alcid.tables.reports import DeleteReport

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

_TRIES = 10
_NOTHING = DeleteReport(0, 0, None)


def delete(
    table: OpenPaimonTable, where: str | Predicate, *, progress: Progress | bool | None = False
) -> DeleteReport:
    """Delete the rows that match, as the table is now; `"true"` is every row.

    Rows that others add meanwhile stay. Where another writer has replaced a file before the commit,
    the rows are looked for once more.

    Raises:
        UnsupportedError: The table has an option that cannot be followed.
        PredicateError: The predicate cannot be parsed, or has a part that only Spark can evaluate.
        ConflictError: Others have replaced its files every time.
    """
    if not isinstance(where, Predicate):
        require(where, str, "where")
    if table.snapshot.options.has_primary_key:
        return _delete_keys(table, where, progress)

    def attempt() -> DeleteReport:
        table.refresh()
        options = table.snapshot.options
        options.require_writable("delete")
        if options.deletion_vectors:
            return _delete_positions(table, where, progress)
        return _copy_on_write(table, where, progress)

    return retry(attempt, on=(ConflictError, FileGoneError), attempts=_TRIES)


def _delete_positions(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> DeleteReport:
    """Add the rows to deletion vectors, in one snapshot of kind OVERWRITE."""
    committer = table.committer()
    deleted = _find(table, where, progress)
    if not deleted:
        return _NOTHING
    changes = VectorChanges(table.storage, table.snapshot.options, deleted)
    try:
        snapshot = committer.commit(changes.plan, cached=table.snapshot.state)
    except ConflictError:
        changes.remove_all()
        raise
    changes.remove_unused()
    if snapshot is None:
        return _NOTHING
    table.refresh()
    return DeleteReport(changes.rows, changes.files, snapshot.id)


def _find(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> list[DeletedRows]:
    """The live rows that match, by file."""
    matches = find_rows(table, where, progress=progress)
    files = require(matches.files, PaimonFiles, "table")
    return [DeletedRows(files.placed[file], rows) for file, rows in matches.rows.items()]


def _delete_keys(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> DeleteReport:
    """Write rows of kind -D for the rows that match.

    Streaming readers see them go, and where a bucket has files on level 0, its compaction finds
    them. The deletion vectors of other buckets are written at once.
    """

    def plan() -> BucketWork:
        keyed = keyed_table(table, "delete", {})
        buckets = buckets_of(
            table.snapshot.state, table_paths(table.snapshot.schema, table.snapshot.options)
        )
        by_bucket: dict[BucketId, list[DeletedRows]] = {}
        for deleted in _find(table.with_level_zero(), where, progress):
            by_bucket.setdefault(deleted.file.entry.bucket_id, []).append(deleted)
        looks_up = compacts(table, UpsertPlan())
        rows_of_buckets = [
            (buckets[bucket_id], _rows_by_name(buckets[bucket_id], deleted))
            for bucket_id, deleted in by_bucket.items()
        ]
        work, sizes = DeleteWork(keyed, looks_up), _sizes(rows_of_buckets)
        return BucketWork(
            keyed,
            looks_up,
            lambda: [
                change
                for changes in table.engine.map(work, rows_of_buckets, sizes)
                for change in changes
            ],
        )

    with table.engine.settings():
        applied = apply_changes(table, plan)
    rows = sum(file.entry.file.rows for change in applied.changes for file in change.deletes)
    return DeleteReport(rows, None if rows else 0, applied.snapshot_id)


def _rows_by_name(bucket: Bucket, deleted: Sequence[DeletedRows]) -> dict[str, DeletionVector]:
    live = {file.file.name for file in bucket.files}
    for of_file in deleted:
        if of_file.file.file.name not in live:
            raise ConflictError(f"{of_file.file.path}: is not there any more")
    return {of_file.file.file.name: of_file.rows for of_file in deleted}


RowsOfBucket: TypeAlias = tuple[Bucket, dict[str, DeletionVector]]
"""A bucket, and the rows to delete by the names of their files."""


@dataclass(frozen=True, slots=True, eq=False)
class DeleteWork:
    """Deletes rows of buckets, for `Engine.map`."""

    keyed: KeyedTable
    looks_up: bool

    def __call__(self, task: Task[Sequence[RowsOfBucket]]) -> list[BucketChange]:
        """Write the rows that delete for the buckets of a task."""
        return [
            delete_from_bucket(self.keyed, bucket, rows, looks_up=self.looks_up)
            for bucket, rows in task.items
        ]


def _sizes(buckets: Sequence[RowsOfBucket]) -> Int64Array:
    """The bytes of the files that rows are read from."""
    return np.array(
        [
            sum(file.file.size for file in bucket.files if file.file.name in rows)
            for bucket, rows in buckets
        ],
        np.int64,
    )


def _copy_on_write(
    table: OpenPaimonTable, where: str | Predicate, progress: Progress | bool | None
) -> DeleteReport:
    """Replace the files with rows that match, in one snapshot of kind OVERWRITE.

    The new files have the other rows, in the schema and with the indexes that the table has now.

    Raises:
        ConflictError: Another writer has replaced one of the files; what was written is removed.
    """
    files = table.snapshot
    require_rows_writable(files.schema, files.options, "delete")
    committer = table.committer()
    matches = find_rows(table, where, progress=progress)
    if not matches.rows:
        return _NOTHING
    _check_vectors(files, matches)
    replaced = [files.placed[file].entry for file in matches.rows]
    written = _rewrite(table, matches, progress)
    added = [file.entry for file in written]
    try:
        snapshot = committer.commit(
            lambda state: Change(
                kind="OVERWRITE",
                deleted=replaced,
                added=continue_sequence(added, state, files.options),
            ),
            cached=files.state,
        )
    except (ConflictError, UnsupportedError):  # after another error the snapshot may exist
        discard(table.storage, (path for file in written for path in file.paths))
        raise
    table.refresh()
    rows = sum(map(len, matches.rows.values()))
    return DeleteReport(rows, len(matches.rows), None if snapshot is None else snapshot.id)


@dataclass(frozen=True, slots=True, eq=False)
class RewriteWork:
    """Writes the rows of data files that are not deleted, for `Engine.map`."""

    job: DataJob

    def __call__(self, task: Task[ReadPlan]) -> list[WrittenData]:
        """Rewrite the files of a task, each by itself."""
        written: list[WrittenData] = []
        for item in range(len(task.items)):
            tables = (part.table for part in task.items.part(np.array([item])).read())
            batches = (batch for rows in tables for batch in rows.to_batches())
            files = list(self.job.write(batches))
            written += files
            task.report(1, sum(file.entry.file.rows for file in files))
        return written


def _rewrite(
    table: OpenPaimonTable, matches: FoundRows, progress: Progress | bool | None
) -> list[WrittenData]:
    """New files with the rows that do not match."""
    plan, _ = table.scan().plan()
    files = require(plan.table, PaimonFiles, "table")
    if files is not matches.files:
        raise ConflictError(f"{table.location}: was refreshed while rows were looked for")
    candidates = plan.candidates.filter(np.isin(plan.candidates.files, list(matches.rows)))
    selections = {
        file: Selection(matches.rows[file].live_rows(int(files.rows[file])), exact=True)
        for file in candidates.files.tolist()
    }
    plan = replace(plan, candidates=candidates.narrowed(selections))
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
        track_progress(progress if len(sizes) else False, "rewriting", len(sizes)) as report,
    ):
        parts = engine.map(RewriteWork(job), plan.read_plan(), sizes, report)
    return [file for part in parts for file in part]


def _check_vectors(files: PaimonFiles, matches: FoundRows) -> None:
    """Check that no replaced file has a deletion vector, which would be left without its file."""
    files.load_deletions(np.array(list(matches.rows), np.int64))
    for file in matches.rows:
        if files.deletions.get(file):
            raise UnsupportedError(
                f"{files.placed[file].path}: has a deletion vector, though deletion-vectors.enabled"
                " is off: switch it on again to delete rows"
            )
