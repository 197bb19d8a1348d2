"""The bloom filters of many files, in memory: all of them are asked at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from alcid.formats.file_index.bloom_filter import bit_positions
from alcid.formats.file_index.column import KeyColumn, key_array
from alcid.formats.file_index.entries import integers_at
from alcid.formats.file_index.hashes import hash_column
from alcid.formats.file_index.keys import Key, KeyType

__all__ = ["are_usual", "may_have_any"]

_HEAD = 4
_MOST_BYTES = 1 << 28
_MOST_FUNCTIONS = 64


def are_usual(payloads: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Which filters hold some bits, and have a number of hash functions that is often seen.

    Others are asked one by one, and say what is wrong with them.

    >>> are_usual([bytes((0, 0, 0, 1, 255)), b"damaged", b""]).tolist()
    [True, False, False]
    """
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    heads = b"".join([payload[:_HEAD].ljust(_HEAD, b"\0") for payload in payloads])
    functions = np.frombuffer(heads, ">u4")
    is_sized = (lengths > _HEAD) & (lengths < _MOST_BYTES)
    usual: npt.NDArray[np.bool_] = is_sized & (functions > 0) & (functions <= _MOST_FUNCTIONS)
    return usual


def may_have_any(
    payloads: Sequence[bytes], keys: Sequence[Key], key_type: KeyType
) -> npt.NDArray[np.bool_]:
    """For each of some usual filters, whether one of the keys may be there.

    >>> import pyarrow as pa
    >>> from alcid.formats.file_index.bloom_filter import build
    >>> from alcid.formats.file_index.column import read_column
    >>> from alcid.types import DataType
    >>> columns = [read_column(pa.array(ids), DataType("BIGINT")) for ids in ([1, 2], [3])]
    >>> may_have_any([build(one) for one in columns], [3], columns[0].key_type).tolist()
    [False, True]
    """
    hashes = hash_column(KeyColumn(len(keys), key_type, key_array(keys, key_type), None))
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    data = np.frombuffer(b"".join(payloads), np.uint8)
    starts = np.cumsum(lengths) - lengths
    functions = integers_at(data, starts)
    bits = (8 * (lengths - _HEAD)).astype(np.uint32)[:, None]
    found = np.ones((len(payloads), len(keys)), np.bool_)
    for number, positions in enumerate(
        bit_positions(hashes[None, :], int(functions.max(initial=0)), bits)
    ):
        at = (starts + _HEAD)[:, None] + (positions >> 3)
        is_set = (data[at] >> (positions & 7).astype(np.uint8) & 1).astype(np.bool_)
        found &= is_set | (functions <= number)[:, None]
    may_have: npt.NDArray[np.bool_] = np.logical_or.reduce(found, axis=1)
    return may_have
