"""Rows of Parquet files by position, reading only the pages that hold them.

- `read_rows`, `read_many`: rows as Arrow tables (`alcid.parquet_file.read`).
- `read_layout`, `FileLayout`: where the pages are, to be kept so that no footer is read again.
- `open_scan`, `open_scans`, `ParquetScan`: whole row groups, as fast as Arrow reads them.
- `Coalescing`, `ReadReport`: how ranges are read together, and what was read.
"""

from __future__ import annotations

from alcid.parquet_file.layout import ColumnLayout, FileLayout, LeafLayout
from alcid.parquet_file.layout_reader import read_layout
from alcid.parquet_file.metadata import ScanField
from alcid.parquet_file.read import FileRows, read_many, read_rows
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import Coalescing
from alcid.parquet_file.scan import ParquetScan, open_scan, open_scans
from alcid.parquet_file.schema import Field, restore_field

__all__ = [
    "Coalescing",
    "ColumnLayout",
    "Field",
    "FileLayout",
    "FileRows",
    "LeafLayout",
    "ParquetScan",
    "ReadReport",
    "ScanField",
    "open_scan",
    "open_scans",
    "read_layout",
    "read_many",
    "read_rows",
    "restore_field",
]
