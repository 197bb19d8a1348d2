"""The rows of an upsert that go to one bucket: who wins, what is written, and what is marked.

    rows in the order of arrival
      -> one of each key: the greatest by `sequence.field`, then the last
      -> sorted by key
      -> against the older row of the key, if there is one: the greater by `sequence.field`, then
         the new one
      -> files of rows that are put, and others of rows that delete

Where the older row wins, the new one is dropped before anything is written.

A sorted run becomes files of its bucket, with what the compaction after it is to do.

Rows that delete have files of their own: these go when the bucket is compacted, and what is put
only changes its level.

Which older rows of a bucket new rows replace.

    older file     new rows      found
    1  fig         2  plum       row 1 of the file is marked
    2  pear        4  lime       key 4 is new
    3  apple

Without `sequence.field` a new row replaces all older ones of its key, as in Java, whatever their
sequence numbers. With it, an older row may be the newer one: then the new row is beaten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, IntArray, plain
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.tables.key_order import Column, join_columns, rank_rows, sort_rows
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketChange,
    KeyedTable,
    Settlement,
    index_file_path,
    read_hashes,
    read_vectors,
    write_hashes,
    write_vectors,
)
from alcid.tables.paimon.keyed.key_files import (
    KeyRun,
    count_levels,
    join_runs,
    take_rows,
    write_runs,
)
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.merge_on_read import (
    DELETE_KIND,
    KeyRows,
    Kinds,
    are_deletes,
    is_heeded,
    losers,
)
from alcid.tables.paimon.metadata.statistics import unpack_rows
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.tables.paimon.write.new_files import WrittenData

__all__ = [
    "Batch",
    "Found",
    "Marks",
    "delete_from_bucket",
    "free_level",
    "look_up",
    "upsert_bucket",
    "write_change",
]

_APPENDED = 0  # the source of files that are not made by a compaction


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The deletion vectors of a bucket, and the live rows that are to be marked besides."""

    held: Mapping[str, DeletionVector]
    """By the names of data files."""
    new: Mapping[str, DeletionVector] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows are marked besides."""
        return sum(map(len, self.new.values()))

    def merged(self) -> dict[str, DeletionVector]:
        """All vectors, as they are to be."""
        none = DeletionVector()
        return {
            **self.held,
            **{name: self.held.get(name, none) | new for name, new in self.new.items()},
        }


def free_level(keyed: KeyedTable, bucket: Bucket) -> int:
    """The level for a new run; 0 if there is none, until runs are merged."""
    return bucket.free_level(count_levels(bucket, keyed.options.num_levels))


def write_change(
    keyed: KeyedTable,
    bucket: Bucket,
    run: KeyRun,
    *,
    new_hashes: npt.NDArray[np.int32] | None = None,
    marks: Marks | None = None,
) -> BucketChange:
    """Write a run to level 0.

    Args:
        keyed: The table.
        bucket: As it is.
        run: The rows.
        new_hashes: Those of keys that are new to the bucket.
        marks: The rows that the run replaces; None if they are not known yet.
    """
    deletes = are_deletes(run.kinds)
    upserts, removals = (
        tuple(write_runs(keyed, bucket, [chosen], level=0, source=_APPENDED))
        for chosen in (run.filter(~deletes), run.filter(deletes))
    )
    paths = [path for one in (*upserts, *removals) for path in one.paths]
    hashes = None
    if new_hashes is not None and len(new_hashes):
        hashes = write_hashes(keyed, bucket, read_hashes(keyed, bucket) | HashIndex(new_hashes))
        paths.append(index_file_path(keyed, bucket, hashes))
    settlement = None
    if marks is not None:
        settlement = _settlement(keyed, bucket, upserts, removals, marks)
        paths.extend(settlement.written)
    return BucketChange(bucket, upserts, removals, hashes, settlement, tuple(paths))


def _settlement(
    keyed: KeyedTable,
    bucket: Bucket,
    upserts: tuple[WrittenData, ...],
    deletes: tuple[WrittenData, ...],
    marks: Marks,
) -> Settlement:
    """The new run on its level, and the rows that it replaces marked."""
    level = free_level(keyed, bucket)
    new = [one.placed for one in upserts]
    lifted = [replace(one, entry=one.entry.on_level(level)) for one in new]
    vectors: IndexEntry | None = bucket.vectors[0] if bucket.vectors else None
    paths: tuple[str, ...] = ()
    if marks.new or len(bucket.vectors) > 1:
        vectors = write_vectors(keyed, bucket, marks.merged())
        if vectors is not None:
            paths = (index_file_path(keyed, bucket, vectors),)
    removed = (*new, *(one.placed for one in deletes))
    return Settlement(bucket, removed, tuple(lifted), vectors, paths, marks.rows)


_Meeting: TypeAlias = tuple[IntArray, IntArray]
"""Rows of an older file, and beside each the new row of the same key."""

_NEWEST = np.iinfo(np.int64).max
_FEW = 4
"""New rows are few if the older ones are so many times as many."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What becomes of older rows and of new ones."""

    marks: list[DeletionVector]
    """For each older file the rows that are not live any more, without those marked before."""
    beaten: BoolArray
    """The new rows that lose against an older one by `sequence.field`."""
    present: BoolArray
    """The new rows of whose key an older row was live."""


