"""DuckDB over the Parquet files."""

from __future__ import annotations

from typing import Any

import duckdb

from benchmarks.queries.engine import Answer, Engine
from benchmarks.queries.question import Question

__all__ = ["DuckDB"]


class DuckDB(Engine):
    """It keeps footers within a session, which is off by default."""

    package = "duckdb"
    connection: Any

    def open(self) -> None:
        """Connect to a new database in memory."""
        self.connection = duckdb.connect()
        self.connection.execute("SET parquet_metadata_cache = true")

    def ask(self, question: Question) -> Answer:
        """Answer a SQL statement."""
        found = self.connection.sql(question.select(f"read_parquet('{self.data}/*.parquet')"))
        table = found.to_arrow_table()
        return table if question.ask in {"rows", "top"} else table[0][0].as_py()
