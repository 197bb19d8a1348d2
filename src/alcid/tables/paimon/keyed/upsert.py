"""`t.upsert(rows)`: rows replace those of their keys, or delete them.

Each row is routed to the bucket of its key, and all rows of a bucket to one worker:

    rows -> hash of the key -> bucket, if the key exists -> channel -> bucket, if the key is new

A channel is a worker. Each partition is assigned to some consecutive channels, beginning with one
that its hash determines. The first of them owns all buckets, and gets all new keys, whose number or
hash leaves the remainder 0 when divided by the number of these channels; the next owns those with
remainder 1. So new keys arrive at a worker that may add them to its own buckets, one shuffle is
enough, and no two workers write to the same bucket.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from alcid._arrays import Int32Array, Int64Array, changes, split_by
from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.binary_row import hash_rows
from alcid.formats.binary_row.rows import EMPTY_ROW_HASH
from alcid.formats.buckets import (
    BucketAssigner,
    Routing,
    fixed_bucket,
)
from alcid.options import OptionValue, match_column
from alcid.storage.threads import in_order
from alcid.tables.engine import row_source
from alcid.tables.key_order import rank_rows
from alcid.tables.paimon.data_files import check_lengths, fit_stored, table_paths
from alcid.tables.paimon.indexes import wanted_specs
from alcid.tables.paimon.keyed.bucket import (
    NEW_KEY,
    Bucket,
    BucketChange,
    Buckets,
    HashIndexes,
    KeyedTable,
    buckets_of,
)
from alcid.tables.paimon.keyed.bucket_upsert import Batch, upsert_bucket
from alcid.tables.paimon.keyed.commit import (
    AppliedChanges,
    BucketWork,
    CommitIdentity,
    apply_changes,
)
from alcid.tables.paimon.merge_on_read import Kinds, parse_kinds
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.options import (
    TableOptions,
    WriteOperation,
    require_rows_writable,
)
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import EMPTY, pack_rows
from alcid.tables.paimon.new_files import count_skipped, encoding_of, writing_options
from alcid.tables.reports import UpsertReport
from alcid.tables.rows import Routed, RowSource
from alcid.tables.schema import TargetColumns

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

_REMOTE_THREADS = 16  # which mostly wait for the network


@dataclass(frozen=True, slots=True, eq=False)
class BucketRows:
    """The rows of one bucket, in the order of their arrival."""

    bucket: Bucket
    batch: Batch
    new_hashes: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class _Partitions:
    """The partitions of rows."""

    codes: Int64Array
    """For each row the number of its partition."""
    packed: Sequence[bytes]
    hashes: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class UpsertJob:
    """The work of every worker; it can be pickled."""

    keyed: KeyedTable
    columns: TargetColumns
    """All columns of the table."""
    kind_column: tuple[int, str] | None
    """Position and name of the input column with row kinds; None: all rows are put."""
    buckets: Buckets
    """The buckets of the table."""
    hash_indexes: HashIndexes
    routing: Routing
    looks_up: bool
    """Whether older rows are looked up, and superseded in the same upsert."""

    def route(self, rows: pa.Table) -> Routed:
        """Find the buckets and channels of rows.

        Args:
            rows: Rows as `TargetColumns.rows` returns them.

        Raises:
            UnsupportedError: A partition has another number of buckets than the table.
        """
        schema, options = self.keyed.schema, self.keyed.options
        is_dynamic = options.bucket < 0
        names = schema.key_columns if is_dynamic or not options.bucket_key else options.bucket_key
        hashes = hash_rows(
            [rows.column(name) for name in names], [schema.types[name] for name in names]
        )
        partitions = self._partitions(rows)
        if is_dynamic:
            buckets = self._existing_buckets(partitions, hashes)
            numbers = np.where(buckets == NEW_KEY, np.abs(hashes).view(np.uint32), buckets)
        else:
            self._check_buckets(partitions)
            buckets = numbers = fixed_bucket(hashes, options.bucket)
        workers = numbers % self.routing.assigners
        channels = (self._starts(partitions)[partitions.codes] + workers) % self.routing.channels
        return Routed(hashes, buckets, channels.astype(np.int32))

    def parts(
        self, rows: pa.Table, kinds: Kinds, routed: Routed, channel: int = 0
    ) -> Iterator[BucketRows]:
        """Split the rows of a channel by bucket, and assign buckets to new keys.

        Args:
            rows: Rows as `TargetColumns.rows` returns them.
            kinds: Their row kinds.
            routed: The result of `route`, and the order of arrival.
            channel: The number of the channel.

        Raises:
            UnsupportedError: A text is longer than its column allows.
            LimitError, OptionError: There is no room for new keys.
        """
        check_lengths(rows, self.keyed.schema)
        partitions = self._partitions(rows)
        numbers, new = self._assign(partitions, routed, channel)
        arrival = () if routed.arrival is None else (routed.arrival,)
        order = np.lexsort((*arrival, numbers, partitions.codes))
        starts = np.flatnonzero(changes(partitions.codes[order]) | changes(numbers[order]))
        combined = rows.combine_chunks()
        for positions in np.split(order, starts[1:]):
            first = positions[0]
            bucket_id = partitions.packed[partitions.codes[first]], int(numbers[first])
            yield BucketRows(
                self.buckets[bucket_id],
                Batch(combined, kinds, positions),
                new.get(bucket_id, np.zeros(0, np.int32)),
            )

    @property
    def key_columns(self) -> Sequence[str]:
        """The primary key, with its partition columns."""
        return self.keyed.schema.primary_keys

    @property
    def channels(self) -> int:
        """How many tasks share the buckets."""
        return self.routing.channels

    def write_rows(
        self, columns: Sequence[pa.ChunkedArray], routed: Routed | None = None, threads: int = 1
    ) -> Iterator[BucketChange]:
        """Write the rows of a channel, or all of them; see `KeyedRowWriter`."""
        count = sum(source is not None for source in self.columns.sources)
        rows = self.columns.rows(columns[:count])
        kinds = np.zeros(len(rows), np.int8)
        if self.kind_column is not None:
            kinds = parse_kinds(columns[count], column=self.kind_column[1])
        channel = 0 if routed is None else int(routed.channels[0])
        routed = self.route(rows) if routed is None else routed
        yield from self.write(self.parts(rows, kinds, routed, channel), threads)

    def write(self, parts: Iterable[BucketRows], threads: int) -> Iterator[BucketChange]:
        """Write the rows of buckets; nothing is committed.

        Args:
            parts: The rows of each bucket.
            threads: Number of threads; there are more if the storage is remote.
        """
        threads = max(threads, _REMOTE_THREADS) if self.keyed.storage.remote else threads
        with closing(in_order(self._write, parts, threads)) as changes:
            yield from changes

    def _write(self, part: BucketRows) -> BucketChange:
        return upsert_bucket(
            self.keyed, part.bucket, part.batch, part.new_hashes, looks_up=self.looks_up
        )

    def _partitions(self, rows: pa.Table) -> _Partitions:
        schema = self.keyed.schema
        columns = [rows.column(name) for name in schema.partition_keys]
        if not columns:
            codes = np.zeros(len(rows), np.int64)
            return _Partitions(codes, [EMPTY], np.array([EMPTY_ROW_HASH], np.int32))
        codes = rank_rows(columns, len(rows))
        first = np.unique(codes, return_index=True)[1]
        values = [column.take(pa.array(first)) for column in columns]
        return _Partitions(
            codes,
            pack_rows(values, schema.partition_types),
            hash_rows(values, schema.partition_types),
        )

    def _starts(self, partitions: _Partitions) -> Int32Array:
        """The first channel of each partition, which spreads many small ones."""
        return fixed_bucket(partitions.hashes, self.routing.channels)

    def _existing_buckets(self, partitions: _Partitions, hashes: Int32Array) -> Int32Array:
        buckets = np.full(len(hashes), NEW_KEY, np.int32)
        for rows, code in _by_code(partitions):
            buckets[rows] = self.hash_indexes.find(partitions.packed[code], hashes[rows])
        return buckets

    def _check_buckets(self, partitions: _Partitions) -> None:
        expected = self.keyed.options.bucket
        for partition in partitions.packed:
            for bucket in self.buckets.of_partition(partition).values():
                for file in bucket.files:
                    if file.entry.total_buckets != expected:
                        raise UnsupportedError(
                            f"bucket={expected}: {file.path} is one of {file.entry.total_buckets} "
                            "buckets; rewrite its partition first"
                        )

    def _assign(
        self, partitions: _Partitions, routed: Routed, channel: int
    ) -> tuple[Int32Array, dict[BucketId, Int32Array]]:
        """The bucket of every row, and the hashes that are new to buckets."""
        buckets, new = routed.buckets.copy(), dict[BucketId, Int32Array]()
        if self.keyed.options.bucket > 0:
            return buckets, new
        options = self.keyed.options.dynamic_buckets()
        starts = self._starts(partitions)
        # Channels are counted from the first of the partition: its hash does not matter here.
        within = Routing(self.routing.assigners, self.routing.assigners)
        for rows, code in _by_code(partitions):
            new_rows = rows[buckets[rows] == NEW_KEY]
            if not len(new_rows):
                continue
            partition = partitions.packed[code]
            worker = (channel - int(starts[code])) % self.routing.channels
            assigner = BucketAssigner(options, worker, within, partition_hash=0)
            for number, bucket in self.buckets.of_partition(partition).items():
                assigner.restore_count(number, sum(entry.rows for entry in bucket.hashes))
            buckets[new_rows] = assigner.assign(routed.hashes[new_rows])
            for number, hashes in assigner.new_hashes().items():
                new[partition, number] = hashes
        return buckets, new


def _by_code(partitions: _Partitions) -> Iterator[tuple[Int64Array, int]]:
    """The rows of each partition, and its number."""
    if len(partitions.packed) == 1:
        yield np.arange(len(partitions.codes)), 0
        return
    order = np.argsort(partitions.codes, kind="stable")
    for rows in split_by(order, partitions.codes[order]):
        yield rows, int(partitions.codes[rows[0]])


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
        job = _plan(table, rows.schema, plan, rows.parallelism)
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
    )


def compacts(table: OpenPaimonTable, plan: UpsertPlan) -> bool:
    """Whether an upsert compacts its own rows, so that batch readers see them."""
    options = table.snapshot.options
    return options.deletion_vectors and not options.write_only and not plan.write_only


def _plan(
    table: OpenPaimonTable, input_schema: pa.Schema, plan: UpsertPlan, parallelism: int
) -> UpsertJob:
    files = table.snapshot
    keyed = keyed_table(table, "upsert", plan.options)
    buckets = buckets_of(files.state, table_paths(files.schema, files.options))
    kind_column, columns = _columns(input_schema, plan, files.schema, files.options)
    if files.options.bucket < 0:
        routing = Routing.plan(files.options.dynamic_buckets(), parallelism)
    else:
        routing = Routing(parallelism, parallelism)
    return UpsertJob(
        keyed,
        columns,
        kind_column,
        buckets,
        HashIndexes(keyed, buckets),
        routing,
        compacts(table, plan),
    )


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
    )
