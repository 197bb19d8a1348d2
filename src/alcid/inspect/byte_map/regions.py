"""Regions of a file, fields that a cursor names while it reads, and keys as readable values.

Roaring bitmaps, which most formats contain, are drawn here container by container.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from alcid._text import count_text, printable
from alcid.errors import FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.keys import Key, float_order, key_type
from alcid.formats.roaring import RoaringContainer, RoaringLayout, parse
from alcid.formats.source import Section
from alcid.types import DataType

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
    """The value, or a remark on it."""
    parts: tuple[Region, ...] = ()
    """Its parts, which fill it without gaps."""

    def __post_init__(self) -> None:
        """Refuse parts that leave a gap or overlap."""
        at = self.offset
        for part in self.parts:
            if part.offset != at:
                raise ValueError(f"{self.name}: {part.name} at {part.offset}, expected at {at}")
            at += part.length
        if self.parts and at != self.end:
            raise ValueError(f"{self.name}: parts end at {at}, expected at {self.end}")

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.offset + self.length

    def leaves(self) -> Iterator[Region]:
        """The regions without parts, in the order of the file."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def at(self, offset: int) -> tuple[Region, ...]:
        """The regions around a byte, from this one to the smallest; none outside of it."""
        if not self.offset <= offset < self.end:
            return ()
        for part in self.parts:
            if regions := part.at(offset):
                return (self, *regions)
        return (self,)


SHOWN = 12
"""The items of a list that are drawn; the others are one region."""

T = TypeVar("T")
_LONGEST_NOTE = 120


class Fields:
    r"""The parts of a region, named in the order of the file.

    >>> from alcid.formats.source import BytesSource
    >>> fields = Fields(Section(BytesSource(b"\x01\x00\x00\x00\x07")))
    >>> fields.read("version", "mark", Cursor.u8), fields.read("rows", "number", Cursor.i32)
    (1, 7)
    >>> fields.region("head").parts[1]
    Region(name='rows', offset=1, length=4, kind='number', note='7', parts=())
    """

    def __init__(self, section: Section, position: int = 0) -> None:
        """Begin at a position of a section."""
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
        """Add the next field, and return its value."""
        begin = self.position
        value = read(self.cursor)
        self._add(name, begin, kind, short(str(note(value))))
        return value

    def skip(self, name: str, length: int, kind: RegionKind, note: object = "") -> None:
        """Add the next field without reading it; an empty one is left out."""
        begin = self.position
        self.cursor.skip(length)
        if length:
            self._add(name, begin, kind, short(str(note)))

    def add(self, region: Region) -> None:
        """Add a region that was drawn elsewhere; bytes before it are unused.

        Raises:
            FormatError: It overlaps the fields before.
        """
        begin = region.offset - self.section.start
        if begin < self.position:
            raise self.section.error(f"{region.name} out of place", begin, begin, self.position)
        self.until(begin)
        self.cursor.skip(region.length)
        if region.length:
            self.parts.append(region)

    def until(self, end: int, name: str = "unused") -> None:
        """Add the bytes before `end`, if there are any."""
        self.skip(name, max(end - self.position, 0), "unused")

    def each(
        self, things: str, items: Sequence[T], draw: Callable[[int, T], None], end: int
    ) -> None:
        """Draw the first items of a list that ends at `end`, and the others as one region."""
        whole = len(items) <= SHOWN + 1
        for number, item in enumerate(items if whole else items[:SHOWN]):
            draw(number, item)
        if not whole:
            rest = f"... {len(items) - SHOWN:,} more {things}"
            self.skip(rest, max(end - self.position, 0), "data")

    def region(self, name: str, note: object = "") -> Region:
        """All fields as one region."""
        begin, length = self.section.start + self._start, self.position - self._start
        return Region(name, begin, length, "group", short(str(note)), tuple(self.parts))

    def _add(self, name: str, begin: int, kind: RegionKind, note: str) -> None:
        offset = self.section.start + begin
        self.parts.append(Region(name, offset, self.position - begin, kind, note))


def or_damaged(name: str, section: Section, draw: Callable[[], Region]) -> Region:
    """The region that `draw` returns, or a damaged region with the error."""
    try:
        return draw()
    except FormatError as error:
        problem = str(error).removeprefix(f"{error.file}: ")
        return Region(name, section.start, section.length, "damaged", short(problem))


def short(text: str) -> str:
    """A note cut to a line or two."""
    return text if len(text) <= _LONGEST_NOTE else f"{text[: _LONGEST_NOTE - 3]}..."


def little(width: int) -> Callable[[Cursor], int]:
    """A reader of little-endian integers."""
    return lambda cursor: int.from_bytes(cursor.take(width), "little")


Value: TypeAlias = bool | int | float | Decimal | str | bytes | tuple[int, ...] | None
"""Dates and times are text, since Python's end with the year 9999."""

_DAY_IN_SECONDS = 86_400


