"""What an engine does to tables with a primary key. It needs nothing but Python."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from benchmarks.paimon.engine import TableEngine

__all__ = ["KeyedEngine"]


class KeyedEngine(TableEngine):
    """A table is opened for every change, and once for many look-ups."""

    @abstractmethod
    def upsert(self, table: Path, sources: list[Path]) -> None:
        """Upsert the rows of Parquet files, in one call."""

    def compact(self, table: Path) -> None:
        """Compact all of it, so that every bucket has one run."""
        raise NotImplementedError
