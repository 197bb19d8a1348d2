"""Files that Arrow reads through Python, of which the bytes are in memory already."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa

from alcid.formats.source import Range, Source, read_each
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import read_counted

__all__ = ["HeldFile", "UnreadFile"]


class UnreadFile:
    """A file object for Arrow of which nothing can be read, only that it was tried."""

    closed = False

    def __init__(self, source: Source) -> None:
        """As long as `source`."""
        self._source, self._position = source, 0
        self.asked = False

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, or from the end."""
        self._position = offset + (self._source.size if whence == io.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """The offset that is read next."""
        return self._position

    def close(self) -> None:
        """Nothing is open."""

    def read_buffer(self, _length: int) -> pa.Buffer:
        """What Arrow calls to read without a copy.

        It must not raise: Arrow keeps the exception for ever, and with it what its frames hold.
        """
        self.asked = True
        return pa.py_buffer(b"")


class HeldFile(UnreadFile):
    """A file of which the column chunks that Arrow wants are held.

    Where a writer is known to have given too small a length, Arrow reads some bytes more than the
    chunk: what is not held is read from the source.
    """

    def __init__(self, source: Source, held: Mapping[int, memoryview], report: ReadReport) -> None:
        """Serve the chunks in `held`, by their offsets."""
        super().__init__(source)
        self._held, self._report = held, report

    def read_buffer(self, length: int) -> pa.Buffer:
        """Bytes of a chunk, without a copy."""
        begin = self._position
        length = min(length, self._source.size - begin)
        self._position = begin + length
        held = self._held.get(begin)
        if held is not None and len(held) >= length:
            return pa.py_buffer(held[:length])
        (data,) = read_counted([Range(self._source, begin, length)], self._report, read_each)
        return pa.py_buffer(data)
