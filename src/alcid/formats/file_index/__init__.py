"""Paimon's file indexes, one module a format, and the container that holds those of a file.

They are asked in keys, not in values (see `alcid.formats.file_index.keys`).
"""

from __future__ import annotations

from collections.abc import Callable

from alcid.formats.file_index import (
    bitmap,
    bloom_filter,
    bsi,
    range_bitmap,
)
from alcid.formats.file_index.bitmap import open_bitmap
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.container import Container, Entry
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.file_index.reader import EmptyReader, IndexReader
from alcid.formats.source import Section

__all__ = ["BUILDERS", "READERS", "open_index"]

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
"""How an index type is opened.

The order is that in which the indexes of a column are asked, and the first that gives rows decides:
those that read the least to answer come first.
"""


def open_index(container: Container, entry: Entry, key_type: KeyType) -> IndexReader:
    """An index of a container.

    Raises:
        FormatError: It is damaged.
    """
    if entry.is_empty:
        return EmptyReader()
    return READERS[entry.index_type](container.section(entry), key_type)
