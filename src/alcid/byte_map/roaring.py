"""A roaring bitmap, container by container; the bytes are shown in `alcid.formats.roaring`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alcid.byte_map.fields import Fields, little
from alcid.byte_map.region import Region
from alcid.formats.roaring import parse
from alcid.formats.roaring_layout import RoaringContainer, RoaringLayout
from alcid.formats.source import Section
from alcid.pictures.units import count_text

__all__ = ["draw_bitmap", "draw_slices"]

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
        flags = f"{sum(one.kind == 'runs' for one in layout.containers)} with runs"
        fields.skip("flags of containers", layout.keys_at - layout.flags_at, "mark", flags)
    else:
        fields.read("cookie", "mark", little(4))
        fields.read("containers", "number", little(4))
    fields.skip("upper halves and counts - 1", 4 * count, "number", count_text(count, "pair"))
    if layout.offsets_at is not None:
        fields.skip("offsets of containers", 4 * count, "number", count_text(count, "offset"))

    def draw(_: int, one: RoaringContainer) -> None:
        stored = data[one.offset : one.offset + one.length]
        note = f"{count_text(one.cardinality, what)}: {_listed(one, stored)}"
        fields.skip(f"{one.kind}, upper half {one.key}", one.length, "rows", note)

    fields.each("containers", layout.containers, draw, section.length)
    return fields.region(name, _summary(rows[:_LISTED].to_array(), len(rows), what))


def draw_slices(fields: Fields, places: Sequence[tuple[int, int]], end: int) -> None:
    """Slices by offset and length: slice `i` has the rows whose code has bit `i`."""

    def draw(number: int, place: tuple[int, int]) -> None:
        fields.add(draw_bitmap(fields.section.section(*place), f"slice {number}"))

    fields.each("slices", places, draw, end)


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
