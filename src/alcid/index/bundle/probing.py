"""Probing the bloom filters of many files at once: the blocks that hold the bits, and no more.

The directory has the number of hash functions and the size of each filter, so the bits are known
before anything is read, and one round of small reads answers for all files of all bundles.

Bloom filters of some files, in columns: where each is, and how it is asked.

Searching the bitmap indexes of many files at once: which of them hold none of some keys.

They are read whole, many in one, and checked; those that may hold a key are asked as usual.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from alcid._arrays import BoolArray, Int64Array, UInt64Array
from alcid.errors import ChecksumError, FormatError
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.file_index.bloom_filter import bit_positions
from alcid.formats.file_index.hashes import hash_column
from alcid.formats.file_index.keys import Key, KeyColumn, KeyType, key_array
from alcid.formats.source import Range, ReadMany, read_each
from alcid.index.bundle.directory import (
    BLOCK,
    CONTENT,
    HEAD,
    RESIDUE,
    damaged_block,
    stored,
    unseal,
)
from alcid.index.bundle.payloads import Coverage, Series
from alcid.storage.ranges import coalesce

__all__ = ["MOST_FUNCTIONS", "Answer", "Filters", "lacking", "probe"]

MOST_FUNCTIONS = 64
"""Filters with more hash functions are rare, and asked one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Filters:
    """The filters."""

    series: dict[int, Series]
    """By the number of their bundle."""
    places: Int64Array
    """The place of each among the files that are asked."""
    bundles: Int64Array
    entries: Int64Array
    starts: Int64Array
    """Where each begins in its bundle."""
    lengths: Int64Array
    functions: Int64Array

    @property
    def usual(self) -> BoolArray:
        """Those that hold some bits, and have a number of hash functions that can be."""
        lengths, functions = self.lengths, self.functions
        usual: BoolArray = (lengths > HEAD) & (lengths < 1 << 28)
        return usual & (functions > 0) & (functions <= MOST_FUNCTIONS)

    def take(self, chosen: BoolArray) -> Filters:
        """Some of them."""
        return Filters(
            self.series,
            self.places[chosen],
            self.bundles[chosen],
            self.entries[chosen],
            self.starts[chosen],
            self.lengths[chosen],
            self.functions[chosen],
        )

    @classmethod
    def of(cls, coverage: Coverage, files: Int64Array) -> Filters:
        """Those that some of the files have."""
        bundles, entries = coverage.bundles[files], coverage.entries[files]
        numbers = np.unique(bundles[bundles >= 0]).tolist()
        series = {number: one for number in numbers if (one := coverage.series[number]) is not None}
        starts, lengths, functions = np.zeros((3, len(files)), np.int64)
        present = np.zeros(len(files), np.bool_)
        for number, one in series.items():
            here = bundles == number
            chosen, directory = entries[here], one.directory
            present |= here
            starts[here] = one.start + directory.starts[chosen]
            lengths[here] = directory.lengths[chosen]
            functions[here] = np.ascontiguousarray(directory.heads[chosen]).view(">i4")[:, 0]
        every = cls(series, np.arange(len(files)), bundles, entries, starts, lengths, functions)
        return every.take(present)


_MOST_BITS = 1 << 22  # that are looked at together
_LARGEST = 16 << 20  # bytes that are read in one
_FEW_KEYS, _FIRST = 2, 2  # more keys leave few filters without a bit of each
_BUNDLE = 1 << 48  # of one address space for all bundles; no bundle is as long