def look_up(old: Sequence[KeyRows], new: KeyRows, *, descending: bool = False) -> Found:
    """Find older rows of the keys of new ones.

    Args:
        old: Files in the order in which they were added. Of a key that is live in several of them,
            at most one row stays.
        new: Rows with keys of which each is there once. Those that delete mark older rows as
            others do.
        descending: `sequence.field.sort-order`.

    Raises:
        FormatError: A row has no sequence number or kind.
        UnsupportedError: A key or sequence field is of a type that has no order, or of several.

    >>> old = KeyRows([pa.array([1, 2, 3])], np.array([6, 7, 8]), np.zeros(3, np.int8), level=5)
    >>> new = KeyRows([pa.array([2, 4])], np.array([9, 10]), np.zeros(2, np.int8), level=0)
    >>> found = look_up([old], new)
    >>> found.marks, found.beaten.tolist(), found.present.tolist()
    ([DeletionVector([1], bits=32)], [False, False], [True, False])
    """
    beaten, present = np.zeros(len(new), bool), np.zeros(len(new), bool)
    met = [_live(file, _meet(file.keys, new.keys, len(file), len(new))) for file in old]
    for file, (places, rows) in zip(old, met, strict=True):
        present[rows[~are_deletes(_values_at(file.kinds, places))]] = True
    if not new.sequence:
        return Found([DeletionVector(places) for places, _ in met], beaten, present)
    # Keys are as good as the new rows that they were found for.
    parts = [
        KeyRows(
            [pa.array(rows)],
            _values_at(file.sequence_numbers, places),
            _values_at(file.kinds, places),
            file.level,
            [plain(column).take(pa.array(places)) for column in file.sequence],
            name=file.name,
        )
        for file, (places, rows) in zip(old, met, strict=True)
    ]
    chosen = np.unique(np.concatenate([np.empty(0, np.int64), *(rows for _, rows in met)]))
    parts.append(
        KeyRows(
            [pa.array(chosen)],
            np.full(len(chosen), _NEWEST),
            np.zeros(len(chosen), np.int8),
            0,
            [plain(column).take(pa.array(chosen)) for column in new.sequence],
        )
    )
    *hidden, lost = losers(parts, descending=descending)
    beaten[chosen[lost.to_numpy()]] = True
    marks = [
        DeletionVector(places[vector.to_numpy()])
        for vector, (places, _) in zip(hidden, met, strict=True)
    ]
    return Found(marks, beaten, present)


def _live(file: KeyRows, met: _Meeting) -> _Meeting:
    """Without rows that were marked before."""
    if file.deleted is None:
        return met
    places, rows = met
    live = ~file.deleted.contains(places)
    return places[live], rows[live]


