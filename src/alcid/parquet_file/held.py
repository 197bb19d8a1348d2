"""A file that Arrow reads through Python, of which the bytes are in memory already.

Only for reads in the thread of the caller: a thread of Arrow that lets go of a Python object while
the interpreter ends, ends the process with it.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Mapping

import pyarrow as pa

from alcid.formats.source import Range, Source, read_each
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import read_counted

__all__ = ["HeldFile"]


class HeldFile:
    """A file object for Arrow, of which the parts that it wants are held: the column chunks.

    Where a writer is known to have given too small a length, Arrow reads some bytes more than the
    chunk: what is not held is read from the source.
    """

    closed = False

    def __init__(self, source: Source, held: Mapping[int, memoryview], report: ReadReport) -> None:
        """Serve the parts in `held`, by their offsets."""
        self._source, self._held, self._report = source, held, report
        self._offsets = sorted(held)
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
        place = bisect_right(self._offsets, begin) - 1
        if place >= 0:
            part = self._held[self._offsets[place]][begin - self._offsets[place] :]
            if len(part) >= length:
                return part[:length]
        (data,) = read_counted([Range(self._source, begin, length)], self._report, read_each)
        return data
