"""Statistics of a Paimon table: distinct values, stored twice.

    _alcid/statistics-20250801T093000.123456Z-5f1e0c7ab2d4.puffin    the sketches, as of a folder
    statistics/stats-0c7ab2d4-....-0                                 what ANALYZE writes, as JSON

A snapshot of kind ANALYZE has the second, and engines plan by it. The sketches are not beside it,
as cleaning orphans of a Paimon table removes everything there that no snapshot has.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from alcid.errors import ConflictError, FileGoneError, UnsupportedError
from alcid.storage import Listing, retry
from alcid.tables.bundle_folder import FOLDER, BundleFolder
from alcid.tables.distinct_values import (
    ColumnCount,
    PreviousCounts,
    count_columns,
    counts_table,
    previous_counts,
    read_stats,
    write_stats,
)
from alcid.tables.paimon.deletion_vectors import stored_vectors
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.schema import to_json
from alcid.tables.progress import Progress

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

STATISTICS_FOLDER = "statistics"
_TRIES = 3


def compute_stats(
    table: OpenPaimonTable,
    columns: Collection[str] | None = None,
    *,
    progress: Progress | bool | None = False,
) -> pa.Table:
    """Count the distinct values of columns, and let the table say so in a snapshot.

    Rows that are deleted, or that newer ones replace, do not count. See
    `alcid.tables.distinct_values.compute_stats` for what is exact. In a table without a primary key
    only new files are read, if since the last time no file or row went and the columns are the
    same.

    Args:
        table: The table; it is refreshed.
        columns: Those to count; by default all that can be counted, which nested ones cannot.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Returns:
        For each column its name, type, distinct values, rows and nulls.

    Raises:
        UnsupportedError: A column of those given cannot be counted; or the table was opened at a
            snapshot of the past.
        ConflictError: The schema of the table was changed meanwhile.
    """
    with table.engine.settings():
        files, rows, counted = _count(table, columns, progress)
    ids = {one.name: one.id for one in files.schema.fields}
    counts = [replace(column, field=ids[column.column]) for column in counted]
    if files.state.snapshot is not None:
        _keep(table, files, rows, counts)
    return counts_table(rows, counts)


def kept_stats(table: OpenPaimonTable) -> pa.Table | None:
    """What was counted last, if no row came or went since; else None."""
    return read_stats(BundleFolder(table.storage, FOLDER), _listing(table.snapshot))


def _count(
    table: OpenPaimonTable, columns: Collection[str] | None, progress: Progress | bool | None
) -> tuple[PaimonFiles, int, list[ColumnCount]]:
    def attempt() -> tuple[PaimonFiles, int, list[ColumnCount]]:
        files = _latest_files(table)
        previous = _previous_counts(table, files)
        counts = count_columns(files, table.engine, columns, previous=previous, progress=progress)
        return files, *counts

    # A file may be compacted and expire while it is read.
    return retry(attempt, on=FileGoneError, attempts=_TRIES)


def _previous_counts(table: OpenPaimonTable, files: PaimonFiles) -> PreviousCounts | None:
    """What was counted before, of columns that are still the same ones."""
    if files.schema.primary_keys:  # where new files change what is seen of old ones
        return None
    listing, order = _listed(files)
    previous = previous_counts(BundleFolder(table.storage, FOLDER), listing)
    if previous is None:
        return None
    is_new = np.empty(len(order), bool)
    is_new[order] = previous.is_new
    ids = {count.name: count.id for count in files.schema.fields}
    same = {name: count for name, count in previous.counts.items() if count.field == ids.get(name)}
    return PreviousCounts(is_new, same)


def _latest_files(table: OpenPaimonTable) -> PaimonFiles:
    """The files of the latest snapshot."""
    table.committer()  # there is none of a table of the past, or of a branch
    for _ in range(_TRIES):  # others may commit
        table.refresh()
        files, latest = table.snapshot, table.folder.snapshots.latest()
        known = files.state.snapshot
        if latest is None or (known is not None and known.id == latest.id):
            files.options.require_writable("build")
            return files
    raise UnsupportedError(
        f"{table.location}: opened at a snapshot of the past, of which no statistics are kept"
    )


def _listing(files: PaimonFiles) -> Listing:
    """The files by their paths."""
    return _listed(files)[0]


def _listed(files: PaimonFiles) -> tuple[Listing, list[int]]:
    """The files by their paths, with that as their version which says what of them is deleted.

    Also the place of each among the files.
    """
    beside_data = files.options.index_file_in_data_file_dir
    vectors = stored_vectors(files.state.indexes, files.placed, beside_data=beside_data)
    versions = [
        f"{vector.path}:{vector.range.offset}" if (vector := vectors.get(file)) else ""
        for file in range(len(files.placed))
    ]
    order = sorted(range(len(files.placed)), key=lambda file: files.placed[file].path)
    listing = Listing(
        files.paths.take(pa.array(order, pa.int64())),
        files.sizes[order],
        pa.array([versions[file] for file in order], pa.string()),
    )
    return listing, order


def _keep(
    table: OpenPaimonTable, files: PaimonFiles, rows: int, counts: Sequence[ColumnCount]
) -> None:
    assert files.state.snapshot is not None
    number = files.state.snapshot.id
    name = f"stats-{uuid.uuid4()}-0"
    path = f"{STATISTICS_FOLDER}/{name}"
    table.storage.put(path, _analyze_json(files, number, rows, counts))
    try:
        change = Change(kind="ANALYZE", statistics=name)
        table.committer().commit(lambda _state: change, cached=files.state)
    except ConflictError:  # after any other error it may be named by a snapshot
        table.storage.delete([path])
        raise
    folder = BundleFolder(table.storage, FOLDER)
    write_stats(folder, _listing(files), rows, counts, snapshot_id=number)
    table.refresh()


def _analyze_json(
    files: PaimonFiles, number: int, rows: int, counts: Sequence[ColumnCount]
) -> bytes:
    """What ANALYZE of Paimon writes, as far as it was counted."""
    columns = {
        one.column: {
            "colId": one.field,
            "distinctCount": one.sketch.ndv,
            "nullCount": one.nulls,
        }
        for one in counts
    }
    return to_json(
        {
            "snapshotId": number,
            "schemaId": files.schema.id,
            "mergedRecordCount": rows,
            "mergedRecordSize": _merged_size(files, rows),
            "colStats": columns,
        }
    )


def _merged_size(files: PaimonFiles, rows: int) -> int:
    """About how many bytes the rows take that are left, by the share that they are of all rows."""
    every = sum(one.entry.file.rows for one in files.placed)
    return int(files.sizes.sum()) * rows // every if every else 0