def _values_at(values: npt.NDArray[Any] | Column, places: IntArray) -> npt.NDArray[Any]:
    """Sequence numbers or kinds of some rows."""
    if isinstance(values, np.ndarray):
        return values[places]
    taken: npt.NDArray[Any] = plain(values).take(pa.array(places)).to_numpy()
    return taken


def _meet(old: Sequence[Column], new: Sequence[Column], old_rows: int, new_rows: int) -> _Meeting:
    """The rows of a file that have the key of a new row, in order."""
    if len(old) == len(new) == 1:
        found = _search(plain(old[0]), plain(new[0]))
        if found is not None:
            return found
    places = np.arange(old_rows)
    if new_rows * _FEW < old_rows:
        places = _narrowed(old, new, places)
        old = [plain(column).take(pa.array(places)) for column in old]
    ranks = rank_rows(join_columns([old, new]), len(places) + new_rows)
    older, newer = np.split(ranks, [len(places)])
    row_of = np.full(int(ranks.max(initial=0)) + 1, -1, np.int64)
    row_of[newer] = np.arange(new_rows)
    rows = row_of[older]
    return places[rows >= 0], rows[rows >= 0]


def _search(old: pa.Array, new: pa.Array) -> _Meeting | None:
    """The same for one column of whole numbers that rise, as they do in a file; else None."""
    older, newer = _whole_numbers(old), _whole_numbers(new)
    if older is None or newer is None or old.type != new.type or np.any(older[1:] <= older[:-1]):
        return None
    places = np.searchsorted(older, newer)
    rows = np.flatnonzero(places < len(older))
    rows = rows[older[places[rows]] == newer[rows]]
    order = np.argsort(places[rows], kind="stable")
    return places[rows][order], rows[order]


def _whole_numbers(array: pa.Array) -> IntArray | None:
    if array.null_count:
        return None
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array.to_numpy() if pa.types.is_integer(array.type) else None


