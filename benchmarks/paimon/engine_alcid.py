"""alcid on the table, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import alcid
from benchmarks.paimon.engine import TableEngine
from benchmarks.queries.engine import Answer
from benchmarks.queries.question import LIMIT, Question

__all__ = ["AlcidTable"]


class AlcidTable(TableEngine):
    """Without Spark."""

    package = "alcid"
    table: Any

    def open(self) -> None:
        """Read the manifests."""
        self.table = alcid.paimon(self.data)

    def ask(self, question: Question) -> Answer:
        """Answer from the table."""
        where = question.condition or None
        match question.ask:
            case "count":
                return int(self.table.count(where))
            case "top":
                return self.table.scan(order_by="score DESC", limit=LIMIT).to_arrow()
            case _:
                return self.table.scan(where).to_arrow()

    def delete(self, table: Path, question: Question) -> None:
        """Delete by vectors."""
        alcid.paimon(table).delete(question.condition)

    def build(self, table: Path) -> None:
        """Build for all files."""
        alcid.paimon(table).build_indexes(progress=False)

    def append(self, table: Path, sources: list[Path]) -> None:
        """Read the files, then append."""
        alcid.paimon(table).append(pq.read_table(sources))
