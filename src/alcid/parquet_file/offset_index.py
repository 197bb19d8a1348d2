"""Offset indexes: where the pages of a column chunk are, and which rows they begin with.

An offset index is a struct whose field 1 is a list of page locations, for three pages:

    19 3c | 16 offset 15 size 16 first row 00 | 16 ... 00 | 16 ... 00 | 00

The size is that of the page with its header, the first row counts from the row group's first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.parquet_file.thrift import StructReader, get
from alcid.parquet_file.varints import read_varints, unzigzag

__all__ = ["parse_offset_indexes"]

Integers = npt.NDArray[np.int64]

_LIST_OF_STRUCTS = 0x19, 0x0C
_HEADERS = np.array([[0x16], [0x15], [0x16], [0x00]])
_SHORTEST = 7  # bytes of a page location, and its varints, the field headers counted


def parse_offset_indexes(indexes: Sequence[bytes], file: str) -> list[Integers]:
    """The offsets, sizes and first rows of the pages: three rows of numbers for each index.

    >>> parse_offset_indexes([bytes.fromhex("19 1c 16 08 15 c801 16 00 00 00")], "a")
    [array([[  4],
           [100],
           [  0]])]

    Raises:
        FormatError: It is no offset index.
    """
    data = b"".join(indexes)
    begins = np.cumsum([0, *map(len, indexes)])
    heads = [_head(index) for index in indexes]
    counts = np.array([count for count, _ in heads], np.int64)
    starts = begins[:-1] + np.array([skip for _, skip in heads], np.int64)
    numbers = read_varints(np.frombuffer(data, np.uint8), starts, _SHORTEST * counts)
    table = numbers.reshape(-1, _SHORTEST).T
    pages = unzigzag(table[1::2])
    regular = (table[::2] == _HEADERS).all(axis=0) & (table[1::2] >= 0).all(axis=0)
    ends = np.cumsum(counts)
    found: list[Integers] = []
    for index, begin, end in zip(indexes, (ends - counts).tolist(), ends.tolist(), strict=True):
        if end > begin and regular[begin:end].all():
            found.append(pages[:, begin:end])
        else:
            found.append(_parse(index, file))
    return found


def _head(index: bytes) -> tuple[int, int]:
    """How many locations follow, and after how many bytes; (0, 0) if it begins otherwise."""
    if len(index) < 2 or index[0] != _LIST_OF_STRUCTS[0] or index[1] & 15 != _LIST_OF_STRUCTS[1]:
        return 0, 0
    count, skip = index[1] >> 4, 2
    if count == 15:
        count = shift = 0
        while skip < min(len(index), 7):
            byte = index[skip]
            count |= (byte & 0x7F) << shift
            shift += 7
            skip += 1
            if byte < 0x80:
                break
    return (count, skip) if _SHORTEST * count <= len(index) - skip else (0, 0)


def _parse(index: bytes, file: str) -> Integers:
    """Field by field, for an index whose writer orders or adds fields as no other does."""
    locations = get(StructReader(index, name=file).struct(), 1, list, file=file)
    rows: list[tuple[int, int, int]] = []
    for location in locations:
        if type(location) is not dict:
            raise FormatError("bad page location in an offset index", file=file)
        offset, size, row = (get(location, number, int, file=file) for number in (1, 2, 3))
        rows.append((offset, size, row))
    if rows and not -(1 << 62) < min(map(min, rows)) <= max(map(max, rows)) < 1 << 62:
        raise FormatError("bad page location in an offset index", file=file)
    return np.array(rows, np.int64).reshape(-1, 3).T
