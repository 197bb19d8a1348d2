"""One payload as a source of its own, which checks every block before it gives a byte of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Lock

from alcid.bundle.blocks import BLOCK, CONTENT, block_count, damaged_block, stored, unseal
from alcid.bundle.directory import HEAD
from alcid.errors import ChecksumError, FormatError
from alcid.formats.source import Range, ReadMany, Source, read_each

__all__ = ["CheckedSource", "check_blocks", "prefetch"]

_LARGE = 32 << 10


class CheckedSource:
    """The payload of one file: a `Source` for the readers of `alcid.formats.file_index`.

    Blocks are read when a part of them is asked for, in one read from the first that is missing to
    the last, and kept. The first four bytes are known from the directory and cost no read.
    """

    def __init__(self, source: Source, start: int, length: int, head: bytes, what: str) -> None:
        """Serve `length` bytes, whose blocks begin at `start` of `source`."""
        self.name = f"{source.name}: {what}"
        self._what = what
        self.size = length
        self._source, self._start, self._head = source, start, head
        self._known = bytearray(block_count(length))  # 1 for each block that was checked
        self._firsts: list[int] = []  # the first block of each run that was read, ascending
        self._runs: list[bytes] = []  # what these hold; no block is in two of them
        self._lock = Lock()
        self.taken = 0
        """The bytes that were read so far; what was made of them may be in memory."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`.

        Raises:
            ChecksumError: A block is damaged; the error names the bundle and the place in it.
        """
        if offset + length <= HEAD:
            return self._head[offset : offset + length]
        with self._lock:  # what one thread keeps must not replace what another has just read
            return self._read(offset, length)

    def _read(self, offset: int, length: int) -> bytes:
        for first, end in self._missing([(offset, length)]):
            data = self._source.read(*self._place(first, end))
            if length > _LARGE and first == offset // CONTENT:
                # What is as long as this is decoded once, and kept by whoever did.
                run = self._checked(first, end, data)
                begin = offset - first * CONTENT
                if begin + length <= len(run):
                    return run[begin : begin + length]
            self._accept(first, end, data)
        pieces = list(self._pieces(offset, min(offset + length, self.size)))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _pieces(self, begin: int, end: int) -> Iterator[bytes]:
        """The bytes from `begin` to before `end`, of blocks that were read."""
        place = max(bisect_right(self._firsts, begin // CONTENT) - 1, 0)
        while begin < end:
            base, run = self._firsts[place] * CONTENT, self._runs[place]
            stop = min(end, base + len(run))
            yield run[begin - base : stop - base]
            begin, place = stop, place + 1

    def _missing(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """For each range the blocks to read, from the first that is missing to the last."""
        for offset, length in ranges:
            blocks = offset // CONTENT, block_count(min(offset + length, self.size))
            needed = length and offset + length > HEAD
            first = self._known.find(0, *blocks) if needed else -1
            if first >= 0:
                yield first, self._known.rfind(0, *blocks) + 1

    def _place(self, first: int, end: int) -> tuple[int, int]:
        """Offset and length of some blocks in the bundle."""
        begins = first * BLOCK
        return self._start + begins, min(end * BLOCK, stored(self.size)) - begins

    def _checked(self, first: int, end: int, data: bytes) -> bytes:
        """What blocks hold, if none of them is damaged."""
        place = Range(self._source, *self._place(first, end))
        self.taken += len(data)
        return unseal(check_blocks(data, place, self._what))

    def _accept(self, first: int, end: int, data: bytes) -> None:
        """Check blocks, and keep what they hold in place of what lies between them."""
        run = self._checked(first, end, data)
        within = slice(bisect_left(self._firsts, first), bisect_left(self._firsts, end))
        self._firsts[within], self._runs[within] = [first], [run]
        self._known[first:end] = b"\1" * (end - first)


def check_blocks(data: bytes, place: Range, what: str) -> memoryview:
    """Blocks of `what` that were read at `place`, if none is damaged.

    Raises:
        ChecksumError: One is.
    """
    source, offset, length = place
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
    places: list[tuple[CheckedSource, int, int]] = []
    ranges: list[Range] = []
    for checked, parts in wanted:
        for first, end in checked._missing(parts):
            places.append((checked, first, end))
            ranges.append(Range(checked._source, *checked._place(first, end)))
    parts_read = read_many(ranges) if ranges else ()
    for (checked, first, end), data in zip(places, parts_read, strict=True):
        with suppress(FormatError), checked._lock:
            checked._accept(first, end, data)