def value_of(key: Key, data_type: DataType) -> Value:
    """The value of a key; strings that are not UTF-8 remain bytes.

    >>> value_of(1250, DataType.parse("DECIMAL(9, 2)")), value_of(19000, DataType("DATE"))
    (Decimal('12.50'), '2022-01-08')
    >>> value_of(-1500, DataType.parse("TIMESTAMP_LTZ(3)"))
    '1969-12-31 23:59:58.5Z'
    """
    if isinstance(key, bytes):
        return _text(key) if data_type.root in ("CHAR", "VARCHAR") else key
    match data_type.root:
        case "BOOLEAN":
            return bool(key)
        case "FLOAT":  # the shortest digits of four bytes: 0.1, not 0.10000000149011612
            return float(str(np.float32(float_order(key, 4))))
        case "DOUBLE":
            return float_order(key)
        case "DECIMAL":
            return Decimal((key < 0, tuple(map(int, str(abs(key)))), -data_type.scale))
        case "DATE":
            return _date(key)
        case "TIME":
            return _clock(key, 1_000)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            per_second = 1_000 if key_type(data_type).millis else 1_000_000
            days, rest = divmod(key, _DAY_IN_SECONDS * per_second)
            zone = "Z" if data_type.root == "TIMESTAMP_LTZ" else ""
            return f"{_date(days)} {_clock(rest, per_second)}{zone}"
        case _:
            return key


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _date(days: int) -> str:
    """Year, month and day; numpy counts the sign among the four digits of a year."""
    text = str(np.datetime64(days, "D"))
    return f"-{text[1:]:0>10}" if text.startswith("-") else text


def _clock(ticks: int, per_second: int) -> str:
    """Hours, minutes, seconds, and a fraction without zeros at its end, as Spark writes it."""
    seconds, fraction = divmod(ticks, per_second)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    digits = f"{fraction:0{len(str(per_second)) - 1}}".rstrip("0")
    return f"{shown}.{digits}" if digits else shown


def value_text(value: Value) -> str:
    r"""A value on one line, as SQL would write it.

    >>> print(value_text("it's"), value_text(b"\xff"), value_text(True), value_text(float("inf")))
    'it''s' X'ff' true Infinity
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            doubled = value.replace("'", "''")
            return f"'{printable(doubled)}'"
        case bytes():
            return f"X'{value.hex()}'"
        case float() if not math.isfinite(value):
            return not_finite(value)
        case Decimal():
            return decimal_text(value)
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def decimal_text(value: Decimal) -> str:
    """A decimal without an exponent.

    >>> decimal_text(Decimal("0E-3"))
    '0.000'
    """
    return format(value, "f")


def not_finite(value: float) -> str:
    """The name of NaN or an infinity, which JSON cannot represent."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def key_text(key: Key, data_type: DataType) -> str:
    """The value of a key as text.

    >>> key_text(b"Graz", DataType.parse("STRING")), key_text(19000, DataType("DATE"))
    ("'Graz'", "'2022-01-08'")
    """
    return value_text(value_of(key, data_type))


def key_reading(data_type: DataType) -> tuple[Callable[[Cursor], Key], Callable[[Key], str]]:
    """Functions that read the next key of a column, and show it."""
    return key_type(data_type).read, lambda key: key_text(key, data_type)


_ANY_ROW = 1 << 32
_LISTED = 8


def draw_bitmap(section: Section, name: str, *, what: str = "row") -> Region:
    """The bitmap that fills a section.

    Raises:
        FormatError: It is damaged.
    """
    data = section.read(0, section.length)
    rows, length = parse(section, 0, memoryview(data), _ANY_ROW)
    if length != section.length:
        raise section.error("bitmap of another length", 0, found=length, expected=section.length)
    layout = RoaringLayout.of(data)
    fields = Fields(section)
    count = len(layout.containers)
    if layout.has_runs:
        fields.read("cookie, with runs", "mark", little(2))
        fields.read("containers - 1", "number", little(2))
        flags = f"{sum(container.kind == 'runs' for container in layout.containers)} with runs"
        fields.skip("flags of containers", layout.keys_at - layout.flags_at, "mark", flags)
    else:
        fields.read("cookie", "mark", little(4))
        fields.read("containers", "number", little(4))
    fields.skip("upper halves and counts - 1", 4 * count, "number", count_text(count, "pair"))
    if layout.offsets_at is not None:
        fields.skip("offsets of containers", 4 * count, "number", count_text(count, "offset"))

    def draw(_: int, container: RoaringContainer) -> None:
        stored = data[container.offset : container.offset + container.length]
        note = f"{count_text(container.cardinality, what)}: {_listed(container, stored)}"
        fields.skip(f"{container.kind}, upper half {container.key}", container.length, "rows", note)

    fields.each("containers", layout.containers, draw, section.length)
    return fields.region(name, _summary(rows[:_LISTED].to_array(), len(rows), what))


def draw_slices(fields: Fields, extents: Sequence[tuple[int, int]], end: int) -> None:
    """Slices by offset and length: slice `i` has the rows whose code has bit `i`."""

    def draw(number: int, extent: tuple[int, int]) -> None:
        fields.add(draw_bitmap(fields.section.section(*extent), f"slice {number}"))

    fields.each("slices", extents, draw, end)


def _listed(container: RoaringContainer, stored: bytes) -> str:
    """The first rows of a container, or of its runs."""
    base = container.key << 16
    if container.kind == "bitset":
        return "one bit each"
    if container.kind == "array":
        values = np.frombuffer(stored, "<u2", min(_LISTED, len(stored) // 2)).tolist()
        more = ", ..." if container.cardinality > _LISTED else ""
        return ", ".join(str(base + value) for value in values) + more
    runs = np.frombuffer(stored, "<u2", offset=2).reshape(-1, 2)
    shown = [f"{base + start} to {base + start + more}" for start, more in runs[:4].tolist()]
    return ", ".join(shown) + (", ..." if len(runs) > len(shown) else "")


def _summary(first: Sequence[int], count: int, what: str) -> str:
    if not count:
        return f"no {what}"
    more = ", ..." if count > len(first) else ""
    return f"{count_text(count, what)}: {', '.join(map(str, first))}{more}"
