"""Keys of dynamic buckets: each is in one bucket, and the hash index of that bucket knows it.

A writer asks the hash indexes of a partition where a key is. So these must not be:

    a row whose hash the index of its bucket lacks    the next upsert puts its key elsewhere
    a hash in the indexes of two buckets              writers may go to either
    a key that is live in two buckets                 readers see both rows

They come from two writers at once, as hash indexes are not checked when Paimon's Java commits.
Of a key in two buckets the row with the greater `sequence.field` counts; then that of the bucket
whose index has the hash, and was committed last: it is where writers have put the key since.

Hashes of live keys that are right are never collected: only suspects are looked at row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.formats.arrays import changes
from alcid.formats.binary_row import hash_rows
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.tables.paimon.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.bucket_vectors import read_hashes, read_vectors
from alcid.tables.paimon.keyed.changes import KeyedTable
from alcid.tables.paimon.keyed.doubles import is_read_unmerged
from alcid.tables.paimon.keyed.key_reading import KeyReader
from alcid.tables.paimon.merging import KeyRows

__all__ = [
    "Claim",
    "HashArray",
    "Verdict",
    "claim_hashes",
    "has_hash_indexes",
    "judge",
    "lost_hashes",
    "shared_hashes",
]

HashArray: TypeAlias = npt.NDArray[np.int32]
"""Hashes of keys."""

_NONE: Final = DeletionVector()
_SEVERAL: Final = -2  # in place of a bucket: several hold keys of the hash


def has_hash_indexes(schema: TableSchema, options: TableOptions) -> bool:
    """Whether a table puts keys into buckets as needed, and remembers them by their hashes."""
    is_dynamic = bool(schema.primary_keys) and options.bucket < 0
    return is_dynamic and set(schema.partition_keys) <= set(schema.primary_keys)


def lost_hashes(keyed: KeyedTable, bucket: Bucket) -> HashArray:
    """The hashes of rows that are not marked and that the index of their bucket lacks; ascending.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
    """
    known, marked = read_hashes(keyed, bucket), read_vectors(keyed, bucket)
    reader, lost = KeyReader(keyed), [np.zeros(0, np.int32)]
    for placed in bucket.files:
        hashes = _hashes(keyed, reader.keys(placed))
        unknown = np.flatnonzero(~known.contains(hashes))
        lost.append(hashes[unknown[~marked.get(placed.file.name, _NONE).contains(unknown)]])
    return np.unique(np.concatenate(lost))


def shared_hashes(indexes: Sequence[HashIndex]) -> HashArray:
    """The hashes that are in several indexes; ascending.

    >>> shared_hashes([HashIndex([1, 2]), HashIndex([2, 3]), HashIndex([2])]).tolist()
    [2]
    """
    every = np.sort(np.concatenate([np.zeros(0, np.int32), *(one.hashes for one in indexes)]))
    return np.unique(every[~changes(every)])


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """The rows of a bucket that have one of some hashes, and are not marked."""

    names: Sequence[str]
    """The files of the bucket."""
    files: npt.NDArray[np.int64]
    """Of each row the place of its file."""
    positions: npt.NDArray[np.int64]
    keys: Sequence[pa.Array]
    sequence: Sequence[pa.Array]
    hashes: HashArray
    is_live: npt.NDArray[np.bool_]
    """Whether readers see the row as it is; others can neither win nor be marked."""
    known: HashArray
    """Which of the hashes the index of the bucket has; ascending."""


def claim_hashes(
    keyed: KeyedTable,
    bucket: Bucket,
    hashes: HashArray,
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
    parts: list[tuple[KeyRows, npt.NDArray[np.int64], HashArray]] = []
    for placed in bucket.files:
        name, rows = placed.file.name, reader.keys(placed)
        found = _hashes(keyed, rows)
        chosen = np.flatnonzero(index.contains(found))
        dead = marked.get(name, _NONE) | marks.get(name, _NONE)
        chosen = chosen[~dead.contains(chosen)]
        parts.append((rows, chosen, found[chosen]))
    counts = [len(chosen) for _, chosen, _ in parts]
    levels = np.array([one.file.level for one in bucket.files], np.int64)
    return Claim(
        [one.file.name for one in bucket.files],
        np.repeat(np.arange(len(parts)), counts),
        np.concatenate([np.zeros(0, np.int64), *(chosen for _, chosen, _ in parts)]),
        _taken([(rows.keys, chosen) for rows, chosen, _ in parts]),
        _taken([(rows.sequence, chosen) for rows, chosen, _ in parts]),
        np.concatenate([np.zeros(0, np.int32), *(found for _, _, found in parts)]),
        np.repeat(levels > 0, counts) & unmerged,
        hashes[read_hashes(keyed, bucket).contains(hashes)],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What is to become of a bucket."""

    marks: Mapping[str, DeletionVector] = field(default_factory=dict)
    """Rows whose keys are live in another bucket, where they belong; by file name."""
    added: HashArray = field(default_factory=lambda: np.zeros(0, np.int32))
    """Hashes that its index is to have."""
    dropped: HashArray = field(default_factory=lambda: np.zeros(0, np.int32))
    """Hashes that belong to another bucket."""


