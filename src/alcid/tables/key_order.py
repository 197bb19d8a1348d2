"""Rows ranked by columns, in the order that Paimon's generated comparators have.

| values                      | order                                                   |
|-----------------------------|---------------------------------------------------------|
| null                        | below all others, whichever way the others are turned   |
| text and binary             | by unsigned bytes, a beginning before the whole         |
| FLOAT and DOUBLE            | -0.0 below 0.0, every NaN the same and above all others |
| decimals, dates, timestamps | by value                                                |
| BOOLEAN                     | false below true                                        |

A column becomes one or two integers a row, and columns are put together to one integer as long as
64 bits hold it. Files are sorted by key, and a stable sort of integers only merges what is sorted
already, so that ranking the rows of several files costs little more than reading them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array, IntArray, changes, plain
from alcid.errors import UnsupportedError
from alcid.formats.file_index.distinct import rank_bytes
from alcid.formats.file_index.keys import order_floats

Column: TypeAlias = pa.Array | pa.ChunkedArray
"""Values of one column, as Arrow has them."""
_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_fixed_size_binary,
)
_LONGEST_SPAN = (1 << 63) - 1


def join_columns(parts: Sequence[Sequence[Column]]) -> list[pa.Array]:
    """Columns of several files, one after the other: `parts[file][column]`.

    Raises:
        UnsupportedError: Files have another number of columns, or a column of another type.

    >>> join_columns([[pa.array([1])], [pa.chunked_array([[2], [3]])]])[0].to_pylist()
    [1, 2, 3]
    """
    joined = []
    for number in range(max(map(len, parts), default=0)):
        if any(number >= len(columns) for columns in parts):
            raise UnsupportedError(f"column {number}: found in some files only")
        arrays = [_comparable(columns[number]) for columns in parts]
        kinds = {array.type: None for array in arrays}
        if len(kinds) > 1:
            found = ", ".join(map(str, kinds))
            raise UnsupportedError(f"column {number}: found {found}, expected one type")
        joined.append(arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays))
    return joined


def rank_rows(columns: Sequence[Column], row_count: int, *, descending: bool = False) -> Int64Array:
    """The rank of every row among the distinct ones, from 0; equal rows share a rank.

    Args:
        columns: What to compare, the most significant first. Without any, all rows are equal.
        row_count: The length of each.
        descending: Greater values first, but nulls still before them.

    >>> rank_rows([pa.array(["b", None, "a", "b"])], 4).tolist()
    [2, 0, 1, 2]
    >>> rank_rows([pa.array(["b", None, "a", "b"])], 4, descending=True).tolist()
    [1, 0, 2, 1]
    """
    codes, span = _codes(columns, row_count, descending=descending)
    return _dense(codes) if span > 1 else codes


def sort_rows(columns: Sequence[Column], row_count: int) -> tuple[IntArray, IntArray]:
    """The places of the rows in ascending order, equal ones as they come; and where others begin.

    >>> order, starts = sort_rows([pa.array([7, 5, 7])], 3)
    >>> order.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1])
    """
    codes, _ = _codes(columns, row_count, descending=False)
    order = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(changes(codes[order]))


def _codes(
    columns: Sequence[Column], row_count: int, *, descending: bool
) -> tuple[Int64Array, int]:
    """Integers that compare as the rows do, and how many they may be."""
    codes, span = np.zeros(row_count, np.int64), 1
    for column in columns if row_count else ():
        for word in _words(_comparable(column), descending=descending):
            codes, span = _append(codes, span, word)
    return codes, span


def _append(codes: Int64Array, span: int, word: IntArray) -> tuple[Int64Array, int]:
    """Codes below `span` with a less significant word behind them."""
    low = int(word.min())
    width = int(word.max()) - low + 1
    if span > 1 and span * width > _LONGEST_SPAN:
        codes = _dense(codes)
        span = int(codes.max()) + 1
    if span * width > _LONGEST_SPAN:
        word = _dense(word)
        low, width = 0, int(word.max()) + 1
    # The difference is right even where subtracting wraps around: it is below 2^63.
    below = word.astype(np.int64) - np.uint64(low & (1 << 64) - 1).astype(np.int64)
    return codes * width + below, span * width


def _dense(values: IntArray) -> Int64Array:
    """The rank of every value among the distinct ones."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(changes(values[order])) - 1
    return ranks


def _comparable(column: Column) -> pa.Array:
    """One array; text and binary of whatever layout as large_binary."""
    array = plain(column)
    return array.cast(pa.large_binary()) if any(test(array.type) for test in _BYTES) else array


def _words(array: pa.Array, *, descending: bool) -> list[IntArray]:
    """Integers that compare as the values do, the most significant first."""
    if not array.null_count:
        words = _values(array)
        return [~word for word in words] if descending else words
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    present = _words(array.drop_null(), descending=descending)
    spread = [np.zeros(len(array), word.dtype) for word in present]
    for whole, word in zip(spread, present, strict=True):
        whole[valid] = word
    return [valid.view(np.int8), *spread]


def _values(array: pa.Array) -> list[IntArray]:
    """The words of an array without nulls."""
    kind = array.type
    if pa.types.is_large_binary(kind):
        return [rank_bytes(array)[1]]
    if pa.types.is_boolean(kind):
        return [array.cast(pa.int8()).to_numpy()]
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return [order_floats(array.to_numpy())]
    if pa.types.is_integer(kind):
        return [array.to_numpy()]
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return [array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy()]
    if pa.types.is_decimal128(kind):
        return _unscaled(array)
    raise UnsupportedError(f"Paimon does not order rows by {kind}")


def _unscaled(array: pa.Array) -> list[IntArray]:
    """The unscaled numbers, or where 64 bits do not hold them, their upper halves and the lower."""
    halves = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset)
    lower, upper = halves[0::2], halves[1::2]
    if np.array_equal(lower >> 63, upper):
        return [lower]
    return [upper, lower.view(np.uint64)]
