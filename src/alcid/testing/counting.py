"""A source that counts, to show how little of an index is read."""

from __future__ import annotations

from alcid.formats.source import Source

__all__ = ["CountingSource"]


class CountingSource:
    """Passes reads on to another source, and keeps them in `reads`.

    >>> from alcid.formats.source import BytesSource
    >>> source = CountingSource(BytesSource(b"abcdef"))
    >>> source.read(2, 3)
    b'cde'
    >>> source.reads, source.bytes_read
    ([(2, 3)], 3)
    """

    def __init__(self, source: Source) -> None:
        """Count what is read of `source`."""
        self.name, self.size = source.name, source.size
        self.reads: list[tuple[int, int]] = []
        self._source = source

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        self.reads.append((offset, length))
        return self._source.read(offset, length)

    @property
    def bytes_read(self) -> int:
        """The bytes of all reads; those read twice count twice."""
        return sum(length for _, length in self.reads)

    def take(self) -> list[tuple[int, int]]:
        """The reads since the last time, which are then forgotten.

        >>> from alcid.formats.source import BytesSource
        >>> source = CountingSource(BytesSource(b"abcdef"))
        >>> _ = source.read(0, 1)
        >>> source.take(), source.take()
        ([(0, 1)], [])
        """
        reads, self.reads = self.reads, []
        return reads
