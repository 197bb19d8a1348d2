"""A part of a file with a name, and the parts that it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Region", "RegionKind"]

RegionKind: TypeAlias = Literal[
    "mark", "number", "text", "key", "rows", "check", "data", "group", "unused", "damaged"
]
"""What bytes are for.

| kind    |                                                                    |
|---------|--------------------------------------------------------------------|
| mark    | magic numbers, versions and flags                                  |
| number  | counts, lengths and offsets                                        |
| text    | names and JSON                                                     |
| key     | values of a column                                                 |
| rows    | bitmaps, and other sets of rows                                    |
| check   | checksums                                                          |
| data    | hashes, filters, and what is not looked into                       |
| group   | has parts                                                          |
| unused  | belongs to nothing                                                 |
| damaged | cannot be read                                                     |
"""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes of a file.

    >>> head = Region(
    ...     "head",
    ...     0,
    ...     5,
    ...     "group",
    ...     parts=(Region("version", 0, 1, "mark", "1"), Region("rows", 1, 4, "number", "7")),
    ... )
    >>> [region.name for region in head.at(3)]
    ['head', 'rows']
    """

    name: str
    offset: int
    """From the first byte of the file."""
    length: int
    kind: RegionKind
    note: str = ""
    """The value, or what is to be said of it."""
    parts: tuple[Region, ...] = ()
    """They fill it, one behind the other."""

    def __post_init__(self) -> None:
        """Parts that leave a gap, or reach into each other, are a mistake in the map."""
        at = self.offset
        for part in self.parts:
            if part.offset != at:
                raise ValueError(f"{self.name}: {part.name} at {part.offset}, expected at {at}")
            at += part.length
        if self.parts and at != self.end:
            raise ValueError(f"{self.name}: parts end at {at}, expected at {self.end}")

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + self.length

    def leaves(self) -> Iterator[Region]:
        """The regions without parts, in the order of the file."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def at(self, offset: int) -> tuple[Region, ...]:
        """The regions that a byte lies in, from this one to the smallest; none outside of it."""
        if not self.offset <= offset < self.end:
            return ()
        for part in self.parts:
            if found := part.at(offset):
                return (self, *found)
        return (self,)
