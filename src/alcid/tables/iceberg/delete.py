"""Delete the rows that match a predicate by deletion vectors.

No data file is rewritten. The vectors of a delete are in one Puffin file. Each includes the rows of
its data file that were deleted before, and replaces the older vector in the same commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import uuid4

from alcid.errors import ConflictError, FileGoneError, FormatError, UnsupportedError, require
from alcid.expressions import Predicate
from alcid.formats.deletion_vector import DeletionVector
from alcid.storage import retry
from alcid.tables.base import find_rows
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorCommit, VectorFile
from alcid.tables.iceberg.delegated import DelegatedScan
from alcid.tables.iceberg.deletes import TableDeletes
from alcid.tables.iceberg.deletes.plan import WrittenVectors, partition_of, write_vectors
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.metadata.table_metadata import Snapshot
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.progress import Progress
from alcid.tables.reports import DeleteReport

_ATTEMPTS = 10
_FIRST_VERSION = 3  # of the format with deletion vectors


def delete(
    table: OpenIcebergTable,
    where: str | Predicate,
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> DeleteReport:
    """Delete the rows of the current snapshot that match; `"true"` is every row.

    Rows that others append meanwhile stay. If another commit replaces a file or deletes rows of it
    first, the delete starts again.

    Raises:
        UnsupportedError: The table has a format without vectors, was opened at a snapshot, tag or
            timestamp, or has files that are not supported.
        PredicateError: The predicate cannot be parsed, or has a part that only Spark can evaluate.
        ConflictError: Other commits came first in every attempt.
    """
    if not isinstance(where, Predicate):
        require(where, str, "where")
    table.require_present("delete")

    def attempt() -> DeleteReport:
        table.refresh()
        _check(table, where)
        return _delete(table, where, progress, dry_run=dry_run)

    report = retry(attempt, on=(ConflictError, FileGoneError), attempts=_ATTEMPTS)
    if report.snapshot_id is not None:
        table.refresh()
    return report


def _check(table: OpenIcebergTable, where: str | Predicate) -> None:
    if table.format_version < _FIRST_VERSION:
        raise UnsupportedError(
            f"{table.name}: format version {table.format_version} has no deletion vectors: ALTER"
            f" TABLE {table.name} SET TBLPROPERTIES ('format-version'='{_FIRST_VERSION}'), or"
            " delete by SQL"
        )
    scan = table.scan(where, columns=[])
    if isinstance(scan, DelegatedScan):
        raise UnsupportedError(
            f"{table.name}: {scan.reason}: only Iceberg can find these rows, delete them by SQL"
        )


def _delete(
    table: OpenIcebergTable,
    where: str | Predicate,
    progress: Progress | bool | None,
    *,
    dry_run: bool,
) -> DeleteReport:
    matching = find_rows(table, where, progress=progress)
    files = require(matching.files, IcebergFiles, "table")
    rows = sum(map(len, matching.rows.values()))
    if files.snapshot is None or not rows or dry_run:
        return DeleteReport(rows, len(matching.rows), None, dry_run=dry_run)
    before = require(files.deletions, TableDeletes, "deleted rows")
    vectors = {file: before.positions(file) | rows_ for file, rows_ in matching.rows.items()}
    removed = [delete_file for file in vectors for delete_file in before.removable(file)]
    snapshot_id = commit_vectors(table, files, files.snapshot, vectors, removed)
    return DeleteReport(rows, len(matching.rows), snapshot_id)


def commit_vectors(
    table: OpenIcebergTable,
    files: IcebergFiles,
    snapshot: Snapshot,
    vectors: Mapping[int, DeletionVector],
    removed: Sequence[RemovedDeletes],
) -> int:
    """Write the vectors of data files, and commit them in place of other delete files.

    The file is removed if the commit fails.

    Returns:
        The id of the new snapshot.

    Raises:
        ConflictError: Another commit has changed one of the data files or its deletes.
        UnsupportedError: The values of a partition are unknown.
    """
    written = write_vectors(
        {files.file_paths[file].as_py(): vector for file, vector in vectors.items()}
    )
    path = table.catalog.data_location(f"{uuid4()}-deletes.puffin")
    added = [_vector_file(files, file, path, written) for file in vectors]
    _check_partitions(files, added)
    if added:
        table.file_io.put(path, written.data)
    change = VectorCommit(snapshot.id, added, removed)
    try:
        snapshot_id = table.catalog.commit_vectors(change)
    except (ConflictError, UnsupportedError):  # after any other error, it may be committed
        table.file_io.delete([path])
        raise
    table.note_commit(snapshot_id, change)
    return snapshot_id


def _check_partitions(files: IcebergFiles, added: Sequence[VectorFile]) -> None:
    """Check that vectors have the spec and partition of their data files.

    Readers that look for the deletes of a partition would miss others, and deleted rows would come
    back.

    Raises:
        FormatError: A vector has another spec or partition.
    """
    data, specs = files.entries.data, files.metadata.specs
    numbers = {path: number for number, path in enumerate(files.file_paths.to_pylist())}
    for vector in added:
        number = numbers[vector.data_file]
        spec_id = data["spec_id"][number].as_py()
        expected = spec_id, partition_of(data, number, specs)
        actual = vector.spec_id, vector.partition
        is_complete = len(vector.partition) == len(specs[spec_id].fields)
        if not is_complete or repr(actual) != repr(expected):  # NaN is not equal to itself
            raise FormatError(
                f"deletion vector of {vector.data_file}: spec and partition",
                file=vector.path,
                found=actual,
                expected=expected,
            )


def _vector_file(
    files: IcebergFiles, file: int, puffin_path: str, written: WrittenVectors
) -> VectorFile:
    data, path = files.entries.data, files.file_paths[file].as_py()
    blob = written.blobs[path]
    return VectorFile(
        puffin_path,
        len(written.data),
        path,
        data["spec_id"][file].as_py(),
        partition_of(data, file, files.metadata.specs),
        blob.offset,
        blob.length,
        int(blob.properties["cardinality"]),
    )
