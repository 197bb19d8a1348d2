"""Which values the rows of a column have, as far as an index tells: bars for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from alcid.byte_map.values import key_text
from alcid.errors import FormatError
from alcid.file_index import FileIndex
from alcid.formats.arrays import IntArray
from alcid.formats.file_index.bitmap_reader import BitmapReader
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.container import Entry
from alcid.formats.file_index.keys import Key, key_type
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.file_index.reader import IndexReader
from alcid.pictures.bytes import histogram
from alcid.pictures.page import Markup, element, section
from alcid.pictures.units import count_text
from alcid.types import DataType

__all__ = ["bin_values", "column_histograms"]

_MOST_BARS = 24
_MOST_ROWS = 1 << 23  # whose codes are listed, at some 20 bytes each


def column_histograms(index: FileIndex, types: Mapping[Entry, DataType | None]) -> list[Markup]:
    """The values of every column whose type is known, from the first index that keeps them."""
    parts: list[Markup] = []
    seen: set[str] = set()
    for entry, data_type in types.items():
        if data_type is None or entry.column in seen or entry.is_empty:
            continue
        try:
            found = _values(index.reader(entry))
        except FormatError:  # the table of indexes says so
            continue
        if found is not None:
            seen.add(entry.column)
            parts.append(_picture(entry, data_type, *found))
    return parts


def _values(reader: IndexReader) -> tuple[list[Key], IntArray, int] | None:
    """The distinct keys, ascending, how many rows have each, and the nulls.

    None for an index without keys, or with too many rows: few bytes can state billions.
    """
    match reader:
        case RangeBitmapReader() | BsiReader() if reader.row_count > _MOST_ROWS:
            return None
        case BitmapReader():
            pairs = sorted(((key, len(rows)) for key, rows in reader.items()), key=_first)
            counts = np.array([count for _, count in pairs], np.int64)
            return [key for key, _ in pairs], counts, len(reader.nulls)
        case RangeBitmapReader():
            keys = list(reader.dictionary) if reader.cardinality else []
            codes = reader.slices.codes()[1] if keys else np.zeros(0, np.uint64)
            counts = np.bincount(codes.astype(np.int64), minlength=len(keys))[: len(keys)]
            return keys, counts, len(reader.is_null().rows or ())
        case BsiReader():
            numbers, counts = np.unique(reader.contents()[1], return_counts=True)
            return numbers.tolist(), counts, len(reader.is_null().rows or ())
    return None


def _first(pair: tuple[Key, int]) -> Key:
    return pair[0]


def _picture(
    entry: Entry, data_type: DataType, keys: list[Key], counts: IntArray, nulls: int
) -> Markup:
    labels, bars = bin_values(keys, counts, data_type)
    if nulls:
        labels, bars = ["NULL", *labels], [nulls, *bars]
    said = count_text(len(keys), "distinct value")
    if len(keys) > _MOST_BARS:
        said += ", several to a bar"
    told = element("p", f"{said}, from its {entry.index_type}.", class_="note")
    return section(f"Values of {entry.column}", told, histogram(labels, bars))


def bin_values(
    keys: Sequence[Key], counts: IntArray, data_type: DataType
) -> tuple[list[str], list[int]]:
    """A label and a count for each bar: one for each value, or for each range if they are many.

    Ranges of integers and times have the same width; others have as many values each.

    >>> bin_values([b"a", b"b"], np.array([2, 1]), DataType.parse("STRING"))
    (["'a'", "'b'"], [2, 1])
    """
    if len(keys) <= _MOST_BARS:
        return [key_text(key, data_type) for key in keys], counts.tolist()
    kind = key_type(data_type)
    starts = _even(len(keys)) if kind.is_bytes or kind.floating else _equal(keys)
    bars = np.add.reduceat(counts, starts).tolist()
    ends = [*(start - 1 for start in starts[1:]), len(keys) - 1]
    labels = []
    for start, end in zip(starts, ends, strict=True):
        first, last = (key_text(keys[place], data_type) for place in (start, end))
        labels.append(first if start == end else f"{first} to {last}")
    return labels, bars


def _even(count: int) -> list[int]:
    """Where bars of about as many values each begin."""
    return [count * bar // _MOST_BARS for bar in range(_MOST_BARS)]


def _equal(keys: Sequence[Key]) -> list[int]:
    """Where bars of the same width begin among ascending integers, if any is in them."""
    numbers: npt.NDArray[np.int64] = np.array(keys, np.int64)
    width = (int(numbers[-1]) - int(numbers[0])) // _MOST_BARS + 1
    cuts = [int(numbers[0]) + bar * width for bar in range(_MOST_BARS)]
    inside = np.array([cut for cut in cuts if cut <= numbers[-1]], np.int64)
    return np.unique(np.searchsorted(numbers, inside)).tolist()  # type: ignore[no-any-return]
