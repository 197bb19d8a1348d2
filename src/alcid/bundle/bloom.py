"""Probing the bloom filters of many files at once: the blocks that hold the bits, and no more.

The directory has the number of hash functions and the size of each filter, so the bits are known
before anything is read, and one round of small reads answers for all files of all bundles.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.bundle.blocks import BLOCK, CONTENT, RESIDUE
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
        probes = []
        for places, series in _by_bundle(coverage, chunk):
            entries = coverage.entries[chunk[places]]
            usual = _usual(series, entries)
            probes.append(_Probe(series, places[usual], entries[usual], hashes))
            for place in places[~usual].tolist():
                file = int(chunk[place])
                try:
                    reader = series.index(int(coverage.entries[file]), key_type)
                    may_match[start + place] = not reader.is_in(keys).skip
                except FormatError as error:
                    damage[file] = error
        ranges = [wanted for one in probes for wanted in one.ranges()]
        parts = iter(read_many(ranges) if ranges else ())
        for one in probes:
            answers, damaged = one.answer(parts)
            may_match[start + one.places] = answers
            damage.update((int(chunk[place]), error) for place, error in damaged)
    return Answer(may_match, damage)


def _by_bundle(coverage: Coverage, files: Integers) -> Iterator[tuple[Integers, Series]]:
    """Which of the files have their filter in each bundle."""
    bundles = coverage.bundles[files]
    for number in np.unique(bundles[bundles >= 0]).tolist():
        series = coverage.series[number]
        if series is not None:
            yield np.flatnonzero(bundles == number), series


def _functions(series: Series, entries: Integers) -> Integers:
    heads = np.ascontiguousarray(series.directory.heads[entries])
    return heads.view(">i4")[:, 0].astype(np.int64)


def _usual(series: Series, entries: Integers) -> npt.NDArray[np.bool_]:
    """Filters that hold some bits, and have a number of hash functions that can be."""
    functions = _functions(series, entries)
    lengths = series.directory.lengths[entries]
    usual: npt.NDArray[np.bool_] = (
        (lengths > HEAD) & (lengths < 1 << 28) & (functions > 0) & (functions <= _MOST_FUNCTIONS)
    )
    return usual


class _Probe:
    """The bits to look at in some filters of one bundle."""

    def __init__(self, series: Series, places: Integers, entries: Integers, hashes: Hashes) -> None:
        self.places = places
        self._series = series
        starts = series.directory.starts
        functions = _functions(series, entries)
        sizes = (8 * (series.directory.lengths[entries] - HEAD)).astype(np.uint32)
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
        addresses = starts[entries][None, :, None] + offsets // CONTENT * BLOCK
        self._blocks, self._block = np.unique(addresses.ravel(), return_inverse=True)
        ends = starts[np.searchsorted(starts, self._blocks, side="right")]
        self._sizes = np.minimum(ends - self._blocks, BLOCK)

    def ranges(self) -> Iterator[Range]:
        """The blocks to read."""
        source, start = self._series.source, self._series.start
        for offset, size in zip((start + self._blocks).tolist(), self._sizes.tolist(), strict=True):
            yield Range(source, offset, size)

    def answer(
        self, parts: Iterator[bytes]
    ) -> tuple[npt.NDArray[np.bool_], list[tuple[int, FormatError]]]:
        """Whether each filter may have a key, and which are damaged; `parts` gives the blocks."""
        crc = zlib.crc32
        blocks, bad = [], []
        for number, size in enumerate(self._sizes.tolist()):
            part = next(parts)
            if len(part) != size or crc(part) != RESIDUE:
                bad.append(number)
                part = bytes(size)
            blocks.append(part)
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
        offset = self._series.start + int(self._blocks[number])
        problem = f"damaged block of {self._series.kind}"
        return ChecksumError(problem, file=self._series.source.name, offset=offset)
