"""pyarrow's dataset over the Parquet files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.queries.engine import Answer, Engine
from benchmarks.queries.question import LIMIT, Question

__all__ = ["PyArrow"]


class PyArrow(Engine):
    """It knows no top-n over a dataset: the threshold is found first, then the rows are read."""

    package = "pyarrow"
    dataset: Any

    def open(self) -> None:
        """Discover the files."""
        self.dataset = ds.dataset(self.data, format="parquet")

    def ask(self, question: Question) -> Answer:
        """Answer from the files."""
        match question.ask:
            case "top":
                return self._top()
            case "sum":
                return float(pc.sum(self.dataset.to_table(columns=["score"])["score"]).as_py())
            case "count":
                return int(self.dataset.count_rows(filter=_expression(question)))
            case _:
                return self.dataset.to_table(filter=_expression(question))

    def _top(self) -> Answer:
        scores = self.dataset.to_table(columns=["score"])["score"].to_numpy()
        least = float(np.partition(scores, -LIMIT)[-LIMIT])
        rows = self.dataset.to_table(filter=pc.field("score") >= least)
        return rows.sort_by([("score", "descending")]).slice(0, LIMIT)


def _expression(question: Question) -> Any:
    return pq.filters_to_expression([list(leaves) for leaves in question.where])
