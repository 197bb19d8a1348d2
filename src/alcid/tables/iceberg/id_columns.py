"""Columns of a Parquet file by their field ids: names may be others than those of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from alcid.errors import FormatError
from alcid.formats.source import ReadMany
from alcid.parquet_file import ParquetScan
from alcid.parquet_file.decoding import naming_damage
from alcid.tables.file_columns import field_id

__all__ = ["field_names", "read_columns"]


def field_names(scan: ParquetScan) -> dict[int, str]:
    """The names of the top-level columns that have a field id."""
    with naming_damage(scan.source.name, "damaged footer"):
        schema = scan.metadata.schema.to_arrow_schema()
    return {number: one.name for one in schema if (number := field_id(one)) is not None}


def read_columns(
    scan: ParquetScan,
    wanted: Mapping[int, Any],
    read_ranges: ReadMany,
    row_groups: Sequence[int] | None = None,
) -> list[pa.ChunkedArray]:
    """Columns by field id, each of the type that is wanted.

    Args:
        scan: The file.
        wanted: The types, by field id.
        read_ranges: Reads it.
        row_groups: By default all.

    Raises:
        FormatError: The file has no such column, or it is of a type that does not become the other.
    """
    names = field_names(scan)
    for number, kind in wanted.items():
        if number not in names:
            raise FormatError(
                "delete file without a column",
                file=scan.source.name,
                found=f"field ids {', '.join(map(str, sorted(names))) or 'none'}",
                expected=f"{number} of type {kind}",
            )
    found = scan.read(row_groups, [names[number] for number in wanted], read_ranges=read_ranges)
    columns = []
    for (number, kind), values in zip(wanted.items(), found.columns, strict=True):
        try:
            columns.append(values if values.type == kind else values.cast(kind))
        except pa.ArrowException:
            raise FormatError(
                f"column with field id {number}",
                file=scan.source.name,
                found=values.type,
                expected=kind,
            ) from None
    return columns
