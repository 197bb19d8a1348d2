"""Keys that are live more than once, and hash indexes that do not agree with the keys.

Within a bucket, an older row of a key should be marked as deleted, and is not:

    level 4   key 7    live
    level 5   key 7    live too, as the vector that marked it is gone

It comes from two writers at once: one has opened the bucket, the other upserts and marks, the first
commits a vector file without the marks of the other. The row on the higher level is superseded; in
a table with a `sequence.field`, the one with the lesser value.

In a table of dynamic buckets, each key is in one bucket of its partition, and the hash index of
that bucket has its hash. A writer asks the hash indexes where a key is, so these must not be:

    a row whose hash is not in the index of its bucket   the next upsert puts its key elsewhere
    a hash in the indexes of two buckets                 writers may go to either
    a key that is live in two buckets                    readers see both rows

They come from two writers at once, too, as hash indexes are not checked when Paimon's Java commits.
Of a key in two buckets the row with the greater `sequence.field` counts; then that of the bucket
whose index has the hash, and was committed last: it is where writers have put the key since. Only
suspect hashes are checked row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from alcid._arrays import BoolArray, Int32Array, Int64Array, changes
from alcid.formats.binary_row import hash_rows
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.tables.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.keyed.bucket import Bucket, KeyedTable, read_hashes, read_vectors
from alcid.tables.paimon.keyed.key_files import KeyReader
from alcid.tables.paimon.keyed.live_rows import key_sections
from alcid.tables.paimon.merge_on_read import KeyRows, superseded_rows
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema


def is_read_unmerged(keyed: KeyedTable, bucket: Bucket) -> bool:
    """Whether readers return each row above level 0 that is not marked, without merging.

    Otherwise they merge the bucket, and a key comes out once whatever is marked.
    """
    above = bucket.sorted_files
    # Where a row deletes, or may, reads merge the bucket.
    return keyed.options.skips_level_0 and all(file.file.delete_rows == 0 for file in above)


def live_twice(keyed: KeyedTable, bucket: Bucket) -> dict[str, DeletionVector]:
    """The rows above level 0 that are live beside a newer one of their key, by file name.

    Only keys are read, of those files that overlap others.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
    """
    if not is_read_unmerged(keyed, bucket):
        return {}
    files = bucket.sorted_files
    sections = (
        [section for section in key_sections(files, keyed.schema) if len(section) > 1]
        if files
        else []
    )
    if not sections:
        return {}
    marked, reader = read_vectors(keyed, bucket), KeyReader(keyed)
    superseded: dict[str, DeletionVector] = {}
    for section in sections:
        rows = [reader.keys(file, marked.get(file.file.name)) for file in section]
        # Without numbers the level decides: writers that do not know of each other share numbers.
        levels = [replace(keys, sequence_numbers=np.zeros(len(keys), np.int64)) for keys in rows]
        dead = superseded_rows(levels, descending=keyed.options.sequence_descending)
        for placed, keys, lost in zip(section, rows, dead, strict=True):
            before = keys.deleted or DeletionVector()
            if len(lost) > len(before):
                positions = lost.to_numpy()
                live = positions[~before.contains(positions)]
                superseded[placed.file.name] = DeletionVector(live)
    return superseded


_NONE: Final = DeletionVector()
_SEVERAL: Final = -2  # in place of a bucket: several have keys of the hash


def has_hash_indexes(schema: TableSchema, options: TableOptions) -> bool:
    """Whether a table puts keys into buckets as needed, and remembers them by their hashes."""
    is_dynamic = bool(schema.primary_keys) and options.bucket < 0
    return is_dynamic and set(schema.partition_keys) <= set(schema.primary_keys)


def lost_hashes(keyed: KeyedTable, bucket: Bucket) -> Int32Array:
    """The hashes of rows that are not marked and that the index of their bucket does not have.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
    """
    index, marked = read_hashes(keyed, bucket), read_vectors(keyed, bucket)
    reader, lost = KeyReader(keyed), [np.zeros(0, np.int32)]
    for placed in bucket.files:
        hashes = _hashes(keyed, reader.keys(placed))
        unknown = np.flatnonzero(~index.contains(hashes))
        lost.append(hashes[unknown[~marked.get(placed.file.name, _NONE).contains(unknown)]])
    return np.unique(np.concatenate(lost))


def shared_hashes(indexes: Sequence[HashIndex]) -> Int32Array:
    """The hashes that are in several indexes; ascending.

    >>> shared_hashes([HashIndex([1, 2]), HashIndex([2, 3]), HashIndex([2])]).tolist()
    [2]
    """
    every = np.sort(np.concatenate([np.zeros(0, np.int32), *(index.hashes for index in indexes)]))
    return np.unique(every[~changes(every)])


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """The rows of a bucket that have one of some hashes, and are not marked."""

    names: Sequence[str]
    """The files of the bucket."""
    files: Int64Array
    """The number of the file of each row."""
    positions: Int64Array
    keys: Sequence[pa.Array]
    sequence: Sequence[pa.Array]
    hashes: Int32Array
    is_live: BoolArray
    """Whether readers see the row as it is; others can neither win nor be marked."""
    indexed: Int32Array
    """Which of the hashes the index of the bucket has; ascending."""


def claim_hashes(
    keyed: KeyedTable,
    bucket: Bucket,
    hashes: Int32Array,
    marks: Mapping[str, DeletionVector],
) -> Claim:
    """Look for the rows of some hashes.

    Args:
        keyed: The table.
        bucket: As it is.
        hashes: Ascending.
        marks: Rows that are about to be marked, by file name.
    """
    marked, reader = read_vectors(keyed, bucket), KeyReader(keyed)
    unmerged = is_read_unmerged(keyed, bucket)
    index = HashIndex(hashes)
    parts: list[tuple[KeyRows, Int64Array, Int32Array]] = []
    for placed in bucket.files:
        name, rows = placed.file.name, reader.keys(placed)
        row_hashes = _hashes(keyed, rows)
        chosen = np.flatnonzero(index.contains(row_hashes))
        dead = marked.get(name, _NONE) | marks.get(name, _NONE)
        chosen = chosen[~dead.contains(chosen)]
        parts.append((rows, chosen, row_hashes[chosen]))
    counts = [len(chosen) for _, chosen, _ in parts]
    levels = np.array([file.file.level for file in bucket.files], np.int64)
    return Claim(
        [file.file.name for file in bucket.files],
        np.repeat(np.arange(len(parts)), counts),
        np.concatenate([np.zeros(0, np.int64), *(chosen for _, chosen, _ in parts)]),
        _taken([(rows.keys, chosen) for rows, chosen, _ in parts]),
        _taken([(rows.sequence, chosen) for rows, chosen, _ in parts]),
        np.concatenate([np.zeros(0, np.int32), *(part for _, _, part in parts)]),
        np.repeat(levels > 0, counts) & unmerged,
        hashes[read_hashes(keyed, bucket).contains(hashes)],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Ownership:
    """The keys and hashes that a bucket is to own, as changes to what it has."""

    marks: Mapping[str, DeletionVector] = field(default_factory=dict)
    """Rows whose keys are live in another bucket, where they belong; by file name."""
    added: Int32Array = field(default_factory=lambda: np.zeros(0, np.int32))
    """Hashes that its index is to have."""
    dropped: Int32Array = field(default_factory=lambda: np.zeros(0, np.int32))
    """Hashes that belong to another bucket."""


def assign_hashes(
    claims: Sequence[Claim], hashes: Int32Array, *, descending: bool
) -> list[Ownership]:
    """Give each key, and each hash, to one bucket of a partition.

    A hash stays where it is if different keys of it are live in several buckets: that cannot be
    repaired by marks.

    Args:
        claims: All that have one of the hashes; that whose index was committed last at the end.
        hashes: Ascending.
        descending: Whether lesser sequence fields are newer.
    """
    counts = [len(claim.hashes) for claim in claims]
    buckets = np.repeat(np.arange(len(claims)), counts)
    codes = np.concatenate([np.searchsorted(hashes, claim.hashes) for claim in claims])
    lost = _lost(claims, buckets, descending=descending)
    owners = np.full(len(hashes), _SEVERAL, np.int64)
    for bucket, claim in enumerate(claims):
        owners[np.searchsorted(hashes, claim.indexed)] = bucket
    pairs = np.unique(codes[~lost] * len(claims) + buckets[~lost])
    claimed, bucket_numbers = pairs // len(claims), pairs % len(claims)
    owners[claimed] = bucket_numbers
    owners[np.bincount(claimed, minlength=len(hashes)) > 1] = _SEVERAL
    ownerships = []
    for bucket, claim in enumerate(claims):
        indexed = np.searchsorted(hashes, claim.indexed)
        own = hashes[owners == bucket]
        ownerships.append(
            Ownership(
                _marks(claim, lost[buckets == bucket]),
                own[~np.isin(own, claim.indexed)],
                claim.indexed[~np.isin(owners[indexed], (bucket, _SEVERAL))],
            )
        )
    return ownerships


def _lost(claims: Sequence[Claim], buckets: Int64Array, *, descending: bool) -> BoolArray:
    """Which rows, counted through all claims, are live beside a newer one of their key."""
    lost = np.zeros(len(buckets), bool)
    filled = [claim for claim in claims if len(claim.hashes)]
    live = np.flatnonzero(np.concatenate([claim.is_live for claim in claims]))
    if not len(live):
        return lost
    keys = rank_rows(join_columns([claim.keys for claim in filled]), len(buckets))[live]
    sequence = join_columns([claim.sequence for claim in filled])
    ages = rank_rows(sequence, len(buckets), descending=descending)[live]
    indexed = np.concatenate([np.isin(claim.hashes, claim.indexed) for claim in claims])[live]
    order = np.lexsort((buckets[live], indexed, ages, keys))
    is_newest = np.append(changes(keys[order])[1:], True)
    lost[live[order[~is_newest]]] = True
    return lost


def _marks(claim: Claim, lost: BoolArray) -> dict[str, DeletionVector]:
    return {
        claim.names[file]: DeletionVector(claim.positions[lost & (claim.files == file)])
        for file in np.unique(claim.files[lost]).tolist()
    }


def _hashes(keyed: KeyedTable, rows: KeyRows) -> Int32Array:
    return hash_rows(rows.keys, [keyed.schema.types[name] for name in keyed.schema.key_columns])


def _taken(
    parts: Sequence[tuple[Sequence[Column], Int64Array]],
) -> list[pa.Array]:
    chosen = [
        [column.take(pa.array(rows)) for column in columns] for columns, rows in parts if len(rows)
    ]
    return join_columns(chosen)
