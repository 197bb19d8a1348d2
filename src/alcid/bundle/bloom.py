"""Probing the bloom filters of many files at once: the blocks that hold the bits, and no more.

The directory has the number of hash functions and the size of each filter, so the bits are known
before anything is read, and one round of small reads answers for all files of all bundles.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from alcid.bundle.blocks import BLOCK, CONTENT, RESIDUE, stored
from alcid.bundle.coverage import Coverage
from alcid.bundle.directory import HEAD, Integers
from alcid.bundle.filters import MOST_FUNCTIONS, Filters
from alcid.errors import ChecksumError, FormatError
from alcid.formats.file_index.bloom_filter import bit_positions
from alcid.formats.file_index.column import KeyColumn, key_array
from alcid.formats.file_index.hashes import hash_column
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.ranges import coalesce
from alcid.formats.same_length import Hashes
from alcid.formats.source import Range, ReadMany, read_each

__all__ = ["Answer", "probe"]

_MOST_BITS = 1 << 22  # that are looked at together
_LARGEST = 16 << 20  # bytes that are read in one
_FEW_KEYS, _FIRST = 2, 2  # more keys leave few filters without a bit of each
_BUNDLE = 1 << 48  # of one address space for all bundles; no bundle is as long


@dataclass(frozen=True, slots=True)
class Answer:
    """What the filters say, for each file asked."""

    may_match: npt.NDArray[np.bool_]
    """False where no row has one of the keys."""
    damage: dict[int, FormatError] = field(default_factory=dict)
    """What is damaged, by the place of the file in the listing.

    Such a file may match, unless another block of its filter shows that it does not.
    """


def probe(
    coverage: Coverage,
    files: Integers,
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

    def __init__(self, filters: Filters, hashes: Hashes, first: int, last: int, gap: int) -> None:
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

    def answer(
        self, parts: Sequence[bytes]
    ) -> tuple[npt.NDArray[np.bool_], list[tuple[int, FormatError]]]:
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
        may_match: npt.NDArray[np.bool_] = is_set.all(axis=0).any(axis=1)
        return may_match, errors

    def _error(self, number: int) -> ChecksumError:
        bundle, offset = divmod(int(self._blocks[number]), _BUNDLE)
        series = self._filters.series[bundle]
        problem = f"damaged block of {series.kind}"
        return ChecksumError(problem, file=series.source.name, offset=offset)
