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
import pyarrow as pa

from alcid.bundle.blocks import BLOCK, CONTENT, RESIDUE, stored
from alcid.bundle.coverage import Coverage
from alcid.bundle.directory import HEAD, Integers
from alcid.bundle.series import Series
from alcid.errors import ChecksumError, FormatError
from alcid.formats.file_index.bloom_filter import bit_positions
from alcid.formats.file_index.column import KeyColumn
from alcid.formats.file_index.hashes import hash_column
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.same_length import Hashes
from alcid.formats.source import Range, ReadMany, read_each

__all__ = ["Answer", "probe"]

_MOST_FUNCTIONS = 64  # filters with more are rare, and asked one by one
_MOST_BITS = 1 << 22  # that are looked at together
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
) -> Answer:
    """Ask the bloom filters of some files whether a row may have one of the keys.

    Args:
        coverage: Where the filters are; a file without one may match.
        files: The files to ask, by their places in the listing.
        keys: What to look for, as keys of `alcid.formats.file_index.keys`.
        key_type: The type of the keys.
        read_many: How to read a round of ranges.
    """
    may_match = np.ones(len(files), np.bool_)
    damage: dict[int, FormatError] = {}
    values = (
        pa.array(keys, pa.large_binary()) if key_type.is_bytes else np.array(keys, key_type.dtype)
    )
    hashes = hash_column(KeyColumn(len(keys), key_type, values, None))
    together = max(_MOST_BITS // max(len(keys) * _MOST_FUNCTIONS, 1), 1)
    for start in range(0, len(files), together):
        chunk = files[start : start + together]
        filters = _filters(coverage, chunk)
        odd = filters.take(~filters.usual)
        for place, number, entry in zip(
            odd.places.tolist(), odd.bundles.tolist(), odd.entries.tolist(), strict=True
        ):
            try:
                reader = filters.series[number].index(entry, key_type)
                may_match[start + place] = not reader.is_in(keys).skip
            except FormatError as error:
                damage[int(chunk[place])] = error
        one = _Probe(filters.take(filters.usual), hashes)
        ranges = one.ranges()
        answers, damaged = one.answer(read_many(ranges) if ranges else ())
        may_match[start + one.places] = answers
        damage.update((int(chunk[place]), error) for place, error in damaged)
    return Answer(may_match, damage)


@dataclass(frozen=True, slots=True, eq=False)
class _Filters:
    """Filters of some files, in columns."""

    series: dict[int, Series]
    """By the number of their bundle."""
    places: Integers
    """The place of each among the files that are asked."""
    bundles: Integers
    entries: Integers
    starts: Integers
    """Where each begins in its bundle."""
    lengths: Integers
    functions: Integers

    @property
    def usual(self) -> npt.NDArray[np.bool_]:
        """Those that hold some bits, and have a number of hash functions that can be."""
        lengths, functions = self.lengths, self.functions
        usual: npt.NDArray[np.bool_] = (lengths > HEAD) & (lengths < 1 << 28)
        return usual & (functions > 0) & (functions <= _MOST_FUNCTIONS)

    def take(self, chosen: npt.NDArray[np.bool_]) -> _Filters:
        """Some of them."""
        return _Filters(
            self.series,
            self.places[chosen],
            self.bundles[chosen],
            self.entries[chosen],
            self.starts[chosen],
            self.lengths[chosen],
            self.functions[chosen],
        )


def _filters(coverage: Coverage, files: Integers) -> _Filters:
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
    every = _Filters(series, np.arange(len(files)), bundles, entries, starts, lengths, functions)
    return every.take(present)


class _Probe:
    """The bits to look at in filters of any number of bundles."""

    def __init__(self, filters: _Filters, hashes: Hashes) -> None:
        self.places = filters.places
        self._series = filters.series
        functions = filters.functions
        sizes = (8 * (filters.lengths - HEAD)).astype(np.uint32)
        # Arrays of (functions, filters, keys); what a filter does not have looks at its first bit.
        most = int(functions.max(initial=1))
        found = bit_positions(hashes[None, :], most, sizes[:, None])
        positions = np.array(found).astype(np.int64)
        used = np.arange(most)[:, None, None] < functions[None, :, None]
        positions = np.where(used, positions, positions[:1])
        offsets = HEAD + (positions >> 3)
        self._shape = offsets.shape
        self._within = offsets % CONTENT
        self._bits = (positions & 7).astype(np.uint8)
        begins = filters.bundles * _BUNDLE + filters.starts
        addresses = begins[None, :, None] + offsets // CONTENT * BLOCK
        ends = np.broadcast_to((begins + stored(filters.lengths))[None, :, None], self._shape)
        self._blocks, first, self._block = np.unique(
            addresses.ravel(), return_index=True, return_inverse=True
        )
        self._sizes = np.minimum(ends.ravel()[first] - self._blocks, BLOCK)

    def ranges(self) -> list[Range]:
        """The blocks to read."""
        numbers, offsets = np.divmod(self._blocks, _BUNDLE)
        sources = {number: one.source for number, one in self._series.items()}
        return [
            Range(sources[number], offset, size)
            for number, offset, size in zip(
                numbers.tolist(), offsets.tolist(), self._sizes.tolist(), strict=True
            )
        ]

    def answer(
        self, parts: Sequence[bytes]
    ) -> tuple[npt.NDArray[np.bool_], list[tuple[int, FormatError]]]:
        """Whether each filter may have a key, and which are damaged; `parts` are the blocks."""
        crc = zlib.crc32
        blocks, bad = [], []
        for number, (part, size) in enumerate(zip(parts, self._sizes.tolist(), strict=True)):
            is_good = len(part) == size and crc(part) == RESIDUE
            blocks.append(part if is_good else bytes(size))
            if not is_good:
                bad.append(number)
        data = np.frombuffer(b"".join(blocks), np.uint8)
        begins = np.cumsum(self._sizes) - self._sizes
        block = self._block.reshape(self._shape)
        is_set = (data[begins[block] + self._within] >> self._bits & 1).astype(np.bool_)
        errors: list[tuple[int, FormatError]] = []
        if bad:
            is_bad = np.isin(block, bad)
            is_set |= is_bad
            for place in np.flatnonzero(is_bad.any(axis=(0, 2))).tolist():
                first = int(block[:, place][is_bad[:, place]].min())
                errors.append((int(self.places[place]), self._error(first)))
        may_match: npt.NDArray[np.bool_] = is_set.all(axis=0).any(axis=1)
        return may_match, errors

    def _error(self, number: int) -> ChecksumError:
        bundle, offset = divmod(int(self._blocks[number]), _BUNDLE)
        series = self._series[bundle]
        problem = f"damaged block of {series.kind}"
        return ChecksumError(problem, file=series.source.name, offset=offset)
