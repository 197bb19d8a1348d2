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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int32Array, Int64Array, IntArray, plain
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.tables.key_order import Column, join_columns, rank_rows, sort_rows
from alcid.tables.paimon.data_files import PlacedFile
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
from alcid.tables.paimon.merge_on_read import (
    DELETE_KIND,
    KeyRows,
    Kinds,
    are_deletes,
    is_effective,
    superseded_rows,
)
from alcid.tables.paimon.metadata.statistics import unpack_rows
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.tables.paimon.new_files import WrittenData

_APPENDED = 0  # the file source of files that are not of a compaction


@dataclass(frozen=True, slots=True, eq=False)
class VectorUpdate:
    """The deletion vectors of a bucket, and the live rows to delete besides; by file name."""

    existing: Mapping[str, DeletionVector]
    added: Mapping[str, DeletionVector] = field(default_factory=dict)

    @property
    def added_rows(self) -> int:
        """How many rows are deleted besides."""
        return sum(map(len, self.added.values()))

    def merged(self) -> dict[str, DeletionVector]:
        """The new deletion vectors."""
        none = DeletionVector()
        return {
            **self.existing,
            **{name: self.existing.get(name, none) | rows for name, rows in self.added.items()},
        }


def free_level(keyed: KeyedTable, bucket: Bucket) -> int:
    """The level for a new run; 0: there is none until runs are merged."""
    return bucket.free_level(count_levels(bucket, keyed.options.num_levels))


