"""`t.upsert(rows)`: rows replace those of their keys, or delete them.

An upsert plans an `UpsertJob`, lets the engine bring all rows of a bucket to one task, which is its
channel, and commits what the tasks have written. How many channels there are goes by the rows:

    10,000 rows, 1 MB     1 channel
    2 million, 200 MB     7: as many as it takes to have `_CHANNEL_BYTES` and `_CHANNEL_ROWS` each
    unknown               as many as tasks run at a time
    100 million, 10 GB    those that run at a time, four times over; with dynamic buckets once, as
                          each channel fills buckets of its own

Where older rows are looked up, few rows may have much to read: there is a channel for every
`_LOOKED_UP_BYTES` of the table, up to as many as tasks run at a time. There are no more channels
than buckets, where their number is fixed and the table has no partitions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from alcid.errors import ColumnError
from alcid.formats.buckets import Routing
from alcid.options import OptionValue, match_column
from alcid.tables.engine import row_source
from alcid.tables.paimon.data_files import fit_stored, table_paths
from alcid.tables.paimon.indexes import wanted_specs
from alcid.tables.paimon.keyed.bucket import BucketChange, Buckets, KeyedTable, buckets_of
from alcid.tables.paimon.keyed.commit import (
    AppliedChanges,
    BucketWork,
    CommitIdentity,
    apply_changes,
)
from alcid.tables.paimon.keyed.hash_lookup import HashIndexes
from alcid.tables.paimon.keyed.memory import DEFAULT_MEMORY
from alcid.tables.paimon.keyed.upsert_job import UpsertJob
from alcid.tables.paimon.metadata.options import (
    TableOptions,
    WriteOperation,
    require_rows_writable,
)
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.new_files import count_skipped, encoding_of, writing_options
from alcid.tables.reports import Skewed, UpsertReport, find_skewed
from alcid.tables.rows import RowSource, SizeEstimate
from alcid.tables.schema import TargetColumns

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

_CHANNEL_BYTES = 32 << 20
"""Of the rows of a channel, by an estimate that may be several times too low: by what files take
that are compressed. What a channel has in memory is bounded by `MemoryBounds` in any case."""
_CHANNEL_ROWS = 1 << 20
_LOOKED_UP_BYTES = 256 << 20
_WAVES = 4  # of tasks: enough for buckets of different sizes to level out


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertPlan:
    """How rows are upserted."""

    row_kind: str | None = None
    """The column with row kinds; by default that of the option `rowkind.field`."""
    write_only: bool = False
    """Leave the rows on level 0, for another job to compact."""
    options: Mapping[str, OptionValue] | None = None
    """The indexes to build; by default those of the table."""
    commit: CommitIdentity | None = None
    """Who commits; by default a new commit user."""


_DEFAULT = UpsertPlan()


def upsert(table: OpenPaimonTable, rows: Any, plan: UpsertPlan = _DEFAULT) -> UpsertReport:
    """Upsert an Arrow table or record batch in this process, or a DataFrame; see `upsert_rows`."""
    return upsert_rows(table, row_source(table.engine, rows, table), plan)


def upsert_rows(table: OpenPaimonTable, rows: RowSource, plan: UpsertPlan) -> UpsertReport:
    """Upsert rows: each replaces the row of its key, or deletes it.

    Args:
        table: The table; it is refreshed, which nobody else may do meanwhile.
        rows: Their columns are matched by name, narrower types are widened, missing columns are
            null. They are written again where another writer was faster; what was written before is
            removed then.
        plan: How to upsert.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A table without a primary key, an option that cannot be followed, a type
            or a value that does not fit the table.
        ConflictError: Others were faster every time.
    """
    begin = time.monotonic()

    def plan_work() -> BucketWork:
        job = plan_job(table, rows, plan)
        return BucketWork(job.keyed, job.looks_up, lambda: rows.write_by_key(job))

    with table.engine.settings():
        applied = apply_changes(table, plan_work, plan.commit)
    return _report(applied, time.monotonic() - begin)


def keyed_table(
    table: OpenPaimonTable,
    operation: WriteOperation,
    options: Mapping[str, OptionValue] | None = None,
) -> KeyedTable:
    """The table for work on its buckets.

    Raises:
        UnsupportedError: An option that the operation cannot follow.
    """
    files = table.snapshot
    require_rows_writable(files.schema, files.options, operation)
    return KeyedTable(
        table.storage,
        files.schema,
        {**files.schemas, files.schema.id: files.schema},
        writing_options(files.options, files.state.entries, files.schemas),
        wanted_specs(files.schema, options),
        encoding_of(files.schema, files.options, operation),
        DEFAULT_MEMORY,
    )


def compacts(table: OpenPaimonTable, plan: UpsertPlan) -> bool:
    """Whether an upsert compacts its own rows, so that batch readers see them."""
    options = table.snapshot.options
    return options.deletion_vectors and not options.write_only and not plan.write_only


def plan_job(table: OpenPaimonTable, rows: RowSource, plan: UpsertPlan) -> UpsertJob:
    """Plan the work of the tasks of an upsert."""
    files = table.snapshot
    keyed = keyed_table(table, "upsert", plan.options)
    buckets = buckets_of(files.state, table_paths(files.schema, files.options))
    kind_column, columns = _columns(rows.schema, plan, files.schema, files.options)
    hash_indexes, lookup_tasks = HashIndexes(keyed, buckets), 0
    looks_up, size, parallelism = compacts(table, plan), rows.size(), rows.parallelism
    least = _count_lookups(buckets, parallelism) if looks_up else 1
    if files.options.bucket < 0:
        channels = count_channels(size, parallelism, least, parallelism)
        routing = Routing.plan(files.options.dynamic_buckets(), channels)
        if not hash_indexes.fits:
            lookup_tasks = min(hash_indexes.ranges, parallelism)
    else:
        most = parallelism * _WAVES
        if not files.schema.partition_keys:
            most = min(most, files.options.bucket)
        channels = count_channels(size, parallelism, least, most)
        routing = Routing(channels, channels)
    return UpsertJob(
        keyed,
        columns,
        kind_column,
        buckets,
        hash_indexes,
        routing,
        looks_up,
        lookup_tasks,
    )


def count_channels(
    size: SizeEstimate | None, parallelism: int, least: int = 1, most: int | None = None
) -> int:
    """How many channels an upsert has.

    Args:
        size: About how much is upserted.
        parallelism: How many tasks run at a time: so many channels if the size is not known.
        least: How many there are for few rows.
        most: More than this have no use.

    >>> count_channels(SizeEstimate(1_000_000, 10_000), parallelism=200)
    1
    >>> count_channels(None, parallelism=200)
    200
    """
    channels = parallelism
    if size is not None:
        by_bytes, by_rows = -(-size.bytes // _CHANNEL_BYTES), -(-(size.rows or 0) // _CHANNEL_ROWS)
        channels = max(by_bytes, by_rows, least, 1)
    return channels if most is None else min(channels, most)


def _count_lookups(buckets: Buckets, parallelism: int) -> int:
    """How many channels are to look older rows up."""
    indexed = [bucket.sorted_files for bucket in buckets if bucket.sorted_files]
    size = sum(file.file.size for files in indexed for file in files)
    return min(-(-size // _LOOKED_UP_BYTES), len(indexed), parallelism)


def _columns(
    input_schema: pa.Schema, plan: UpsertPlan, schema: TableSchema, options: TableOptions
) -> tuple[tuple[int, str] | None, TargetColumns]:
    """Position and name of the column with row kinds, and the columns of the table."""
    kind_column = plan.row_kind or options.rowkind_field
    if kind_column is None:
        return None, fit_stored(input_schema, schema)
    name = match_column(kind_column, input_schema.names)
    if name is None:
        names = ", ".join(input_schema.names)
        raise ColumnError(f"row kinds: no column {kind_column} among {names}")
    position = input_schema.names.index(name)
    if match_column(name, schema.names) is not None:
        return (position, name), fit_stored(input_schema, schema)
    fitted = fit_stored(input_schema.remove(position), schema)
    sources = (
        source if source is None or source < position else source + 1 for source in fitted.sources
    )
    return (position, name), replace(fitted, sources=tuple(sources))


def _report(applied: AppliedChanges, seconds: float) -> UpsertReport:
    changes = applied.changes
    files = [file for change in changes for file in (*change.upserts, *change.deletes)]
    return UpsertReport(
        rows=sum(file.entry.file.rows for change in changes for file in change.upserts),
        deletes=sum(file.entry.file.rows for change in changes for file in change.deletes),
        replaced=applied.superseded,
        files=len(files),
        buckets=len(changes),
        bytes_written=sum(file.entry.file.size for file in files),
        index_bytes=sum(file.index_bytes for file in files),
        snapshot_id=applied.snapshot_id,
        is_compacted=applied.is_compacted,
        seconds=seconds,
        skipped=count_skipped(files),
        skewed=_skewed(changes),
    )


def _skewed(changes: Sequence[BucketChange]) -> tuple[Skewed, ...]:
    """The buckets and partitions that got far more rows than others of the upsert."""
    rows: dict[str, int] = {}
    partitions: dict[str, int] = {}
    for change in changes:
        folder = change.base.folder.rstrip("/")
        count = sum(file.entry.file.rows for file in (*change.upserts, *change.deletes))
        partition = folder.rpartition("/")[0]
        rows[folder] = rows.get(folder, 0) + count
        partitions[partition] = partitions.get(partition, 0) + count
    return find_skewed(partitions) + find_skewed(rows)
