"""Spark: alcid's DataFrames of the table, and Spark alone on its Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import alcid
from benchmarks.paimon.engine import TableEngine
from benchmarks.queries.question import Question
from benchmarks.spark.ways import Plain, Read

__all__ = ["AlcidSpark", "PlainSpark"]


class AlcidSpark(Read, TableEngine):
    """`table.read`, and `table.count` for a number of rows."""

    package = "alcid"

    def open(self) -> None:
        """Read the manifests."""
        self.table = alcid.paimon(self.data, self.spark)

    def count(self, question: Question) -> int:
        """Count without a DataFrame."""
        return int(self.table.count(question.condition or None))

    def delete(self, table: Path, question: Question) -> None:
        """Delete by vectors."""
        alcid.paimon(table, self.spark).delete(question.condition)

    def build(self, table: Path) -> None:
        """Build for all files."""
        alcid.paimon(table, self.spark).build_indexes(progress=False)

    def append(self, table: Path, sources: list[Path]) -> None:
        """Append a DataFrame."""
        alcid.paimon(table, self.spark).append(self._rows(sources))

    def _rows(self, sources: list[Path]) -> Any:
        return self.spark.read.parquet(*map(str, sources))


class PlainSpark(Plain, TableEngine):
    """The data files, as if they were a folder of Parquet: right while nothing is deleted."""

    def __init__(self, data: Path, own: Path) -> None:
        """Leave the index files out."""
        super().__init__(data / "bucket-0" / "*.parquet", own)

    def append(self, table: Path, sources: list[Path]) -> None:
        """Write into a folder of no table."""
        rows = self.spark.read.parquet(*map(str, sources))
        rows.write.mode("append").parquet(str(table / "bucket-0"))
