"""The bytes of a Puffin file: blobs, and the footer that says what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from alcid.byte_map.deletion_vectors import draw_vector
from alcid.byte_map.fields import Fields, little, or_damaged
from alcid.byte_map.hashes import draw_theta
from alcid.byte_map.region import Region
from alcid.formats import puffin
from alcid.formats.cursor import Cursor
from alcid.formats.puffin import Blob
from alcid.formats.puffin.footer import MAGIC, Footer, read_footer
from alcid.formats.source import Section, Source
from alcid.pictures.units import count_text

__all__ = ["DrawBlob", "draw_puffin"]

DrawBlob: TypeAlias = Callable[[Blob, Section, str], "Region | None"]
"""Draws a blob that is not compressed, by what the footer says of it; None if it is not known."""


def draw_puffin(source: Source, draw_other: DrawBlob | None = None) -> Region:
    """The whole file.

    Args:
        source: The file.
        draw_other: Draws blobs of types that are not known here.

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
