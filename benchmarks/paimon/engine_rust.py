"""pypaimon-rust on the table; it reads file indexes unless it is told not to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

from benchmarks.paimon.engine import TableEngine
from benchmarks.queries.engine import Answer
from benchmarks.queries.question import Question

__all__ = ["RustTable"]


class RustTable(TableEngine):
    """It asks in SQL; a table is named by its warehouse, its database and its own name."""

    package = "pypaimon-rust"
    context: Any

    def open(self) -> None:
        """Begin a session that knows the warehouse."""
        self.context = SQLContext()
        self.context.register_catalog("own", _warehouse(self.data))

    def ask(self, question: Question) -> Answer:
        """Answer a SQL statement."""
        database, name = _name(self.data)
        batches = self.context.sql(question.select(f"own.{database}.{name}"))
        if question.ask == "count":
            return batches[0].column(0)[0].as_py()
        # Of no rows there may be no batch, and so no columns.
        schema = batches[0].schema if batches else pq.read_schema(self._any_file())
        return pa.Table.from_batches(batches, schema)

    def _any_file(self) -> Path:
        return next(self.data.glob("bucket-0/*.parquet"))

    def append(self, table: Path, sources: list[Path]) -> None:
        """Write file after file, in one commit."""
        opened = PaimonCatalog(_warehouse(table)).get_table(_name(table))
        builder = opened.new_batch_write_builder()
        writer = builder.new_write()
        for source in sources:
            for batch in pq.read_table(source).combine_chunks().to_batches():
                writer.write_arrow(batch)
        builder.new_commit().commit(writer.prepare_commit())


def _warehouse(table: Path) -> dict[str, str]:
    return {"warehouse": str(table.parent.parent)}


def _name(table: Path) -> tuple[str, str]:
    return table.parent.stem, table.name
