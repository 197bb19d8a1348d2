"""Payloads of one kind: a single one as a checked source, those of a bundle, those of a table.

No byte of a payload is used before the checksum of its block was compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from threading import Lock

import numpy as np

from alcid._arrays import Int8Array, Int64Array, UInt8Array
from alcid.errors import ChecksumError, FormatError, UnsupportedError
from alcid.formats.file_index import READERS
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.reader import EmptyReader, IndexReader
from alcid.formats.source import Range, ReadMany, Section, Source, read_each
from alcid.index.bundle.directory import (
    BLOCK,
    CONTENT,
    HEAD,
    Directory,
    block_count,
    damaged_block,
    stored,
    unseal,
)
from alcid.index.bundle.format import INDEX, PayloadKind

_LARGE = 32 << 10


class CheckedSource:
    """The payload of one file: a `Source` for the readers of `alcid.formats.file_index`.

    Blocks are read when a part of them is requested, in one read from the first that is missing to
    the last, and cached. The first four bytes are in the directory and cost no read.
    """

    def __init__(self, source: Source, start: int, length: int, head: bytes, what: str) -> None:
        """Serve `length` bytes, whose blocks begin at `start` of `source`."""
        self.name = f"{source.name}: {what}"
        self._what = what
        self.size = length
        self._source, self._start, self._head = source, start, head
        self._checked_blocks = bytearray(block_count(length))  # 1 for each block that was checked
        self._firsts: list[int] = []  # the first block of each run that was read, ascending
        self._runs: list[bytes] = []  # what these hold; no block is in two of them
        self._lock = Lock()
        self.taken = 0
        """The bytes that were read so far; what was made of them may be in memory."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`.

        Raises:
            ChecksumError: A block is damaged; the error names the bundle and the offset in it.
        """
        if offset + length <= HEAD:
            return self._head[offset : offset + length]
        with self._lock:  # what one thread caches must not replace what another has just read
            return self._read(offset, length)

    def _read(self, offset: int, length: int) -> bytes:
        for first, end in self._missing([(offset, length)]):
            data = self._source.read(*self._range(first, end))
            if length > _LARGE and first == offset // CONTENT:
                # What is as long as this is decoded once, and cached by whoever did.
                run = self._checked(first, end, data)
                begin = offset - first * CONTENT
                if begin + length <= len(run):
                    return run[begin : begin + length]
            self._accept(first, end, data)
        pieces = list(self._pieces(offset, min(offset + length, self.size)))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _pieces(self, begin: int, end: int) -> Iterator[bytes]:
        """The bytes from `begin` to before `end`, of blocks that were read."""
        number = max(bisect_right(self._firsts, begin // CONTENT) - 1, 0)
        while begin < end:
            base, run = self._firsts[number] * CONTENT, self._runs[number]
            stop = min(end, base + len(run))
            yield run[begin - base : stop - base]
            begin, number = stop, number + 1

    def _missing(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """For each range the blocks to read, from the first that is missing to the last."""
        for offset, length in ranges:
            blocks = offset // CONTENT, block_count(min(offset + length, self.size))
            needed = length and offset + length > HEAD
            first = self._checked_blocks.find(0, *blocks) if needed else -1
            if first >= 0:
                yield first, self._checked_blocks.rfind(0, *blocks) + 1

    def _range(self, first: int, end: int) -> tuple[int, int]:
        """Offset and length of some blocks in the bundle."""
        begins = first * BLOCK
        return self._start + begins, min(end * BLOCK, stored(self.size)) - begins

    def _checked(self, first: int, end: int, data: bytes) -> bytes:
        """What blocks hold, if none of them is damaged."""
        blocks = Range(self._source, *self._range(first, end))
        self.taken += len(data)
        return unseal(check_blocks(data, blocks, self._what))

    def _accept(self, first: int, end: int, data: bytes) -> None:
        """Check blocks, and cache their content in place of what lies between them."""
        run = self._checked(first, end, data)
        within = slice(bisect_left(self._firsts, first), bisect_left(self._firsts, end))
        self._firsts[within], self._runs[within] = [first], [run]
        self._checked_blocks[first:end] = b"\1" * (end - first)


def check_blocks(data: bytes | memoryview, block_range: Range, what: str) -> memoryview:
    """The blocks of `what` that were read, if none is damaged.

    Raises:
        ChecksumError: One is.
    """
    source, offset, length = block_range
    if len(data) != length:
        raise FormatError(
            "short read", file=source.name, offset=offset, found=len(data), expected=length
        )
    blocks = memoryview(data)
    damaged = damaged_block(blocks)
    if damaged is not None:
        problem = f"damaged block of {what}"
        raise ChecksumError(problem, file=source.name, offset=offset + damaged * BLOCK)
    return blocks


def prefetch(
    wanted: Iterable[tuple[CheckedSource, Sequence[tuple[int, int]]]],
    read_many: ReadMany = read_each,
) -> None:
    """Read ranges, as (offset, length), of many payloads in one round.

    What is damaged is left out: reading it then raises, for that file alone.
    """
    missing: list[tuple[CheckedSource, int, int]] = []
    ranges: list[Range] = []
    for checked, parts in wanted:
        for first, end in checked._missing(parts):
            missing.append((checked, first, end))
            ranges.append(Range(checked._source, *checked._range(first, end)))
    parts_read = read_many(ranges) if ranges else ()
    for (checked, first, end), data in zip(missing, parts_read, strict=True):
        with suppress(FormatError), checked._lock:
            checked._accept(first, end, data)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The payloads of one kind, by their entries in the directory."""

    kind: PayloadKind
    directory: Directory
    source: Source
    """The bundle."""
    start: int
    """Where the payloads begin in it."""

    def entry(self, row: int) -> int | None:
        """The entry of a file, by its row in the bundle, if there is one."""
        rows = self.directory.rows
        entry = int(np.searchsorted(rows, row))
        return entry if entry < len(rows) and rows[entry] == row else None

    def payload(self, entry: int) -> CheckedSource:
        """The payload of an entry; nothing is read yet."""
        return CheckedSource(
            self.source,
            self.stored(entry).offset,
            int(self.directory.lengths[entry]),
            self.directory.heads[entry].tobytes(),
            self.name(entry),
        )

    def stored(self, entry: int) -> Range:
        """Where the blocks of an entry are."""
        start, end = self.directory.starts[entry : entry + 2].tolist()
        return Range(self.source, self.start + start, end - start)

    def name(self, entry: int) -> str:
        """What errors call the payload of an entry."""
        return f"{self.kind}, file {self.directory.rows[entry]}"

    def index(
        self, entry: int, key_type: KeyType, payload: CheckedSource | None = None
    ) -> IndexReader:
        """The index of an entry, for keys of `key_type`; what it reads is checked.

        Args:
            entry: The entry.
            key_type: The type of its keys.
            payload: What `payload` gave before, if parts of it were read by `prefetch`.

        Raises:
            FormatError: It is damaged; asking it may raise as well. Keep the file then.
            UnsupportedError: It is of a type that this version does not know.
        """
        if self.kind.type != INDEX or self.kind.index_type not in READERS:
            raise UnsupportedError(f"{self.source.name}: {self.kind}: expected a known index")
        if not self.directory.lengths[entry]:
            return EmptyReader()
        section = Section(self.payload(entry) if payload is None else payload)
        return READERS[self.kind.index_type](section, key_type)


