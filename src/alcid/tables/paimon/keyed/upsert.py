"""`t.upsert(rows)`: rows take the place of those of their key, or delete them.

Rows find their buckets, and those of a bucket come to one worker.

    rows -> hash of the key -> bucket, if the key is known -> channel -> bucket, if the key is new

A channel is a worker. Each partition is shared out among some channels that follow each other, from
one that its hash tells. The first of them owns every bucket, and gets every new key, whose number
or hash leaves the remainder 0 if divided by how many they are; the next those that leave 1. So new
keys come to who may put them into buckets of its own, one shuffle is enough, and no two workers
write to the same bucket.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid._arrays import Int32Array, changes, split_by
from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.binary_row import hash_rows
from alcid.formats.binary_row.rows import EMPTY_ROW_HASH
from alcid.formats.buckets import (
    BucketAssigner,
    BucketOptions,
    Routing,
    fixed_bucket,
)
from alcid.index.bundle import PayloadKind
from alcid.options import OptionValue, match_column
from alcid.storage.threads import in_order
from alcid.tables.key_order import rank_rows
from alcid.tables.paimon.data_files import check_lengths, fit_stored, table_paths
from alcid.tables.paimon.keyed.bucket import (
    NEW_KEY,
    Bucket,
    BucketChange,
    Buckets,
    KeyedTable,
    KnownBuckets,
    buckets_of,
)
from alcid.tables.paimon.keyed.bucket_upsert import Batch, upsert_bucket
from alcid.tables.paimon.keyed.commit import Applied, Changing, CommitAs, apply_changes
from alcid.tables.paimon.merge_on_read import Kinds, parse_kinds
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import EMPTY, pack_rows
from alcid.tables.paimon.write.index_plan import wanted_specs
from alcid.tables.paimon.write.writable import (
    WriteOperation,
    encoding_of,
    require_rows_writable,
    writing_options,
)
from alcid.tables.reports import SkippedCounter, UpsertReport
from alcid.tables.schema import TargetColumns

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = [
    "BucketRows",
    "Routed",
    "UpsertJob",
    "UpsertPlan",
    "compacts",
    "keyed_table",
    "upsert",
    "upsert_rows",
]

_WAITING = 16  # threads, where most of their time is spent waiting


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """Where rows go."""

    hashes: Int32Array
    buckets: Int32Array
    """`NEW_KEY` where the channel is to find one."""
    channels: Int32Array
    arrival: npt.NDArray[np.int64] | None = None
    """What grows with the time that rows came; None: they are in that order."""


@dataclass(frozen=True, slots=True, eq=False)
class BucketRows:
    """The rows of one bucket, in the order of their arrival."""

    bucket: Bucket
    batch: Batch
    new_hashes: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class _Partitions:
    """The partitions of rows."""

    codes: npt.NDArray[np.int64]
    """The place of each row's among the packed ones."""
    packed: Sequence[bytes]
    hashes: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class UpsertJob:
    """What every worker does with its rows; it pickles."""

    keyed: KeyedTable
    columns: TargetColumns
    """All columns of the table."""
    kind_column: tuple[int, str] | None
    """The place among the given columns of the one that says what a row does, and its name. None:
    all rows are put."""
    buckets: Buckets
    """The table as it is."""
    known: KnownBuckets
    routing: Routing
    looks_up: bool
    """Whether older rows are looked for, to be marked in the same upsert."""

    def route(self, rows: pa.Table) -> Routed:
        """Where rows go.

        Args:
            rows: As `TargetColumns.rows` gives them.

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
            buckets = self._known(partitions, hashes)
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
        """All rows of a channel by bucket; new keys find theirs.

        Args:
            rows: As `TargetColumns.rows` gives them.
            kinds: What they do.
            routed: What `route` said of them, and when they came.
            channel: The number of the channel.

        Raises:
            UnsupportedError: A text is longer than the table has it.
            LimitError, OptionError: There is no room for new keys.
        """
        check_lengths(rows, self.keyed.schema)
        partitions = self._partitions(rows)
        numbers, new = self._assign(partitions, routed, channel)
        arrival = () if routed.arrival is None else (routed.arrival,)
        order = np.lexsort((*arrival, numbers, partitions.codes))
        starts = np.flatnonzero(changes(partitions.codes[order]) | changes(numbers[order]))
        whole = rows.combine_chunks()
        for places in np.split(order, starts[1:]):
            place = partitions.packed[partitions.codes[places[0]]], int(numbers[places[0]])
            yield BucketRows(
                self.buckets[place],
                Batch(whole, kinds, places),
                new.get(place, np.zeros(0, np.int32)),
            )

    def write(self, parts: Iterable[BucketRows], threads: int) -> Iterator[BucketChange]:
        """Write the rows of buckets; nothing is committed.

        Args:
            parts: The buckets.
            threads: How many to use; more where a network answers.
        """
        threads = max(threads, _WAITING) if self.keyed.storage.remote else threads
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
        """The first channel of each partition: many small ones do not all go to the same."""
        return fixed_bucket(partitions.hashes, self.routing.channels)

    def _known(self, partitions: _Partitions, hashes: Int32Array) -> Int32Array:
        found = np.full(len(hashes), NEW_KEY, np.int32)
        for rows, partition in _by_code(partitions):
            found[rows] = self.known.find(partitions.packed[partition], hashes[rows])
        return found

    def _check_buckets(self, partitions: _Partitions) -> None:
        expected = self.keyed.options.bucket
        for partition in partitions.packed:
            for bucket in self.buckets.of_partition(partition).values():
                for one in bucket.files:
                    if one.entry.total_buckets != expected:
                        raise UnsupportedError(
                            f"bucket={expected}: {one.path} is one of {one.entry.total_buckets} "
                            "buckets; rewrite its partition first"
                        )

    def _assign(
        self, partitions: _Partitions, routed: Routed, channel: int
    ) -> tuple[Int32Array, dict[tuple[bytes, int], Int32Array]]:
        """The bucket of every row, and the hashes that are new to buckets."""
        buckets, new = routed.buckets.copy(), dict[tuple[bytes, int], Int32Array]()
        if self.keyed.options.bucket > 0:
            return buckets, new
        options = BucketOptions.parse(self.keyed.options.given)
        starts = self._starts(partitions)
        # Counted from the first channel of a partition, so that its hash does not matter.
        within = Routing(self.routing.assigners, self.routing.assigners)
        for rows, code in _by_code(partitions):
            unknown = rows[buckets[rows] == NEW_KEY]
            if not len(unknown):
                continue
            partition = partitions.packed[code]
            worker = (channel - int(starts[code])) % self.routing.channels
            assigner = BucketAssigner(options, worker, within, partition_hash=0)
            for number, bucket in self.buckets.of_partition(partition).items():
                assigner.restore_count(number, sum(one.rows for one in bucket.hashes))
            buckets[unknown] = assigner.assign(routed.hashes[unknown])
            for number, hashes in assigner.new_hashes().items():
                new[partition, number] = hashes
        return buckets, new


def _by_code(partitions: _Partitions) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """The rows of each partition, and its place."""
    if len(partitions.packed) == 1:
        yield np.arange(len(partitions.codes)), 0
        return
    order = np.argsort(partitions.codes, kind="stable")
    for rows in split_by(order, partitions.codes[order]):
        yield rows, int(partitions.codes[rows[0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertPlan:
    """How rows are to be upserted."""

    row_kind: str | None = None
    """The column that says what a row does; by default that of the option `rowkind.field`."""
    write_only: bool = False
    """Leave the rows on level 0, for another job to compact."""
    options: Mapping[str, OptionValue] | None = None
    """The indexes to build; by default those of the table."""
    commit: CommitAs | None = None
    """In whose name; by default in a new one."""


_DEFAULT = UpsertPlan()


def upsert(table: OpenPaimonTable, rows: Any, plan: UpsertPlan = _DEFAULT) -> UpsertReport:
    """Upsert an Arrow table or record batch in this process, or a DataFrame; see `upsert_rows`."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _upsert_arrow(table, rows, plan)
    if not hasattr(rows, "sparkSession"):
        raise UnsupportedError(
            f"rows: found {type(rows).__name__}, expected a Spark DataFrame or an Arrow table"
        )
    return table.engine.upsert(table, rows, plan)