def judge(claims: Sequence[Claim], hashes: HashArray, *, descending: bool) -> list[Verdict]:
    """Give each key, and each hash, to one bucket of a partition.

    A hash stays where it is if different keys of it are live in several buckets: that cannot be
    mended by marks.

    Args:
        claims: All that have one of the hashes; that whose index was committed last at the end.
        hashes: Ascending.
        descending: Whether lesser sequence fields are newer.
    """
    counts = [len(one.hashes) for one in claims]
    buckets = np.repeat(np.arange(len(claims)), counts)
    codes = np.concatenate([np.searchsorted(hashes, one.hashes) for one in claims])
    lost = _lost(claims, buckets, descending=descending)
    homes = np.full(len(hashes), _SEVERAL, np.int64)
    for bucket, one in enumerate(claims):
        homes[np.searchsorted(hashes, one.known)] = bucket
    pairs = np.unique(codes[~lost] * len(claims) + buckets[~lost])
    held, holder = pairs // len(claims), pairs % len(claims)
    homes[held] = holder
    homes[np.bincount(held, minlength=len(hashes)) > 1] = _SEVERAL
    verdicts = []
    for bucket, one in enumerate(claims):
        known = np.searchsorted(hashes, one.known)
        own = hashes[homes == bucket]
        verdicts.append(
            Verdict(
                _marks(one, lost[buckets == bucket]),
                own[~np.isin(own, one.known)],
                one.known[~np.isin(homes[known], (bucket, _SEVERAL))],
            )
        )
    return verdicts


def _lost(
    claims: Sequence[Claim], buckets: npt.NDArray[np.int64], *, descending: bool
) -> npt.NDArray[np.bool_]:
    """Which rows, counted through all claims, are live beside a newer one of their key."""
    lost = np.zeros(len(buckets), bool)
    filled = [one for one in claims if len(one.hashes)]
    live = np.flatnonzero(np.concatenate([one.is_live for one in claims]))
    if not len(live):
        return lost
    keys = rank_rows(join_columns([one.keys for one in filled]), len(buckets))[live]
    sequence = join_columns([one.sequence for one in filled])
    ages = rank_rows(sequence, len(buckets), descending=descending)[live]
    known = np.concatenate([np.isin(one.hashes, one.known) for one in claims])[live]
    order = np.lexsort((buckets[live], known, ages, keys))
    is_newest = np.append(changes(keys[order])[1:], True)
    lost[live[order[~is_newest]]] = True
    return lost


def _marks(claim: Claim, lost: npt.NDArray[np.bool_]) -> dict[str, DeletionVector]:
    return {
        claim.names[file]: DeletionVector(claim.positions[lost & (claim.files == file)])
        for file in np.unique(claim.files[lost]).tolist()
    }


def _hashes(keyed: KeyedTable, rows: KeyRows) -> HashArray:
    return hash_rows(rows.keys, [keyed.schema.types[name] for name in keyed.schema.key_columns])


def _taken(
    parts: Sequence[tuple[Sequence[Column], npt.NDArray[np.int64]]],
) -> list[pa.Array]:
    chosen = [
        [column.take(pa.array(rows)) for column in columns] for columns, rows in parts if len(rows)
    ]
    return join_columns(chosen)