def _narrowed(old: Sequence[Column], new: Sequence[Column], places: IntArray) -> IntArray:
    """The rows that have in each column a value that a new one has: cheaper than to rank all."""
    kept = np.ones(len(places), bool)
    for older, newer in zip(map(plain, old), map(plain, new), strict=True):
        if older.type == newer.type and not pa.types.is_floating(newer.type):
            kept &= pc.is_in(older, value_set=newer).to_numpy(zero_copy_only=False)
    return places[kept]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of one bucket, in the order of their arrival; others may stand between them."""

    rows: pa.Table
    """In the columns of the table."""
    kinds: Kinds
    places: npt.NDArray[np.int64]
    """Which of the rows they are."""


def upsert_bucket(
    keyed: KeyedTable,
    bucket: Bucket,
    batch: Batch,
    new_hashes: npt.NDArray[np.int32],
    *,
    looks_up: bool,
) -> BucketChange:
    """Write the rows of an upsert that go to a bucket; nothing is committed.

    Args:
        keyed: The table.
        bucket: As it is.
        batch: The rows.
        new_hashes: Those of keys that are new to it, if its table has dynamic buckets.
        looks_up: Look for older rows. It is not done where the compaction has to look at all of
            level 0 anyway, or to make room.

    Raises:
        FormatError: A file of the bucket is damaged.
        FileGoneError: Another has replaced a file.
    """
    run = _sorted(keyed, batch, bucket.next_sequence)
    marks = None
    if looks_up and not bucket.level_zero and free_level(keyed, bucket):
        run, marks = _against_older(keyed, bucket, run)
    return write_change(keyed, bucket, run, new_hashes=new_hashes, marks=marks)


def delete_from_bucket(
    keyed: KeyedTable, bucket: Bucket, rows: Mapping[str, DeletionVector], *, looks_up: bool
) -> BucketChange:
    """Write rows that delete, in place of rows of which it is known where they are.

    Args:
        keyed: The table.
        bucket: As it is.
        rows: Live rows, by the names of their files.
        looks_up: As for `upsert_bucket`.

    Raises:
        FormatError: A file of the bucket is damaged.
        FileGoneError: Another has replaced a file.
    """
    reader = KeyReader(keyed)
    files = [one for one in bucket.files if one.file.name in rows]
    found = join_runs(reader.chosen(one, rows[one.file.name].to_numpy()) for one in files)
    keys = [found.rows.column(name) for name in keyed.schema.key_columns]
    order, starts = sort_rows(keys, len(found))
    chosen = order[starts]  # a key that is live twice, by a fault, is deleted once
    numbers = bucket.next_sequence + np.arange(len(chosen), dtype=np.int64)
    run = replace(
        found.take(chosen), numbers=numbers, kinds=np.full(len(chosen), DELETE_KIND, np.int8)
    )
    marks = None
    if looks_up and not bucket.level_zero:
        marks = Marks(read_vectors(keyed, bucket), rows)
    return write_change(keyed, bucket, run, marks=marks)


def _sorted(keyed: KeyedTable, batch: Batch, first_number: int) -> KeyRun:
    """The newest row of each key, by key."""
    options, rows = keyed.options, batch.rows
    numbers = np.flatnonzero(is_heeded(batch.kinds[batch.places], options))
    places = batch.places[numbers]
    if options.sequence_field:  # the greater ones behind the others of their key
        fields = _taken(rows, options.sequence_field, places)
        ages = rank_rows(fields, len(places), descending=options.sequence_descending)
        by_age = np.argsort(ages, kind="stable")
        numbers, places = numbers[by_age], places[by_age]
    order, starts = sort_rows(_taken(rows, keyed.schema.key_columns, places), len(places))
    last = order[np.append(starts[1:], len(order)) - 1] if len(order) else order
    chosen = places[last]
    return KeyRun(take_rows(rows, chosen), first_number + numbers[last], batch.kinds[chosen])


def _taken(
    rows: pa.Table, names: Iterable[str], places: npt.NDArray[np.int64]
) -> list[pa.ChunkedArray]:
    found: list[pa.ChunkedArray] = take_rows(rows.select(list(names)), places).columns
    return found


def _against_older(keyed: KeyedTable, bucket: Bucket, run: KeyRun) -> tuple[KeyRun, Marks]:
    """The rows that are newest of all, and the older ones that they replace or delete."""
    files, held = _overlapping(keyed, bucket, run), read_vectors(keyed, bucket)
    reader = KeyReader(keyed)
    older = [reader.keys(one, held.get(one.file.name)) for one in files]
    found = look_up(older, reader.keys_of(run), descending=keyed.options.sequence_descending)
    # There is nothing to be deleted of a key that is not there.
    kept = ~found.beaten & (found.present | ~are_deletes(run.kinds))
    new = {one.file.name: rows for one, rows in zip(files, found.marks, strict=True) if rows}
    return run.filter(kept), Marks(held, new)


def _overlapping(keyed: KeyedTable, bucket: Bucket, run: KeyRun) -> list[PlacedFile]:
    """The files above level 0 that may hold keys of a run."""
    files = bucket.sorted_files
    if not files or not len(run.numbers):
        return []
    names = keyed.schema.key_columns
    types = [keyed.schema.types[name] for name in names]
    ends = pa.array([0, len(run.numbers) - 1])
    own = [
        run.rows.column(name).take(ends).cast(kind.to_arrow())
        for name, kind in zip(names, types, strict=True)
    ]
    least = unpack_rows([one.file.min_key for one in files], types, file="keys of a manifest")
    most = unpack_rows([one.file.max_key for one in files], types, file="keys of a manifest")
    ranks = rank_rows(join_columns([own, least, most]), 2 + 2 * len(files))
    first, last = ranks[0], ranks[1]
    count = len(files)
    hit = (ranks[2 + count :] >= first) & (ranks[2 : 2 + count] <= last)
    return [files[place] for place in np.flatnonzero(hit).tolist()]
