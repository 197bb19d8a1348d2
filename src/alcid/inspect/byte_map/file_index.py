"""The byte map of Paimon's file index: its header and its bitmap, bloom, bsi and range indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from alcid._text import count_text
from alcid.errors import ColumnError
from alcid.expressions.columns import Columns
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bit_slices import SliceTable
from alcid.formats.file_index.bitmap import V1, V2, BitmapHead, BitmapReader, open_bitmap
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.bsi import BsiPart, BsiReader
from alcid.formats.file_index.container import Container
from alcid.formats.file_index.dictionary import KeyDictionary
from alcid.formats.file_index.keys import Key, KeyType, key_type
from alcid.formats.file_index.range_bitmap import RangeBitmapHead, RangeBitmapReader
from alcid.formats.roaring import parse
from alcid.formats.source import Section, Source
from alcid.inspect.byte_map.regions import (
    Fields,
    Region,
    draw_bitmap,
    draw_slices,
    key_reading,
    key_text,
    or_damaged,
)
from alcid.types import DataType

_ANY_ROW = 1 << 32


def draw_bitmap_index(section: Section, name: str, data_type: DataType | None) -> Region:
    """Its head, and with the type of the column its dictionary and bitmaps."""
    head = BitmapHead.read(Cursor(section))
    fields = Fields(section)
    fields.add(_bitmap_head(section, head))
    if data_type is None:
        rest, hint = section.length - fields.position, "to tell them apart the type is needed"
        fields.skip("dictionary and bitmaps", rest, "data", hint)
    else:
        reader = open_bitmap(section, key_type(data_type))
        fields.add((_entries if head.version == V1 else _blocks)(section, reader, data_type))
        fields.add(_bitmaps(section, reader, data_type))
    summary = f"version {head.version}, {count_text(head.row_count, 'row')}"
    return fields.region(name, f"{summary}, {count_text(head.distinct, 'value')}")


def _bitmap_head(section: Section, head: BitmapHead) -> Region:
    fields = Fields(section)
    fields.read("version", "mark", Cursor.u8)
    fields.read("rows", "number", Cursor.i32)
    fields.read("distinct values", "number", Cursor.i32)
    fields.read("has nulls", "mark", Cursor.u8)
    if head.null_offset is not None:
        fields.read("null rows", "number", Cursor.i32, _offset_text)
        if head.version == V2:
            fields.read("length of null rows", "number", Cursor.i32)
    return fields.region("head")


def _offset_text(offset: int) -> str:
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

    def draw_entry(number: int, _: object) -> None:
        entry = Fields(section, directory.position)
        entry.read("first key", "key", *key_reading(data_type))
        entry.read("offset of the block", "number", Cursor.i32)
        directory.add(entry.region(f"block {number}", entry.parts[0].note))

    directory.each("blocks", blocks, draw_entry, length_at)
    directory.read("length of all blocks", "number", Cursor.i32)
    fields.add(directory.region("directory of blocks", count_text(len(blocks), "block")))

    def draw_block(number: int, extent: tuple[int, int]) -> None:
        block = Fields(section, extent[0])
        count = block.read("entries", "number", Cursor.i32)
        _each_entry(block, count, data_type, extent[1], with_length=True)
        fields.add(block.region(f"block {number}", count_text(count, "value")))

    fields.each("blocks", blocks, draw_block, reader.body_at)
    return fields.region("dictionary", count_text(reader.head.distinct, "value"))


def _each_entry(
    fields: Fields, count: int, data_type: DataType, end: int, *, with_length: bool
) -> None:
    def draw(_: int, __: int) -> None:
        entry = Fields(fields.section, fields.position)
        entry.read("key", "key", *key_reading(data_type))
        entry.read("rows", "number", Cursor.i32, _offset_text)
        if with_length:
            entry.read("length", "number", Cursor.i32)
        key, rows = entry.parts[0].note, entry.parts[1].note
        fields.add(entry.region(key, rows))

    fields.each("values", range(count), draw, end)


def _bitmaps(section: Section, reader: BitmapReader, data_type: DataType) -> Region:
    body = reader.body_at
    fields = Fields(section, body)
    bitmaps = _stored_bitmaps(reader)

    def draw(_: int, bitmap: tuple[Key | None, int, int | None]) -> None:
        key, offset, length = bitmap
        if body + offset < fields.position:  # two keys share a bitmap
            return
        if length is None:  # version 1, where only the bitmap itself tells
            data = section.read(body + offset, section.length - body - offset)
            length = parse(section, body + offset, memoryview(data), _ANY_ROW)[1]
        name = "NULL" if key is None else key_text(key, data_type)
        fields.add(draw_bitmap(section.section(body + offset, length), name))

    fields.each("bitmaps", bitmaps, draw, section.length)
    fields.until(section.length)
    return fields.region("bitmaps", count_text(len(bitmaps), "bitmap"))


def _stored_bitmaps(reader: BitmapReader) -> list[tuple[Key | None, int, int | None]]:
    """Key, offset and length of each bitmap, in their order; None is null."""
    head = reader.head
    bitmaps: list[tuple[Key | None, int, int | None]] = []
    if head.null_offset is not None and head.null_offset >= 0:
        bitmaps.append((None, head.null_offset, head.null_length))
    bitmaps.extend(bitmap for bitmap in reader.places() if bitmap[1] >= 0)
    return sorted(bitmaps, key=lambda bitmap: bitmap[1])


_ANY_KEYS = KeyType(8)  # bloom-filter and bsi have the same bytes for all types


def draw_bloom_filter(section: Section, name: str) -> Region:
    """The number of hash functions, and the filter."""
    reader = BloomFilterReader(section, _ANY_KEYS)
    is_set = int(np.bitwise_count(reader.filter).sum(dtype=np.int64))
    fields = Fields(section)
    fields.read("hash functions", "number", Cursor.i32)
    share = f"{is_set:,} of {reader.bits:,} bits set"
    fields.skip("filter", section.length - fields.position, "data", share)
    return fields.region(name, f"{reader.functions} hash functions, {share}")


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
    existing, *slices = part.extents
    fields.add(draw_bitmap(section.section(*existing), "rows with a value"))
    fields.read("slices", "number", Cursor.i32)
    end = sum(part.extents[-1]) if slices else fields.position
    draw_slices(fields, slices, end)
    return fields.region(name, f"{part.min:,} to {part.max:,}, by their absolutes")


def draw_range_bitmap(section: Section, name: str, data_type: DataType | None) -> Region:
    """Its head and slices, and with the type of the column its dictionary."""
    head = RangeBitmapHead.read(Cursor(section))
    fields = Fields(section)
    fields.add(_range_bitmap_head(section, head, data_type))
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


def _range_bitmap_head(
    section: Section, head: RangeBitmapHead, data_type: DataType | None
) -> Region:
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

    def draw_block(number: int, keys_of_chunk: tuple[int, int, int]) -> None:
        offset, length, further = keys_of_chunk
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
    length = table.existing[0] - head.position
    head.skip("offsets and lengths of slices", length, "number")
    fields.add(head.region("head of the slices"))
    fields.add(draw_bitmap(section.section(*table.existing), "rows with a value"))
    draw_slices(fields, table.slices, section.length)
    return fields.region("slices", count_text(len(table.slices), "slice"))


_DRAWERS: dict[str, Callable[[Section, str, DataType | None], Region]] = {
    "bloom-filter": lambda section, name, _: draw_bloom_filter(section, name),
    "bitmap": draw_bitmap_index,
    "range-bitmap": draw_range_bitmap,
    "bsi": lambda section, name, _: draw_bsi(section, name),
}


def draw_index(index_type: str, section: Section, name: str, data_type: DataType | None) -> Region:
    """One index; damaged, or of a type that is not known, one region without parts."""
    draw = _DRAWERS.get(index_type)
    if draw is None:
        note = f"an index of type {index_type}, which is not known"
        return Region(name, section.start, section.length, "data", note)
    return or_damaged(name, section, lambda: draw(section, name, data_type))


def draw_file_index(source: Source, types: Mapping[str, DataType]) -> Region:
    """The whole file.

    Raises:
        FormatError: Its head is damaged.
    """
    container = Container.open(source)
    columns = Columns(types)
    whole = Section(source)
    fields = Fields(whole)
    fields.add(_head(whole, container))
    stored = sorted((e for e in container.entries if e.length), key=lambda entry: entry.start)
    for entry in stored:
        section = container.section(entry)
        name = f"{entry.index_type} of {entry.column}"
        fields.add(draw_index(entry.index_type, section, name, _type_of(columns, entry.column)))
    fields.until(source.size)  # an index that another of the same column and type replaces
    return fields.region(source.name, count_text(len(container.entries), "index"))


def _type_of(columns: Columns, column: str) -> DataType | None:
    try:
        return columns.type_of(column)
    except ColumnError:
        return None


def _head(whole: Section, container: Container) -> Region:
    fields = Fields(whole)
    fields.read("magic", "mark", Cursor.i64)
    fields.read("version", "mark", Cursor.i32)
    fields.read("head length", "number", Cursor.i32)
    columns = fields.read("columns", "number", Cursor.i32)

    def draw_column(number: int, _: int) -> None:
        column = Fields(whole, fields.position)
        name = column.read("column", "text", Cursor.utf)
        count = column.read("indexes", "number", Cursor.i32)
        for _ in range(count):
            entry = Fields(whole, column.position)
            index_type = entry.read("index type", "text", Cursor.utf)
            entry.read("start", "number", Cursor.i32, _start)
            entry.read("length", "number", Cursor.i32)
            column.add(entry.region(index_type))
        fields.add(column.region(name, f"column {number}"))

    redundant_at = container.head_length - container.redundant - 4
    fields.each("columns", range(columns), draw_column, redundant_at)
    fields.read("redundant bytes", "number", Cursor.i32)
    fields.until(container.head_length, "redundant")
    return fields.region("head", count_text(columns, "column"))


def _start(start: int) -> str:
    return "-1: nothing was written" if start < 0 else str(start)
