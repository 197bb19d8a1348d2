"""What an engine that can change tables does more. It needs nothing but Python."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from benchmarks.queries.engine import Engine
from benchmarks.queries.question import Question

__all__ = ["TableEngine"]


class TableEngine(Engine):
    """Changes are made to a table that is opened for them."""

    def delete(self, table: Path, question: Question) -> None:
        """Delete the rows of a question."""
        raise NotImplementedError

    def build(self, table: Path) -> None:
        """Build the indexes that the table names, for data files that have none."""
        raise NotImplementedError

    @abstractmethod
    def append(self, table: Path, sources: list[Path]) -> None:
        """Append the rows of Parquet files in one commit, with the indexes of the table."""
