"""`t.append(rows)` on a Paimon table: data files, then one commit that names them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from alcid.bundle import Kind
from alcid.errors import AlcidError, ConflictError, StorageError, UnsupportedError
from alcid.options import OptionValue
from alcid.paimon_metadata.commit import Change, Committer
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.paimon_metadata.table_options import TableOptions
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.append_report import AppendReport
from alcid.tables.build_report import SkippedCounter
from alcid.tables.paimon.asked_indexes import wanted_specs
from alcid.tables.paimon.data_writing import DataJob, WrittenData
from alcid.tables.paimon.stored_types import fit_stored
from alcid.tables.paimon.writable import encoding_of, require_rows_writable, writing_options

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["append_arrow", "append_rows", "continue_sequence"]


def append_arrow(
    table: PaimonTable,
    rows: pa.Table | pa.RecordBatch,
    options: Mapping[str, OptionValue] | None = None,
) -> AppendReport:
    """Append rows that are in memory, without Spark; see `append_rows`."""
    given = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    return append_rows(table, given.schema, options, lambda job: job.write_table(given))


def append_rows(
    table: PaimonTable,
    given: pa.Schema,
    options: Mapping[str, OptionValue] | None,
    write: Callable[[DataJob], Iterable[WrittenData]],
) -> AppendReport:
    """Append rows to a table, in one snapshot of kind APPEND; without rows there is none.

    Args:
        table: The table; it is read anew before and after.
        given: The columns of the rows. They go by name, narrower types are widened, missing ones
            are null.
        options: The indexes to build, see `alcid.options`; by default those that the options of
            the table name. `{}` for none.
        write: Writes the files, and tells of each; those that it told are removed if it raises.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A table with a primary key, an option that cannot be followed, a type or
            a value that does not go into the table.
        ConflictError: The schema has changed, or the number of buckets.
        StorageError: A file could not be written or read. If the rows are appended nevertheless, or
            may be, it says so.
    """
    begin = time.monotonic()
    with table.engine.settings():
        table.refresh()
        committer = table.committer()
        job = _plan(table, given, options)
        written: list[WrittenData] = []
        try:
            written.extend(write(job))
        except BaseException:
            _remove(job, written)
            raise
        state = table.snapshot.state
        snapshot = _commit(committer, job, written, state) if written else None
        _see(table, snapshot)
    skipped = SkippedCounter()
    for one in written:
        for column, index_type, reason in one.skipped:
            skipped.add(Kind.index(column, index_type), reason, one.paths[0])
    return AppendReport(
        len(written),
        sum(one.entry.file.rows for one in written),
        sum(one.entry.file.size for one in written),
        sum(one.index_bytes for one in written),
        0,
        time.monotonic() - begin,
        skipped.found,
        snapshot,
    )


def _plan(
    table: PaimonTable, given: pa.Schema, options: Mapping[str, OptionValue] | None
) -> DataJob:
    files = table.snapshot
    require_rows_writable(files.schema, files.options, "append")
    specs = wanted_specs(files.schema, options)
    columns = fit_stored(given, files.schema)
    return DataJob(
        table.storage,
        files.schema,
        writing_options(files.options, files.state.entries, files.schemas),
        columns,
        specs,
        encoding_of(files.schema, files.options, "append"),
    )


def _commit(
    committer: Committer, job: DataJob, written: Sequence[WrittenData], known: TableState
) -> int | None:
    """Let the files count; the number of the snapshot."""
    entries = [one.entry for one in written]
    try:
        snapshot = committer.commit(
            lambda state: Change(
                kind="APPEND", added=continue_sequence(entries, state, job.options)
            ),
            known=known,
        )
    except (ConflictError, UnsupportedError):  # after another error the snapshot may be there
        _remove(job, written)
        raise
    return None if snapshot is None else snapshot.id


def _see(table: PaimonTable, snapshot: int | None) -> None:
    """Read the table with the rows; if it cannot be read, say that they are there nevertheless.

    Whoever took the error for one of the append would append them once more.
    """
    try:
        table.refresh()
    except AlcidError as error:
        if snapshot is None:
            raise
        problem = f"rows are appended, in snapshot {snapshot}, but cannot be read yet: {error}"
        raise StorageError(problem, file=table.location) from error


def continue_sequence(
    entries: Sequence[ManifestEntry], state: TableState, options: TableOptions
) -> Sequence[ManifestEntry]:
    """Files with their sequence numbers: in a bucket they go on, without buckets begin anew.

    Raises:
        ConflictError: A partition has another number of buckets.
    """
    if options.bucket < 0:
        return entries
    following: dict[tuple[bytes, int], int] = {}
    touched = {entry.partition for entry in entries}
    for entry in state.entries:
        if entry.partition in touched and entry.total_buckets != options.bucket:
            raise ConflictError(
                f"bucket={options.bucket}: {entry.file.name} is one of {entry.total_buckets} "
                "buckets; rewrite its partition first"
            )
        place = entry.partition, entry.bucket
        following[place] = max(following.get(place, 0), entry.file.max_sequence + 1)
    numbered = []
    for entry in entries:
        place = entry.partition, entry.bucket
        first = following.get(place, 0)
        following[place] = first + entry.file.rows
        file = replace(entry.file, min_sequence=first, max_sequence=following[place] - 1)
        numbered.append(entry.with_file(file))
    return numbered


def _remove(job: DataJob, written: Sequence[WrittenData]) -> None:
    """Take back files that no snapshot will name."""
    with suppress(StorageError):  # `clean` removes them later
        job.storage.delete(path for one in written for path in one.paths)
