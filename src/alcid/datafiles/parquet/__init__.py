"""Rows of Parquet files by position, reading only the pages that hold them.

- `read_rows`, `read_many`: rows as Arrow tables (`alcid.datafiles.parquet.read`).
- `read_layout`, `FileLayout`: where the pages are, to be kept so that no footer is read again.
- `open_scan`, `open_scans`, `ParquetScan`: whole row groups, as fast as Arrow reads them.
- `Coalescing`, `ReadReport`: how ranges are read together, and what was read.
"""

from __future__ import annotations

from alcid.datafiles.parquet.footer import ScanField
from alcid.datafiles.parquet.layout import ColumnLayout, FileLayout, LeafLayout, read_layout
from alcid.datafiles.parquet.read import FileRows, read_many, read_rows
from alcid.datafiles.parquet.row_groups import ParquetScan, open_scan, open_scans
from alcid.datafiles.parquet.schema import Field, restore_field
from alcid.storage.ranges import Coalescing, ReadReport

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
