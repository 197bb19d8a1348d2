"""The heads of many containers: most files of a table have the same indexes.

Their heads then differ in nothing but where each index is, so one is parsed, and of the others it
is seen whether all else is the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from alcid.formats.file_index.container import Entry, read_head
from alcid.formats.source import Source

__all__ = ["ContainerHeads"]

_NUMBERS = 8  # bytes of a start and a length
_FIXED = struct.Struct(">12xi")  # the length of the head, behind magic and version
_LONGEST = 4 << 10  # of heads that are compared


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """What a head says, but for where its indexes are."""

    entries: tuple[Entry, ...]
    numbers: struct.Struct
    """The bytes before the first pair of numbers, that pair, the bytes behind it, and so on."""
    texts: tuple[bytes, ...]

    @classmethod
    def of(cls, head: bytes, entries: list[tuple[int, Entry]]) -> _Shape:
        ends = [0, *(at + _NUMBERS for at, _ in entries)]
        starts = [*(at for at, _ in entries), len(head)]
        lengths = [start - end for start, end in zip(starts, ends, strict=True)]
        numbers = struct.Struct(">" + "ii".join(f"{length}s" for length in lengths))
        return cls(tuple(one for _, one in entries), numbers, numbers.unpack(head)[::3])

    def read(self, data: bytes, size: int) -> list[Entry] | None:
        """The entries of a container of `size` bytes; None if its head is another, or is wrong."""
        found = self.numbers.unpack_from(data)
        if found[::3] != self.texts:
            return None
        places = list(zip(found[1::3], found[2::3], strict=True))
        end = self.numbers.size
        for start, length in sorted(places):
            if start != end or length < 0:
                return None
            end += length
        if end != size:
            return None
        return [
            Entry(one.column, one.index_type, *place)
            for one, place in zip(self.entries, places, strict=True)
        ]


class ContainerHeads:
    """Reads heads, and keeps what is the same in them."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._shapes: dict[int, _Shape] = {}

    def read(self, source: Source, begin: bytes) -> list[Entry]:
        """The entries of a container; `begin` is what is at hand of its first bytes.

        Raises:
            FormatError: It is damaged.
        """
        length = _FIXED.unpack_from(begin)[0] if len(begin) >= _FIXED.size else 0
        shape = self._shapes.get(length) if length <= len(begin) else None
        entries = None if shape is None else shape.read(begin, source.size)
        if entries is not None:
            return entries
        length, every, _ = read_head(source)
        if length <= min(len(begin), _LONGEST):
            self._shapes[length] = _Shape.of(begin[:length], every)
        return [one for _, one in every]