def _upsert_arrow(
    table: OpenPaimonTable, rows: pa.Table | pa.RecordBatch, plan: UpsertPlan
) -> UpsertReport:
    given = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows

    def write(job: UpsertJob) -> Iterator[BucketChange]:
        if not given.num_rows:
            return
        places = [place for place in job.columns.sources if place is not None]
        values = job.columns.rows([given.column(place) for place in places])
        kinds = np.zeros(len(values), np.int8)
        if job.kind_column is not None:
            place, name = job.kind_column
            kinds = parse_kinds(given.column(place), column=name)
        yield from job.write(job.parts(values, kinds, job.route(values)), os.cpu_count() or 1)

    return upsert_rows(table, given.schema, plan, write)


def upsert_rows(
    table: OpenPaimonTable,
    given: pa.Schema,
    plan: UpsertPlan,
    write: Callable[[UpsertJob], Iterable[BucketChange]],
    *,
    parallelism: int = 1,
) -> UpsertReport:
    """Upsert rows: each takes the place of that of its key, or deletes it.

    Args:
        table: The table; it is read anew, which nobody else may do meanwhile.
        given: The columns of the rows. They go by name, narrower types are widened, missing ones
            are null.
        plan: How.
        write: Writes the rows of all buckets, and tells of each. It is called again where another
            was faster; what it told is removed then, and if it raises.
        parallelism: How many workers there are to share the buckets among.

    Raises:
        ColumnError: A column that the table does not have, or one that is missing and NOT NULL.
        UnsupportedError: A table without a primary key, an option that cannot be followed, a type
            or a value that does not go into the table.
        ConflictError: Others were faster again and again.
    """
    begin = time.monotonic()

    def changing() -> Changing:
        job = _plan(table, given, plan, parallelism)
        return Changing(job.keyed, job.looks_up, lambda: write(job))

    with table.engine.settings():
        applied = apply_changes(table, changing, plan.commit)
    return _report(applied, time.monotonic() - begin)


