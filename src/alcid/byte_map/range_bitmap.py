"""The bytes of a range-bitmap index: head, dictionary, slices."""

from __future__ import annotations

from alcid.byte_map.fields import Fields
from alcid.byte_map.region import Region
from alcid.byte_map.roaring import draw_bitmap, draw_slices
from alcid.byte_map.values import key_reading
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.key_dictionary import KeyDictionary
from alcid.formats.file_index.keys import key_type
from alcid.formats.file_index.range_bitmap import RangeBitmapHead, RangeBitmapReader
from alcid.formats.file_index.slice_table import SliceTable
from alcid.formats.source import Section
from alcid.pictures.units import count_text
from alcid.types import DataType

__all__ = ["draw_range_bitmap"]


def draw_range_bitmap(section: Section, name: str, data_type: DataType | None) -> Region:
    """Its head and slices, and with the type of the column its dictionary."""
    head = RangeBitmapHead.read(Cursor(section))
    fields = Fields(section)
    fields.add(_head(section, head, data_type))
    if data_type is None:
        hint = "to tell keys apart the type is needed"
        fields.skip("dictionary", head.dictionary_length, "data", hint)
    else:
        reader = RangeBitmapReader(section, key_type(data_type))
        part = section.section(head.dictionary_at, head.dictionary_length)
        fields.add(_dictionary(part, reader.dictionary, data_type))
    fields.add(_slices(section.section(head.slices_at), head.cardinality))
    rows, values = count_text(head.row_count, "row"), count_text(head.cardinality, "value")
    return fields.region(name, f"{rows}, {values}")


def _head(section: Section, head: RangeBitmapHead, data_type: DataType | None) -> Region:
    fields = Fields(section)
    fields.read("head length", "number", Cursor.i32)
    fields.read("version", "mark", Cursor.u8)
    fields.read("rows", "number", Cursor.i32)
    fields.read("distinct values", "number", Cursor.i32)
    if data_type is None:
        fields.skip("minimum and maximum", head.dictionary_at - 4 - fields.position, "key")
    elif head.cardinality:
        fields.read("minimum", "key", *key_reading(data_type))
        fields.read("maximum", "key", *key_reading(data_type))
    fields.read("dictionary length", "number", Cursor.i32)
    return fields.region("head")


def _dictionary(section: Section, dictionary: KeyDictionary, data_type: DataType) -> Region:
    chunks = dictionary.chunks
    fields = Fields(section)
    head = Fields(section)
    head.read("head length", "number", Cursor.i32)
    head.read("version", "mark", Cursor.u8)
    count = head.read("chunks", "number", Cursor.i32)
    offsets = head.read("length of offsets", "number", Cursor.i32)
    head.read("length of chunk heads", "number", Cursor.i32)
    fields.add(head.region("head of the dictionary"))
    fields.skip("offsets of chunk heads", offsets, "number", count_text(count, "offset"))

    def draw_head(number: int, begin: int) -> None:
        chunk = Fields(section, begin)
        chunk.read("version", "mark", Cursor.u8)
        chunk.read("first key", "key", *key_reading(data_type))
        chunk.read("code of the first key", "number", Cursor.i32)
        chunk.read("offset of the key block", "number", Cursor.i32)
        chunk.read("further keys", "number", Cursor.i32)
        chunk.read("bytes of offsets, or of the block", "number", Cursor.i32)
        chunk.read("bytes of keys, or of one", "number", Cursor.i32)
        fields.add(chunk.region(f"head of chunk {number}", chunk.parts[1].note))

    fields.each("chunk heads", chunks.heads.tolist(), draw_head, chunks.keys_base)
    blocks = list(zip(chunks.offsets, chunks.lengths, chunks.further, strict=True))

    def draw_block(number: int, place: tuple[int, int, int]) -> None:
        offset, length, further = place
        if further:
            block = Fields(section, chunks.keys_base + offset)
            _keys(block, further, length, data_type)
            fields.add(block.region(f"keys of chunk {number}", count_text(further, "further key")))

    fields.each("key blocks", blocks, draw_block, section.length)
    keys = chunks.codes[-1] + chunks.further[-1] + 1 if chunks.codes else 0
    return fields.region("dictionary", f"{count_text(keys, 'key')} in {count_text(count, 'chunk')}")


def _keys(block: Fields, count: int, length: int, data_type: DataType) -> None:
    end = block.position + length
    if key_type(data_type).is_bytes:
        block.skip("offsets of keys", 4 * count, "number")

    def draw(_: int, __: int) -> None:
        block.read("key", "key", *key_reading(data_type))

    block.each("keys", range(count), draw, end)


def _slices(section: Section, cardinality: int) -> Region:
    table = SliceTable.read(section, cardinality)
    fields = Fields(section)
    head = Fields(section)
    head.read("head length", "number", Cursor.i32)
    head.read("version", "mark", Cursor.u8)
    head.read("slices", "number", Cursor.u8)
    head.read("length of the existence bitmap", "number", Cursor.i32)
    head.read("length of the table", "number", Cursor.i32)
    places = table.existing[0] - head.position
    head.skip("offsets and lengths of slices", places, "number")
    fields.add(head.region("head of the slices"))
    fields.add(draw_bitmap(section.section(*table.existing), "rows with a value"))
    draw_slices(fields, table.slices, section.length)
    return fields.region("slices", count_text(len(table.slices), "slice"))
