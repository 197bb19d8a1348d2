"""alcid, in this process and on Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import alcid
from benchmarks.paimon.engine_alcid import AlcidTable
from benchmarks.paimon.engine_spark import AlcidSpark
from benchmarks.upsert.engine import KeyedEngine

__all__ = ["AlcidKeyed", "AlcidKeyedSpark"]


class AlcidKeyed(AlcidTable, KeyedEngine):
    """Without Spark."""

    def upsert(self, table: Path, sources: list[Path]) -> None:
        """Read the files, then upsert."""
        alcid.paimon(table).upsert(pq.read_table(sources))

    def compact(self, table: Path) -> None:
        """Compact all buckets."""
        alcid.paimon(table).compact()


class AlcidKeyedSpark(AlcidSpark, KeyedEngine):
    """On all cores."""

    def upsert(self, table: Path, sources: list[Path]) -> None:
        """Upsert a DataFrame."""
        alcid.paimon(table, self.spark).upsert(self._rows(sources))

    def compact(self, table: Path) -> None:
        """Compact all buckets."""
        alcid.paimon(table, self.spark).compact()
