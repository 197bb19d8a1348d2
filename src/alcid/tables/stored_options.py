"""The options by which an index comes out the same, found in the index itself.

Options are not kept with an index, but its bytes show them: how many bits a bloom filter has, how
many keys fill a block. So what is built again from the same data can be compared byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from alcid.errors import FormatError, LimitError
from alcid.formats.file_index.bitmap_reader import open_bitmap
from alcid.formats.file_index.bloom_filter import BloomFilterReader, sizing
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.source import BytesSource, Section
from alcid.options import (
    BitmapOptions,
    BloomFilterOptions,
    BsiOptions,
    IndexOptions,
    RangeBitmapOptions,
    default_options,
)

__all__ = ["stored_options"]


def stored_options(index_type: str, payload: bytes, key_type: KeyType | None) -> IndexOptions:
    """Options for building the same index again.

    They are the default ones if it is damaged, and if the type of its keys is not known.

    >>> import pyarrow as pa
    >>> from alcid.formats.file_index import BUILDERS
    >>> from alcid.formats.file_index.column import read_column
    >>> from alcid.types import DataType
    >>> column = read_column(pa.array(range(1000)), DataType.parse("BIGINT"))
    >>> payload = BUILDERS["bitmap"](column, version=2, index_block_size=510)
    >>> stored_options("bitmap", payload, column.key_type)
    BitmapOptions(version=2, index_block_size=500)
    """
    found = (
        None if key_type is None else _FINDERS[index_type](Section(BytesSource(payload)), key_type)
    )
    return found or default_options(index_type)


def _bloom_filter(section: Section, key_type: KeyType) -> BloomFilterOptions | None:
    """Numbers from which Paimon's formula makes the same bits and functions, if there are any."""
    try:
        reader = BloomFilterReader(section, key_type)
        bits, functions = reader.bits, reader.functions
        items = max(round(bits * math.log(2) / functions), 1)
        fpp = math.exp(-(bits - 4) * math.log(2) ** 2 / items)  # bits are a multiple of 8
        if 0 < fpp < 1 and sizing(items, fpp) == (bits, functions):
            return BloomFilterOptions(items, fpp)
    except (FormatError, LimitError):
        pass
    return None


def _bitmap(section: Section, key_type: KeyType) -> BitmapOptions | None:
    try:
        reader = open_bitmap(section, key_type)
        size = reader.block_size
    except FormatError:
        return None
    version = reader.head.version
    return BitmapOptions(version) if size is None else BitmapOptions(version, size)


def _range_bitmap(section: Section, key_type: KeyType) -> RangeBitmapOptions | None:
    try:
        return RangeBitmapOptions(RangeBitmapReader(section, key_type).chunk_size)
    except FormatError:
        return None


def _bsi(_section: Section, _key_type: KeyType) -> BsiOptions:
    return BsiOptions()


_FINDERS: dict[str, Callable[[Section, KeyType], IndexOptions | None]] = {
    "bloom-filter": _bloom_filter,
    "bitmap": _bitmap,
    "range-bitmap": _range_bitmap,
    "bsi": _bsi,
}
