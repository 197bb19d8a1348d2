"""Which numbers of an array are in a list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import IntArray

__all__ = ["Mask", "numbers_in", "to_mask"]

Mask: TypeAlias = npt.NDArray[np.bool_]

_MOST_SPAN = 1 << 20
_SLOTS_LOG2 = 16
_BLOCK = 1 << 14
# Odd, with bits all over: the upper bits of a product tell numbers apart.
_MULTIPLIER = {4: np.uint32(0x9E3779B1), 8: np.uint64(0x9E3779B97F4A7C15)}


def numbers_in(values: npt.NDArray[Any], keys: npt.NDArray[Any]) -> Mask:
    """True where a value is one of `keys`, which are of the same type.

    Floats are compared by their bits: list both zeros, and ask for NaN in another way.

    >>> numbers_in(np.array([1, 5, 9], np.int8), np.array([9, 1], np.int8)).tolist()
    [True, False, True]
    """
    if not len(keys):
        return np.zeros(len(values), bool)
    if values.dtype.kind != "f":
        if values.dtype.itemsize < 4:
            values, keys = values.astype(np.int32), keys.astype(np.int32)
        if int(keys.max()) - int(keys.min()) < _MOST_SPAN:
            return _is_in_table(values, keys)
    # Most rows match none: what has the hash of no key is not looked for.
    taken = np.zeros(1 << _SLOTS_LOG2, bool)
    taken[_slots(keys)] = True
    mask = _by_blocks(values, lambda block: taken[_slots(block)])
    rows = np.flatnonzero(mask)
    mask[rows] = to_mask(pc.is_in(pa.array(values[rows]), value_set=pa.array(keys)))
    return mask


def _is_in_table(values: IntArray, keys: IntArray) -> Mask:
    signed, unsigned = f"i{values.dtype.itemsize}", f"u{values.dtype.itemsize}"
    least = keys.min().astype(unsigned)
    # Differences wrap around, so that a value below the least key is far above the greatest.
    places = keys.view(unsigned) - least
    beyond = places.max() + 1
    table = np.zeros(int(beyond) + 1, bool)
    table[places] = True

    def find(block: IntArray) -> Mask:
        near = np.minimum(block.view(unsigned) - least, beyond)
        found: Mask = table[near.view(signed)]
        return found

    return _by_blocks(values, find)


def _slots(values: npt.NDArray[Any]) -> IntArray:
    width = values.dtype.itemsize
    hashed = values.view(f"u{width}") * _MULTIPLIER[width]
    hashed >>= 8 * width - _SLOTS_LOG2
    slots: IntArray = hashed.view(f"i{width}")  # NumPy would copy what is unsigned to look it up
    return slots


def _by_blocks(values: npt.NDArray[Any], find: Callable[[npt.NDArray[Any]], Mask]) -> Mask:
    """Blocks stay in the cache between the steps of `find`."""
    mask = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        mask[start : start + _BLOCK] = find(values[start : start + _BLOCK])
    return mask


def to_mask(array: pa.BooleanArray) -> Mask:
    """Arrow's bits, null as false, as NumPy's."""
    filled = array.fill_null(False) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
