"""The byte maps of Puffin files, deletion vectors, hash indexes and theta sketches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from alcid._text import count_text
from alcid.errors import FormatError
from alcid.formats import puffin
from alcid.formats.cursor import Cursor
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.deletion_vector.vector import StoredBitmap, stored_bitmaps
from alcid.formats.hash_index import HashIndex
from alcid.formats.puffin import Blob
from alcid.formats.puffin.footer import MAGIC, Footer, read_footer
from alcid.formats.source import Section, Source
from alcid.formats.theta.compact import ThetaHead, decode
from alcid.inspect.byte_map.regions import Fields, Region, draw_bitmap, little, or_damaged


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

    def draw(_: int, bitmap: StoredBitmap) -> None:
        keyed = Fields(section, fields.position)
        if bits == 64:
            keyed.read("key: the upper half", "number", little(4))
        part = section.section(bitmap.offset, bitmap.length)
        keyed.add(draw_bitmap(part, "bitmap", what="position"))
        fields.add(keyed.region(f"positions from {bitmap.key << 32:,}", keyed.parts[-1].note))

    if bits == 64:
        fields.read("bitmaps", "number", little(8))
    fields.each("bitmaps", bitmaps, draw, crc_at)
    fields.until(crc_at)
    fields.read("CRC-32", "check", lambda cursor: cursor.take(4).hex())
    count = count_text(sum(len(bitmap.rows) for bitmap in bitmaps), "position")
    return fields.region(name, f"{bits} bits, {count}")


def draw_vector_file(source: Source) -> Region:
    """A version, then vectors back to back."""
    whole = Section(source)
    fields = Fields(whole)
    fields.read("version", "mark", Cursor.u8)
    extents: list[tuple[int, int]] = []
    problem = ""
    try:
        extents.extend(vector_places(whole))
    except FormatError as error:
        problem = str(error)

    def draw(number: int, extent: tuple[int, int]) -> None:
        fields.add(draw_vector(whole.section(*extent), f"vector {number}"))

    fields.each("vectors", extents, draw, sum(extents[-1]) if extents else fields.position)
    fields.skip("no vector", source.size - fields.position, "damaged", problem)
    return fields.region(source.name, count_text(len(extents), "vector"))


_HASH, _WORD = 4, 8


def draw_hash_index(source: Source) -> Region:
    """Hashes, and nothing else."""
    index = HashIndex.from_bytes(source.read(0, source.size), name=source.name)
    fields = Fields(Section(source))

    def draw(_: int, __: int) -> None:
        fields.read("hash", "data", Cursor.i32)

    fields.each("hashes", range(source.size // _HASH), draw, source.size)
    return fields.region(source.name, count_text(len(index), "distinct hash"))


def draw_theta(section: Section, name: str) -> Region:
    """The head of a sketch, and its hashes.

    Raises:
        FormatError: It is damaged.
    """
    hashes, head = len(decode(section).hashes), ThetaHead.read(section)
    fields = Fields(section)
    fields.read("words before hashes or count", "number", Cursor.u8)
    fields.read("version", "mark", Cursor.u8)
    fields.read("family", "mark", Cursor.u8)
    if head.version == 3:
        fields.skip("not used", 2, "unused")
    else:
        fields.read("bits an entry", "number", Cursor.u8)
        fields.read("bytes of the count", "number", Cursor.u8)
    fields.read("flags", "mark", Cursor.u8, "{:#04x}".format)
    fields.read("hash of the seed", "check", little(2), "{:#06x}".format)
    if head.version == 3:
        _rest_of_version_3(fields, head)
    else:
        if head.longs == 2:
            fields.read("theta", "number", little(_WORD))
        fields.read("count", "number", little(head.count_bytes))
        entries = count_text(hashes, "difference")
        fields.skip("entries", section.length - fields.position, "data", entries)
    return fields.region(name, count_text(hashes, "hash"))


def _rest_of_version_3(fields: Fields, head: ThetaHead) -> None:
    if head.longs > 1:
        fields.read("hashes", "number", little(4))
        fields.skip("share looked at", 4, "unused", "a float that no reader uses")
    if head.longs > 2:
        fields.read("theta", "number", little(_WORD))
    end = fields.section.length

    def draw(_: int, __: int) -> None:
        fields.read("hash", "data", little(_WORD))

    fields.each("hashes", range((end - fields.position) // _WORD), draw, end)


DrawBlob: TypeAlias = Callable[[Blob, Section, str], "Region | None"]
"""Draws a blob that is not compressed, by what the footer says of it; None if it is not known."""


def draw_puffin(source: Source, draw_other: DrawBlob | None = None) -> Region:
    """The whole file; `draw_other` draws blobs of types that are not known here.

    Raises:
        FormatError: Its footer is damaged.
    """
    footer = read_footer(source)
    whole = Section(source)
    fields = Fields(whole)
    fields.read("magic", "mark", _text)
    placed = sorted((blob for blob in footer.blobs if blob.length), key=lambda blob: blob.offset)

    def draw(_: int, blob: Blob) -> None:
        if blob.offset >= fields.position:  # two may share their bytes
            fields.add(_draw_blob(blob, whole.section(blob.offset, blob.length), draw_other))

    fields.each("blobs", placed, draw, footer.start)
    fields.until(footer.start)
    fields.add(_footer(whole, footer))
    return fields.region(source.name, count_text(len(footer.blobs), "blob"))


def _draw_blob(blob: Blob, section: Section, draw_other: DrawBlob | None) -> Region:
    about = ", ".join(f"{name} {value}" for name, value in blob.properties.items())
    plain = Region(blob.type, section.start, section.length, "data", _note(blob, about))
    if blob.codec is not None:
        return plain
    if blob.type == puffin.DELETION_VECTOR:
        return draw_vector(section, blob.type)
    if blob.type == puffin.THETA_SKETCH:
        return or_damaged(blob.type, section, lambda: draw_theta(section, blob.type))
    if draw_other is not None:
        return or_damaged(blob.type, section, lambda: draw_other(blob, section, blob.type) or plain)
    return plain


def _note(blob: Blob, about: str) -> str:
    return ", ".join(filter(None, (f"compressed by {blob.codec}" if blob.codec else "", about)))


def _footer(whole: Section, footer: Footer) -> Region:
    fields = Fields(whole, footer.start)
    fields.read("magic", "mark", _text)
    size_at = whole.length - 12
    length = size_at - fields.position
    fields.read("JSON", "text", lambda cursor: cursor.take(length), _shown)
    fields.read("length of the JSON", "number", little(4))
    fields.read("flags", "mark", little(4), lambda flags: "compressed" if flags else "0")
    fields.read("magic", "mark", _text)
    return fields.region("footer", count_text(len(footer.blobs), "blob"))


def _text(cursor: Cursor) -> str:
    return cursor.take(len(MAGIC)).decode("ascii", "replace")


def _shown(data: bytes) -> str:
    return data[:200].decode("utf-8", "replace") if data[:1] == b"{" else "an LZ4 frame of it"
