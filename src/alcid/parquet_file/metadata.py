"""The footer of a Parquet file as Arrow reads it, checked before it is used.

Arrow parses a footer in a tenth of a millisecond, `read_layout` in some: where no page is looked
for, this is enough.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from alcid.errors import FormatError
from alcid.parquet_file.decoding import naming_damage

__all__ = [
    "ScanField",
    "leaf_count",
    "parse_metadata",
    "row_count_problem",
    "rows_of",
    "scan_fields",
]


class ScanField(NamedTuple):
    """A top-level column."""

    name: str
    leaves: range
    """The numbers of its leaf columns, as in `pq.FileMetaData`."""


def parse_metadata(footer: bytes, file: str) -> pq.FileMetaData:
    """A footer with all that follows it in the file.

    Raises:
        FormatError: It is damaged.
    """
    with naming_damage(file, "damaged footer"):
        return pq.read_metadata(pa.BufferReader(footer))


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
        end = begin + leaf_count(field.type)
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


def leaf_count(kind: pa.DataType) -> int:
    """How many leaf columns of Parquet hold a column of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    if not pa.types.is_nested(kind):
        return 1
    return sum(leaf_count(kind.field(place).type) for place in range(kind.num_fields))


def rows_of(metadata: pq.FileMetaData, file: str) -> tuple[int, ...]:
    """The rows of each row group, the empty ones too.

    Their sum is the number of rows of the file, whatever its footer states beside.

    Raises:
        FormatError: A number is negative.
    """
    rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if min(rows, default=0) < 0:
        raise FormatError("bad row group in the metadata", file=file, found=f"{min(rows)} rows")
    return rows


def row_count_problem(metadata: pq.FileMetaData) -> str:
    """How the footer contradicts itself about the number of rows; empty if it does not.

    Early versions of parquet-rs wrote 0. Nothing else of such a footer is used to leave out rows.
    """
    stated = metadata.num_rows
    total = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if stated == total:
        return ""
    return f"the footer says {stated} rows, its row groups have {total}"
