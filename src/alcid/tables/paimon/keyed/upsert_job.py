"""Rows find their buckets, and those of a bucket come to one worker.

    rows -> hash of the key -> bucket, if the key is known -> channel -> bucket, if the key is new

A channel is a worker. Each partition is shared out among some channels that follow each other, from
one that its hash tells. The first of them owns every bucket, and gets every new key, whose number
or hash leaves the remainder 0 if divided by how many they are; the next those that leave 1. So new
keys come to who may put them into buckets of its own, one shuffle is enough, and no two workers
write to the same bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.formats.arrays import changes, split_by
from alcid.formats.binary_row import hash_rows
from alcid.formats.binary_row.rows import EMPTY_ROW_HASH
from alcid.formats.buckets import BucketAssigner, BucketOptions, Routing, fixed_bucket
from alcid.paimon_metadata.row_bytes import EMPTY, pack_rows
from alcid.tables.in_order import in_order
from alcid.tables.paimon.key_order import rank_rows
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets
from alcid.tables.paimon.keyed.bucket_upsert import Batch, upsert_bucket
from alcid.tables.paimon.keyed.changes import BucketChange, KeyedTable
from alcid.tables.paimon.keyed.known_buckets import NEW_KEY, KnownBuckets
from alcid.tables.paimon.keyed.row_kinds import Kinds
from alcid.tables.paimon.stored_types import check_lengths
from alcid.tables.target_columns import TargetColumns

__all__ = ["BucketRows", "Routed", "UpsertJob"]

Integers = npt.NDArray[np.int32]

_WAITING = 16  # threads, where most of their time is spent waiting


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """Where rows go."""

    hashes: Integers
    buckets: Integers
    """`NEW_KEY` where the channel is to find one."""
    channels: Integers
    arrival: npt.NDArray[np.int64] | None = None
    """What grows with the time that rows came; None: they are in that order."""


@dataclass(frozen=True, slots=True, eq=False)
class BucketRows:
    """The rows of one bucket, in the order of their arrival."""

    bucket: Bucket
    batch: Batch
    new_hashes: Integers


@dataclass(frozen=True, slots=True, eq=False)
class _Partitions:
    """The partitions of rows."""

    codes: npt.NDArray[np.int64]
    """The place of each row's among the packed ones."""
    packed: Sequence[bytes]
    hashes: Integers


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

    def _starts(self, partitions: _Partitions) -> Integers:
        """The first channel of each partition: many small ones do not all go to the same."""
        return fixed_bucket(partitions.hashes, self.routing.channels)

    def _known(self, partitions: _Partitions, hashes: Integers) -> Integers:
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
    ) -> tuple[Integers, dict[tuple[bytes, int], Integers]]:
        """The bucket of every row, and the hashes that are new to buckets."""
        buckets, new = routed.buckets.copy(), dict[tuple[bytes, int], Integers]()
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
