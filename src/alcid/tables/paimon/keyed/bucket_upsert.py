"""The rows of an upsert that go to one bucket: who wins, what is written, and what is marked.

    rows in the order of arrival
      -> one of each key: the greatest by `sequence.field`, then the last
      -> sorted by key
      -> against the older row of the key, if there is one: the greater by `sequence.field`, then
         the new one
      -> files of rows that are put, and others of rows that delete

Where the older row wins, the new one is dropped before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.formats.deletion_vector import DeletionVector
from alcid.paimon_metadata.row_bytes import unpack_rows
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.key_order import join_columns, rank_rows, sort_rows
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.bucket_vectors import read_vectors
from alcid.tables.paimon.keyed.bucket_writing import Marks, free_level, write_change
from alcid.tables.paimon.keyed.changes import BucketChange, KeyedTable
from alcid.tables.paimon.keyed.key_files import KeyRun, join_runs
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.keyed.look_up import look_up
from alcid.tables.paimon.keyed.row_kinds import DELETE_KIND, Kinds, are_deletes, is_heeded
from alcid.tables.take_rows import take_rows

__all__ = ["Batch", "delete_from_bucket", "upsert_bucket"]


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