def write_change(
    keyed: KeyedTable,
    bucket: Bucket,
    run: SortedRun,
    *,
    new_hashes: Int32Array | None = None,
    vectors: VectorUpdate | None = None,
) -> BucketChange:
    """Write a run to level 0, and prepare its compaction.

    Args:
        keyed: The table.
        bucket: The bucket.
        run: The rows.
        new_hashes: Hashes of keys that are new to the bucket.
        vectors: The rows that the run supersedes; None: unknown, so no compaction is prepared.
    """
    deletes = are_deletes(run.kinds)
    upserts, removals = (
        tuple(write_sorted_run(keyed, bucket, [rows], level=0, source=_APPENDED))
        for rows in (run.filter(~deletes), run.filter(deletes))
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


_Pairs: TypeAlias = tuple[IntArray, IntArray]
"""Positions of an older file, and for each the new row of the same key."""

_NEWEST = np.iinfo(np.int64).max
_FEW = 4  # new rows are few if there are so many times as many older ones


@dataclass(frozen=True, slots=True, eq=False)
class KeyMatches:
    """Older rows with the keys of new ones."""

    superseded: list[DeletionVector]
    """For each older file the rows that are not live any more, without those deleted before."""
    is_outdated: BoolArray
    """The new rows that an older one beats by `sequence.field`."""
    is_existing: BoolArray
    """The new rows whose key has a live older row."""


def look_up(old: Sequence[KeyRows], new: KeyRows, *, descending: bool = False) -> KeyMatches:
    """Find the older rows that new rows supersede.

        older file     new rows      found
        1  fig         2  plum       row 1 of the file is superseded
        2  pear        4  lime       key 4 is new
        3  apple

    Without `sequence.field` a new row supersedes all older ones of its key, as in Java, whatever
    their sequence numbers. With it, an older row may win.

    Args:
        old: Files in the order in which they were added. Of a key that is live in several of them,
            at most one row stays.
        new: Rows with distinct keys. Those that delete supersede older rows as others do.
        descending: `sequence.field.sort-order`.

    Raises:
        FormatError: A row has no sequence number or kind.
        UnsupportedError: A key or sequence field is of a type that has no order, or of several.

    >>> old = KeyRows([pa.array([1, 2, 3])], np.array([6, 7, 8]), np.zeros(3, np.int8), level=5)
    >>> new = KeyRows([pa.array([2, 4])], np.array([9, 10]), np.zeros(2, np.int8), level=0)
    >>> matches = look_up([old], new)
    >>> matches.superseded, matches.is_outdated.tolist(), matches.is_existing.tolist()
    ([DeletionVector([1], bits=32)], [False, False], [True, False])
    """
    is_outdated, is_existing = np.zeros(len(new), bool), np.zeros(len(new), bool)
    pairs = [_live_pairs(file, _match(file.keys, new.keys, len(file), len(new))) for file in old]
    for file, (positions, rows) in zip(old, pairs, strict=True):
        is_existing[rows[~are_deletes(_values_at(file.kinds, positions))]] = True
    if not new.sequence:
        superseded = [DeletionVector(positions) for positions, _ in pairs]
        return KeyMatches(superseded, is_outdated, is_existing)
    # The numbers of the new rows stand for their keys.
    parts = [
        KeyRows(
            [pa.array(rows)],
            _values_at(file.sequence_numbers, positions),
            _values_at(file.kinds, positions),
            file.level,
            [plain(column).take(pa.array(positions)) for column in file.sequence],
            name=file.name,
        )
        for file, (positions, rows) in zip(old, pairs, strict=True)
    ]
    matched = np.unique(np.concatenate([np.empty(0, np.int64), *(rows for _, rows in pairs)]))
    parts.append(
        KeyRows(
            [pa.array(matched)],
            np.full(len(matched), _NEWEST),
            np.zeros(len(matched), np.int8),
            0,
            [plain(column).take(pa.array(matched)) for column in new.sequence],
        )
    )
    *of_files, outdated = superseded_rows(parts, descending=descending)
    is_outdated[matched[outdated.to_numpy()]] = True
    superseded = [
        DeletionVector(positions[vector.to_numpy()])
        for vector, (positions, _) in zip(of_files, pairs, strict=True)
    ]
    return KeyMatches(superseded, is_outdated, is_existing)


def _live_pairs(file: KeyRows, pairs: _Pairs) -> _Pairs:
    """The pairs without older rows that are deleted."""
    if file.deleted is None:
        return pairs
    positions, rows = pairs
    is_live = ~file.deleted.contains(positions)
    return positions[is_live], rows[is_live]


def _values_at(values: npt.NDArray[Any] | Column, positions: IntArray) -> npt.NDArray[Any]:
    """Sequence numbers or kinds of some rows."""
    if isinstance(values, np.ndarray):
        return values[positions]
    taken: npt.NDArray[Any] = plain(values).take(pa.array(positions)).to_numpy()
    return taken


def _match(old: Sequence[Column], new: Sequence[Column], old_rows: int, new_rows: int) -> _Pairs:
    """The rows of a file that have the key of a new row, in order."""
    if len(old) == len(new) == 1:
        pairs = _binary_search(plain(old[0]), plain(new[0]))
        if pairs is not None:
            return pairs
    positions = np.arange(old_rows)
    if new_rows * _FEW < old_rows:
        positions = _narrow(old, new, positions)
        old = [plain(column).take(pa.array(positions)) for column in old]
    ranks = rank_rows(join_columns([old, new]), len(positions) + new_rows)
    older, newer = np.split(ranks, [len(positions)])
    row_of = np.full(int(ranks.max(initial=0)) + 1, -1, np.int64)
    row_of[newer] = np.arange(new_rows)
    rows = row_of[older]
    return positions[rows >= 0], rows[rows >= 0]


def _binary_search(old: pa.Array, new: pa.Array) -> _Pairs | None:
    """The same for one column of ascending integers, as files have them; else None."""
    older, newer = _as_integers(old), _as_integers(new)
    if older is None or newer is None or old.type != new.type or np.any(older[1:] <= older[:-1]):
        return None
    positions = np.searchsorted(older, newer)
    rows = np.flatnonzero(positions < len(older))
    rows = rows[older[positions[rows]] == newer[rows]]
    order = np.argsort(positions[rows], kind="stable")
    return positions[rows][order], rows[order]


def _as_integers(array: pa.Array) -> IntArray | None:
    if array.null_count:
        return None
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array.to_numpy() if pa.types.is_integer(array.type) else None


def _narrow(old: Sequence[Column], new: Sequence[Column], positions: IntArray) -> IntArray:
    """The rows that have in each column a value of some new row: cheaper than to rank all."""
    is_candidate = np.ones(len(positions), bool)
    for older, newer in zip(map(plain, old), map(plain, new), strict=True):
        if older.type == newer.type and not pa.types.is_floating(newer.type):
            is_candidate &= pc.is_in(older, value_set=newer).to_numpy(zero_copy_only=False)
    return positions[is_candidate]


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
    batch: Batch,
    new_hashes: Int32Array,
    *,
    looks_up: bool,
) -> BucketChange:
    """Write the rows of an upsert that belong to a bucket; nothing is committed.

    Args:
        keyed: The table.
        bucket: The bucket.
        batch: The rows.
        new_hashes: Hashes of keys that are new to it, if its table has dynamic buckets.
        looks_up: Look older rows up. That is left to the compaction where it has to merge all of
            level 0 anyway, or to make room.

    Raises:
        FormatError: A file of the bucket is damaged.
        FileGoneError: Another writer has replaced a file.
    """
    run = _sorted_run(keyed, batch, bucket.next_sequence)
    vectors = None
    if looks_up and not bucket.level_zero and free_level(keyed, bucket):
        run, vectors = _supersede(keyed, bucket, run)
    return write_change(keyed, bucket, run, new_hashes=new_hashes, vectors=vectors)


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
    return write_change(keyed, bucket, run, vectors=vectors)


