"""The rows of an upsert that belong to one bucket: which are written, and which they supersede.

    rows in the order of their arrival
      -> one row of each key: the greatest by `sequence.field`, then the last
      -> sorted by key
      -> compared with the older row of the key, if there is one: the greater by `sequence.field`,
         then the new one
      -> files of rows that are put, and files of rows that delete

Where the older row wins, the new one is dropped before anything is written. Files of rows that
delete are removed when the bucket is compacted, while the others only change their level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from alcid._arrays import Int32Array, Int64Array, IntArray
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.tables.key_order import rank_rows, sort_rows
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketChange,
    BucketCompaction,
    KeyedTable,
    index_file_path,
    read_hashes,
    read_vectors,
    write_hashes,
    write_vectors,
)
from alcid.tables.paimon.keyed.bucket_compaction import count_levels
from alcid.tables.paimon.keyed.key_files import (
    KeyReader,
    SortedRun,
    concat_runs,
    take_rows,
    write_sorted_run,
)
from alcid.tables.paimon.keyed.older_rows import OlderRows, VectorUpdate
from alcid.tables.paimon.keyed.spill import Spill, SpilledRows, new_folder
from alcid.tables.paimon.merge_on_read import (
    DELETE_KIND,
    Kinds,
    are_deletes,
    is_effective,
)
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.tables.paimon.new_files import WrittenData

_APPENDED = 0  # the file source of files that are not of a compaction


def free_level(keyed: KeyedTable, bucket: Bucket) -> int:
    """The level for a new run; 0: there is none until runs are merged."""
    return bucket.free_level(count_levels(bucket, keyed.options.num_levels))


def write_change(
    keyed: KeyedTable,
    bucket: Bucket,
    chunks: Iterable[SortedRun],
    *,
    new_hashes: Int32Array | None = None,
    vectors: VectorUpdate | None = None,
) -> BucketChange:
    """Write a run to level 0, and prepare its compaction.

    Args:
        keyed: The table.
        bucket: The bucket.
        chunks: The rows of a run in consecutive parts.
        new_hashes: Hashes of keys that are new to the bucket.
        vectors: The rows that the run supersedes, which are known once all chunks are read; None:
            not known at all, so no compaction is prepared.
    """
    with _Deletes(keyed, bucket) as deletes:
        upserts, removals = (
            tuple(write_sorted_run(keyed, bucket, rows, level=0, source=_APPENDED))
            for rows in (deletes.split(chunks), deletes.runs())
        )
    paths = [path for file in (*upserts, *removals) for path in file.paths]
    hashes = None
    if new_hashes is not None and len(new_hashes):
        hashes = write_hashes(keyed, bucket, read_hashes(keyed, bucket) | HashIndex(new_hashes))
        paths.append(index_file_path(keyed, bucket, hashes))
    compaction = None
    if vectors is not None:
        compaction = _compaction(keyed, bucket, upserts, removals, vectors)
        paths.extend(compaction.written)
    return BucketChange(bucket, upserts, removals, hashes, compaction, tuple(paths))


class _Deletes:
    """The rows of a run that delete, which wait until the others are written."""

    def __init__(self, keyed: KeyedTable, bucket: Bucket) -> None:
        self._bucket, self._memory = bucket, keyed.memory
        self._key_columns = keyed.schema.key_columns
        self._waiting: list[SortedRun] = []
        self._waiting_bytes = 0
        self._spill: Spill | None = None
        self._folder = ExitStack()

    def __enter__(self) -> _Deletes:
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.close()

    def split(self, chunks: Iterable[SortedRun]) -> Iterator[SortedRun]:
        """The rows that do not delete."""
        for chunk in chunks:
            is_delete = are_deletes(chunk.kinds)
            if is_delete.any():
                self._wait(chunk.filter(is_delete))
            yield chunk.filter(~is_delete)

    def runs(self) -> Iterator[SortedRun]:
        """The rows that delete, in the same order."""
        if self._spill is not None:
            self._flush(self._spill)
            for part in self._spill.read(self._bucket.id):
                yield part.run
        yield from self._waiting

    def _wait(self, run: SortedRun) -> None:
        self._waiting.append(run)
        self._waiting_bytes += run.rows.nbytes
        if self._waiting_bytes > self._memory.buffered_bytes:
            if self._spill is None:
                folder = self._folder.enter_context(new_folder())
                self._spill = Spill(folder, self._key_columns, self._memory)
            self._flush(self._spill)

    def _flush(self, spill: Spill) -> None:
        if self._waiting:
            run = concat_runs(self._waiting)
            spill.write([(self._bucket.id, SpilledRows(run, run.numbers, self._key_columns))])
        self._waiting, self._waiting_bytes = [], 0


def _compaction(
    keyed: KeyedTable,
    bucket: Bucket,
    upserts: tuple[WrittenData, ...],
    deletes: tuple[WrittenData, ...],
    update: VectorUpdate,
) -> BucketCompaction:
    """Move a new run above level 0, and delete the rows that it supersedes."""
    level = free_level(keyed, bucket)
    new = [file.placed for file in upserts]
    moved = [replace(file, entry=file.entry.on_level(level)) for file in new]
    vectors: IndexEntry | None = bucket.vectors[0] if bucket.vectors else None
    paths: tuple[str, ...] = ()
    if update.added or len(bucket.vectors) > 1:
        vectors = write_vectors(keyed, bucket, update.merged())
        if vectors is not None:
            paths = (index_file_path(keyed, bucket, vectors),)
    removed = (*new, *(file.placed for file in deletes))
    return BucketCompaction(bucket, removed, tuple(moved), vectors, paths, update.added_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of one bucket among those of others, in the order of their arrival."""

    rows: pa.Table
    """Rows of any bucket, in the columns of the table."""
    kinds: Kinds
    positions: Int64Array
    """The rows of the bucket."""