def keyed_table(
    table: OpenPaimonTable,
    operation: WriteOperation,
    options: Mapping[str, OptionValue] | None = None,
) -> KeyedTable:
    """What work on the buckets of a table needs to know of it.

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
    """Whether an upsert lifts its rows by itself, so that batch reads see them."""
    options = table.snapshot.options
    return options.deletion_vectors and not options.write_only and not plan.write_only


def _plan(
    table: OpenPaimonTable, given: pa.Schema, plan: UpsertPlan, parallelism: int
) -> UpsertJob:
    files = table.snapshot
    keyed = keyed_table(table, "upsert", plan.options)
    buckets = buckets_of(files.state, table_paths(files.schema, files.options))
    kind_column, columns = _columns(given, plan, files.schema, files.options)
    if files.options.bucket < 0:
        routing = Routing.plan(BucketOptions.parse(files.options.given), parallelism)
    else:
        routing = Routing(parallelism, parallelism)
    return UpsertJob(
        keyed,
        columns,
        kind_column,
        buckets,
        KnownBuckets(keyed, buckets),
        routing,
        compacts(table, plan),
    )


def _columns(
    given: pa.Schema, plan: UpsertPlan, schema: TableSchema, options: TableOptions
) -> tuple[tuple[int, str] | None, TargetColumns]:
    """The column that says what rows do, and those of the table, by their places."""
    wanted = plan.row_kind or options.rowkind_field
    if wanted is None:
        return None, fit_stored(given, schema)
    name = match_column(wanted, given.names)
    if name is None:
        raise ColumnError(f"row kinds: no column {wanted} among {', '.join(given.names)}")
    place = given.names.index(name)
    if match_column(name, schema.names) is not None:
        return (place, name), fit_stored(given, schema)
    fitted = fit_stored(given.remove(place), schema)
    sources = (one if one is None or one < place else one + 1 for one in fitted.sources)
    return (place, name), replace(fitted, sources=tuple(sources))


def _report(applied: Applied, seconds: float) -> UpsertReport:
    skipped, changes = SkippedCounter(), applied.changes
    files = [one for change in changes for one in (*change.upserts, *change.deletes)]
    for one in files:
        for column, index_type, reason in one.skipped:
            skipped.add(PayloadKind.index(column, index_type), reason, one.paths[0])
    return UpsertReport(
        rows=sum(one.entry.file.rows for change in changes for one in change.upserts),
        deletes=sum(one.entry.file.rows for change in changes for one in change.deletes),
        replaced=applied.replaced,
        files=len(files),
        buckets=len(changes),
        bytes_written=sum(one.entry.file.size for one in files),
        index_bytes=sum(one.index_bytes for one in files),
        snapshot_id=applied.snapshot_id,
        is_compacted=applied.is_compacted,
        seconds=seconds,
        skipped=skipped.found,
    )
