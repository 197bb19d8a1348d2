"""Bounds of a column, from partition values of `truncate[W]`.

A number is rounded down to a multiple of W (a decimal by its digits without the point); text keeps
its first W characters, binary its first W bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import byte_offsets
from alcid.types import DataType

__all__ = ["truncated_bounds"]

Bounds: TypeAlias = "tuple[pa.Array, pa.Array]"
_WIDE_DIGITS: Final = 60
"""Of decimals in between: any of 38 digits and any width are added within them."""


def truncated_bounds(values: pa.Array, data_type: DataType, width: int) -> Bounds | None:
    """The least and the greatest value that is truncated to each value; None of other types.

    >>> least, most = truncated_bounds(pa.array([-10]), DataType("INT"), 10)
    >>> least[0].as_py(), most[0].as_py()
    (-10, -1)
    """
    match data_type.root:
        case "INT" | "BIGINT":
            return _integers(values.cast(data_type.to_arrow()), width)
        case "DECIMAL":
            return _decimals(values.cast(data_type.to_arrow()), width)
        case "VARCHAR":
            return _prefixes(values, pc.utf8_length(values), width)
        case "VARBINARY":
            return _prefixes(values, pc.binary_length(values), width)
        case _:
            return None


def _integers(values: pa.Array, width: int) -> Bounds:
    end = (1 << values.type.bit_width - 1) - 1
    numbers = values.fill_null(0).to_numpy().astype(np.int64)
    # Just above the least number of its type, Java rounds down to beyond it and comes out at the
    # other end: a value that is no multiple of the width may stand for any number.
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False) | (numbers % width != 0)
    step = width - 1
    most = np.where(numbers > end - step, end, np.minimum(numbers, end - step) + step)
    return (
        pa.array(numbers, mask=unknown).cast(values.type),
        pa.array(most, mask=unknown).cast(values.type),
    )


def _decimals(least: pa.Array, width: int) -> Bounds:
    kind = least.type
    step = pa.scalar(_decimal(width - 1, kind.scale), pa.decimal256(_WIDE_DIGITS, kind.scale))
    most = pc.add(least.cast(step.type), step)
    end = pa.scalar(_decimal(10**kind.precision - 1, kind.scale), most.type)
    return least, pc.if_else(pc.greater(most, end), end, most).cast(kind)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(f"{unscaled}E-{scale}")  # from text, since arithmetic would round


def _prefixes(values: pa.Array, lengths: pa.Array, width: int) -> Bounds:
    """A value of fewer than W characters is whole; any other may be followed by anything.

    What begins with `cat` is below `cau`, by its bytes. No byte of text is FF; binary that ends in
    it has no bound.
    """
    least = values.cast(pa.large_binary())
    present = least.fill_null(b"")
    is_cut = pc.greater_equal(lengths, width).fill_null(False).to_numpy(zero_copy_only=False)
    offsets = byte_offsets(present)
    data = np.frombuffer(present.buffers()[2] or b"", np.uint8).copy()
    last = offsets[1:][is_cut] - 1
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False)
    unknown[is_cut] |= data[last] == 0xFF
    data[last] += data[last] < 0xFF
    buffers = [None, present.buffers()[1], pa.py_buffer(data)]
    most = pa.Array.from_buffers(pa.large_binary(), len(present), buffers, offset=present.offset)
    return least.cast(pa.binary()), pc.if_else(unknown, None, most).cast(pa.binary())
