"""DuckDB on the data files, as if they were a folder of Parquet."""

from __future__ import annotations

from pathlib import Path

from benchmarks.queries.engine_duckdb import DuckDB

__all__ = ["DuckDBFiles"]


class DuckDBFiles(DuckDB):
    """Without the index files."""

    def __init__(self, data: Path, own: Path) -> None:
        """Take the folder of the table."""
        super().__init__(data / "bucket-0", own)
