"""Comparison of an index with the column that it should be of.

Equal bytes are equal indexes, so the index is built again with the options that its own bytes show:
how many bits a bloom filter has, how many keys fill a block. Where bytes differ, a bloom filter is
probed for every value, and of the other types all pairs of row and value are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import IntArray, UInt32Array, value_text
from alcid._text import count_text
from alcid.errors import (
    ColumnError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap import BitmapReader, open_bitmap
from alcid.formats.file_index.bloom_filter import BloomFilterReader, fill, hash_column, sizing
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.distinct import rank
from alcid.formats.file_index.keys import (
    KeyColumn,
    Keys,
    KeyType,
    map_key_column,
    read_column,
)
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.roaring import to_rows
from alcid.formats.source import BytesSource, Section
from alcid.options import (
    BitmapOptions,
    BloomFilterOptions,
    BsiOptions,
    IndexOptions,
    IndexSpec,
    RangeBitmapOptions,
    default_options,
)
from alcid.tables.maintenance.findings import Checked, Example
from alcid.types import DataType

_NULL, _UNKNOWN = -1, -2
# Rows of an index beyond those of its file that are still compared; damage may state any number.
_MAX_EXTRA_ROWS = 1 << 22

Rows = UInt32Array


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an index disagrees with the data."""

    false_negatives: int
    """Rows that it does not give for their own value."""
    false_positives: int
    """Rows that it gives for a value that they do not have; not counted for a bloom filter."""
    row: int | None
    """The first row that it is wrong about; None if it is only larger than it need be."""

    def __str__(self) -> str:
        if self.row is None:
            return "bits that no value sets"
        counts = (self.false_negatives, "missing"), (self.false_positives, "too many")
        rows = [f"{count_text(count, 'row')} {what}" for count, what in counts if count]
        return f"{', '.join(rows)}, the first is row {self.row}"


def compare_index(
    index_type: str, payload: bytes, column: KeyColumn, *, name: str
) -> Difference | None:
    """Compare an index with the column that it should be of; None if there is no difference.

    Args:
        index_type: One of `alcid.types.INDEX_TYPES`.
        payload: The index.
        column: The data.
        name: What errors call the index.

    Raises:
        FormatError: The index is damaged.

    >>> from alcid.formats.file_index import BUILDERS
    >>> from alcid.formats.file_index.keys import read_column
    >>> from alcid.types import DataType
    >>> one = read_column(pa.array([5, 6, 7]), DataType.parse("BIGINT"))
    >>> other = read_column(pa.array([5, 7, 7]), DataType.parse("BIGINT"))
    >>> compare_index("bsi", BUILDERS["bsi"](one), other, name="a.index")
    Difference(false_negatives=1, false_positives=1, row=1)
    """
    if not payload:  # which means a file without rows
        rows = column.row_count
        return Difference(rows, 0, 0) if rows else None
    section = Section(BytesSource(payload, name))
    reader = READERS[index_type](section, column.key_type)
    if isinstance(reader, BloomFilterReader):
        return _compare_filter(reader, payload, column)
    assert isinstance(reader, BitmapReader | RangeBitmapReader | BsiReader)
    return _compare_rows(reader, column, name)


def _compare_filter(
    reader: BloomFilterReader, payload: bytes, column: KeyColumn
) -> Difference | None:
    hashes = hash_column(column)
    denied = np.flatnonzero(~reader.may_have(hashes))
    if len(denied):
        return Difference(len(denied), 0, int(column.key_rows[denied[0]]))
    same = fill(hashes, reader.functions, reader.bits) == payload
    return None if same else Difference(0, 0, None)


def _compare_rows(
    reader: BitmapReader | RangeBitmapReader | BsiReader, column: KeyColumn, name: str
) -> Difference | None:
    """Compare all pairs of a row and its key, or null, that the index has."""
    count = column.row_count
    if reader.row_count > 2 * count + _MAX_EXTRA_ROWS:
        raise FormatError("too many rows", file=name, found=reader.row_count, expected=count)
    ranked = rank(column)
    actual = np.full(count, _NULL, np.int64)
    actual[column.key_rows] = ranked.ranks
    rows, keys = reader.contents()
    nulls = reader.is_null().rows
    null_rows = np.zeros(0, np.uint32) if nulls is None else to_rows(nulls)
    rows = np.concatenate((rows, null_rows)).astype(np.int64)
    stated = np.concatenate((_positions(keys, ranked.keys), np.full(len(null_rows), _NULL)))
    inside = rows < count
    right = np.zeros(len(rows), np.bool_)
    right[inside] = actual[rows[inside]] == stated[inside]
    is_right = np.zeros(count, np.bool_)
    is_right[rows[right]] = True
    missing, wrong = np.flatnonzero(~is_right), rows[~right]
    too_many = len(wrong)
    if reader.row_count > count:  # of which a bitmap says that they are not null
        beyond = np.setdiff1d(np.arange(count, reader.row_count), wrong)
        wrong, too_many = np.append(wrong, beyond), too_many + len(beyond)
    if not len(missing) and not too_many:
        return None
    first = int(missing[0]) if len(missing) else int(wrong.min())
    return Difference(len(missing), too_many, first)


