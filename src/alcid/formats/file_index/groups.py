"""Distinct keys in order, and the rows of each: what bitmap and range-bitmap are built from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.errors import LimitError
from alcid.formats.arrays import IntArray, byte_offsets, changes
from alcid.formats.file_index import byte_ranks
from alcid.formats.file_index.column import KeyColumn, Keys
from alcid.formats.file_index.hashes import hash_column

__all__ = ["Groups", "Ranks", "check_size", "group", "rank"]

_WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Ranks:
    """Distinct keys, ascending, and the rank of every key of a column."""

    keys: Keys
    ranks: IntArray


@dataclass(frozen=True, slots=True)
class Groups:
    """The rows of the key `keys[i]` are `rows[starts[i]:starts[i + 1]]`, ascending."""

    keys: Keys
    rows: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int64]


def check_size(column: KeyColumn) -> None:
    """See that an index can hold all distinct keys of a column; nothing is copied for that.

    Keys are the same if their hashes are: two that are not would count once, which does no harm.

    Raises:
        LimitError: They have more than `byte_ranks.MOST_KEY_BYTES` together.
    """
    most = byte_ranks.MOST_KEY_BYTES
    if not column.key_type.is_bytes or byte_ranks.byte_count(column.keys) <= most:
        return
    _, firsts = np.unique(hash_column(column), return_index=True)
    found = int(np.diff(byte_offsets(column.keys))[firsts].sum())
    if found > most:
        raise LimitError(
            f"found {found} bytes of distinct values, expected at most {most}, since the index "
            "would hold them all: use bloom-filter"
        )


def rank(column: KeyColumn) -> Ranks:
    """Rank the keys of a column."""
    if column.key_type.is_bytes:
        return Ranks(*byte_ranks.rank_bytes(column.keys))
    keys = column.keys
    if _fits_a_word(column):
        distinct, order, starts = _sort_words(column, np.arange(len(keys), dtype=np.uint32))
        sizes = np.diff(starts)
    else:
        order = np.argsort(keys).astype(np.uint32)
        ordered = keys[order]
        first = np.flatnonzero(changes(ordered))
        distinct, sizes = ordered[first], np.diff(first, append=len(keys))
    ranks = np.empty(len(keys), np.uint32)
    ranks[order] = np.repeat(np.arange(len(distinct), dtype=np.uint32), sizes)
    return Ranks(distinct, ranks)


def group(column: KeyColumn) -> Groups:
    """Group the rows of a column by key."""
    if not column.key_type.is_bytes and _fits_a_word(column):
        return Groups(*_sort_words(column, column.key_rows))
    ranked = rank(column)
    words = (ranked.ranks.astype(np.uint64) << np.uint64(32)) | column.key_rows
    words.sort()
    first = np.flatnonzero(changes(words >> np.uint64(32)))
    return Groups(ranked.keys, words.astype(np.uint32), np.append(first, len(words)))


def _fits_a_word(column: KeyColumn) -> bool:
    """True when the span of the keys and a row number go into 64 bits.

    Sorting such words is six times as fast as sorting indirectly, and leaves the rows of a key in
    order.
    """
    keys = column.keys
    span = int(keys.max()) - int(keys.min()) if len(keys) else 0
    return span.bit_length() + column.row_count.bit_length() <= _WORD_BITS


def _sort_words(
    column: KeyColumn, rows: npt.NDArray[np.uint32]
) -> tuple[IntArray, npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Distinct keys, `rows` by key, and where those of each key start."""
    keys = column.keys
    least = np.int64(keys.min() if len(keys) else 0)
    shift = np.uint64(column.row_count.bit_length())
    words = (keys.astype(np.int64) - least).view(np.uint64)
    words <<= shift
    words |= rows
    words.sort()
    ordered_rows = (words & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.uint32)
    words >>= shift
    first = np.flatnonzero(changes(words))
    distinct = (words[first].view(np.int64) + least).astype(keys.dtype)
    return distinct, ordered_rows, np.append(first, len(words))