@dataclass(frozen=True, slots=True)
class Answer:
    """What the filters say, for each file asked."""

    may_match: BoolArray
    """False where no row has one of the keys."""
    damage: dict[int, FormatError] = field(default_factory=dict)
    """What is damaged, by the place of the file in the listing.

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
) -> Answer:
    """Ask the bloom filters of some files whether a row may have one of the keys.

    Args:
        coverage: Where the filters are; a file without one may match.
        files: The files to ask, by their places in the listing.
        keys: What to look for, as keys of `alcid.formats.file_index.keys`.
        key_type: The type of the keys.
        read_many: How to read a round of ranges.
        gap: Blocks that lie so many bytes apart, or nearer, are read in one.
        rounds: Two where requests are cheap: for few keys, most filters say no in the first.
    """
    may_match = np.ones(len(files), np.bool_)
    damage: dict[int, FormatError] = {}
    hashes = hash_column(KeyColumn(len(keys), key_type, key_array(keys, key_type), None))
    together = max(_MOST_BITS // max(len(keys) * MOST_FUNCTIONS, 1), 1)
    for start in range(0, len(files), together):
        chunk = files[start : start + together]
        filters = Filters.of(coverage, chunk)
        odd = filters.take(~filters.usual)
        for place, number, entry in zip(
            odd.places.tolist(), odd.bundles.tolist(), odd.entries.tolist(), strict=True
        ):
            try:
                reader = filters.series[number].index(entry, key_type)
                may_match[start + place] = not reader.is_in(keys).skip
            except FormatError as error:
                damage[int(chunk[place])] = error
        left = filters.take(filters.usual)
        for first, last in _rounds(len(keys), rounds):
            one = _Probe(left, hashes, first, last, gap)
            ranges = one.ranges()
            answers, damaged = one.answer(read_many(ranges) if ranges else ())
            may_match[start + left.places] = answers
            damage.update((int(chunk[place]), error) for place, error in damaged)
            left = left.take(answers)
    return Answer(may_match, damage)


def _rounds(keys: int, rounds: int) -> list[tuple[int, int]]:
    """Which hash functions are looked at in each round of reads."""
    if keys > _FEW_KEYS or rounds == 1:
        return [(0, MOST_FUNCTIONS)]
    return [(0, _FIRST), (_FIRST, MOST_FUNCTIONS)]


class _Probe:
    """The bits to look at in filters of any number of bundles."""

    def __init__(
        self, filters: Filters, hashes: UInt64Array, first: int, last: int, gap: int
    ) -> None:
        """For the hash functions from `first` to before `last`."""
        self._filters = filters
        functions = filters.functions
        sizes = (8 * (filters.lengths - HEAD)).astype(np.uint32)
        # Arrays of (functions, filters, keys); what a filter does not have looks at its first bit.
        most = int(functions.max(initial=1))
        found = bit_positions(hashes[None, :], most, sizes[:, None])
        positions = np.array(found).astype(np.int64)
        used = np.arange(most)[:, None, None] < functions[None, :, None]
        positions = np.where(used, positions, positions[:1])[first:last]
        offsets = HEAD + (positions >> 3)
        self._shape = offsets.shape
        self._within = offsets % CONTENT
        self._bits = (positions & 7).astype(np.uint8)
        begins = filters.bundles * _BUNDLE + filters.starts
        addresses = begins[None, :, None] + offsets // CONTENT * BLOCK
        ends = np.broadcast_to((begins + stored(filters.lengths))[None, :, None], self._shape)
        self._blocks, one, self._block = np.unique(
            addresses.ravel(), return_index=True, return_inverse=True
        )
        self._sizes = np.minimum(ends.ravel()[one] - self._blocks, BLOCK)
        self._reads = coalesce(self._blocks, self._sizes, gap, _LARGEST)

    def ranges(self) -> list[Range]:
        """What to read: the blocks, those together that lie together."""
        begins, ends = self._reads
        numbers, offsets = np.divmod(begins, _BUNDLE)
        sources = {number: one.source for number, one in self._filters.series.items()}
        return [
            Range(sources[number], offset, size)
            for number, offset, size in zip(
                numbers.tolist(), offsets.tolist(), (ends - begins).tolist(), strict=True
            )
        ]

    def answer(self, parts: Sequence[bytes]) -> tuple[BoolArray, list[tuple[int, FormatError]]]:
        """Whether each filter may have a key, and which are damaged; `parts` is what was read."""
        begins, ends = self._reads
        lengths = ends - begins
        whole = [
            part if len(part) == length else bytes(length)  # which no checksum fits
            for part, length in zip(parts, lengths.tolist(), strict=True)
        ]
        data = memoryview(b"".join(whole))
        shifts = np.cumsum(lengths) - lengths - begins
        starts = self._blocks + shifts[np.searchsorted(begins, self._blocks, "right") - 1]
        crc = zlib.crc32
        bad = [
            number
            for number, (start, end) in enumerate(
                zip(starts.tolist(), (starts + self._sizes).tolist(), strict=True)
            )
            if crc(data[start:end]) != RESIDUE
        ]
        block = self._block.reshape(self._shape)
        values = np.frombuffer(data, np.uint8)
        is_set = (values[starts[block] + self._within] >> self._bits & 1).astype(np.bool_)
        errors: list[tuple[int, FormatError]] = []
        if bad:
            is_bad = np.isin(block, bad)
            is_set |= is_bad
            for place in np.flatnonzero(is_bad.any(axis=(0, 2))).tolist():
                first = int(block[:, place][is_bad[:, place]].min())
                errors.append((int(self._filters.places[place]), self._error(first)))
        may_match: BoolArray = is_set.all(axis=0).any(axis=1)
        return may_match, errors

    def _error(self, number: int) -> ChecksumError:
        bundle, offset = divmod(int(self._blocks[number]), _BUNDLE)
        series = self._filters.series[bundle]
        problem = f"damaged block of {series.kind}"
        return ChecksumError(problem, file=series.source.name, offset=offset)


SMALL = 16 << 10
"""Bytes of an index that is read whole; asking it would read about as much."""
_LARGEST_DICTIONARY_READ = 4 << 20  # bytes that are read in one
_TOGETHER = 64 << 20  # bytes that are in memory at a time
_CRC = 4


def lacking(
    coverage: Coverage,
    files: Int64Array,
    search: BitmapSearch,
    read_many: ReadMany = read_each,
    *,
    gap: int = 0,
) -> BoolArray:
    """Which of some files have a bitmap index that holds none of the keys.

    False where that is not known: there is none, or it is large or damaged, or of a version that is
    not known.

    Args:
        coverage: Where the indexes are.
        files: The files to ask, by their places in the listing.
        search: The keys.
        read_many: How to read a round of ranges.
        gap: Indexes that lie so many bytes apart, or nearer, are read in one.
    """
    found = np.zeros(len(files), np.bool_)
    payloads = Filters.of(coverage, files)
    payloads = payloads.take((payloads.lengths > 0) & (payloads.lengths <= SMALL))
    sizes = stored(payloads.lengths)
    for number, series in payloads.series.items():
        here = np.flatnonzero(payloads.bundles == number)
        here = here[np.argsort(payloads.starts[here])]
        rounds = (np.cumsum(sizes[here]) - sizes[here]) // _TOGETHER
        for one in range(int(rounds.max(initial=-1)) + 1):
            some = here[rounds == one]
            starts = payloads.starts[some]
            begins, ends = coalesce(starts, sizes[some], gap, _LARGEST_DICTIONARY_READ)
            ranges = [
                Range(series.source, begin, end - begin)
                for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
            ]
            parts = read_many(ranges)
            part_of = np.searchsorted(begins, starts, "right") - 1
            within = starts - begins[part_of]
            found[payloads.places[some]] = [
                _is_in_vain(search, parts[part][start : start + size], size)
                for part, start, size in zip(
                    part_of.tolist(), within.tolist(), sizes[some].tolist(), strict=True
                )
            ]
    return found


def _is_in_vain(search: BitmapSearch, data: bytes, size: int) -> bool:
    """Whether an index in its blocks is whole and has none of the keys."""
    if len(data) != size or damaged_block(memoryview(data)) is not None:
        return False
    payload = data[:-_CRC] if size <= BLOCK else unseal(memoryview(data))
    return search.is_in_vain(payload, is_checked=True)
