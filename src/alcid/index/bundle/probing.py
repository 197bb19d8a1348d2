"""Probe the indexes of many files at once, in few rounds of reads.

Bloom filters: the directory has the number of hash functions and the size of each filter, so the
bits to look at are known before anything is read, and one round of small reads answers for all
files of all bundles.

Bitmap indexes: small ones are read whole, many in one read, and searched for the keys; files whose
index may have one of them are evaluated one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from alcid._arrays import BoolArray, Int64Array, UInt8Array, split_by
from alcid.errors import ChecksumError, FormatError
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.file_index.bloom_filter import hash_keys, probe_filters
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.source import Range, ReadMany, read_each
from alcid.index.bundle.directory import (
    BLOCK,
    CONTENT,
    HEAD,
    RESIDUE,
    damaged_block,
    unseal,
)
from alcid.index.bundle.payloads import Coverage, Series
from alcid.storage.ranges import coalesce

MOST_FUNCTIONS = 64
"""Filters with more hash functions are rare, and probed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Indexed:
    """The indexes of one kind that some files have, in columns: where each is in its bundle."""

    series: dict[int, Series]
    """By the number of their bundle."""
    positions: Int64Array
    """The position of each among the files that are probed."""
    bundles: Int64Array
    entries: Int64Array
    starts: Int64Array
    """Where each begins in its bundle."""
    sizes: Int64Array
    """The bytes of each in its bundle, with the checksums of its blocks."""
    lengths: Int64Array
    functions: Int64Array

    @property
    def is_usual(self) -> BoolArray:
        """Which bloom filters have some bits, and a number of hash functions that is plausible."""
        lengths, functions = self.lengths, self.functions
        is_usual: BoolArray = (lengths > HEAD) & (lengths < 1 << 28)
        return is_usual & (functions > 0) & (functions <= MOST_FUNCTIONS)

    def take(self, chosen: BoolArray) -> Indexed:
        """Some of them."""
        return Indexed(
            self.series,
            self.positions[chosen],
            self.bundles[chosen],
            self.entries[chosen],
            self.starts[chosen],
            self.sizes[chosen],
            self.lengths[chosen],
            self.functions[chosen],
        )

    @classmethod
    def of(cls, coverage: Coverage, files: Int64Array) -> Indexed:
        """Those that some of the files have."""
        bundles, entries = coverage.bundles[files], coverage.entries[files]
        numbers = np.unique(bundles[bundles >= 0]).tolist()
        every = {number: coverage.series[number] for number in numbers}
        by_bundle = {number: series for number, series in every.items() if series is not None}
        starts, sizes, lengths, functions = np.zeros((4, len(files)), np.int64)
        present = np.zeros(len(files), np.bool_)
        for number, series in by_bundle.items():
            here = bundles == number
            chosen, directory = entries[here], series.directory
            present |= here
            starts[here] = series.start + directory.starts[chosen]
            sizes[here] = directory.starts[chosen + 1] - directory.starts[chosen]
            lengths[here] = directory.lengths[chosen]
            functions[here] = np.ascontiguousarray(directory.heads[chosen]).view(">i4")[:, 0]
        columns = np.arange(len(files)), bundles, entries, starts, sizes, lengths, functions
        return cls(by_bundle, *columns).take(present)


