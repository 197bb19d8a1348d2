"""Bytes to values and back, one module a format.

Formats answer questions in keys (see `alcid.formats.keys`); they never see SQL, tables or Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from alcid.formats import bitmap, bloom_filter, bsi, range_bitmap
from alcid.formats.bitmap_reader import open_bitmap
from alcid.formats.bloom_filter import BloomFilterReader
from alcid.formats.bsi import BsiReader
from alcid.formats.keys import KeyType
from alcid.formats.range_bitmap import RangeBitmapReader
from alcid.formats.reader import IndexReader
from alcid.formats.source import Section

__all__ = ["BUILDERS", "READERS"]

BUILDERS: dict[str, Callable[..., bytes]] = {
    "bloom-filter": bloom_filter.build,
    "bitmap": bitmap.build,
    "range-bitmap": range_bitmap.build,
    "bsi": bsi.build,
}
"""How an index type is built, from a `KeyColumn` and its options by name."""

READERS: dict[str, Callable[[Section, KeyType], IndexReader]] = {
    "bloom-filter": BloomFilterReader,
    "bitmap": open_bitmap,
    "range-bitmap": RangeBitmapReader,
    "bsi": BsiReader,
}
"""How an index type is opened; those that read the least to answer come first."""
