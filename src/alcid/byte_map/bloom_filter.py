"""The bytes of a bloom-filter index."""

from __future__ import annotations

import numpy as np

from alcid.byte_map.fields import Fields
from alcid.byte_map.region import Region
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.keys import KeyType
from alcid.formats.source import Section

__all__ = ["draw_bloom_filter"]

_ANY_KEYS = KeyType(8)  # the bytes are the same for all


def draw_bloom_filter(section: Section, name: str) -> Region:
    """The number of hash functions, and the filter."""
    reader = BloomFilterReader(section, _ANY_KEYS)
    is_set = int(np.bitwise_count(reader.filter).sum(dtype=np.int64))
    fields = Fields(section)
    fields.read("hash functions", "number", Cursor.i32)
    share = f"{is_set:,} of {reader.bits:,} bits set"
    fields.skip("filter", section.length - fields.position, "data", share)
    return fields.region(name, f"{reader.functions} hash functions, {share}")
