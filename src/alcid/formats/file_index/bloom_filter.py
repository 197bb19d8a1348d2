"""Paimon's bloom-filter index: can this file hold the value at all?

    i32 k                  hash functions
    u8 x n                 the filter; bit p is in byte p >> 3, lowest bit first

The bits of a key come from its 64-bit hash. Integers go through Thomas Wang's mix, with arithmetic
right shifts; floats through the same, by their bits; text and binary through XXH64 with seed 0.

Answers equality and IN, with "no row" or "any row". Do not use it for ranges, for columns of few
values (a bitmap is smaller and gives rows), or where nearly every file holds every value probed.

`probe_filters` probes any number of filters at once, wherever their bytes are; a single filter is
probed by it, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
import pyarrow as pa
import xxhash

from alcid._arrays import (
    BoolArray,
    Int64Array,
    IntArray,
    UInt8Array,
    UInt32Array,
    UInt64Array,
    changes,
)
from alcid.errors import LimitError
from alcid.formats.cursor import Writer
from alcid.formats.file_index.dictionary import integers_at
from alcid.formats.file_index.keys import Key, KeyColumn, KeyType, key_array
from alcid.formats.file_index.reader import ANY, IndexReader, Selection, no_row
from alcid.formats.hashing import BLOCK, ByteValues, SameLength, hash_values, rotate
from alcid.formats.source import Section

_HEAD = 4
_MOST_BITS = (1 << 31) - 8
_MOST_FUNCTIONS = 127  # Java reads the count from a signed byte
_MOST_READABLE_FUNCTIONS = 4096  # the least positive double as share of false positives needs 1074
_PAIMON_FPP = 0.1
_OWN_FPP = 0.01
_BLOCK = 1 << 15
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def hash_column(column: KeyColumn) -> UInt64Array:
    """The hash of every key."""
    if column.key_type.is_bytes:
        return hash_bytes(column.keys)
    keys = column.keys
    if column.key_type.floating:  # the bits, not their rank; native order
        keys = column.key_type.to_stored(keys).astype(column.key_type.dtype)
    return hash_integers(keys)


def hash_integers(values: IntArray) -> UInt64Array:
    """Thomas Wang's mix of integers, sign-extended to 64 bits.

    >>> [f"{int(value):016X}" for value in hash_integers(np.array([1, -1]))]
    ['5BCA7C69B794F8CE', '5BCA868437950D03']
    """
    hashes = np.empty(len(values), np.int64)
    for start in range(0, len(values), BLOCK):  # a block stays in the cache for all seven steps
        key = values[start : start + BLOCK].astype(np.int64)
        key = ~key + (key << 21)
        key ^= key >> 24
        key *= 265
        key ^= key >> 14
        key *= 21
        key ^= key >> 28
        key += key << 31
        hashes[start : start + BLOCK] = key
    return hashes.view(np.uint64)


def hash_bytes(keys: pa.LargeBinaryArray) -> UInt64Array:
    """XXH64 with seed 0 of every value of a large_binary array without nulls."""
    return hash_values(ByteValues.of(keys), _xxh64, xxhash.xxh64_intdigest)


def _xxh64(values: SameLength) -> UInt64Array:
    """XXH64 of values of one length."""
    count, length, words = len(values), values.length, values.words
    at = 0
    if length >= _STRIPE:
        lanes = [
            np.full(count, seed, np.uint64)
            for seed in ((int(_P1) + int(_P2)) % 2**64, _P2, 0, 2**64 - int(_P1))
        ]
        while at + _STRIPE <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], words(at + 8 * lane, 8))
            at += _STRIPE
        digest = np.zeros(count, np.uint64)
        for value, by in zip(lanes, (1, 7, 12, 18), strict=True):
            digest += rotate(value, by)
        for value in lanes:
            digest = (digest ^ _round(np.uint64(0), value)) * _P1 + _P4
    else:
        digest = np.full(count, _P5, np.uint64)
    digest += np.uint64(length)
    while at + 8 <= length:
        digest = rotate(digest ^ _round(np.uint64(0), words(at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        digest = rotate(digest ^ words(at, 4) * _P1, 23) * _P2 + _P3
        at += 4
    while at < length:
        digest = rotate(digest ^ words(at, 1) * _P5, 11) * _P1
        at += 1
    digest ^= digest >> np.uint64(33)
    digest *= _P2
    digest ^= digest >> np.uint64(29)
    digest *= _P3
    return digest ^ (digest >> np.uint64(32))


def _round(lane: UInt64Array | np.uint64, word: UInt64Array) -> UInt64Array:
    mixed = rotate(lane + word * _P2, 31)
    mixed *= _P1
    return mixed


def sizing(items: int, fpp: float) -> tuple[int, int]:
    """Bits and hash functions for `items` distinct values, as Paimon computes them.

    >>> sizing(1_000_000, 0.1)
    (4792536, 3)
    """
    wanted = -items * math.log(fpp) / (math.log(2) * math.log(2))
    bits = _whole_bytes(wanted)
    return bits, min(max(1, math.floor(bits / items * math.log(2) + 0.5)), _MOST_FUNCTIONS)


def lean_sizing(items: int, fpp: float) -> tuple[int, int]:
    """Bits and hash functions with about 0.7 of the functions that need the fewest bits.

    At 0.01 five functions in place of seven take 3 % more bits, and every build and probe 2/7 less
    work.

    >>> lean_sizing(1_000_000, 0.01)
    (9848808, 5)
    """
    functions = min(max(1, round(-0.7 * math.log2(fpp))), _MOST_FUNCTIONS)
    return _whole_bytes(-functions * items / math.log1p(-(fpp ** (1 / functions)))), functions


def _whole_bytes(wanted: float) -> int:
    """The next multiple of 8 above, as Paimon rounds."""
    bits = int(wanted) + 8 - int(wanted) % 8
    if bits > _MOST_BITS:
        raise LimitError(f"a bloom filter of {bits} bits is too large: at most {_MOST_BITS}")
    return bits


def build(column: KeyColumn, *, items: int | None = None, fpp: float | None = None) -> bytes:
    """Build the index.

    With `items`, the expected distinct values, it has Paimon's size, and Paimon's default of 0.1
    for the share of false positives `fpp`. Without, it fits the distinct values found, with an
    `fpp` of 0.01.
    """
    hashes = hash_column(column)
    if items is None:
        hashes = np.sort(hashes)  # plain np.unique would go through a slow hash table
        hashes = hashes[changes(hashes)]
        bits, functions = lean_sizing(max(len(hashes), 1), _OWN_FPP if fpp is None else fpp)
    else:
        bits, functions = sizing(items, _PAIMON_FPP if fpp is None else fpp)
    return fill(hashes, functions, bits)


def fill(hashes: UInt64Array, functions: int, bits: int) -> bytes:
    """The filter of a size with the bits of hashes."""
    is_set = np.zeros(bits, bool)
    for start in range(0, len(hashes), _BLOCK):  # a block stays in the cache for all functions
        for positions in bit_positions(hashes[start : start + _BLOCK], functions, bits):
            is_set[positions.astype(np.intp)] = True  # NumPy would convert more slowly itself
    return Writer().i32(functions).raw(np.packbits(is_set, bitorder="little").tobytes()).to_bytes()


def bit_positions(
    hashes: UInt64Array, functions: int, bits: int | UInt32Array
) -> Sequence[UInt32Array]:
    """The bit of each hash, for each function."""
    low, high = hashes.astype(np.uint32), (hashes >> np.uint64(32)).astype(np.uint32)
    return list(islice(_positions(low, high, np.uint32(bits)), functions))


def _positions(
    low: UInt32Array, high: UInt32Array, bits: np.uint32 | UInt32Array
) -> Iterator[UInt32Array]:
    """The bits of hashes by one function after the other, from the halves of the hashes."""
    while True:
        low = low + high
        folded = (low.view(np.int32) ^ (low.view(np.int32) >> 31)).view(np.uint32)
        yield folded - folded // bits * bits  # faster than %, see floor_divide


def hash_keys(keys: Sequence[Key], key_type: KeyType) -> UInt64Array:
    """The hashes that filters of a column with keys of this type have bits of."""
    return hash_column(KeyColumn(len(keys), key_type, key_array(keys, key_type), None))


def probe_filters(
    functions: Int64Array,
    bits: Int64Array,
    hashes: UInt64Array,
    read_bytes: Callable[[Int64Array, Int64Array], UInt8Array],
    *,
    first: int = 1,
    then: int = 1,
) -> BoolArray:
    """Probe filters for hashes: a row for each filter, with whether it may have each hash.

    A hash that one bit rules out is looked at no further.

    Args:
        functions: The hash functions of each filter.
        bits: The bits of each filter.
        hashes: The hashes; see `hash_keys`.
        read_bytes: Gives bytes of filters, by the number of the filter and the offset behind its
            head, for many pairs of these at once.
        first: How many functions are looked at in the first round of reads.
        then: How many in each round after that.
    """
    may_have = np.zeros((len(functions), len(hashes)), np.bool_)
    pairs = np.arange(may_have.size)  # of filter and hash
    rows = np.repeat(np.arange(len(functions)), len(hashes))
    low = np.tile(hashes.astype(np.uint32), len(functions))
    high = np.tile((hashes >> np.uint64(32)).astype(np.uint32), len(functions))
    left, sizes = functions[rows], bits.astype(np.uint32)[rows]
    count = first
    while len(pairs):
        count = min(count, int(left.max()))
        if count == 1:
            positions = next(_positions(low, high, sizes))
            alive = _is_set(read_bytes(rows, (positions >> 3).astype(np.int64)), positions)
        else:
            every = np.array(list(islice(_positions(low, high, sizes), count)))
            number, pair = np.nonzero(np.arange(count)[:, None] < left)
            positions = every[number, pair]
            values = read_bytes(rows[pair], (positions >> 3).astype(np.int64))
            alive = np.ones(len(pairs), np.bool_)
            alive[pair[~_is_set(values, positions)]] = False
        may_have.ravel()[pairs[alive & (left <= count)]] = True
        alive &= left > count
        low = (low + high * np.uint32(count))[alive]
        pairs, rows, high = pairs[alive], rows[alive], high[alive]
        left, sizes = left[alive] - count, sizes[alive]
        count = then
    return may_have


def _is_set(values: UInt8Array, positions: UInt32Array) -> BoolArray:
    """Whether bits are set in the bytes that they are in."""
    return (values >> (positions & 7).astype(np.uint8) & 1).astype(np.bool_)


class BloomFilterReader(IndexReader):
    """Reads single bytes of the filter, so that a probe costs no more than it needs."""

    def __init__(self, section: Section, key_type: KeyType) -> None:
        """Open the payload `section` of a column with keys of `key_type`."""
        if section.length <= _HEAD:
            raise section.error(
                "truncated bloom filter", 0, found=f"{section.length} bytes", expected="more than 4"
            )
        self.bits = 8 * (section.length - _HEAD)
        if self.bits > _MOST_BITS:
            raise section.error("bloom filter too large", 0, found=self.bits, expected=_MOST_BITS)
        self._section, self._key_type = section, key_type

    @cached_property
    def functions(self) -> int:
        """How many hash functions set bits."""
        count = int.from_bytes(self._section.read(0, _HEAD), "big", signed=True)
        if not 0 < count <= _MOST_READABLE_FUNCTIONS:
            raise self._section.error(
                "bad hash function count",
                0,
                found=count,
                expected=f"1 to {_MOST_READABLE_FUNCTIONS}",
            )
        return count

    def is_in(self, keys: Sequence[Key]) -> Selection:
        """Any row if one of the keys may be there, else none."""
        return ANY if self._probe(hash_keys(keys, self._key_type)).any() else no_row()

    def may_have(self, hashes: UInt64Array) -> BoolArray:
        """For each hash whether the filter lets it pass."""
        step = max(_BLOCK * 8 // self.functions, 1)
        parts = [self._probe(hashes[start : start + step]) for start in range(0, len(hashes), step)]
        return np.concatenate(parts) if parts else np.zeros(0, np.bool_)

    def _probe(self, hashes: UInt64Array) -> BoolArray:
        read_whole = len(hashes) * self.functions * 64 >= self._section.length

        def read_bytes(_rows: Int64Array, offsets: Int64Array) -> UInt8Array:
            if read_whole:
                return self.filter[offsets]
            parts = [self._section.read(_HEAD + offset, 1) for offset in offsets.tolist()]
            return np.frombuffer(b"".join(parts), np.uint8)

        functions, bits = np.array([self.functions]), np.array([self.bits])
        may_have: BoolArray = probe_filters(functions, bits, hashes, read_bytes)[0]
        return may_have

    @cached_property
    def filter(self) -> UInt8Array:
        """All bytes of the filter."""
        return np.frombuffer(self._section.read(_HEAD, self._section.length - _HEAD), np.uint8)


_MOST_BYTES = 1 << 28
_MOST_STACKED_FUNCTIONS = 64


def are_usual(payloads: Sequence[bytes]) -> BoolArray:
    """Which filters hold some bits, and have a number of hash functions that is often seen.

    Others are asked one by one, and say what is wrong with them.

    >>> are_usual([bytes((0, 0, 0, 1, 255)), b"damaged", b""]).tolist()
    [True, False, False]
    """
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    heads = b"".join([payload[:_HEAD].ljust(_HEAD, b"\0") for payload in payloads])
    functions = np.frombuffer(heads, ">u4")
    is_sized = (lengths > _HEAD) & (lengths < _MOST_BYTES)
    usual: BoolArray = is_sized & (functions > 0) & (functions <= _MOST_STACKED_FUNCTIONS)
    return usual


def may_have_any(payloads: Sequence[bytes], keys: Sequence[Key], key_type: KeyType) -> BoolArray:
    """For each of some usual filters, whether one of the keys may be there.

    >>> import pyarrow as pa
    >>> from alcid.formats.file_index.bloom_filter import build
    >>> from alcid.formats.file_index.keys import read_column
    >>> from alcid.types import DataType
    >>> columns = [read_column(pa.array(ids), DataType("BIGINT")) for ids in ([1, 2], [3])]
    >>> may_have_any([build(column) for column in columns], [3], columns[0].key_type).tolist()
    [False, True]
    """
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    data = np.frombuffer(b"".join(payloads), np.uint8)
    starts = np.cumsum(lengths) - lengths
    functions = integers_at(data, starts).astype(np.int64)

    def read_bytes(rows: Int64Array, offsets: Int64Array) -> UInt8Array:
        requested: UInt8Array = data[starts[rows] + _HEAD + offsets]
        return requested

    bits = 8 * (lengths - _HEAD)
    may_have = probe_filters(functions, bits, hash_keys(keys, key_type), read_bytes)
    return np.logical_or.reduce(may_have, axis=1)  # type: ignore[no-any-return]
