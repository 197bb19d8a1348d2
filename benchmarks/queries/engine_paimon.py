"""pypaimon-rust: the rows as a Paimon table, with the same file indexes as ours."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

from benchmarks.measure import cost_of
from benchmarks.queries.engine import Answer, Engine, Step, size_of
from benchmarks.queries.indexes import index_options
from benchmarks.queries.question import Question

__all__ = ["PaimonRust"]

_COLUMNS = "id BIGINT, user_id INT, class_id INT, score DOUBLE, ts TIMESTAMP(6), name STRING"
_SIDECAR = {"file-index.in-manifest-threshold": "1 B"}  # an index becomes a file of its own


class PaimonRust(Engine):
    """Its indexes are made while it writes, so it writes twice: without them and with them."""

    package = "pypaimon-rust"
    context: Any

    def prepare(self, rows: int) -> Iterator[Step]:
        """Commit file after file."""
        plain = self.own / "rows.db" / "plain"
        cost, _ = cost_of(lambda: self._load("plain", {}))
        yield Step("load without indexes", cost, size_of(plain))
        shutil.rmtree(plain)
        cost, _ = cost_of(lambda: self._load("indexed", index_options(rows) | _SIDECAR))
        yield Step("load again, with indexes (MB: of these)", cost, size_of(self.own, "*.index"))

    def _load(self, table: str, options: Mapping[str, str]) -> None:
        self.open()
        if table == "plain":
            self.context.sql("CREATE SCHEMA own.rows")
        texts = [f"'{key}' = '{value}'" for key, value in options.items()]
        given = f" WITH ({', '.join(texts)})" if texts else ""
        self.context.sql(f"CREATE TABLE own.rows.{table} ({_COLUMNS}){given}")
        builder = (
            PaimonCatalog(self._options()).get_table(("rows", table)).new_batch_write_builder()
        )
        for path in sorted(self.data.glob("*.parquet")):
            writer = builder.new_write()
            for batch in pq.read_table(path).combine_chunks().to_batches():
                writer.write_arrow(batch)
            builder.new_commit().commit(writer.prepare_commit())

    def _options(self) -> dict[str, str]:
        return {"warehouse": str(self.own)}

    def open(self) -> None:
        """Begin a session that knows the warehouse."""
        self.context = SQLContext()
        self.context.register_catalog("own", self._options())

    def ask(self, question: Question) -> Answer:
        """Answer a SQL statement."""
        table = pa.Table.from_batches(self.context.sql(question.select("own.rows.indexed")))
        return table if question.ask in {"rows", "top"} else table[0][0].as_py()
