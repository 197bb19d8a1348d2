"""Contents of a file index, for `alcid inspect`: its header, facts about every index, and values.

Headers are read without the type of a column. Values, minimum and maximum need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import numpy as np
from pyroaring import BitMap

from alcid._arrays import Int64Array, IntArray
from alcid._text import count_text
from alcid.cli.columns import IndexedColumns
from alcid.cli.files.contents import Facts, State, problem_of
from alcid.errors import ColumnError, FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.file_index.bit_slices import read_slices
from alcid.formats.file_index.bitmap import BitmapHead, BitmapReader
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.container import VERSION, Entry
from alcid.formats.file_index.keys import Key, KeyType, key_type
from alcid.formats.file_index.range_bitmap import RangeBitmapHead, RangeBitmapReader
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import Section, Source
from alcid.index.file_index import FileIndex
from alcid.inspect.byte_bar import histogram
from alcid.inspect.byte_map.kinds import Kind
from alcid.inspect.byte_map.regions import Value, key_text, value_of
from alcid.inspect.page import Markup, element, section
from alcid.types import DataType

_ANY_KEYS = KeyType(8)  # bloom-filter and bsi have heads without keys


def _bloom_filter(section: Section) -> Facts:
    reader = BloomFilterReader(section, _ANY_KEYS)
    is_set = int(np.bitwise_count(reader.filter).sum(dtype=np.int64))
    return {
        "functions": reader.functions,
        "bits": reader.bits,
        "bits_set": is_set,
        "false_positive_rate": (is_set / reader.bits) ** reader.functions,
    }


def _bitmap(section: Section) -> Facts:
    head = BitmapHead.read(Cursor(section))
    # A single null has no bitmap; counting those of a bitmap takes its reader.
    nulls = 0 if head.null_offset is None else 1 if head.null_offset < 0 else None
    return {
        "version": head.version,
        "rows": head.row_count,
        "distinct": head.distinct,
        "nulls": nulls,
        "null_offset": head.null_offset,
    }


def _range_bitmap(section: Section) -> Facts:
    head = RangeBitmapHead.read(Cursor(section))
    slices = read_slices(section.section(head.slices_at), head.row_count, head.cardinality)
    return {
        "rows": head.row_count,
        "distinct": head.cardinality,
        "nulls": head.row_count - len(slices.existing),
        "slices": slices.count,
    }


def _bsi(section: Section) -> Facts:
    reader = BsiReader(section, _ANY_KEYS)
    existing = reader.is_not_null().rows
    positive, negative = reader.slice_counts
    return {
        "rows": reader.row_count,
        "nulls": None if existing is None else reader.row_count - len(existing),
        "positive_slices": positive,
        "negative_slices": negative,
        # Bounds only: the smallest absolute value is always written as 0.
        "at_least": reader.min,
        "at_most": reader.max,
    }


HEADS: Final[dict[str, Callable[[Section], Facts]]] = {
    "bloom-filter": _bloom_filter,
    "bitmap": _bitmap,
    "range-bitmap": _range_bitmap,
    "bsi": _bsi,
}
"""Facts of an index that do not depend on the type of its column, by index type."""


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value, the number of its rows, and the first of them."""

    value: Value
    count: int
    positions: tuple[int, ...]

    @property
    def truncated(self) -> bool:
        """True when `positions` has not all of them."""
        return self.count > len(self.positions)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """One index."""

    column: str
    index_type: str
    data_type: str | None
    """The type of the column, if it is known."""
    offset: int | None
    size: int
    state: State
    problem: str | None
    facts: Facts
    values: tuple[ListedValue, ...] | None
    """The first values, null before all others, if requested and if the index contains them."""

    @property
    def value_count(self) -> int:
        """The number of distinct values, with null if it occurs."""
        distinct = self.facts.get("distinct")
        return (distinct if isinstance(distinct, int) else 0) + bool(self.facts.get("nulls"))

    @property
    def truncated(self) -> bool:
        """True when `values` has not all of them."""
        return self.values is not None and self.value_count > len(self.values)


@dataclass(frozen=True, slots=True)
class FileIndexReport:
    """A file and its indexes."""

    file: str
    kind: Kind
    size: int
    head: dict[str, int]
    indexes: tuple[IndexReport, ...]
    lists_values: bool

    @property
    def is_damaged(self) -> bool:
        """True when any index is."""
        return any(index.state == "damaged" for index in self.indexes)


def inspect_file_index(
    source: Source, types: Mapping[str, DataType], column: str | None, limit: int | None
) -> FileIndexReport:
    """Inspect a container; with `column`, only this column and its first values and positions."""
    index = FileIndex.open(source, types, strict=True)
    columns = IndexedColumns.match(index.entries, types)
    chosen = index.entries if column is None else _of_column(column, columns)
    container = index.container
    return FileIndexReport(
        source.name,
        Kind.FILE_INDEX,
        source.size,
        {
            "version": VERSION,
            "head_length": container.head_length,
            "redundant_bytes": container.redundant,
            "columns": len({entry.column for entry in index.entries}),
        },
        tuple(
            _inspect(
                index, entry, columns.types[entry], lists_values=column is not None, limit=limit
            )
            for entry in chosen
        ),
        column is not None,
    )


def _of_column(column: str, columns: IndexedColumns) -> tuple[Entry, ...]:
    entries = columns.find(column)
    if not entries:
        others = ", ".join(dict.fromkeys(entry.column for entry in columns.types)) or "none"
        raise ColumnError(f"column {column}: no index of it; the file has indexes of {others}")
    return entries


