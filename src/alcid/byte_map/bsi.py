"""The bytes of a bsi index."""

from __future__ import annotations

from alcid.byte_map.fields import Fields
from alcid.byte_map.region import Region
from alcid.byte_map.roaring import draw_bitmap, draw_slices
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bsi import BsiPart, BsiReader
from alcid.formats.file_index.keys import KeyType
from alcid.formats.source import Section
from alcid.pictures.units import count_text

__all__ = ["draw_bsi"]

_ANY_KEYS = KeyType(8)  # its keys are integers, whatever the type


def draw_bsi(section: Section, name: str) -> Region:
    """The values that are not negative, and those that are."""
    reader = BsiReader(section, _ANY_KEYS)
    fields = Fields(section)
    fields.read("version", "mark", Cursor.u8)
    fields.read("rows", "number", Cursor.i32)
    for sign, part in zip(("not negative", "negative"), reader.parts, strict=True):
        fields.read(f"has values that are {sign}", "mark", Cursor.u8)
        if part is not None:
            fields.add(_part(section, f"values that are {sign}", part))
    return fields.region(name, count_text(reader.row_count, "row"))


def _part(section: Section, name: str, part: BsiPart) -> Region:
    fields = Fields(section, part.start)
    fields.read("version", "mark", Cursor.u8)
    fields.read("minimum", "key", Cursor.i64)
    fields.read("maximum", "key", Cursor.i64)
    existing, *slices = part.places
    fields.add(draw_bitmap(section.section(*existing), "rows with a value"))
    fields.read("slices", "number", Cursor.i32)
    end = sum(part.places[-1]) if slices else fields.position
    draw_slices(fields, slices, end)
    return fields.region(name, f"{part.min:,} to {part.max:,}, by their absolutes")
