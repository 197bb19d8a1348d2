"""The bytes of hash indexes and theta sketches: hashes, behind a head or none."""

from __future__ import annotations

from alcid.byte_map.fields import Fields, little
from alcid.byte_map.region import Region
from alcid.formats.cursor import Cursor
from alcid.formats.hash_index import HashIndex
from alcid.formats.source import Section, Source
from alcid.formats.theta.compact import ThetaHead, decode
from alcid.pictures.units import count_text

__all__ = ["draw_hash_index", "draw_theta"]

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
