"""What the tasks of an upsert do: find the bucket of each row, and write the rows of a channel.

    rows -> hash of the key -> bucket, if the key exists -> channel -> bucket, if the key is new

A channel is a task. Each partition is assigned to some consecutive channels, beginning with one
that its hash determines. The first of them owns all buckets, and gets all new keys, whose number or
hash leaves the remainder 0 when divided by the number of these channels; the next owns those with
remainder 1. So new keys arrive at a task that may add them to its own buckets, and no two tasks
write to the same bucket.

Rows of a channel come in pieces. One piece is sorted and written from memory. Where there are
several, each is sorted and spilled, and the runs of a bucket are merged when it is written: then
rows are the same, and so are sequence numbers, unless rows of one piece arrived after some of a
later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from alcid._arrays import Int32Array, Int64Array, changes, split_by
from alcid.errors import UnsupportedError
from alcid.formats.binary_row import hash_rows
from alcid.formats.binary_row.rows import EMPTY_ROW_HASH
from alcid.formats.buckets import BucketAssigner, Routing, fixed_bucket
from alcid.storage.threads import in_order
from alcid.tables.key_order import rank_rows
from alcid.tables.paimon.data_files import check_lengths
from alcid.tables.paimon.keyed.bucket import Bucket, BucketChange, Buckets, KeyedTable
from alcid.tables.paimon.keyed.bucket_upsert import (
    Batch,
    merge_spilled,
    sorted_run,
    upsert_bucket,
)
from alcid.tables.paimon.keyed.hash_lookup import NEW_KEY, HashIndexes
from alcid.tables.paimon.keyed.key_files import SortedRun
from alcid.tables.paimon.keyed.spill import Spill, SpilledRows, new_folder
from alcid.tables.paimon.merge_on_read import Kinds, parse_kinds
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.statistics import EMPTY, pack_rows
from alcid.tables.rows import Routed, RowPiece
from alcid.tables.schema import TargetColumns

_REMOTE_THREADS = 16  # which mostly wait for the network
_NO_HASHES = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class BucketRows:
    """The rows of one bucket, in the order of their arrival."""

    bucket: Bucket
    batch: Batch
    arrival: Int64Array
    """Numbers that ascend with the arrival of the rows, also from piece to piece."""


@dataclass(frozen=True, slots=True, eq=False)
class _BucketWork:
    """A bucket that is to be written."""

    bucket: Bucket
    chunks: Callable[[], Iterable[SortedRun]]
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
    """The work of every task; it can be pickled."""

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
    lookup_tasks: int = 0
    """How many tasks look keys up in hash indexes; 0: those that read the rows."""

    @property
    def key_columns(self) -> Sequence[str]:
        """The primary key, with its partition columns."""
        return self.keyed.schema.primary_keys

    @property
    def channels(self) -> int:
        """How many tasks share the buckets."""
        return self.routing.channels

    @property
    def piece_bytes(self) -> int:
        """The rows of a channel that are in memory at a time."""
        return self.keyed.memory.buffered_bytes

    def lookup_ranges(self, rows: pa.Table) -> Int64Array:
        """The parts of hash indexes that the keys of rows are looked up in."""
        hashes, partitions = self._hashes(rows), self._partitions(rows)
        ranges = np.zeros(len(hashes), np.int64)
        for own, code in _by_code(partitions):
            packed = partitions.packed[code]
            ranges[own] = self.hash_indexes.range_numbers(packed, hashes[own])
        return ranges

    def route(self, rows: pa.Table) -> Routed:
        """Find the buckets and channels of rows.

        Args:
            rows: Rows as `TargetColumns.rows` returns them.

        Raises:
            UnsupportedError: A partition has another number of buckets than the table.
        """
        options = self.keyed.options
        hashes, partitions = self._hashes(rows), self._partitions(rows)
        if options.bucket < 0:
            buckets = self._existing_buckets(partitions, hashes)
            numbers = np.where(buckets == NEW_KEY, np.abs(hashes).view(np.uint32), buckets)
        else:
            self._check_buckets(partitions)
            buckets = numbers = fixed_bucket(hashes, options.bucket)
        workers = numbers % self.routing.assigners
        channels = (self._starts(partitions)[partitions.codes] + workers) % self.routing.channels
        return Routed(hashes, buckets, channels.astype(np.int32))

    def write_rows(self, pieces: Iterable[RowPiece], threads: int = 1) -> Iterator[BucketChange]:
        """Write the rows of a channel, or all of them; nothing is committed.

        Args:
            pieces: The rows.
            threads: Number of threads; there are more if the storage is remote, and fewer where
                buckets are so large that they have been spilled.

        Raises:
            UnsupportedError: A value does not fit the table.
            LimitError, OptionError: There is no room for new keys.
            StorageError: There is no room to spill rows.
        """
        threads = max(threads, _REMOTE_THREADS) if self.keyed.storage.remote else threads
        channel: Channel | None = None
        spill: Spill | None = None
        with ExitStack() as folders:
            for piece in pieces:
                rows, kinds = self._rows(piece)
                routed = self.route(rows) if piece.routed is None else piece.routed
                if channel is None:
                    channel = Channel(self, 0 if piece.routed is None else int(routed.channels[0]))
                parts = channel.split(rows, kinds, routed)
                if spill is None and piece.is_last:
                    yield from self._write_all(map(channel.batch_work, parts), threads)
                    return
                if spill is None:
                    folder = folders.enter_context(new_folder())
                    spill = Spill(folder, self.keyed.schema.key_columns, self.keyed.memory)
                spill.write(map(channel.spilled, parts))
            if spill is None or channel is None:
                return
            fitting = self.keyed.memory.buffered_bytes // max(spill.largest_bytes, 1)
            works = (channel.spilled_work(spill, bucket) for bucket in spill.buckets)
            yield from self._write_all(works, max(min(threads, fitting), 1))

    def _write_all(self, works: Iterable[_BucketWork], threads: int) -> Iterator[BucketChange]:
        with closing(in_order(self._write, works, threads)) as changed:
            yield from changed

    def _write(self, work: _BucketWork) -> BucketChange:
        return upsert_bucket(
            self.keyed, work.bucket, work.chunks(), work.new_hashes, looks_up=self.looks_up
        )

    def _rows(self, piece: RowPiece) -> tuple[pa.Table, Kinds]:
        """The rows in the columns of the table, and their kinds."""
        count = sum(source is not None for source in self.columns.sources)
        rows = self.columns.rows(piece.columns[:count])
        check_lengths(rows, self.keyed.schema)
        if self.kind_column is None:
            return rows, np.zeros(len(rows), np.int8)
        return rows, parse_kinds(piece.columns[count], column=self.kind_column[1])

    def _hashes(self, rows: pa.Table) -> Int32Array:
        schema, options = self.keyed.schema, self.keyed.options
        is_dynamic = options.bucket < 0
        names = schema.key_columns if is_dynamic or not options.bucket_key else options.bucket_key
        return hash_rows(
            [rows.column(name) for name in names], [schema.types[name] for name in names]
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


class Channel:
    """The rows of a channel, bucket by bucket; it remembers where it has put new keys."""

    def __init__(self, job: UpsertJob, number: int) -> None:
        self._job, self._number = job, number
        self._assigners: dict[bytes, BucketAssigner] = {}
        self._hashes: dict[BucketId, Int32Array] | None = None
        self._arrived = 0
        self._counts: dict[BucketId, int] = {}

    def split(self, rows: pa.Table, kinds: Kinds, routed: Routed) -> Iterator[BucketRows]:
        """Split rows by bucket, and assign buckets to new keys.

        Raises:
            LimitError, OptionError: There is no room for new keys.
        """
        job = self._job
        partitions = job._partitions(rows)
        numbers = self._assign(partitions, routed)
        arrival = routed.arrival
        if arrival is None:
            arrival = np.arange(self._arrived, self._arrived + len(rows))
        self._arrived += len(rows)
        if not len(rows):
            return
        order = np.lexsort((arrival, numbers, partitions.codes))
        starts = np.flatnonzero(changes(partitions.codes[order]) | changes(numbers[order]))
        combined = rows.combine_chunks()
        for positions in np.split(order, starts[1:]):
            first = positions[0]
            bucket_id = partitions.packed[partitions.codes[first]], int(numbers[first])
            yield BucketRows(job.buckets[bucket_id], Batch(combined, kinds, positions), arrival)

    def batch_work(self, rows: BucketRows) -> _BucketWork:
        """The work for a bucket of which all rows are in memory."""
        bucket, keyed = rows.bucket, self._job.keyed
        return _BucketWork(
            bucket,
            lambda: [sorted_run(keyed, rows.batch, bucket.next_sequence)[0]],
            self._new_hashes(bucket),
        )

    def spilled(self, rows: BucketRows) -> tuple[BucketId, SpilledRows]:
        """A sorted run of a bucket, to be spilled."""
        bucket, keyed = rows.bucket, self._job.keyed
        before = self._counts.get(bucket.id, 0)
        self._counts[bucket.id] = before + len(rows.batch.positions)
        run, positions = sorted_run(keyed, rows.batch, bucket.next_sequence + before)
        return bucket.id, SpilledRows(run, rows.arrival[positions], keyed.schema.key_columns)

    def spilled_work(self, spill: Spill, bucket_id: BucketId) -> _BucketWork:
        """The work for a bucket whose rows are spilled."""
        bucket, keyed = self._job.buckets[bucket_id], self._job.keyed

        def chunks() -> Iterator[SortedRun]:
            for part in spill.merge(bucket_id, lambda parts: merge_spilled(keyed, parts)):
                yield part.run

        return _BucketWork(bucket, chunks, self._new_hashes(bucket))

    def _assign(self, partitions: _Partitions, routed: Routed) -> Int32Array:
        """The bucket of every row."""
        buckets = routed.buckets.copy()
        if self._job.keyed.options.bucket > 0:
            return buckets
        for rows, code in _by_code(partitions):
            new_rows = rows[buckets[rows] == NEW_KEY]
            if len(new_rows):
                assigner = self._assigner(partitions, code)
                buckets[new_rows] = assigner.assign(routed.hashes[new_rows])
        return buckets

    def _assigner(self, partitions: _Partitions, code: int) -> BucketAssigner:
        """What assigns buckets to new keys of a partition."""
        partition, job = partitions.packed[code], self._job
        if partition not in self._assigners:
            start = int(job._starts(partitions)[code])
            # Channels are counted from the first of the partition: its hash does not matter here.
            within = Routing(job.routing.assigners, job.routing.assigners)
            assigner = BucketAssigner(
                job.keyed.options.dynamic_buckets(),
                (self._number - start) % job.routing.channels,
                within,
                partition_hash=0,
            )
            for number, bucket in job.buckets.of_partition(partition).items():
                assigner.restore_count(number, sum(entry.rows for entry in bucket.hashes))
            self._assigners[partition] = assigner
        return self._assigners[partition]

    def _new_hashes(self, bucket: Bucket) -> Int32Array:
        """The hashes of keys that are new to a bucket, once all rows are split."""
        if self._hashes is None:
            self._hashes = {
                (partition, number): hashes
                for partition, assigner in self._assigners.items()
                for number, hashes in assigner.new_hashes().items()
            }
        return self._hashes.get(bucket.id, _NO_HASHES)


def _by_code(partitions: _Partitions) -> Iterator[tuple[Int64Array, int]]:
    """The rows of each partition, and its number."""
    if len(partitions.packed) == 1:
        yield np.arange(len(partitions.codes)), 0
        return
    order = np.argsort(partitions.codes, kind="stable")
    for rows in split_by(order, partitions.codes[order]):
        yield rows, int(partitions.codes[rows[0]])
