"""Small columns and folders with indexes, and the rows that queries on them return."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid import FileIndex, ParquetTable, Predicate
from alcid.scan import FileOutcomes, Scan

__all__ = ["file_outcomes", "files_read", "fill", "ids", "index_of", "outcomes", "rows_of"]

Columns = Mapping[str, Any]


def index_of(column: Any, index_type: str, **options: str | int) -> FileIndex:
    """An index of a column `a`; options with `_` for `-`."""
    keys = {f"file-index.{index_type}.a.{key.replace('_', '-')}": v for key, v in options.items()}
    built = FileIndex.build(
        pa.table({"a": column}), {f"file-index.{index_type}.columns": "a", **keys}
    )
    return FileIndex.from_bytes(built.to_bytes(), pa.schema([("a", column.type)]), strict=True)


def rows_of(index: FileIndex, predicate: str | Predicate) -> list[int] | None:
    """The rows that an index gives; None for any row."""
    rows = index.evaluate(predicate).rows
    return None if rows is None else list(rows)


def fill(
    folder: Path, files: Mapping[str, Columns], *, group_rows: int = 4, has_pages: bool = True
) -> ParquetTable:
    """Write Parquet files with small row groups, and a page for every two rows.

    Args:
        folder: Where.
        files: Columns, by the names of the files.
        group_rows: How many rows a row group has.
        has_pages: Whether the footer tells where pages are.
    """
    for name, columns in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table(dict(columns)),
            path,
            row_group_size=group_rows,
            data_page_size=1,
            write_batch_size=2,
            write_page_index=has_pages,
            use_dictionary=False,
        )
    return alcid.parquet(folder)


def ids(scan: Scan) -> list[int]:
    """The ids of the rows, in the order in which they come."""
    listed: list[int] = scan.to_arrow().column("id").to_pylist()
    return listed


def outcomes(scan: Scan) -> list[tuple[str, str, int]]:
    """The index that was asked, its outcome and the number of files."""
    return [(use.index, use.outcome, use.files) for use in scan.explain().indexes]


def files_read(scan: Scan) -> list[str]:
    """The paths of the files that were not left out."""
    return [outcome.path for outcome in file_outcomes(scan) if outcome.outcome.stage == "read"]


def file_outcomes(scan: Scan) -> FileOutcomes:
    """The outcome of each file."""
    per_file = scan.explain().outcomes
    assert per_file is not None
    return per_file
