"""Rows of an Arrow column made ready to be compared, and a question put to them.

A column is read chunk by chunk and not copied where Arrow's buffers can be looked at as they are.
Of a dictionary only the values are compared, once each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import plain
from alcid.predicate.intervals import Interval, points
from alcid.predicate.question import Anything, Nulls, Outside, Question, Within
from alcid.predicate.row_lists import Mask, to_mask
from alcid.predicate.row_numbers import Wide, numbers_within
from alcid.predicate.row_patterns import Pattern

__all__ = ["RowColumn"]

_DAY_IN_MILLIS = 86_400_000
_FEW = 3
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class _Chunk:
    values: Any
    """A NumPy array or `Wide`, with anything for a null; or an Arrow array, binary for text."""
    valid: Mask | None
    """None if no value is null."""
    picks: npt.NDArray[Any] | None = None
    """For each row its place among the values of a dictionary; -1 for null."""


class RowColumn:
    """One column of a table, read when it is first asked."""

    def __init__(self, array: pa.Array | pa.ChunkedArray, *, trimmed: bool = False) -> None:
        """Take a column; `trimmed`: of text, without the spaces at the end."""
        arrays = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        self._arrays = [part for part in arrays if len(part)]
        self._trimmed = trimmed
        self._chunks: list[_Chunk] | None = None

    def ask(self, question: Question | Pattern) -> Mask:
        """True for the rows of a question."""
        if self._chunks is None:
            self._chunks = [_read(array, self._trimmed) for array in self._arrays]
        masks = [_ask(chunk, question) for chunk in self._chunks]
        if len(masks) == 1:
            return masks[0]
        return np.concatenate(masks) if masks else np.zeros(0, bool)

    def longest(self) -> int:
        """The bytes of the longest text."""
        lengths = (pc.max(pc.binary_length(_text(array))).as_py() for array in self._arrays)
        return max((length or 0 for length in lengths), default=0)


def _text(array: pa.Array) -> pa.Array:
    """Text or bytes of whatever layout as binary."""
    array = plain(array)
    if pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    return array.cast(pa.large_binary()) if pa.types.is_large_string(array.type) else array


def _read(array: pa.Array, trimmed: bool) -> _Chunk:
    if isinstance(array.type, pa.BaseExtensionType):
        return _read(array.storage, trimmed)
    if pa.types.is_dictionary(array.type) and len(array.dictionary) <= len(array):
        values = _read(array.dictionary, trimmed)
        if values.picks is None:
            signed = array.indices.cast(pa.int64())
            picks = signed.fill_null(-1).to_numpy(zero_copy_only=False)
            return _Chunk(values.values, values.valid, picks)
    array = plain(array)
    valid = to_mask(pc.is_valid(array)) if array.null_count else None
    return _Chunk(_values(array, trimmed), valid)


def _values(array: pa.Array, trimmed: bool) -> Any:
    kind = array.type
    if pa.types.is_decimal(kind):
        return _unscaled(array)
    if trimmed:
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        text = array.view(pa.large_string() if wide else pa.string())
        return _text(pc.ascii_rtrim(text, characters=" "))
    if pa.types.is_boolean(kind):
        return to_mask(array).view(np.uint8)
    if pa.types.is_float16(kind):
        return _numbers(array.cast(pa.float32()), np.dtype("f4"))
    if pa.types.is_floating(kind):
        return _numbers(array, np.dtype(f"f{kind.bit_width // 8}"))
    if pa.types.is_date64(kind):
        return _numbers(array, np.dtype("i8")) // _DAY_IN_MILLIS
    if pa.types.is_unsigned_integer(kind):
        return _numbers(array, np.dtype(f"u{kind.bit_width // 8}"))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return _numbers(array, np.dtype(f"i{kind.bit_width // 8}"))
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_string(kind):
        return _text(array)
    return _text(array) if pa.types.is_large_string(kind) else array


def _numbers(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The buffer of an array: unlike `to_numpy` it does not care for nulls."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):  # nothing but nulls, maybe
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def _unscaled(array: pa.Array) -> npt.NDArray[Any] | Wide:
    """The unscaled numbers; those of 18 digits or fewer are the lower half."""
    kind = array.type
    if kind.precision > _MOST_DIGITS:  # which are not compared, only asked whether they are null
        return np.zeros(len(array), np.int64)
    if kind.bit_width != 128:
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    buffer = array.buffers()[1]
    words = np.zeros(2 * len(array), np.int64)
    if buffer is not None:
        words = np.frombuffer(buffer, np.int64, 2 * len(array), 16 * array.offset)
    return words[0::2] if kind.precision <= 18 else Wide(words)


def _ask(chunk: _Chunk, question: Question | Pattern) -> Mask:
    mask = _ask_values(chunk, question)
    if chunk.picks is None:
        return mask
    # What a null row answers stands behind the others, where -1 finds it.
    picked: Mask = np.append(mask, isinstance(question, Nulls | Anything))[chunk.picks]
    return picked


def _ask_values(chunk: _Chunk, question: Question | Pattern) -> Mask:
    values, valid = chunk.values, chunk.valid
    mask = np.ones(len(values), bool)
    match question:
        case Anything():
            return mask
        case Nulls():
            return ~(mask if valid is None else valid)
        case Within(intervals):
            mask = _within(values, intervals)
        case Outside(intervals):
            mask = ~_within(values, intervals)
        case Pattern():
            mask = _like(values, question)
    if valid is not None:
        mask &= valid
    return mask


def _like(values: pa.Array, pattern: Pattern) -> Mask:
    wide = pa.types.is_large_binary(values.type)
    mask = to_mask(pattern.match(values.view(pa.large_string() if wide else pa.string())))
    return ~mask if pattern.negated else mask


def _within(values: Any, intervals: Sequence[Interval]) -> Mask:
    if isinstance(values, pa.Array):
        return _bytes_within(values, intervals)
    return numbers_within(values, intervals)


def _bytes_within(values: pa.Array, intervals: Sequence[Interval]) -> Mask:
    single = [key for interval in intervals for key in points(interval) or ()]
    ranges = [interval for interval in intervals if points(interval) is None]
    masks = [_between(values, begin, end) for begin, end in ranges]
    if len(single) <= _FEW:
        masks += (to_mask(pc.equal(values, pa.scalar(key, values.type))) for key in single)
    else:
        masks.append(to_mask(pc.is_in(values, value_set=pa.array(single, values.type))))
    return np.logical_or.reduce(masks) if masks else np.zeros(len(values), bool)


def _between(values: pa.Array, begin: object, end: object) -> Mask:
    mask = np.ones(len(values), bool)
    if begin is not None:
        mask = to_mask(pc.greater_equal(values, pa.scalar(begin, values.type)))
    if end is not None:
        below = to_mask(pc.less(values, pa.scalar(end, values.type)))
        mask = below if begin is None else mask & below
    return mask
