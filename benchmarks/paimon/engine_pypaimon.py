"""pypaimon on the table: it neither reads nor writes file indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pypaimon.table.file_store_table import FileStoreTable

from benchmarks.paimon.engine import TableEngine
from benchmarks.queries.engine import Answer
from benchmarks.queries.question import LIMIT, Leaf, Question

__all__ = ["PyPaimonTable"]

_COMPARISONS = {"=": "equal", "<": "less_than", ">": "greater_than"}


class PyPaimonTable(TableEngine):
    """It knows no top-n: the threshold is found first, then the rows are read."""

    package = "pypaimon"
    table: Any

    def open(self) -> None:
        """Read the schema; every question reads the manifests."""
        self.table = FileStoreTable.from_path(str(self.data))

    def ask(self, question: Question) -> Answer:
        """Answer from the table."""
        match question.ask:
            case "top":
                return self._top()
            case "count" if not question.where:
                splits = self.table.new_read_builder().new_scan().plan().splits()
                return sum(split.row_count for split in splits)
            case "count":
                columns = sorted({leaf[0] for leaves in question.where for leaf in leaves})
                return int(self._read(question.where, columns).num_rows)
            case _:
                return self._read(question.where)

    def _top(self) -> Answer:
        scores = self._read((), ["score"])["score"].to_numpy()
        least = float(np.partition(scores, -LIMIT)[-LIMIT])
        # It has no comparison that keeps the tenth and is not strict.
        rows = self._read(((("score", ">", float(np.nextafter(least, -np.inf))),),))
        return rows.sort_by([("score", "descending")]).slice(0, LIMIT)

    def _read(self, where: tuple[tuple[Leaf, ...], ...], columns: list[str] | None = None) -> Any:
        builder = self.table.new_read_builder()
        if where:
            builder = builder.with_filter(_predicate(builder.new_predicate_builder(), where))
        if columns is not None:
            builder = builder.with_projection(columns)
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    def append(self, table: Path, sources: list[Path]) -> None:
        """Write file after file, in one commit; indexes are not written, whatever the options."""
        builder = FileStoreTable.from_path(str(table)).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        for source in sources:
            writer.write_arrow(pq.read_table(source))
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()


def _predicate(builder: Any, where: tuple[tuple[Leaf, ...], ...]) -> Any:
    every = [
        builder.and_predicates(
            [getattr(builder, _COMPARISONS[how])(column, literal) for column, how, literal in each]
        )
        for each in where
    ]
    return builder.or_predicates(every)
