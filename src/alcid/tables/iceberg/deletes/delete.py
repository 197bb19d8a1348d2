"""Delete the rows that match a predicate: their positions go into deletion vectors.

No data file is written anew. The vectors of one delete are in one Puffin file; each has what was
deleted of its data file before, and takes the place of the older one in the same commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from alcid.errors import ConflictError, FileGoneError, FormatError, UnsupportedError, require
from alcid.expressions import Predicate
from alcid.formats.deletion_vector import DeletionVector
from alcid.storage import retry
from alcid.tables.base import find_rows
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorCommit, VectorFile
from alcid.tables.iceberg.delegated import HandedScan
from alcid.tables.iceberg.deletes import TableDeletes
from alcid.tables.iceberg.deletes.plan import WrittenVectors, partition_of, write_vectors
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.metadata.table_metadata import Snapshot
from alcid.tables.progress import Progress
from alcid.tables.reports import DeleteReport

if TYPE_CHECKING:
    from alcid.tables.iceberg.open_table import OpenIcebergTable

__all__ = ["commit_vectors", "delete"]

_ATTEMPTS = 10
_FIRST_VERSION = 3  # of the format, that has vectors


def delete(
    table: OpenIcebergTable,
    where: str | Predicate,
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> DeleteReport:
    """Delete the rows that match, as the table is now; `"true"` is every row.

    Rows that others add meanwhile stay. Where another has replaced a file, or deleted rows of it,
    before the commit, the rows are looked for once more.

    Raises:
        UnsupportedError: The table has a format without vectors, was opened as it was in the past,
            or has files that are not read here.
        PredicateError: The predicate cannot be read, or has a part that only Spark can evaluate.
        ConflictError: Others were faster every time.
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
    if isinstance(scan, HandedScan):
        raise UnsupportedError(
            f"{table.name}: {scan.reason}: only Iceberg finds such rows, delete by SQL"
        )


def _delete(
    table: OpenIcebergTable,
    where: str | Predicate,
    progress: Progress | bool | None,
    *,
    dry_run: bool,
) -> DeleteReport:
    found = find_rows(table, where, progress=progress)
    files = require(found.files, IcebergFiles, "table")
    rows = sum(map(len, found.rows.values()))
    if files.snapshot is None or not rows or dry_run:
        return DeleteReport(rows, len(found.rows), None, dry_run=dry_run)
    before = require(files.deletions, TableDeletes, "deleted rows")
    vectors = {file: before.positions(file) | more for file, more in found.rows.items()}
    removed = [one for file in vectors for one in before.removable(file)]
    made = commit_vectors(table, files, files.snapshot, vectors, removed)
    return DeleteReport(rows, len(found.rows), made)


def commit_vectors(
    table: OpenIcebergTable,
    files: IcebergFiles,
    snapshot: Snapshot,
    vectors: Mapping[int, DeletionVector],
    removed: Sequence[RemovedDeletes],
) -> int:
    """Write vectors of data files, and let the table have them in place of other delete files.

    What is not committed is removed.

    Returns:
        The new snapshot.

    Raises:
        ConflictError: Another has changed one of the data files, or what is deleted of it.
        UnsupportedError: A partition that cannot be told.
    """
    written = write_vectors({files.file_paths[file].as_py(): one for file, one in vectors.items()})
    place = table.catalog.data_location(f"{uuid4()}-deletes.puffin")
    added = [_vector_file(files, file, place, written) for file in vectors]
    _check_partitions(files, added)
    if added:
        table.places.put(place, written.data)
    change = VectorCommit(snapshot.id, added, removed)
    try:
        made = table.catalog.commit_vectors(change)
    except (ConflictError, UnsupportedError):  # after any other error, it may be committed
        table.places.delete([place])
        raise
    table.note_commit(made, change)
    return made


def _check_partitions(files: IcebergFiles, added: Sequence[VectorFile]) -> None:
    """See that vectors are of the spec and the partition of their data files.

    Readers that look for the deletes of a partition would not find others, and their rows would be
    there again.

    Raises:
        FormatError: One is not.
    """
    data, specs = files.entries.data, files.metadata.specs
    numbers = {path: number for number, path in enumerate(files.file_paths.to_pylist())}
    for one in added:
        number = numbers[one.data_file]
        spec_id = data["spec_id"][number].as_py()
        expected = spec_id, partition_of(data, number, specs)
        found = one.spec_id, one.partition
        is_whole = len(one.partition) == len(specs[spec_id].fields)
        if not is_whole or repr(found) != repr(expected):  # NaN is not equal to itself
            raise FormatError(
                f"deletion vector of {one.data_file}: spec and partition",
                file=one.path,
                found=found,
                expected=expected,
            )


def _vector_file(files: IcebergFiles, file: int, place: str, written: WrittenVectors) -> VectorFile:
    data, path = files.entries.data, files.file_paths[file].as_py()
    blob = written.blobs[path]
    return VectorFile(
        place,
        len(written.data),
        path,
        data["spec_id"][file].as_py(),
        partition_of(data, file, files.metadata.specs),
        blob.offset,
        blob.length,
        int(blob.properties["cardinality"]),
    )
