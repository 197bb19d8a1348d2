"""The bytes of a bitmap index, versions 1 and 2."""

from __future__ import annotations

from alcid.byte_map.fields import Fields
from alcid.byte_map.region import Region
from alcid.byte_map.roaring import draw_bitmap
from alcid.byte_map.values import key_reading, key_text
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bitmap import V1, V2, BitmapHead
from alcid.formats.file_index.bitmap_reader import BitmapReader, open_bitmap
from alcid.formats.file_index.keys import Key, key_type
from alcid.formats.roaring import parse
from alcid.formats.source import Section
from alcid.pictures.units import count_text
from alcid.types import DataType

__all__ = ["draw_bitmap_index"]

_ANY_ROW = 1 << 32


def draw_bitmap_index(section: Section, name: str, data_type: DataType | None) -> Region:
    """Its head, and with the type of the column its dictionary and bitmaps."""
    head = BitmapHead.read(Cursor(section))
    fields = Fields(section)
    fields.add(_head(section, head))
    if data_type is None:
        rest, hint = section.length - fields.position, "to tell them apart the type is needed"
        fields.skip("dictionary and bitmaps", rest, "data", hint)
    else:
        reader = open_bitmap(section, key_type(data_type))
        fields.add((_entries if head.version == V1 else _blocks)(section, reader, data_type))
        fields.add(_bitmaps(section, reader, data_type))
    summary = f"version {head.version}, {count_text(head.row_count, 'row')}"
    return fields.region(name, f"{summary}, {count_text(head.distinct, 'value')}")


def _head(section: Section, head: BitmapHead) -> Region:
    fields = Fields(section)
    fields.read("version", "mark", Cursor.u8)
    fields.read("rows", "number", Cursor.i32)
    fields.read("distinct values", "number", Cursor.i32)
    fields.read("has nulls", "mark", Cursor.u8)
    if head.null_offset is not None:
        fields.read("null rows", "number", Cursor.i32, _place)
        if head.version == V2:
            fields.read("length of null rows", "number", Cursor.i32)
    return fields.region("head")


def _place(offset: int) -> str:
    """What an offset says: where the bitmap is, or which row is the only one."""
    return f"row {-1 - offset}" if offset < 0 else f"bitmap at {offset}"


def _entries(section: Section, reader: BitmapReader, data_type: DataType) -> Region:
    """The dictionary of version 1."""
    fields = Fields(section, reader.dictionary_at)
    _each_entry(fields, reader.head.distinct, data_type, reader.body_at, with_length=False)
    return fields.region("dictionary", count_text(reader.head.distinct, "value"))


def _blocks(section: Section, reader: BitmapReader, data_type: DataType) -> Region:
    """The dictionary of version 2: a directory of blocks, and these."""
    fields = Fields(section, reader.dictionary_at)
    blocks = reader.blocks
    directory = Fields(section, reader.dictionary_at)
    directory.read("blocks", "number", Cursor.i32)
    first_block = blocks[0][0] if blocks else reader.body_at
    length_at = first_block - 4

    def draw_place(number: int, _: object) -> None:
        entry = Fields(section, directory.position)
        entry.read("first key", "key", *key_reading(data_type))
        entry.read("offset of the block", "number", Cursor.i32)
        directory.add(entry.region(f"block {number}", entry.parts[0].note))

    directory.each("blocks", blocks, draw_place, length_at)
    directory.read("length of all blocks", "number", Cursor.i32)
    fields.add(directory.region("directory of blocks", count_text(len(blocks), "block")))

    def draw_block(number: int, place: tuple[int, int]) -> None:
        block = Fields(section, place[0])
        count = block.read("entries", "number", Cursor.i32)
        _each_entry(block, count, data_type, place[1], with_length=True)
        fields.add(block.region(f"block {number}", count_text(count, "value")))

    fields.each("blocks", blocks, draw_block, reader.body_at)
    return fields.region("dictionary", count_text(reader.head.distinct, "value"))


def _each_entry(
    fields: Fields, count: int, data_type: DataType, end: int, *, with_length: bool
) -> None:
    def draw(_: int, __: int) -> None:
        entry = Fields(fields.section, fields.position)
        entry.read("key", "key", *key_reading(data_type))
        entry.read("rows", "number", Cursor.i32, _place)
        if with_length:
            entry.read("length", "number", Cursor.i32)
        key, place = entry.parts[0].note, entry.parts[1].note
        fields.add(entry.region(key, place))

    fields.each("values", range(count), draw, end)


def _bitmaps(section: Section, reader: BitmapReader, data_type: DataType) -> Region:
    body = reader.body_at
    fields = Fields(section, body)
    places = _places(reader)

    def draw(_: int, place: tuple[Key | None, int, int | None]) -> None:
        key, offset, length = place
        if body + offset < fields.position:  # two keys share a bitmap
            return
        if length is None:  # version 1, where only the bitmap itself tells
            data = section.read(body + offset, section.length - body - offset)
            length = parse(section, body + offset, memoryview(data), _ANY_ROW)[1]
        name = "NULL" if key is None else key_text(key, data_type)
        fields.add(draw_bitmap(section.section(body + offset, length), name))

    fields.each("bitmaps", places, draw, section.length)
    fields.until(section.length)
    return fields.region("bitmaps", count_text(len(places), "bitmap"))


def _places(reader: BitmapReader) -> list[tuple[Key | None, int, int | None]]:
    """Key, offset and length of each bitmap, in their order; None is null."""
    head = reader.head
    found: list[tuple[Key | None, int, int | None]] = []
    if head.null_offset is not None and head.null_offset >= 0:
        found.append((None, head.null_offset, head.null_length))
    found.extend(place for place in reader.places() if place[1] >= 0)
    return sorted(found, key=lambda place: place[1])
