"""pyarrow on the data files, as if they were a folder of Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds

from benchmarks.queries.engine import Answer
from benchmarks.queries.engine_pyarrow import PyArrow
from benchmarks.queries.question import Question

__all__ = ["PyArrowFiles"]


class PyArrowFiles(PyArrow):
    """Without the index files."""

    def __init__(self, data: Path, own: Path) -> None:
        """Take the folder of the table."""
        super().__init__(data / "bucket-0", own)

    def open(self) -> None:
        """Discover the files."""
        self.dataset = ds.dataset(sorted(self.data.glob("*.parquet")), format="parquet")

    def ask(self, question: Question) -> Answer:
        """Count all rows without an expression."""
        if question.ask == "count" and not question.where:
            return int(self.dataset.count_rows())
        return super().ask(question)
