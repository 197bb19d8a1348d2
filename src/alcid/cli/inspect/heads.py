"""What an index tells without the type of its column, which readers need to find their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from alcid.cli.inspect.listing import Facts
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bitmap import BitmapHead
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.range_bitmap import RangeBitmapHead
from alcid.formats.file_index.slice_table import read_slices
from alcid.formats.source import Section

__all__ = ["HEADS"]

_ANY_KEYS = KeyType(8)  # bloom-filter and bsi have heads without keys


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
    head = BitmapHead.read(Cursor(section))
    # A single null has no bitmap; how many a bitmap holds is told by the reader.
    nulls = 0 if head.null_offset is None else 1 if head.null_offset < 0 else None
    return {
        "version": head.version,
        "rows": head.row_count,
        "distinct": head.distinct,
        "nulls": nulls,
        "null_offset": head.null_offset,
    }


def _range_bitmap(section: Section) -> Facts:
    head = RangeBitmapHead.read(Cursor(section))
    slices = read_slices(section.section(head.slices_at), head.row_count, head.cardinality)
    return {
        "rows": head.row_count,
        "distinct": head.cardinality,
        "nulls": head.row_count - len(slices.existing),
        "slices": slices.count,
    }


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
