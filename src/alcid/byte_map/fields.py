"""Regions one behind the other, named while a cursor of the format reads over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from alcid.byte_map.region import Region, RegionKind
from alcid.errors import FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.source import Section

__all__ = ["SHOWN", "Fields", "little", "or_damaged", "short"]

SHOWN = 12
"""How many of a list are drawn; the others are one region."""

T = TypeVar("T")
_LONGEST_NOTE = 120


class Fields:
    r"""The parts of a region that begins where it is made.

    >>> from alcid.formats.source import BytesSource
    >>> fields = Fields(Section(BytesSource(b"\x01\x00\x00\x00\x07")))
    >>> fields.read("version", "mark", Cursor.u8), fields.read("rows", "number", Cursor.i32)
    (1, 7)
    >>> fields.region("head").parts[1]
    Region(name='rows', offset=1, length=4, kind='number', note='7', parts=())
    """

    def __init__(self, section: Section, position: int = 0) -> None:
        """Begin at a position of a section, whose bytes are read in small parts."""
        self.section = section
        self.cursor = Cursor(section, position, window=64)
        self._start = position
        self.parts: list[Region] = []

    @property
    def position(self) -> int:
        """Where the next field begins, within the section."""
        return self.cursor.position

    def read(
        self,
        name: str,
        kind: RegionKind,
        read: Callable[[Cursor], T],
        note: Callable[[T], object] = str,
    ) -> T:
        """Take the next field, as the format reads it, and give its value."""
        begin = self.position
        value = read(self.cursor)
        self._add(name, begin, kind, short(str(note(value))))
        return value

    def skip(self, name: str, length: int, kind: RegionKind, note: object = "") -> None:
        """Take the next field without reading it; one of no bytes is left out."""
        begin = self.position
        self.cursor.skip(length)
        if length:
            self._add(name, begin, kind, short(str(note)))

    def add(self, region: Region) -> None:
        """Take a region that was drawn elsewhere; what lies before it belongs to nothing.

        Raises:
            FormatError: It begins within what was taken before.
        """
        begin = region.offset - self.section.start
        if begin < self.position:
            raise self.section.error(f"{region.name} out of place", begin, begin, self.position)
        self.until(begin)
        self.cursor.skip(region.length)
        if region.length:
            self.parts.append(region)

    def until(self, end: int, name: str = "unused") -> None:
        """Take what is left before `end`, if anything is."""
        self.skip(name, max(end - self.position, 0), "unused")

    def each(
        self, things: str, items: Sequence[T], draw: Callable[[int, T], None], end: int
    ) -> None:
        """Draw the first of a list that ends at `end`, and the others as one region."""
        whole = len(items) <= SHOWN + 1
        for number, item in enumerate(items if whole else items[:SHOWN]):
            draw(number, item)
        if not whole:
            rest = f"... {len(items) - SHOWN:,} more {things}"
            self.skip(rest, max(end - self.position, 0), "data")

    def region(self, name: str, note: object = "") -> Region:
        """All of that as one region, without parts if nothing was taken."""
        begin, length = self.section.start + self._start, self.position - self._start
        return Region(name, begin, length, "group", short(str(note)), tuple(self.parts))

    def _add(self, name: str, begin: int, kind: RegionKind, note: str) -> None:
        offset = self.section.start + begin
        self.parts.append(Region(name, offset, self.position - begin, kind, note))


def or_damaged(name: str, section: Section, draw: Callable[[], Region]) -> Region:
    """What `draw` draws of a section; if it is damaged one region, which says how."""
    try:
        return draw()
    except FormatError as error:
        problem = str(error).removeprefix(f"{error.file}: ")
        return Region(name, section.start, section.length, "damaged", short(problem))


def short(text: str) -> str:
    """A note that is not longer than a line or two."""
    return text if len(text) <= _LONGEST_NOTE else f"{text[: _LONGEST_NOTE - 3]}..."


def little(width: int) -> Callable[[Cursor], int]:
    """Reads a number whose lowest byte comes first."""
    return lambda cursor: int.from_bytes(cursor.take(width), "little")
