"""Sources of which parts are in memory already: what is cached is not read again."""

from __future__ import annotations

import io
from bisect import bisect_right, insort
from collections.abc import Iterable
from operator import itemgetter

import pyarrow as pa

from alcid.formats.source import Range, Source, read_each
from alcid.storage.ranges import ReadReport, read_counted

_Part = tuple[int, bytes | memoryview]
_START = itemgetter(0)


class CachedSource:
    """Passes reads on to another source, unless they lie within a part that is cached.

    >>> from alcid.formats.source import BytesSource
    >>> source = CachedSource(BytesSource(b"abcdef"))
    >>> source.load(2, 3)
    >>> source.read(3, 2)  # without a read of the other source
    b'de'
    """

    def __init__(self, source: Source, parts: Iterable[_Part] = ()) -> None:
        """Cache these parts of `source`, each given by its offset and its bytes."""
        self.name, self.size = source.name, source.size
        self.source = source
        """The source behind it."""
        self._parts: list[_Part] = sorted(parts, key=_START)

    def load(self, offset: int, length: int) -> None:
        """Read a part and cache it, unless it is cached already."""
        if not self.has(offset, length):
            self.add(offset, self.source.read(offset, length))

    def add(self, offset: int, data: bytes | memoryview) -> None:
        """Cache a part that was read elsewhere."""
        insort(self._parts, (offset, data), key=_START)

    def has(self, offset: int, length: int) -> bool:
        """Whether a range is cached."""
        return self.view(offset, length) is not None

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        cached = self.view(offset, length)
        return self.source.read(offset, length) if cached is None else bytes(cached)

    def view(self, offset: int, length: int) -> memoryview | None:
        """The bytes of a range without a copy; None if no part holds all of it."""
        # Parts may overlap, so one that begins earlier may reach further.
        for number in range(bisect_right(self._parts, offset, key=_START) - 1, -1, -1):
            start, data = self._parts[number]
            if offset + length <= start + len(data):
                return memoryview(data)[offset - start : offset - start + length]
        return None


class ArrowFile:
    """A file object through which Arrow reads a cached source: its column chunks, as a rule.

    Where a writer is known to have given too small a length, Arrow reads some bytes more than the
    chunk: what is not cached is read from the source behind it.

    Only for reads in the thread of the caller: a thread of Arrow that releases a Python object
    while the interpreter shuts down ends the process.
    """

    closed = False

    def __init__(self, source: CachedSource, report: ReadReport) -> None:
        """Begin at offset 0."""
        self._source, self._report = source, report
        self._position = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, or from the end."""
        self._position = offset + (self._source.size if whence == io.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """The offset that is read next."""
        return self._position

    def close(self) -> None:
        """Nothing is open."""

    def read_buffer(self, length: int) -> pa.Buffer:
        """What Arrow calls to read Parquet: bytes of one part, without a copy."""
        return pa.py_buffer(self.read(length))

    def read(self, length: int) -> bytes | memoryview:
        """What Arrow calls to read ORC."""
        begin = self._position
        length = max(0, min(length, self._source.size - begin))
        self._position = begin + length
        cached = self._source.view(begin, length)
        if cached is not None:
            return cached
        behind = Range(self._source.source, begin, length)
        (data,) = read_counted([behind], self._report, read_each)
        return data
