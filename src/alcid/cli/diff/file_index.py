"""Two file indexes: the same columns, the same rows for each value?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from alcid.byte_map import draw_index
from alcid.cli.column_types import IndexedColumns
from alcid.cli.diff.first_byte import first_byte, locate
from alcid.cli.diff.report import Difference, compared
from alcid.cli.diff.rows import RowValues, compare_rows
from alcid.file_index import FileIndex
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bloom_filter import BloomFilterReader
from alcid.formats.file_index.container import Entry
from alcid.formats.file_index.keys import KeyType
from alcid.formats.source import Source
from alcid.types import DataType

__all__ = ["compare_file_indexes"]

_TYPE_OF_BSI = DataType.parse("BIGINT")  # its keys are integers, whatever the type
_ANY_KEYS = KeyType(8)


def compare_file_indexes(a: Source, b: Source, types: Mapping[str, DataType]) -> list[Difference]:
    """What is indexed in one only, and the first value of each index that differs."""
    left, right = (FileIndex.open(source, types, strict=True) for source in (a, b))
    mine, others = (_by_name(index) for index in (left, right))
    known = IndexedColumns.match((*left.entries, *right.entries), types).types
    found = compared("head", "redundant bytes", left.container.redundant, right.container.redundant)
    for name in dict.fromkeys((*mine, *others)):
        entry = ", ".join(name)
        if name not in others:
            found.append(Difference(entry, "only in A"))
        elif name not in mine:
            found.append(Difference(entry, "only in B"))
        else:
            one, other = (left, mine[name]), (right, others[name])
            found.extend(_compare(entry, one, other, known[mine[name]]))
    return found


def _by_name(index: FileIndex) -> dict[tuple[str, str], Entry]:
    return {(entry.column, entry.index_type): entry for entry in index.entries}


def _compare(
    name: str,
    a: tuple[FileIndex, Entry],
    b: tuple[FileIndex, Entry],
    data_type: DataType | None,
) -> list[Difference]:
    (left, mine), (right, other) = a, b
    if mine.is_empty or other.is_empty:
        return compared(name, "written", not mine.is_empty, not other.is_empty)
    sections = left.container.section(mine), right.container.section(other)
    if first_byte(*sections) is None:
        return []
    index_type = mine.index_type
    if index_type == "bloom-filter":
        readers = [BloomFilterReader(section, _ANY_KEYS) for section in sections]
        return _compare_filters(name, readers[0], readers[1])
    if index_type == "bsi" and data_type is None:
        data_type = _TYPE_OF_BSI
        opened = [READERS["bsi"](section, _ANY_KEYS) for section in sections]
    elif index_type in READERS and data_type is not None:
        opened = [left.reader(mine), right.reader(other)]
    else:
        first = locate(*sections, lambda: draw_index(index_type, sections[0], name, None))
        hint = f"; --type {mine.column}=TYPE compares values" if index_type in READERS else ""
        return [Difference(name, "differs", f"{first}{hint}")]
    one, another = (cast("RowValues", reader) for reader in opened)
    return compare_rows(name, one, another, data_type)


def _compare_filters(name: str, a: BloomFilterReader, b: BloomFilterReader) -> list[Difference]:
    found = compared(name, "hash functions", a.functions, b.functions)
    found += compared(name, "bits", a.bits, b.bits)
    if found:
        return found
    different = np.flatnonzero(np.unpackbits(a.filter ^ b.filter, bitorder="little"))
    bit = int(different[0])
    side = "A" if a.filter[bit >> 3] >> (bit & 7) & 1 else "B"
    more = f"; {len(different)} bits differ" if len(different) > 1 else ""
    return [Difference(name, "differs", f"bit {bit} set only in {side}{more}")]
