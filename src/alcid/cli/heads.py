"""What an index tells without the type of its column, from the parts that no type lays out.

Readers need the type, because keys stand between these parts. Layouts are shown in the modules of
`alcid.formats`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from alcid.cli.values import Value
from alcid.formats.bitmap import V1, V2
from alcid.formats.bloom_filter import BloomFilterReader
from alcid.formats.bsi import BsiReader
from alcid.formats.cursor import Cursor
from alcid.formats.keys import KeyType
from alcid.formats.roaring import load
from alcid.formats.source import Section

__all__ = ["HEADS", "Facts"]

Facts: TypeAlias = dict[str, Value]

_ANY_KEYS = KeyType(8)  # bloom-filter and bsi have heads without keys
_RANGE_BITMAP_VERSION = 1


def _bloom_filter(section: Section) -> Facts:
    reader = BloomFilterReader(section, _ANY_KEYS)
    is_set = int(np.bitwise_count(reader.filter).sum(dtype=np.int64))
    return {
        "functions": reader.functions,
        "bits": reader.bits,
        "bits_set": is_set,
        "false_positive_rate": (is_set / reader.bits) ** reader.functions,
    }


def _bitmap(section: Section) -> Facts:
    cursor = Cursor(section, window=1)
    if (version := cursor.u8()) not in (V1, V2):
        raise section.error("unknown bitmap version", 0, found=version, expected=f"{V1} or {V2}")
    cursor.window = 9
    rows = cursor.count("row count")
    distinct = cursor.count("distinct count", rows)
    null_offset = cursor.i32() if cursor.flag("null") else None
    # A single null has no bitmap; how many a bitmap holds is told by the reader.
    nulls = 0 if null_offset is None else 1 if null_offset < 0 else None
    return {
        "version": version,
        "rows": rows,
        "distinct": distinct,
        "nulls": nulls,
        "null_offset": null_offset,
    }


def _range_bitmap(section: Section) -> Facts:
    cursor = Cursor(section, window=13)
    head_length = cursor.count("head length", section.length)
    cursor.version("range-bitmap", _RANGE_BITMAP_VERSION)
    rows = cursor.count("row count")
    distinct = cursor.count("cardinality", rows)
    # Minimum and maximum are stepped over: the last field of the head stands at its end.
    cursor = Cursor(section, head_length, window=4)
    dictionary_length = cursor.count("dictionary length", section.length)
    cursor.skip(dictionary_length)
    cursor.window = 14
    cursor.skip(4)
    cursor.version("slices", _RANGE_BITMAP_VERSION)
    slices, existing_length, table_length = cursor.u8(), cursor.i32(), cursor.i32()
    cursor.skip(table_length)
    existing = load(section, cursor.position, existing_length, rows)
    nulls = rows - len(existing) if distinct else rows
    return {"rows": rows, "distinct": distinct, "nulls": nulls, "slices": slices}


def _bsi(section: Section) -> Facts:
    reader = BsiReader(section, _ANY_KEYS)
    existing = reader.is_not_null().rows
    positive, negative = reader.slice_counts
    return {
        "rows": reader.row_count,
        "nulls": None if existing is None else reader.row_count - len(existing),
        "positive_slices": positive,
        "negative_slices": negative,
        # Bounds only: the least absolute value is always written as 0.
        "at_least": reader.min,
        "at_most": reader.max,
    }


HEADS: Final[dict[str, Callable[[Section], Facts]]] = {
    "bloom-filter": _bloom_filter,
    "bitmap": _bitmap,
    "range-bitmap": _range_bitmap,
    "bsi": _bsi,
}
"""What to tell of an index without its column's type, by index type."""
