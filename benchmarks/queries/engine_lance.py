"""Lance: the rows in its own format, with its own indexes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import lance
import pyarrow.compute as pc
import pyarrow.parquet as pq
from lance.dataset import ColumnOrdering

from benchmarks.measure import cost_of
from benchmarks.queries.engine import Answer, Engine, Step, size_of
from benchmarks.queries.question import LIMIT, Question

__all__ = ["Lance"]

_INDEXES = {"id": "BTREE", "user_id": "BTREE", "score": "BTREE", "class_id": "BITMAP"}


class Lance(Engine):
    """A dataset of as many fragments as there are files."""

    package = "pylance"
    dataset: Any

    def prepare(self, rows: int) -> Iterator[Step]:  # noqa: ARG002
        """Append file after file, then build one index after the other."""
        cost, _ = cost_of(self._load)
        yield Step("load", cost, size_of(self.own / "data"))
        dataset = lance.dataset(self.own)
        before = 0
        for column, kind in _INDEXES.items():
            cost, _ = cost_of(partial(dataset.create_scalar_index, column, kind))
            after = size_of(self.own / "_indices")
            yield Step(f"{kind} {column}", cost, after - before)
            before = after

    def _load(self) -> None:
        for place, path in enumerate(sorted(self.data.glob("*.parquet"))):
            mode = "append" if place else "create"
            lance.write_dataset(pq.read_table(path), self.own, mode=mode)

    def open(self) -> None:
        """Open the dataset."""
        self.dataset = lance.dataset(self.own)

    def ask(self, question: Question) -> Answer:
        """Answer from the dataset."""
        match question.ask:
            case "top":
                highest = ColumnOrdering("score", ascending=False, nulls_first=False)
                return self.dataset.to_table(order_by=[highest], limit=LIMIT)
            case "count":
                return int(self.dataset.count_rows(question.condition))
            case "sum":
                return float(pc.sum(self.dataset.to_table(columns=["score"])["score"]).as_py())
            case _:
                return self.dataset.to_table(filter=question.condition)