def upsert_bucket(
    keyed: KeyedTable,
    bucket: Bucket,
    chunks: Iterable[SortedRun],
    new_hashes: Int32Array,
    *,
    looks_up: bool,
) -> BucketChange:
    """Write the rows of an upsert that belong to a bucket; nothing is committed.

    Args:
        keyed: The table.
        bucket: The bucket.
        chunks: The newest row of each key, in the order of the keys, in consecutive parts.
        new_hashes: Hashes of keys that are new to it, if its table has dynamic buckets.
        looks_up: Look older rows up. That is left to the compaction where it has to merge all of
            level 0 anyway, or to make room.

    Raises:
        FormatError: A file of the bucket is damaged.
        FileGoneError: Another writer has replaced a file.
    """
    vectors = None
    if looks_up and not bucket.level_zero and free_level(keyed, bucket):
        older = OlderRows(keyed, bucket)
        chunks, vectors = older.supersede(chunks), older.update
    return write_change(keyed, bucket, chunks, new_hashes=new_hashes, vectors=vectors)


def delete_from_bucket(
    keyed: KeyedTable, bucket: Bucket, rows: Mapping[str, DeletionVector], *, looks_up: bool
) -> BucketChange:
    """Write rows that delete live rows whose positions are known; nothing is committed.

    Args:
        keyed: The table.
        bucket: The bucket.
        rows: Live rows, by the names of their files.
        looks_up: As for `upsert_bucket`.

    Raises:
        FormatError: A file of the bucket is damaged.
        FileGoneError: Another writer has replaced a file.
    """
    reader = KeyReader(keyed)
    files = [file for file in bucket.files if file.file.name in rows]
    live = concat_runs(reader.take(file, rows[file.file.name].to_numpy()) for file in files)
    keys = [live.rows.column(name) for name in keyed.schema.key_columns]
    order, starts = sort_rows(keys, len(live))
    distinct = order[starts]  # a key that is live twice, by a fault, is deleted once
    run = replace(
        live.take(distinct),
        numbers=bucket.next_sequence + np.arange(len(distinct), dtype=np.int64),
        kinds=np.full(len(distinct), DELETE_KIND, np.int8),
    )
    vectors = None
    if looks_up and not bucket.level_zero:
        vectors = VectorUpdate(read_vectors(keyed, bucket), rows)
    return write_change(keyed, bucket, [run], vectors=vectors)


def sorted_run(keyed: KeyedTable, batch: Batch, first_number: int) -> tuple[SortedRun, Int64Array]:
    """The newest row of each key, in the order of the keys; and the positions of these rows."""
    numbers = np.flatnonzero(is_effective(batch.kinds[batch.positions], keyed.options))
    newest = _newest(keyed, batch.rows, batch.positions[numbers])
    numbers = numbers[newest]
    positions = batch.positions[numbers]
    rows = take_rows(batch.rows, positions)
    return SortedRun(rows, first_number + numbers, batch.kinds[positions]), positions


def merge_spilled(keyed: KeyedTable, parts: Sequence[SpilledRows]) -> SpilledRows:
    """The newest row of each key of several sorted runs, in the order of the keys."""
    run = concat_runs(part.run for part in parts)
    arrival = np.concatenate([part.arrival for part in parts])
    by_arrival = np.argsort(arrival, kind="stable")
    positions = by_arrival[_newest(keyed, run.rows, by_arrival)]
    return replace(parts[0], run=run.take(positions), arrival=arrival[positions])


def _newest(keyed: KeyedTable, rows: pa.Table, positions: Int64Array) -> IntArray:
    """Which of some rows, in the order of their arrival, is the newest of each key; by key."""
    options, numbers = keyed.options, np.arange(len(positions))
    if options.sequence_field:  # the greater ones behind the others of their key
        fields = _take_columns(rows, options.sequence_field, positions)
        ages = rank_rows(fields, len(positions), descending=options.sequence_descending)
        numbers = np.argsort(ages, kind="stable")
    keys = _take_columns(rows, keyed.schema.key_columns, positions[numbers])
    order, starts = sort_rows(keys, len(positions))
    last = order[np.append(starts[1:], len(order)) - 1] if len(order) else order
    return numbers[last]


def _take_columns(
    rows: pa.Table, names: Iterable[str], positions: Int64Array
) -> list[pa.ChunkedArray]:
    columns: list[pa.ChunkedArray] = take_rows(rows.select(list(names)), positions).columns
    return columns
