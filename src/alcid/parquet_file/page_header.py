"""The first fields of page headers: a page must hold the rows that the offset index says.

    15 kind  15 bytes decoded  15 bytes  [15 checksum]  2c 15 values ...     kind 0, a data page
    15 kind  15 bytes decoded  15 bytes  [15 checksum]  5c 15 values ...     kind 3, version 2

The header of the data page is field 5 or 8, so its first byte is one less after a checksum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import FormatError
from alcid.parquet_file.thrift import StructReader, get
from alcid.parquet_file.varints import read_varints, unzigzag

__all__ = ["values_of_pages"]

Integers = npt.NDArray[np.int64]

_MOST_BYTES = 32  # of these fields: 5 numbers of up to 5 bytes, and their headers
_NUMBERS = 11
"""So many varints are read, the field headers counted; without a checksum two of them are more."""


def values_of_pages(data: bytes | pa.Buffer, starts: Integers, sizes: Integers) -> Integers:
    """The number of values that each page's header gives; -1 for what is no data page.

    >>> page = bytes.fromhex("15 00 15 10 15 10 2c 15 04 15 00 15 06 15 06 00 00") + bytes(8)
    >>> values_of_pages(page, np.array([0]), np.array([len(page)])).tolist()
    [2]
    """
    window = np.arange(_MOST_BYTES)
    whole = np.frombuffer(data, np.uint8)
    heads = whole[np.minimum(starts[:, None] + window, len(whole) - 1)]
    numbers = read_varints(
        heads.ravel(), np.arange(len(starts)) * _MOST_BYTES, np.full(len(starts), _NUMBERS)
    ).reshape(-1, _NUMBERS)
    checked = (numbers[:, 6] == 0x15).astype(np.int64)
    rows = np.arange(len(starts))
    head, mark, values = (numbers[rows, 6 + 2 * checked + more] for more in range(3))
    kinds = unzigzag(numbers[:, 1])
    regular = (numbers[:, 0:5:2] == 0x15).all(axis=1) & (mark == 0x15) & (values >= 0)
    regular &= ((kinds == 0) & (head == 0x2C - 0x10 * checked)) | (
        (kinds == 3) & (head == 0x5C - 0x10 * checked)
    )
    found = np.where(regular, unzigzag(values), -1)
    for place in np.flatnonzero(~regular).tolist():
        begin = int(starts[place])
        found[place] = _values(whole[begin : begin + int(sizes[place])].tobytes())
    return found


def _values(page: bytes) -> int:
    """Field by field, for a header that is not written as all known writers do."""
    try:
        header = StructReader(page).struct()
        kind = get(header, 1, int, file="")
        return get(get(header, 8 if kind == 3 else 5, dict, file=""), 1, int, file="")
    except FormatError:
        return -1
