"""Distinct keys in order, and the rows of each: what bitmap and range-bitmap are built from.

Text and binary are ranked by their bytes, seven at a time. A value is read as words of 64 bits:
seven bytes, then how many of the value were left (8 for more than seven). Words compare as the
values do, a shorter value before a longer one that it begins; equal words are equal values unless
more is left. So one fast integer sort ranks what differs early, and only ties that have more bytes
go on to the next word. What 16 words do not tell apart, long values that begin alike, Arrow sorts
by comparing them whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import (
    BoolArray,
    Int64Array,
    IntArray,
    UInt8Array,
    UInt32Array,
    byte_offsets,
    changes,
)
from alcid.errors import LimitError
from alcid.formats.file_index.bloom_filter import hash_column
from alcid.formats.file_index.keys import KeyColumn, Keys

MOST_KEY_BYTES = 128 << 20
"""Bytes of distinct text that an index may hold: building it takes about five times as many."""

_STEP = 7
_MORE = 8
_MOST_STEPS = 16
_SAMPLE = 1 << 16


def rank_bytes(values: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, IntArray]:
    """The distinct values in ascending order, and the rank of every value among them."""
    sample = values[:_SAMPLE]
    is_small = byte_count(values) <= MOST_KEY_BYTES
    if is_small and 2 * pc.count_distinct(sample).as_py() > len(sample):
        order, ranks = _rank(values)
        first = np.flatnonzero(changes(ranks[order]))
        return values.take(pa.array(order[first])), ranks
    # Values that repeat are cheaper to look up than to sort.
    encoded = values.dictionary_encode()
    order, ranks = _rank(encoded.dictionary)
    return encoded.dictionary.take(pa.array(order)), ranks[encoded.indices.to_numpy()]


def byte_count(values: pa.LargeBinaryArray) -> int:
    """The bytes of all values together."""
    offsets = byte_offsets(values)
    return int(offsets[-1] - offsets[0])


def _rank(values: pa.LargeBinaryArray) -> tuple[IntArray, IntArray]:
    """Positions in ascending order, and the rank of every value; equal values share a rank."""
    offsets = byte_offsets(values)
    # Words are read at any byte, so that the last value needs room behind it.
    data = np.zeros(int(offsets[-1] - offsets[0]) + 8, np.uint8)
    if len(data) > _MORE:
        data[:-8] = np.frombuffer(values.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
    shared = _shared_prefix(values)
    starts, left = starts + shared, left - shared

    order = np.arange(len(values))
    place = np.zeros(len(values), np.int64)  # of the first value in `order` that is equal so far
    ties = order
    for step in range(_MOST_STEPS + 1):
        if step < _MOST_STEPS:
            sorted_ties, new = _sort_ties(ties, place[ties], _words(data, starts[ties], left[ties]))
        else:
            sorted_ties, new = _sort_whole(ties, place[ties], values)
        # A group of ties holds its places; within them, a new word moves the place forward.
        old_place = place[sorted_ties]
        within = np.arange(len(sorted_ties))
        within -= np.maximum.accumulate(np.where(changes(old_place), within, 0))
        order[old_place + within] = sorted_ties
        place[sorted_ties] = np.maximum.accumulate(np.where(new, old_place + within, 0))
        tied = ~new
        tied[:-1] |= ~new[1:]
        ties = sorted_ties[tied & (left[sorted_ties] > _STEP)]
        if not len(ties):
            break
        starts, left = starts + _STEP, left - _STEP
    return order, _dense(place, order)


def _sort_ties(ties: IntArray, place: IntArray, words: IntArray) -> tuple[IntArray, BoolArray]:
    """Ties by place and word, and where either changes."""
    if place.any():  # ties of several places
        words = (place << 32) | _dense(words, np.argsort(words))
    by_word = np.argsort(words)
    return ties[by_word], changes(words[by_word])


def _sort_whole(
    ties: IntArray, place: IntArray, values: pa.LargeBinaryArray
) -> tuple[IntArray, BoolArray]:
    """Ties by place and value, compared to the end, and where either changes."""
    table = pa.table({"place": place, "value": values.take(pa.array(ties))})
    order = pc.sort_indices(table, [("place", "ascending"), ("value", "ascending")]).to_numpy()
    new = changes(place[order])
    ordered = values.take(pa.array(ties[order]))
    new[1:] |= pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    return ties[order], new


def _shared_prefix(values: pa.LargeBinaryArray) -> int:
    """How many bytes all values begin with."""
    if not len(values):
        return 0
    ends = pc.min_max(values).as_py()
    low, high = ends["min"], ends["max"]
    differs = (
        index for index, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]
    )
    return next(differs, min(len(low), len(high)))


def _words(data: UInt8Array, starts: IntArray, left: IntArray) -> Int64Array:
    """Seven bytes, then how many were left, as integers that sort as signed."""
    every = np.ndarray((len(data) - 7,), ">u8", data, strides=(1,))
    count = np.minimum(left, _MORE).astype(np.uint64)
    words = every[starts].astype(np.uint64)
    width = np.minimum(count, np.uint64(_STEP))
    words &= ~(np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(8) * width))
    words |= count
    return (words ^ np.uint64(1 << 63)).view(np.int64)


def _dense(values: IntArray, order: IntArray) -> IntArray:
    """The rank of every value, given their order; equal values share a rank."""
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(changes(values[order])) - 1
    return ranks


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
    rows: UInt32Array
    starts: Int64Array


def check_size(column: KeyColumn) -> None:
    """See that an index can hold all distinct keys of a column; nothing is copied for that.

    Keys are the same if their hashes are: two that are not would count once, which does no harm.

    Raises:
        LimitError: They have more than `MOST_KEY_BYTES` together.
    """
    most = MOST_KEY_BYTES
    if not column.key_type.is_bytes or byte_count(column.keys) <= most:
        return
    _, firsts = np.unique(hash_column(column), return_index=True)
    size = int(np.diff(byte_offsets(column.keys))[firsts].sum())
    if size > most:
        raise LimitError(
            f"found {size} bytes of distinct values, expected at most {most}, since the index "
            "would hold them all: use bloom-filter"
        )


def rank(column: KeyColumn) -> Ranks:
    """Rank the keys of a column."""
    if column.key_type.is_bytes:
        return Ranks(*rank_bytes(column.keys))
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


def _sort_words(column: KeyColumn, rows: UInt32Array) -> tuple[IntArray, UInt32Array, Int64Array]:
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