_MOST_BITS = 1 << 22  # that are looked at in one batch
_LARGEST = 16 << 20  # bytes that are read in one
_FEW_KEYS, _FIRST = 2, 2  # more keys leave few filters without a bit of each
_BUNDLE = 1 << 48  # of one address space for all bundles; no bundle is as long


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What bloom filters say of each file that was probed."""

    may_match: BoolArray
    """False where no row has one of the keys."""
    damage: dict[int, FormatError] = field(default_factory=dict)
    """The errors of damaged filters, by the position of the file in the listing.

    Such a file may match, unless another block of its filter shows that it does not.
    """


def probe(
    coverage: Coverage,
    files: Int64Array,
    keys: Sequence[Key],
    key_type: KeyType,
    read_many: ReadMany = read_each,
    *,
    gap: int = 0,
    rounds: int = 1,
) -> ProbeResult:
    """Probe the bloom filters of some files: whether a row may have one of the keys.

    Args:
        coverage: Where the filters are; a file without one may match.
        files: The files to probe, by their positions in the listing.
        keys: What to look for, as keys of `alcid.formats.file_index.keys`.
        key_type: The type of the keys.
        read_many: How to read a round of ranges.
        gap: Blocks that lie so many bytes apart, or nearer, are read in one.
        rounds: Two where requests are cheap: for few keys, most filters say no in the first.
    """
    may_match = np.ones(len(files), np.bool_)
    damage: dict[int, FormatError] = {}
    hashes = hash_keys(keys, key_type)
    first = _FIRST if rounds > 1 and len(keys) <= _FEW_KEYS else MOST_FUNCTIONS
    batch = max(_MOST_BITS // max(len(keys) * MOST_FUNCTIONS, 1), 1)
    for start in range(0, len(files), batch):
        chunk = files[start : start + batch]
        filters = Indexed.of(coverage, chunk)
        unusual = filters.take(~filters.is_usual)
        for position, number, entry in zip(
            unusual.positions.tolist(),
            unusual.bundles.tolist(),
            unusual.entries.tolist(),
            strict=True,
        ):
            try:
                reader = filters.series[number].index(entry, key_type)
                may_match[start + position] = not reader.is_in(keys).skip
            except FormatError as error:
                damage[int(chunk[position])] = error
        filters = filters.take(filters.is_usual)
        blocks = _FilterBlocks(filters, read_many, gap)
        bits = 8 * (filters.lengths - HEAD)
        answers = probe_filters(
            filters.functions, bits, hashes, blocks.read_bytes, first=first, then=MOST_FUNCTIONS
        )
        may_match[start + filters.positions] = answers.any(axis=1)
        for row, problem in blocks.damage.items():
            damage[int(chunk[filters.positions[row]])] = problem
    return ProbeResult(may_match, damage)


class _FilterBlocks:
    """The bytes of filters in any number of bundles: each block is read and checked as a whole."""

    def __init__(self, filters: Indexed, read_many: ReadMany, gap: int) -> None:
        self._filters, self._read_many, self._gap = filters, read_many, gap
        self._begins = filters.bundles * _BUNDLE + filters.starts
        self._ends = self._begins + filters.sizes
        self.damage: dict[int, ChecksumError] = {}
        """The errors of damaged blocks, by filter."""

    def read_bytes(self, rows: Int64Array, offsets: Int64Array) -> UInt8Array:
        """Bytes of filters behind their heads; those of a damaged block have all bits set."""
        offsets = offsets + HEAD
        addresses = self._begins[rows] + offsets // CONTENT * BLOCK
        blocks, example, block_of = np.unique(addresses, return_index=True, return_inverse=True)
        sizes = np.minimum(self._ends[rows[example]] - blocks, BLOCK)
        begins, ends = coalesce(blocks, sizes, self._gap, _LARGEST)
        lengths = ends - begins
        data = memoryview(b"".join(self._read(begins, lengths)))
        shifts = np.cumsum(lengths) - lengths - begins
        starts = blocks + shifts[np.searchsorted(begins, blocks, "right") - 1]
        values: UInt8Array = np.frombuffer(data, np.uint8)[starts[block_of] + offsets % CONTENT]
        crc = zlib.crc32
        pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        damaged = [number for number, (a, b) in enumerate(pairs) if crc(data[a:b]) != RESIDUE]
        if damaged:
            is_damaged = np.isin(block_of, damaged)
            for row in np.unique(rows[is_damaged]).tolist():
                self.damage[row] = self._error(int(addresses[is_damaged & (rows == row)].min()))
            values = np.where(is_damaged, np.uint8(255), values)
        return values

    def _read(self, begins: Int64Array, lengths: Int64Array) -> list[bytes]:
        """What ranges of the bundles have; a short read becomes zeros, which fail their check."""
        numbers, offsets = np.divmod(begins, _BUNDLE)
        ranges = [
            Range(self._filters.series[number].source, offset, length)
            for number, offset, length in zip(
                numbers.tolist(), offsets.tolist(), lengths.tolist(), strict=True
            )
        ]
        parts = self._read_many(ranges) if ranges else ()
        return [
            part if len(part) == length else bytes(length)
            for part, length in zip(parts, lengths.tolist(), strict=True)
        ]

    def _error(self, address: int) -> ChecksumError:
        number, offset = divmod(address, _BUNDLE)
        series = self._filters.series[number]
        problem = f"damaged block of {series.kind}"
        return ChecksumError(problem, file=series.source.name, offset=offset)


SMALL = 16 << 10
"""Bytes of an index that is read whole; evaluating it would read about as much."""
_LARGEST_DICTIONARY_READ = 4 << 20  # bytes that are read in one
_ROUND = 64 << 20  # bytes that are in memory at a time
_CRC = 4


def without_keys(
    coverage: Coverage,
    files: Int64Array,
    search: BitmapSearch,
    read_many: ReadMany = read_each,
    *,
    gap: int = 0,
) -> BoolArray:
    """Which of some files have a bitmap index that contains none of the keys.

    False where that is not known: there is none, or it is large or damaged, or of a version that is
    not known.

    Args:
        coverage: Where the indexes are.
        files: The files to probe, by their positions in the listing.
        search: The keys.
        read_many: How to read a round of ranges.
        gap: Indexes that lie so many bytes apart, or nearer, are read in one.
    """
    without = np.zeros(len(files), np.bool_)
    indexes = Indexed.of(coverage, files)
    indexes = indexes.take((indexes.lengths > 0) & (indexes.lengths <= SMALL))
    sizes = indexes.sizes
    for number, series in indexes.series.items():
        here = np.flatnonzero(indexes.bundles == number)
        here = here[np.argsort(indexes.starts[here])]
        rounds = (np.cumsum(sizes[here]) - sizes[here]) // _ROUND
        for chosen in split_by(here, rounds) if len(here) else ():
            starts = indexes.starts[chosen]
            begins, ends = coalesce(starts, sizes[chosen], gap, _LARGEST_DICTIONARY_READ)
            ranges = [
                Range(series.source, begin, end - begin)
                for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
            ]
            parts = read_many(ranges)
            part_of = np.searchsorted(begins, starts, "right") - 1
            within = starts - begins[part_of]
            without[indexes.positions[chosen]] = [
                _contains_none(search, parts[part][start : start + size], size)
                for part, start, size in zip(
                    part_of.tolist(), within.tolist(), sizes[chosen].tolist(), strict=True
                )
            ]
    return without


def _contains_none(search: BitmapSearch, data: bytes, size: int) -> bool:
    """Whether an index in its blocks is whole and has none of the keys."""
    if len(data) != size or damaged_block(memoryview(data)) is not None:
        return False
    payload = data[:-_CRC] if size <= BLOCK else unseal(memoryview(data))
    return search.contains_none(payload, is_checked=True)
