"""DataFusion over the Parquet files."""

from __future__ import annotations

from typing import Any

from datafusion import SessionConfig, SessionContext

from benchmarks.queries.engine import Answer, Engine
from benchmarks.queries.question import Question

__all__ = ["DataFusion"]

_PARQUET = "datafusion.execution.parquet"


class DataFusion(Engine):
    """It skips pages by predicates on columns read before, which is off by default."""

    package = "datafusion"
    context: Any

    def open(self) -> None:
        """Begin a session that knows the folder."""
        options = {f"{_PARQUET}.pushdown_filters": "true", f"{_PARQUET}.reorder_filters": "true"}
        self.context = SessionContext(SessionConfig(options))
        self.context.register_parquet("rows", f"{self.data}/")

    def ask(self, question: Question) -> Answer:
        """Answer a SQL statement."""
        table = self.context.sql(question.select("rows")).to_arrow_table()
        return table if question.ask in {"rows", "top"} else table[0][0].as_py()
