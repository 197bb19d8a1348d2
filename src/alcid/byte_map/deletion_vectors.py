"""The bytes of deletion vectors, alone and in an index file of Paimon."""

from __future__ import annotations

from alcid.byte_map.fields import Fields, little, or_damaged
from alcid.byte_map.region import Region
from alcid.byte_map.roaring import draw_bitmap
from alcid.errors import FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.deletion_vector.encoding import StoredBitmap, stored_bitmaps
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.source import Section, Source
from alcid.pictures.units import count_text

__all__ = ["draw_vector", "draw_vector_file"]


def draw_vector(section: Section, name: str) -> Region:
    """A vector of either kind; if it is damaged, a region without parts."""
    return or_damaged(name, section, lambda: _draw(section, name))


def _draw(section: Section, name: str) -> Region:
    bits, stored = stored_bitmaps(section, section.read(0, section.length))
    bitmaps = list(stored)
    fields = Fields(section)
    fields.read("length", "number", Cursor.i32)
    fields.read("magic", "mark", lambda cursor: cursor.take(4).hex())
    crc_at = section.length - 4

    def draw(_: int, one: StoredBitmap) -> None:
        keyed = Fields(section, fields.position)
        if bits == 64:
            keyed.read("key: the upper half", "number", little(4))
        part = section.section(one.offset, one.length)
        keyed.add(draw_bitmap(part, "bitmap", what="position"))
        fields.add(keyed.region(f"positions from {one.key << 32:,}", keyed.parts[-1].note))

    if bits == 64:
        fields.read("bitmaps", "number", little(8))
    fields.each("bitmaps", bitmaps, draw, crc_at)
    fields.until(crc_at)
    fields.read("CRC-32", "check", lambda cursor: cursor.take(4).hex())
    count = count_text(sum(len(one.rows) for one in bitmaps), "position")
    return fields.region(name, f"{bits} bits, {count}")


def draw_vector_file(source: Source) -> Region:
    """A version, then vectors back to back."""
    whole = Section(source)
    fields = Fields(whole)
    fields.read("version", "mark", Cursor.u8)
    places: list[tuple[int, int]] = []
    problem = ""
    try:
        places.extend(vector_places(whole))
    except FormatError as error:
        problem = str(error)

    def draw(number: int, place: tuple[int, int]) -> None:
        fields.add(draw_vector(whole.section(*place), f"vector {number}"))

    fields.each("vectors", places, draw, sum(places[-1]) if places else fields.position)
    fields.skip("no vector", source.size - fields.position, "damaged", problem)
    return fields.region(source.name, count_text(len(places), "vector"))
