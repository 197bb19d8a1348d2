"""What a file index holds: its head, and facts of every index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from pyroaring import BitMap

from alcid.byte_map.kinds import Kind
from alcid.byte_map.values import Value, value_of
from alcid.cli.column_types import IndexedColumns
from alcid.cli.inspect.heads import HEADS
from alcid.cli.inspect.listing import Facts, State, problem_of
from alcid.errors import ColumnError, FormatError
from alcid.file_index import FileIndex
from alcid.formats.file_index.bitmap_reader import BitmapReader
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.container import VERSION, Entry
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import Source
from alcid.types import DataType

__all__ = ["FileIndexReport", "IndexReport", "ListedValue", "inspect_file_index"]


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value, how many rows have it, and the first of these."""

    value: Value
    count: int
    positions: tuple[int, ...]

    @property
    def truncated(self) -> bool:
        """True when not all positions are here."""
        return self.count > len(self.positions)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """One index."""

    column: str
    index_type: str
    data_type: str | None
    """The type of the column, if it was given."""
    offset: int | None
    size: int
    state: State
    problem: str | None
    facts: Facts
    values: tuple[ListedValue, ...] | None
    """The first values, null before all, if they were asked for and the index keeps them."""

    @property
    def value_count(self) -> int:
        """The distinct values, and null if there is one."""
        distinct = self.facts.get("distinct")
        return (distinct if isinstance(distinct, int) else 0) + bool(self.facts.get("nulls"))

    @property
    def truncated(self) -> bool:
        """True when not all values are here."""
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
    """Look into a container.

    Args:
        source: The file.
        types: Types of columns, as far as they are known.
        column: Only this one, with its values.
        limit: Values at most, and positions of each; None for all.
    """
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
    found = columns.find(column)
    if not found:
        others = ", ".join(dict.fromkeys(entry.column for entry in columns.types)) or "none"
        raise ColumnError(f"column {column}: no index of it; the file has indexes of {others}")
    return found


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
                hint = f"; or the column is not {data_type}"  # as its head could be read without
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
    """What the head could not tell."""

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
    """The first values, or None if the index keeps no list of them."""
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