def _inspect(
    index: FileIndex,
    entry: Entry,
    data_type: DataType | None,
    *,
    lists_values: bool,
    limit: int | None,
) -> IndexReport:
    state: State = "ok"
    problem, hint, values, facts = None, "", None, Facts()
    if entry.is_empty:
        state = "empty"
    elif entry.index_type not in HEADS:
        state = "unknown"
    else:
        try:
            facts = HEADS[entry.index_type](index.container.section(entry))
            if data_type is not None:
                hint = f"; or the column is not {data_type}"  # since its header could be read
                reader = index.reader(entry)
                facts |= _typed_facts(reader, data_type)
                values = _list_values(reader, data_type, limit) if lists_values else None
        except FormatError as error:
            state, problem = "damaged", problem_of(error) + hint
    return IndexReport(
        entry.column,
        entry.index_type,
        None if data_type is None else str(data_type),
        None if entry.is_empty else entry.start,
        entry.length,
        state,
        problem,
        facts,
        values,
    )


def _typed_facts(reader: IndexReader, data_type: DataType) -> Facts:
    """Facts that need the type of the column."""

    def value(key: int | bytes | None) -> Value:
        return None if key is None else value_of(key, data_type)

    match reader:
        case BitmapReader():
            return {"nulls": len(reader.nulls)}
        case RangeBitmapReader():
            return {"min": value(reader.min), "max": value(reader.max)}
        case BsiReader():
            return {"at_least": value(reader.min), "at_most": value(reader.max)}
    return {}


def _list_values(
    reader: IndexReader, data_type: DataType, limit: int | None
) -> tuple[ListedValue, ...] | None:
    """The first values, or None if the index does not contain them."""
    if not isinstance(reader, BitmapReader | RangeBitmapReader):
        return None
    nulls = reader.is_null().rows
    listed: Iterable[tuple[Value, BitMap]] = (
        (value_of(key, data_type), rows) for key, rows in reader.items()
    )
    with_null = chain([(None, nulls)], listed) if nulls else listed
    return tuple(
        ListedValue(value, len(rows), tuple(islice(rows, limit)))
        for value, rows in islice(with_null, limit)
    )


_MAX_BARS = 24
_MAX_ROWS = 1 << 23  # whose codes are decoded, at some 20 bytes each


def column_histograms(index: FileIndex, types: Mapping[Entry, DataType | None]) -> list[Markup]:
    """Histograms of the columns whose type is known, from the first index with their values."""
    parts: list[Markup] = []
    seen: set[str] = set()
    for entry, data_type in types.items():
        if data_type is None or entry.column in seen or entry.is_empty:
            continue
        try:
            values = _values(index.reader(entry))
        except FormatError:  # the table of indexes shows it
            continue
        if values is not None:
            seen.add(entry.column)
            parts.append(_histogram(entry, data_type, *values))
    return parts


def _values(reader: IndexReader) -> tuple[list[Key], IntArray, int] | None:
    """The distinct keys in ascending order, their row counts, and the number of nulls.

    None for an index without keys, or with too many rows: a few bytes can claim billions.
    """
    match reader:
        case RangeBitmapReader() | BsiReader() if reader.row_count > _MAX_ROWS:
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


def _histogram(
    entry: Entry, data_type: DataType, keys: list[Key], counts: IntArray, nulls: int
) -> Markup:
    labels, bars = bin_values(keys, counts, data_type)
    if nulls:
        labels, bars = ["NULL", *labels], [nulls, *bars]
    summary = count_text(len(keys), "distinct value")
    if len(keys) > _MAX_BARS:
        summary += ", several to a bar"
    note = element("p", f"{summary}, from its {entry.index_type}.", class_="note")
    return section(f"Values of {entry.column}", note, histogram(labels, bars))


def bin_values(
    keys: Sequence[Key], counts: IntArray, data_type: DataType
) -> tuple[list[str], list[int]]:
    """A label and a count for each bar: a bar per value, or per range if there are many values.

    Ranges of integers and times have equal widths; others have equal numbers of values.

    >>> bin_values([b"a", b"b"], np.array([2, 1]), DataType.parse("STRING"))
    (["'a'", "'b'"], [2, 1])
    """
    if len(keys) <= _MAX_BARS:
        return [key_text(key, data_type) for key in keys], counts.tolist()
    kind = key_type(data_type)
    starts = _even(len(keys)) if kind.is_bytes or kind.floating else _equal(keys)
    bars = np.add.reduceat(counts, starts).tolist()
    ends = [*(start - 1 for start in starts[1:]), len(keys) - 1]
    labels = []
    for start, end in zip(starts, ends, strict=True):
        first, last = (key_text(keys[position], data_type) for position in (start, end))
        labels.append(first if start == end else f"{first} to {last}")
    return labels, bars


def _even(count: int) -> list[int]:
    """Starts of bars with about equal numbers of values."""
    return [count * bar // _MAX_BARS for bar in range(_MAX_BARS)]


def _equal(keys: Sequence[Key]) -> list[int]:
    """Starts of bars of equal width among ascending integers, without empty bars."""
    numbers: Int64Array = np.array(keys, np.int64)
    width = (int(numbers[-1]) - int(numbers[0])) // _MAX_BARS + 1
    cuts = [int(numbers[0]) + bar * width for bar in range(_MAX_BARS)]
    inside = np.array([cut for cut in cuts if cut <= numbers[-1]], np.int64)
    return np.unique(np.searchsorted(numbers, inside)).tolist()  # type: ignore[no-any-return]
