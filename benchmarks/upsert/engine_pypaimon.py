"""pypaimon on tables with a primary key: it writes to level 0, and does not compact."""

from __future__ import annotations

from pathlib import Path

from benchmarks.paimon.engine_pypaimon import PyPaimonTable
from benchmarks.upsert.engine import KeyedEngine

__all__ = ["PyPaimonKeyed"]


class PyPaimonKeyed(PyPaimonTable, KeyedEngine):
    """A write to such a table is an upsert."""

    def upsert(self, table: Path, sources: list[Path]) -> None:
        """Write file after file, in one commit."""
        self.append(table, sources)
