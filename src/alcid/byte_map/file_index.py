"""The bytes of Paimon's file index: its head, and each index."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from alcid.byte_map.bitmap import draw_bitmap_index
from alcid.byte_map.bloom_filter import draw_bloom_filter
from alcid.byte_map.bsi import draw_bsi
from alcid.byte_map.fields import Fields, or_damaged
from alcid.byte_map.range_bitmap import draw_range_bitmap
from alcid.byte_map.region import Region
from alcid.columns import Columns
from alcid.errors import ColumnError
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.container import Container
from alcid.formats.source import Section, Source
from alcid.pictures.units import count_text
from alcid.types import DataType

__all__ = ["draw_file_index", "draw_index"]

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
