"""A source of which some parts are held in memory."""

from __future__ import annotations

from alcid.formats.source import Source

__all__ = ["KeptSource"]


class KeptSource:
    """Passes reads on to another source, unless they lie within a part that is kept.

    >>> from alcid.formats.source import BytesSource
    >>> source = KeptSource(BytesSource(b"abcdef"))
    >>> source.keep(2, 3)
    >>> source.read(3, 2)  # without a read of the other source
    b'de'
    """

    def __init__(self, source: Source) -> None:
        """Keep nothing of `source` yet."""
        self.name, self.size = source.name, source.size
        self.whole = source
        """The source behind it."""
        self._parts: list[tuple[int, bytes]] = []

    def keep(self, offset: int, length: int) -> None:
        """Read a part and keep it, unless it is kept already."""
        if not self.has(offset, length):
            self.hold(offset, self.whole.read(offset, length))

    def hold(self, offset: int, data: bytes) -> None:
        """Keep a part that was read elsewhere."""
        self._parts.append((offset, data))

    def has(self, offset: int, length: int) -> bool:
        """Whether a part is kept."""
        return self._find(offset, length) is not None

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        found = self._find(offset, length)
        return self.whole.read(offset, length) if found is None else found

    def _find(self, offset: int, length: int) -> bytes | None:
        for start, data in self._parts:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        return None