class State(IntEnum):
    """Whether a listed file has a payload that can be used; of several the highest counts."""

    ABSENT = 0
    """No bundle has one."""
    STALE = 1
    """The file was changed since."""
    DAMAGED = 2
    """A bundle has the file, but what it has of this kind cannot be read."""
    FRESH = 3


@dataclass(frozen=True, eq=False)
class Extents:
    """Where the payloads of one kind are, of some files: all that a task needs to read them.

    No bundle has to be opened for it. It pickles, and is a `Splittable` of its files.
    """

    kind: PayloadKind
    rows: Int64Array
    """The file of each payload, as its position among the files; ascending."""
    sources: Int64Array
    """The bundle of each payload, as its number in a list of them."""
    starts: Int64Array
    """Where its first block begins in the bundle."""
    lengths: Int64Array
    """Its length without checksums."""
    heads: UInt8Array
    """Its first four bytes: an array of n rows."""
    numbers: Int64Array
    """The row of its file in the bundle, by which errors call it."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def stored(self) -> Int64Array:
        """How many bytes each payload takes in its bundle."""
        return stored(self.lengths)

    def part(self, files: Int64Array) -> Extents:
        """The payloads of some of the files, given by their positions, ascending."""
        entries = np.flatnonzero(np.isin(self.rows, files))
        rows = np.searchsorted(files, self.rows[entries])
        return replace(self.take(entries), rows=rows)

    def take(self, entries: Int64Array) -> Extents:
        """Some of the payloads, of the same files."""
        return Extents(
            self.kind,
            self.rows[entries],
            self.sources[entries],
            self.starts[entries],
            self.lengths[entries],
            self.heads[entries],
            self.numbers[entries],
        )

    def find(self, row: int) -> int | None:
        """The entry of a file, by its position, if it has a payload."""
        entry = int(np.searchsorted(self.rows, row))
        return entry if entry < len(self.rows) and self.rows[entry] == row else None

    def payload(self, entry: int, sources: Sequence[Source]) -> CheckedSource:
        """The payload of an entry, of one of the bundles; nothing is read yet."""
        return CheckedSource(
            sources[self.sources[entry]],
            int(self.starts[entry]),
            int(self.lengths[entry]),
            self.heads[entry].tobytes(),
            self.name(entry),
        )

    def name(self, entry: int) -> str:
        """What errors call the payload of an entry."""
        return f"{self.kind}, file {self.numbers[entry]}"


def use_few_sources(every: Sequence[Extents]) -> tuple[Int64Array, tuple[Extents, ...]]:
    """The bundles that payloads are in, and the payloads with their places among these."""
    used = np.unique(np.concatenate([np.empty(0, np.int64), *(e.sources for e in every)]))
    return used, tuple(replace(e, sources=np.searchsorted(used, e.sources)) for e in every)


@dataclass(frozen=True, eq=False)
class Coverage:
    """For every listed file: the newest fresh payload of one kind."""

    kind: PayloadKind
    series: tuple[Series | None, ...]
    """The payloads of each bundle."""
    states: Int8Array
    """One of `State` for each file."""
    bundles: Int64Array
    """The bundle that has it, by its number in the set; -1: none."""
    entries: Int64Array
    """The entry in `series[bundle]`; -1: none."""

    @cached_property
    def lengths(self) -> Int64Array:
        """The bytes of each payload; 0 where there is none."""
        lengths = np.zeros(len(self.entries), np.int64)
        for number, series in enumerate(self.series):
            if series is not None:
                files = np.flatnonzero(self.bundles == number)
                lengths[files] = series.directory.lengths[self.entries[files]]
        return lengths

    def extents(self, files: Int64Array, numbers: Int64Array | None = None) -> Extents:
        """Where the payloads of some files are, by the positions of the files in the listing.

        Args:
            files: The files; their places here are their rows there.
            numbers: Only payloads of these bundles.
        """
        bundles = self.bundles[files]
        present = bundles >= 0 if numbers is None else np.isin(bundles, numbers)
        rows = np.flatnonzero(present & (self.entries[files] >= 0))
        sources, entries = bundles[rows], self.entries[files[rows]]
        starts, lengths, numbers_of_files = np.zeros((3, len(rows)), np.int64)
        heads = np.zeros((len(rows), HEAD), np.uint8)
        for number in np.unique(sources).tolist():
            series = self.series[number]
            if series is not None:
                of_bundle = np.flatnonzero(sources == number)
                chosen, directory = entries[of_bundle], series.directory
                starts[of_bundle] = series.start + directory.starts[chosen]
                lengths[of_bundle] = directory.lengths[chosen]
                heads[of_bundle] = directory.heads[chosen]
                numbers_of_files[of_bundle] = directory.rows[chosen]
        return Extents(self.kind, rows, sources, starts, lengths, heads, numbers_of_files)

    def payload(self, file: int) -> CheckedSource | None:
        """The payload of a file, by its position in the listing."""
        entry = self.find(file)
        return None if entry is None else entry[0].payload(entry[1])

    def index(
        self, file: int, key_type: KeyType, payload: CheckedSource | None = None
    ) -> IndexReader | None:
        """The index of a file; see `Series.index` for the arguments and what it raises."""
        entry = self.find(file)
        return None if entry is None else entry[0].index(entry[1], key_type, payload)

    def find(self, file: int) -> tuple[Series, int] | None:
        """The payloads among which that of a file is, and its entry there."""
        entry = int(self.entries[file])
        series = self.series[self.bundles[file]] if entry >= 0 else None
        return None if series is None else (series, entry)
