"""Many varints at once, with NumPy: page locations and page headers are little else.

A field header of Thrift's compact protocol is a byte below 0x80, so it reads as a varint too, and
a struct of numbers is a run of varints of a known length. A page location, for one:

    16 offset  15 size  16 first row  00
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["read_varints", "unzigzag", "varint"]

Integers = npt.NDArray[np.int64]

_MOST_BYTES = 9  # 63 bits, which an int64 holds; Parquet's offsets, sizes and rows are no larger


def read_varints(data: npt.NDArray[np.uint8], starts: Integers, counts: Integers) -> Integers:
    """The `counts[i]` varints from `starts[i]` on, for each i, one after the other.

    A varint of more than 63 bits, or one that does not end within the data, becomes -1.

    >>> data = np.frombuffer(bytes.fromhex("05 ac02 00 7f"), np.uint8)
    >>> read_varints(data, np.array([0, 4]), np.array([2, 1])).tolist()
    [5, 300, 127]
    """
    ends = np.flatnonzero(data < 0x80)
    firsts = np.cumsum(counts) - counts
    order = np.repeat(np.searchsorted(ends, starts) - firsts, counts) + np.arange(counts.sum())
    whole = order < len(ends)
    order[~whole] = 0
    if not len(ends):
        return np.full(len(order), -1)
    stops = ends[order]
    begins = ends[order - 1] + 1
    begins[firsts[counts > 0]] = starts[counts > 0]
    lengths = stops - begins + 1
    values = np.zeros(len(order), np.int64)
    for place in range(min(int(lengths.max(initial=0)), _MOST_BYTES)):
        longer = lengths > place
        part = data[begins[longer] + place].astype(np.int64) & 0x7F
        values[longer] |= part << (7 * place)
    values[~whole | (lengths > _MOST_BYTES)] = -1
    return values


def unzigzag(values: Integers) -> Integers:
    """Signed numbers from the form in which small ones of either sign are short.

    >>> unzigzag(np.array([0, 1, 2, 3])).tolist()
    [0, -1, 1, -2]
    """
    return (values >> 1) ^ -(values & 1)


def varint(value: int) -> bytes:
    """The bytes of one number that is not negative.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