def _sorted_run(keyed: KeyedTable, batch: Batch, first_number: int) -> SortedRun:
    """The newest row of each key, in the order of the keys."""
    options, rows = keyed.options, batch.rows
    numbers = np.flatnonzero(is_effective(batch.kinds[batch.positions], options))
    positions = batch.positions[numbers]
    if options.sequence_field:  # the greater ones behind the others of their key
        fields = _take_columns(rows, options.sequence_field, positions)
        ages = rank_rows(fields, len(positions), descending=options.sequence_descending)
        by_age = np.argsort(ages, kind="stable")
        numbers, positions = numbers[by_age], positions[by_age]
    keys = _take_columns(rows, keyed.schema.key_columns, positions)
    order, starts = sort_rows(keys, len(positions))
    last = order[np.append(starts[1:], len(order)) - 1] if len(order) else order
    newest = positions[last]
    return SortedRun(take_rows(rows, newest), first_number + numbers[last], batch.kinds[newest])


def _take_columns(
    rows: pa.Table, names: Iterable[str], positions: Int64Array
) -> list[pa.ChunkedArray]:
    columns: list[pa.ChunkedArray] = take_rows(rows.select(list(names)), positions).columns
    return columns


def _supersede(keyed: KeyedTable, bucket: Bucket, run: SortedRun) -> tuple[SortedRun, VectorUpdate]:
    """The rows of a run that are newest of all, and the older ones that they supersede."""
    files, deleted = _overlapping(keyed, bucket, run), read_vectors(keyed, bucket)
    reader = KeyReader(keyed)
    older = [reader.keys(file, deleted.get(file.file.name)) for file in files]
    matches = look_up(older, reader.keys_of(run), descending=keyed.options.sequence_descending)
    # A delete of a key that does not exist is dropped.
    is_written = ~matches.is_outdated & (matches.is_existing | ~are_deletes(run.kinds))
    added = {
        file.file.name: rows for file, rows in zip(files, matches.superseded, strict=True) if rows
    }
    return run.filter(is_written), VectorUpdate(deleted, added)


def _overlapping(keyed: KeyedTable, bucket: Bucket, run: SortedRun) -> list[PlacedFile]:
    """The files above level 0 whose key range overlaps that of a run."""
    files = bucket.sorted_files
    if not files or not len(run.numbers):
        return []
    names = keyed.schema.key_columns
    types = [keyed.schema.types[name] for name in names]
    ends = pa.array([0, len(run.numbers) - 1])
    bounds = [
        run.rows.column(name).take(ends).cast(data_type.to_arrow())
        for name, data_type in zip(names, types, strict=True)
    ]
    minimum = unpack_rows([file.file.min_key for file in files], types, file="keys of a manifest")
    maximum = unpack_rows([file.file.max_key for file in files], types, file="keys of a manifest")
    count = len(files)
    ranks = rank_rows(join_columns([bounds, minimum, maximum]), 2 + 2 * count)
    first, last = ranks[0], ranks[1]
    overlaps = (ranks[2 + count :] >= first) & (ranks[2 : 2 + count] <= last)
    return [files[number] for number in np.flatnonzero(overlaps).tolist()]