def _positions(keys: Keys, among: Keys) -> IntArray:
    """The position of each key among others, which ascend; `_UNKNOWN` where it is none of them."""
    if isinstance(keys, pa.Array):
        indices = pc.index_in(keys, value_set=among).fill_null(_UNKNOWN)
        positions: IntArray = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return positions
    if not len(among):
        return np.full(len(keys), _UNKNOWN)
    positions = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return np.where(among[positions] == keys, positions, _UNKNOWN)


_MAX_VALUE = 80  # characters of an example


def compare_payload(
    checked: Checked,
    path: str,
    column: str,
    spec: IndexSpec,
    stored: bytes,
    rebuilt: bytes | None,
    read: Callable[[], tuple[pa.ChunkedArray, DataType]],
) -> None:
    """Count a file by whether its index agrees with its data.

    Args:
        checked: Where it is counted.
        path: The file.
        column: What the report calls the column.
        spec: The index, as the file has it.
        stored: Its bytes.
        rebuilt: Those of the index that was built again; None if it could not be.
        read: Gives the column, which is the map for a key of one, and the type of the values;
            it is called where the bytes differ.
    """
    if stored == rebuilt:
        checked.count(path, column, spec.index_type, "")
        return
    name = f"{path}: {spec.index_type} of {column!r}"
    try:
        values, data_type = read()
        if spec.map_key is not None:
            values = map_key_column(values, spec.map_key)
        difference = compare_index(
            spec.index_type, stored, read_column(values, data_type), name=name
        )
    except FormatError as error:
        checked.count_damaged(path, column, spec.index_type, error)
        return
    except (ColumnError, LimitError, UnsupportedError) as error:
        checked.count(path, column, spec.index_type, f"cannot be of this file: {error}")
        return
    if difference is None:
        checked.count(path, column, spec.index_type, "")
        return
    check = checked.index(column, spec.index_type)
    if difference.row is None:  # larger than it need be, and right
        check.checked, check.differing = check.checked + 1, check.differing + 1
        return
    checked.count(path, column, spec.index_type, str(difference))
    check.false_negatives += difference.false_negatives
    check.false_positives += difference.false_positives
    row = difference.row
    value = value_text(values[row]) if row < len(values) else "which there is not"
    check.example = check.example or Example(path, row, value[:_MAX_VALUE])


def stored_options(index_type: str, payload: bytes, key_type: KeyType | None) -> IndexOptions:
    """Options for building the same index again.

    They are the default ones if it is damaged, and if the type of its keys is not known.

    >>> import pyarrow as pa
    >>> from alcid.formats.file_index import BUILDERS
    >>> from alcid.formats.file_index.keys import read_column
    >>> from alcid.types import DataType
    >>> column = read_column(pa.array(range(1000)), DataType.parse("BIGINT"))
    >>> payload = BUILDERS["bitmap"](column, version=2, index_block_size=510)
    >>> stored_options("bitmap", payload, column.key_type)
    BitmapOptions(version=2, index_block_size=500)
    """
    options = None
    if key_type is not None:
        options = _STORED_OPTIONS[index_type](Section(BytesSource(payload)), key_type)
    return options or default_options(index_type)


def _bloom_filter(section: Section, key_type: KeyType) -> BloomFilterOptions | None:
    """Numbers from which Paimon's formula makes the same bits and functions, if there are any."""
    try:
        reader = BloomFilterReader(section, key_type)
        bits, functions = reader.bits, reader.functions
        items = max(round(bits * math.log(2) / functions), 1)
        fpp = math.exp(-(bits - 4) * math.log(2) ** 2 / items)  # bits are a multiple of 8
        if 0 < fpp < 1 and sizing(items, fpp) == (bits, functions):
            return BloomFilterOptions(items, fpp)
    except (FormatError, LimitError):
        pass
    return None


def _bitmap(section: Section, key_type: KeyType) -> BitmapOptions | None:
    try:
        reader = open_bitmap(section, key_type)
        size = reader.block_size
    except FormatError:
        return None
    version = reader.head.version
    return BitmapOptions(version) if size is None else BitmapOptions(version, size)


def _range_bitmap(section: Section, key_type: KeyType) -> RangeBitmapOptions | None:
    try:
        return RangeBitmapOptions(RangeBitmapReader(section, key_type).chunk_size)
    except FormatError:
        return None


def _bsi(_section: Section, _key_type: KeyType) -> BsiOptions:
    return BsiOptions()


_STORED_OPTIONS: dict[str, Callable[[Section, KeyType], IndexOptions | None]] = {
    "bloom-filter": _bloom_filter,
    "bitmap": _bitmap,
    "range-bitmap": _range_bitmap,
    "bsi": _bsi,
}
