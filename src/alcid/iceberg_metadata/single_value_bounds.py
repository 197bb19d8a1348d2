"""Bounds of columns as manifests have them: single values as bytes, those of a column at once.

    boolean                  1 byte, 00 or 01
    int, date, float         4 bytes, little-endian
    long, timestamp, double  8 bytes; 4 in files of before the column was widened from int or float
    decimal                  the unscaled number, big-endian, in 1 to 16 bytes
    string, fixed, binary    as they are, often cut

Bytes of another length, or that are no value of the type, count as not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import IntArray, byte_offsets
from alcid.types import DataType

__all__ = ["decoded_bounds"]

_STORED: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("u1",),
    "INT": ("<i4",),
    "DATE": ("<i4",),
    "BIGINT": ("<i8", "<i4"),
    "TIMESTAMP": ("<i8",),
    "TIMESTAMP_LTZ": ("<i8",),
    "FLOAT": ("<f4",),
    "DOUBLE": ("<f8", "<f4"),
}
"""What a value is stored as; the second is of before its column was widened."""
_LONGEST_DECIMAL: Final = 16
_MOST_DIGITS: Final = 38


def decoded_bounds(values: pa.Array, data_type: DataType) -> pa.Array:
    """The bounds of a column, of its Arrow type, but text as bytes; null where not known.

    Columns that have no order are of Arrow's null type.

    >>> stored = pa.array([bytes.fromhex("07000000"), bytes(8), b"?", None], pa.binary())
    >>> decoded_bounds(stored, DataType("BIGINT")).to_pylist()
    [7, 0, None, None]
    """
    if data_type.root in ("VARCHAR", "VARBINARY"):
        return values.cast(pa.binary())
    if data_type.root == "DECIMAL":
        return _decimals(_Stored.of(values), data_type)
    if data_type.root in _STORED:
        return _fixed(_Stored.of(values), data_type)
    return pa.nulls(len(values))


@dataclass(frozen=True, slots=True)
class _Stored:
    """Where the bytes of each value lie; those of null have no length."""

    data: npt.NDArray[np.uint8]
    starts: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, values: pa.Array) -> _Stored:
        present = values.cast(pa.large_binary()).fill_null(b"")
        offsets = byte_offsets(present)
        data = np.frombuffer(present.buffers()[2] or b"", np.uint8)
        return cls(data, offsets[:-1], np.diff(offsets))


def _fixed(stored: _Stored, data_type: DataType) -> pa.Array:
    dtypes = [np.dtype(one) for one in _STORED[data_type.root]]
    numbers = np.zeros(len(stored.starts), dtypes[0])
    known = np.zeros(len(numbers), bool)
    for dtype in dtypes:
        rows = np.flatnonzero(stored.lengths == dtype.itemsize)
        found = stored.data[stored.starts[rows, None] + np.arange(dtype.itemsize)]
        with np.errstate(invalid="ignore"):  # a NaN that signals, when it is widened
            numbers[rows] = found.view(dtype).reshape(-1).astype(dtypes[0])
        known[rows] = True
    if data_type.root == "BOOLEAN":
        return pa.array(numbers == 1, mask=~known | (numbers > 1))
    return pa.array(numbers, mask=~known).view(data_type.to_arrow())


def _decimals(stored: _Stored, data_type: DataType) -> pa.Array:
    known = (stored.lengths > 0) & (stored.lengths <= _LONGEST_DECIMAL)
    rows = np.flatnonzero(known)
    starts = stored.starts[rows, None]
    places = starts + stored.lengths[rows, None] + np.arange(-_LONGEST_DECIMAL, 0)
    sign = np.where(stored.data[starts] & 0x80, 0xFF, 0).astype(np.uint8)
    numbers = np.zeros((len(known), _LONGEST_DECIMAL), np.uint8)
    numbers[rows] = np.where(places < starts, sign, stored.data[np.maximum(places, starts)])
    buffers = [_bits(known), pa.py_buffer(np.ascontiguousarray(numbers[:, ::-1]))]
    widest = pa.decimal128(_MOST_DIGITS, data_type.scale)
    found = pa.Array.from_buffers(widest, len(known), buffers)
    # From text, since arithmetic would round.
    end = Decimal(f"{10**data_type.precision - 1}E-{data_type.scale}")
    fits = pc.and_(
        pc.less_equal(found, pa.scalar(end, widest)),
        pc.greater_equal(found, pa.scalar(end.copy_negate(), widest)),
    )
    return pc.if_else(fits, found, None).cast(data_type.to_arrow())


def _bits(mask: npt.NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
