"""Which of many bitmap indexes hold none of some keys, without opening each.

Most files of a large table do not have a value that is looked for. Keys of one width are compared
with those of the dictionary, if that is of the usual form and in order. A text stands in a
dictionary behind its length, as it is: where that is nowhere found, the text is not there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from alcid._arrays import IntArray
from alcid.formats.file_index.bitmap import V1, V2
from alcid.formats.file_index.dictionary import encode
from alcid.formats.file_index.keys import Key, KeyType, key_array

_HEAD: Final = struct.Struct(">BiiB")
_NULLS: Final = 8  # offset and length of the rows without a value
_I32: Final = struct.Struct(">i")
_BLOCK: Final = struct.Struct(">iii")  # where the only block is, its length, and its entries
_PLACE: Final = 8  # offset and length of the rows of a key
_VERSIONS: Final = (bytes((V1,)), bytes((V2,)))


class BitmapSearch:
    """Looks for keys in payloads.

    >>> import pyarrow as pa
    >>> from alcid.formats.file_index.bitmap import build
    >>> from alcid.formats.file_index.keys import read_column
    >>> from alcid.types import DataType
    >>> column = read_column(pa.array([7, 1, 7], pa.int32()), DataType("INT"))
    >>> search = BitmapSearch([2, 3], column.key_type)
    >>> search.contains_none(build(column)), search.contains_none(b"damaged")
    (True, False)
    """

    def __init__(self, keys: Sequence[Key], key_type: KeyType) -> None:
        """Prepare to look for any of the keys."""
        self._keys, self._key_type = frozenset(keys), key_type
        entries = encode(key_type, key_array(keys, key_type))
        self._stored = [entries.slice(number, number + 1) for number in range(len(keys))]

    def contains_none(self, payload: bytes, *, is_checked: bool = False) -> bool:
        """Whether an index has none of the keys; if False, only its reader can tell.

        Args:
            payload: The whole index.
            is_checked: Whether a checksum says that it is as it was written. If not, only a
                dictionary that is in order throughout is believed, and none of text is.
        """
        if self._key_type.is_bytes:
            is_known = is_checked and payload[:1] in _VERSIONS
            return is_known and not any(key in payload for key in self._stored)
        keys = usual_keys(payload, self._key_type)
        return keys is not None and self._keys.isdisjoint(keys.tolist())


def usual_keys(payload: bytes, key_type: KeyType) -> IntArray | None:
    """All keys of an index of version 2 with a dictionary of one block, if all of it is in order.

    None for any other, of which a reader must say what is wrong with it, if anything is.
    """
    if len(payload) < _HEAD.size:
        return None
    version, rows, distinct, has_null = _HEAD.unpack_from(payload)
    at = _HEAD.size + (_NULLS if has_null else 0)
    begin = at + _I32.size + key_type.width + _BLOCK.size
    if version != V2 or has_null > 1 or not 0 < distinct <= rows or len(payload) < begin:
        return None
    (blocks,) = _I32.unpack_from(payload, at)
    offset, length, count = _BLOCK.unpack_from(payload, begin - _BLOCK.size)
    record = np.dtype([("key", key_type.stored), ("place", f"V{_PLACE}")])
    size = count * record.itemsize
    if (blocks, offset, count) != (1, 0, distinct) or length != _I32.size + size:
        return None
    if begin + size > len(payload):
        return None
    stored = np.frombuffer(payload, record, count, begin)["key"]
    keys = key_type.from_stored(stored)
    first = payload[at + _I32.size : at + _I32.size + key_type.width]
    is_in_order = stored[:1].tobytes() == first and bool((keys[1:] > keys[:-1]).all())
    return keys if is_in_order else None
