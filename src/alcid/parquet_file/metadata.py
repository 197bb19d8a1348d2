"""The footer of a Parquet file as Arrow reads it, checked before it is used.

Arrow parses a footer in a tenth of a millisecond, `read_layout` in some: where no page is looked
for, this is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import Source
from alcid.parquet_file.decoding import naming_damage
from alcid.parquet_file.footer import parse_footer
from alcid.parquet_file.held import UnreadFile
from alcid.parquet_file.tail import END, MAGIC, footer_length

__all__ = ["ScanField", "check_chunks", "chunk_places", "parse_metadata", "rows_of", "scan_fields"]


class ScanField(NamedTuple):
    """A top-level column."""

    name: str
    leaves: range
    """The numbers of its leaf columns, as in `pq.FileMetaData`."""


def parse_metadata(source: Source, tail: bytes) -> tuple[pq.FileMetaData, frozenset[int]]:
    """The footer at the end of a file, and which of its leaf columns are encrypted.

    Raises:
        FormatError: It is damaged.
    """
    length = footer_length(tail)
    with naming_damage(source.name, "damaged footer"):
        metadata = pq.read_metadata(pa.BufferReader(tail[-END - length :]))
    # Where columns are encrypted the footer is signed, and longer than what Arrow has parsed.
    if metadata.serialized_size == length:
        return metadata, frozenset()
    return metadata, frozenset(
        leaf
        for group in parse_footer(source, tail).groups
        for leaf, chunk in enumerate(group.chunks)
        if chunk is None
    )


def scan_fields(metadata: pq.FileMetaData, file: str) -> tuple[ScanField, ...]:
    """The top-level columns.

    Raises:
        FormatError: The schemas of Parquet and of Arrow contradict each other.
    """
    with naming_damage(file, "damaged footer"):
        schema = metadata.schema.to_arrow_schema()
    found: list[ScanField] = []
    begin = 0
    for field in schema:
        end = begin + _leaf_count(field.type)
        found.append(ScanField(field.name, range(begin, end)))
        begin = end
    if begin != metadata.num_columns:
        raise FormatError(
            "damaged footer",
            file=file,
            found=f"{metadata.num_columns} leaf columns",
            expected=begin,
        )
    return tuple(found)


def _leaf_count(kind: pa.DataType) -> int:
    """How many leaf columns hold a column of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _leaf_count(kind.storage_type)
    if not kind.num_fields:
        return 1
    return sum(_leaf_count(kind.field(place).type) for place in range(kind.num_fields))


def rows_of(metadata: pq.FileMetaData, file: str) -> tuple[int, ...]:
    """The rows of each row group, the empty ones too.

    Raises:
        FormatError: They are not as many as the file says.
    """
    rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise FormatError(
            "bad number of rows", file=file, found=metadata.num_rows, expected=sum(rows)
        )
    return rows


def check_chunks(
    source: Source, metadata: pq.FileMetaData, groups: Sequence[int], leaves: Sequence[int]
) -> None:
    """Let Arrow look at column chunks where it can raise an error.

    `metadata.row_group(i).column(j)` cannot: it ends the process if the metadata of the column is
    encrypted, or only says so.

    Raises:
        FormatError: There is a chunk that cannot be read.
    """
    file = UnreadFile(source)
    with naming_damage(source.name, "damaged footer"):
        # To read ahead, Arrow looks at all chunks before it reads of one.
        reader = pq.ParquetFile(
            pa.PythonFile(file, mode="r"), metadata=metadata, pre_buffer=True
        ).reader
        try:
            reader.read_row_groups(groups, column_indices=leaves, use_threads=False)
        except (pa.ArrowException, OSError):
            if not file.asked:
                raise


def chunk_places(
    source: Source, metadata: pq.FileMetaData, groups: Sequence[int], leaves: Sequence[int]
) -> list[tuple[int, int]]:
    """Offset and length of the chunks of some leaf columns in some row groups that have rows.

    Raises:
        FormatError: A chunk is not within the file.
        UnsupportedError: It lies in another file.
    """
    check_chunks(source, metadata, groups, leaves)
    end = source.size - END - metadata.serialized_size
    places: list[tuple[int, int]] = []
    for group in groups:
        row_group = metadata.row_group(group)
        for leaf in leaves:
            chunk = row_group.column(leaf)
            offset, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
            if dictionary and 0 < dictionary < offset:
                offset = dictionary
            length = chunk.total_compressed_size
            if chunk.file_path:
                raise UnsupportedError(f"{source.name}: its columns lie in other files")
            if offset < len(MAGIC) or length < 0 or offset + length > end:
                raise FormatError(
                    "column chunk outside of the file",
                    file=source.name,
                    offset=offset,
                    found=f"{length} bytes",
                    expected=f"within {len(MAGIC)} to {end}",
                )
            places.append((offset, length))
    return places
